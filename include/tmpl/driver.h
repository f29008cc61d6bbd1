/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a driver gives its device at a time. A part of iosched-tmpl.h.
 *
 * The block layer takes requests from the elevator until there are none or no tags, and
 * only then gives the driver the first one. A driver may announce more tags than its
 * device takes, and let queue_rq() wait: mmc has 64 for a card without a command queue,
 * which takes one request. All others would wait where they can be neither merged nor
 * reordered.
 *
 * So if queue_rq() may sleep (BLK_MQ_F_BLOCKING) and there is one hardware queue, a request
 * is dispatched only after the driver has started the one before. Then a driver that waits
 * has one that is served and one that waits.
 *
 * If queue_rq() keeps the next one until the one before has completed, again and again, the
 * device takes one at a time. While one task waits there, the driver refuses the requests of
 * others: one that it has not started when another completes shows the same. The dispatch
 * limit is 2 then: the driver prepares the next request meanwhile. It is 1 while there are
 * both reads and writes, which then take turns (readers/turns.h); but every ten seconds it is
 * 2 once, to see whether the driver still waits.
 *
 * A driver may also serve each request itself in queue_rq(), until its end: then one that is
 * alone completes before its task asks for more.
 *
 * Most kernels run the queue in the task that inserts a request, which would wait in
 * queue_rq() for requests of others, for a second and more. So only the queue's own worker
 * dispatches the second request.
 *
 * (In no paper.)
 */
#ifndef _IOSCHED_TMPL_DRIVER_H
#define _IOSCHED_TMPL_DRIVER_H

#include "iosched.h"
#include "tmpl/in-flight.h"

/* Least time for which queue_rq() keeps a request that must wait, in us. */
#define IOSCHED_DRIVER_US	200U

/* So many times more often than not, and half as often for a device that is known. */
#define IOSCHED_DRIVER_SEEN	16U

/* Most requests in flight then: one is served, one waits, and one is refused. */
#define IOSCHED_DRIVER_HAS	3U

/* After a refusal so many requests that are taken at once show nothing. */
#define IOSCHED_DRIVER_REFUSES	4U

/* Between tries beside reads and writes, in jiffies: each costs a request's time. */
#define IOSCHED_DRIVER_TRY	(10 * HZ)

/* Longest time until a driver ought to start a request, in us. */
#define IOSCHED_DRIVER_STARTS	(10 * USEC_PER_MSEC)

/* A driver that is told of several requests at once, or of budgets, takes several. */
static void iosched_driver_init(struct iosched *io)
{
	const struct blk_mq_ops *ops = io->q->mq_ops;

	io->driver.sleeps = io->q->tag_set->flags & BLK_MQ_F_BLOCKING &&
			    io->q->nr_hw_queues == 1 && !ops->commit_rqs &&
			    !ops->get_budget;
	io->driver.tried = jiffies;
}

/* Return true if there are readers, or writers. Under the lock. */
static bool iosched_present(struct iosched *io, unsigned int dir)
{
	struct request *rq;
	unsigned int tier;

	lockdep_assert_held(&io->lock);
	for (rq = io->fresh; rq; rq = rq->rq_next)
		if (rq_data_dir(rq) == dir)
			return true;
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		if (!list_empty(&io->fifo[tier][dir]))
			return true;
	return time_before(jiffies, READ_ONCE(io->last[dir]) +
				    IOSCHED_READERS_GONE);
}

/*
 * Most requests in flight if the device is known to take one at a time and @depth is not
 * set, otherwise UINT_MAX. Then under the lock.
 */
static unsigned int iosched_driver_limit(struct iosched *io)
{
	if (likely(!READ_ONCE(io->driver.one)) || READ_ONCE(io->depth))
		return UINT_MAX;
	if (!iosched_present(io, READ) || !iosched_present(io, WRITE))
		return 2;
	return time_after(jiffies, io->driver.tried + IOSCHED_DRIVER_TRY) &&
	       iosched_all_in_flight(io) ? 2 : 1;
}

/*
 * Return true if the driver has not started the last request that was dispatched. The
 * block layer asks again once it has: the request is in the list of the run that asks, or in
 * hctx->dispatch. If it has completed meanwhile, its memory is still a request.
 */
static bool iosched_driver_has_not(struct iosched *io)
{
	struct request *rq = READ_ONCE(io->last_rq);

	return rq && !blk_mq_request_started(rq);
}

/* Return true if it may still start that request before it gets another. Under the lock. */
static bool iosched_driver_starts(struct iosched *io)
{
	return iosched_driver_has_not(io) &&
	       iosched_now_us() - io->driver.since_us < IOSCHED_DRIVER_STARTS;
}

/*
 * Return true if the driver would let the current task wait with the next request: then
 * the queue's worker dispatches it. Under the lock.
 */
static bool iosched_task_would_wait(struct iosched *io,
				    struct blk_mq_hw_ctx *hctx)
{
	unsigned int limit, in_flight;

	if (likely(!READ_ONCE(io->driver.one)))
		return false;
	limit = iosched_driver_limit(io);
	if (limit == UINT_MAX || current_work() == &hctx->run_work.work)
		return false;
	in_flight = iosched_all_in_flight(io);
	if (!in_flight || in_flight >= limit)
		return false;
	blk_mq_run_hw_queue(hctx, true);
	return true;
}

/* Return true if @rq is a read or a write, no discard or such. */
static bool iosched_moves_data(struct request *rq)
{
	return req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_WRITE;
}

/* @rq is dispatched and not yet counted. Under the lock. */
static void iosched_driver_dispatch(struct iosched *io, struct request *rq)
{
	struct iosched_driver *driver = &io->driver;
	struct task_struct *task;
	unsigned int beside;
	u32 now;

	if (likely(!driver->sleeps))
		return;
	task = READ_ONCE(driver->task);
	now = iosched_now_us();
	WRITE_ONCE(driver->since_us, now);
	/* Pairs with iosched_driver_refused(). */
	smp_store_release(&io->last_rq, rq);
	beside = iosched_all_in_flight(io);
	if (beside && iosched_moves_data(rq))
		driver->tried = jiffies;
	/* Another task is in queue_rq(), and was the first. */
	if (task && task != current)
		return;
	/* Others, such as discards, a driver may do in queue_rq(). */
	if (!iosched_moves_data(rq)) {
		WRITE_ONCE(driver->task, NULL);
		return;
	}
	WRITE_ONCE(driver->sampled, rq);
	WRITE_ONCE(driver->sampled_us, now);
	WRITE_ONCE(driver->beside, beside);
	WRITE_ONCE(driver->done, iosched_all_done(io));
	WRITE_ONCE(driver->task, current);
}

static void iosched_driver_learn(struct iosched_driver *driver,
				 unsigned int seen)
{
	seen = min(seen, IOSCHED_DRIVER_SEEN);
	WRITE_ONCE(driver->seen, seen);
	WRITE_ONCE(driver->one, seen >= (READ_ONCE(driver->one) ?
					 IOSCHED_DRIVER_SEEN / 2 :
					 IOSCHED_DRIVER_SEEN));
}

/*
 * A request that was alone has completed before its task asked for more (@in_time), or has not.
 * A task may also leave without asking, so that does not keep alive what is known.
 */
static void iosched_driver_served(struct iosched_driver *driver, bool in_time)
{
	unsigned int served = READ_ONCE(driver->served);

	if (READ_ONCE(driver->one))
		served = 0;
	else if (in_time)
		served++;
	else if (served)
		served--;
	WRITE_ONCE(driver->served, served);
	if (served >= IOSCHED_DRIVER_SEEN)
		iosched_driver_learn(driver, IOSCHED_DRIVER_SEEN);
}

/*
 * The task whose request is the sample asks for more. Unless the driver has refused that
 * request, learn from the time for which queue_rq() kept it. Without the lock: a sample may
 * be wrong.
 */
static void iosched_driver_returned(struct iosched *io,
				    struct blk_mq_hw_ctx *hctx)
{
	struct iosched_driver *driver = &io->driver;
	unsigned int beside = READ_ONCE(driver->beside), done;
	unsigned int seen = READ_ONCE(driver->seen);
	bool kept;

	/* It is refused, or the run still collects requests. */
	if (READ_ONCE(io->last_rq) == READ_ONCE(driver->sampled) &&
	    iosched_driver_has_not(io)) {
		if (!list_empty_careful(&hctx->dispatch))
			WRITE_ONCE(driver->task, NULL);
		return;
	}
	WRITE_ONCE(driver->task, NULL);
	kept = iosched_now_us() - READ_ONCE(driver->sampled_us) >=
	       IOSCHED_DRIVER_US;
	done = iosched_all_done(io) - READ_ONCE(driver->done);
	if (!beside) {
		/* It has not served the request to its end. */
		iosched_driver_served(driver, false);
		return;
	}
	if (list_empty_careful(&hctx->dispatch) &&
	    max(beside, iosched_all_in_flight(io)) > IOSCHED_DRIVER_HAS)
		iosched_driver_learn(driver, 0);
	else if (kept && done >= beside)
		iosched_driver_learn(driver, seen + 1);
	/* It takes time itself, such as to send the request. */
	else if (kept && !done)
		iosched_driver_learn(driver, seen - !!seen);
	/* If one was refused, another task may just have issued it. */
	else if (!done && !READ_ONCE(driver->one) && READ_ONCE(driver->refused))
		WRITE_ONCE(driver->refused, driver->refused - 1);
	else if (!done)
		iosched_driver_learn(driver, seen / 2);
}

/*
 * @rq has completed. If the driver has not started the last request meanwhile, it has
 * refused that, which waits in hctx->dispatch. It may refuse all beside a discard. Any
 * context, without the lock: see above.
 */
static void iosched_driver_refused(struct iosched *io, struct request *rq)
{
	/* Pairs with iosched_driver_dispatch(). */
	struct request *last = smp_load_acquire(&io->last_rq);
	struct iosched_driver *driver = &io->driver;
	u32 since = READ_ONCE(driver->since_us);

	if (!last || last == rq || blk_mq_request_started(last) ||
	    !iosched_moves_data(rq) ||
	    (s32)(iosched_now_us() - since) < (s32)IOSCHED_DRIVER_US ||
	    list_empty_careful(&rq->mq_hctx->dispatch) ||
	    iosched_all_in_flight(io) > IOSCHED_DRIVER_HAS)
		return;
	WRITE_ONCE(driver->refused, IOSCHED_DRIVER_REFUSES);
	iosched_driver_learn(driver, READ_ONCE(driver->seen) + 1);
}

/* @rq has completed, or is requeued. Any context. */
static void iosched_driver_done(struct iosched *io, struct request *rq)
{
	struct iosched_driver *driver = &io->driver;

	if (likely(!driver->sleeps))
		return;
	/* The task has not asked for more: when it does, it is of another request. */
	if (READ_ONCE(driver->sampled) == rq)
		WRITE_ONCE(driver->task, NULL);
	if (READ_ONCE(io->last_rq) == rq)
		cmpxchg(&io->last_rq, rq, NULL);
}

/* @rq has completed, of a driver that sleeps. Any context. */
static noinline void iosched_driver_completed(struct iosched *io,
					      struct request *rq)
{
	struct iosched_driver *driver = &io->driver;

	iosched_driver_refused(io, rq);
	if (READ_ONCE(driver->task) && READ_ONCE(driver->sampled) == rq &&
	    !READ_ONCE(driver->beside) &&
	    iosched_now_us() - READ_ONCE(driver->sampled_us) >= IOSCHED_DRIVER_US)
		iosched_driver_served(driver, true);
	iosched_driver_done(io, rq);
}

#endif /* _IOSCHED_TMPL_DRIVER_H */
