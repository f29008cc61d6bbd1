/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parallel units that requests in flight hold. Units are taken under the
 * scheduler's lock and given back in any context, without a lock.
 *
 * A request gives a unit back by setting its bit in @freed. held_settle() clears these bits
 * under the lock, and with them those in @held.
 *
 * A unit has several holders if a request is dispatched although it is held: the deadline
 * of the request has passed, or no request is held back (rule 7, noop). One holder is in
 * @held, the others are in @more; a bit in @freed that is not settled counts as a holder. A
 * request that gives the unit back reduces @more while it can, and otherwise sets the bit
 * in @freed. If the unit was taken meanwhile, held_settle() leaves it held and reduces
 * @more. So (held) + @more - (freed) is the number of holders.
 */
#ifndef _PIQ_HELD_UNITS_H
#define _PIQ_HELD_UNITS_H

#include <linux/atomic.h>
#include <linux/bitmap.h>

#include "location-vector.h"

/**
 * struct held_units - the units of a drive
 * @more: requests that hold the unit beside another one. Atomic.
 * @freed: units that were given back since held_settle(). Atomic.
 * @all_more: at least the sum of @more. Atomic.
 * @held: units that are held, and some that are no longer. Under the lock.
 * @served: how often each unit was taken, but for @whole. Under the lock.
 * @whole: how often all units of a word were taken at once, as by large requests. Under the
 *	lock.
 */
struct held_units {
	atomic_t more[LV_MAX_UNITS];
	atomic_long_t freed[BITS_TO_LONGS(LV_MAX_UNITS)];
	atomic_t all_more;
	DECLARE_BITMAP(held, LV_MAX_UNITS) ____cacheline_aligned_in_smp;
	unsigned int served[LV_MAX_UNITS];
	unsigned int whole[BITS_TO_LONGS(LV_MAX_UNITS)];
};

/* Take the units @bits of a word, which others hold. Under the lock. */
static noinline void held_take_too(struct held_units *units, unsigned int word,
				   unsigned long bits)
{
	atomic_add(hweight_long(bits), &units->all_more);
	/*
	 * @all_more is increased before, and decreased after, the count of a unit. Pairs
	 * with atomic_dec_if_positive() in held_reduce().
	 */
	smp_mb__after_atomic();
	for (; bits; bits &= bits - 1)
		atomic_inc(&units->more[word * BITS_PER_LONG + __ffs(bits)]);
}

/*
 * One holder less of the units @bits of a word that have several. Return the others. Any
 * context, no lock.
 */
static noinline unsigned long held_reduce(struct held_units *units,
					  unsigned int word, unsigned long bits)
{
	unsigned long rest, others = 0;

	for (rest = bits; rest; rest &= rest - 1)
		if (atomic_dec_if_positive(&units->more[word * BITS_PER_LONG +
							__ffs(rest)]) < 0)
			others |= rest & -rest;
	atomic_sub(hweight_long(bits & ~others), &units->all_more);
	return others;
}

/* Take the units of @vector, whether or not others hold them. Under the lock. */
static inline void held_take(struct held_units *units,
			     const unsigned long *vector, unsigned int nr)
{
	unsigned int word;

	for (word = 0; word < BITS_TO_LONGS(nr); word++) {
		unsigned long bits = vector[word], rest;

		if (unlikely(bits & units->held[word]))
			held_take_too(units, word, bits & units->held[word]);
		units->held[word] |= bits;
		if (bits == ULONG_MAX) {
			units->whole[word]++;
			continue;
		}
		for (rest = bits; rest; rest &= rest - 1)
			units->served[word * BITS_PER_LONG + __ffs(rest)]++;
	}
}

/* Give the units @bits of a word back. Any context, no lock. */
static inline void held_give_back_word(struct held_units *units,
				       unsigned int word, unsigned long bits)
{
	/*
	 * If this is 0, the request was the only holder at that time. Who takes a unit
	 * later is counted in @more.
	 */
	if (unlikely(atomic_read(&units->all_more)))
		bits = held_reduce(units, word, bits);
	if (bits)
		atomic_long_or(bits, &units->freed[word]);
}

/* Give the units of @vector back. Any context, no lock. */
static inline void held_give_back(struct held_units *units,
				  const unsigned long *vector, unsigned int nr)
{
	unsigned int word;

	for (word = 0; word < BITS_TO_LONGS(nr); word++)
		held_give_back_word(units, word, vector[word]);
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
	unsigned int word;
	bool news = false;

	for (word = 0; word < BITS_TO_LONGS(nr); word++) {
		unsigned long bits;

		if (!atomic_long_read(&units->freed[word]))
			continue;
		news = true;
		bits = atomic_long_xchg(&units->freed[word], 0);
		if (unlikely(atomic_read(&units->all_more)))
			bits = held_reduce(units, word, bits);
		units->held[word] &= ~bits;
	}
	return news;
}

/* How often a unit was taken. Under the lock. */
static inline unsigned int held_served(const struct held_units *units,
				       unsigned int unit)
{
	return units->served[unit] + units->whole[BIT_WORD(unit)];
}

/* Requests that hold a unit. Under the lock; completions change it. */
static inline unsigned int held_by(struct held_units *units, unsigned int unit)
{
	bool held = test_bit(unit, units->held) &&
		    !(atomic_long_read(&units->freed[BIT_WORD(unit)]) & BIT_MASK(unit));

	return held + atomic_read(&units->more[unit]);
}

#endif /* _PIQ_HELD_UNITS_H */
