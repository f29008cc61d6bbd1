/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which units of a drive are slow at the moment? Told by requests that take much
 * longer than most of their direction: the drive does something of its own
 * there, such as garbage collection. The units of such a request are kept for a
 * while after it has ended, until slow_late() says that they may be given back.
 *
 * Any context, no lock, but for slow_began(). Averages and times are read and
 * written plainly: completions that meet may lose one's part of an average.
 */
#ifndef _PIQ_SLOW_UNITS_H
#define _PIQ_SLOW_UNITS_H

#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/ktime.h>

#include "location-vector.h"

/* How many times as long as the average is slow. More than one wait behind
 * another request, less than the erase of a block.
 */
#define SLOW_TIMES 4

/* The average is over about so many requests. */
#define SLOW_MEAN_OF 64

/**
 * struct slow_units - what is known of a drive's units
 * @started: when each was last taken, ns
 * @late: units that are kept. Atomic.
 * @mean: ns that a read, a write takes
 * @slow: requests that were slow. Atomic.
 */
struct slow_units {
	u64 started[LV_MAX_UNITS];
	DECLARE_BITMAP(late, LV_MAX_UNITS);
	u64 mean[2];
	atomic_t slow;
};

/* Nobody is asked from here on; what is kept stays so until slow_late(). */
static inline void slow_forget(struct slow_units *units)
{
	memset(units->started, 0, sizeof(units->started));
}

/* A request that needs @vector goes to the drive. */
static inline void slow_began(struct slow_units *units,
			      const unsigned long *vector, unsigned int nr)
{
	u64 now = ktime_get_ns();
	unsigned int unit;

	for_each_set_bit(unit, vector, nr)
		WRITE_ONCE(units->started[unit], now);
}

/**
 * slow_ended() - a request has come back
 * @units: units
 * @vector: its units; those that are to be kept are taken out
 * @nr: bits of @vector
 * @dir: READ or WRITE
 *
 * Return: whether some are kept, for slow_late() to be called later.
 */
static inline bool slow_ended(struct slow_units *units, unsigned long *vector,
			      unsigned int nr, unsigned int dir)
{
	u64 started = READ_ONCE(units->started[find_first_bit(vector, nr)]);
	u64 mean = READ_ONCE(units->mean[dir]), took;
	unsigned int unit;

	/* It went before anybody asked. */
	if (!started)
		return false;
	took = ktime_get_ns() - started;
	WRITE_ONCE(units->mean[dir], mean ? mean - mean / SLOW_MEAN_OF +
					    took / SLOW_MEAN_OF : took);
	if (!mean || took <= SLOW_TIMES * mean)
		return false;
	atomic_inc(&units->slow);
	for_each_set_bit(unit, vector, nr)
		if (!test_and_set_bit(unit, units->late))
			__clear_bit(unit, vector);
	return true;
}

/* Set @vector to all that was kept: it is to be given back. */
static inline void slow_late(struct slow_units *units, unsigned long *vector,
			     unsigned int nr)
{
	unsigned int word;

	for (word = 0; word < BITS_TO_LONGS(nr); word++)
		vector[word] = xchg(&units->late[word], 0);
}

#endif /* _PIQ_SLOW_UNITS_H */
