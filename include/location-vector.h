/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Location vectors: the parallel units of an SSD that a piece of the logical space
 * touches.
 *
 * An SSD has channels, on each channel ways (chips), in each chip dies, in each
 * die planes. A static allocation order says how consecutive logical pages are
 * distributed: "cwdp" over the channels first, then the ways, the dies and the
 * planes, then the next row of pages. So for all 24 orders the page number modulo
 * the number of planes determines the plane.
 *
 * Physical numbering, the same whatever the order:
 *
 *	chip  = channel + channels * way
 *	plane = channel + channels * (way + chips * (die + dies * plane_in_die))
 *
 * hence chip = plane % (channels * chips) and channel = plane % channels. The
 * smallest unit that works on its own is the chip, or the plane where the drive
 * supports advanced commands; the level says which of them a vector counts.
 *
 * Worked example, page 4096 B, sectors 14896..14911: first page 14896 / 8 =
 * 1862, last page ceil(14912 / 8) - 1 = 1863; with two channels of four chips
 * (cwdp) these are units 1862 % 8 = 6 and 7: the vector {6, 7}.
 *
 * Used by the PIQ elevator and by the emulated SSD.
 * Pure: no allocation, no locking, no side effect outside the arguments.
 */
#ifndef _LOCATION_VECTOR_H
#define _LOCATION_VECTOR_H

#include <linux/bitmap.h>
#include <linux/blkdev.h>
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/types.h>

/* Planes in the largest geometry: the vector's bits. */
#define LV_MAX_UNITS	1024

/* The digits of an allocation order, in the order of the letters "cwdp". */
enum lv_digit {
	LV_CHANNEL,
	LV_WAY,
	LV_DIE,
	LV_PLANE,
	LV_DIGITS,
};

enum lv_level {
	LV_CHIP,
	LV_PLANE_LEVEL,
};

/**
 * struct lv_geometry - an SSD's shape as its logical addresses see it
 * @page_shift: log2 of the sectors (512 B) in a flash page
 * @planes: number of planes, which is the number of pages in a row
 * @units: parallel units at the chosen level: the bits of a vector
 * @identity: the unit of page n of a row is n % units (channels, then ways
 *	first), so that a vector is one or two runs of bits
 * @plane_of: plane of the n-th page of a row
 *
 * Filled by lv_init(), constant afterwards.
 */
struct lv_geometry {
	unsigned int page_shift;
	unsigned int planes;
	unsigned int units;
	bool identity;
	u16 plane_of[LV_MAX_UNITS];
};

/*
 * "cwdp" -> LV_CHANNEL, LV_WAY, LV_DIE, LV_PLANE: the digit that varies fastest
 * first. Each letter once.
 */
static inline int lv_parse_order(const char *name, u8 order[LV_DIGITS])
{
	static const char letters[] = "cwdp";
	unsigned int seen = 0;
	int i;

	if (strlen(name) != LV_DIGITS)
		return -EINVAL;
	for (i = 0; i < LV_DIGITS; i++) {
		const char *letter = strchr(letters, name[i]);

		if (!letter)
			return -EINVAL;
		order[i] = letter - letters;
		seen |= 1U << order[i];
	}
	return seen == (1U << LV_DIGITS) - 1 ? 0 : -EINVAL;
}

/* Number of units of a geometry, whose counts are at most LV_MAX_UNITS each. */
static inline u64 lv_count(const unsigned int count[LV_DIGITS],
			   enum lv_level level)
{
	u64 chips = (u64)count[LV_CHANNEL] * count[LV_WAY];

	return level == LV_CHIP ? chips :
				  chips * count[LV_DIE] * count[LV_PLANE];
}

/**
 * lv_init() - prepare a geometry
 * @g: to fill
 * @page_bytes: flash page, a power of two, at least 512
 * @count: channels in all, chips per channel, dies per chip, planes per die
 * @order: the digit that varies fastest first, from lv_parse_order()
 * @level: what a unit is
 *
 * Return: 0, or -EINVAL if a count is 0, the page is no power of two or there are
 * more than LV_MAX_UNITS planes; @g is then undefined.
 */
static inline int lv_init(struct lv_geometry *g, unsigned int page_bytes,
			  const unsigned int count[LV_DIGITS],
			  const u8 order[LV_DIGITS], enum lv_level level)
{
	/* By how much each digit increases the plane's number. */
	unsigned int weight[LV_DIGITS];
	unsigned int planes = 1, n;
	int i;

	if (page_bytes < SECTOR_SIZE || !is_power_of_2(page_bytes))
		return -EINVAL;
	for (i = 0; i < LV_DIGITS; i++) {
		if (!count[i] || count[i] > LV_MAX_UNITS)
			return -EINVAL;
		weight[i] = planes;
		planes *= count[i];
		if (planes > LV_MAX_UNITS)
			return -EINVAL;
	}

	g->page_shift = ilog2(page_bytes) - SECTOR_SHIFT;
	g->planes = planes;
	g->units = lv_count(count, level);
	g->identity = true;

	for (n = 0; n < planes; n++) {
		unsigned int rest = n, plane = 0;

		for (i = 0; i < LV_DIGITS; i++) {
			plane += rest % count[order[i]] * weight[order[i]];
			rest /= count[order[i]];
		}
		g->plane_of[n] = plane;
		if (plane % g->units != n % g->units)
			g->identity = false;
	}
	return 0;
}

/* Plane of a flash page; sets *@row to the page's place in the plane. */
static inline unsigned int lv_plane(const struct lv_geometry *g, u64 page,
				    u64 *row)
{
	u32 n;

	*row = div_u64_rem(page, g->planes, &n);
	return g->plane_of[n];
}

/**
 * struct lv_span - a span of sectors as pages of the allocation's row
 * @first: place of its first page in the row
 * @pages: number of pages, at most a whole row
 *
 * Determines the units, and fits in a word.
 */
struct lv_span {
	u16 first;
	u16 pages;
};

/* The pages that a span of sectors (512 B) touches, also in part. */
static inline struct lv_span lv_span_of(const struct lv_geometry *g, u64 sector,
					u64 sectors)
{
	struct lv_span span = {};
	u64 page, pages;
	u32 n;

	if (!sectors)
		return span;
	page = sector >> g->page_shift;
	pages = ((sector + sectors - 1) >> g->page_shift) - page + 1;
	div_u64_rem(page, g->planes, &n);
	span.first = n;
	span.pages = min_t(u64, pages, g->planes);
	return span;
}

/* Unit of the n-th page of a row. */
static inline unsigned int lv_unit(const struct lv_geometry *g, unsigned int n)
{
	return (g->identity ? n : g->plane_of[n]) % g->units;
}

/*
 * Vectors word by word. Nearly all drives have one to four words, for which calls of
 * <linux/bitmap.h> and memset() cost more than the work itself. Bits after the last
 * unit are never set.
 */

static inline void lv_zero(unsigned long *vector, unsigned int units)
{
	unsigned int i;

	for (i = 0; i < BITS_TO_LONGS(units); i++)
		WRITE_ONCE(vector[i], 0);	/* keeps the compiler from calling memset() */
}

static inline void lv_copy(unsigned long *to, const unsigned long *from,
			   unsigned int units)
{
	unsigned int i;

	for (i = 0; i < BITS_TO_LONGS(units); i++)
		to[i] = from[i];
}

/* Add the units of @vector. */
static inline void lv_or(unsigned long *to, const unsigned long *vector,
			 unsigned int units)
{
	unsigned int i;

	for (i = 0; i < BITS_TO_LONGS(units); i++)
		to[i] |= vector[i];
}

/* Remove the units of @vector. */
static inline void lv_andnot(unsigned long *from, const unsigned long *vector,
			     unsigned int units)
{
	unsigned int i;

	for (i = 0; i < BITS_TO_LONGS(units); i++)
		from[i] &= ~vector[i];
}

/* Return true if two vectors share a unit. */
static inline bool lv_meet(const unsigned long *a, const unsigned long *b,
			   unsigned int units)
{
	unsigned int i;

	for (i = 0; i < BITS_TO_LONGS(units); i++)
		if (a[i] & b[i])
			return true;
	return false;
}

/* Return true if all units of @vector are in @of. */
static inline bool lv_within(const unsigned long *vector,
			     const unsigned long *of, unsigned int units)
{
	unsigned int i;

	for (i = 0; i < BITS_TO_LONGS(units); i++)
		if (vector[i] & ~of[i])
			return false;
	return true;
}

/* Set a run of units, none of which is in @vector. */
static inline void lv_set_run(unsigned long *vector, unsigned int first,
			      unsigned int run)
{
	unsigned int bit = first % BITS_PER_LONG;

	if (run && bit + run <= BITS_PER_LONG)
		vector[BIT_WORD(first)] |= GENMASK(bit + run - 1, bit);
	else
		bitmap_set(vector, first, run);
}

/**
 * lv_set_span() - set a vector to the units that a span touches
 * @g: geometry
 * @span: from lv_span_of() with the same geometry; may have no page
 * @vector: bitmap of @g->units bits, overwritten
 *
 * A span of a whole row touches all units and is not walked.
 */
static inline void lv_set_span(const struct lv_geometry *g, struct lv_span span,
			       unsigned long *vector)
{
	unsigned int first, run, i, n = span.first;

	lv_zero(vector, g->units);
	if (span.pages >= g->planes ||
	    (g->identity && span.pages >= g->units)) {
		lv_set_run(vector, 0, g->units);
		return;
	}
	if (g->identity) {
		first = lv_unit(g, n);
		run = min(span.pages + 0U, g->units - first);
		lv_set_run(vector, first, run);
		if (span.pages > run)
			lv_set_run(vector, 0, span.pages - run);
		return;
	}
	for (i = 0; i < span.pages; i++) {
		__set_bit(lv_unit(g, n), vector);
		if (++n == g->planes)
			n = 0;
	}
}

#endif /* _LOCATION_VECTOR_H */
