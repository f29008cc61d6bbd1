// SPDX-License-Identifier: GPL-2.0
/*
 * BP: the choice between writes, anticipation and the table of processes by
 * themselves, then its rules on a device in the test's hands.
 */
#include "fake-blk.h"

/* Who inserts is the test's choice. */
static struct task_struct bp_tasks[3];
static struct task_struct *bp_task = bp_tasks;
#undef current
#define current bp_task

#include "../../bp-iosched.c"
#include "model.h"

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

/* Some requests apart from each other, in ascending order. */
static void bp_random_set(struct bp_set *set, bool within)
{
	u64 at = fake_random(BLOCK);
	unsigned int i;

	set->nr = 1 + fake_random(BP_SET);
	for (i = 0; i < set->nr; i++) {
		u32 sectors = 1 + fake_random(20), left = BLOCK - at % BLOCK;

		set->sector[i] = at;
		set->sectors[i] = within ? min(sectors, left) : sectors;
		at += set->sectors[i] + fake_random(90);
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
	u32 first = fake_first_seed(test);

	for (i = 0; i < sequences; i++) {
		unsigned int look = 1 + fake_random(4);
		struct bp_set set;
		u64 end;

		fake_sequence(first + i);
		spanning = fake_random(2);
		bp_random_set(&set, !spanning);
		end = 1 + fake_random(500);
		fewest = bp_fewest(&set, (1U << set.nr) - 1,
				   bp_block(end - 1, BLOCK));
		needed = bp_needs(test, &set, (1U << set.nr) - 1, &end, look);
		if (spanning) {
			FAKE_ASSERT(test, needed >= fewest, "%u crossings, %u are enough",
				    needed, fewest);
			more += needed - fewest;
		} else {
			FAKE_ASSERT(test, needed == fewest, "%u crossings, %u are enough",
				    needed, fewest);
		}
	}
	kunit_info(test, "sets that span blocks: %u crossings more than the fewest",
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
	KUNIT_EXPECT_PTR_EQ(test, antic.awaited, &think);
	bp_wait_end(&antic, BP_HIT, now + 50);
	KUNIT_EXPECT_PTR_EQ(test, antic.awaited, (struct bp_think *)NULL);
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
	KUNIT_EXPECT_PTR_EQ(test, antic.awaited, (struct bp_think *)NULL);
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
	/* Not many are examined at once, but each before long. */
	list_move_tail(&table->all[7].lru, &table->lru);
	atomic_set(&table->all[7].in_flight, 0);
	for (i = BP_LOOK; i < BP_PROCESSES; i += BP_LOOK) {
		KUNIT_ASSERT_PTR_EQ(test,
				    bp_process_get(table, bp_test_key(6000), 1),
				    (struct bp_process *)NULL);
	}
	KUNIT_EXPECT_PTR_EQ(test, bp_process_get(table, bp_test_key(6000), 1),
			    &table->all[7]);
	bp_processes_exit(table);
}

/*
 * The elevator
 */

#define KB(n)	((n) * 2)	/* sectors */

static struct bp_data *bp_begin(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bp_tasks); i++)
		bp_tasks[i].pid = 100 + i;
	bp_task = bp_tasks;
	/* It takes one at a time. */
	fake.set.queue_depth = 1;
	KUNIT_ASSERT_EQ(test, fake_start(&iosched_type, KB(1 << 20)), 0);
	fake_advance_ms(10);
	return bp_of(iosched_of(fake.q));
}

static void bp_end(void)
{
	/* Nobody waits any more. */
	bp_of(iosched_of(fake.q))->antic_us = 0;
	fake_advance_ms(1000);
	fake.set.queue_depth = FAKE_REQUESTS;
	fake_finish();
}

/* A request of one of the tasks, at so many KB, of so many. */
static struct request *bp_send(unsigned int task, blk_opf_t opf, u64 at,
			       unsigned int kb)
{
	bp_task = &bp_tasks[task];
	return fake_insert(opf, KB(at), KB(kb));
}

/* What goes next is at so many KB; it is left in the device. */
static struct request *bp_next(struct kunit *test, u64 at)
{
	struct request *rq = fake_dispatch();

	KUNIT_ASSERT_NOT_NULL(test, rq);
	KUNIT_EXPECT_EQ(test, (u64)blk_rq_pos(rq), KB(at));
	return rq;
}

static void bp_expect(struct kunit *test, u64 at)
{
	fake_complete(bp_next(test, at));
}

static void bp_expect_none(struct kunit *test)
{
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	KUNIT_EXPECT_FALSE(test, fake_has_work());
}

static void bp_send_example(struct kunit *test)
{
	bp_send(0, REQ_OP_WRITE, 1496, 4);
	bp_expect(test, 1496);
	bp_send(0, REQ_OP_WRITE, 1100, 4);
	bp_send(0, REQ_OP_WRITE, 1600, 8);
	bp_send(0, REQ_OP_WRITE, 2100, 4);
	bp_send(0, REQ_OP_WRITE, 2200, 4);
}

/* The example on top of bp-iosched.c: one crossing instead of two. */
static void bp_test_example(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	static const u64 sweep[] = { 1600, 2100, 2200, 1100 };
	static const u64 preferred[] = { 1600, 1100, 2100, 2200 };
	unsigned int i;

	bp_send_example(test);
	for (i = 0; i < ARRAY_SIZE(preferred); i++)
		bp_expect(test, preferred[i]);
	KUNIT_EXPECT_EQ(test, bd->open.crossings, 2U);
	KUNIT_EXPECT_EQ(test, bd->avoided, 1U);
	KUNIT_EXPECT_EQ(test, bd->cases[BP_BOTH_IN], 1U);
	/* 1100 with nothing nearer, and 2200 behind 2100. */
	KUNIT_EXPECT_EQ(test, bd->cases[BP_ONE_IN], 2U);
	KUNIT_EXPECT_EQ(test, bd->cases[BP_ONE_RUN], 1U);
	fake_expect_file(test, bp_preference_show,
			 "crossings 2\navoided 1\nboth_in 1\none_in 2\n"
			 "one_run 1\ntwo_runs 0\nno_case 1\nin_open 0\n");
	bp_end();

	bd = bp_begin(test);
	bd->preference = 0;
	bp_send_example(test);
	for (i = 0; i < ARRAY_SIZE(sweep); i++)
		bp_expect(test, sweep[i]);
	KUNIT_EXPECT_EQ(test, bd->open.crossings, 3U);
	bp_end();
}

/* With two open blocks the other one goes before a third is opened. */
static void bp_test_open_blocks(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	unsigned int n;

	for (n = 1; n <= 2; n++) {
		bd->open_blocks = n;
		bp_send(0, REQ_OP_WRITE, 1024, 4);
		bp_expect(test, 1024);
		bp_send(0, REQ_OP_WRITE, 4096, 4);
		bp_expect(test, 4096);
		bp_send(0, REQ_OP_WRITE, 1100, 4);
		bp_send(0, REQ_OP_WRITE, 8192, 4);
		bp_send(0, REQ_OP_WRITE, 8200, 4);
		bp_expect(test, n == 1 ? 8192 : 1100);
		bp_expect(test, n == 1 ? 8200 : 8192);
		bp_expect(test, n == 1 ? 1100 : 8200);
	}
	KUNIT_EXPECT_EQ(test, bd->in_open, 1U);
	bp_end();
}

/*
 * lookahead=0: once the block is done, the one in which most wait goes, of two the
 * sweep's next; the paper's two on each side know of the nearest pair only.
 */
static void bp_test_fullest(struct kunit *test)
{
	static const u64 sent[] = {
		100, 200, 1600, 2100, 4100, 4200, 4300, 6200, 6300,
	};
	static const struct {
		unsigned int lookahead;
		u64 order[ARRAY_SIZE(sent)];
	} ways[] = {
		{ 0, { 1600, 4100, 4200, 4300, 6200, 6300, 100, 200, 2100 } },
		{ 2, { 1600, 200, 100, 2100, 4100, 4200, 4300, 6200, 6300 } },
	};
	unsigned int n, i;

	for (n = 0; n < ARRAY_SIZE(ways); n++) {
		struct bp_data *bd = bp_begin(test);

		bd->lookahead = ways[n].lookahead;
		bp_send(0, REQ_OP_WRITE, 1496, 4);
		bp_expect(test, 1496);
		for (i = 0; i < ARRAY_SIZE(sent); i++)
			bp_send(0, REQ_OP_WRITE, sent[i], 4);
		for (i = 0; i < ARRAY_SIZE(sent); i++)
			bp_expect(test, ways[n].order[i]);
		KUNIT_EXPECT_EQ(test, bd->open.crossings, 5U);
		if (!bd->lookahead)
			KUNIT_EXPECT_EQ(test, bd->cases[BP_NO_CASE], 5U);
		bp_end();
	}
}

/* The device has what it takes: nothing goes, not even what is late. */
static void bp_test_full(struct kunit *test)
{
	struct request *rq;

	bp_begin(test);
	bp_send(0, REQ_OP_READ, 0, 4);
	bp_send(0, REQ_OP_READ, 100, 4);
	rq = bp_next(test, 0);
	bp_expect_none(test);
	fake_advance_ms(1000);
	bp_expect_none(test);
	fake_complete(rq);
	KUNIT_EXPECT_GE(test, fake_runs, 1U);
	bp_expect(test, 100);
	bp_end();
}

/* Batches end in time, or when there is nothing more of their direction. */
static void bp_test_batches(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);

	bd->antic_us = 0;
	bp_send(0, REQ_OP_WRITE, 0, 4);
	bp_expect(test, 0);
	bp_send(0, REQ_OP_WRITE, 100, 4);
	bp_send(0, REQ_OP_WRITE, 200, 4);
	bp_send(0, REQ_OP_READ, 5000, 4);
	bp_send(0, REQ_OP_READ, 6000, 4);
	bp_expect(test, 100);
	fake_advance_ms(bd->write_batch_ms);
	bp_expect(test, 5000);
	fake_advance_ms(bd->read_batch_ms - 1);
	bp_expect(test, 6000);
	bp_expect(test, 200);
	bp_end();
}

/* A process reads, and writes wait for its next read: @bd in that state. */
static struct bp_data *bp_begin_wait(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	struct request *rq;

	/* The first batch of reads. */
	bp_send(1, REQ_OP_WRITE, 0, 4);
	bp_expect(test, 0);
	bp_send(0, REQ_OP_READ, 1000, 4);
	rq = bp_next(test, 1000);
	bp_send(1, REQ_OP_WRITE, 100, 4);
	bp_expect_none(test);
	fake_complete(rq);
	bp_expect_none(test);
	KUNIT_EXPECT_PTR_EQ(test, (void *)bd->antic.awaited,
			    (void *)&bp_process_find(&bd->processes, &bp_tasks[0],
						     IOSCHED_BE)->think);
	return bd;
}

static void bp_expect_ended(struct kunit *test, struct bp_data *bd,
			    enum bp_outcome outcome)
{
	unsigned int i;

	KUNIT_EXPECT_NULL(test, bd->antic.awaited);
	for (i = 0; i < BP_OUTCOMES; i++)
		KUNIT_EXPECT_EQ(test, bd->antic.ended[i], i == outcome ? 1U : 0U);
}

/* Who is waited for comes after 300 us. */
static void bp_expect_hit(struct kunit *test, struct bp_data *bd, blk_opf_t opf,
			  u64 at)
{
	fake_advance_ns(300 * NSEC_PER_USEC);
	bp_expect_none(test);
	bp_send(0, opf, at, 4);
	bp_expect_ended(test, bd, BP_HIT);
	KUNIT_EXPECT_EQ(test, bd->antic.waited, 300ULL);
	bp_expect(test, at);
}

/* Nobody comes: after antic_us, not earlier, the one at @at goes. */
static void bp_expect_miss(struct kunit *test, struct bp_data *bd, u64 at)
{
	unsigned int runs = fake_runs;

	fake_advance_ns(999 * NSEC_PER_USEC);
	bp_expect_none(test);
	KUNIT_EXPECT_EQ(test, fake_runs, runs);
	fake_advance_ns(NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, fake_runs, runs + 1);
	bp_expect(test, at);
	bp_expect_ended(test, bd, BP_MISS);
	KUNIT_EXPECT_EQ(test, bd->antic.waited, 1000ULL);
}

static void bp_test_hit(struct kunit *test)
{
	bp_expect_hit(test, bp_begin_wait(test), REQ_OP_READ, 1004);
	fake_expect_file(test, bp_anticipation_show,
			 "hits 1\nmisses 0\nbroken 0\nwaited_us 300\nnewcomers_soon 256\n");
	bp_end();
}

static void bp_test_miss(struct kunit *test)
{
	bp_expect_miss(test, bp_begin_wait(test), 100);
	bp_end();
}

static void bp_test_broken(struct kunit *test)
{
	struct bp_data *bd = bp_begin_wait(test);

	/* A read of somebody else goes at once. */
	bp_send(2, REQ_OP_READ, 9000, 4);
	bp_expect_ended(test, bd, BP_BROKEN);
	bp_expect(test, 9000);
	bp_end();

	/* A write that the process itself waits for ends it too. */
	bd = bp_begin_wait(test);
	bp_send(0, REQ_OP_WRITE | REQ_SYNC, 200, 4);
	bp_expect_ended(test, bd, BP_MISS);
	bp_end();

	/* And so does another base; the write then has its turn. */
	bd = bp_begin_wait(test);
	KUNIT_EXPECT_GT(test, fake_set(iosched_attrs, "base", "fair\n"), 0);
	bp_expect_ended(test, bd, BP_BROKEN);
	bp_expect(test, 100);
	bp_end();
}

/* No wait outlasts a deadline. */
static void bp_test_wait_deadline(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	struct request *rq;
	unsigned int runs;

	bd->antic_us = 1000000;
	bd->io.write_expire = 5;
	bp_send(1, REQ_OP_WRITE, 0, 4);
	bp_expect(test, 0);
	bp_send(0, REQ_OP_READ, 1000, 4);
	rq = bp_next(test, 1000);
	bp_send(1, REQ_OP_WRITE, 100, 4);
	fake_advance_ms(2);
	fake_complete(rq);
	bp_expect_none(test);
	fake_advance_ms(2);
	bp_expect_none(test);
	runs = fake_runs;
	fake_advance_ms(1);
	KUNIT_EXPECT_EQ(test, fake_runs, runs + 1);
	bp_expect(test, 100);
	KUNIT_EXPECT_EQ(test, bd->io.stats[IOSCHED_BE][WRITE].expired, 1U);
	bp_end();
}

/* Near: others' far reads wait, a far read is none that was waited for. */
static void bp_test_near(struct kunit *test)
{
	struct bp_data *bd = bp_begin_wait(test);

	bd->antic_near_kb = 100;
	bp_send(2, REQ_OP_READ, 9000, 4);
	bp_expect_none(test);
	bp_send(0, REQ_OP_READ, 5000, 4);
	bp_expect_ended(test, bd, BP_MISS);
	bp_expect(test, 5000);
	bp_expect_none(test);
	fake_advance_ms(1);
	bp_expect(test, 9000);
	bp_end();
}

/* A process that takes its time is not waited for. */
static void bp_test_not_worth(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	unsigned int i;

	for (i = 0; i < 10; i++) {
		bp_send(0, REQ_OP_READ, 1000 + 4 * i, 4);
		bp_expect(test, 1000 + 4 * i);
		fake_advance_ms(10);
	}
	bp_send(0, REQ_OP_READ, 2000, 4);
	bp_expect(test, 2000);
	bp_send(1, REQ_OP_WRITE, 100, 4);
	bp_expect(test, 100);
	for (i = 0; i < BP_OUTCOMES; i++)
		KUNIT_EXPECT_EQ(test, bd->antic.ended[i], 0U);
	bp_end();
}

/* A process fills a block, and a write elsewhere waits for it: @bd so. */
static struct bp_data *bp_begin_linger(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	struct request *rq;

	bp_send(0, REQ_OP_WRITE | REQ_SYNC, 0, 4);
	rq = bp_next(test, 0);
	bp_send(1, REQ_OP_WRITE | REQ_SYNC, 5000, 4);
	fake_complete(rq);
	bp_expect_none(test);
	KUNIT_EXPECT_PTR_EQ(test, (void *)bd->antic.awaited,
			    (void *)&bp_process_find(&bd->processes, &bp_tasks[0],
						     IOSCHED_BE)->think);
	return bd;
}

static void bp_test_linger_hit(struct kunit *test)
{
	struct bp_data *bd = bp_begin_linger(test);

	bp_expect_hit(test, bd, REQ_OP_WRITE | REQ_SYNC, 4);
	KUNIT_EXPECT_EQ(test, bd->open.crossings, 1U);
	/* As often as it comes back. */
	bp_expect_none(test);
	bp_end();
}

static void bp_test_linger_miss(struct kunit *test)
{
	struct bp_data *bd = bp_begin_linger(test);

	bp_expect_miss(test, bd, 5000);
	bp_end();

	/* It comes, but to leave the block; then the sweep goes on. */
	bd = bp_begin_linger(test);
	bp_send(0, REQ_OP_WRITE | REQ_SYNC, 9000, 4);
	bp_expect_ended(test, bd, BP_MISS);
	bp_expect(test, 5000);
	bp_end();
}

/* Who stays in the open block goes at once, whoever it is. */
static void bp_test_linger_broken(struct kunit *test)
{
	static const blk_opf_t sent[] = { REQ_OP_WRITE, REQ_OP_WRITE | REQ_SYNC };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sent); i++) {
		struct bp_data *bd = bp_begin_linger(test);

		bp_send(2, sent[i], 100, 4);
		bp_expect(test, 100);
		bp_expect_ended(test, bd, BP_BROKEN);
		bp_end();
	}
}

static void bp_test_linger_deadline(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	struct request *rq;
	unsigned int runs;

	bd->antic_us = 1000000;
	bd->io.write_expire = 5;
	bp_send(0, REQ_OP_WRITE | REQ_SYNC, 0, 4);
	rq = bp_next(test, 0);
	bp_send(1, REQ_OP_WRITE, 5000, 4);
	fake_advance_ms(2);
	fake_complete(rq);
	bp_expect_none(test);
	fake_advance_ms(2);
	bp_expect_none(test);
	runs = fake_runs;
	fake_advance_ms(1);
	KUNIT_EXPECT_EQ(test, fake_runs, runs + 1);
	bp_expect(test, 5000);
	bp_expect_ended(test, bd, BP_BROKEN);
	KUNIT_EXPECT_EQ(test, bd->io.stats[IOSCHED_BE][WRITE].expired, 1U);
	KUNIT_EXPECT_EQ(test, bd->antic.waited, 3000ULL);
	bp_end();
}

/* A write elsewhere goes at once when that one, in the drive, is done. */
static void bp_expect_no_linger(struct kunit *test, struct bp_data *bd,
				struct request *rq)
{
	unsigned int i;

	bp_send(1, REQ_OP_WRITE | REQ_SYNC, 500000, 4);
	fake_complete(rq);
	bp_expect(test, 500000);
	for (i = 0; i < BP_OUTCOMES; i++)
		KUNIT_EXPECT_EQ(test, bd->antic.ended[i], 0U);
	bp_end();
}

static void bp_test_linger_not_worth(struct kunit *test)
{
	static const struct {
		unsigned int step;	/* KB from one write to the next */
		unsigned int pause;	/* ms */
	} ways[] = { { 2000, 0 }, { 4, 10 } };
	struct bp_data *bd;
	struct request *rq;
	unsigned int i, n;

	/* Who mostly leaves its block, and who takes its time. */
	for (n = 0; n < ARRAY_SIZE(ways); n++) {
		bd = bp_begin(test);
		for (i = 0; i < 10; i++) {
			bp_send(0, REQ_OP_WRITE | REQ_SYNC, ways[n].step * i, 4);
			bp_expect(test, ways[n].step * i);
			fake_advance_ms(ways[n].pause);
		}
		bp_send(0, REQ_OP_WRITE | REQ_SYNC, ways[n].step * 10, 4);
		bp_expect_no_linger(test, bd, bp_next(test, ways[n].step * 10));
	}

	/* A write that nobody waits for, and one whose block has been left. */
	bd = bp_begin(test);
	bp_send(0, REQ_OP_WRITE, 0, 4);
	bp_expect_no_linger(test, bd, bp_next(test, 0));
	bd = bp_begin(test);
	fake.set.queue_depth = 2;
	bp_send(0, REQ_OP_WRITE | REQ_SYNC, 0, 4);
	rq = bp_next(test, 0);
	bp_send(2, REQ_OP_WRITE, 3000, 4);
	fake_complete(bp_next(test, 3000));
	bp_expect_no_linger(test, bd, rq);

	/* Without preference no block is better than another. */
	bd = bp_begin(test);
	bd->preference = 0;
	bp_send(0, REQ_OP_WRITE | REQ_SYNC, 0, 4);
	bp_expect_no_linger(test, bd, bp_next(test, 0));
}

/* Slices in turn; the rest of one is kept for its process, if that is worth it. */
static void bp_test_fair(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);

	KUNIT_EXPECT_GT(test, fake_set(iosched_attrs, "base", "fair"), 0);
	bp_send(0, REQ_OP_READ, 1000, 4);
	bp_send(1, REQ_OP_READ, 3000, 4);
	bp_send(0, REQ_OP_READ, 2000, 4);
	bp_send(2, REQ_OP_WRITE, 7000, 4);
	bp_expect(test, 1000);
	bp_expect(test, 2000);
	/* It is waited for, and comes. */
	bp_expect_none(test);
	bp_send(0, REQ_OP_READ, 2100, 4);
	KUNIT_EXPECT_EQ(test, bd->antic.ended[BP_HIT], 1U);
	bp_expect(test, 2100);
	/* It is waited for, and does not: the next two have their turns. */
	bp_expect_none(test);
	fake_advance_ms(1);
	bp_expect(test, 3000);
	fake_advance_ms(bd->slice_sync_ms);
	bp_expect(test, 7000);
	fake_expect_file(test, bp_known_processes_show,
			 "# the longest unused first\n"
			 "pid tier level slices queued in_flight think_us distance_kb\n"
			 "101 be 4 1 0 0 0 0\n100 be 4 1 0 0 0 0\n");

	/* A slice that is over goes to the end of the line, alone it goes on. */
	bd->antic_us = 0;
	bp_send(0, REQ_OP_READ, 1000, 4);
	bp_send(0, REQ_OP_READ, 1100, 4);
	bp_send(1, REQ_OP_READ, 3000, 4);
	bp_expect(test, 1000);
	fake_advance_ms(bd->slice_sync_ms);
	bp_expect(test, 3000);
	bp_expect(test, 1100);
	bp_end();
}

/* A queue sweeps on from where it was, wherever others have written since. */
static void bp_test_own_sweep(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);

	bd->base = BP_FAIR;
	bd->antic_us = 0;
	bp_send(0, REQ_OP_WRITE, 4096, 4);
	bp_send(1, REQ_OP_WRITE | REQ_SYNC, 20480, 4);
	bp_expect(test, 4096);
	bp_send(0, REQ_OP_WRITE, 2048, 4);
	bp_send(0, REQ_OP_WRITE, 8192, 4);
	fake_advance_ms(bd->slice_async_ms);
	bp_expect(test, 20480);
	bp_expect(test, 8192);
	bp_expect(test, 2048);
	KUNIT_EXPECT_EQ(test, bd->cases[BP_NO_CASE], 4U);
	bp_end();
}

/* Who has a request served because it is late still has its turn, in its place. */
static void bp_test_out_of_turn(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);

	bd->base = BP_FAIR;
	bd->io.read_expire = 50;
	bp_send(0, REQ_OP_READ, 1000, 4);
	bp_expect(test, 1000);
	bp_send(1, REQ_OP_READ, 3000, 4);
	bp_send(2, REQ_OP_READ, 5000, 4);
	fake_advance_ms(50);
	bp_send(0, REQ_OP_READ, 1100, 4);
	/* The oldest first, then the slice goes on. */
	bp_expect(test, 3000);
	bp_expect(test, 5000);
	bd->io.read_expire = 1000;
	bp_send(2, REQ_OP_READ, 5100, 4);
	bp_send(1, REQ_OP_READ, 3100, 4);
	bp_send(1, REQ_OP_READ, 3200, 4);
	bp_expect(test, 1100);
	/* It is over: the other two have their turns in the order they came. */
	bp_send(0, REQ_OP_READ, 1200, 4);
	fake_advance_ms(49);
	bp_expect(test, 1200);
	fake_advance_ms(1);
	bp_send(0, REQ_OP_READ, 1300, 4);
	bp_expect(test, 3100);
	bp_expect(test, 3200);
	fake_advance_ms(1);
	bp_expect(test, 5100);
	fake_advance_ms(1);
	bp_expect(test, 1300);
	KUNIT_EXPECT_EQ(test, bd->io.stats[IOSCHED_BE][READ].expired, 2U);
	bp_end();
}

/*
 * A process has its only request served because it is late, and then its turn
 * comes: @bd in that state.
 */
static struct bp_data *bp_begin_late(struct kunit *test, unsigned int antic_us)
{
	struct bp_data *bd = bp_begin(test);

	bd->base = BP_FAIR;
	bd->antic_us = antic_us;
	bd->io.read_expire = bd->slice_sync_ms;
	bp_send(0, REQ_OP_READ, 1000, 4);
	bp_expect(test, 1000);
	bp_send(1, REQ_OP_READ, 3000, 4);
	fake_advance_ms(50);
	bp_send(2, REQ_OP_READ, 5000, 4);
	fake_advance_ms(50);
	bp_expect(test, 3000);
	KUNIT_EXPECT_EQ(test, bd->io.stats[IOSCHED_BE][READ].expired, 1U);
	return bd;
}

/* It is waited for, if that is worth it. */
static void bp_test_late_at_turn(struct kunit *test)
{
	struct bp_data *bd = bp_begin_late(test, 1000);

	bp_expect_none(test);
	bp_send(1, REQ_OP_READ, 3100, 4);
	bp_expect_ended(test, bd, BP_HIT);
	bp_expect(test, 3100);
	bp_send(1, REQ_OP_READ, 3200, 4);
	bp_expect(test, 3200);
	bp_end();

	bd = bp_begin_late(test, 1000);
	bp_expect_none(test);
	fake_advance_ms(1);
	bp_expect(test, 5000);
	bp_expect_ended(test, bd, BP_MISS);
	bp_end();

	bp_begin_late(test, 0);
	bp_expect(test, 5000);
	bp_end();
}

/* A slice that was left behind is not taken for that of another tier's process. */
static void bp_test_other_tier(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	struct bp_process *process;
	struct request *rq;
	unsigned int i;

	bd->base = BP_FAIR;
	rq = fake_alloc(REQ_OP_READ, KB(1000), KB(4),
			IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 4));
	fake_insert_request(rq, false);
	process = bp_process_of(rq);
	bp_expect(test, 1000);
	KUNIT_EXPECT_PTR_EQ(test, bd->active[IOSCHED_RT], &process->queue);
	for (i = 0; i < BP_PROCESSES; i++)
		atomic_set(&bd->processes.all[i].in_flight, 1);
	atomic_set(&process->in_flight, 0);
	list_move(&process->lru, &bd->processes.lru);
	KUNIT_EXPECT_PTR_EQ(test, process,
			    bp_process_of(bp_send(1, REQ_OP_READ, 3000, 4)));
	bp_task = &bp_tasks[2];
	rq = fake_alloc(REQ_OP_READ, KB(5000), KB(4),
			IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 4));
	fake_insert_request(rq, false);
	bp_expect(test, 5000);
	bp_expect(test, 3000);
	for (i = 0; i < BP_PROCESSES; i++)
		atomic_set(&bd->processes.all[i].in_flight, 0);
	bp_end();
}

static void bp_test_levels(struct kunit *test)
{
	static const unsigned int slices[] = { 180, 160, 140, 120, 100, 80, 60, 40 };
	struct bp_data *bd = bp_begin(test);
	struct request *rq;
	unsigned int i;

	bd->base = BP_FAIR;
	for (i = 0; i < BP_LEVELS; i++) {
		struct bp_queue *queue = &bd->processes.all[0].queue;

		queue->level = i;
		KUNIT_EXPECT_EQ(test, bp_slice(bd, queue),
				msecs_to_jiffies(slices[i]));
		queue->level = BP_LEVEL_NORM;
		KUNIT_EXPECT_EQ(test, bp_slice(bd, &bd->async[0][i]),
				msecs_to_jiffies(DIV_ROUND_UP(40 * slices[i], 100)));
		rq = fake_alloc(REQ_OP_WRITE, KB(100 * i), 8,
				IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, i));
		KUNIT_EXPECT_EQ(test, bp_level(rq), i);
		fake_insert_request(rq, false);
		KUNIT_EXPECT_PTR_EQ(test, bp_queue_of(bd, rq),
				    &bd->async[IOSCHED_BE][i]);
	}
	bp_end();
}

/* Bios in front of what is queued, under both bases. */
static void bp_test_front_merge(struct kunit *test)
{
	unsigned int base;

	for (base = 0; base < 2; base++) {
		struct bp_data *bd = bp_begin(test);

		bd->base = base;
		bp_send(0, REQ_OP_READ, 1000, 4);
		bp_send(0, REQ_OP_WRITE, 2000, 4);
		KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, KB(996), KB(4), 0));
		KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_WRITE, KB(1996), KB(4), 0));
		bp_send(0, REQ_OP_WRITE | REQ_SYNC, 3000, 4);
		KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_WRITE | REQ_SYNC,
						       KB(2996), KB(4), 0));
		bp_end();
	}
}

/* No room for a process: its requests count as nobody's, and none is lost. */
static void bp_test_no_room(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	struct request *rq;
	unsigned int i;

	bd->base = BP_FAIR;
	for (i = 0; i < BP_PROCESSES; i++)
		atomic_set(&bd->processes.all[i].in_flight, 1);
	rq = bp_send(0, REQ_OP_READ, 1000, 4);
	KUNIT_EXPECT_NULL(test, bp_process_of(rq));
	bp_expect(test, 1000);
	for (i = 0; i < BP_PROCESSES; i++)
		atomic_set(&bd->processes.all[i].in_flight, 0);
	bp_end();
}

/* What comes back from the driver is the same process's, and counted once. */
static void bp_test_requeue(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	struct bp_process *process;
	struct request *rq;

	bp_send(0, REQ_OP_READ, 1000, 4);
	rq = bp_next(test, 1000);
	process = bp_process_of(rq);
	KUNIT_EXPECT_EQ(test, atomic_read(&process->in_flight), 1);
	fake_requeue(rq);
	KUNIT_EXPECT_TRUE(test, bp_process_idle(process));
	bp_task = &bp_tasks[2];
	fake_insert_request(rq, false);
	model_sort_alone();
	KUNIT_EXPECT_PTR_EQ(test, bp_process_of(rq), process);
	KUNIT_EXPECT_EQ(test, process->queued, 1U);
	KUNIT_EXPECT_GT(test, fake_set(iosched_attrs, "base", "fair"), 0);
	KUNIT_EXPECT_EQ(test, process->queued, 1U);
	KUNIT_EXPECT_EQ(test, bd->base, BP_FAIR + 0U);
	bp_expect(test, 1000);
	KUNIT_EXPECT_TRUE(test, bp_process_idle(process));
	bp_end();
}

/*
 * The model of the elevator. Queues have numbers in their tier: the shared one,
 * then one for each task, then one for each level. Who is in which, which process
 * has something left, and which write lies next to the last one, is found by
 * looking at all requests.
 */
#define BM_TASKS	ARRAY_SIZE(bp_tasks)
#define BM_SHARED	0
#define BM_TASK(task)	(1 + (task))
#define BM_LEVEL(level)	(1 + BM_TASKS + (level))
#define BM_QUEUES	BM_LEVEL(BP_LEVELS)

struct bm_queue {
	sector_t pos[IOSCHED_DIRS];
	unsigned int dir;
	unsigned long batch_end, slice_end;
	unsigned int level;
};

/* What is known of a task's requests of a tier; times in us. */
struct bm_think {
	u32 done, mean8, distance8, strays8;
	sector_t end, write_end;
	bool known, counted;
};

static struct {
	unsigned int base, preference, block_size_kb, lookahead, open_blocks;
	unsigned int antic_us, antic_near_kb;
	unsigned int batch_ms[IOSCHED_DIRS];
	unsigned int slice_sync_ms, slice_async_ms;

	struct bm_queue queue[IOSCHED_TIERS][BM_QUEUES];
	int ring[IOSCHED_TIERS][BM_QUEUES + 1];	/* ends with -1 */
	int active[IOSCHED_TIERS];		/* -1: none */
	struct bm_think think[IOSCHED_TIERS][BM_TASKS];
	u32 soon;
	struct bm_think *thinker[IOSCHED_DIRS], *whom;
	u32 since;
	u64 until;				/* ns */
	sector_t write_end;
	u64 open[BP_OPEN_MAX];			/* the last one first */
	unsigned int crossings, in_open, avoided;
	unsigned int cases[BP_CASES];
	unsigned int ended[BP_OUTCOMES];
	u64 waited;
} bm;

/* In priv[0] the queue's number, in priv[1] that of its task, from 1 on. */
static bool bm_empty(unsigned int tier, long queue, int dir)
{
	struct model_request *mr;

	model_for_each(mr)
		if (mr->state == MODEL_QUEUED && mr->tier == tier &&
		    mr->priv[0] == queue && (dir < 0 || mr->dir == dir))
			return false;
	return true;
}

static u32 bm_now(void)
{
	return fake_ns / 1000;
}

static unsigned int bm_near_kb(void)
{
	return bm.base == BP_FAIR ? 0 : bm.antic_near_kb;
}

static u32 bm_distance_kb(struct bm_think *think, sector_t sector)
{
	return (sector > think->end ? sector - think->end :
				      think->end - sector) / 2;
}

static bool bm_near(struct bm_think *think, sector_t sector)
{
	return !bm_near_kb() || bm_distance_kb(think, sector) <= bm_near_kb();
}

static struct bm_think *bm_think_of(struct model_request *mr)
{
	return &bm.think[mr->tier][mr->priv[1] - 1];
}

/* Has the process anything queued or in flight, but for @except? */
static bool bm_idle(struct bm_think *think, struct model_request *except)
{
	struct model_request *mr;

	model_for_each(mr)
		if (mr != except && mr->priv[1] && bm_think_of(mr) == think &&
		    (mr->state == MODEL_QUEUED ||
		     (mr->state == MODEL_IN_FLIGHT && mr->counted)))
			return false;
	return true;
}

static void bm_end_wait(enum bp_outcome outcome)
{
	if (!bm.whom)
		return;
	bm.ended[outcome]++;
	bm.waited += bm_now() - bm.since;
	bm.whom = NULL;
}

/* A mean in which the latest counts an eighth; no sample is beyond two limits. */
static void bm_learn(u32 *mean8, u32 sample, u32 limit)
{
	*mean8 = *mean8 - *mean8 / 8 + min(sample, 2 * limit);
}

static u64 bm_block(sector_t sector)
{
	return sector / (2 * bm.block_size_kb);
}

/* A process sends @mr: learn from it, and see if it ends a wait. */
static void bm_arrives(struct model_request *mr)
{
	struct bm_think *think = bm_think_of(mr);
	bool near = bm.whom && bm_near(bm.whom, mr->sector);
	bool back = bm_idle(think, mr), stays = false;
	u32 pause = bm_now() - think->done;

	if (mr->dir == WRITE && think->write_end)
		stays = bm_block(mr->sector) == bm_block(think->write_end - 1);
	if (!think->known && !think->counted) {
		think->counted = true;
		bm.soon -= bm.soon / 8;
	}
	if (think->done && back) {
		if (!think->known) {
			think->mean8 = 8 * min(pause, 2 * bm.antic_us);
			bm.soon += pause <= bm.antic_us ? 32 : 0;
		} else {
			bm_learn(&think->mean8, pause, bm.antic_us);
		}
		think->known = true;
	}
	if (mr->dir == READ) {
		if (think->end)
			bm_learn(&think->distance8,
				 bm_distance_kb(think, mr->sector),
				 bm_near_kb());
		think->end = mr->end;
	} else {
		if (think->write_end && back)
			bm_learn(&think->strays8, stays ? 0 : 256, 256);
		think->write_end = mr->end;
	}
	if (bm.whom == think)
		bm_end_wait(bm.base == BP_FAIR || stays ||
			    (mr->dir == READ && near) ? BP_HIT : BP_MISS);
	else if (bm.base == BP_ANTICIPATORY && mr->dir == READ && near)
		bm_end_wait(BP_BROKEN);
}

static void bm_ring_add(unsigned int tier, int queue)
{
	int *end = bm.ring[tier];

	while (*end >= 0)
		end++;
	end[0] = queue;
	end[1] = -1;
}

static void bm_ring_remove(unsigned int tier, int queue)
{
	int *at = bm.ring[tier];

	while (*at >= 0 && *at != queue)
		at++;
	for (; *at >= 0; at++)
		*at = at[1];
}

static bool bm_in_ring(unsigned int tier, int queue)
{
	int *at = bm.ring[tier];

	while (*at >= 0 && *at != queue)
		at++;
	return *at == queue;
}

static void bm_queued(struct model_request *mr)
{
	unsigned int level = mr->tier == IOSCHED_BE ? BP_LEVEL_NORM : 0;
	long queue = BM_SHARED;

	if (mr->sync && !mr->priv[1]) {
		mr->priv[1] = 1 + (bp_task - bp_tasks);
		bm_arrives(mr);
	}
	if (bm.base == BP_FAIR)
		queue = mr->priv[1] ? BM_TASK(mr->priv[1] - 1) : BM_LEVEL(level);
	mr->priv[0] = -1;
	if (bm.base == BP_FAIR && !bm_in_ring(mr->tier, queue))
		bm_ring_add(mr->tier, queue);
	mr->priv[0] = queue;
	bm.queue[mr->tier][queue].level = level;
}

static void bm_unqueued(struct model_request *mr)
{
	/* It is not its turn: it keeps its place. */
	if (bm.active[mr->tier] == mr->priv[0] &&
	    bm_empty(mr->tier, mr->priv[0], -1))
		bm_ring_remove(mr->tier, mr->priv[0]);
}

static bool bm_is_open(u64 block)
{
	unsigned int i;

	for (i = 0; i < bm.open_blocks; i++)
		if (bm.open[i] == block)
			return true;
	return false;
}

static void bm_write(struct model_request *mr)
{
	u64 block;

	for (block = bm_block(mr->sector); block <= bm_block(mr->end - 1); block++) {
		if (bm_is_open(block))
			continue;
		bm.crossings++;
		memmove(bm.open + 1, bm.open, sizeof(bm.open) - sizeof(block));
		bm.open[0] = block;
	}
	bm.write_end = mr->end;
}

static void bm_dispatched(struct model_request *mr)
{
	bm_end_wait(BP_BROKEN);
	if (mr->dir == WRITE)
		bm_write(mr);
}

static void bm_released(struct model_request *mr)
{
	if (!mr->priv[1])
		return;
	bm_think_of(mr)->done = bm_now();
	bm.thinker[mr->dir] = bm_think_of(mr);
}

/* Is @a behind @b in the order by sector? */
static bool bm_behind(struct model_request *a, struct model_request *b)
{
	return a->sector > b->sector ||
	       (a->sector == b->sector && a->sorted > b->sorted);
}

/* The write that follows @mr, or is the nearest to the last one, on a side. */
static struct model_request *bm_neighbour(unsigned int tier, long queue,
					  struct model_request *mr, bool front)
{
	struct model_request *other, *nearest = NULL;

	model_for_each(other) {
		bool in_front = other->sector >= bm.write_end;

		if (other->state != MODEL_QUEUED || other->tier != tier ||
		    other->dir != WRITE || other->priv[0] != queue ||
		    in_front != front || other == mr ||
		    (mr && bm_behind(other, mr) != front))
			continue;
		if (!nearest || bm_behind(nearest, other) == front)
			nearest = other;
	}
	return nearest;
}

/* The next write by sector, or NULL. */
static struct model_request *bm_after(unsigned int tier, long queue,
				      struct model_request *mr)
{
	struct model_request *other, *next = NULL;

	model_for_each(other)
		if (other->state == MODEL_QUEUED && other->tier == tier &&
		    other->dir == WRITE && other->priv[0] == queue &&
		    bm_behind(other, mr) && (!next || bm_behind(next, other)))
			next = other;
	return next;
}

/*
 * Of the nearest few on a side: those that share a block, one after the other.
 * How many, and their sectors.
 */
static unsigned int bm_run(unsigned int tier, long queue, bool front,
			   unsigned int *sectors)
{
	struct model_request *mr, *before;
	unsigned int run = 1;

	mr = bm_neighbour(tier, queue, NULL, front);
	*sectors = 0;
	if (!mr)
		return 0;
	*sectors = mr->end - mr->sector;
	while (run < bm.lookahead) {
		before = mr;
		mr = bm_neighbour(tier, queue, before, front);
		if (!mr || bm_block(mr->sector) != bm_block(before->end - 1))
			break;
		*sectors += mr->end - mr->sector;
		run++;
	}
	return run;
}

static struct model_request *bm_ascending(unsigned int tier, long queue,
					  unsigned int dir, sector_t from)
{
	struct model_request *mr = model_lowest(tier, dir, from, queue);

	return mr ? mr : model_lowest(tier, dir, 0, queue);
}

/* The first on a sweep of those whose block has most waiting. */
static struct model_request *bm_fullest(unsigned int tier, long queue)
{
	struct model_request *mr, *other, *best = NULL;
	unsigned int nr, most = 0;
	bool front = true;

	for (mr = bm_neighbour(tier, queue, NULL, true); ; ) {
		/* Behind: from the lowest on, that is the farthest. */
		if (!mr && !front)
			return best;
		if (!mr) {
			front = false;
			mr = model_lowest(tier, WRITE, 0, queue);
			continue;
		}
		nr = 0;
		model_for_each(other)
			nr += other->state == MODEL_QUEUED &&
			      other->tier == tier && other->dir == WRITE &&
			      other->priv[0] == queue &&
			      bm_block(other->sector) == bm_block(mr->sector);
		if (nr > most) {
			most = nr;
			best = mr;
		}
		mr = bm_after(tier, queue, mr);
	}
}

/* The paper's four cases. */
static struct model_request *bm_by_cases(unsigned int tier, long queue,
					 enum bp_case *which)
{
	struct model_request *front = bm_neighbour(tier, queue, NULL, true);
	struct model_request *back = bm_neighbour(tier, queue, NULL, false);
	unsigned int front_sectors, back_sectors, front_run, back_run;
	u64 last = bm.write_end ? bm_block(bm.write_end - 1) : U64_MAX;
	bool front_in = front && bm_block(front->sector) == last;
	bool back_in = back && bm_block(back->sector) == last;

	if (front_in && back_in) {
		*which = BP_BOTH_IN;
		return back->end - back->sector > front->end - front->sector ?
			back : front;
	}
	if (front_in || back_in) {
		*which = BP_ONE_IN;
		return front_in ? front : back;
	}
	front_run = bm_run(tier, queue, true, &front_sectors);
	back_run = bm_run(tier, queue, false, &back_sectors);
	if (front_run > 1 && back_run > 1) {
		*which = BP_TWO_RUNS;
		return back_sectors > front_sectors ? back : front;
	}
	if (front_run > 1 || back_run > 1) {
		*which = BP_ONE_RUN;
		return front_run > 1 ? front : back;
	}
	*which = BP_NO_CASE;
	if (!bm.lookahead)
		return bm_fullest(tier, queue);
	return bm_ascending(tier, queue, WRITE, bm.queue[tier][queue].pos[WRITE]);
}

/* The lowest write of the block that was opened last and has one waiting. */
static struct model_request *bm_in_open(unsigned int tier, long queue)
{
	struct model_request *mr;
	unsigned int i;

	for (i = 0; i < bm.open_blocks && bm.open[i] != U64_MAX; i++) {
		mr = model_lowest(tier, WRITE,
				  bm.open[i] * 2 * bm.block_size_kb, queue);
		if (mr && bm_block(mr->sector) == bm.open[i])
			return mr;
	}
	return NULL;
}

static struct model_request *bm_preferred(unsigned int tier, long queue)
{
	struct model_request *mr, *open = NULL, *sweep;
	enum bp_case which;

	mr = bm_by_cases(tier, queue, &which);
	if (which != BP_BOTH_IN && which != BP_ONE_IN && bm.open_blocks > 1)
		open = bm_in_open(tier, queue);
	if (open) {
		bm.in_open++;
		mr = open;
	} else {
		bm.cases[which]++;
	}
	sweep = bm_ascending(tier, queue, WRITE, bm.queue[tier][queue].pos[WRITE]);
	bm.avoided += bm_is_open(bm_block(mr->sector)) &&
		      !bm_is_open(bm_block(sweep->sector));
	return mr;
}

static unsigned int bm_direction(unsigned int tier, long queue)
{
	struct bm_queue *q = &bm.queue[tier][queue];

	if (bm_empty(tier, queue, !q->dir))
		return q->dir;
	if (bm_empty(tier, queue, q->dir) ||
	    time_after_eq(jiffies, q->batch_end))
		return !q->dir;
	return q->dir;
}

static struct model_request *bm_take(unsigned int tier, long queue)
{
	struct bm_queue *q = &bm.queue[tier][queue];
	unsigned int dir = bm_direction(tier, queue);
	struct model_request *mr;

	if (dir != q->dir)
		q->batch_end = jiffies + bm.batch_ms[dir];
	q->dir = dir;
	if (dir == WRITE && bm.preference)
		mr = bm_preferred(tier, queue);
	else
		mr = bm_ascending(tier, queue, dir, q->pos[dir]);
	q->pos[dir] = mr->end;
	return mr;
}

static bool bm_worth(struct bm_think *think)
{
	if (!think->known)
		return bm.soon >= 128;
	return think->mean8 / 8 <= bm.antic_us &&
	       (!bm_near_kb() || think->distance8 / 8 <= bm_near_kb());
}

static bool bm_wait(struct bm_think *think, unsigned int tier)
{
	struct model_request *oldest;
	u32 gone = bm_now() - think->done, left;
	unsigned int dir;

	if (bm.whom) {
		if (fake_ns < bm.until)
			return true;
		bm_end_wait(BP_MISS);
		return false;
	}
	if (!bm_idle(think, NULL) || gone >= bm.antic_us || !bm_worth(think))
		return false;
	left = bm.antic_us - gone;
	for (dir = READ; dir <= WRITE; dir++) {
		oldest = model_oldest(tier, dir);
		if (oldest)
			left = min_t(u32, left, (oldest->deadline - jiffies) * 1000);
	}
	bm.whom = think;
	bm.since = bm_now();
	bm.until = fake_ns + left * 1000ULL;
	return true;
}

static bool bm_is_of(struct bm_think *think, unsigned int tier)
{
	return think >= bm.think[tier] && think < bm.think[tier] + BM_TASKS;
}

/* Do writes, or far reads, wait for who read last? */
static bool bm_anticipates(unsigned int tier)
{
	struct bm_queue *q = &bm.queue[tier][BM_SHARED];
	struct bm_think *think = bm.thinker[READ];
	struct model_request *read;

	if (!bm_is_of(think, tier) || q->dir != READ ||
	    time_after_eq(jiffies, q->batch_end))
		return false;
	read = bm_ascending(tier, BM_SHARED, READ, q->pos[READ]);
	return !(read && bm_near(think, read->sector)) && bm_wait(think, tier);
}

/* Do writes that leave the open blocks wait for who has written in one of them? */
static bool bm_lingers(unsigned int tier)
{
	struct bm_think *think = bm.thinker[WRITE];

	return bm_is_of(think, tier) && bm.preference &&
	       bm_direction(tier, BM_SHARED) == WRITE && think->write_end &&
	       think->strays8 / 8 <= 128 &&
	       bm_is_open(bm_block(think->write_end - 1)) &&
	       !bm_in_open(tier, BM_SHARED) && bm_wait(think, tier);
}

static unsigned long bm_slice(unsigned int tier, long queue)
{
	bool task = queue < BM_LEVEL(0);
	unsigned int ms = task ? bm.slice_sync_ms : bm.slice_async_ms;

	/* At level 4 that, each level up or down a fifth more or less. */
	return DIV_ROUND_UP(ms * (9 - bm.queue[tier][queue].level), 5);
}

/* Whose slice it is, -1 to wait. */
static long bm_turn(unsigned int tier)
{
	int queue = bm.active[tier];
	bool over = queue < 0 ||
		    !time_before(jiffies, bm.queue[tier][queue].slice_end);

	for (;;) {
		if (!over && !bm_empty(tier, queue, -1))
			return queue;
		if (!over && queue < BM_LEVEL(0) &&
		    bm_wait(&bm.think[tier][queue - BM_TASK(0)], tier))
			return -1;
		/* To the end of the line, or out of it; the first one's turn. */
		if (queue >= 0) {
			bm_ring_remove(tier, queue);
			if (!bm_empty(tier, queue, -1))
				bm_ring_add(tier, queue);
		}
		bm_end_wait(BP_BROKEN);
		queue = bm.ring[tier][0];
		bm.queue[tier][queue].slice_end = jiffies + bm_slice(tier, queue);
		bm.active[tier] = queue;
		over = false;
	}
}

static struct model_request *bm_select(unsigned int tier)
{
	long queue = BM_SHARED;

	if (bm.base == BP_FAIR)
		queue = bm_turn(tier);
	else if (bm_anticipates(tier) || bm_lingers(tier))
		queue = -1;
	return queue < 0 ? NULL : bm_take(tier, queue);
}

static void bm_start(struct kunit *test)
{
	unsigned int tier, i;

	memset(&bm, 0, sizeof(bm));
	memset(bm.open, 0xff, sizeof(bm.open));
	memset(bm.ring, 0xff, sizeof(bm.ring));
	memset(bm.active, 0xff, sizeof(bm.active));
	bm.soon = 256;
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (i = 0; i < BM_QUEUES; i++)
			bm.queue[tier][i].batch_end = jiffies;
	if (fake_random(2))
		model_choose(test, "base", &bm.base, BP_FAIR, bp_bases);
	model_set(test, "preference", &bm.preference, !!fake_random(4));
	model_set(test, "block_size_kb", &bm.block_size_kb, 4 + fake_random(60));
	model_set(test, "lookahead", &bm.lookahead,
		  fake_random(2) ? 2 : fake_random(17));
	model_set(test, "open_blocks", &bm.open_blocks,
		  fake_random(2) ? 1 : 1 + fake_random(4));
	model_set(test, "antic_us", &bm.antic_us, fake_random(3) * 50000);
	model_set(test, "antic_near_kb", &bm.antic_near_kb,
		  fake_random(2) * fake_random(4096));
	model_set(test, "read_batch_ms", &bm.batch_ms[READ], 1 + fake_random(400));
	model_set(test, "write_batch_ms", &bm.batch_ms[WRITE],
		  1 + fake_random(200));
	model_set(test, "slice_sync_ms", &bm.slice_sync_ms, 1 + fake_random(300));
	model_set(test, "slice_async_ms", &bm.slice_async_ms,
		  1 + fake_random(100));
	fake.set.queue_depth = fake_random(3) ? 1 + fake_random(4) : FAKE_REQUESTS;
	/* Time 0 stands for a process that has had nothing done. */
	fake_advance_ms(10);
}

static void bm_disturb(struct kunit *test)
{
	struct model_request *mr;

	switch (fake_random(10)) {
	case 0:
		bm_end_wait(BP_BROKEN);
		memset(bm.ring, 0xff, sizeof(bm.ring));
		memset(bm.active, 0xff, sizeof(bm.active));
		model_for_each(mr)
			if (mr->state == MODEL_QUEUED)
				mr->priv[0] = -1;
		model_choose(test, "base", &bm.base, !bm.base, bp_bases);
		model_replaced();
		break;
	case 1:
		model_set(test, "preference", &bm.preference, fake_random(2));
		break;
	case 2:
		model_set(test, "block_size_kb", &bm.block_size_kb,
			  4 + fake_random(60));
		break;
	case 3:
		model_set(test, "lookahead", &bm.lookahead, fake_random(17));
		break;
	case 4:
		model_set(test, "open_blocks", &bm.open_blocks,
			  1 + fake_random(4));
		break;
	case 5:
		model_set(test, "antic_us", &bm.antic_us,
			  fake_random(200000));
		break;
	case 6:
		model_set(test, "antic_near_kb", &bm.antic_near_kb,
			  fake_random(4096));
		break;
	case 7:
		model_set(test, "read_batch_ms", &bm.batch_ms[READ],
			  1 + fake_random(400));
		break;
	case 8:
		model_set(test, "write_batch_ms", &bm.batch_ms[WRITE],
			  1 + fake_random(200));
		break;
	default:
		model_set(test, "slice_sync_ms", &bm.slice_sync_ms,
			  1 + fake_random(300));
	}
}

static blk_opf_t bm_sender(unsigned int dir)
{
	bp_task = &bp_tasks[fake_random(BM_TASKS)];
	return dir == WRITE && fake_random(2) ? REQ_SYNC : 0;
}

static bool bm_may_wait(void)
{
	return bm.whom;
}

static bool bm_overdue(void)
{
	return bm.whom && fake_ns >= bm.until &&
	       !model_in_bounds(-1);
}

static void bm_compare(struct kunit *test)
{
	struct bp_data *bd = bp_of(iosched_of(fake.q));
	unsigned int i;

	MODEL_ASSERT(test, bd->open.crossings == bm.crossings &&
		     bd->avoided == bm.avoided && bd->in_open == bm.in_open,
		     "crossings %u=%u avoided %u=%u in_open %u=%u",
		     bd->open.crossings, bm.crossings, bd->avoided, bm.avoided,
		     bd->in_open, bm.in_open);
	for (i = 0; i < BP_CASES; i++)
		MODEL_ASSERT(test, bd->cases[i] == bm.cases[i],
			     "case %u: %u=%u", i, bd->cases[i], bm.cases[i]);
	for (i = 0; i < BP_OUTCOMES; i++)
		MODEL_ASSERT(test, bd->antic.ended[i] == bm.ended[i],
			     "outcome %u: %u=%u", i, bd->antic.ended[i],
			     bm.ended[i]);
	MODEL_ASSERT(test, bd->antic.waited == bm.waited, "waited %llu=%llu",
		     bd->antic.waited, bm.waited);
}

static const struct model_policy bp_model = {
	.type = &iosched_type,
	.capacity = 8192,
	.start = bm_start,
	.select = bm_select,
	.queued = bm_queued,
	.unqueued = bm_unqueued,
	.dispatched = bm_dispatched,
	.released = bm_released,
	.disturb = bm_disturb,
	.sender = bm_sender,
	.may_wait = bm_may_wait,
	.overdue = bm_overdue,
	.compare = bm_compare,
};

static void bp_test_random(struct kunit *test)
{
	model_run(test, &bp_model);
}

static struct kunit_case bp_test_cases[] = {
	KUNIT_CASE_PARAM(bp_test_choice, bp_choice_gen_params),
	KUNIT_CASE_PARAM(bp_test_mirror, bp_choice_gen_params),
	KUNIT_CASE_SLOW(bp_test_brute_force),
	KUNIT_CASE(bp_test_open),
	KUNIT_CASE(bp_test_think_time),
	KUNIT_CASE(bp_test_distance),
	KUNIT_CASE(bp_test_newcomers),
	KUNIT_CASE(bp_test_wait),
	KUNIT_CASE(bp_test_processes),
	KUNIT_CASE(bp_test_example),
	KUNIT_CASE(bp_test_open_blocks),
	KUNIT_CASE(bp_test_fullest),
	KUNIT_CASE(bp_test_full),
	KUNIT_CASE(bp_test_batches),
	KUNIT_CASE(bp_test_hit),
	KUNIT_CASE(bp_test_miss),
	KUNIT_CASE(bp_test_broken),
	KUNIT_CASE(bp_test_wait_deadline),
	KUNIT_CASE(bp_test_near),
	KUNIT_CASE(bp_test_not_worth),
	KUNIT_CASE(bp_test_linger_hit),
	KUNIT_CASE(bp_test_linger_miss),
	KUNIT_CASE(bp_test_linger_broken),
	KUNIT_CASE(bp_test_linger_deadline),
	KUNIT_CASE(bp_test_linger_not_worth),
	KUNIT_CASE(bp_test_fair),
	KUNIT_CASE(bp_test_own_sweep),
	KUNIT_CASE(bp_test_out_of_turn),
	KUNIT_CASE(bp_test_late_at_turn),
	KUNIT_CASE(bp_test_other_tier),
	KUNIT_CASE(bp_test_levels),
	KUNIT_CASE(bp_test_front_merge),
	KUNIT_CASE(bp_test_no_room),
	KUNIT_CASE(bp_test_requeue),
	KUNIT_CASE_SLOW(bp_test_random),
	{}
};

static struct kunit_suite bp_test_suite = {
	.name = "bp-iosched",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.test_cases = bp_test_cases,
};

kunit_test_suite(bp_test_suite);
