/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parallel units that requests in flight hold. Units are taken under the
 * scheduler's lock and given back in any context, without a lock.
 *
 * Each unit has a count of holders. The last holder to give a unit back sets the
 * unit's bit in @freed. held_settle() clears these bits under the lock and updates
 * @held. A unit that was taken again meanwhile has holders and stays held; its bit
 * is set again when they give it back.
 */
#ifndef _PIQ_HELD_UNITS_H
#define _PIQ_HELD_UNITS_H

#include <linux/atomic.h>
#include <linux/bitmap.h>

#include "location-vector.h"

/**
 * struct held_units - the units of a drive
 * @holders: requests that hold the unit. Atomic.
 * @freed: units whose last holder has given them back since held_settle(). Atomic.
 * @held: units that are held, and some that are no longer. Under the lock.
 * @served: how often each unit was taken. Under the lock.
 */
struct held_units {
	atomic_t holders[LV_MAX_UNITS];
	atomic_long_t freed[BITS_TO_LONGS(LV_MAX_UNITS)];
	DECLARE_BITMAP(held, LV_MAX_UNITS);
	unsigned int served[LV_MAX_UNITS];
};

/* Take the units of @vector, whether or not others hold them. Under the lock. */
static inline void held_take(struct held_units *units,
			     const unsigned long *vector, unsigned int nr)
{
	unsigned int word, unit;

	for (word = 0; word < BITS_TO_LONGS(nr); word++) {
		unsigned long rest;

		for (rest = vector[word]; rest; rest &= rest - 1) {
			unit = word * BITS_PER_LONG + __ffs(rest);
			atomic_inc(&units->holders[unit]);
			units->served[unit]++;
		}
		units->held[word] |= vector[word];
	}
}

/* Give the units of @vector back. Any context, no lock. */
static inline void held_give_back(struct held_units *units,
				  const unsigned long *vector, unsigned int nr)
{
	unsigned int word, unit;

	for (word = 0; word < BITS_TO_LONGS(nr); word++) {
		unsigned long rest, freed = 0;

		for (rest = vector[word]; rest; rest &= rest - 1) {
			unit = word * BITS_PER_LONG + __ffs(rest);
			if (atomic_dec_and_test(&units->holders[unit]))
				freed |= rest & -rest;
		}
		if (freed)
			atomic_long_or(freed, &units->freed[word]);
	}
}

/**
 * held_settle() - update @held
 * @units: units, under the lock
 * @nr: number of units
 *
 * Return: true if a unit may have become free.
 */
static inline bool held_settle(struct held_units *units, unsigned int nr)
{
	unsigned int word, unit;
	bool news = false;

	for (word = 0; word < BITS_TO_LONGS(nr); word++) {
		unsigned long rest;

		if (!atomic_long_read(&units->freed[word]))
			continue;
		news = true;
		rest = atomic_long_xchg(&units->freed[word], 0);
		for (; rest; rest &= rest - 1) {
			unit = word * BITS_PER_LONG + __ffs(rest);
			if (!atomic_read(&units->holders[unit]))
				units->held[word] &= ~(rest & -rest);
		}
	}
	return news;
}

#endif /* _PIQ_HELD_UNITS_H */
