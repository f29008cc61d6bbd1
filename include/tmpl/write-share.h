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
 * Of a device that takes one request at a time, writes use at most write_share percent
 * of the time while reads are queued, or half of it if that is more. After a write, reads
 * are owed their part of the time that it took.
 *
 * So a request waits for longer than its deadline and IOSCHED_SLACK only if more of them
 * arrive than the device serves.
 *
 * (In no paper: their devices take one request or one batch at a time, and no paper
 * bounds the writes that a read waits for.)
 */
#ifndef _IOSCHED_TMPL_WRITE_SHARE_H
#define _IOSCHED_TMPL_WRITE_SHARE_H

/* Reads are recent for this long after one was dispatched, in jiffies. */
#define IOSCHED_READS_RECENT	(HZ / 10)

/* Writes past their deadline, and those of a device with one tag, have this share. */
#define IOSCHED_LEAST_SHARE	50U	/* percent */

/* Most time owed to reads, in us, unless a single write took longer. */
#define IOSCHED_OWED_US		(100 * USEC_PER_MSEC)

/* Return true if writes use their share of the dispatch limit, which is above 1. */
static bool iosched_share_used(struct iosched *io, unsigned int share)
{
	return iosched_dir_in_flight(io, WRITE) >=
	       max(iosched_limit(io) * share / 100, 1U) &&
	       time_before(jiffies, READ_ONCE(io->last[WRITE]) +
				    IOSCHED_SLACK);
}

/* Return true if the writes of a tier must leave the device to reads. */
static bool iosched_writes_full(struct iosched *io, unsigned int tier)
{
	struct request *write = iosched_first(io, tier, WRITE);
	unsigned int share = READ_ONCE(io->write_share);
	bool reads = iosched_first(io, tier, READ);

	if (share == 100)
		return false;
	if (iosched_limit(io) == 1)
		return reads && READ_ONCE(io->owed_us);
	if (!reads && time_after_eq(jiffies, READ_ONCE(io->last[READ]) +
					     IOSCHED_READS_RECENT))
		return false;
	if (write && time_after_eq(jiffies, (unsigned long)write->fifo_time))
		share = max(share, IOSCHED_LEAST_SHARE);
	return iosched_share_used(io, share);
}

/* Return true if @rq, which is queued or about to be, is such a write. */
static bool iosched_must_yield(struct iosched *io, struct request *rq)
{
	return rq_data_dir(rq) == WRITE &&
	       iosched_writes_full(io, iosched_rq_tier(rq));
}

/* @rq is dispatched: return the bits of its state. Under the lock. */
static unsigned long iosched_note_dispatch(struct iosched *io,
					   struct request *rq)
{
	if (!blk_rq_is_passthrough(rq))
		WRITE_ONCE(io->last[rq_data_dir(rq)], jiffies);
	if (iosched_limit(io) > 1)
		return 0;
	io->timed_since = ktime_get_ns();
	return IOSCHED_RQ_TIMED;
}

/* A request that was dispatched as the only one has completed. Any context. */
static void iosched_note_time(struct iosched *io, struct request *rq)
{
	unsigned int share = max(READ_ONCE(io->write_share), IOSCHED_LEAST_SHARE);
	unsigned int owed = READ_ONCE(io->owed_us), us;
	u64 ns = ktime_get_ns() - io->timed_since;

	us = div_u64(min_t(u64, ns, NSEC_PER_SEC), NSEC_PER_USEC);
	if (rq_data_dir(rq) == READ) {
		owed -= min(owed, us);
	} else {
		us = us * (100 - share) / share;
		owed = min_t(unsigned int, owed + us, max(us, IOSCHED_OWED_US));
	}
	WRITE_ONCE(io->owed_us, owed);
}

#endif /* _IOSCHED_TMPL_WRITE_SHARE_H */
