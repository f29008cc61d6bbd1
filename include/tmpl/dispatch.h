/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Dispatch: which request is next. A part of iosched-tmpl.h. iosched_dispatch_request()
 * descends this ladder and takes the first request that a rung has:
 *
 *  1. a fresh request in a calm jiffy, if the bounds leave room and the policy agrees:
 *     iosched_next_calm(). Most requests end here.
 *  2. none while a driver that sleeps has not started the last one, or would let this
 *     task wait: iosched_driver_starts(), iosched_task_would_wait()
 *  3. with requests in the head, an overdue one, though not twice in a row unless the
 *     driver refuses the head: iosched_overtake(). Then the first one of the head:
 *     iosched_hand_over_head(). The rungs below are for an empty head.
 *  4. the first fresh request, as in 1: iosched_take_fresh(). If it may not be
 *     dispatched, all fresh ones are sorted.
 *  5. none below while the device is full: iosched_find_room(), called by
 *     iosched_pick(), which tries 6 to 8
 *  6. in a calm jiffy, the policy's request of the only tier, a read if writes have
 *     their share: iosched_pick_calm()
 *  7. with several tiers, an aged request of a lower one: iosched_find_aged(). Otherwise
 *     only the highest tier that is in use: iosched_pick_by_tier()
 *  8. of a tier, and of the direction whose turn it is (iosched_turn()), the one that
 *     has expired and is ready(), otherwise what the policy's select() returns:
 *     iosched_pick_in_tier()
 *  9. iosched_hold() sets @held and repeats 5 to 8, a second time if the requests that
 *     were to bypass the queue are overlooked: iosched_overlook()
 * 10. an overdue request, whatever the bounds, if the device has a tag:
 *     iosched_overdue_or_arm(). If there is none, all stay held, the timer is armed,
 *     and at most a wait for the next read that is now over lets 5 to 8 be tried again:
 *     iosched_turns_hold().
 */
#ifndef _IOSCHED_TMPL_DISPATCH_H
#define _IOSCHED_TMPL_DISPATCH_H

#include "tmpl/bounds.h"
#include "tmpl/bypass.h"
#include "tmpl/calm.h"
#include "tmpl/deadlines.h"
#include "tmpl/driver.h"
#include "tmpl/in-flight.h"
#include "tmpl/policy.h"
#include "tmpl/queue.h"
#include "tmpl/readers/phases.h"
#include "tmpl/readers/share.h"
#include "tmpl/readers/turns.h"

/* The direction whose turn it is among the requests of a tier, or IOSCHED_ANY. */
static unsigned int iosched_turn(struct iosched *io, unsigned int tier)
{
	if (!iosched_oldest(io, tier, WRITE))
		return IOSCHED_ANY;
	if (iosched_writes_full(io, tier, iosched_limit(io)))
		return READ;
	/* A request that is alone is the policy's next one, as a fresh one is. */
	return iosched_writes_turn(io) && io->nr > 1 ? WRITE : IOSCHED_ANY;
}

/*
 * The next request of a tier: one that has expired, or the policy's. @only: see
 * select().
 */
static struct request *iosched_pick_in_dir(struct iosched *io, unsigned int tier,
					   unsigned long now, unsigned int only)
{
	struct request *rq = iosched_find_expired(io, tier, now, only);

	if (!rq)
		return IOSCHED_POLICY.select(io, tier, only);
	iosched_note(io, IOSCHED_NAME " expired %llu",
		     (unsigned long long)blk_rq_pos(rq));
	return rq;
}

static struct request *iosched_pick_in_tier(struct iosched *io, unsigned int tier,
					    unsigned long now)
{
	struct request *rq;
	unsigned int only;

	iosched_phases_step(io, tier);
	if (iosched_one_tier(io))
		iosched_look_around(io, tier, now);
	only = iosched_turn(io, tier);
	if (only == READ && !iosched_oldest(io, tier, READ))
		return NULL;
	rq = iosched_pick_in_dir(io, tier, now, only);
	if (!rq && only == WRITE)
		rq = iosched_pick_in_dir(io, tier, now, IOSCHED_ANY);
	return rq;
}

/*
 * A request of a tier below the highest in use that has waited for
 * prio_aging_expire, or NULL.
 */
static struct request *iosched_find_aged(struct iosched *io,
					 unsigned long now)
{
	unsigned int tier;

	for (tier = __ffs(io->tiers) + 1; tier < IOSCHED_TIERS; tier++) {
		struct list_head *fifo = io->fifo[tier];
		struct request *rq = iosched_expired_in(io, &fifo[READ], now, true);

		if (!rq)
			rq = iosched_expired_in(io, &fifo[WRITE], now, true);
		if (rq)
			return rq;
	}
	return NULL;
}

/* Return true if requests are queued that are not in the head. */
static bool iosched_any_queued(struct iosched *io)
{
	unsigned int tier, queued = 0;

	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		queued |= io->queued[tier];
	return queued;
}

/* Return true if requests of a tier are queued or in flight. */
static bool iosched_tier_in_use(struct iosched *io, unsigned int tier)
{
	return io->queued[tier] || iosched_tier_in_flight(io, tier);
}

/* Several tiers are in use: hold a tier while a higher one has requests. */
static struct request *iosched_pick_by_tier(struct iosched *io,
					    unsigned long now)
{
	struct request *rq = iosched_find_aged(io, now);
	unsigned int tier;

	for (tier = 0; !rq && tier < IOSCHED_TIERS; tier++) {
		if (io->queued[tier])
			return iosched_pick_in_tier(io, tier, now);
		if (iosched_tier_in_flight(io, tier))
			break;
	}
	return rq;
}

/* Clear the tiers that are no longer in use: a single tier costs less. */
static void iosched_forget_tiers(struct iosched *io)
{
	unsigned int tier;

	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		if (!iosched_tier_in_use(io, tier))
			io->tiers &= ~BIT(tier);
}

/* The request to dispatch next within all bounds, or NULL. */
static struct request *iosched_pick(struct iosched *io)
{
	unsigned long now = jiffies;

	if (!iosched_find_room(io))
		return NULL;
	if (iosched_is_calm(io, now))
		return iosched_pick_calm(io);
	if (!iosched_one_tier(io))
		iosched_forget_tiers(io);
	if (iosched_one_tier(io)) {
		unsigned int tier = __ffs(io->tiers);

		return io->queued[tier] ? iosched_pick_in_tier(io, tier, now) : NULL;
	}
	return iosched_pick_by_tier(io, now);
}

/*
 * Return the request that has waited for IOSCHED_SLACK after its deadline, of the
 * highest tier and with the earliest deadline. If there is none, bring @next
 * forward to the next time at which a deadline, or the slack after one, has passed.
 */
static struct request *iosched_find_overdue(struct iosched *io,
					    unsigned long *next)
{
	bool lower = false, read_expected = iosched_read_expected(io);
	struct request *rq, *overdue = NULL;
	unsigned long now = jiffies, when;
	unsigned int tier, dir;

	for (tier = 0; io->tiers >> tier && !overdue; tier++) {
		for (dir = READ; dir <= WRITE; dir++) {
			rq = iosched_oldest_able(&io->fifo[tier][dir]);
			if (!rq)
				continue;
			when = iosched_deadline(io, rq, lower);
			if (time_after_eq(now, when))
				when += IOSCHED_SLACK;
			if (time_before(now, when))
				*next = time_before(when, *next) ? when : *next;
			else if (dir == READ || !read_expected)
				overdue = iosched_earlier_deadline(overdue, rq);
		}
		/* Counting what is in flight costs; skip it for the last tier. */
		if (io->tiers >> tier > 1 && iosched_tier_in_use(io, tier))
			lower = true;
	}
	return overdue;
}

/*
 * Return a request that only the lack of a tag may hold, or arm the timer, for
 * IOSCHED_SLACK from now at most: the timer wheel rounds longer times up, and a run
 * may have ended at a request that the driver would not take. While requests that bypass
 * the queue may not be issued, for IOSCHED_ISSUE_TIME at most: see iosched_overlook().
 */
static struct request *iosched_overdue_or_arm(struct iosched *io)
{
	unsigned long next = jiffies + IOSCHED_SLACK;
	bool several = io->q->nr_hw_queues > 1;
	struct request *rq = NULL;
	bool free;

	if (io->unissued && iosched_any_bypassing(io))
		next = jiffies + IOSCHED_ISSUE_TIME;
	/*
	 * Without a free tag, even an overdue request needs a completion. A request
	 * that bypasses the queue may have no tag yet. Of several hardware queues, one
	 * that completes nothing may have requests dispatched for which it has no tags:
	 * then those of another one that is able have theirs.
	 */
	free = iosched_dir_dispatched(io, READ) +
	       iosched_dir_dispatched(io, WRITE) <
	       min(iosched_tags(io), iosched_driver_limit(io));
	if (free || several)
		rq = iosched_find_overdue(io, &next);
	if (rq && !free && !iosched_hctx_able(rq->mq_hctx))
		rq = NULL;
	if (!rq)
		iosched_arm(io, next);
	return rq;
}

/*
 * No request could be dispatched: set @held, then try once more, see
 * iosched_wake(), then without those overlooked, and with overdue requests. Return NULL
 * if all stay held. Not inlined, as all that is not needed for most requests.
 */
static noinline struct request *iosched_hold(struct iosched *io,
					     struct blk_mq_hw_ctx *hctx)
{
	struct request *rq;

	WRITE_ONCE(io->held_hctx, hctx);
	WRITE_ONCE(io->held, 1);
	/* Pairs with iosched_wake(). */
	smp_mb();
	rq = iosched_pick(io);
	if (!rq && iosched_overlook(io))
		rq = iosched_pick(io);
	if (!rq)
		rq = iosched_overdue_or_arm(io);
	if (!rq && io->phases.alone)
		iosched_turns_arm(io, IOSCHED_SLICE_US);
	else if (!rq && iosched_turns_hold(io))
		rq = iosched_pick(io);
	return rq;
}

/*
 * See whether this jiffy is calm, as iosched_next_calm() has not dispatched @rq, which is
 * fresh. Return true if the bounds leave room for it. In a jiffy that is not calm this is
 * done for one request only: several are sorted.
 */
static bool iosched_look_for_room(struct iosched *io, struct request *rq)
{
	unsigned long now = jiffies;

	if (io->nr > 1 || !iosched_one_tier(io) || !iosched_find_room(io) ||
	    iosched_has_expired(rq, now))
		return false;
	/* While the time of reads is measured, the writes that follow step the phases. */
	if (rq_data_dir(rq) == WRITE || !READ_ONCE(io->phases.counting)) {
		iosched_look_around(io, iosched_rq_tier(rq), now);
		io->calm_dirs |= BIT(rq_data_dir(rq));
	}
	return !iosched_must_yield(io, rq);
}

/* Return the first fresh request if it may be dispatched; otherwise sort all. */
static struct request *iosched_take_fresh(struct iosched *io)
{
	struct request *rq = io->fresh;

	if (!iosched_any_fresh(io))
		return NULL;
	if (!iosched_look_for_room(io, rq) || !IOSCHED_POLICY.take_fresh(io, rq)) {
		iosched_sort_all_fresh(io);
		return NULL;
	}
	iosched_del_fresh(io);
	iosched_count(io, rq, -1);
	return rq;
}

/* Account for @rq, which is dispatched, and return it. */
static struct request *iosched_hand_over(struct iosched *io, struct request *rq)
{
	struct iosched_stats *st = iosched_rq_stats(io, rq);
	unsigned long state = IOSCHED_RQ_IN_FLIGHT;

	if (unlikely(iosched_rq_polled(rq))) {
		state |= IOSCHED_RQ_POLLED;
		atomic_inc(&iosched_rq_done(io, rq)->polled);
	} else {
		io->room -= !!io->room;
		if (rq_data_dir(rq) == WRITE)
			io->write_room -= !!io->write_room;
	}
	iosched_driver_dispatch(io, rq);
	state |= iosched_note_dispatch(io, rq);
	WRITE_ONCE(st->dispatched, st->dispatched + 1);
	iosched_rq_set_state(rq, iosched_rq_state(rq) | state);
	rq->rq_flags |= RQF_STARTED;
	return rq;
}

/* The same of @rq, the first one of the head. */
static noinline struct request *
iosched_hand_over_head(struct iosched *io, struct request *rq)
{
	iosched_unlink(io, rq, NULL);
	return iosched_hand_over(io, rq);
}

/* The request of the FIFOs to dispatch next, or NULL: those queued are held. */
static struct request *iosched_pick_or_hold(struct iosched *io,
					    struct blk_mq_hw_ctx *hctx)
{
	struct request *rq = iosched_take_fresh(io);

	if (!rq)
		rq = iosched_pick(io);
	return rq ? rq : iosched_hold(io, hctx);
}

/*
 * Return the overdue request that is dispatched before @head, the first one of the
 * head, or NULL. It may be that @head gets no tag, which ends the run: a process that
 * polls for none of its requests can have many. But of a device that is overloaded
 * requests are overdue all the time, and the head has those of a file system that
 * waits for its journal. So @head is passed once, and then again only if its hardware
 * queue would not take it.
 */
static noinline struct request *iosched_overtake(struct iosched *io,
						 struct request *head)
{
	if (io->overtaken && iosched_hctx_able(head->mq_hctx)) {
		iosched_arm(io, jiffies + IOSCHED_SLACK);
		return NULL;
	}
	return iosched_overdue_or_arm(io);
}

/* What dispatches @rq allows it, such as time that has passed, and may allow others too. */
static void iosched_let_others(struct iosched *io)
{
	if (unlikely(READ_ONCE(io->held)))
		WRITE_ONCE(io->held, 0);
}

/*
 * In a calm jiffy: dispatch the first fresh request, or return NULL. Most requests go this
 * way. All else that iosched_next_request() looks at is calm, or of drivers that sleep.
 */
static struct request *iosched_next_calm(struct iosched *io)
{
	struct request *rq = io->fresh;
	unsigned long now = jiffies;
	struct iosched_stats *st;
	unsigned int dir;

	if (!iosched_any_fresh(io) || !iosched_is_calm(io, now) ||
	    iosched_has_expired(rq, now) || unlikely(io->driver.sleeps) ||
	    !(io->room || iosched_find_room(io)))
		return NULL;
	dir = rq_data_dir(rq);
	if (dir == WRITE && !io->write_room &&
	    !iosched_find_write_room(io, iosched_rq_tier(rq)))
		return NULL;
	if (!IOSCHED_POLICY.take_fresh(io, rq)) {
		iosched_sort_all_fresh(io);
		return NULL;
	}
	iosched_del_fresh(io);
	iosched_count(io, rq, -1);
	/* Fresh reads were not there when the share of writes was counted. */
	if (dir == READ && !(io->calm_dirs & BIT(READ)))
		iosched_end_calm(io);
	if (IOSCHED_POLICY.dispatched)
		IOSCHED_POLICY.dispatched(io, rq);
	iosched_let_others(io);
	io->overtaken = false;
	io->room--;
	if (dir == WRITE)
		io->write_room -= !!io->write_room;
	WRITE_ONCE(io->last[dir], now);
	st = iosched_rq_stats(io, rq);
	WRITE_ONCE(st->dispatched, st->dispatched + 1);
	iosched_rq_set_state(rq, iosched_rq_state(rq) | IOSCHED_RQ_IN_FLIGHT |
			     (IOSCHED_POLICY.released ? IOSCHED_RQ_COUNTED : 0));
	rq->rq_flags |= RQF_STARTED;
	return rq;
}

/* Requests of the head are dispatched before others, but for overdue ones. */
static noinline struct request *
iosched_next_request(struct iosched *io, struct blk_mq_hw_ctx *hctx)
{
	struct request *head = list_first_entry_or_null(&io->head,
							struct request,
							queuelist);
	struct request *rq = NULL;

	lockdep_assert_held(&io->lock);
	if (iosched_driver_starts(io) || iosched_task_would_wait(io, hctx))
		return NULL;
	if (!head)
		rq = iosched_pick_or_hold(io, hctx);
	else if (iosched_any_queued(io))
		rq = iosched_overtake(io, head);
	io->overtaken = head && rq;
	if (!rq)
		return head ? iosched_hand_over_head(io, head) : NULL;
	iosched_let_others(io);
	if (iosched_has_expired(rq, jiffies))
		iosched_rq_stats(io, rq)->expired++;
	if (IOSCHED_POLICY.released)
		iosched_rq_set_state(rq, iosched_rq_state(rq) |
					 IOSCHED_RQ_COUNTED);
	if (IOSCHED_POLICY.dispatched)
		IOSCHED_POLICY.dispatched(io, rq);
	/* A fresh request was taken already. */
	if (!list_empty(&rq->queuelist))
		iosched_unsort(io, rq, NULL);
	return iosched_hand_over(io, rq);
}

static struct request *iosched_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct iosched *io = iosched_of_hctx(hctx);
	struct request *rq;

	spin_lock(&io->lock);
	rq = iosched_next_calm(io);
	if (!rq && io->nr)
		rq = iosched_next_request(io, hctx);
	spin_unlock(&io->lock);
	return rq;
}

static bool iosched_any_work(struct iosched *io)
{
	return READ_ONCE(io->nr) && !READ_ONCE(io->held);
}

/* iosched_has_work() of a driver that sleeps. Not inlined: few do. */
static noinline bool iosched_asks_for_more(struct iosched *io,
					   struct blk_mq_hw_ctx *hctx)
{
	if (READ_ONCE(io->driver.task) == current && in_task())
		iosched_driver_returned(io, hctx);
	return iosched_any_work(io);
}

static bool iosched_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct iosched *io = iosched_of_hctx(hctx);

	if (unlikely(io->driver.sleeps))
		return iosched_asks_for_more(io, hctx);
	return iosched_any_work(io);
}

#endif /* _IOSCHED_TMPL_DISPATCH_H */
