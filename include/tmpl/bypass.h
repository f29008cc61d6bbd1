/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bypass: while nothing is queued and the bounds leave room, there is nothing to
 * order. The block layer then issues a request itself, and the core only counts it.
 * A part of iosched-tmpl.h.
 *
 * The block layer issues a plugged request directly unless its flags say that it has
 * a scheduler tag. So prepare_request() clears this flag (IOSCHED_RQF_ORDERED); the
 * request keeps the tag and gets a driver tag when it is issued. If the queue is
 * quiesced or stopped, or the plug has requests that are not bypassed or is flushed by
 * a sleeping task, the block layer inserts the request, and it becomes an ordinary one.
 * So does one that the driver requeues.
 *
 * The flag also keeps a request out of batches of completions, which do not free
 * scheduler tags. A request with an end_io is kept out as well.
 *
 * A driver with queue_rqs() expects requests from a plug to have a driver tag, so its
 * requests are not bypassed.
 *
 * A request is counted when it is allocated, before its sector and priority class are
 * known. So a policy whose bounds depend on the sector does not allow bypassing, and no
 * request is bypassed within IOSCHED_CLASSES_RECENT of one that is not best-effort.
 */
#ifndef _IOSCHED_TMPL_BYPASS_H
#define _IOSCHED_TMPL_BYPASS_H

/* Classes other than best-effort are in use for this long after a request. */
#define IOSCHED_CLASSES_RECENT	HZ

/* A request of this tier is sent. */
static void iosched_see_class(struct iosched *io, unsigned int tier)
{
	if (IOSCHED_POLICY.may_bypass && unlikely(tier != IOSCHED_BE))
		WRITE_ONCE(io->classes_until, jiffies + IOSCHED_CLASSES_RECENT);
}

/* Called in place of the block layer's own end of a request. */
static enum rq_end_io_ret iosched_end_io(IOSCHED_END_IO_ARGS)
{
	return RQ_END_IO_FREE;
}

/*
 * Return true if the block layer can issue @rq directly. It tells rq_qos twice of the
 * end of a request that has an end_io, which iocost would count twice; while iocost is
 * enabled, the queue keeps the time of allocation.
 */
static bool iosched_is_plain(struct request *rq)
{
	return (req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_WRITE) &&
	       !op_is_flush(rq->cmd_flags) && !iosched_rq_polled(rq) &&
	       !rq->q->mq_ops->queue_rqs && !blk_queue_rq_alloc_time(rq->q);
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
	if (!iosched_hctx_able(rq->mq_hctx) ||
	    time_before(jiffies, READ_ONCE(io->classes_until)))
		return false;
	return iosched_tier_in_flight(io, IOSCHED_BE) < iosched_limit(io) &&
	       !iosched_leaves_tags(io, rq) && IOSCHED_POLICY.may_bypass(io);
}

static void iosched_bypass(struct iosched *io, struct request *rq)
{
	unsigned int dir = rq_data_dir(rq);

	rq->rq_flags &= ~IOSCHED_RQF_ORDERED;
	rq->end_io = iosched_end_io;
	/* A plug may use the request for an I/O in the other direction. */
	iosched_rq_set_state(rq, IOSCHED_RQ_BYPASS |
				 (dir == WRITE ? IOSCHED_RQ_BYPASS_WRITE : 0));
	atomic_inc(&io->bypassed[dir]);
	if (dir == READ)
		WRITE_ONCE(io->last_read, jiffies);
}

/* The direction in which @rq was counted. */
static unsigned int iosched_bypass_dir(struct request *rq)
{
	return iosched_rq_state(rq) & IOSCHED_RQ_BYPASS_WRITE ? WRITE : READ;
}

/* @rq, which has bypassed the queue, has completed or is requeued. */
static void iosched_leave_bypass(struct iosched *io, struct request *rq)
{
	atomic_inc(&io->bypass_ended[iosched_bypass_dir(rq)]);
	iosched_rq_set_state(rq, 0);
}

/*
 * @rq is inserted, though it may have been to bypass the queue: make it an ordinary
 * request. Return true if it was counted as in flight: there is room for one more now.
 */
static bool iosched_end_bypass(struct iosched *io, struct request *rq)
{
	if (!IOSCHED_POLICY.may_bypass)
		return false;
	rq->rq_flags |= IOSCHED_RQF_ORDERED;
	if (rq->end_io == iosched_end_io)
		rq->end_io = NULL;
	if (!(iosched_rq_state(rq) & IOSCHED_RQ_BYPASS))
		return false;
	atomic_dec(&io->bypassed[iosched_bypass_dir(rq)]);
	iosched_rq_set_state(rq, 0);
	return true;
}

#endif /* _IOSCHED_TMPL_BYPASS_H */
