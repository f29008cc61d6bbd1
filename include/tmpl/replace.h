/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Placing all queued requests anew but those in the head, for a setting that decides where
 * they are placed. They are taken out and placed again by the piece, so that I/O does not
 * wait for the lock until all are. A part of iosched-tmpl.h.
 */
#ifndef _IOSCHED_TMPL_REPLACE_H
#define _IOSCHED_TMPL_REPLACE_H

#include "tmpl/bypass.h"
#include "tmpl/calm.h"
#include "tmpl/deadlines.h"
#include "tmpl/policy.h"
#include "tmpl/queue.h"
#include "tmpl/seal.h"

/* Requests that are taken out, or placed, while the lock is held once. */
#define IOSCHED_PIECE		32U

/*
 * After so long, in us, a piece is larger than what all CPUs may insert before the next
 * one: two plugs of 32 requests each, and as many again.
 */
#define IOSCHED_REPLACE_US	5000U

/* After so long, in us, all that are left are one piece, whatever is inserted. */
#define IOSCHED_REPLACE_LONG_US	10000U

/*
 * Take up to @nr requests out of where they are placed, to @moving. Return true if none
 * is left.
 */
static bool iosched_take_piece(struct iosched *io, unsigned int nr)
{
	struct request *rq, *next;
	unsigned int tier, dir;

	for (; (rq = io->fresh); nr--) {
		if (!nr)
			return false;
		iosched_del_fresh(io);
		iosched_seal(io, rq);
		iosched_count(io, rq, -1);
		list_add_tail(&rq->queuelist, &io->moving);
	}
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (dir = READ; dir <= WRITE; dir++)
			list_for_each_entry_safe(rq, next, &io->fifo[tier][dir],
						 queuelist) {
				if (!nr--)
					return false;
				iosched_unsort(io, rq, NULL);
				list_add_tail(&rq->queuelist, &io->moving);
			}
	return true;
}

/* Place up to @nr requests of @moving. Return true if none is left. */
static bool iosched_place_piece(struct iosched *io, unsigned int nr)
{
	struct request *rq;

	/* As at an insertion into an empty queue. */
	if (!io->nr && iosched_any_bypassing(io)) {
		io->room = 0;
		io->unissued = true;
		io->tiers |= BIT(IOSCHED_BE);
	}
	while (nr-- && !list_empty(&io->moving)) {
		rq = list_first_entry(&io->moving, struct request, queuelist);
		list_del_init(&rq->queuelist);
		iosched_sort(io, rq);
		iosched_count(io, rq, 1);
		io->tiers |= BIT(iosched_rq_tier(rq));
	}
	iosched_end_calm(io);
	iosched_watch(io);
	return list_empty(&io->moving);
}

/* The size of the next piece, @us after the first one began. */
static unsigned int iosched_piece(u32 us)
{
	if (us < IOSCHED_REPLACE_US)
		return IOSCHED_PIECE;
	if (us < IOSCHED_REPLACE_LONG_US)
		return 4 * IOSCHED_PIECE * num_online_cpus();
	return UINT_MAX;
}

/* Let others have the lock between two pieces. Return the size of the next one. */
static unsigned int iosched_next_piece(struct iosched *io, u32 since_us)
{
	spin_unlock(&io->lock);
	cpu_relax();
	spin_lock(&io->lock);
	return iosched_piece(iosched_now_us() - since_us);
}

/*
 * A request that is inserted meanwhile is queued as usual until all are taken out, and then
 * waits behind those that are moving: each FIFO stays in order of arrival.
 */
static void __maybe_unused
iosched_replace_all(struct iosched *io,
		    void (*change)(struct iosched *, void *), void *arg)
{
	unsigned int piece = IOSCHED_PIECE;
	u32 since_us = iosched_now_us();

	/* Preempted between two pieces, this task would hold back all that are moving. */
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
	spin_lock(&io->lock);
	while (!iosched_take_piece(io, piece))
		piece = iosched_next_piece(io, since_us);
	change(io, arg);
	io->placing = true;
	while (!iosched_place_piece(io, piece))
		piece = iosched_next_piece(io, since_us);
	io->placing = false;
	WRITE_ONCE(io->held, 0);
	spin_unlock(&io->lock);
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
	iosched_run(io);
}

#endif /* _IOSCHED_TMPL_REPLACE_H */
