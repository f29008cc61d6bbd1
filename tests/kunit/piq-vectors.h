/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of location vectors: the paper's examples, then random spans against a
 * model that maps each page.
 */
#ifndef _PIQ_VECTORS_H
#define _PIQ_VECTORS_H

#include "fake-blk.h"

/* Allocate a geometry; @page is the page size in bytes. */
static struct lv_geometry *piq_geometry(struct kunit *test, u32 page,
					u32 channels, u32 ways, u32 dies,
					u32 planes, const char *order_name,
					enum lv_level level)
{
	const unsigned int count[LV_DIGITS] = { channels, ways, dies, planes };
	struct lv_geometry *g = fake_zalloc(test, sizeof(*g));
	u8 order[LV_DIGITS];

	KUNIT_ASSERT_EQ(test, 0, lv_parse_order(order_name, order));
	KUNIT_ASSERT_EQ(test, 0, lv_init(g, page, count, order, level));
	return g;
}

static void lv_set(const struct lv_geometry *g, u64 sector, u64 sectors,
		   unsigned long *vector)
{
	lv_set_span(g, lv_span_of(g, sector, sectors), vector);
}

/* Section IV.A.2 of the paper: LSN 14896, 16 sectors, pages of 4 KB. */
static void piq_vector_paper(struct kunit *test)
{
	DECLARE_BITMAP(vector, LV_MAX_UNITS);
	struct lv_geometry *g;

	g = piq_geometry(test, 4096, 2, 4, 1, 2, "cwdp", LV_CHIP);
	KUNIT_EXPECT_EQ(test, 8U, g->units);
	lv_set(g, 14896, 16, vector);
	KUNIT_EXPECT_EQ(test, BIT(6) | BIT(7), vector[0]);

	g = piq_geometry(test, 4096, 2, 4, 1, 2, "cwdp", LV_PLANE_LEVEL);
	KUNIT_EXPECT_EQ(test, 16U, g->units);
	lv_set(g, 14896, 16, vector);
	KUNIT_EXPECT_EQ(test, BIT(6) | BIT(7), vector[0]);
}

/* Formula (1) has ceil(start / page), but the first page touched is the floor. */
static void piq_vector_edges(struct kunit *test)
{
	struct lv_geometry *g = piq_geometry(test, 4096, 4, 2, 1, 1, "cwdp",
					     LV_CHIP);
	DECLARE_BITMAP(vector, LV_MAX_UNITS);

	lv_set(g, 0, 0, vector);
	KUNIT_EXPECT_EQ(test, 0UL, vector[0]);
	lv_set(g, 4, 1, vector);
	KUNIT_EXPECT_EQ(test, BIT(0), vector[0]);
	lv_set(g, 7, 2, vector);
	KUNIT_EXPECT_EQ(test, BIT(0) | BIT(1), vector[0]);
	/* Across the end of a row. */
	lv_set(g, 7 * 8, 16, vector);
	KUNIT_EXPECT_EQ(test, BIT(7) | BIT(0), vector[0]);
	/* All units but one, all, more than a row. */
	lv_set(g, 3 * 8, 7 * 8, vector);
	KUNIT_EXPECT_EQ(test, 0xffUL & ~BIT(2), vector[0]);
	lv_set(g, 3 * 8, 8 * 8, vector);
	KUNIT_EXPECT_TRUE(test, bitmap_full(vector, g->units));
	lv_set(g, (1ULL << 40) + 1, 1 << 20, vector);
	KUNIT_EXPECT_TRUE(test, bitmap_full(vector, g->units));
}

/* Invalid orders, counts and page sizes are refused. */
static void piq_vector_refused(struct kunit *test)
{
	const unsigned int none[LV_DIGITS] = { 8, 0, 1, 1 };
	const unsigned int many[LV_DIGITS] = { 32, 33, 1, 1 };
	const unsigned int most[LV_DIGITS] = { 32, 32, 1, 1 };
	struct lv_geometry *g = fake_zalloc(test, sizeof(*g));
	u8 order[LV_DIGITS];

	KUNIT_EXPECT_EQ(test, -EINVAL, lv_parse_order("cwd", order));
	KUNIT_EXPECT_EQ(test, -EINVAL, lv_parse_order("cwdd", order));
	KUNIT_EXPECT_EQ(test, -EINVAL, lv_parse_order("cwdx", order));
	KUNIT_ASSERT_EQ(test, 0, lv_parse_order("cwdp", order));
	KUNIT_EXPECT_EQ(test, -EINVAL, lv_init(g, 4096, none, order, LV_CHIP));
	KUNIT_EXPECT_EQ(test, -EINVAL, lv_init(g, 4096, many, order, LV_CHIP));
	KUNIT_EXPECT_EQ(test, -EINVAL, lv_init(g, 4095, most, order, LV_CHIP));
	KUNIT_EXPECT_EQ(test, 0, lv_init(g, 4096, most, order, LV_CHIP));
	KUNIT_EXPECT_EQ(test, 1024U, g->units);
}

/* Return the unit of a page by the paper's definition: digits in their order. */
static unsigned int piq_model_unit(const unsigned int *count, const char *order,
				   enum lv_level level, u64 page)
{
	unsigned int digit[LV_DIGITS], i;

	for (i = 0; i < LV_DIGITS; i++) {
		int which = strchr("cwdp", order[i]) - "cwdp";
		u32 rest;

		page = div_u64_rem(page, count[which], &rest);
		digit[which] = rest;
	}
	if (level == LV_CHIP)
		return digit[LV_CHANNEL] + count[LV_CHANNEL] * digit[LV_WAY];
	return digit[LV_CHANNEL] + count[LV_CHANNEL] *
	       (digit[LV_WAY] + count[LV_WAY] *
		(digit[LV_DIE] + count[LV_DIE] * digit[LV_PLANE]));
}

#define PIQ_SPAN_TRIES	50

/* Compare the vectors of random spans with the model. */
static void piq_vector_spans(struct kunit *test, const char *order,
			     enum lv_level level)
{
	const unsigned int count[LV_DIGITS] = { 4, 3, 2, 5 };
	struct lv_geometry *g = piq_geometry(test, 8192, count[0], count[1],
					     count[2], count[3], order, level);
	DECLARE_BITMAP(vector, LV_MAX_UNITS);
	DECLARE_BITMAP(model, LV_MAX_UNITS);
	unsigned int tries;

	for (tries = 0; tries < PIQ_SPAN_TRIES; tries++) {
		u64 start = fake_random(1 << 20), page;
		u32 sectors = 1 + fake_random(16 * 150);

		bitmap_zero(model, LV_MAX_UNITS);
		for (page = start / 16; page * 16 < start + sectors; page++)
			__set_bit(piq_model_unit(count, order, level, page),
				  model);
		lv_set(g, start, sectors, vector);
		if (!bitmap_equal(vector, model, g->units))
			KUNIT_FAIL(test, "seed %u: %s level %d: %llu+%u: %*pbl, must be %*pbl",
				   fake.seed, order, level, start, sectors, g->units,
				   vector, g->units, model);
	}
}

/* All 24 orders at both levels, with counts that are not powers of two. */
static void piq_vector_orders(struct kunit *test)
{
	unsigned int n, orders = 0;

	fake_sequence(fake_first_seed(test));

	for (n = 0; n < 256; n++) {
		char order[LV_DIGITS + 1] = {
			"cwdp"[n & 3], "cwdp"[n >> 2 & 3], "cwdp"[n >> 4 & 3],
			"cwdp"[n >> 6]
		};
		u8 parsed[LV_DIGITS];

		if (lv_parse_order(order, parsed))
			continue;
		orders++;
		piq_vector_spans(test, order, LV_CHIP);
		piq_vector_spans(test, order, LV_PLANE_LEVEL);
	}
	KUNIT_EXPECT_EQ(test, 24U, orders);
}

/* Section IV.A.3 and figure 5 of the paper. */
static void piq_conflict_paper(struct kunit *test)
{
	struct lv_geometry *g = piq_geometry(test, 4096, 2, 4, 1, 1, "cwdp",
					     LV_CHIP);
	const unsigned long r1 = 12, r2 = 64, r3 = 6, r4 = 96, r5 = 3;

	KUNIT_EXPECT_EQ(test, 4UL, r1 & r3);
	KUNIT_EXPECT_TRUE(test, lv_meet(&r1, &r3, g->units));
	KUNIT_EXPECT_EQ(test, 64UL, r2 & r4);
	KUNIT_EXPECT_TRUE(test, lv_meet(&r2, &r4, g->units));
	KUNIT_EXPECT_EQ(test, 2UL, r3 & r5);
	KUNIT_EXPECT_TRUE(test, lv_meet(&r3, &r5, g->units));
	KUNIT_EXPECT_FALSE(test, lv_meet(&r1, &r2, g->units));
	KUNIT_EXPECT_FALSE(test, lv_meet(&r4, &r5, g->units));
}

#endif /* _PIQ_VECTORS_H */
