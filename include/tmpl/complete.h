/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion and requeue: any context, no lock. A part of iosched-tmpl.h.
 */
#ifndef _IOSCHED_TMPL_COMPLETE_H
#define _IOSCHED_TMPL_COMPLETE_H

#include "tmpl/bypass.h"
#include "tmpl/driver.h"
#include "tmpl/policy.h"
#include "tmpl/readers/phases.h"
#include "tmpl/readers/turns.h"

/*
 * Run the queue once the block layer has freed the tag of @rq, which is about to
 * be freed: the block layer then runs a hardware queue that is marked for
 * restart. Before that, another CPU could dispatch a request that finds no tag.
 */
static noinline void iosched_run_after(struct iosched *io, struct request *rq)
{
	/* A flush keeps its tag until its last step: do not wait for it. */
	if ((rq->end_io && rq->end_io != iosched_end_io) ||
	    !iosched_hctx_able(rq->mq_hctx))
		iosched_run(io);
	else
		blk_mq_sched_mark_restart_hctx(rq->mq_hctx);
}

/* @rq, which was dispatched, is in no bound any longer. */
static void iosched_leave_bounds(struct iosched_done *done, struct request *rq,
				 unsigned long state)
{
	if (state & IOSCHED_RQ_COUNTED)
		IOSCHED_POLICY.released(rq);
	if (unlikely(state & IOSCHED_RQ_POLLED)) {
		atomic_dec(&done->polled);
		/* Pairs with iosched_dispatched(), which must not be too low. */
		smp_mb__after_atomic();
	}
}

/* @rq, which was inserted, has completed. */
static void iosched_leave(struct iosched *io, struct request *rq,
			  unsigned long state)
{
	struct iosched_done *done = iosched_rq_done(io, rq);

	iosched_leave_bounds(done, rq, state);
	if (unlikely(state & IOSCHED_RQ_TIMED))
		iosched_turn_ends(io, rq);
	if (unlikely(READ_ONCE(io->phases.counting)) && rq_data_dir(rq) == READ)
		iosched_phases_read(io, rq);
	if (unlikely(!(state & IOSCHED_RQ_IN_FLIGHT))) {
		atomic_inc(&done->undispatched);
		/* As in iosched_leave_bounds(). */
		smp_mb__after_atomic();
	}
	iosched_rq_set_state(rq, 0);
	atomic_inc(&done->completed);
}

static void iosched_finish_request(struct request *rq)
{
	unsigned long state = iosched_rq_state(rq);
	struct iosched *io = iosched_of(rq->q);

	/* Never inserted, or merged. */
	if (!state)
		return;
	if (unlikely(io->driver.sleeps))
		iosched_driver_completed(io, rq);
	if (state & IOSCHED_RQ_BYPASS)
		iosched_bypass_done(io, rq);
	else
		iosched_leave(io, rq, state);
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

	/* Not called for a request that bypasses the queue on 6.1, or without a plug. */
	if (state & IOSCHED_RQ_BYPASS) {
		iosched_bypass_done(io, rq);
		iosched_wake(io);
	}
	if (!(state & IOSCHED_RQ_IN_FLIGHT))
		return;
	iosched_driver_done(io, rq);
	done = iosched_rq_done(io, rq);
	iosched_leave_bounds(done, rq, state);
	iosched_rq_set_state(rq, state & ~(IOSCHED_RQ_IN_FLIGHT |
					   IOSCHED_RQ_COUNTED |
					   IOSCHED_RQ_TIMED |
					   IOSCHED_RQ_POLLED));
	atomic_inc(&done->requeued);
	iosched_wake(io);
}

#endif /* _IOSCHED_TMPL_COMPLETE_H */
