/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bounds on what is in flight: the core's, and the policy's ready(). A part of
 * iosched-tmpl.h.
 */
#ifndef _IOSCHED_TMPL_BOUNDS_H
#define _IOSCHED_TMPL_BOUNDS_H

/* The dispatch limit: the device's tags, or @depth if that is less. */
static unsigned int iosched_limit(struct iosched *io)
{
	unsigned int tags = iosched_tags(io), depth = READ_ONCE(io->depth);

	return depth ? min(tags, depth) : tags;
}

/* Find free slots below the dispatch limit. Return false if there is none. */
static bool iosched_find_room(struct iosched *io)
{
	unsigned int most, in_flight;

	/*
	 * Completions since the last count have only added free slots: while
	 * requests are queued, none begins to bypass the queue.
	 */
	if (io->room)
		return true;
	most = iosched_limit(io);
	in_flight = iosched_all_in_flight(io);
	io->room = most - min(in_flight, most);
	return io->room;
}

/*
 * Return true if a tier's reads are queued, or any are recent, and writes have their
 * share of the tags. At least one write is then in flight; its completion wakes the
 * queue.
 */
static bool iosched_writes_full(struct iosched *io, unsigned int tier)
{
	unsigned int share = READ_ONCE(io->write_share);

	if (share == 100 ||
	    (!iosched_first(io, tier, READ) &&
	     time_after_eq(jiffies, READ_ONCE(io->last_read) +
				    IOSCHED_READS_RECENT)))
		return false;
	return iosched_dir_in_flight(io, WRITE) >=
	       max(iosched_tags(io) * share / 100, 1U);
}

/* Return true if @rq must leave tags to reads. */
static bool iosched_leaves_tags(struct iosched *io, struct request *rq)
{
	return rq_data_dir(rq) == WRITE &&
	       iosched_writes_full(io, iosched_rq_tier(rq));
}

static bool iosched_is_ready(struct iosched *io, struct request *rq, bool due)
{
	/* A deadline overrides write_share, but not the policy's bounds. */
	if (!due && iosched_leaves_tags(io, rq))
		return false;
	return !IOSCHED_POLICY.ready || IOSCHED_POLICY.ready(io, rq, due);
}

#endif /* _IOSCHED_TMPL_BOUNDS_H */
