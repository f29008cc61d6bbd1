/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Merging. A part of iosched-tmpl.h.
 *
 * The block layer finds merge candidates through q->last_merge and the elevator
 * hash, which has the requests by their end. It calls allow_merge() before it
 * adds a bio to a request, but no hook before it joins two requests. So a request
 * that must not grow at its end, because of a limit or because it must not join
 * the request that is queued after it, is "sealed": taken out of the hash.
 */
#ifndef _IOSCHED_TMPL_MERGE_H
#define _IOSCHED_TMPL_MERGE_H

#include <linux/hashtable.h>

static bool iosched_may_join(struct iosched *io, struct request *front,
			     struct request *back)
{
	return !IOSCHED_POLICY.may_merge ||
	       IOSCHED_POLICY.may_merge(io, rq_data_dir(front),
					blk_rq_pos(front),
					iosched_rq_end(back));
}

static void iosched_seal(struct iosched *io, struct request *rq)
{
	elv_rqhash_del(io->q, rq);
	if (io->q->last_merge == rq)
		io->q->last_merge = NULL;
}

/* Seal @rq, which is new or has grown, and the one before it, if necessary. */
static void iosched_seal_around(struct iosched *io, struct request *rq)
{
	struct request *prev, *next;

	if (!IOSCHED_POLICY.may_merge || RB_EMPTY_NODE(&rq->rb_node))
		return;
	next = iosched_next(rq);
	if (!IOSCHED_POLICY.may_merge(io, rq_data_dir(rq), blk_rq_pos(rq),
				      iosched_rq_end(rq) + 1) ||
	    (next && blk_rq_pos(next) == iosched_rq_end(rq) &&
	     !iosched_may_join(io, rq, next)))
		iosched_seal(io, rq);
	prev = iosched_prev(rq);
	if (prev && iosched_rq_end(prev) == blk_rq_pos(rq) &&
	    !iosched_may_join(io, prev, rq))
		iosched_seal(io, prev);
}

/*
 * @rq is about to join the request that begins at @begin. The block layer then
 * joins both to a request that ends there, the first such one in the hash, and so
 * on. Seal the request that must not join.
 */
static void iosched_stop_chain(struct iosched *io, struct request *rq,
			       sector_t begin)
{
	unsigned int dir = rq_data_dir(rq);
	sector_t end = iosched_rq_end(rq);
	struct request *front, *found;
	struct hlist_node *next;

	do {
		found = NULL;
		hash_for_each_possible_safe(io->q->elevator->hash, front, next,
					    hash, begin) {
			if (iosched_rq_end(front) != begin ||
			    rq_data_dir(front) != dir)
				continue;
			if (!IOSCHED_POLICY.may_merge(io, dir,
						      blk_rq_pos(front), end))
				iosched_seal(io, front);
			else if (!found)
				found = front;
		}
		if (found)
			begin = blk_rq_pos(found);
	} while (found);
}

/*
 * Return true if @rq, about to be inserted, may be appended to a queued request,
 * after sealing the requests that must not join these. Discards that merge wherever
 * they lie merge as bios only: the block layer does not unlink a queued request that
 * joins another one that way.
 */
static bool iosched_prepare_append(struct iosched *io, struct request *rq)
{
	unsigned int dir = rq_data_dir(rq);
	sector_t pos = blk_rq_pos(rq), end = iosched_rq_end(rq), begin = pos;
	struct request *prev;
	bool found = false;

	if (!io->queued[iosched_rq_tier(rq)] || iosched_discard_mergeable(rq))
		return false;
	if (IOSCHED_POLICY.may_merge &&
	    (!pos || !IOSCHED_POLICY.may_merge(io, dir, pos - 1, end)))
		return false;
	/*
	 * Requests may overlap, so check all that end here. In most cases there
	 * is none, and the block layer need not search the hash again.
	 */
	hash_for_each_possible(io->q->elevator->hash, prev, hash, pos)
		if (iosched_rq_end(prev) == pos && rq_data_dir(prev) == dir) {
			if (!iosched_may_join(io, prev, rq))
				return false;
			if (!found)
				begin = blk_rq_pos(prev);
			found = true;
		}
	if (found && IOSCHED_POLICY.may_merge)
		iosched_stop_chain(io, rq, begin);
	return found;
}

/* elevator_mq_ops: return true if @bio may be added to @rq. */
static bool iosched_allow_merge(struct request_queue *q, struct request *rq,
				struct bio *bio)
{
	if (!IOSCHED_POLICY.may_merge)
		return true;
	return IOSCHED_POLICY.may_merge(iosched_of(q), rq_data_dir(rq),
					min(blk_rq_pos(rq),
					    bio->bi_iter.bi_sector),
					max(iosched_rq_end(rq),
					    bio_end_sector(bio)));
}

/* elevator_mq_ops: return a neighbour that @rq, which has grown, may join. */
static struct request *iosched_former_request(struct request_queue *q,
					      struct request *rq)
{
	struct request *prev = iosched_prev(rq);

	return prev && iosched_may_join(iosched_of(q), prev, rq) ? prev : NULL;
}

static struct request *iosched_latter_request(struct request_queue *q,
					      struct request *rq)
{
	struct request *next = iosched_next(rq);

	return next && iosched_may_join(iosched_of(q), rq, next) ? next : NULL;
}

/* elevator_mq_ops: find a request for a front merge of @bio. */
static int iosched_request_merge(struct request_queue *q, struct request **rq,
				 struct bio *bio)
{
	struct iosched *io = iosched_of(q);
	struct rb_root *root;
	struct request *behind;

	if (!io->front_merges)
		return ELEVATOR_NO_MERGE;
	root = IOSCHED_POLICY.root(io, iosched_tier_of(bio->bi_ioprio),
				   bio_data_dir(bio), bio->bi_iter.bi_sector);
	behind = elv_rb_find(root, bio_end_sector(bio));
	if (!behind || !elv_bio_merge_ok(behind, bio))
		return ELEVATOR_NO_MERGE;
	*rq = behind;
	return iosched_discard_mergeable(behind) ? ELEVATOR_DISCARD_MERGE :
						   ELEVATOR_FRONT_MERGE;
}

/* @rq has grown by a merge. */
static void iosched_grown(struct iosched *io, struct request *rq)
{
	if (IOSCHED_POLICY.resized)
		IOSCHED_POLICY.resized(io, rq);
	io->merged = rq;
}

/* elevator_mq_ops: a bio was added to @rq. */
static void iosched_request_merged(struct request_queue *q, struct request *rq,
				   enum elv_merge type)
{
	struct iosched *io = iosched_of(q);

	lockdep_assert_held(&io->lock);
	if (type == ELEVATOR_FRONT_MERGE) {
		struct rb_root *root = IOSCHED_POLICY.placed(rq);

		elv_rb_del(root, rq);
		elv_rb_add(root, rq);
	}
	iosched_grown(io, rq);
}

/* Change the number of queued requests by @change for @rq. */
static void iosched_count(struct iosched *io, struct request *rq, int change)
{
	unsigned int tier = iosched_rq_tier(rq);

	WRITE_ONCE(io->queued[tier], io->queued[tier] + change);
	WRITE_ONCE(io->nr, io->nr + change);
}

/*
 * Take @rq out of everything that it is queued in. @heir: request that moves to
 * its place in the FIFO, or NULL.
 */
static void iosched_unlink(struct iosched *io, struct request *rq,
			   struct request *heir)
{
	lockdep_assert_held(&io->lock);
	/* Merged before it was queued. */
	if (list_empty(&rq->queuelist))
		return;
	/* Requests at the head are in no tree. */
	if (!RB_EMPTY_NODE(&rq->rb_node)) {
		elv_rb_del(IOSCHED_POLICY.placed(rq), rq);
		iosched_seal(io, rq);
		iosched_count(io, rq, -1);
		if (IOSCHED_POLICY.removed)
			IOSCHED_POLICY.removed(io, rq, heir);
	} else {
		WRITE_ONCE(io->nr, io->nr - 1);
	}
	if (heir)
		list_move(&heir->queuelist, &rq->queuelist);
	list_del_init(&rq->queuelist);
}

/* elevator_mq_ops: @next was merged into @rq and will be freed. */
static void iosched_requests_merged(struct request_queue *q,
				    struct request *rq, struct request *next)
{
	struct iosched *io = iosched_of(q);
	struct request *heir = NULL;

	lockdep_assert_held(&io->lock);
	/* The joined request keeps the earlier deadline and its place. */
	if (!list_empty(&rq->queuelist) && !list_empty(&next->queuelist) &&
	    time_before((unsigned long)next->fifo_time,
			(unsigned long)rq->fifo_time)) {
		rq->fifo_time = next->fifo_time;
		heir = rq;
	}
	iosched_rq_stats(io, next)->merged++;
	iosched_unlink(io, next, heir);
	iosched_rq_set_state(next, 0);
	iosched_grown(io, rq);
}

/* Not inlined: in most cases its caller has nothing to merge with. */
static noinline bool iosched_try_merge(struct iosched *io, struct bio *bio,
				       unsigned int nr_segs)
{
	struct request *free = NULL;
	bool ret;

	spin_lock(&io->lock);
	iosched_sort_alone(io);
	io->merged = NULL;
	ret = blk_mq_sched_try_merge(io->q, bio, nr_segs, &free);
	if (io->merged)
		iosched_seal_around(io, io->merged);
	spin_unlock(&io->lock);

	if (free)
		blk_mq_free_request(free);
	return ret;
}

/* elevator_mq_ops: add @bio to a queued request if possible. */
static bool iosched_bio_merge(struct request_queue *q, struct bio *bio,
			      unsigned int nr_segs)
{
	struct iosched *io = iosched_of(q);

	/*
	 * A polled bio must not be held, so it must not join a request. The block
	 * layer cannot complete a request of several bios without sectors, which
	 * manage zones.
	 */
	return READ_ONCE(io->queued[iosched_tier_of(bio->bi_ioprio)]) &&
	       !(bio->bi_opf & REQ_POLLED) && bio_sectors(bio) &&
	       iosched_try_merge(io, bio, nr_segs);
}

#endif /* _IOSCHED_TMPL_MERGE_H */
