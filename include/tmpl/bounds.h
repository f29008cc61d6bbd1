/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bounds on what is in flight: the core's, and the policy's ready(). A part of
 * iosched-tmpl.h.
 */
#ifndef _IOSCHED_TMPL_BOUNDS_H
#define _IOSCHED_TMPL_BOUNDS_H

/*
 * Find free slots below the dispatch limit, which is the device's tags, or @depth
 * if that is less. Return false if there is none.
 */
static bool iosched_find_room(struct iosched *io)
{
	unsigned int most, in_flight;

	/* Completions since the last count have only added free slots. */
	if (io->room)
		return true;
	most = iosched_tags(io);
	if (io->depth)
		most = min(most, io->depth);
	in_flight = iosched_all_in_flight(io);
	io->room = most - min(in_flight, most);
	return io->room;
}

static bool iosched_is_ready(struct iosched *io, struct request *rq, bool due)
{
	return !IOSCHED_POLICY.ready || IOSCHED_POLICY.ready(io, rq, due);
}

#endif /* _IOSCHED_TMPL_BOUNDS_H */
