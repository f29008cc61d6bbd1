/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writes leave a part of the device to reads. A part of iosched-tmpl.h.
 *
 * Of a device that takes several requests, writes use at most write_share percent of the
 * dispatch limit while reads are queued or recent. Otherwise writes alone can take it
 * all, and each read waits for a tag before it waits for the flash. The completion of a
 * write wakes the others. Past its deadline, a write has at least half of the limit. None
 * waits for those that the device does not complete: when none was dispatched for
 * IOSCHED_SLACK, one more is.
 *
 * Of a device that takes one request at a time, it is a share of the time: see turns.h. Of
 * one whose reads are slow beside any write, reads have a part of the time, too: see
 * phases.h.
 *
 * So a request waits for longer than its deadline and IOSCHED_SLACK only if more of them
 * arrive than the device serves.
 *
 * (In no paper: their devices take one request or one batch at a time, and no paper
 * bounds the writes that a read waits for.)
 */
#ifndef _IOSCHED_TMPL_READERS_SHARE_H
#define _IOSCHED_TMPL_READERS_SHARE_H

#include "iosched.h"
#include "tmpl/bounds.h"
#include "tmpl/in-flight.h"
#include "tmpl/readers/phases.h"
#include "tmpl/readers/turns.h"

/* The share of writes of the dispatch @limit, which is above 1. */
static unsigned int iosched_write_limit(unsigned int limit, unsigned int share)
{
	return max(limit * share / 100, 1U);
}

/* Return true if no write was dispatched for so long that one more may be. */
static bool iosched_writes_stall(struct iosched *io)
{
	return time_after_eq(jiffies, READ_ONCE(io->last[WRITE]) +
				      IOSCHED_SLACK);
}

/* Return true if writes use their share. */
static bool iosched_share_used(struct iosched *io, unsigned int limit,
			       unsigned int share)
{
	return iosched_dir_in_flight(io, WRITE) >=
	       iosched_write_limit(limit, share) &&
	       !iosched_writes_stall(io);
}

/*
 * Return true if the writes of a tier must leave the device to reads. @limit: the dispatch
 * limit. Without the lock, too.
 */
static bool iosched_writes_full(struct iosched *io, unsigned int tier,
				unsigned int limit)
{
	struct request *write = iosched_oldest(io, tier, WRITE);
	unsigned int share = READ_ONCE(io->write_share);

	if (share == 100)
		return false;
	if (limit == 1)
		return iosched_reads_turn(io, iosched_oldest(io, tier, READ));
	if (READ_ONCE(io->phases.alone) && iosched_dir_in_flight(io, READ))
		return true;
	if (!iosched_reads_beside(io, tier))
		return false;
	if (READ_ONCE(io->phases.alone))
		return true;
	if (iosched_has_expired(write, jiffies))
		share = max(share, IOSCHED_LEAST_SHARE);
	return iosched_share_used(io, limit, share);
}

/*
 * Return true if writes, expired ones too, wait for the next read of a device with one
 * tag.
 */
static bool iosched_read_expected(struct iosched *io)
{
	return iosched_limit(io) == 1 && READ_ONCE(io->write_share) < 100 &&
	       iosched_reads_turn(io, false);
}

/* Return true if @rq, which is queued or about to be, is such a write. */
static bool iosched_must_yield(struct iosched *io, struct request *rq)
{
	return rq_data_dir(rq) == WRITE &&
	       iosched_writes_full(io, iosched_rq_tier(rq), iosched_limit(io));
}

/* @rq is dispatched: return the bits of its state. Under the lock. */
static unsigned long iosched_note_dispatch(struct iosched *io,
					   struct request *rq)
{
	if (!blk_rq_is_passthrough(rq))
		WRITE_ONCE(io->last[rq_data_dir(rq)], jiffies);
	if (iosched_limit(io) > 1) {
		io->turns.since_us = 0;
		if (likely(!READ_ONCE(io->driver.one)))
			return 0;
	}
	return iosched_turn_begins(io, rq);
}

#endif /* _IOSCHED_TMPL_READERS_SHARE_H */
