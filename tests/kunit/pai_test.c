// SPDX-License-Identifier: GPL-2.0
/*
 * PAI: its arithmetic (where requests are cut, which are well-split), with random
 * merges against a model that knows only multiplication; then the elevator with
 * its pending queue and the limits that it borrows, on a device in the test's
 * hands, one by one and in random sequences against a model.
 */
#include "fake-blk.h"
#include "../../pai-iosched.c"
#include "model.h"

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
			    model_may_be(&cut, s, e), "may it be %llu..%llu?",
			    (u64)s, (u64)e);
		if (e > pai_cut_end(&cut, s))
			continue;
		start = s;
		end = e;
		if (p->align == PAI_ALIGN_PAGE)
			FAKE_ASSERT(test,
				    pai_well_split(p, start, end - start, full) ==
				    model_well_split(p, full, start, end - start),
				    "is %llu..%llu well-split?", (u64)start,
				    (u64)end);
	}
}

/* Cut a bio by what the queue is asked for: nothing is lost, nothing too long. */
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
		/* It is as long as it may be. */
		FAKE_ASSERT(test, next > at && model_may_be(&cut, at, next) &&
			    (next == end || !model_may_be(&cut, at, next + 1)),
			    "piece %llu..%llu", (u64)at, (u64)next);
		/* Behind the head, PASA's pieces begin on pages. */
		if (p->split == PAI_SPLIT_PASA && p->align == PAI_ALIGN_PAGE &&
		    cut.max >= p->page && at != start)
			FAKE_ASSERT(test, model_is_multiple(at, p->page),
				    "cut at %llu", (u64)at);
	}
}

static void pai_test_random(struct kunit *test)
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

/*
 * The elevator
 */

static struct pai_data *pai_begin(struct kunit *test)
{
	struct pai_data *pd;

	KUNIT_ASSERT_EQ(test, fake_start(&iosched_type, 1 << 20), 0);
	fake_run_works();
	pd = pai_of(iosched_of(fake.q));
	return pd;
}

static void pai_end(void)
{
	fake_finish();
	fake_run_works();
}

static void pai_write(struct kunit *test, const char *name, const char *value)
{
	KUNIT_ASSERT_EQ(test, fake_set(iosched_attrs, name, value),
			(ssize_t)strlen(value));
}

static struct pai_data *pai_begin_example(struct kunit *test)
{
	struct pai_data *pd = pai_begin(test);

	pai_write(test, "write_buffer_kb", "64");
	return pd;
}

static struct request *pai_expect(struct kunit *test, sector_t kb)
{
	struct request *rq = fake_dispatch();

	KUNIT_EXPECT_NOT_NULL(test, rq);
	if (rq)
		KUNIT_EXPECT_EQ(test, (u64)blk_rq_pos(rq), (u64)kb * KB);
	return rq;
}

static void pai_expect_none(struct kunit *test)
{
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	KUNIT_EXPECT_FALSE(test, fake_has_work());
}

/* The example on top of pai-iosched.c, to the point where all wait. */
static struct request *pai_send_example(struct kunit *test)
{
	struct request *first;

	fake_insert(REQ_OP_WRITE, 64 * KB, 64 * KB);
	fake_insert(REQ_OP_WRITE, 4 * KB, 12 * KB);
	first = pai_expect(test, 64);
	pai_expect_none(test);
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_WRITE, 0, 4 * KB, 0));
	return first;
}

static void pai_test_example(struct kunit *test)
{
	struct pai_data *pd = pai_begin_example(test);
	struct request *first;
	unsigned int runs;

	/* Until write_pending_us has passed. */
	pai_send_example(test);
	pai_expect_none(test);
	runs = fake_runs;
	fake_advance_ns(999 * NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, fake_runs, runs);
	pai_expect_none(test);
	fake_advance_ns(NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, fake_runs, runs + 1);
	pai_expect(test, 0);
	fake_expect_file(test, pai_classes_show,
			 "dir well_split closed pending aligned full aligned_percent full_percent merges promoted expired waited_us longest_us\n"
			 "read 0 0 0 0 0 0 0 0 0 0 0 0\n"
			 "write 1 0 1 2 1 100 50 1 0 1 1000 1000\n");
	pai_end();

	/* Until the first one has completed. */
	pai_begin_example(test);
	first = pai_send_example(test);
	pai_expect_none(test);
	fake_complete(first);
	pai_expect(test, 0);
	pai_end();

	/* Or at once, if whole clustered pages are enough. */
	pd = pai_begin_example(test);
	pai_write(test, "well_split", "aligned");
	runs = fake_runs;
	pai_send_example(test);
	KUNIT_EXPECT_EQ(test, pd->stats[WRITE].promoted, 1U);
	/* A bio that is merged runs nothing by itself. */
	KUNIT_EXPECT_EQ(test, fake_runs, runs + 1);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	pai_expect(test, 0);
	pai_end();
}

/* A merge may also undo it: what is too large is no longer well-split. */
static void pai_test_demoted(struct kunit *test)
{
	struct pai_data *pd = pai_begin(test);
	struct request *rq = fake_insert(REQ_OP_READ, 0, 16 * KB);

	KUNIT_EXPECT_EQ(test, pai_class_of(rq), (enum pai_class)PAI_WELL_SPLIT);
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, 16 * KB, 4 * KB, 0));
	KUNIT_EXPECT_EQ(test, pai_class_of(rq), (enum pai_class)PAI_PENDING);
	KUNIT_EXPECT_EQ(test, pd->not_pending[IOSCHED_BE][READ], 0U);
	pai_end();
}

/* Nothing waits that has nothing to wait for. */
static void pai_test_no_wait(struct kunit *test)
{
	struct pai_data *pd = pai_begin_example(test);
	struct request *rq;

	/* Small ones alone, of both directions: the oldest first. */
	fake_insert(REQ_OP_WRITE, 100, 1);
	fake_advance_ns(1);
	fake_insert(REQ_OP_READ, 200, 1);
	fake_advance_ns(1);
	fake_insert(REQ_OP_WRITE, 300, 1);
	KUNIT_EXPECT_EQ(test, (u64)blk_rq_pos(fake_dispatch()), 100ULL);
	KUNIT_EXPECT_EQ(test, (u64)blk_rq_pos(fake_dispatch()), 200ULL);
	KUNIT_EXPECT_EQ(test, (u64)blk_rq_pos(fake_dispatch()), 300ULL);

	/* One that cannot grow, and one that moves no data. */
	fake_insert(REQ_OP_WRITE, 128 * KB, 64 * KB);
	pai_expect(test, 128);
	rq = fake_insert(REQ_OP_WRITE, 1 * KB, 64 * KB);
	model_sort_alone();
	KUNIT_EXPECT_EQ(test, pai_class_of(rq), (enum pai_class)PAI_CLOSED);
	pai_expect(test, 1);
	rq = fake_alloc(REQ_OP_DISCARD, 1000 * KB, 4 * KB, 0);
	fake_insert_request(rq, false);
	pai_expect(test, 1000);
	KUNIT_EXPECT_EQ(test, pd->stats[WRITE].requests[PAI_CLOSED], 2U);
	pai_end();
}

static void pai_insert_in_turn(blk_opf_t opf, sector_t kb)
{
	fake_insert(opf, kb * KB, 1);
	fake_advance_ns(1);
}

/* What is in the clustered page of the last one goes with it, up to a point. */
static void pai_test_same_page(struct kunit *test)
{
	unsigned int i;

	pai_begin_example(test);
	pai_insert_in_turn(REQ_OP_WRITE, 4);
	pai_insert_in_turn(REQ_OP_WRITE, 16);	/* in the next page */
	pai_insert_in_turn(REQ_OP_WRITE, 0);	/* it was behind that */
	pai_insert_in_turn(REQ_OP_READ, 8);	/* the other direction */
	pai_insert_in_turn(REQ_OP_WRITE, 12);
	pai_insert_in_turn(REQ_OP_WRITE, 4);	/* once more */
	pai_expect(test, 4);
	pai_expect(test, 4);
	pai_expect(test, 12);
	pai_expect(test, 16);
	pai_expect(test, 0);
	pai_expect(test, 8);
	fake_complete_all();

	pai_insert_in_turn(REQ_OP_WRITE, 0);
	pai_insert_in_turn(REQ_OP_WRITE, 1000);
	for (i = 0; i < 2 * PAI_RUN; i++)
		pai_insert_in_turn(REQ_OP_WRITE, 0);
	for (i = 0; i < 1 + PAI_RUN; i++)
		pai_expect(test, 0);
	pai_expect(test, 1000);
	pai_expect(test, 0);
	pai_end();
}

/* A pending one is passed by well-split ones, however old it is. */
static void pai_test_passed(struct kunit *test)
{
	struct pai_data *pd = pai_begin_example(test);
	unsigned int i;

	pai_write(test, "read_pending_us", "1000");
	fake_insert(REQ_OP_WRITE, 0, 64 * KB);
	pai_expect(test, 0);
	fake_insert(REQ_OP_WRITE, 65 * KB, 4 * KB);
	fake_insert(REQ_OP_READ, 900 * KB, 1 * KB);
	for (i = 2; i < 6; i++) {
		fake_insert(REQ_OP_WRITE, 64 * i * KB, 64 * KB);
		fake_advance_ns(100 * NSEC_PER_USEC);
	}
	for (i = 2; i < 6; i++)
		pai_expect(test, 64 * i);
	pai_expect_none(test);
	/* Due now; reads and writes by age. */
	fake_advance_ns(600 * NSEC_PER_USEC);
	pai_expect(test, 900);
	pai_expect(test, 65);
	KUNIT_EXPECT_EQ(test, pd->stats[READ].expired, 1U);
	KUNIT_EXPECT_EQ(test, pd->stats[WRITE].longest,
			1000ULL * NSEC_PER_USEC);
	pai_end();
}

/* One that is due goes before all that came later, well-split or not. */
static void pai_test_due(struct kunit *test)
{
	struct pai_data *pd = pai_begin_example(test);
	unsigned int i;

	fake_advance_ns(1);
	fake_insert(REQ_OP_WRITE, 64 * KB, 64 * KB);
	fake_insert(REQ_OP_WRITE, 1 * KB, 4 * KB);
	for (i = 2; i < 22; i++) {
		fake_advance_ns(100 * NSEC_PER_USEC);
		fake_insert(REQ_OP_WRITE, 64 * i * KB, 64 * KB);
	}
	/* Older: it still goes before it. */
	pai_expect(test, 64);
	pai_expect(test, 1);
	pai_expect(test, 128);
	/* Nobody let it wait, so it was not pending to its bound. */
	KUNIT_EXPECT_EQ(test, pd->stats[WRITE].expired, 0U);
	pai_end();

	pd = pai_begin_example(test);
	fake_insert(REQ_OP_WRITE, 1 * KB, 4 * KB);
	for (i = 1; i <= 10; i++) {
		fake_insert(REQ_OP_WRITE, 64 * i * KB, 64 * KB);
		fake_insert(REQ_OP_WRITE, 64 * (i + 10) * KB, 64 * KB);
		fake_advance_ns(100 * NSEC_PER_USEC - 1);
		pai_expect(test, 64 * (i % 2 ? i / 2 + 1 : i / 2 + 10));
	}
	fake_advance_ns(10);
	pai_expect(test, 1);
	pai_expect(test, 64 * 6);
	KUNIT_EXPECT_EQ(test, pd->stats[WRITE].expired, 1U);
	KUNIT_EXPECT_EQ(test, pd->stats[WRITE].longest,
			1000ULL * NSEC_PER_USEC);
	pai_end();
}

/* What the drive gives back is not merged any more: it does not wait again. */
static void pai_test_came_back(struct kunit *test)
{
	struct pai_data *pd = pai_begin_example(test);
	struct request *small;

	small = fake_insert(REQ_OP_WRITE, 1 * KB, 4 * KB);
	model_sort_alone();
	KUNIT_EXPECT_EQ(test, pai_class_of(small), (enum pai_class)PAI_PENDING);
	pai_expect(test, 1);
	fake_insert(REQ_OP_WRITE, 64 * KB, 64 * KB);
	pai_expect(test, 64);
	fake_insert(REQ_OP_WRITE, 201 * KB, 4 * KB);
	fake_requeue(small);
	fake_insert_request(small, false);
	KUNIT_EXPECT_EQ(test, pai_class_of(small), (enum pai_class)PAI_CLOSED);
	KUNIT_EXPECT_EQ(test, pd->not_pending[IOSCHED_BE][WRITE], 1U);
	pai_expect(test, 1);
	pai_expect_none(test);
	pai_end();
}

/* Nothing grows beyond the buffer, also not where requests overlap. */
static void pai_test_overlap(struct kunit *test)
{
	struct request *over, *left;

	pai_begin(test);
	pai_write(test, "write_buffer_kb", "16");
	over = fake_insert(REQ_OP_WRITE, 16, 24);
	left = fake_insert(REQ_OP_WRITE, 0, 24);
	fake_insert(REQ_OP_WRITE, 24, 24);
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 0U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(left), 24U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(over), 24U);
	/* Eight more are just the buffer's size. */
	fake_insert(REQ_OP_WRITE, 40, 8);
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 1U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(over), 32U);
	pai_end();
}

static void pai_expect_limits(struct kunit *test, unsigned int max,
			      unsigned int boundary)
{
	fake_run_works();
	KUNIT_EXPECT_EQ(test, queue_max_sectors(fake.q), max);
	KUNIT_EXPECT_EQ(test, fake.q->limits.chunk_sectors, boundary);
}

/* What somebody else changes of the queue's limits. */
static void pai_change_limits(struct kunit *test, unsigned int max,
			      unsigned int boundary)
{
	struct queue_limits lim = iosched_limits_begin(fake.q);

	*iosched_max_sectors(&lim) = max;
	lim.chunk_sectors = boundary;
	KUNIT_ASSERT_EQ(test, iosched_limits_commit(fake.q, fake.q->disk, &lim), 0);
}

/* The queue's limits follow the settings, and are given back. */
static void pai_test_queue(struct kunit *test)
{
	unsigned int own = queue_max_sectors(fake.q);

	pai_begin(test);
	pai_expect_limits(test, own, 0);
	pai_write(test, "read_buffer_kb", "256");
	pai_write(test, "write_buffer_kb", "255");
	pai_expect_limits(test, own, 0);
	pai_write(test, "split", "pas");
	/* A moment after, not at once. */
	KUNIT_EXPECT_EQ(test, queue_max_sectors(fake.q), own);
	pai_expect_limits(test, 255 * KB, 0);
	pai_write(test, "split", "pasa");
	pai_expect_limits(test, 240 * KB, 240 * KB);
	pai_write(test, "align", "block");
	pai_expect_limits(test, 240 * KB, 4096 * KB);
	/* Never less than the block layer wants. */
	pai_write(test, "clustered_page_kb", "1");
	pai_write(test, "read_buffer_kb", "2");
	pai_expect_limits(test, 8, 4096 * KB);
	pai_end();
	pai_expect_limits(test, own, 0);

	/* Selected again before the worker came: all in order. */
	pai_begin(test);
	pai_write(test, "write_buffer_kb", "128");
	pai_write(test, "split", "pas");
	fake_run_works();
	fake_stop();
	KUNIT_ASSERT_EQ(test, fake_start(&iosched_type, 1 << 20), 0);
	pai_write(test, "write_buffer_kb", "64");
	pai_write(test, "split", "pas");
	pai_expect_limits(test, 64 * KB, 0);
	pai_end();
	pai_expect_limits(test, own, 0);
}

/* What others want of the limits stays, while PAI is there and afterwards. */
static void pai_test_queue_others(struct kunit *test)
{
	unsigned int own = queue_max_sectors(fake.q);

	/* Never looser than they are. */
	pai_change_limits(test, 64 * KB, 0);
	pai_begin(test);
	pai_write(test, "write_buffer_kb", "255");
	pai_write(test, "split", "pasa");
	pai_expect_limits(test, 64 * KB, 64 * KB);
	pai_end();
	pai_expect_limits(test, 64 * KB, 0);

	/* A device's own boundary, unless ours divides it. */
	pai_change_limits(test, own, 256 * KB);
	pai_begin(test);
	pai_write(test, "write_buffer_kb", "255");
	pai_write(test, "split", "pasa");
	pai_expect_limits(test, 240 * KB, 256 * KB);
	pai_write(test, "write_buffer_kb", "128");
	pai_expect_limits(test, 128 * KB, 128 * KB);
	pai_end();
	pai_expect_limits(test, own, 256 * KB);

	/* The user changes it meanwhile: it is theirs. */
	pai_change_limits(test, own, 0);
	pai_begin(test);
	pai_write(test, "write_buffer_kb", "255");
	pai_write(test, "split", "pas");
	pai_expect_limits(test, 255 * KB, 0);
	pai_change_limits(test, 100 * KB, 0);
	pai_end();
	pai_expect_limits(test, 100 * KB, 0);
	pai_change_limits(test, own, 0);
}

/* A device whose disk cannot be kept gets its limits back, its disk untouched. */
static void pai_test_queue_no_disk(struct kunit *test)
{
	struct gendisk *disk = fake.disk;
	unsigned int own = queue_max_sectors(fake.q);
	struct pai_data *pd = pai_begin(test);
	unsigned long pages;

	pai_write(test, "write_buffer_kb", "128");
	pai_write(test, "split", "pasa");
	pai_expect_limits(test, 128 * KB, 128 * KB);
	put_disk(pd->loan->disk);
	pd->loan->disk = NULL;
	pages = disk->bdi->io_pages;
	pai_end();
	pai_expect_limits(test, own, 0);
	KUNIT_EXPECT_EQ(test, disk->bdi->io_pages, pages);
	pai_change_limits(test, own, 0);

	/* Without a disk none are set. */
	fake.q->disk = NULL;
	KUNIT_ASSERT_EQ(test, fake_start(&iosched_type, 1 << 20), 0);
	pai_write(test, "write_buffer_kb", "128");
	pai_write(test, "split", "pasa");
	pai_expect_limits(test, own, 0);
	pai_end();
	pai_expect_limits(test, own, 0);
	fake.q->disk = disk;
}

/*
 * The model of the elevator: a request's class by the words of the paper, who is
 * next by looking at all. Sizes in sectors.
 */
static struct {
	unsigned int kb[4];		/* page, block, read and write buffer */
	unsigned int pending_us[IOSCHED_DIRS];
	unsigned int align, split, well_split;
	unsigned int own, max, boundary;	/* the queue's */
	unsigned int dispatched[IOSCHED_DIRS][PAI_CLASSES];
	unsigned int aligned[IOSCHED_DIRS], merges[IOSCHED_DIRS];
	unsigned int promoted[IOSCHED_DIRS], expired[IOSCHED_DIRS];
	u64 kept_ns;			/* when any last had to wait */
	unsigned int last_tier, last_dir;
	sector_t last_start, last_end;	/* of the one dispatched last */
	unsigned int last_page;		/* and the size of a page then */
	unsigned int in_a_row;		/* by page, not by age */
} am;

#define AM_PAGE		(am.kb[0] * KB)
#define AM_BLOCK	(am.kb[1] * KB)
#define AM_BUFFER(dir)	(am.kb[2 + (dir)] * KB)

static const char * const am_sizes[] = {
	"clustered_page_kb", "clustered_block_kb", "read_buffer_kb",
	"write_buffer_kb",
};

static const char * const am_pendings[] = {
	"read_pending_us", "write_pending_us",
};

static unsigned int am_whole(unsigned int size)
{
	return size < AM_PAGE ? size : size / AM_PAGE * AM_PAGE;
}

/* How large PAS and PASA let a request be, 0: as large as the queue does. */
static unsigned int am_split_size(void)
{
	unsigned int read = AM_BUFFER(READ), write = AM_BUFFER(WRITE);
	unsigned int size = read && (!write || read < write) ? read : write;

	if (am.split == PAI_SPLIT_NONE || !size)
		return 0;
	if (size < AM_PAGE)
		size = AM_PAGE;
	return am.split == PAI_SPLIT_PASA ? am_whole(size) : size;
}

/* The worker comes: what the queue has then. */
static void am_work(void)
{
	unsigned int size = am_split_size(), cut;

	fake_run_works();
	am.max = am.own;
	am.boundary = 0;
	if (am.split == PAI_SPLIT_NONE)
		return;
	cut = size && size < am.own ? size : am.own;
	if (am.split == PAI_SPLIT_PASA) {
		cut = am_whole(cut);
		am.boundary = am.align == PAI_ALIGN_BLOCK ? AM_BLOCK :
			      cut < AM_PAGE ? AM_PAGE : cut;
	}
	am.max = cut < 8 ? 8 : cut;
}

/* Most sectors that requests of a direction may grow to, 0: any. */
static unsigned int am_largest(unsigned int dir)
{
	unsigned int size = am_split_size(), buffer = AM_BUFFER(dir);

	return !size || (buffer && buffer < size) ? buffer : size;
}

static bool am_may_merge(unsigned int dir, sector_t start, sector_t end)
{
	unsigned int largest = am_largest(dir), boundary = 0;

	if (largest && end - start > largest)
		return false;
	if (am.split == PAI_SPLIT_PASA && am_split_size())
		boundary = am.align == PAI_ALIGN_BLOCK ? AM_BLOCK :
							 am_split_size();
	return !boundary ||
	       (u32)start / boundary == (u32)(end - 1) / boundary;
}

/* What counts as the buffer's size, 0 when there is none. */
static unsigned int am_full(unsigned int dir)
{
	unsigned int largest = am_largest(dir);

	return am_whole(largest < am.max ? largest : am.max) *
	       (largest != 0);
}

static bool am_is_aligned(unsigned int dir, u32 start)
{
	unsigned int full = am_full(dir);

	if (am.align == PAI_ALIGN_PAGE)
		return start % AM_PAGE == 0;
	start %= AM_BLOCK;
	return full ? start % full == 0 : start == 0;
}

static enum pai_class am_class(struct model_request *mr)
{
	unsigned int full = am_full(mr->dir), size = mr->end - mr->sector;
	bool suits = am.well_split == PAI_WELL_SPLIT_PAPER && full ?
		     am_whole(size) == full : size % AM_PAGE == 0;

	if (suits && am_is_aligned(mr->dir, mr->sector))
		return PAI_WELL_SPLIT;
	/* The block layer marks what it will not merge any more. */
	if (iosched_rq_mergeable(model_rq(mr)) && size < am.max &&
	    (am_may_merge(mr->dir, mr->sector, mr->end + 1) ||
	     (mr->sector && am_may_merge(mr->dir, mr->sector - 1, mr->end))))
		return PAI_PENDING;
	return PAI_CLOSED;
}

static void am_queued(struct model_request *mr)
{
	mr->priv[0] = am_class(mr);
}

static void am_grown(struct model_request *mr)
{
	bool pending = mr->priv[0] == PAI_PENDING;

	mr->priv[0] = am_class(mr);
	am.merges[mr->dir] += pending;
	am.promoted[mr->dir] += pending && mr->priv[0] == PAI_WELL_SPLIT;
}

static bool am_due(struct model_request *mr)
{
	return fake_ns >= mr->start_ns + am.pending_us[mr->dir] * 1000ULL;
}

/*
 * The oldest that does not wait, or has for long enough. Age is the place in the
 * FIFO: where all wait, nobody's time comes before the oldest one's.
 */
static struct model_request *am_next(unsigned int tier, unsigned int dir)
{
	struct model_request *mr;
	bool all_wait = true;

	model_for_each(mr)
		if (mr->state == MODEL_QUEUED && mr->tier == tier &&
		    mr->dir == dir && mr->priv[0] != PAI_PENDING)
			all_wait = false;
	mr = model_oldest(tier, dir);
	while (mr && mr->priv[0] == PAI_PENDING && !am_due(mr))
		mr = all_wait ? NULL : model_behind(tier, dir, mr->place);
	return mr;
}

static struct model_request *am_older(struct model_request *a,
				      struct model_request *b)
{
	if (!a || !b)
		return a ? a : b;
	return b->start_ns < a->start_ns ? b : a;
}

/* Anything well-split, or as good as that, that is queued or in flight? */
static bool am_any_better(unsigned int tier)
{
	struct model_request *mr;

	model_for_each(mr)
		if ((mr->state == MODEL_QUEUED && mr->tier == tier &&
		     mr->priv[0] != PAI_PENDING) ||
		    (mr->state == MODEL_IN_FLIGHT && mr->counted &&
		     mr->priv[0] == PAI_WELL_SPLIT))
			return true;
	return false;
}

/* The lowest that begins in the last one or in what is left of its last page. */
static struct model_request *am_same_page(unsigned int tier)
{
	struct model_request *mr;

	if (!am.last_page || tier != am.last_tier || am.in_a_row == 16)
		return NULL;
	mr = model_lowest(tier, am.last_dir, am.last_start, -1);
	return mr && (u32)mr->sector / am.last_page <=
		     (u32)(am.last_end - 1) / am.last_page ? mr : NULL;
}

static struct model_request *am_select(unsigned int tier)
{
	struct model_request *mr = am_same_page(tier);
	unsigned int dir;

	if (mr) {
		am.in_a_row++;
		return mr;
	}
	am.in_a_row = 0;
	if (!am_any_better(tier))
		return am_older(model_oldest(tier, READ),
				model_oldest(tier, WRITE));
	for (dir = READ; dir <= WRITE; dir++) {
		mr = model_oldest(tier, dir);
		if (mr && mr->priv[0] == PAI_PENDING && !am_due(mr))
			am.kept_ns = fake_ns;
	}
	return am_older(am_next(tier, READ), am_next(tier, WRITE));
}

static void am_dispatched(struct model_request *mr)
{
	am.last_tier = mr->tier;
	am.last_dir = mr->dir;
	am.last_start = mr->sector;
	am.last_end = mr->end;
	am.last_page = AM_PAGE;
	am.dispatched[mr->dir][mr->priv[0]]++;
	am.aligned[mr->dir] += am_is_aligned(mr->dir, mr->sector);
	am.expired[mr->dir] += mr->priv[0] == PAI_PENDING && am_due(mr) &&
			       mr->start_ns <= am.kept_ns;
}

/* A pending one of the tier whose turn it is has waited for long enough. */
static bool am_overdue(void)
{
	unsigned int tier;

	if (model_full())
		return false;
	for (tier = 0; tier < IOSCHED_TIERS; tier++) {
		if (am_next(tier, READ) || am_next(tier, WRITE))
			return true;
		if (model_count(MODEL_QUEUED, tier) ||
		    model_in_bounds(tier))
			break;
	}
	return false;
}

static unsigned int am_any_kb(unsigned int which)
{
	if (which >= 2 && fake_once_in(4))
		return 0;
	return 1 + fake_random(which == 0 ? 20 : which == 1 ? 300 : 40);
}

static void am_start(struct kunit *test)
{
	struct pai_data *pd = pai_of(iosched_of(fake.q));
	unsigned int own = am.own, i;

	memset(&am, 0, sizeof(am));
	am.own = own;
	for (i = 0; i < ARRAY_SIZE(am.kb); i++)
		model_set(test, am_sizes[i], &am.kb[i], am_any_kb(i));
	for (i = READ; i <= WRITE; i++)
		model_set(test, am_pendings[i], &am.pending_us[i],
			  fake_random(200000));
	model_choose(test, "align", &am.align, fake_random(2), pai_align_names);
	model_choose(test, "split", &am.split, fake_random(3), pai_split_names);
	model_choose(test, "well_split", &am.well_split, fake_random(2),
		     pai_well_split_names);
	pd->io.depth = 0;
	am_work();
}

static void am_disturb(struct kunit *test)
{
	unsigned int i;

	switch (fake_random(6)) {
	case 0:
		i = fake_random(ARRAY_SIZE(am.kb));
		model_set(test, am_sizes[i], &am.kb[i], am_any_kb(i));
		break;
	case 1:
		model_choose(test, "align", &am.align, fake_random(2),
			     pai_align_names);
		break;
	case 2:
		model_choose(test, "split", &am.split, fake_random(3),
			     pai_split_names);
		break;
	case 3:
		model_choose(test, "well_split", &am.well_split,
			     fake_random(2), pai_well_split_names);
		break;
	case 4:
		i = fake_random(2);
		model_set(test, am_pendings[i], &am.pending_us[i],
			  fake_random(200000));
		return;
	default:
		/* It does not look at what is queued: sorted in before. */
		model_sort_alone();
		am_work();
		return;
	}
	model_replaced();
}

static void am_compare(struct kunit *test)
{
	struct pai_data *pd = pai_of(iosched_of(fake.q));
	struct model_request *mr;
	unsigned int dir, class;

	model_for_each(mr)
		MODEL_ASSERT(test, mr->state != MODEL_QUEUED ||
			     model_rq(mr) == pd->io.alone ||
			     pai_class_of(model_rq(mr)) == mr->priv[0],
			     "%llu..%llu is of class %u, must be %ld",
			     (u64)mr->sector, (u64)mr->end,
			     pai_class_of(model_rq(mr)), mr->priv[0]);
	MODEL_ASSERT(test, queue_max_sectors(fake.q) == am.max &&
		     fake.q->limits.chunk_sectors == am.boundary,
		     "limits %u %u, not %u %u", queue_max_sectors(fake.q),
		     fake.q->limits.chunk_sectors, am.max, am.boundary);
	for (dir = READ; dir <= WRITE; dir++) {
		struct pai_stats *st = &pd->stats[dir];

		for (class = 0; class < PAI_CLASSES; class++)
			MODEL_ASSERT(test, st->requests[class] ==
				     am.dispatched[dir][class],
				     "dir %u: %u requests of class %u, must be %u",
				     dir, st->requests[class], class,
				     am.dispatched[dir][class]);
		MODEL_ASSERT(test, st->aligned == am.aligned[dir] &&
			     st->merges == am.merges[dir] &&
			     st->promoted == am.promoted[dir] &&
			     st->expired == am.expired[dir],
			     "aligned %u=%u merges %u=%u promoted %u=%u expired %u=%u",
			     st->aligned, am.aligned[dir], st->merges,
			     am.merges[dir], st->promoted, am.promoted[dir],
			     st->expired, am.expired[dir]);
	}
}

static const struct model_policy pai_model = {
	.type = &iosched_type,
	.capacity = 1 << 14,
	.spread = 32,
	.start = am_start,
	.select = am_select,
	.may_merge = am_may_merge,
	.queued = am_queued,
	.grown = am_grown,
	.dispatched = am_dispatched,
	.disturb = am_disturb,
	.overdue = am_overdue,
	.compare = am_compare,
};

static void pai_test_random_elevator(struct kunit *test)
{
	am.own = queue_max_sectors(fake.q);
	model_run(test, &pai_model);
	/* All that was borrowed of the last sequence is given back, too. */
	pai_expect_limits(test, am.own, 0);
}

static struct kunit_case pai_cases[] = {
	KUNIT_CASE(pai_test_limits),
	KUNIT_CASE(pai_test_split),
	KUNIT_CASE(pai_test_class),
	KUNIT_CASE_SLOW(pai_test_random),
	KUNIT_CASE(pai_test_example),
	KUNIT_CASE(pai_test_demoted),
	KUNIT_CASE(pai_test_no_wait),
	KUNIT_CASE(pai_test_same_page),
	KUNIT_CASE(pai_test_passed),
	KUNIT_CASE(pai_test_due),
	KUNIT_CASE(pai_test_came_back),
	KUNIT_CASE(pai_test_overlap),
	KUNIT_CASE(pai_test_queue),
	KUNIT_CASE(pai_test_queue_others),
	KUNIT_CASE(pai_test_queue_no_disk),
	KUNIT_CASE_SLOW(pai_test_random_elevator),
	{}
};

static struct kunit_suite pai_suite = {
	.name = "pai-iosched",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.test_cases = pai_cases,
};

kunit_test_suite(pai_suite);
