/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests in flight: dispatched, or bypassing the queue, and not completed; polled
 * ones apart. A part of iosched-tmpl.h.
 *
 * Exact under iosched.lock while no request completes or is allocated. A concurrent
 * completion can only make the numbers too high, never too low. Without the lock they
 * are an estimate.
 */
#ifndef _IOSCHED_TMPL_IN_FLIGHT_H
#define _IOSCHED_TMPL_IN_FLIGHT_H

#include "tmpl/policy.h"

/* Return true if requests may bypass the queue, as far as policy and driver decide. */
static bool iosched_bypasses(struct iosched *io)
{
	return IOSCHED_POLICY.may_bypass && io->bypasses;
}

/* Requests of a direction that bypass the queue. */
static unsigned int iosched_bypassing(struct iosched *io, unsigned int dir)
{
	unsigned int done;

	if (!iosched_bypasses(io))
		return 0;
	done = atomic_read(&io->bypass_done[dir]);
	/*
	 * Pairs with the way of a request from iosched_try_bypass() to its completion, which
	 * comes later: the other way round, the difference could be too low.
	 */
	smp_rmb();
	return atomic_read(&io->bypassed[dir]) - done;
}

static bool iosched_any_bypassing(struct iosched *io)
{
	return iosched_bypassing(io, READ) || iosched_bypassing(io, WRITE);
}

/* Requests of a tier and direction that were dispatched. */
static unsigned int iosched_dispatched(struct iosched *io, unsigned int tier,
				       unsigned int dir)
{
	struct iosched_done *done = &io->done[tier][dir];
	unsigned int gone = atomic_read(&done->completed) +
			    atomic_read(&done->requeued);

	/*
	 * Pairs with iosched_leave_bounds() and iosched_leave(), which first change
	 * polled and undispatched, then what is read above.
	 */
	smp_rmb();
	return READ_ONCE(io->stats[tier][dir].dispatched) +
	       atomic_read(&done->undispatched) - atomic_read(&done->polled) - gone;
}

/* The same of all tiers. */
static unsigned int iosched_dir_dispatched(struct iosched *io, unsigned int dir)
{
	unsigned int tiers = READ_ONCE(io->tiers), tier, dispatched = 0;

	if (likely(is_power_of_2(tiers)))
		return iosched_dispatched(io, __ffs(tiers), dir);
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		if (tiers & BIT(tier))
			dispatched += iosched_dispatched(io, tier, dir);
	return dispatched;
}

/* Requests of a tier and direction. Those that bypass the queue are best-effort. */
static unsigned int iosched_in_flight(struct iosched *io, unsigned int tier,
				      unsigned int dir)
{
	return iosched_dispatched(io, tier, dir) +
	       (tier == IOSCHED_BE ? iosched_bypassing(io, dir) : 0);
}

static unsigned int iosched_dir_in_flight(struct iosched *io, unsigned int dir)
{
	return iosched_dir_dispatched(io, dir) + iosched_bypassing(io, dir);
}

static unsigned int iosched_tier_in_flight(struct iosched *io, unsigned int tier)
{
	return iosched_in_flight(io, tier, READ) +
	       iosched_in_flight(io, tier, WRITE);
}

static unsigned int iosched_all_in_flight(struct iosched *io)
{
	return iosched_dir_in_flight(io, READ) +
	       iosched_dir_in_flight(io, WRITE);
}

/* Requests of a direction, but for those that bypassed, that completed so far; it wraps around. */
static unsigned int iosched_dir_done(struct iosched *io, unsigned int dir)
{
	unsigned int tier, done = 0;

	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		done += atomic_read(&io->done[tier][dir].completed);
	return done;
}

/* All requests that completed so far; it wraps around. */
static unsigned int iosched_all_done(struct iosched *io)
{
	return iosched_dir_done(io, READ) + iosched_dir_done(io, WRITE) +
	       atomic_read(&io->bypass_done[READ]) +
	       atomic_read(&io->bypass_done[WRITE]);
}

#endif /* _IOSCHED_TMPL_IN_FLIGHT_H */
