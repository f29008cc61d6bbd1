/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Merging. A part of iosched-tmpl.h.
 *
 * The block layer finds merge candidates through q->last_merge and the elevator
 * hash, which has the requests by their end. It calls allow_merge() before it
 * adds a bio to a request, but no hook before it joins two requests; tmpl/seal.h
 * prevents the joins that the policy forbids.
 */
#ifndef _IOSCHED_TMPL_MERGE_H
#define _IOSCHED_TMPL_MERGE_H

#include <linux/hashtable.h>

#include "tmpl/bypass.h"
#include "tmpl/in-flight.h"
#include "tmpl/policy.h"
#include "tmpl/queue.h"
#include "tmpl/seal.h"

/*
 * Return true if @rq, about to be inserted, may be appended to a queued request,
 * after sealing the requests that must not join these. Discards that merge wherever
 * they lie merge as bios only: the block layer does not unlink a queued request that
 * joins another one that way.
 */
static bool iosched_prepare_append(struct iosched *io, struct request *rq)
{
	unsigned int dir = rq_data_dir(rq);
	sector_t pos = blk_rq_pos(rq), begin = pos;
	struct request *prev;
	bool found = false;

	if (iosched_discard_mergeable(rq))
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
	if (!found)
		return false;
	iosched_sort_fresh(io);
	if (IOSCHED_POLICY.may_merge)
		iosched_stop_chain(io, rq, begin);
	return true;
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
	root = iosched_tree_for(io, iosched_tier_of(bio->bi_ioprio),
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
		struct rb_root *root = iosched_tree_of(io, rq);

		elv_rb_del(root, rq);
		elv_rb_add(root, rq);
	}
	iosched_grown(io, rq);
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
	if (IOSCHED_POLICY.merged && !list_empty(&next->queuelist))
		IOSCHED_POLICY.merged(io, next);
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
	iosched_sort_fresh(io);
	ret = blk_mq_sched_try_merge(io->q, bio, nr_segs, &free);
	iosched_seal_merged(io);
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

	if (iosched_bypasses(io))
		iosched_see_class(io, iosched_tier_of(bio->bi_ioprio));
	if (!READ_ONCE(io->nr))
		return false;
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
