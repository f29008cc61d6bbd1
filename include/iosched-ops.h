/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The elevator's operations over a policy: included last by each scheduler,
 * after it has defined IOSCHED_NAME, IOSCHED_POLICY (its iosched_policy),
 * IOSCHED_POLICY_ATTRS and IOSCHED_POLICY_DEBUGFS (its sysfs and debugfs
 * files beside the core's). Ends in the elevator_type and module_init().
 */
#include <linux/hashtable.h>

#include "iosched.h"
#include "iosched-layout.h"
#include "iosched-tunables.h"
#include "iosched-debugfs.h"

/*
 * Merging
 *
 * The block layer merges through q->last_merge and the elevator hash, which
 * finds the request that ends where another begins. It asks before it adds a
 * bio to a request, but not before it joins two requests. So what the policy
 * keeps apart must not be found there: a request that must not grow at its
 * end, because of a limit or because its neighbour is queued already and may
 * not join it, is taken out of the hash ("sealed").
 */

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

/* @rq is new or has grown: seal it, or the one before it, where need be. */
static void iosched_check_seal(struct iosched *io, struct request *rq)
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
 * @rq is about to join the request that begins at @begin: then the block layer
 * goes on and joins both to a request that ends there, the first of several in
 * the hash, and so on. Seal the one at which that has to stop.
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
 * May @rq, about to be inserted, be appended to a queued request? Not if it
 * is a discard that merges wherever it lies: the block layer does not unlink
 * a queued request that joins another that way. Such merge as bios only.
 */
static bool iosched_may_append(struct iosched *io, struct request *rq)
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
	 * Where requests overlap, only this finds each that ends here. Most
	 * often there is none, and no need to have the block layer look, too.
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

/* elevator_mq_ops: may @bio be added to @rq? */
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

/* elevator_mq_ops: neighbours that a grown request may be joined with. */
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

/* elevator_mq_ops: find a request that @bio can be put in front of. */
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

/* elevator_mq_ops: a bio was added to @rq. */
static void iosched_request_merged(struct request_queue *q, struct request *rq,
				   enum elv_merge type)
{
	struct iosched *io = iosched_of(q);

	if (type == ELEVATOR_FRONT_MERGE) {
		struct rb_root *root = IOSCHED_POLICY.placed(rq);

		elv_rb_del(root, rq);
		elv_rb_add(root, rq);
	}
	if (IOSCHED_POLICY.resized)
		IOSCHED_POLICY.resized(io, rq);
	io->merged = rq;
}

/* A request more, or one less, is queued. */
static void iosched_count(struct iosched *io, struct request *rq, int change)
{
	unsigned int tier = iosched_rq_tier(rq);

	WRITE_ONCE(io->queued[tier], io->queued[tier] + change);
	WRITE_ONCE(io->nr, io->nr + change);
}

/* Take @rq out of everything that it is queued in. */
static void iosched_unlink(struct iosched *io, struct request *rq)
{
	/* Merged before it was queued. */
	if (list_empty(&rq->queuelist))
		return;
	/* Not from the head. */
	if (!RB_EMPTY_NODE(&rq->rb_node)) {
		elv_rb_del(IOSCHED_POLICY.placed(rq), rq);
		iosched_seal(io, rq);
		iosched_count(io, rq, -1);
		if (IOSCHED_POLICY.removed)
			IOSCHED_POLICY.removed(io, rq);
	} else {
		WRITE_ONCE(io->nr, io->nr - 1);
	}
	list_del_init(&rq->queuelist);
}

/* elevator_mq_ops: @next has become part of @rq and will be freed. */
static void iosched_requests_merged(struct request_queue *q,
				    struct request *rq, struct request *next)
{
	struct iosched *io = iosched_of(q);

	/* The joint request keeps the earlier deadline and its place. */
	if (!list_empty(&rq->queuelist) && !list_empty(&next->queuelist) &&
	    time_before((unsigned long)next->fifo_time,
			(unsigned long)rq->fifo_time)) {
		if (IOSCHED_POLICY.inherits)
			IOSCHED_POLICY.inherits(io, rq, next);
		list_move(&rq->queuelist, &next->queuelist);
		rq->fifo_time = next->fifo_time;
	}
	iosched_rq_stats(io, next)->merged++;
	iosched_unlink(io, next);
	iosched_rq_set_state(next, 0);
	if (IOSCHED_POLICY.resized)
		IOSCHED_POLICY.resized(io, rq);
	io->merged = rq;
}

/* Not inlined: mostly there is nothing to look for. */
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
		iosched_check_seal(io, io->merged);
	spin_unlock(&io->lock);

	if (free)
		blk_mq_free_request(free);
	return ret;
}

/* elevator_mq_ops: add @bio to a queued request if that can be. */
static bool iosched_bio_merge(struct request_queue *q, struct bio *bio,
			      unsigned int nr_segs)
{
	struct iosched *io = iosched_of(q);

	/* What is polled must not be held, not as part of a request either. */
	return READ_ONCE(io->queued[iosched_tier_of(bio->bi_ioprio)]) &&
	       !(bio->bi_opf & REQ_POLLED) &&
	       iosched_try_merge(io, bio, nr_segs);
}

/*
 * Insertion
 */

static void iosched_prepare_request(struct request *rq)
{
	rq->elv.priv[0] = NULL;
	rq->elv.priv[1] = NULL;
}

/* Sort @rq in: to where the policy, merging and deadlines look for it. */
static void iosched_sort(struct iosched *io, struct request *rq)
{
	unsigned int tier = iosched_rq_tier(rq), dir = rq_data_dir(rq);

	elv_rb_add(IOSCHED_POLICY.place(io, rq), rq);
	list_add_tail(&rq->queuelist, &io->fifo[tier][dir]);
	if (iosched_rq_mergeable(rq)) {
		elv_rqhash_add(io->q, rq);
		if (!io->q->last_merge)
			io->q->last_merge = rq;
		iosched_check_seal(io, rq);
	}
}

static void iosched_sort_alone(struct iosched *io)
{
	struct request *rq = io->alone;

	if (IOSCHED_POLICY.alone && rq) {
		io->alone = NULL;
		iosched_sort(io, rq);
	}
}

static void iosched_enqueue(struct iosched *io, struct request *rq)
{
	unsigned int expire = rq_data_dir(rq) == READ ? io->read_expire :
							io->write_expire;

	rq->fifo_time = jiffies + msecs_to_jiffies(expire);
	if (IOSCHED_POLICY.arrives)
		IOSCHED_POLICY.arrives(io, rq);
	if (IOSCHED_POLICY.alone && !io->nr)
		io->alone = rq;
	else
		iosched_sort(io, rq);
	iosched_count(io, rq, 1);
}

/*
 * Return true if the dispatch limit is reached: the device's tags, or @depth if
 * that is less.
 */
static bool iosched_device_full(struct iosched *io)
{
	unsigned int most, in_flight;

	/* Completions only add to what was counted last. */
	if (io->room)
		return false;
	most = iosched_tags(io);
	if (io->depth)
		most = min(most, io->depth);
	in_flight = iosched_all_in_flight(io);
	if (in_flight >= most)
		return true;
	io->room = most - in_flight;
	return false;
}

static bool iosched_is_ready(struct iosched *io, struct request *rq)
{
	return !IOSCHED_POLICY.ready || IOSCHED_POLICY.ready(io, rq);
}

/* The oldest request of a list if it was due at @when and may go. */
static struct request *iosched_due(struct iosched *io, struct list_head *fifo,
				   unsigned long when)
{
	struct request *rq = list_first_entry_or_null(fifo, struct request,
						      queuelist);

	if (!rq || time_before(when, (unsigned long)rq->fifo_time) ||
	    !iosched_is_ready(io, rq))
		return NULL;
	return rq;
}

/* Of two requests, either of which may be NULL, that with the earlier deadline. */
static struct request *iosched_earlier(struct request *a, struct request *b)
{
	if (!a || !b)
		return a ? a : b;
	return time_after((unsigned long)a->fifo_time,
			  (unsigned long)b->fifo_time) ? b : a;
}

/* The request of a tier whose deadline passed first, if one has. */
static struct request *iosched_expired(struct iosched *io, unsigned int tier,
				       unsigned long now)
{
	return iosched_earlier(iosched_due(io, &io->fifo[tier][READ], now),
			       iosched_due(io, &io->fifo[tier][WRITE], now));
}

/*
 * Return true if @rq cannot be dispatched before a completion or a deadline.
 * Lets insertion skip a queue run that could not dispatch anything, which is the
 * common case while the device is full.
 */
static bool iosched_must_wait(struct iosched *io, struct request *rq)
{
	if (iosched_device_full(io))
		return true;
	/* Not placed yet; or another request's deadline may have passed. */
	if (rq == io->alone || !is_power_of_2(io->tiers) ||
	    iosched_expired(io, iosched_rq_tier(rq), jiffies))
		return false;
	return !iosched_is_ready(io, rq) ||
	       (IOSCHED_POLICY.waits && IOSCHED_POLICY.waits(io, rq));
}

/* Arm the timer for @when (jiffies) unless it runs out before. */
static void iosched_arm(struct iosched *io, unsigned long when)
{
	if (!timer_pending(&io->timer) || time_before(when, io->timer.expires))
		mod_timer(&io->timer, when);
}

/* Queue @rq before all requests that wait in FIFOs. */
static void iosched_enqueue_first(struct iosched *io, struct request *rq,
				  bool at_head)
{
	trace_block_rq_insert(rq);
	if (at_head)
		list_add(&rq->queuelist, &io->head);
	else
		list_add_tail(&rq->queuelist, &io->head);
	WRITE_ONCE(io->nr, io->nr + 1);
}

/* Account for @rq, which the block layer or a driver hands over. */
static void iosched_take_over(struct iosched *io, struct request *rq)
{
	iosched_late_prepare(rq, iosched_prepare_request);
	RB_CLEAR_NODE(&rq->rb_node);
	if (!iosched_rq_state(rq)) {
		unsigned int tier = iosched_tier_of(req_get_ioprio(rq));

		iosched_rq_set_state(rq, IOSCHED_RQ_OURS |
					 tier << IOSCHED_RQ_TIER_SHIFT);
		iosched_rq_stats(io, rq)->inserted++;
	}
	io->tiers |= BIT(iosched_rq_tier(rq));
}

/*
 * Queue @rq, or merge it into another. Return true if the queue has to be run
 * even if all others are held.
 */
static bool iosched_insert(struct iosched *io, struct request *rq,
			   bool at_head, struct list_head *free)
{
	iosched_take_over(io, rq);
	iosched_sort_alone(io);
	/* 6.1 hands passthrough over from a plug: it is not to be ordered. */
	if (at_head || iosched_rq_polled(rq) || blk_rq_is_passthrough(rq)) {
		iosched_enqueue_first(io, rq, at_head);
		return true;
	}
	if (iosched_may_append(io, rq)) {
		io->merged = NULL;
		if (blk_mq_sched_try_insert_merge(io->q, rq, free)) {
			if (io->merged)
				iosched_check_seal(io, io->merged);
			return true;
		}
	}
	trace_block_rq_insert(rq);
	iosched_enqueue(io, rq);
	if (!READ_ONCE(io->held))
		return false;
	/* With several tiers in use, it may move the deadlines of others. */
	if (!iosched_must_wait(io, rq) || !is_power_of_2(io->tiers))
		return true;
	iosched_arm(io, rq->fifo_time);
	return false;
}

static void iosched_insert_requests(struct blk_mq_hw_ctx *hctx,
				    struct list_head *list,
				    iosched_insert_t flags)
{
	struct iosched *io = iosched_of(hctx->queue);
	bool at_head = iosched_at_head(flags);
	struct request *rq, *next;
	bool look = false;
	LIST_HEAD(free);

	spin_lock(&io->lock);
	list_for_each_entry_safe(rq, next, list, queuelist) {
		list_del_init(&rq->queuelist);
		look |= iosched_insert(io, rq, at_head, &free);
	}
	if (look)
		WRITE_ONCE(io->held, 0);
	spin_unlock(&io->lock);

	iosched_free_requests(&free);
}

static void iosched_replace_all(struct iosched *io,
				void (*change)(struct iosched *, void *),
				void *arg)
{
	unsigned int tier, dir;
	struct request *rq;

	iosched_sort_alone(io);
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (dir = READ; dir <= WRITE; dir++)
			list_for_each_entry(rq, &io->fifo[tier][dir],
					    queuelist) {
				elv_rb_del(IOSCHED_POLICY.placed(rq), rq);
				if (IOSCHED_POLICY.removed)
					IOSCHED_POLICY.removed(io, rq);
			}
	change(io, arg);
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (dir = READ; dir <= WRITE; dir++)
			list_for_each_entry(rq, &io->fifo[tier][dir],
					    queuelist) {
				elv_rb_add(IOSCHED_POLICY.place(io, rq), rq);
				iosched_check_seal(io, rq);
			}
	WRITE_ONCE(io->held, 0);
}

/*
 * Dispatch
 */

static struct request *iosched_pick(struct iosched *io, unsigned int tier,
				    unsigned long now)
{
	struct request *rq = iosched_expired(io, tier, now);

	if (!rq)
		return IOSCHED_POLICY.select(io, tier);
	iosched_note(io, IOSCHED_NAME " expired %llu",
		     (unsigned long long)blk_rq_pos(rq));
	return rq;
}

/*
 * A request of a lower tier that has waited for prio_aging_expire: its
 * deadline is expire after its insertion, hence the sums.
 */
static struct request *iosched_aged(struct iosched *io, unsigned long now)
{
	unsigned int tier;

	now -= msecs_to_jiffies(io->prio_aging_expire);
	for (tier = IOSCHED_BE; tier < IOSCHED_TIERS; tier++) {
		struct request *rq;

		rq = iosched_due(io, &io->fifo[tier][READ],
				 now + msecs_to_jiffies(io->read_expire));
		if (!rq)
			rq = iosched_due(io, &io->fifo[tier][WRITE],
					 now + msecs_to_jiffies(io->write_expire));
		if (rq)
			return rq;
	}
	return NULL;
}

/* Return true if requests of a tier are queued or in flight. */
static bool iosched_tier_in_use(struct iosched *io, unsigned int tier)
{
	return io->queued[tier] || iosched_tier_in_flight(io, tier);
}

/* Several tiers are in use: a tier waits while a higher one has requests. */
static struct request *iosched_pick_by_tier(struct iosched *io,
					    unsigned long now)
{
	struct request *rq = iosched_aged(io, now);
	unsigned int tier;

	for (tier = 0; !rq && tier < IOSCHED_TIERS; tier++) {
		if (io->queued[tier])
			return iosched_pick(io, tier, now);
		if (iosched_tier_in_flight(io, tier))
			break;
	}
	return rq;
}

/* Forget the tiers that are no longer in use: one alone costs less. */
static void iosched_forget_tiers(struct iosched *io)
{
	unsigned int tier;

	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		if (!iosched_tier_in_use(io, tier))
			io->tiers &= ~BIT(tier);
}

/* The request to dispatch next within all bounds. */
static struct request *iosched_pick_bounded(struct iosched *io)
{
	unsigned long now = jiffies;

	if (iosched_device_full(io))
		return NULL;
	if (!is_power_of_2(io->tiers))
		iosched_forget_tiers(io);
	if (is_power_of_2(io->tiers)) {
		unsigned int tier = __ffs(io->tiers);

		return io->queued[tier] ? iosched_pick(io, tier, now) : NULL;
	}
	return iosched_pick_by_tier(io, now);
}

/*
 * The deadline of @rq, in jiffies. @lower: a higher tier is in use, then it is
 * prio_aging_expire after insertion.
 */
static unsigned long iosched_deadline(struct iosched *io, struct request *rq,
				      bool lower)
{
	unsigned int expire = rq_data_dir(rq) == READ ? io->read_expire :
							io->write_expire;

	if (!lower)
		return rq->fifo_time;
	return rq->fifo_time - msecs_to_jiffies(expire) +
	       msecs_to_jiffies(io->prio_aging_expire);
}

/*
 * Return the oldest request of the highest tier that has waited for
 * IOSCHED_SLACK beyond its deadline. If there is none, arm the timer for the
 * next time at which a deadline, or that slack, will have passed.
 */
static struct request *iosched_overdue(struct iosched *io)
{
	struct request *rq, *overdue = NULL;
	unsigned long now = jiffies, when, next = now + MAX_JIFFY_OFFSET;
	unsigned int tier, dir;
	bool lower = false;

	for (tier = 0; io->tiers >> tier && !overdue; tier++) {
		for (dir = READ; dir <= WRITE; dir++) {
			rq = list_first_entry_or_null(&io->fifo[tier][dir],
						      struct request,
						      queuelist);
			if (!rq)
				continue;
			when = iosched_deadline(io, rq, lower);
			if (time_after_eq(now, when))
				when += IOSCHED_SLACK;
			if (time_after_eq(now, when))
				overdue = iosched_earlier(overdue, rq);
			else if (time_before(when, next))
				next = when;
		}
		/* Count what is in flight only if there are lower tiers. */
		if (io->tiers >> tier > 1 && iosched_tier_in_use(io, tier))
			lower = true;
	}
	if (!overdue)
		iosched_arm(io, next);
	return overdue;
}

/*
 * All requests are held, as far as was seen. Say so, then look a last time, for
 * overdue ones too. Return NULL when they stay held.
 */
static struct request *iosched_hold(struct iosched *io,
				    struct blk_mq_hw_ctx *hctx)
{
	struct request *rq;

	WRITE_ONCE(io->looked, hctx);
	WRITE_ONCE(io->held, 1);
	/* Pairs with iosched_wake(). */
	smp_mb();
	rq = iosched_pick_bounded(io);
	/* Without a tag, no deadline matters before a completion. */
	if (!rq && iosched_all_in_flight(io) < iosched_tags(io))
		rq = iosched_overdue(io);
	if (rq)
		WRITE_ONCE(io->held, 0);
	return rq;
}

/* The only request, if it may go without having been sorted in. */
static struct request *iosched_take_alone(struct iosched *io)
{
	struct request *rq = io->alone;

	if (!IOSCHED_POLICY.alone || !rq)
		return NULL;
	if (!is_power_of_2(io->tiers) || iosched_device_full(io) ||
	    time_after_eq(jiffies, (unsigned long)rq->fifo_time) ||
	    !IOSCHED_POLICY.alone(io, rq)) {
		iosched_sort_alone(io);
		return NULL;
	}
	io->alone = NULL;
	iosched_count(io, rq, -1);
	return rq;
}

/* Account for @rq, which goes to the device. */
static struct request *iosched_start(struct iosched *io, struct request *rq)
{
	struct iosched_stats *st = iosched_rq_stats(io, rq);
	unsigned long state = IOSCHED_RQ_IN_FLIGHT;

	iosched_unlink(io, rq);
	if (unlikely(iosched_rq_polled(rq))) {
		state |= IOSCHED_RQ_POLLED;
		atomic_inc(&iosched_rq_done(io, rq)->polled);
	} else if (io->room) {
		io->room--;
	}
	WRITE_ONCE(st->dispatched, st->dispatched + 1);
	iosched_rq_set_state(rq, iosched_rq_state(rq) | state);
	rq->rq_flags |= RQF_STARTED;
	return rq;
}

static struct request *iosched_next_request(struct iosched *io,
					    struct blk_mq_hw_ctx *hctx)
{
	struct request *rq = list_first_entry_or_null(&io->head,
						      struct request,
						      queuelist);

	if (rq)
		return iosched_start(io, rq);
	if (!io->nr)
		return NULL;

	rq = iosched_take_alone(io);
	if (!rq)
		rq = iosched_pick_bounded(io);
	if (!rq)
		rq = iosched_hold(io, hctx);
	if (!rq)
		return NULL;
	if (time_after_eq(jiffies, (unsigned long)rq->fifo_time))
		iosched_rq_stats(io, rq)->expired++;
	if (IOSCHED_POLICY.released)
		iosched_rq_set_state(rq, iosched_rq_state(rq) |
					 IOSCHED_RQ_COUNTED);
	if (IOSCHED_POLICY.dispatched)
		IOSCHED_POLICY.dispatched(io, rq);
	return iosched_start(io, rq);
}

static struct request *iosched_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct iosched *io = iosched_of(hctx->queue);
	struct request *rq;

	spin_lock(&io->lock);
	rq = iosched_next_request(io, hctx);
	spin_unlock(&io->lock);
	return rq;
}

static bool iosched_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct iosched *io = iosched_of(hctx->queue);

	return READ_ONCE(io->nr) && !READ_ONCE(io->held);
}

/*
 * Completion: any context, no lock
 */

/*
 * Run the queue after the block layer has freed the tag of @rq, which is about
 * to end: it then runs the hardware queue that is marked so. Run before, another
 * CPU might dispatch a request that finds no tag.
 */
static void iosched_run_after(struct iosched *io, struct request *rq)
{
	/* A flush keeps its tag until its last step. */
	if (rq->end_io || !iosched_hctx_able(rq->mq_hctx))
		iosched_run(io);
	else
		blk_mq_sched_mark_restart_hctx(rq->mq_hctx);
}

static void iosched_finish_request(struct request *rq)
{
	unsigned long state = iosched_rq_state(rq);
	struct iosched *io = iosched_of(rq->q);
	struct iosched_done *done;

	/* Never inserted, or merged. */
	if (!state)
		return;
	done = iosched_rq_done(io, rq);
	if (state & IOSCHED_RQ_COUNTED)
		IOSCHED_POLICY.released(rq);
	if (unlikely(state & IOSCHED_RQ_POLLED)) {
		atomic_dec(&done->polled);
		/* Pairs with iosched_in_flight(), which must not be too low. */
		smp_mb__after_atomic();
	} else if (unlikely(!(state & IOSCHED_RQ_IN_FLIGHT))) {
		atomic_inc(&done->bypassed);
		/* As above. */
		smp_mb__after_atomic();
	}
	iosched_rq_set_state(rq, 0);
	atomic_inc(&done->completed);
	/* As in iosched_wake(): the room was made by atomic operations. */
	smp_mb__after_atomic();
	if (iosched_unhold(io))
		iosched_run_after(io, rq);
}

static void iosched_requeue_request(struct request *rq)
{
	struct iosched *io = iosched_of(rq->q);
	unsigned long state = iosched_rq_state(rq);
	struct iosched_done *done;

	if (!(state & IOSCHED_RQ_IN_FLIGHT))
		return;
	done = iosched_rq_done(io, rq);
	if (state & IOSCHED_RQ_COUNTED)
		IOSCHED_POLICY.released(rq);
	if (state & IOSCHED_RQ_POLLED) {
		atomic_dec(&done->polled);
		/* Pairs with iosched_in_flight(), which must not be too low. */
		smp_mb__after_atomic();
	}
	iosched_rq_set_state(rq, state & ~(IOSCHED_RQ_IN_FLIGHT |
					   IOSCHED_RQ_COUNTED |
					   IOSCHED_RQ_POLLED));
	atomic_inc(&done->requeued);
	iosched_wake(io);
}

/*
 * Tags
 */

/* Leave tags for synchronous reads: others may take async_depth of them. */
static void iosched_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct iosched *io = iosched_of(data->q);
	unsigned int depth;

	if (op_is_sync(opf) && !op_is_write(opf))
		return;
	depth = iosched_async_depth(data->q, READ_ONCE(io->async_depth));
	if (depth < data->q->nr_requests)
		data->shallow_depth = iosched_shallow_depth(data, depth);
}

static void iosched_expect_async_depth(struct blk_mq_hw_ctx *hctx)
{
	struct iosched *io = iosched_of(hctx->queue);

	iosched_min_shallow_depth(hctx,
				  iosched_async_bounded(io->q, io->async_depth));
}

static void iosched_depth_updated(iosched_depth_t *handle)
{
	struct request_queue *q = iosched_depth_queue(handle);
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		iosched_expect_async_depth(hctx);
}

static int iosched_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int idx)
{
	iosched_expect_async_depth(hctx);
	return 0;
}

/*
 * Coming and going
 */

/*
 * The timer: the earliest deadline has passed. As a request may also wait behind
 * a hardware queue whose driver refuses others, the timer goes on while any are
 * queued.
 */
static void iosched_timeout(struct timer_list *timer)
{
	struct iosched *io = container_of(timer, struct iosched, timer);

	if (!READ_ONCE(io->nr))
		return;
	mod_timer(timer, jiffies + IOSCHED_SLACK);
	iosched_unhold(io);
	iosched_run(io);
}

/*
 * The queue may have another elevator still, and keep it; or be frozen, so
 * memory must not come from writing to it.
 */
static struct iosched *iosched_new(struct request_queue *q)
{
	struct iosched *io = kzalloc_node(IOSCHED_POLICY.size, GFP_NOIO,
					  q->node);
	unsigned int tier;
	int ret;

	if (!io)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&io->lock);
	io->q = q;
	timer_setup(&io->timer, iosched_timeout, 0);
	INIT_LIST_HEAD(&io->head);
	for (tier = 0; tier < IOSCHED_TIERS; tier++) {
		INIT_LIST_HEAD(&io->fifo[tier][READ]);
		INIT_LIST_HEAD(&io->fifo[tier][WRITE]);
	}
	iosched_tunables_init(io);
	ret = IOSCHED_POLICY.init(io);
	if (ret) {
		kfree(io);
		return ERR_PTR(ret);
	}
	return io;
}

/* For kernels that ask for it; which error it was, they do not want to know. */
static inline void *iosched_new_data(struct request_queue *q)
{
	struct iosched *io = iosched_new(q);

	return IS_ERR(io) ? NULL : io;
}

static void iosched_free(void *data)
{
	IOSCHED_POLICY.exit(data);
	kfree(data);
}

static int iosched_init_sched(struct request_queue *q, iosched_init_t *handle)
{
	struct elevator_queue *eq = iosched_eq_get(q, handle);
	struct iosched *io;

	if (!eq)
		return -ENOMEM;
	io = iosched_data_get(q, eq, iosched_new);
	if (IS_ERR(io)) {
		iosched_eq_put(eq);
		return PTR_ERR(io);
	}
	/* We order for the whole device: one hardware queue runs at a time. */
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	iosched_init_async_depth(q, io->async_depth);
	q->elevator = eq;
	if (IOSCHED_POLICY.start)
		IOSCHED_POLICY.start(io);
	return 0;
}

/* Every request that was inserted has to have left by now. */
static void iosched_check_left(struct iosched *io)
{
	unsigned int tier, dir;

	WARN_ON_ONCE(!list_empty(&io->head));
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (dir = READ; dir <= WRITE; dir++) {
			struct iosched_stats *st = &io->stats[tier][dir];
			struct iosched_done *done = &io->done[tier][dir];
			unsigned int completed = atomic_read(&done->completed);

			WARN_ON_ONCE(!list_empty(&io->fifo[tier][dir]));
			WARN_ONCE(st->inserted != st->merged + completed,
				  "%s: tier %u dir %u: inserted %u, merged %u, completed %u\n",
				  IOSCHED_NAME, tier, dir, st->inserted,
				  st->merged, completed);
		}
}

static void iosched_exit_sched(struct elevator_queue *eq)
{
	struct iosched *io = eq->elevator_data;

	iosched_check_left(io);
	timer_delete_sync(&io->timer);
	if (IOSCHED_POLICY.stop)
		IOSCHED_POLICY.stop(io);
	iosched_data_put(io, iosched_free);
}

IOSCHED_ATTRS iosched_attrs[] = {
	IOSCHED_CORE_ATTRS
	IOSCHED_POLICY_ATTRS
	__ATTR_NULL
};

#ifdef CONFIG_BLK_DEBUG_FS
static const struct blk_mq_debugfs_attr iosched_debugfs_attrs[] = {
	IOSCHED_CORE_DEBUGFS,
	IOSCHED_POLICY_DEBUGFS,
	{},
};
#endif

static struct elevator_type iosched_type = {
	.ops = {
		IOSCHED_DATA_OPS(iosched_new_data, iosched_free)
		.init_sched		= iosched_init_sched,
		.exit_sched		= iosched_exit_sched,
		.init_hctx		= iosched_init_hctx,
		.depth_updated		= iosched_depth_updated,
		.limit_depth		= iosched_limit_depth,
		.allow_merge		= iosched_allow_merge,
		.bio_merge		= iosched_bio_merge,
		.request_merge		= iosched_request_merge,
		.request_merged		= iosched_request_merged,
		.requests_merged	= iosched_requests_merged,
		.former_request		= iosched_former_request,
		.next_request		= iosched_latter_request,
		.prepare_request	= iosched_prepare_request,
		.insert_requests	= iosched_insert_requests,
		.dispatch_request	= iosched_dispatch_request,
		.has_work		= iosched_has_work,
		.finish_request		= iosched_finish_request,
		.requeue_request	= iosched_requeue_request,
	},
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs = iosched_debugfs_attrs,
#endif
	.elevator_attrs = iosched_attrs,
	.elevator_name = IOSCHED_NAME,
	.elevator_owner = THIS_MODULE,
};

static int __init iosched_module_init(void)
{
	int ret = iosched_check_layouts();

	if (!ret && IOSCHED_POLICY.load)
		ret = IOSCHED_POLICY.load();
	if (ret)
		return ret;
	ret = elv_register(&iosched_type);
	if (ret && IOSCHED_POLICY.unload)
		IOSCHED_POLICY.unload();
	return ret;
}
module_init(iosched_module_init);

static void __exit iosched_module_exit(void)
{
	elv_unregister(&iosched_type);
	if (IOSCHED_POLICY.unload)
		IOSCHED_POLICY.unload();
}
module_exit(iosched_module_exit);
