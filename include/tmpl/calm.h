/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What decides beside the policy, looked at once a jiffy. A part of iosched-tmpl.h.
 *
 * A jiffy is calm if one priority tier is in use, the device takes several requests, no
 * deadline has passed or is 0, and reads are not alone (readers/phases.h). Until it ends, only the
 * bounds and the writes' share (readers/share.h) decide beside the policy: a dispatch need
 * not look at the rest again. A setting, and a request that was not reckoned with, end
 * the calm.
 *
 * The share is a number of writes that may be dispatched, counted anew when it is used up:
 * completions meanwhile only add to it.
 */
#ifndef _IOSCHED_TMPL_CALM_H
#define _IOSCHED_TMPL_CALM_H

#include "tmpl/bounds.h"
#include "tmpl/in-flight.h"
#include "tmpl/policy.h"
#include "tmpl/readers/share.h"

/* Something has changed: look at all of it before the next dispatch. Under the lock. */
static void iosched_end_calm(struct iosched *io)
{
	io->calm_tiers = 0;
}

static bool iosched_is_calm(struct iosched *io, unsigned long now)
{
	return io->calm_at == now && io->calm_tiers == io->tiers;
}

/* Count the writes that may be dispatched. Return false if there is none. */
static bool iosched_find_write_room(struct iosched *io, unsigned int tier)
{
	unsigned int share = READ_ONCE(io->write_share), most, in_flight;

	if (!iosched_reads_beside(io, tier) || share == 100) {
		io->calm_dirs &= ~BIT(READ);
		io->write_room = UINT_MAX;
		return true;
	}
	io->calm_dirs |= BIT(READ);
	most = iosched_write_limit(iosched_limit(io), share);
	in_flight = iosched_dir_in_flight(io, WRITE);
	io->write_room = most - min(in_flight, most);
	return io->write_room || iosched_writes_stall(io);
}

/* See whether the rest of this jiffy is calm. @tier: the only one in use. */
static void iosched_look_around(struct iosched *io, unsigned int tier,
				unsigned long now)
{
	if (iosched_limit(io) == 1 || READ_ONCE(io->driver.one) ||
	    !io->expire[READ] || !io->expire[WRITE] ||
	    READ_ONCE(io->phases.alone) ||
	    iosched_has_expired(iosched_oldest(io, tier, READ), now) ||
	    iosched_has_expired(iosched_oldest(io, tier, WRITE), now))
		return;
	io->turns.since_us = 0;
	io->calm_at = now;
	io->calm_tiers = io->tiers;
	io->calm_dirs = BIT(READ) |
			(iosched_oldest(io, tier, WRITE) ? BIT(WRITE) : 0);
	io->write_room = 0;
}

/* @rq is queued. End the calm if it has not reckoned with it. */
static void iosched_calm_arrival(struct iosched *io, struct request *rq)
{
	if (!(io->calm_dirs & BIT(rq_data_dir(rq))))
		iosched_end_calm(io);
}

/* In a calm jiffy: the next request, or NULL if none may be dispatched. */
static struct request *iosched_pick_calm(struct iosched *io)
{
	unsigned int tier = __ffs(io->tiers), only = IOSCHED_ANY;

	if (!io->write_room && iosched_oldest(io, tier, WRITE) &&
	    !iosched_find_write_room(io, tier)) {
		if (!iosched_oldest(io, tier, READ))
			return NULL;
		only = READ;
	}
	return IOSCHED_POLICY.select(io, tier, only);
}

#endif /* _IOSCHED_TMPL_CALM_H */
