/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Deadlines, and the timer that runs the queue when one has passed. A part of
 * iosched-tmpl.h.
 */
#ifndef _IOSCHED_TMPL_DEADLINES_H
#define _IOSCHED_TMPL_DEADLINES_H

#include "iosched.h"
#include "tmpl/bounds.h"

/* Most requests that are passed over for one of another hardware queue: each takes time. */
#define IOSCHED_PASSED	1024

/*
 * The oldest request of a FIFO, or NULL. A request that the driver would not take
 * now ends the run of the queue, so requests of a hardware queue that has refused
 * ones come last, if others are among the first IOSCHED_PASSED.
 */
static struct request *iosched_oldest_able(struct list_head *fifo)
{
	unsigned int left = IOSCHED_PASSED;
	struct request *rq;

	list_for_each_entry(rq, fifo, queuelist) {
		if (likely(iosched_hctx_able(rq->mq_hctx)))
			return rq;
		/* All are of the only hardware queue. */
		if (rq->q->nr_hw_queues == 1 || !--left)
			break;
	}
	return list_first_entry_or_null(fifo, struct request, queuelist);
}

/*
 * The deadline of @rq, in jiffies. If @lower, because a higher tier is in use, it is
 * prio_aging_expire after the insertion.
 */
static unsigned long iosched_deadline(struct iosched *io, struct request *rq,
				      bool lower)
{
	if (!lower)
		return rq->fifo_time;
	return rq->fifo_time - iosched_expire(io, rq) +
	       msecs_to_jiffies(io->prio_aging_expire);
}

/*
 * The oldest request of a FIFO if its deadline has passed and it may be dispatched,
 * or NULL. @lower: see iosched_deadline().
 */
static struct request *iosched_expired_in(struct iosched *io,
					  struct list_head *fifo,
					  unsigned long now, bool lower)
{
	struct request *rq = list_first_entry_or_null(fifo, struct request,
						      queuelist);

	if (!rq || time_before(now, iosched_deadline(io, rq, lower)))
		return NULL;
	rq = iosched_oldest_able(fifo);
	if (time_before(now, iosched_deadline(io, rq, lower)) ||
	    !iosched_is_ready(io, rq, true))
		return NULL;
	return rq;
}

/* Of two requests, either of which may be NULL, the one with the earlier deadline. */
static struct request *iosched_earlier_deadline(struct request *a,
						struct request *b)
{
	if (!a || !b)
		return a ? a : b;
	return time_after((unsigned long)a->fifo_time,
			  (unsigned long)b->fifo_time) ? b : a;
}

/*
 * The request of a tier whose deadline passed first and that may be dispatched, or NULL.
 * If the device is slower than the deadlines allow, all requests have expired: each
 * direction then still has its part of it (@only, see select()).
 */
static struct request *iosched_find_expired(struct iosched *io,
					    unsigned int tier,
					    unsigned long now,
					    unsigned int only)
{
	struct list_head *fifo = io->fifo[tier];

	if (only != IOSCHED_ANY)
		return iosched_expired_in(io, &fifo[only], now, false);
	return iosched_earlier_deadline(iosched_expired_in(io, &fifo[READ], now, false),
					iosched_expired_in(io, &fifo[WRITE], now, false));
}

/* Arm the timer for @when (jiffies) unless it expires earlier. */
static void iosched_arm(struct iosched *io, unsigned long when)
{
	if (!timer_pending(&io->timer) || time_before(when, io->timer.expires))
		mod_timer(&io->timer, when);
}

/*
 * Requests were queued: arm the timer, for IOSCHED_SLACK from now at most. A run of the
 * queue ends at a request whose hardware queue has no tag. The completions of others run
 * the queue only if requests are held, so they may never run it for those that are still
 * queued.
 */
static void iosched_watch(struct iosched *io)
{
	if (io->q->nr_hw_queues < 2 || !io->nr)
		return;
	/* Pairs with iosched_timeout(). */
	smp_mb();
	iosched_arm(io, jiffies + IOSCHED_SLACK);
}

/*
 * Run the queue, by which time a deadline may have passed. A request may also wait
 * because its driver refuses those of a hardware queue, so re-arm the timer while
 * requests are queued.
 */
static void iosched_timeout(struct timer_list *timer)
{
	struct iosched *io = container_of(timer, struct iosched, timer);

	/*
	 * Pairs with iosched_hold() and iosched_watch(): either they arm the timer or
	 * @nr is not 0.
	 */
	smp_mb();
	if (!READ_ONCE(io->nr))
		return;
	mod_timer(timer, jiffies + IOSCHED_SLACK);
	WRITE_ONCE(io->timed_out, true);
	iosched_unhold(io);
	iosched_run(io);
}

#endif /* _IOSCHED_TMPL_DEADLINES_H */
