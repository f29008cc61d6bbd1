// SPDX-License-Identifier: GPL-2.0
/*
 * PAI's arithmetic: where requests are cut, which are well-split, and random
 * merges against a model that knows only multiplication.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "pai-geometry.h"

#define KB	2U		/* sectors */
#define SPAN	4096U		/* sectors that the model looks at */

/* What the paper found of SSD-A to SSD-D (tables 1 to 3). */
static const struct pai_params ssd_a = {
	.page = 16 * KB, .block = 4096 * KB, .buffer = { 256 * KB, 255 * KB },
};

static const struct pai_params ssd_b = {
	.page = 128 * KB, .block = 16384 * KB, .buffer = { 0, 128 * KB },
};

static const struct pai_params ssd_c = {
	.page = 4 * KB, .block = 5120 * KB, .buffer = { 3072 * KB, 112 * KB },
};

static const struct pai_params ssd_d = {
	.page = 128 * KB, .block = 16384 * KB, .buffer = { 64 * KB, 0 },
};

static struct pai_params with(const struct pai_params *p, unsigned int align,
			      unsigned int split, unsigned int well_split)
{
	struct pai_params q = *p;

	q.align = align;
	q.split = split;
	q.well_split = well_split;
	return q;
}

struct limits_case {
	const char *name;
	const struct pai_params *ssd;
	unsigned int align, split, own;
	unsigned int max, boundary;	/* what the queue is asked for */
	unsigned int merge[2];		/* most sectors by merging */
};

static const struct limits_case limits_cases[] = {
	{ "a none", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_NONE, 512 * KB,
	  512 * KB, 0, { 256 * KB, 255 * KB } },
	{ "a pas", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_PAS, 512 * KB,
	  255 * KB, 0, { 255 * KB, 255 * KB } },
	{ "a pasa", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_PASA, 512 * KB,
	  240 * KB, 240 * KB, { 240 * KB, 240 * KB } },
	{ "a pasa by block", &ssd_a, PAI_ALIGN_BLOCK, PAI_SPLIT_PASA, 512 * KB,
	  240 * KB, 4096 * KB, { 240 * KB, 240 * KB } },
	{ "b pasa: the write buffer sets it", &ssd_b, PAI_ALIGN_PAGE,
	  PAI_SPLIT_PASA, 512 * KB, 128 * KB, 128 * KB, { 128 * KB, 128 * KB } },
	{ "c pasa", &ssd_c, PAI_ALIGN_PAGE, PAI_SPLIT_PASA, 512 * KB,
	  112 * KB, 112 * KB, { 112 * KB, 112 * KB } },
	{ "c pasa by block of 5120 KB", &ssd_c, PAI_ALIGN_BLOCK, PAI_SPLIT_PASA,
	  512 * KB, 112 * KB, 5120 * KB, { 112 * KB, 112 * KB } },
	{ "d pasa: not below a page", &ssd_d, PAI_ALIGN_PAGE, PAI_SPLIT_PASA,
	  512 * KB, 128 * KB, 128 * KB, { 64 * KB, 128 * KB } },
	{ "a on a driver of 64 KB", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_PASA,
	  64 * KB, 64 * KB, 64 * KB, { 240 * KB, 240 * KB } },
	{ "d on a driver below a page", &ssd_d, PAI_ALIGN_PAGE, PAI_SPLIT_PASA,
	  96 * KB, 96 * KB, 128 * KB, { 64 * KB, 128 * KB } },
};

static void pai_test_limits(struct kunit *test)
{
	unsigned int i, dir;

	for (i = 0; i < ARRAY_SIZE(limits_cases); i++) {
		const struct limits_case *c = &limits_cases[i];
		struct pai_params p = with(c->ssd, c->align, c->split, 0);
		struct pai_cut cut = pai_queue_cut(&p, c->own);

		KUNIT_EXPECT_EQ_MSG(test, cut.max, c->max, "%s", c->name);
		KUNIT_EXPECT_EQ_MSG(test, cut.boundary, c->boundary, "%s",
				    c->name);
		for (dir = READ; dir <= WRITE; dir++)
			KUNIT_EXPECT_EQ_MSG(test, pai_merge_cut(&p, dir).max,
					    c->merge[dir], "%s %u", c->name,
					    dir);
	}
}

struct split_case {
	const char *name;
	struct pai_cut cut;
	sector_t start, end;
	sector_t ends[8];		/* of the pieces */
};

static const struct split_case split_cases[] = {
	{ "fits", { 240 * KB, 240 * KB }, 0, 240 * KB, { 240 * KB } },
	{ "aligned", { 240 * KB, 240 * KB }, 240 * KB, 720 * KB,
	  { 480 * KB, 720 * KB } },
	{ "head, pieces, tail", { 240 * KB, 240 * KB }, 100 * KB, 1000 * KB,
	  { 240 * KB, 480 * KB, 720 * KB, 960 * KB, 1000 * KB } },
	{ "spans one boundary", { 240 * KB, 240 * KB }, 239 * KB, 241 * KB,
	  { 240 * KB, 241 * KB } },
	{ "pas: by size alone", { 255 * KB, 0 }, 4 * KB, 600 * KB,
	  { 259 * KB, 514 * KB, 600 * KB } },
	{ "blocks of 5120 KB", { 2048 * KB, 5120 * KB }, 3000 * KB, 8000 * KB,
	  { 5048 * KB, 5120 * KB, 7168 * KB, 8000 * KB } },
	{ "smaller than a page", { 4 * KB, 16 * KB }, 14 * KB, 22 * KB,
	  { 16 * KB, 20 * KB, 22 * KB } },
	{ "a single sector", { 240 * KB, 240 * KB }, 479, 480, { 480 } },
	{ "far out", { 240 * KB, 240 * KB }, 3840000000001ULL, 3840000000961ULL,
	  { 3840000000480ULL, 3840000000960ULL, 3840000000961ULL } },
	{ "no bound", { 0, 0 }, 5, 123456, { 123456 } },
};

static void pai_test_split(struct kunit *test)
{
	unsigned int i, piece;

	for (i = 0; i < ARRAY_SIZE(split_cases); i++) {
		const struct split_case *c = &split_cases[i];
		sector_t at = c->start;

		for (piece = 0; at < c->end && piece < ARRAY_SIZE(c->ends);
		     piece++) {
			at = min(pai_cut_end(&c->cut, at), c->end);
			KUNIT_EXPECT_EQ_MSG(test, (u64)at, (u64)c->ends[piece],
					    "%s, piece %u", c->name, piece);
		}
		KUNIT_EXPECT_EQ_MSG(test, (u64)at, (u64)c->end, "%s", c->name);
	}
}

struct class_case {
	const char *name;
	const struct pai_params *ssd;
	unsigned int align, split, dir, most;
	sector_t start;
	unsigned int size;
	bool paper, aligned;
};

static const struct class_case class_cases[] = {
	{ "buffer-sized", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_PASA, WRITE,
	  512 * KB, 480 * KB, 240 * KB, true, true },
	{ "page-aligned, buffer-sized", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_NONE,
	  READ, 512 * KB, 16 * KB, 256 * KB, true, true },
	{ "255 KB are 240 in whole pages", &ssd_a, PAI_ALIGN_PAGE,
	  PAI_SPLIT_NONE, WRITE, 512 * KB, 0, 255 * KB, true, false },
	{ "a page", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_PASA, WRITE, 512 * KB,
	  16 * KB, 16 * KB, false, true },
	{ "head", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_PASA, WRITE, 512 * KB,
	  100 * KB, 140 * KB, false, false },
	{ "tail", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_PASA, WRITE, 512 * KB,
	  960 * KB, 40 * KB, false, false },
	{ "unaligned, buffer-sized", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_PAS,
	  WRITE, 512 * KB, 4 * KB, 240 * KB, false, false },
	{ "too large", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_NONE, WRITE,
	  1024 * KB, 0, 512 * KB, false, true },
	{ "smaller than a page", &ssd_b, PAI_ALIGN_PAGE, PAI_SPLIT_PASA, WRITE,
	  512 * KB, 0, 64 * KB, false, false },
	{ "buffer smaller than a page", &ssd_d, PAI_ALIGN_PAGE, PAI_SPLIT_NONE,
	  READ, 512 * KB, 128 * KB, 64 * KB, true, false },
	{ "no buffer: whole pages", &ssd_d, PAI_ALIGN_PAGE, PAI_SPLIT_NONE,
	  WRITE, 512 * KB, 128 * KB, 256 * KB, true, true },
	{ "as large as the queue takes", &ssd_c, PAI_ALIGN_PAGE, PAI_SPLIT_NONE,
	  READ, 512 * KB, 4 * KB, 512 * KB, true, true },
	{ "start of a block", &ssd_c, PAI_ALIGN_BLOCK, PAI_SPLIT_PASA, WRITE,
	  512 * KB, 5120 * KB, 112 * KB, true, true },
	{ "second piece of a block", &ssd_c, PAI_ALIGN_BLOCK, PAI_SPLIT_PASA,
	  WRITE, 512 * KB, 5232 * KB, 112 * KB, true, true },
	{ "elsewhere in a block", &ssd_c, PAI_ALIGN_BLOCK, PAI_SPLIT_PASA,
	  WRITE, 512 * KB, 5124 * KB, 112 * KB, false, false },
};

static void pai_test_class(struct kunit *test)
{
	unsigned int i, how;

	for (i = 0; i < ARRAY_SIZE(class_cases); i++)
		for (how = 0; how < 2; how++) {
			const struct class_case *c = &class_cases[i];
			struct pai_params p = with(c->ssd, c->align, c->split,
						   how);
			struct pai_cut cut = pai_merge_cut(&p, c->dir);
			unsigned int full = pai_full_size(&p, &cut, c->most);

			KUNIT_EXPECT_EQ_MSG(test,
					    pai_well_split(&p, c->start,
							   c->size, full),
					    how == PAI_WELL_SPLIT_PAPER ?
					    c->paper : c->aligned,
					    "%s %u", c->name, how);
		}
}

/* Parameters that nobody would think of. */
static struct pai_params pai_any(struct rnd_state *rnd)
{
	struct pai_params p = {
		.page = 1 + prandom_u32_state(rnd) % 40,
		.block = 1 + prandom_u32_state(rnd) % 900,
		.align = prandom_u32_state(rnd) % 2,
		.split = prandom_u32_state(rnd) % 3,
		.well_split = prandom_u32_state(rnd) % 2,
	};
	unsigned int dir;

	for (dir = READ; dir <= WRITE; dir++)
		if (prandom_u32_state(rnd) % 4)
			p.buffer[dir] = 1 + prandom_u32_state(rnd) % 300;
	return p;
}

/* The model of pai_cut_end(): every sector between is a place to cut or not. */
static bool model_may_be(const struct pai_cut *cut, sector_t start, sector_t end)
{
	sector_t multiple;

	if (cut->max && end - start > cut->max)
		return false;
	if (cut->boundary)
		for (multiple = 0; multiple < end; multiple += cut->boundary)
			if (multiple > start)
				return false;
	return true;
}

static bool model_is_multiple(unsigned int value, unsigned int unit)
{
	unsigned int multiple = 0;

	while (multiple < value)
		multiple += unit;
	return multiple == value;
}

/* The model of pai_well_split() for align=page. */
static bool model_well_split(const struct pai_params *p, unsigned int full,
			     unsigned int start, unsigned int size)
{
	if (!model_is_multiple(start, p->page))
		return false;
	if (p->well_split == PAI_WELL_SPLIT_PAPER && full) {
		if (full < p->page)
			return size == full;
		return size >= full && size < full + p->page;
	}
	return model_is_multiple(size, p->page);
}

/* Grow a request by random merges at both ends as PAI would allow them. */
static void pai_grow(struct kunit *test, struct rnd_state *rnd,
		     const struct pai_params *p, unsigned int dir)
{
	struct pai_cut cut = pai_merge_cut(p, dir);
	unsigned int most = 1 + prandom_u32_state(rnd) % 500;
	unsigned int full = pai_full_size(p, &cut, most);
	sector_t start = prandom_u32_state(rnd) % SPAN;
	sector_t end = start + 1;
	unsigned int merges;

	for (merges = 0; merges < 60; merges++) {
		unsigned int more = 1 + prandom_u32_state(rnd) % 24;
		sector_t s = start, e = end;

		if (prandom_u32_state(rnd) % 2)
			e += more;
		else
			s -= min_t(sector_t, more, s);
		KUNIT_ASSERT_EQ(test, e <= pai_cut_end(&cut, s),
				model_may_be(&cut, s, e));
		if (e > pai_cut_end(&cut, s))
			continue;
		start = s;
		end = e;
		if (p->align == PAI_ALIGN_PAGE)
			KUNIT_ASSERT_EQ(test,
					pai_well_split(p, start, end - start,
						       full),
					model_well_split(p, full, start,
							 end - start));
	}
}

/* Cut a bio by what the queue is asked for: nothing is lost, nothing too long. */
static void pai_cut_up(struct kunit *test, struct rnd_state *rnd,
		       const struct pai_params *p)
{
	unsigned int own = 8 + prandom_u32_state(rnd) % 1024;
	struct pai_cut cut = pai_queue_cut(p, own);
	sector_t start = prandom_u32_state(rnd) % SPAN;
	sector_t end = start + 1 + prandom_u32_state(rnd) % SPAN;
	sector_t at = start, next;

	KUNIT_ASSERT_GT(test, cut.max, 0U);
	KUNIT_ASSERT_LE(test, cut.max, own);
	for (; at < end; at = next) {
		next = min(pai_cut_end(&cut, at), end);
		KUNIT_ASSERT_GT(test, (u64)next, (u64)at);
		KUNIT_ASSERT_TRUE(test, model_may_be(&cut, at, next));
		/* It is as long as it may be. */
		KUNIT_ASSERT_TRUE(test, next == end ||
				  !model_may_be(&cut, at, next + 1));
		/* Behind the head, PASA's pieces begin on pages. */
		if (p->split == PAI_SPLIT_PASA && p->align == PAI_ALIGN_PAGE &&
		    cut.max >= p->page && at != start)
			KUNIT_ASSERT_TRUE(test, model_is_multiple(at, p->page));
	}
}

static void pai_test_random(struct kunit *test)
{
	struct rnd_state rnd;
	unsigned int round;

	prandom_seed_state(&rnd, 712);
	for (round = 0; round < 2000; round++) {
		struct pai_params p = pai_any(&rnd);

		pai_grow(test, &rnd, &p, READ);
		pai_grow(test, &rnd, &p, WRITE);
		pai_cut_up(test, &rnd, &p);
	}
}

static struct kunit_case pai_cases[] = {
	KUNIT_CASE(pai_test_limits),
	KUNIT_CASE(pai_test_split),
	KUNIT_CASE(pai_test_class),
	KUNIT_CASE(pai_test_random),
	{}
};

static struct kunit_suite pai_suite = {
	.name = "pai",
	.test_cases = pai_cases,
};

kunit_test_suite(pai_suite);

MODULE_DESCRIPTION("Unit tests of PAI's arithmetic");
MODULE_LICENSE("GPL");
