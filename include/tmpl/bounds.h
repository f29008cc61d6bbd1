/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bounds on what is in flight: the core's, and the policy's ready(). A part of
 * iosched-tmpl.h.
 */
#ifndef _IOSCHED_TMPL_BOUNDS_H
#define _IOSCHED_TMPL_BOUNDS_H

#include "tmpl/driver.h"
#include "tmpl/in-flight.h"
#include "tmpl/policy.h"

/*
 * The dispatch limit when it was last counted: the device's tags, or @depth if that is less.
 * Unless @depth is set, it is less for a driver that gives its device one request at a time.
 * Under the lock.
 */
static unsigned int iosched_limit(struct iosched *io)
{
	return min(READ_ONCE(io->limit), iosched_driver_limit(io));
}

/*
 * Count it anew: the setting has changed, or perhaps the budget of a SCSI device, which may
 * take fewer commands than its host has tags. Without the lock, too: a limit that was counted
 * beside a change lasts until the next count.
 */
static void iosched_count_limit(struct iosched *io)
{
	unsigned int most = iosched_tags(io);

	if (io->q->mq_ops->get_budget)
		most = min_not_zero(most, READ_ONCE(io->q->queue_depth));
	most = min_not_zero(most, READ_ONCE(io->depth));
	if (READ_ONCE(io->limit) != most)
		WRITE_ONCE(io->limit, most);
}

/*
 * The dispatch limit, counted anew if a budget may have changed it, for a device that is not
 * known to take one at a time. Without the lock, too.
 */
static unsigned int iosched_tags_now(struct iosched *io)
{
	if (io->q->mq_ops->get_budget)
		iosched_count_limit(io);
	return READ_ONCE(io->limit);
}

/* Find free slots below the dispatch limit. Return false if there is none. */
static bool iosched_find_room(struct iosched *io)
{
	unsigned int most, in_flight;

	/*
	 * Completions since the last count have only added free slots: while
	 * requests are queued, none begins to bypass the queue. Of a device that takes
	 * one at a time, the limit changes.
	 */
	if (io->room && likely(!READ_ONCE(io->driver.one)))
		return true;
	most = min(iosched_tags_now(io), iosched_driver_limit(io));
	in_flight = iosched_all_in_flight(io);
	io->room = most - min(in_flight, most);
	return io->room;
}

static bool iosched_is_ready(struct iosched *io, struct request *rq,
			     bool expired)
{
	return !IOSCHED_POLICY.ready || IOSCHED_POLICY.ready(io, rq, expired);
}

#endif /* _IOSCHED_TMPL_BOUNDS_H */
