/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bypass: while nothing is queued and the bounds leave room, there is nothing to
 * order. The block layer then issues a request itself, and the core only counts it.
 * A part of iosched-tmpl.h.
 *
 * The block layer inserts a request into the elevator if its flags say that it has one
 * of the elevator's tags (IOSCHED_RQF_SCHED_TAGS), and otherwise issues it. So
 * prepare_request() clears this flag. The request keeps the tag, and gets a driver tag
 * when it is issued. The block layer still inserts it if the queue is quiesced or
 * stopped, if its plug has requests that do not bypass, or is flushed by a task that
 * goes to sleep, and if the driver requeues it. It then becomes an ordinary request.
 *
 * Completions in batches do not free the elevator's tags. The flag would keep the
 * request out of a batch; here an end_io does. But a plug may use a request for
 * passthrough, which is batched even with an end_io. Only drivers that can be polled
 * complete in batches, and of these SCSI does not: the queues of others bypass nothing.
 *
 * A driver with queue_rqs() expects requests from a plug to have a driver tag, so its
 * requests do not bypass either.
 *
 * A request is counted when it is allocated, before its sector and priority class are
 * known. So a policy whose bounds depend on the sector does not allow bypassing, and no
 * request bypasses within IOSCHED_CLASSES_RECENT of one that is not best-effort. The
 * class is seen when the request may merge, so one that cannot does not bypass.
 *
 * A plug allocates requests in advance by its first I/O, up to 32. They count from then
 * on, as requests of that direction. If the task is preempted before it issues them, they
 * may fill the dispatch limit of a drive with as few tags: others' requests then wait for
 * the task, as for the driver tags that it would have without an elevator, but not longer
 * than to their deadline.
 */
#ifndef _IOSCHED_TMPL_BYPASS_H
#define _IOSCHED_TMPL_BYPASS_H

/* Classes other than best-effort are in use for this long after a request. */
#define IOSCHED_CLASSES_RECENT	HZ

/* A request of this tier is sent. */
static void iosched_see_class(struct iosched *io, unsigned int tier)
{
	/* Not 0, which means none. */
	unsigned long until = (jiffies + IOSCHED_CLASSES_RECENT) | 1;

	if (IOSCHED_POLICY.may_bypass && unlikely(tier != IOSCHED_BE) &&
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

/* Called in place of the block layer's own end of a request. */
static enum rq_end_io_ret iosched_end_io(IOSCHED_END_IO_ARGS)
{
	return RQ_END_IO_FREE;
}

/* Return true if the driver's requests can bypass an elevator at all. */
static bool iosched_driver_bypasses(struct request_queue *q)
{
	const struct blk_mq_ops *ops = q->mq_ops;

	return !ops->queue_rqs && (!ops->poll || ops->get_budget);
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
	       iosched_driver_bypasses(rq->q) && iosched_plug_in_order();
}

/*
 * Return true if @rq, which was just allocated, may bypass the queue. Without the lock:
 * CPUs that ask at the same time may exceed the bounds by a request each.
 */
static bool iosched_can_bypass(struct iosched *io, struct request *rq)
{
	if (!IOSCHED_POLICY.may_bypass || READ_ONCE(io->nr) ||
	    !READ_ONCE(io->bypass) || !iosched_is_plain(rq))
		return false;
	/* The driver may refuse this request, too: let others be ordered behind it. */
	if (!iosched_hctx_able(rq->mq_hctx) || iosched_classes_recent(io))
		return false;
	if (iosched_tier_in_flight(io, IOSCHED_BE) >= iosched_limit(io))
		return false;
	if (rq_data_dir(rq) == WRITE && iosched_writes_full(io, IOSCHED_BE))
		return false;
	return IOSCHED_POLICY.may_bypass(io);
}

static void iosched_bypass(struct iosched *io, struct request *rq)
{
	unsigned int dir = rq_data_dir(rq);

	rq->rq_flags &= ~IOSCHED_RQF_SCHED_TAGS;
	rq->end_io = iosched_end_io;
	/* A plug may use the request for an I/O in the other direction. */
	iosched_rq_set_state(rq, IOSCHED_RQ_BYPASS |
				 (dir == WRITE ? IOSCHED_RQ_BYPASS_WRITE : 0));
	atomic_inc(&io->bypassed[dir]);
	WRITE_ONCE(io->last[dir], jiffies);
}

/* The direction in which @rq was counted. */
static unsigned int iosched_bypass_dir(struct request *rq)
{
	return iosched_rq_state(rq) & IOSCHED_RQ_BYPASS_WRITE ? WRITE : READ;
}

/* @rq, which has bypassed the queue, has completed, is requeued, or was not used. */
static void iosched_bypass_done(struct iosched *io, struct request *rq)
{
	atomic_inc(&io->bypass_done[iosched_bypass_dir(rq)]);
	iosched_rq_set_state(rq, 0);
}

/*
 * @rq is inserted, though it may have been to bypass the queue: make it an ordinary
 * request. Return true if it was counted as in flight: there is room for one more now.
 */
static bool iosched_make_ordinary(struct iosched *io, struct request *rq)
{
	if (!IOSCHED_POLICY.may_bypass)
		return false;
	rq->rq_flags |= IOSCHED_RQF_SCHED_TAGS;
	if (rq->end_io == iosched_end_io)
		rq->end_io = NULL;
	if (!(iosched_rq_state(rq) & IOSCHED_RQ_BYPASS))
		return false;
	atomic_dec(&io->bypassed[iosched_bypass_dir(rq)]);
	iosched_rq_set_state(rq, 0);
	return true;
}

#endif /* _IOSCHED_TMPL_BYPASS_H */
