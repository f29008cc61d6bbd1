/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which parallel units do requests in flight hold? Taken under the scheduler's
 * lock, given back without one, from any context.
 *
 * Each unit counts its holders. Who gives back the last one notes the unit in
 * a bitmap of its own, and held_settle(), under the lock, takes the notes to
 * find the units that came free. A unit that was taken again in between has
 * holders and stays; it will be noted again when they leave, so no note is lost.
 */
#ifndef _HELD_UNITS_H
#define _HELD_UNITS_H

#include <linux/atomic.h>
#include <linux/bitmap.h>

#include "location-vector.h"

/**
 * struct held_units - the units of a drive
 * @holders: requests that hold the unit. Atomic.
 * @freed: units whose last holder has left since held_settle(). Atomic.
 * @held: units that are held, some perhaps no longer. Under the lock.
 */
struct held_units {
	atomic_t holders[LV_MAX_UNITS];
	DECLARE_BITMAP(freed, LV_MAX_UNITS);
	DECLARE_BITMAP(held, LV_MAX_UNITS);
};

/* Take the units of @vector, whether or not others hold them. Under the lock. */
static inline void held_take(struct held_units *units,
			     const unsigned long *vector, unsigned int nr)
{
	unsigned int unit;

	for_each_set_bit(unit, vector, nr)
		atomic_inc(&units->holders[unit]);
	bitmap_or(units->held, units->held, vector, nr);
}

/* Give them back. Any context, no lock. */
static inline void held_give_back(struct held_units *units,
				  const unsigned long *vector, unsigned int nr)
{
	unsigned int unit;

	for_each_set_bit(unit, vector, nr)
		if (atomic_dec_and_test(&units->holders[unit]))
			set_bit(unit, units->freed);
}

/* Bring @held up to date. Under the lock. */
static inline void held_settle(struct held_units *units, unsigned int nr)
{
	unsigned int word, bit;

	for (word = 0; word < BITS_TO_LONGS(nr); word++) {
		unsigned long freed = READ_ONCE(units->freed[word]);

		if (freed)
			freed = xchg(&units->freed[word], 0);
		for_each_set_bit(bit, &freed, BITS_PER_LONG)
			if (!atomic_read(&units->holders[word * BITS_PER_LONG +
							 bit]))
				units->held[word] &= ~BIT(bit);
	}
}

#endif /* _HELD_UNITS_H */
