/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bypass: while nothing is queued and the bounds leave room, there is nothing to
 * order. The block layer then issues a request itself, and the core only counts it.
 * A part of iosched-tmpl.h.
 *
 * The block layer inserts a request into the elevator if its flags say so, and otherwise
 * issues it. Of the requests of a plug, the flag is that it has one of the elevator's tags
 * (IOSCHED_RQF_SCHED_TAGS); without a plug, that the elevator knows it (RQF_USE_SCHED).
 * So prepare_request() clears these. The request keeps the tag, and gets a driver tag
 * when it is issued. The block layer still inserts it if the queue is quiesced or
 * stopped, if its plug has requests that do not bypass, or is flushed by a task that
 * goes to sleep, and if the driver requeues it. It then becomes an ordinary request.
 *
 * Without RQF_USE_SCHED the block layer calls neither finish_request() nor
 * requeue_request(). So an end_io counts the completion. It is called of each request
 * that was issued; a request that is not is inserted, or the block layer found no key
 * for inline encryption: requests to a driver that encrypts do not bypass.
 *
 * Completions in batches do not free the elevator's tags. The flag would keep the
 * request out of a batch; here the end_io does. But a plug may use a request for
 * passthrough, which is batched even with an end_io. Only drivers that can be polled
 * complete in batches, and of these SCSI does not: the queues of others bypass nothing.
 *
 * A driver with queue_rqs() expects requests from a plug to have a driver tag, so its
 * requests do not bypass either.
 *
 * A request is counted when it is allocated, before its sector and priority class are
 * known. So a policy whose bounds depend on the sector does not allow bypassing, and no
 * request bypasses within IOSCHED_CLASSES_RECENT of one that is not best-effort. The
 * class is seen when the request may merge, so one that cannot does not bypass. A plug
 * may allocate requests in advance by its first I/O, even if the others are in the other
 * direction. So iosched_limit_depth() has none allocated in advance while a request may
 * bypass, and those that are do not bypass.
 *
 * A task may be preempted before it issues its requests, and others must not wait for
 * those while the device is idle. While requests are held and others bypass the queue,
 * the timer is armed for IOSCHED_ISSUE_TIME. When it has expired, those that were
 * allocated for so long but have no driver tag are overlooked: they are in no bound from
 * then on. So the dispatch limit may be exceeded by as many, once the task issues them.
 */
#ifndef _IOSCHED_TMPL_BYPASS_H
#define _IOSCHED_TMPL_BYPASS_H

#include "tmpl/bounds.h"
#include "tmpl/in-flight.h"
#include "tmpl/policy.h"
#include "tmpl/readers/share.h"

/* Classes other than best-effort are in use for this long after a request. */
#define IOSCHED_CLASSES_RECENT	HZ

/*
 * Time in which a request that bypasses the queue ought to be issued, in jiffies. The
 * timer expires up to one later.
 */
#define IOSCHED_ISSUE_TIME	max(msecs_to_jiffies(2), 1UL)

/* A request of this tier is sent. */
static void iosched_see_class(struct iosched *io, unsigned int tier)
{
	/* Not 0, which means none. */
	unsigned long until = (jiffies + IOSCHED_CLASSES_RECENT) | 1;

	if (unlikely(tier != IOSCHED_BE) &&
	    READ_ONCE(io->classes_until) != until)
		WRITE_ONCE(io->classes_until, until);
}

/* Return true if a request that is not best-effort was sent a short time ago. */
static bool iosched_classes_recent(struct iosched *io)
{
	unsigned long until = READ_ONCE(io->classes_until);

	if (likely(!until))
		return false;
	if (time_before(jiffies, until))
		return true;
	/* Jiffies wrap around. */
	WRITE_ONCE(io->classes_until, 0);
	return false;
}

/* Return true if requests of another tier than best-effort are in flight. */
static bool iosched_classes_in_flight(struct iosched *io)
{
	if (likely(!(READ_ONCE(io->tiers) & ~BIT(IOSCHED_BE))))
		return false;
	return iosched_tier_in_flight(io, IOSCHED_RT) ||
	       iosched_tier_in_flight(io, IOSCHED_IDLE);
}

static void iosched_finish_request(struct request *rq);

/* Called in place of the block layer's own end of a request. */
static enum rq_end_io_ret iosched_end_io(IOSCHED_END_IO_ARGS)
{
	iosched_finish_request(rq);
	return RQ_END_IO_FREE;
}

/* See whether requests of this driver can bypass an elevator at all. */
static void iosched_bypass_init(struct iosched *io)
{
	const struct blk_mq_ops *ops = io->q->mq_ops;

	io->bypasses = !ops->queue_rqs && (!ops->poll || ops->get_budget);
}

/*
 * Return true if the block layer can issue @rq directly. It tells rq_qos twice of the
 * end of a request that has an end_io, which iocost would count twice; while iocost is
 * enabled, the queue keeps the time of allocation.
 */
static bool iosched_is_plain(struct request *rq)
{
	return (req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_WRITE) &&
	       !(rq->cmd_flags & (REQ_PREFLUSH | REQ_FUA | REQ_POLLED |
				  REQ_NOMERGE)) &&
	       !blk_queue_nomerges(rq->q) && !blk_queue_rq_alloc_time(rq->q) &&
	       !iosched_encrypts(rq->q) && iosched_plug_bypasses();
}

/*
 * Return true if @rq, which was just allocated, may bypass the queue. Without the lock:
 * CPUs that ask at the same time may exceed the bounds by a request each.
 */
static bool iosched_can_bypass(struct iosched *io, struct request *rq)
{
	unsigned int limit;

	if (READ_ONCE(io->nr) || !READ_ONCE(io->bypass) || !iosched_is_plain(rq))
		return false;
	/* The driver may refuse this request, too: let others be ordered behind it. */
	if (!iosched_hctx_able(rq->mq_hctx) || iosched_classes_recent(io) ||
	    iosched_classes_in_flight(io))
		return false;
	/*
	 * On a device that takes one at a time, the time of each is counted. The driver may be
	 * found to be such meanwhile: its limit goes through requests under the lock.
	 */
	if (READ_ONCE(io->driver.one))
		return false;
	limit = iosched_tags_now(io);
	if (limit == 1 || iosched_tier_in_flight(io, IOSCHED_BE) >= limit)
		return false;
	if (rq_data_dir(rq) == WRITE && iosched_writes_full(io, IOSCHED_BE, limit))
		return false;
	return IOSCHED_POLICY.may_bypass(io);
}

/* Not inlined: most drivers cannot. */
static noinline void iosched_try_bypass(struct iosched *io, struct request *rq)
{
	unsigned int dir = rq_data_dir(rq);
	unsigned long now = jiffies;

	if (!iosched_can_bypass(io, rq))
		return;
	rq->rq_flags &= ~iosched_inserting_flags();
	rq->end_io = iosched_end_io;
	WRITE_ONCE(rq->fifo_time, now);
	atomic_inc(&io->bypassed[dir]);
	/*
	 * A plug may use the request for an I/O in the other direction. Pairs with
	 * iosched_overlook_one().
	 */
	smp_store_release(&rq->elv.priv[1],
			  (void *)(IOSCHED_RQ_BYPASS |
				   (dir == WRITE ? IOSCHED_RQ_BYPASS_WRITE : 0)));
	WRITE_ONCE(io->last[dir], now);
}

/* The direction in which a request of this state was counted. */
static unsigned int iosched_bypass_dir(unsigned long state)
{
	return state & IOSCHED_RQ_BYPASS_WRITE ? WRITE : READ;
}

/* @rq, which has bypassed the queue, has completed, is requeued, or was not used. */
static void iosched_bypass_done(struct iosched *io, struct request *rq)
{
	/* Against iosched_overlook_one(). */
	unsigned long state = (unsigned long)xchg(&rq->elv.priv[1], NULL);

	if (likely(!(state & IOSCHED_RQ_OVERLOOKED)))
		atomic_inc(&io->bypass_done[iosched_bypass_dir(state)]);
}

/*
 * @rq is inserted, though it may have been to bypass the queue: let the block layer treat
 * it as one that is the elevator's.
 */
static void iosched_take_back(struct iosched *io, struct request *rq)
{
	if (!iosched_bypasses(io))
		return;
	rq->rq_flags |= IOSCHED_RQF_SCHED_TAGS;
	if (rq->end_io == iosched_end_io) {
		rq->end_io = NULL;
		rq->rq_flags |= IOSCHED_RQF_PREPARED;
	}
}

/*
 * Make @rq, which may have been to bypass the queue, an ordinary request. Return true if
 * it was counted as in flight: there is room for one more now. Under the lock.
 */
static bool iosched_make_ordinary(struct iosched *io, struct request *rq)
{
	unsigned long state = iosched_rq_state(rq);
	unsigned int dir = iosched_bypass_dir(state);

	if (!iosched_bypasses(io) || !(state & IOSCHED_RQ_BYPASS))
		return false;
	iosched_rq_set_state(rq, 0);
	/*
	 * One that is overlooked stays in both counters: without the lock they cannot be
	 * changed together, and their difference must not be too low.
	 */
	if (state & IOSCHED_RQ_OVERLOOKED)
		return false;
	atomic_dec(&io->bypassed[dir]);
	return true;
}

/* Overlook @rq if it bypasses the queue and ought to have been issued long ago. */
static bool iosched_overlook_one(struct iosched *io, struct request *rq)
{
	/* Pairs with iosched_try_bypass(). */
	void *priv = smp_load_acquire(&rq->elv.priv[1]);
	unsigned long state = (unsigned long)priv;

	/* Of a request that the elevator does not know this may be a pointer. */
	if ((state & ~IOSCHED_RQ_BYPASS_WRITE) != IOSCHED_RQ_BYPASS ||
	    READ_ONCE(rq->tag) != IOSCHED_NO_TAG)
		return false;
	if (!time_after(jiffies, (unsigned long)READ_ONCE(rq->fifo_time) +
				 IOSCHED_ISSUE_TIME)) {
		io->unissued = true;
		return false;
	}
	/* It may complete, or be requeued, at the same time. */
	if (cmpxchg(&rq->elv.priv[1], priv,
		    (void *)(state | IOSCHED_RQ_OVERLOOKED)) != priv)
		return false;
	atomic_inc(&io->bypass_done[iosched_bypass_dir(state)]);
	return true;
}

struct iosched_search {
	struct iosched *io;
	struct blk_mq_tags *tags;
	unsigned int found;
};

static bool iosched_search_tag(struct sbitmap *bitmap, unsigned int bit,
			       void *data)
{
	struct iosched_search *search = data;
	unsigned int tag = bit + search->tags->nr_reserved_tags;

	search->found += iosched_overlook_one(search->io,
					      search->tags->static_rqs[tag]);
	return true;
}

/*
 * Requests are held: if the timer has expired, overlook those that bypass the queue but
 * were not issued in time. Return true if there were any. Under the lock; the requests
 * that are queued keep the tags from being freed.
 */
static bool iosched_overlook(struct iosched *io)
{
	struct iosched_search search = { .io = io };
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	lockdep_assert_held(&io->lock);
	if (!IOSCHED_POLICY.may_bypass || !READ_ONCE(io->timed_out))
		return false;
	WRITE_ONCE(io->timed_out, false);
	io->unissued = false;
	if (!iosched_any_bypassing(io))
		return false;
	queue_for_each_hw_ctx(io->q, hctx, i) {
		search.tags = hctx->sched_tags;
		sbitmap_for_each_set(&search.tags->bitmap_tags.sb,
				     iosched_search_tag, &search);
		if (iosched_tags_shared(io))
			break;
	}
	return search.found;
}

#endif /* _IOSCHED_TMPL_BYPASS_H */
