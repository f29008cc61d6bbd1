/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of PAI's arithmetic: the limits of the queue and of merging, where bios
 * are split, which requests are well-split; random merges against a model that
 * only multiplies.
 */
#ifndef _PAI_ARITHMETIC_H
#define _PAI_ARITHMETIC_H

#include "fake-blk.h"

#define KB	2U		/* sectors */

#define SPAN	4096U		/* sectors in which random requests start */

/* The parameters of SSD-A to SSD-D (tables 1 to 3 of the paper). */
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
	unsigned int max, boundary;	/* limits of the queue */
	unsigned int merge[2];		/* most sectors of a merged request */
};

static const struct limits_case limits_cases[] = {
	{ "SSD-A, none", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_NONE, 512 * KB,
	  512 * KB, 0, { 256 * KB, 255 * KB } },
	{ "SSD-A, PAS", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_PAS, 512 * KB,
	  255 * KB, 0, { 255 * KB, 255 * KB } },
	{ "SSD-A, PASA", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_PASA, 512 * KB,
	  240 * KB, 240 * KB, { 240 * KB, 240 * KB } },
	{ "SSD-A, PASA aligned to blocks", &ssd_a, PAI_ALIGN_BLOCK, PAI_SPLIT_PASA, 512 * KB,
	  240 * KB, 4096 * KB, { 240 * KB, 240 * KB } },
	{ "SSD-B, PASA: limited by the write buffer", &ssd_b, PAI_ALIGN_PAGE,
	  PAI_SPLIT_PASA, 512 * KB, 128 * KB, 128 * KB, { 128 * KB, 128 * KB } },
	{ "SSD-C, PASA", &ssd_c, PAI_ALIGN_PAGE, PAI_SPLIT_PASA, 512 * KB,
	  112 * KB, 112 * KB, { 112 * KB, 112 * KB } },
	{ "SSD-C, PASA aligned to blocks of 5120 KB", &ssd_c, PAI_ALIGN_BLOCK, PAI_SPLIT_PASA,
	  512 * KB, 112 * KB, 5120 * KB, { 112 * KB, 112 * KB } },
	{ "SSD-D, PASA: at least a page", &ssd_d, PAI_ALIGN_PAGE, PAI_SPLIT_PASA,
	  512 * KB, 128 * KB, 128 * KB, { 64 * KB, 128 * KB } },
	{ "SSD-A, driver limit of 64 KB", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_PASA,
	  64 * KB, 64 * KB, 64 * KB, { 240 * KB, 240 * KB } },
	{ "SSD-D, driver limit below a page", &ssd_d, PAI_ALIGN_PAGE, PAI_SPLIT_PASA,
	  96 * KB, 96 * KB, 128 * KB, { 64 * KB, 128 * KB } },
};

static void pai_test_cut_sizes(struct kunit *test)
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
	sector_t ends[8];		/* ends of the pieces */
};

static const struct split_case split_cases[] = {
	{ "fits", { 240 * KB, 240 * KB }, 0, 240 * KB, { 240 * KB } },
	{ "aligned", { 240 * KB, 240 * KB }, 240 * KB, 720 * KB,
	  { 480 * KB, 720 * KB } },
	{ "head, pieces, tail", { 240 * KB, 240 * KB }, 100 * KB, 1000 * KB,
	  { 240 * KB, 480 * KB, 720 * KB, 960 * KB, 1000 * KB } },
	{ "spans one boundary", { 240 * KB, 240 * KB }, 239 * KB, 241 * KB,
	  { 240 * KB, 241 * KB } },
	{ "PAS: by size alone", { 255 * KB, 0 }, 4 * KB, 600 * KB,
	  { 259 * KB, 514 * KB, 600 * KB } },
	{ "blocks of 5120 KB", { 2048 * KB, 5120 * KB }, 3000 * KB, 8000 * KB,
	  { 5048 * KB, 5120 * KB, 7168 * KB, 8000 * KB } },
	{ "smaller than a page", { 4 * KB, 16 * KB }, 14 * KB, 22 * KB,
	  { 16 * KB, 20 * KB, 22 * KB } },
	{ "a single sector", { 240 * KB, 240 * KB }, 479, 480, { 480 } },
	{ "beyond 32 bits", { 240 * KB, 240 * KB }, 3840000000001ULL, 3840000000961ULL,
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
	{ "255 KB are 240 KB in whole pages", &ssd_a, PAI_ALIGN_PAGE,
	  PAI_SPLIT_NONE, WRITE, 512 * KB, 0, 255 * KB, true, false },
	{ "one page", &ssd_a, PAI_ALIGN_PAGE, PAI_SPLIT_PASA, WRITE, 512 * KB,
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
	{ "maximum of the queue", &ssd_c, PAI_ALIGN_PAGE, PAI_SPLIT_NONE,
	  READ, 512 * KB, 4 * KB, 512 * KB, true, true },
	{ "start of a block", &ssd_c, PAI_ALIGN_BLOCK, PAI_SPLIT_PASA, WRITE,
	  512 * KB, 5120 * KB, 112 * KB, true, true },
	{ "second piece of a block", &ssd_c, PAI_ALIGN_BLOCK, PAI_SPLIT_PASA,
	  WRITE, 512 * KB, 5232 * KB, 112 * KB, true, true },
	{ "unaligned in a block", &ssd_c, PAI_ALIGN_BLOCK, PAI_SPLIT_PASA,
	  WRITE, 512 * KB, 5124 * KB, 112 * KB, false, false },
};

static void pai_test_well_split(struct kunit *test)
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

/* Return random parameters, including unreasonable ones. */
static struct pai_params pai_any(void)
{
	struct pai_params p = {
		.page = 1 + fake_random(40),
		.block = 1 + fake_random(900),
		.align = fake_random(2),
		.split = fake_random(3),
		.well_split = fake_random(2),
	};
	unsigned int dir;

	for (dir = READ; dir <= WRITE; dir++)
		if (fake_random(4))
			p.buffer[dir] = 1 + fake_random(300);
	return p;
}

/* The model of pai_cut_end(): return true if [start, end) needs no cut. */
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

/* Extend a request by random merges at both ends, as far as PAI allows. */
static void pai_grow(struct kunit *test, const struct pai_params *p,
		     unsigned int dir)
{
	struct pai_cut cut = pai_merge_cut(p, dir);
	unsigned int most = 1 + fake_random(500);
	unsigned int full = pai_full_size(p, &cut, most);
	sector_t start = fake_random(SPAN);
	sector_t end = start + 1;
	unsigned int merges;

	for (merges = 0; merges < 60; merges++) {
		unsigned int more = 1 + fake_random(24);
		sector_t s = start, e = end;

		if (fake_random(2))
			e += more;
		else
			s -= min_t(sector_t, more, s);
		FAKE_ASSERT(test, (e <= pai_cut_end(&cut, s)) ==
			    model_may_be(&cut, s, e), "wrong limit for %llu..%llu",
			    (u64)s, (u64)e);
		if (e > pai_cut_end(&cut, s))
			continue;
		start = s;
		end = e;
		if (p->align == PAI_ALIGN_PAGE)
			FAKE_ASSERT(test,
				    pai_well_split(p, start, end - start, full) ==
				    model_well_split(p, full, start, end - start),
				    "wrong class of %llu..%llu", (u64)start,
				    (u64)end);
	}
}

/* Split a random bio by the limits of the queue, and check each piece. */
static void pai_cut_up(struct kunit *test, const struct pai_params *p)
{
	unsigned int own = 8 + fake_random(1024);
	struct pai_cut cut = pai_queue_cut(p, own);
	sector_t start = fake_random(SPAN);
	sector_t end = start + 1 + fake_random(SPAN);
	sector_t at = start, next;

	FAKE_ASSERT(test, cut.max && cut.max <= own, "at most %u", cut.max);
	for (; at < end; at = next) {
		next = min(pai_cut_end(&cut, at), end);
		/* The piece has the maximum size. */
		FAKE_ASSERT(test, next > at && model_may_be(&cut, at, next) &&
			    (next == end || !model_may_be(&cut, at, next + 1)),
			    "piece %llu..%llu", (u64)at, (u64)next);
		/* All pieces of PASA but the first start on a page. */
		if (p->split == PAI_SPLIT_PASA && p->align == PAI_ALIGN_PAGE &&
		    cut.max >= p->page && at != start)
			FAKE_ASSERT(test, model_is_multiple(at, p->page),
				    "cut at %llu", (u64)at);
	}
}

static void pai_test_random_arithmetic(struct kunit *test)
{
	u32 first = fake_first_seed(test);
	unsigned int round;

	for (round = 0; round < sequences; round++) {
		struct pai_params p;

		fake_sequence(first + round);
		p = pai_any();
		pai_grow(test, &p, READ);
		pai_grow(test, &p, WRITE);
		pai_cut_up(test, &p);
	}
}

#endif /* _PAI_ARITHMETIC_H */
