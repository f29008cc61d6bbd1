/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Turns of reads and writes on a device that takes one request at a time. A part of
 * iosched-tmpl.h.
 *
 * While there are reads, writes use at most write_share percent of the time, or half of
 * it if that is more: after a write, reads are owed their part of the time that it took.
 * Writes wait while reads are owed time and queued. What is owed adds up to
 * IOSCHED_OWED_US: a program that begins to read beside a writer has the device to
 * itself for that long, also if writes are past their deadlines.
 *
 * Reads get half of the time at most, whatever the policy prefers: once they have had
 * IOSCHED_OVER_US more than they are owed and writes made good, a write is next.
 *
 * Most programs send one read after another, so that none is queued when one completes.
 * Writes also wait for the next one, for IOSCHED_AWAIT_US after a read has completed, if
 * most reads come that soon. The time in which the device was idle is a part of what
 * reads are owed, whether a read has come or not. A timer ends the wait.
 *
 * (In no paper. Waiting for a reader is the idea of anticipatory scheduling, see
 * bp/anticipatory.h; here it is for any reader, and bounded by the time owed.)
 */
#ifndef _IOSCHED_TMPL_READERS_TURNS_H
#define _IOSCHED_TMPL_READERS_TURNS_H

#include "iosched.h"
#include "tmpl/bounds.h"

/* Writes past their deadline, and those of a device with one tag, have this share. */
#define IOSCHED_LEAST_SHARE	50U	/* percent */

/* Most time owed to reads, in us. */
#define IOSCHED_OWED_US		((unsigned int)USEC_PER_SEC)

/* Time of reads beyond what they are owed from which a write is next, in us. */
#define IOSCHED_OVER_US		((unsigned int)(100 * USEC_PER_MSEC))

/* Longest wait for the next read, in us. */
#define IOSCHED_AWAIT_US	(2 * USEC_PER_MSEC)

/* iosched_turns.soon if all reads come soon; a read changes it by an eighth. */
#define IOSCHED_ALL_SOON	256U

/* Reads get @us of the time that they are owed. */
static void iosched_pay(struct iosched *io, unsigned int us)
{
	unsigned int owed = READ_ONCE(io->owed_us);

	WRITE_ONCE(io->owed_us, owed - min(owed, us));
}

/*
 * Time left, in us, for which writes may wait for the next read; 0 if they may not. Under
 * the lock.
 */
static u32 iosched_await_us(struct iosched *io)
{
	u32 done = READ_ONCE(io->read_done_us), now, past, waited;
	unsigned int owed = READ_ONCE(io->owed_us);

	if (likely(!done) || io->turns.soon < IOSCHED_ALL_SOON / 2)
		return 0;
	now = iosched_now_us();
	past = now - done;
	waited = io->turns.since_us ? now - io->turns.since_us : 0;
	if (past >= IOSCHED_AWAIT_US || waited >= owed)
		return 0;
	return min_t(u32, IOSCHED_AWAIT_US - past, owed - waited);
}

/* Return true if writes must wait for reads. @reads: some are queued. Under the lock. */
static bool iosched_reads_turn(struct iosched *io, bool reads)
{
	return READ_ONCE(io->owed_us) && (reads || iosched_await_us(io));
}

/* Return true if a write is next because reads have had more than their part. Under the lock. */
static bool iosched_writes_turn(struct iosched *io)
{
	return READ_ONCE(io->over_us) >= IOSCHED_OVER_US &&
	       READ_ONCE(io->write_share) < 100 && iosched_limit(io) == 1 &&
	       iosched_one_tier(io);
}

static void iosched_learn_soon(struct iosched *io, bool soon)
{
	io->turns.soon -= io->turns.soon / 8;
	if (soon)
		io->turns.soon += IOSCHED_ALL_SOON / 8;
}

/* @rq is queued: learn whether reads come soon. Under the lock. */
static void iosched_turns_arrival(struct iosched *io, struct request *rq)
{
	u32 done = READ_ONCE(io->read_done_us);

	if (likely(!done) || rq_data_dir(rq) == WRITE)
		return;
	iosched_learn_soon(io, iosched_now_us() - done < IOSCHED_AWAIT_US);
	WRITE_ONCE(io->read_done_us, 0);
}

/* Arm the timer for @us from now, unless it expires earlier. Under the lock. */
static void iosched_turns_arm(struct iosched *io, u32 us)
{
	ktime_t when = ns_to_ktime(ktime_get_ns() + (u64)us * NSEC_PER_USEC);
	struct hrtimer *timer = &io->turns.timer;

	if (!hrtimer_is_queued(timer) ||
	    ktime_after(hrtimer_get_expires(timer), when))
		hrtimer_start(timer, when, HRTIMER_MODE_ABS);
}

/*
 * All requests are held. If it is for a read that is expected, with nothing in flight, the
 * wait begins: arm the timer. Return true if that wait has just ended. Under the lock.
 */
static bool iosched_turns_hold(struct iosched *io)
{
	u32 left;

	if (likely(!READ_ONCE(io->read_done_us)) || iosched_limit(io) > 1 ||
	    !iosched_find_room(io))
		return false;
	left = iosched_await_us(io);
	if (!left)
		return true;
	if (!io->turns.since_us)
		io->turns.since_us = iosched_now_us();
	iosched_turns_arm(io, left);
	return false;
}

static enum hrtimer_restart iosched_turns_timeout(struct hrtimer *timer)
{
	iosched_wake(container_of(timer, struct iosched, turns.timer));
	return HRTIMER_NORESTART;
}

/* @rq is dispatched, which ends a wait. Under the lock. */
static void iosched_turns_wait_ends(struct iosched *io, struct request *rq)
{
	struct iosched_turns *turns = &io->turns;
	u32 now = iosched_now_us(), us = now - turns->since_us;

	turns->since_us = 0;
	iosched_pay(io, us);
	turns->waited_us += us;
	if (rq_data_dir(rq) == READ) {
		turns->came++;
	} else if (now - READ_ONCE(io->read_done_us) >= IOSCHED_AWAIT_US) {
		turns->missed++;
		iosched_learn_soon(io, false);
		WRITE_ONCE(io->read_done_us, 0);
	}
}

/* @rq is dispatched as the only one: return the bits of its state. Under the lock. */
static unsigned long iosched_turn_begins(struct iosched *io, struct request *rq)
{
	if (io->turns.since_us)
		iosched_turns_wait_ends(io, rq);
	if (iosched_rq_polled(rq))
		return 0;
	WRITE_ONCE(io->timed_us, iosched_now_us());
	return IOSCHED_RQ_TIMED;
}

/*
 * A request that is timed has completed. Any context. If the next one was dispatched
 * meanwhile, the device has been busy with it since.
 */
static noinline void iosched_turn_ends(struct iosched *io, struct request *rq)
{
	unsigned int share = max(READ_ONCE(io->write_share), IOSCHED_LEAST_SHARE);
	u32 since = READ_ONCE(io->timed_us), now = iosched_now_us();
	unsigned int us = min_t(u32, now - since, USEC_PER_SEC);
	unsigned int owed, over, earned;

	owed = READ_ONCE(io->owed_us);
	over = READ_ONCE(io->over_us);
	if (rq_data_dir(rq) == READ) {
		over += us - min(us, owed);
		WRITE_ONCE(io->over_us, min(over, IOSCHED_OVER_US));
		iosched_pay(io, us);
		WRITE_ONCE(io->read_done_us, now);
		return;
	}
	earned = us * (100 - share) / share;
	/* If reads have left time that they were owed, there are none. */
	over -= min(over, owed ? us : us - earned);
	WRITE_ONCE(io->over_us, over);
	WRITE_ONCE(io->owed_us, min(owed + earned, IOSCHED_OWED_US));
}

#endif /* _IOSCHED_TMPL_READERS_TURNS_H */
