/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PIQ's map: a geometry, the requests that wait for its units, and the units that
 * requests in flight hold.
 *
 * rq->elv.priv[0] is NULL while a request waits outside the batches and its
 * cb_entry while it is in a batch. In flight it is an odd word: the number of the
 * map, the number of pages and the first page (lv_span). A map is replaced as a
 * whole; units of a former map that requests in flight hold are not given back.
 */
#ifndef _PIQ_MAP_H
#define _PIQ_MAP_H

#include "piq/conflict-batch.h"
#include "piq/held-units.h"
#include "iosched.h"
#include "location-vector.h"

/* The word of a request in flight. */
#define PIQ_HOLDS		BIT(0)
#define PIQ_FIRST_SHIFT		1
#define PIQ_PAGES_SHIFT		11
#define PIQ_MAP_SHIFT		22
static_assert(LV_MAX_UNITS <= 1 << (PIQ_PAGES_SHIFT - PIQ_FIRST_SHIFT));
static_assert(2 * LV_MAX_UNITS <= 1 << (PIQ_MAP_SHIFT - PIQ_PAGES_SHIFT));

/**
 * struct piq_map - a geometry and what is where in it
 * @rcu: released() may still read the map
 * @number: tells requests in flight of this map from those of former maps
 * @lv: geometry
 * @queue: batches of each tier and direction
 * @units: units that requests in flight hold
 * @writing: units last taken by a write
 * @taken: units held or claimed, for piq_select()
 * @vector: units of a request, for the function that sets it
 * @stuck: tiers of which the last piq_select() for reads and writes found none to
 *	dispatch; since then nothing but perhaps @units has changed. What time alone
 *	allows (rules 4 and 5) is found with the next unit that becomes free.
 * @batch_memory: memory of @queue
 */
struct piq_map {
	struct rcu_head rcu;
	unsigned long number;
	struct lv_geometry lv;
	struct cb_queue queue[IOSCHED_TIERS][IOSCHED_DIRS];
	struct held_units units ____cacheline_aligned_in_smp;
	DECLARE_BITMAP(writing, LV_MAX_UNITS);
	DECLARE_BITMAP(taken, LV_MAX_UNITS);
	DECLARE_BITMAP(vector, LV_MAX_UNITS);
	unsigned int stuck;
	u8 batch_memory[] __aligned(sizeof(u64));
};

IOSCHED_OWN_LINES(struct piq_map, offsetof(struct piq_map, units.more),
		  offsetof(struct piq_map, units.held));

/**
 * piq_map_alloc() - make an empty map
 * @count: channels, chips on a channel, dies in a chip, planes in a die
 * @page_kb: KB in a flash page
 * @order_name: allocation order, valid
 * @level: what a unit is
 * @window: most requests of a tier and direction in batches
 *
 * May sleep, but never waits for I/O: the queue may be frozen.
 *
 * Return: the map, which kvfree() frees; -EINVAL for a geometry that is too large
 * or a page that is no power of two, -ENOMEM.
 */
static inline struct piq_map *piq_map_alloc(const unsigned int count[LV_DIGITS],
					    unsigned int page_kb,
					    const char *order_name,
					    enum lv_level level,
					    unsigned int window)
{
	u64 planes = lv_count(count, LV_PLANE_LEVEL);
	unsigned int units = lv_count(count, level);
	unsigned int tier, dir;
	struct piq_map *map;
	u8 order[LV_DIGITS];
	size_t bytes;

	if (planes > LV_MAX_UNITS || !is_power_of_2(page_kb)) {
		pr_err("piq: %llu planes (at most %u), pages of %u KB (a power of two)\n",
		       planes, LV_MAX_UNITS, page_kb);
		return ERR_PTR(-EINVAL);
	}
	bytes = cb_queue_bytes(units, window);
	map = iosched_zalloc(struct_size(map, batch_memory,
					 bytes * IOSCHED_TIERS * IOSCHED_DIRS));
	if (!map)
		return ERR_PTR(-ENOMEM);

	lv_parse_order(order_name, order);
	lv_init(&map->lv, page_kb * SZ_1K, count, order, level);
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (dir = READ; dir <= WRITE; dir++)
			cb_queue_init(&map->queue[tier][dir], units, window,
				      map->batch_memory +
				      bytes * (tier * IOSCHED_DIRS + dir));
	return map;
}

/* Number @map, which replaces @former. */
static inline void piq_number_map(struct piq_map *map,
				  const struct piq_map *former)
{
	map->number = (former->number + 1) & (ULONG_MAX >> PIQ_MAP_SHIFT);
}

/* Return true if @rq holds units: it is in flight, or about to be. */
static inline bool piq_is_holding(struct request *rq)
{
	return (unsigned long)rq->elv.priv[0] & PIQ_HOLDS;
}

/* The entry of a request that is in a batch, or NULL. */
static inline struct cb_entry *piq_entry(struct request *rq)
{
	return piq_is_holding(rq) ? NULL : rq->elv.priv[0];
}

/*
 * The pages that a request needs. A request without data (a discard) counts as its
 * first page, so that it keeps its place in the order but does not hold the whole
 * drive.
 */
static inline struct lv_span piq_span(struct piq_map *map, struct request *rq)
{
	bool data = bio_has_data(rq->bio);

	return lv_span_of(&map->lv, blk_rq_pos(rq),
			  data ? blk_rq_sectors(rq) : 1);
}

/* Set @with to whether @vector shares a unit with reads and writes that wait or are in flight. */
static inline void piq_conflicts(struct piq_map *map, unsigned int tier,
				 const unsigned long *vector,
				 bool with[IOSCHED_DIRS])
{
	unsigned long reads = 0, writes = 0;
	unsigned int i;

	for (i = 0; i < BITS_TO_LONGS(map->lv.units); i++) {
		unsigned long shared = vector[i] & map->units.held[i];

		reads |= shared & ~map->writing[i];
		writes |= shared & map->writing[i];
	}
	with[READ] = reads || cb_conflicts(&map->queue[tier][READ], vector);
	with[WRITE] = writes || cb_conflicts(&map->queue[tier][WRITE], vector);
}

/* @rq is dispatched: hold the units of its @span, which are @vector. */
static inline void piq_hold(struct piq_map *map, struct request *rq,
			    struct lv_span span, const unsigned long *vector)
{
	held_take(&map->units, vector, map->lv.units);
	if (rq_data_dir(rq) == WRITE)
		lv_or(map->writing, vector, map->lv.units);
	else
		lv_andnot(map->writing, vector, map->lv.units);
	rq->elv.priv[0] = (void *)(PIQ_HOLDS |
				   (unsigned long)span.first << PIQ_FIRST_SHIFT |
				   (unsigned long)span.pages << PIQ_PAGES_SHIFT |
				   map->number << PIQ_MAP_SHIFT);
}

/* Not inlined, for its large stack frame: most requests are in one page. */
static noinline void piq_give_back_span(struct piq_map *map, struct lv_span span)
{
	DECLARE_BITMAP(vector, LV_MAX_UNITS);

	lv_set_span(&map->lv, span, vector);
	held_give_back(&map->units, vector, map->lv.units);
}

/*
 * Give back the units that @rq, a request in flight, holds; none if it was dispatched
 * with a former map. Any context, no lock.
 */
static inline void piq_give_back(struct piq_map *map, struct request *rq)
{
	unsigned long word = (unsigned long)rq->elv.priv[0];
	struct lv_span span = {
		.first = word >> PIQ_FIRST_SHIFT & (LV_MAX_UNITS - 1),
		.pages = word >> PIQ_PAGES_SHIFT & (2 * LV_MAX_UNITS - 1),
	};
	unsigned int unit;

	/* None are held of a buffered write (rule 8). */
	if (word >> PIQ_MAP_SHIFT != map->number || !span.pages)
		return;
	if (span.pages == 1) {
		unit = lv_unit(&map->lv, span.first);
		held_give_back_word(&map->units, BIT_WORD(unit), BIT_MASK(unit));
	} else {
		piq_give_back_span(map, span);
	}
}

#endif /* _PIQ_MAP_H */
