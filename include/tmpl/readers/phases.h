/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Phases in which reads have a device alone. A part of iosched-tmpl.h.
 *
 * Some flash takes 10 ms and more to program a page, and its reads wait for that however
 * few writes are in flight: the device's own buffer keeps all of its flash busy. Only
 * once the buffer is written are reads fast. So, beside writes, reads get phases of their
 * own, a half of what write_share leaves of the time, not counting the time in which the
 * buffer is written, and for as long as this pays:
 *
 * mixed	The time of reads is measured. Meanwhile they earn time of their own, a second
 *		at most.
 * alone	If reads take IOSCHED_SLOW_READ_US and more, and not because there are many,
 *		writes wait. First those in flight complete, and the device writes its
 *		buffer, for IOSCHED_DRAIN_US at most. From the first slice on in which reads
 *		come four times as often as when mixed, they use up what they have earned.
 *		If there is no such slice the phase did not pay, and four times the time
 *		passes until the next one. Nor did it if in all of it, the writing of the
 *		buffer included, reads did not come twice as often, or if they stopped:
 *		those of a program that reads and writes do when its writes wait.
 *
 * A phase ends early when there are no reads, when several priority classes are in use,
 * and when a write is past its deadline.
 *
 * (In no paper.)
 */
#ifndef _IOSCHED_TMPL_READERS_PHASES_H
#define _IOSCHED_TMPL_READERS_PHASES_H

#include "iosched.h"
#include "tmpl/bounds.h"
#include "tmpl/driver.h"
#include "tmpl/in-flight.h"

/* Mean time of a read from which phases are tried, in us. */
#define IOSCHED_SLOW_READ_US	(2 * USEC_PER_MSEC)

/*
 * And mean time from one completion of a read to the next: of a device that completes reads
 * more often, they wait for each other.
 */
#define IOSCHED_RARE_READ_US	125U

/* Time for which reads are counted, while mixed and alone, in us. */
#define IOSCHED_MIXED_US	(50 * USEC_PER_MSEC)
#define IOSCHED_SLICE_US	(10 * USEC_PER_MSEC)

/* The shortest and the longest time alone with a buffer that is written, in us. */
#define IOSCHED_ALONE_US	(200 * USEC_PER_MSEC)
#define IOSCHED_EARNED_US	USEC_PER_SEC

/* Time for the device to write its buffer, in us. */
#define IOSCHED_DRAIN_US	(500 * USEC_PER_MSEC)

/* A phase pays if reads come so many times as often. */
#define IOSCHED_PAYS		4U

/* And so many times as often in all of it. */
#define IOSCHED_GAINS		2U

/* The time between phases is four times as long so many times at most. */
#define IOSCHED_FAILED_MAX	3U

/* Reads are recent for this long after one was dispatched, in jiffies. */
#define IOSCHED_READS_RECENT	(HZ / 10)

/* Return true if there are reads of a tier, or were just now. */
static bool iosched_reads_beside(struct iosched *io, unsigned int tier)
{
	return iosched_oldest(io, tier, READ) ||
	       time_before(jiffies, READ_ONCE(io->last[READ]) +
				    IOSCHED_READS_RECENT);
}

/* How a phase ends: with fast reads, without, or before that could be seen. */
enum iosched_phase_end {
	IOSCHED_PAID,
	IOSCHED_FAILED,
	IOSCHED_CUT,
};

/* Percent of the time for reads alone. */
static unsigned int iosched_alone_percent(struct iosched *io)
{
	return max((100 - READ_ONCE(io->write_share)) / 2, 1U);
}

/* A read that was dispatched has completed. Any context. */
static noinline void iosched_phases_read(struct iosched *io, struct request *rq)
{
	u64 ns = ktime_get_ns() - rq->start_time_ns;

	atomic_add(div_u64(min_t(u64, ns, NSEC_PER_SEC), NSEC_PER_USEC),
		   &io->reads_us);
	/* No write was queued for so long. */
	if (iosched_now_us() - READ_ONCE(io->phases.slice_us) >
	    8 * IOSCHED_MIXED_US)
		WRITE_ONCE(io->phases.counting, false);
}

static void iosched_phase_count(struct iosched *io, u32 now)
{
	WRITE_ONCE(io->phases.slice_us, now);
	/* Of reads alone only the number counts. */
	WRITE_ONCE(io->phases.counting, !io->phases.alone);
	atomic_set(&io->reads_us, 0);
	io->phases.reads = iosched_dir_done(io, READ);
}

/* Return true if reads came so often in a phase that ends after @us. */
static bool iosched_phase_gains(struct iosched *io, u32 us)
{
	unsigned int reads = iosched_dir_done(io, READ) - io->phases.before;

	return reads && us / reads <= io->phases.mixed_us / IOSCHED_GAINS;
}

static void iosched_phase_end(struct iosched *io, u32 now,
			      enum iosched_phase_end how)
{
	struct iosched_phases *phases = &io->phases;

	WRITE_ONCE(phases->alone, false);
	if (how == IOSCHED_PAID && !iosched_phase_gains(io, now - phases->since_us))
		how = IOSCHED_FAILED;
	if (how == IOSCHED_PAID)
		phases->failed = 0;
	else if (how == IOSCHED_FAILED)
		phases->failed = min(phases->failed + 1, IOSCHED_FAILED_MAX);
	phases->paid += how == IOSCHED_PAID;
	phases->alone_us += now - phases->since_us;
	phases->since_us = now;
	iosched_phase_count(io, now);
}

/* Reads and writes are mixed: begin a phase of reads alone if it may pay. */
static void iosched_phase_mixed(struct iosched *io, u32 now)
{
	struct iosched_phases *phases = &io->phases;
	unsigned int percent = iosched_alone_percent(io), reads, us;
	u32 past = now - phases->slice_us, mixed = now - phases->since_us;

	if (past < IOSCHED_MIXED_US)
		return;
	us = atomic_read(&io->reads_us);
	reads = iosched_dir_done(io, READ) - phases->reads;
	iosched_phase_count(io, now);
	/* If it began long ago, there were no reads meanwhile. */
	if (reads < 2 || past > 4 * IOSCHED_MIXED_US ||
	    us / reads < IOSCHED_SLOW_READ_US ||
	    past / reads < IOSCHED_RARE_READ_US ||
	    mixed >> 2 * phases->failed <
	    IOSCHED_ALONE_US * (100 - percent) / percent)
		return;
	phases->mixed_us = past / reads;
	phases->earned_us = min_t(u64, div_u64((u64)mixed * percent, 100 - percent),
				  IOSCHED_EARNED_US);
	phases->since_us = now;
	phases->drain_us = now;
	phases->fast_us = 0;
	phases->before = phases->reads;
	phases->tried++;
	WRITE_ONCE(phases->alone, true);
}

/*
 * Return true if reads come four times as often in this slice. Their own time proves
 * less: while the device writes its buffer some are fast already.
 */
static bool iosched_reads_are_fast(struct iosched *io, u32 past)
{
	unsigned int reads = iosched_dir_done(io, READ) - io->phases.reads;

	return reads && past / reads <= io->phases.mixed_us / IOSCHED_PAYS;
}

/* Reads are alone: end this phase if it has lasted long enough, or does not pay. */
static void iosched_phase_alone(struct iosched *io, u32 now)
{
	struct iosched_phases *phases = &io->phases;
	u32 past = now - phases->slice_us;

	if (past < IOSCHED_SLICE_US)
		return;
	if (iosched_dir_in_flight(io, WRITE))
		phases->drain_us = now;
	if (!phases->fast_us && iosched_reads_are_fast(io, past))
		phases->fast_us = phases->slice_us;
	iosched_phase_count(io, now);
	if (phases->fast_us && now - phases->fast_us >= phases->earned_us)
		iosched_phase_end(io, now, IOSCHED_PAID);
	else if (!phases->fast_us &&
		 (now - phases->drain_us >= IOSCHED_DRAIN_US ||
		  now - phases->since_us >= IOSCHED_DRAIN_US + IOSCHED_EARNED_US))
		iosched_phase_end(io, now, IOSCHED_FAILED);
}

/* Return true if there are reads of a tier, or were just now. */
static bool iosched_reads_go_on(struct iosched *io, unsigned int tier)
{
	return iosched_reads_beside(io, tier) ||
	       (io->phases.alone && iosched_dir_in_flight(io, READ));
}

/* Return true if writes may not wait for reads. */
static bool iosched_phase_is_cut(struct iosched *io, struct request *write)
{
	return !iosched_one_tier(io) || iosched_limit(io) == 1 ||
	       iosched_driver_limit(io) != UINT_MAX ||
	       READ_ONCE(io->write_share) == 100 ||
	       iosched_has_expired(write, jiffies);
}

/* A request of @tier is about to be chosen: see whether a phase begins or ends. */
static void iosched_phases_step(struct iosched *io, unsigned int tier)
{
	struct request *write = iosched_oldest(io, tier, WRITE);
	struct iosched_phases *phases = &io->phases;
	bool go_on;
	u32 now;

	if (likely(!phases->alone) && !write)
		return;
	go_on = iosched_reads_go_on(io, tier);
	if (likely(!phases->alone) && (!go_on || iosched_phase_is_cut(io, write)))
		return;
	now = iosched_now_us();
	if (!phases->alone)
		iosched_phase_mixed(io, now);
	else if (!go_on || iosched_phase_is_cut(io, write))
		iosched_phase_end(io, now, phases->fast_us ? IOSCHED_PAID :
				  go_on ? IOSCHED_CUT : IOSCHED_FAILED);
	else
		iosched_phase_alone(io, now);
}

#endif /* _IOSCHED_TMPL_READERS_PHASES_H */
