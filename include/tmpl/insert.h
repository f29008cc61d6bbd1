/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Insertion: where a request is queued. A part of iosched-tmpl.h. Each decision is made
 * only if those before it let the request pass:
 *
 *  1. A bio is merged into a queued request and needs none of its own: iosched_bio_merge().
 *  2. A request that is allocated while nothing is queued may bypass the queue: the block
 *     layer issues it. iosched_prepare_request() calls iosched_try_bypass().
 *  3. Each other request is inserted by iosched_insert(). If it was requeued, or was to
 *     bypass the queue, it becomes an ordinary one: iosched_take_over().
 *  4. Polled, passthrough and requeued requests, which obey no bound, are added to the
 *     head: iosched_enqueue_first().
 *  5. It is merged with a queued request: iosched_append().
 *  6. While others are being placed anew, it waits behind them: tmpl/replace.h.
 *  7. It is added to the fresh ones, in order of arrival, if it is the only request or the
 *     device has room for all and none is sorted: iosched_stays_fresh().
 *  8. Otherwise it is sorted, after all fresh ones: iosched_enqueue() calls iosched_sort().
 *  9. If all were held, they stay so if this one cannot be dispatched either:
 *     iosched_release_or_arm().
 * 10. With several hardware queues, the timer is armed: iosched_watch().
 * 11. A task without a plug runs the queue itself: iosched_runs_at_once(). Otherwise the
 *     block layer does.
 */
#ifndef _IOSCHED_TMPL_INSERT_H
#define _IOSCHED_TMPL_INSERT_H

#include "tmpl/bounds.h"
#include "tmpl/bypass.h"
#include "tmpl/calm.h"
#include "tmpl/deadlines.h"
#include "tmpl/in-flight.h"
#include "tmpl/merge.h"
#include "tmpl/policy.h"
#include "tmpl/queue.h"
#include "tmpl/readers/share.h"
#include "tmpl/readers/turns.h"
#include "tmpl/seal.h"

static void iosched_clear_request(struct request *rq)
{
	rq->elv.priv[0] = NULL;
	rq->elv.priv[1] = NULL;
}

static void iosched_prepare_request(struct request *rq)
{
	struct iosched *io = iosched_of(rq->q);

	iosched_clear_request(rq);
	if (iosched_bypasses(io))
		iosched_try_bypass(io, rq);
}

/*
 * Return true if a request that is queued now is not sorted: it is the only one, or the
 * device has room for all, and none of them is sorted.
 */
static bool iosched_stays_fresh(struct iosched *io)
{
	if (!IOSCHED_POLICY.take_fresh)
		return false;
	if (!io->nr)
		return true;
	if (!iosched_any_fresh(io) || !READ_ONCE(io->bypass) ||
	    READ_ONCE(io->driver.one))
		return false;
	if (io->room > io->nr)
		return true;
	io->room = 0;
	return iosched_find_room(io) && io->room > io->nr;
}

static void iosched_enqueue(struct iosched *io, struct request *rq)
{
	rq->fifo_time = jiffies + iosched_expire(io, rq);
	iosched_turns_arrival(io, rq);
	iosched_calm_arrival(io, rq);
	if (IOSCHED_POLICY.arrives)
		IOSCHED_POLICY.arrives(io, rq);
	/* It must not be placed before them. */
	if (unlikely(io->placing)) {
		list_add_tail(&rq->queuelist, &io->moving);
		return;
	}
	if (iosched_stays_fresh(io)) {
		iosched_add_fresh(io, rq);
	} else {
		iosched_sort_fresh(io);
		iosched_sort(io, rq);
	}
	iosched_count(io, rq, 1);
}

/*
 * Return true if @rq cannot be dispatched before a completion or a deadline.
 * Lets insertion skip a queue run that could not dispatch anything, which is the
 * common case while the device is full.
 */
static bool iosched_must_wait(struct iosched *io, struct request *rq)
{
	if (!iosched_find_room(io))
		return true;
	/* @rq may be the read that writes wait for. */
	if (io->turns.since_us && rq_data_dir(rq) == READ)
		return false;
	/* It is not placed yet, or another deadline may have passed. */
	if (iosched_any_fresh(io) || !iosched_one_tier(io) ||
	    iosched_find_expired(io, iosched_rq_tier(rq), jiffies, IOSCHED_ANY))
		return false;
	return iosched_must_yield(io, rq) || !iosched_is_ready(io, rq, false);
}

/* Queue @rq before all requests in FIFOs. */
static noinline void iosched_enqueue_first(struct iosched *io,
					   struct request *rq, bool at_head)
{
	trace_block_rq_insert(rq);
	/* Once it is dispatched, there was a read just now. */
	iosched_end_calm(io);
	if (at_head)
		list_add(&rq->queuelist, &io->head);
	else
		list_add_tail(&rq->queuelist, &io->head);
	WRITE_ONCE(io->nr, io->nr + 1);
}

/*
 * Account for @rq, which is inserted or was requeued. Return true if it was counted
 * as in flight.
 */
static bool iosched_take_over(struct iosched *io, struct request *rq)
{
	bool bypassed;

	iosched_take_back(io, rq);
	iosched_late_prepare(rq, iosched_clear_request);
	bypassed = iosched_make_ordinary(io, rq);
	RB_CLEAR_NODE(&rq->rb_node);
	if (!iosched_rq_state(rq)) {
		unsigned int tier = iosched_tier_of(req_get_ioprio(rq));

		/* 7.2 sets start_time_ns only if the queue keeps iostats. */
		if (!(rq->rq_flags & RQF_IO_STAT))
			rq->start_time_ns = ktime_get_ns();
		iosched_rq_set_state(rq, IOSCHED_RQ_OURS |
					 tier << IOSCHED_RQ_TIER_SHIFT);
		iosched_rq_stats(io, rq)->inserted++;
	}
	if (iosched_bypasses(io))
		iosched_see_class(io, iosched_rq_tier(rq));
	io->tiers |= BIT(iosched_rq_tier(rq));
	/* Requests that bypass the queue are of this tier. */
	if (unlikely(iosched_any_bypassing(io)))
		io->tiers |= BIT(IOSCHED_BE);
	return bypassed;
}

/* Merge @rq into a queued request if possible. */
static noinline bool iosched_append(struct iosched *io, struct request *rq)
{
	if (iosched_any_fresh(io))
		iosched_hash_fresh(io);
	if (!iosched_prepare_append(io, rq) ||
	    !blk_mq_sched_try_insert_merge(io->q, rq, &io->free))
		return false;
	iosched_seal_merged(io);
	return true;
}

/*
 * All requests were held before @rq. Return true if they may not be now; otherwise arm the
 * timer for its deadline.
 */
static noinline bool iosched_release_or_arm(struct iosched *io, struct request *rq)
{
	/* It is placed later, and then the queue runs. */
	if (unlikely(io->placing))
		return false;
	/* With several tiers in use, @rq may move the deadlines of others. */
	if (!iosched_must_wait(io, rq) || !iosched_one_tier(io))
		return true;
	iosched_arm(io, rq->fifo_time);
	return false;
}

/*
 * Queue @rq, or merge it into another request. Return true if requests are no
 * longer known to be held.
 */
static bool iosched_insert(struct iosched *io, struct request *rq, bool at_head)
{
	bool bypassed;

	lockdep_assert_held(&io->lock);
	/* While the queue was empty, requests may have taken free slots. */
	if (!io->nr && iosched_any_bypassing(io)) {
		io->room = 0;
		io->unissued = true;
		iosched_end_calm(io);
	}
	bypassed = iosched_take_over(io, rq);
	/* 6.1 inserts passthrough requests from a plug; they are not ordered. */
	if (at_head || iosched_rq_polled(rq) || blk_rq_is_passthrough(rq)) {
		iosched_sort_fresh(io);
		iosched_enqueue_first(io, rq, at_head);
		return true;
	}
	if (io->nr && iosched_append(io, rq))
		return true;
	trace_block_rq_insert(rq);
	iosched_enqueue(io, rq);
	return READ_ONCE(io->held) && (bypassed || iosched_release_or_arm(io, rq));
}

/*
 * Return true if the elevator should run the queue after an insertion. If the task has no
 * plug, the block layer leaves that to a worker, at two context switches a request; 6.12
 * gives each bio a plug. A task that inserts without a plug is not about to sleep and
 * holds no lock, as where there is no elevator it issues the request itself, and the driver
 * does not sleep. Requeued requests, at the head, come from a worker, which runs the queue
 * itself.
 */
static bool iosched_runs_at_once(struct iosched *io, bool at_head)
{
	return !current->plug && !in_interrupt() && !irqs_disabled() &&
	       !at_head && !READ_ONCE(io->held) && io->nr &&
	       !(io->q->tag_set->flags & BLK_MQ_F_BLOCKING);
}

/* Release the lock, and free the requests that were merged into others. */
static noinline void iosched_unlock_and_free(struct iosched *io)
	__releases(&io->lock)
{
	LIST_HEAD(free);

	list_splice_init(&io->free, &free);
	spin_unlock(&io->lock);
	iosched_free_requests(&free);
}

static void iosched_insert_requests(struct blk_mq_hw_ctx *hctx,
				    struct list_head *list,
				    iosched_insert_t flags)
{
	struct iosched *io = iosched_of_hctx(hctx);
	bool at_head = iosched_at_head(flags);
	struct request_queue *q = hctx->queue;
	struct request *rq, *next;
	bool unhold = false, run;

	spin_lock(&io->lock);
	/* Of a list that is used up as a whole, no request need be taken out. */
	list_for_each_entry_safe(rq, next, list, queuelist) {
		INIT_LIST_HEAD(&rq->queuelist);
		unhold |= iosched_insert(io, rq, at_head);
	}
	INIT_LIST_HEAD(list);
	if (unhold)
		WRITE_ONCE(io->held, 0);
	iosched_watch(io);
	/*
	 * The block layer runs @hctx, but may not call the elevator for it. Without the
	 * lock the requests may complete, and with the last one the elevator may end.
	 */
	if (unhold && !iosched_hctx_able(hctx))
		iosched_run(io);
	run = iosched_runs_at_once(io, at_head);
	/* The requests may complete, but the elevator must not end meanwhile. */
	if (run)
		percpu_ref_get(&q->q_usage_counter);
	if (unlikely(!list_empty(&io->free)))
		iosched_unlock_and_free(io);
	else
		spin_unlock(&io->lock);

	if (run) {
		blk_mq_run_hw_queue(hctx, false);
		percpu_ref_put(&q->q_usage_counter);
	}
}

#endif /* _IOSCHED_TMPL_INSERT_H */
