/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Waiting for the next request of a process, for both bases. A part of
 * bp-iosched.c.
 *
 * The base decides when to wait, bp/think-time.h whether that is worth it. To
 * wait, select() returns NULL. The core then holds all requests and calls
 * select() again when a request is inserted, or when a completion or the timer
 * calls iosched_wake().
 *
 * A wait lasts at most antic_us from the completion of the last request. It
 * ends early with the next request of the process, with any dispatch, and at
 * the deadline of a queued request.
 */
#ifndef _BP_WAITING_H
#define _BP_WAITING_H

#include "bp/data.h"

static u32 bp_now(void)
{
	return div_u64(ktime_get_ns(), NSEC_PER_USEC);
}

static enum hrtimer_restart bp_timer(struct hrtimer *timer)
{
	struct bp_data *bd = container_of(timer, struct bp_data, timer);

	WRITE_ONCE(bd->timed_out, true);
	iosched_wake(&bd->io);
	return HRTIMER_NORESTART;
}

/* Time until the first deadline of a tier, in us; at most a second. */
static u32 bp_until_deadline(struct bp_data *bd, unsigned int tier)
{
	unsigned long left = MAX_JIFFY_OFFSET, now = jiffies;
	unsigned int dir;

	for (dir = READ; dir <= WRITE; dir++) {
		struct request *rq = iosched_oldest(&bd->io, tier, dir);

		if (rq && time_after((unsigned long)rq->fifo_time, now))
			left = min(left, (unsigned long)rq->fifo_time - now);
		else if (rq)
			left = 0;
	}
	return jiffies_to_usecs(min(left, msecs_to_jiffies(MSEC_PER_SEC)));
}

static void bp_stop_waiting(struct bp_data *bd, enum bp_outcome outcome)
{
	if (bd->antic.awaited)
		bp_wait_end(&bd->antic, outcome, bp_now());
}

/*
 * Continue the wait under way, or begin one for @process within @limits. Return
 * false if the time of the wait is over, or a wait for @process is not worth it.
 *
 * The timer of a wait that ended early is not cancelled. At worst it ends the
 * next wait early.
 */
static bool bp_wait(struct bp_data *bd, struct bp_process *process,
		    const struct bp_limits *limits)
{
	u32 left;

	lockdep_assert_held(&bd->io.lock);
	/* No tier waits for a process of another one. */
	if (bd->antic.awaited &&
	    container_of(bd->antic.awaited, struct bp_process,
			 think)->tier != process->tier)
		bp_stop_waiting(bd, BP_BROKEN);
	if (bd->antic.awaited) {
		if (!READ_ONCE(bd->timed_out))
			return true;
		bp_stop_waiting(bd, BP_MISS);
		return false;
	}
	if (!bp_process_idle(process))
		return false;
	left = bp_wait_begin(&bd->antic, &process->think, &bd->newcomers,
			     bp_now(), limits);
	if (!left)
		return false;
	left = min(left, bp_until_deadline(bd, process->tier));
	WRITE_ONCE(bd->timed_out, false);
	hrtimer_start(&bd->timer, ns_to_ktime((u64)left * NSEC_PER_USEC),
		      HRTIMER_MODE_REL);
	return true;
}

#endif /* _BP_WAITING_H */
