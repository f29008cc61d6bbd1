// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of BP's logic: the choice between writes (bp-preference.h),
 * anticipation (bp-antic.h), the table of processes (bp-process.h).
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "bp-antic.h"
#include "bp-preference.h"
#include "bp-process.h"

/* Sectors in a block here: sector 100 * b + n is in block b. */
#define BLOCK	100

/*
 * The four cases
 */

struct bp_choice {
	const char *name;
	u64 last;
	struct bp_side front;
	struct bp_side back;
	enum bp_case which;
	bool in_front;
};

/* The nearest of each side first, as {sector...}, {sectors...}. */
#define SIDE(n, ...)	{ .nr = n, __VA_ARGS__ }
#define AT(...)		.sector = { __VA_ARGS__ }
#define OF(...)		.sectors = { __VA_ARGS__ }

static const struct bp_choice bp_choices[] = {
	{ "1: both in, front larger", 5,
	  SIDE(2, AT(560, 580), OF(16, 8)), SIDE(2, AT(520, 410), OF(8, 99)),
	  BP_BOTH_IN, true },
	{ "1: both in, back larger", 5,
	  SIDE(2, AT(560, 580), OF(8, 99)), SIDE(2, AT(520, 410), OF(16, 8)),
	  BP_BOTH_IN, false },
	{ "1: tie goes to the front", 5,
	  SIDE(1, AT(560), OF(8)), SIDE(1, AT(520), OF(8)), BP_BOTH_IN, true },
	{ "2: front in, back larger", 5,
	  SIDE(2, AT(560, 600), OF(8, 8)), SIDE(2, AT(420, 410), OF(64, 8)),
	  BP_ONE_IN, true },
	{ "2: back in, front larger and a run", 5,
	  SIDE(2, AT(600, 610), OF(8, 8)), SIDE(1, AT(500), OF(1)),
	  BP_ONE_IN, false },
	{ "2: front in, no back", 5,
	  SIDE(1, AT(599), OF(1)), SIDE(0), BP_ONE_IN, true },
	{ "2: back in, no front", 5,
	  SIDE(0), SIDE(1, AT(500), OF(1)), BP_ONE_IN, false },
	{ "2: back begins in the block before, so it is not in", 5,
	  SIDE(1, AT(580), OF(1)), SIDE(1, AT(499), OF(20)), BP_ONE_IN, true },
	{ "3: front pair", 5,
	  SIDE(2, AT(610, 620), OF(8, 8)), SIDE(2, AT(490, 390), OF(64, 64)),
	  BP_ONE_RUN, true },
	{ "3: back pair", 5,
	  SIDE(2, AT(610, 700), OF(64, 64)), SIDE(2, AT(490, 480), OF(1, 1)),
	  BP_ONE_RUN, false },
	{ "3: front pair, a single one behind", 5,
	  SIDE(2, AT(610, 699), OF(1, 1)), SIDE(1, AT(490), OF(64)),
	  BP_ONE_RUN, true },
	{ "3: the second begins where the first ends", 5,
	  SIDE(2, AT(690, 710), OF(20, 1)), SIDE(2, AT(490, 390), OF(64, 64)),
	  BP_ONE_RUN, true },
	{ "4: front pair has more", 5,
	  SIDE(2, AT(610, 620), OF(8, 9)), SIDE(2, AT(490, 480), OF(8, 8)),
	  BP_TWO_RUNS, true },
	{ "4: back pair has more, though its first is smaller", 5,
	  SIDE(2, AT(610, 620), OF(8, 8)), SIDE(2, AT(490, 450), OF(1, 32)),
	  BP_TWO_RUNS, false },
	{ "4: tie goes to the front", 5,
	  SIDE(2, AT(610, 620), OF(8, 8)), SIDE(2, AT(490, 480), OF(8, 8)),
	  BP_TWO_RUNS, true },
	{ "4: the pairs may lie in any blocks", 5,
	  SIDE(2, AT(910, 920), OF(8, 8)), SIDE(2, AT(290, 280), OF(8, 9)),
	  BP_TWO_RUNS, false },
	{ "3: front pair, nothing behind", 5,
	  SIDE(2, AT(610, 620), OF(8, 8)), SIDE(0), BP_ONE_RUN, true },
	{ "3: back pair, nothing in front", 5,
	  SIDE(0), SIDE(2, AT(490, 480), OF(8, 8)), BP_ONE_RUN, false },
	{ "none: no pair on either side", 5,
	  SIDE(2, AT(610, 720), OF(8, 99)), SIDE(2, AT(490, 390), OF(9, 1)),
	  BP_NO_CASE },
	{ "none: one on each side", 5,
	  SIDE(1, AT(610), OF(8)), SIDE(1, AT(490), OF(8)), BP_NO_CASE },
	{ "none: one in front only", 5,
	  SIDE(1, AT(610), OF(8)), SIDE(0), BP_NO_CASE },
	{ "none: two behind, apart", 5,
	  SIDE(0), SIDE(2, AT(490, 390), OF(8, 8)), BP_NO_CASE },
	{ "lookahead 4: the longer run has more", 5,
	  SIDE(4, AT(610, 620, 630, 640), OF(8, 8, 8, 8)),
	  SIDE(4, AT(490, 480, 390, 380), OF(8, 8, 99, 99)),
	  BP_TWO_RUNS, true },
	{ "nothing written yet", U64_MAX,
	  SIDE(2, AT(610, 620), OF(8, 8)), SIDE(0), BP_ONE_RUN, true },
};

static void bp_choice_name(const struct bp_choice *choice, char *name)
{
	strscpy(name, choice->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bp_choice, bp_choices, bp_choice_name);

static void bp_test_choice(struct kunit *test)
{
	const struct bp_choice *choice = test->param_value;
	bool in_front;

	KUNIT_EXPECT_EQ(test, choice->which,
			bp_prefer(&choice->front, &choice->back, choice->last,
				  BLOCK, &in_front));
	if (choice->which != BP_NO_CASE)
		KUNIT_EXPECT_EQ(test, choice->in_front, in_front);
}

/* Each choice seen in a mirror: front and back change places. */
static void bp_test_mirror(struct kunit *test)
{
	const struct bp_choice *choice = test->param_value;
	struct bp_side front = { .nr = 0 }, back = { .nr = 0 };
	const u64 middle = 10 * BLOCK;
	enum bp_case which;
	bool in_front, tie;
	unsigned int i;

	if (choice->last == U64_MAX)
		return;
	/* What ends at the block's last sector in the mirror begins there. */
	for (i = 0; i < choice->front.nr; i++)
		bp_side_add(&back, middle - choice->front.sector[i] -
			    choice->front.sectors[i],
			    choice->front.sectors[i]);
	for (i = 0; i < choice->back.nr; i++)
		bp_side_add(&front, middle - choice->back.sector[i] -
			    choice->back.sectors[i], choice->back.sectors[i]);
	/* Only what lies within a block looks the same from both ends. */
	for (i = 0; i < front.nr; i++)
		if (bp_block(front.sector[i], BLOCK) !=
		    bp_block(front.sector[i] + front.sectors[i] - 1, BLOCK))
			return;
	for (i = 0; i < back.nr; i++)
		if (bp_block(back.sector[i], BLOCK) !=
		    bp_block(back.sector[i] + back.sectors[i] - 1, BLOCK))
			return;

	which = bp_prefer(&front, &back, 9 - choice->last, BLOCK, &in_front);
	KUNIT_EXPECT_EQ(test, choice->which, which);
	if (which == BP_NO_CASE)
		return;
	tie = strstr(choice->name, "tie");
	KUNIT_EXPECT_EQ(test, tie ? true : !choice->in_front, in_front);
}

/*
 * Random sequences against brute force
 */

#define BP_SET	6

struct bp_set {
	unsigned int nr;
	u64 sector[BP_SET];
	u32 sectors[BP_SET];
};

/* A generator of our own: the same numbers on each run. */
static u32 bp_random(u32 *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Some requests apart from each other, in ascending order. */
static void bp_random_set(struct bp_set *set, u32 *seed, bool within)
{
	u64 at = bp_random(seed) % BLOCK;
	unsigned int i;

	set->nr = 1 + bp_random(seed) % BP_SET;
	for (i = 0; i < set->nr; i++) {
		u32 sectors = 1 + bp_random(seed) % 20, left = BLOCK - at % BLOCK;

		set->sector[i] = at;
		set->sectors[i] = within ? min(sectors, left) : sectors;
		at += set->sectors[i] + bp_random(seed) % 90;
	}
}

static unsigned int bp_crossings(const struct bp_set *set, unsigned int i,
				 u64 *last)
{
	u64 first = bp_block(set->sector[i], BLOCK), crossed = first != *last;

	*last = bp_block(set->sector[i] + set->sectors[i] - 1, BLOCK);
	return crossed + *last - first;
}

/* The fewest crossings that any order of the requests in @left needs. */
static unsigned int bp_fewest(const struct bp_set *set, unsigned int left,
			      u64 last)
{
	unsigned int i, fewest = left ? UINT_MAX : 0;

	for (i = 0; i < set->nr; i++)
		if (left & (1U << i)) {
			u64 then = last;
			unsigned int crossed = bp_crossings(set, i, &then);

			fewest = min(fewest, crossed +
				     bp_fewest(set, left & ~(1U << i), then));
		}
	return fewest;
}

/* Those that BP's order needs; *@end is where the last write ended. */
static unsigned int bp_needs(struct kunit *test, const struct bp_set *set,
			     unsigned int left, u64 *end, unsigned int look)
{
	u64 last = bp_block(*end - 1, BLOCK);
	unsigned int crossed = 0;

	while (left) {
		struct bp_side front = { .nr = 0 }, back = { .nr = 0 };
		unsigned int ahead = set->nr, behind, choice, i;
		bool in_front, some_in = false;

		for (i = 0; i < set->nr; i++)
			if (left & (1U << i) &&
			    bp_block(set->sector[i], BLOCK) == last)
				some_in = true;
		for (i = set->nr; i-- && set->sector[i] >= *end;)
			ahead = i;
		behind = ahead;
		while (ahead < set->nr && !(left & (1U << ahead)))
			ahead++;
		while (behind && !(left & (1U << (behind - 1))))
			behind--;
		for (i = ahead; i < set->nr && front.nr < look; i++)
			if (left & (1U << i))
				bp_side_add(&front, set->sector[i],
					    set->sectors[i]);
		for (i = behind; i-- && back.nr < look;)
			if (left & (1U << i))
				bp_side_add(&back, set->sector[i],
					    set->sectors[i]);

		if (bp_prefer(&front, &back, last, BLOCK, &in_front) !=
		    BP_NO_CASE)
			choice = in_front ? ahead : behind - 1;
		else
			choice = front.nr ? ahead : __ffs(left);
		KUNIT_EXPECT_LT(test, choice, set->nr);
		KUNIT_EXPECT_TRUE(test, left & (1U << choice));
		if (choice >= set->nr || !(left & (1U << choice)))
			return UINT_MAX;
		/* It never leaves a block in which there is something to do. */
		if (some_in)
			KUNIT_EXPECT_EQ(test, last,
					bp_block(set->sector[choice], BLOCK));
		left &= ~(1U << choice);
		crossed += bp_crossings(set, choice, &last);
		*end = set->sector[choice] + set->sectors[choice];
	}
	return crossed;
}

/*
 * Requests that lie within blocks and wait all the time: no order crosses
 * fewer boundaries. With those that span blocks BP is not told how they end;
 * it can then not be better than the best.
 */
static void bp_test_brute_force(struct kunit *test)
{
	unsigned int i, spanning, needed, fewest, more = 0;
	u32 seed = 1;

	for (i = 0; i < 1000; i++) {
		unsigned int look = 1 + i % 4;
		struct bp_set set;
		u64 end;

		spanning = i % 2;
		bp_random_set(&set, &seed, !spanning);
		end = 1 + bp_random(&seed) % 500;
		fewest = bp_fewest(&set, (1U << set.nr) - 1,
				   bp_block(end - 1, BLOCK));
		needed = bp_needs(test, &set, (1U << set.nr) - 1, &end, look);
		if (spanning) {
			KUNIT_EXPECT_GE(test, needed, fewest);
			more += needed - fewest;
		} else {
			KUNIT_EXPECT_EQ(test, needed, fewest);
		}
	}
	kunit_info(test, "500 sets that span blocks: %u crossings more than the fewest",
		   more);
}

static void bp_test_open(struct kunit *test)
{
	struct bp_open open = { };
	unsigned int i;

	bp_open_init(&open);
	KUNIT_EXPECT_FALSE(test, bp_is_open(&open, BP_OPEN_MAX, 0));
	bp_written(&open, 1, 7, 7);
	bp_written(&open, 1, 7, 7);
	KUNIT_EXPECT_EQ(test, open.crossings, 1U);
	/* One that spans blocks opens each, and leaves the last one open. */
	bp_written(&open, 1, 7, 9);
	KUNIT_EXPECT_EQ(test, open.crossings, 3U);
	KUNIT_EXPECT_TRUE(test, bp_is_open(&open, 1, 9));
	KUNIT_EXPECT_FALSE(test, bp_is_open(&open, 1, 8));
	KUNIT_EXPECT_TRUE(test, bp_is_open(&open, 2, 8));
	bp_written(&open, 1, 100, 1ULL << 31);
	KUNIT_EXPECT_EQ(test, open.crossings, 4U + (1U << 31) - 100);
	KUNIT_EXPECT_TRUE(test, bp_is_open(&open, 1, 1ULL << 31));

	/* Going round as many as are kept costs nothing, one more does. */
	bp_open_init(&open);
	open.crossings = 0;
	for (i = 0; i < 100; i++)
		bp_written(&open, 4, i % 4, i % 4);
	KUNIT_EXPECT_EQ(test, open.crossings, 4U);
	for (i = 0; i < 100; i++)
		bp_written(&open, 4, i % 5, i % 5);
	KUNIT_EXPECT_EQ(test, open.crossings, 4U + 100 - 4);
	/* The oldest opened is closed, however often it was used since. */
	bp_open_init(&open);
	bp_written(&open, 2, 1, 1);
	bp_written(&open, 2, 2, 2);
	bp_written(&open, 2, 1, 1);
	bp_written(&open, 2, 3, 3);
	KUNIT_EXPECT_FALSE(test, bp_is_open(&open, 2, 1));
	KUNIT_EXPECT_TRUE(test, bp_is_open(&open, 2, 2));
}

/*
 * Anticipation
 */

static const struct bp_limits bp_soon = { .wait = 1000 };
static const struct bp_limits bp_soon_near = { .wait = 1000, .near_kb = 100 };

/* A process that came back @pause after its requests, @times times. */
static void bp_teach(struct bp_think *think, struct bp_newcomers *all,
		     u32 pause, unsigned int times)
{
	while (times--)
		bp_came_back(think, all, think->done + pause, &bp_soon);
}

static void bp_test_think_time(struct kunit *test)
{
	struct bp_newcomers all = { .soon = 256 };
	struct bp_think think = { .done = 5 };

	bp_teach(&think, &all, 100, 1);
	KUNIT_EXPECT_EQ(test, think.mean >> BP_MEAN_SHIFT, 100U);
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));

	/* One pause of an hour counts as 2000 us, and does not spoil it. */
	bp_teach(&think, &all, 3600U * 1000000, 1);
	KUNIT_EXPECT_EQ(test, think.mean >> BP_MEAN_SHIFT, 337U);
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));

	/* Several do, and some short ones make it good again. */
	bp_teach(&think, &all, 5000, 20);
	KUNIT_EXPECT_FALSE(test, bp_worth(&think, &all, &bp_soon));
	bp_teach(&think, &all, 100, 8);
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));

	/* Just as long as the limit is still worth it; nothing is without. */
	bp_teach(&think, &all, 1000, 100);
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));
	bp_teach(&think, &all, 1100, 100);
	KUNIT_EXPECT_FALSE(test, bp_worth(&think, &all, &bp_soon));
	bp_teach(&think, &all, 0, 100);
	KUNIT_EXPECT_FALSE(test, bp_worth(&think, &all, &(struct bp_limits){}));
}

static void bp_test_distance(struct kunit *test)
{
	struct bp_newcomers all = { .soon = 256 };
	struct bp_think think = { .done = 5 };
	unsigned int i;

	bp_teach(&think, &all, 100, 1);
	for (i = 0; i < 10; i++)
		bp_reads(&think, 1000 + 8 * i, 8, &bp_soon_near);
	KUNIT_EXPECT_EQ(test, think.end, 1080ULL);
	KUNIT_EXPECT_EQ(test, think.distance >> BP_MEAN_SHIFT, 0U);
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon_near));

	/* Near is within 100 KB, on either side; or anywhere. */
	KUNIT_EXPECT_TRUE(test, bp_is_near(&think, 1280, &bp_soon_near));
	KUNIT_EXPECT_FALSE(test, bp_is_near(&think, 1282, &bp_soon_near));
	KUNIT_EXPECT_TRUE(test, bp_is_near(&think, 880, &bp_soon_near));
	KUNIT_EXPECT_FALSE(test, bp_is_near(&think, 878, &bp_soon_near));
	KUNIT_EXPECT_TRUE(test, bp_is_near(&think, 1ULL << 40, &bp_soon));

	/* Who reads here and there is not waited for, unless all is near. */
	for (i = 0; i < 20; i++)
		bp_reads(&think, i % 2 ? 1ULL << 40 : 0, 8, &bp_soon_near);
	KUNIT_EXPECT_FALSE(test, bp_worth(&think, &all, &bp_soon_near));
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));
}

static void bp_test_newcomers(struct kunit *test)
{
	struct bp_newcomers all = { .soon = 256 };
	struct bp_think think = { };
	unsigned int i;

	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));
	/* Many that send one request and never come back. */
	for (i = 0; i < 20; i++) {
		think = (struct bp_think){ };
		bp_newcomer(&all, &think);
		bp_newcomer(&all, &think);
	}
	KUNIT_EXPECT_FALSE(test, bp_worth(&think, &all, &bp_soon));
	/* Those that are known are judged by themselves. */
	bp_teach(&think, &all, 100, 1);
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));
	/* Others that do come back restore the confidence in the next one. */
	for (i = 0; i < 20; i++) {
		think = (struct bp_think){ };
		bp_newcomer(&all, &think);
		bp_teach(&think, &all, 100, 3);
	}
	think = (struct bp_think){ };
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));
	KUNIT_EXPECT_LE(test, all.soon, 256U);
}

static void bp_test_wait(struct kunit *test)
{
	struct bp_newcomers all = { .soon = 256 };
	struct bp_think think = { .done = U32_MAX - 100 };
	struct bp_antic antic = { };
	u32 now = think.done + 300;	/* the clock wraps around meanwhile */

	/* What is left of the time since the completion. */
	KUNIT_EXPECT_EQ(test, 700U,
			bp_wait_begin(&antic, &think, &all, now, &bp_soon));
	KUNIT_EXPECT_PTR_EQ(test, antic.whom, &think);
	bp_wait_end(&antic, BP_HIT, now + 50);
	KUNIT_EXPECT_PTR_EQ(test, antic.whom, (struct bp_think *)NULL);
	/* One that has ended does not end once more. */
	bp_wait_end(&antic, BP_BROKEN, now + 60);
	KUNIT_EXPECT_EQ(test, antic.ended[BP_HIT], 1U);
	KUNIT_EXPECT_EQ(test, antic.ended[BP_BROKEN], 0U);
	KUNIT_EXPECT_EQ(test, antic.waited, 50ULL);

	/* Too late, or not worth it. */
	KUNIT_EXPECT_EQ(test, 0U, bp_wait_begin(&antic, &think, &all,
						think.done + 1000, &bp_soon));
	bp_teach(&think, &all, 5000, 20);
	KUNIT_EXPECT_EQ(test, 0U, bp_wait_begin(&antic, &think, &all, now,
						&bp_soon));
	KUNIT_EXPECT_PTR_EQ(test, antic.whom, (struct bp_think *)NULL);
	bp_teach(&think, &all, 0, 20);
	KUNIT_EXPECT_EQ(test, 1U, bp_wait_begin(&antic, &think, &all,
						think.done + 999, &bp_soon));
	bp_wait_end(&antic, BP_MISS, think.done + 1000);
	KUNIT_EXPECT_EQ(test, antic.ended[BP_MISS], 1U);
	KUNIT_EXPECT_EQ(test, antic.waited, 51ULL);
}

/*
 * Processes
 */

static void *bp_test_key(unsigned long number)
{
	return (void *)(number * 64 + 0x1000);
}

static void bp_test_processes(struct kunit *test)
{
	struct bp_processes *table = kunit_kzalloc(test, sizeof(*table),
						   GFP_KERNEL);
	struct bp_process *first, *busy;
	unsigned long i;

	KUNIT_ASSERT_NOT_NULL(test, table);
	KUNIT_ASSERT_EQ(test, bp_processes_init(table, 4), 0);
	KUNIT_EXPECT_PTR_EQ(test, bp_process_find(table, bp_test_key(0), 1),
			    (struct bp_process *)NULL);
	first = bp_process_get(table, bp_test_key(0), 1);
	KUNIT_EXPECT_PTR_EQ(test, first, bp_process_get(table, bp_test_key(0), 1));
	KUNIT_EXPECT_PTR_NE(test, first, bp_process_get(table, bp_test_key(0), 2));
	busy = bp_process_get(table, bp_test_key(1), 1);
	busy->queued = 1;
	first->think.known = true;

	/* Thousands come and go: who has requests stays, who has none goes. */
	for (i = 2; i < 5000; i++) {
		struct bp_process *process;

		process = bp_process_get(table, bp_test_key(i), 1);
		KUNIT_ASSERT_PTR_NE(test, process, busy);
		KUNIT_ASSERT_PTR_EQ(test, process->key, bp_test_key(i));
		KUNIT_ASSERT_FALSE(test, process->think.known);
	}
	KUNIT_EXPECT_PTR_EQ(test, busy, bp_process_find(table, bp_test_key(1), 1));
	KUNIT_EXPECT_PTR_EQ(test, bp_process_find(table, bp_test_key(0), 1),
			    (struct bp_process *)NULL);
	/* The last ones used are still known. */
	KUNIT_EXPECT_NOT_NULL(test, bp_process_find(table, bp_test_key(4999), 1));
	KUNIT_EXPECT_NOT_NULL(test, bp_process_find(table, bp_test_key(4999 -
							BP_PROCESSES + 2), 1));

	/* All busy, in the device: a newcomer gets none until one is idle. */
	for (i = 0; i < BP_PROCESSES; i++)
		atomic_set(&table->all[i].in_flight, 1);
	KUNIT_EXPECT_PTR_EQ(test, bp_process_get(table, bp_test_key(6000), 1),
			    (struct bp_process *)NULL);
	atomic_set(&table->all[7].in_flight, 0);
	KUNIT_EXPECT_PTR_EQ(test, bp_process_get(table, bp_test_key(6000), 1),
			    &table->all[7]);
	bp_processes_exit(table);
}

static struct kunit_case bp_test_cases[] = {
	KUNIT_CASE_PARAM(bp_test_choice, bp_choice_gen_params),
	KUNIT_CASE_PARAM(bp_test_mirror, bp_choice_gen_params),
	KUNIT_CASE(bp_test_brute_force),
	KUNIT_CASE(bp_test_open),
	KUNIT_CASE(bp_test_think_time),
	KUNIT_CASE(bp_test_distance),
	KUNIT_CASE(bp_test_newcomers),
	KUNIT_CASE(bp_test_wait),
	KUNIT_CASE(bp_test_processes),
	{}
};

static struct kunit_suite bp_test_suite = {
	.name = "ssd-iosched-bp",
	.test_cases = bp_test_cases,
};

kunit_test_suite(bp_test_suite);

MODULE_DESCRIPTION("KUnit tests of the BP I/O scheduler");
MODULE_LICENSE("GPL");
