/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of the parts of BP: the choice between writes, anticipation and the
 * table of processes.
 */
#ifndef _BP_PARTS_H
#define _BP_PARTS_H

#include "fake-blk.h"

/* Sectors in a block: sector 100 * b + n is in block b. */
#define BLOCK	100

/* The four cases of the preference */

struct bp_choice {
	const char *name;
	u64 last;
	struct bp_side front;
	struct bp_side back;
	enum bp_case which;
	bool in_front;
	bool tie;
};

/* The requests of a side, nearest first: start sectors and sizes. */
#define SIDE(n, ...)	{ .nr = n, __VA_ARGS__ }
#define AT(...)		.sector = { __VA_ARGS__ }
#define OF(...)		.sectors = { __VA_ARGS__ }

static const struct bp_choice bp_choices[] = {
	{ "case 1: both in the block, front larger", 5,
	  SIDE(2, AT(560, 580), OF(16, 8)), SIDE(2, AT(520, 410), OF(8, 99)),
	  BP_BOTH_IN, true },
	{ "case 1: both in the block, back larger", 5,
	  SIDE(2, AT(560, 580), OF(8, 99)), SIDE(2, AT(520, 410), OF(16, 8)),
	  BP_BOTH_IN, false },
	{ "case 1: a tie prefers the front", 5,
	  SIDE(1, AT(560), OF(8)), SIDE(1, AT(520), OF(8)), BP_BOTH_IN, true,
	  true },
	{ "case 2: front in the block, back larger", 5,
	  SIDE(2, AT(560, 600), OF(8, 8)), SIDE(2, AT(420, 410), OF(64, 8)),
	  BP_ONE_IN, true },
	{ "case 2: back in the block, front larger and a run", 5,
	  SIDE(2, AT(600, 610), OF(8, 8)), SIDE(1, AT(500), OF(1)),
	  BP_ONE_IN, false },
	{ "case 2: front in the block, no back", 5,
	  SIDE(1, AT(599), OF(1)), SIDE(0), BP_ONE_IN, true },
	{ "case 2: back in the block, no front", 5,
	  SIDE(0), SIDE(1, AT(500), OF(1)), BP_ONE_IN, false },
	{ "case 2: back starts in the previous block, so not in", 5,
	  SIDE(1, AT(580), OF(1)), SIDE(1, AT(499), OF(20)), BP_ONE_IN, true },
	{ "case 3: front pair", 5,
	  SIDE(2, AT(610, 620), OF(8, 8)), SIDE(2, AT(490, 390), OF(64, 64)),
	  BP_ONE_RUN, true },
	{ "case 3: back pair", 5,
	  SIDE(2, AT(610, 700), OF(64, 64)), SIDE(2, AT(490, 480), OF(1, 1)),
	  BP_ONE_RUN, false },
	{ "case 3: front pair, single back", 5,
	  SIDE(2, AT(610, 699), OF(1, 1)), SIDE(1, AT(490), OF(64)),
	  BP_ONE_RUN, true },
	{ "case 3: second starts in the block where the first ends", 5,
	  SIDE(2, AT(690, 710), OF(20, 1)), SIDE(2, AT(490, 390), OF(64, 64)),
	  BP_ONE_RUN, true },
	{ "case 4: front pair larger", 5,
	  SIDE(2, AT(610, 620), OF(8, 9)), SIDE(2, AT(490, 480), OF(8, 8)),
	  BP_TWO_RUNS, true },
	{ "case 4: back pair larger, its first request smaller", 5,
	  SIDE(2, AT(610, 620), OF(8, 8)), SIDE(2, AT(490, 450), OF(1, 32)),
	  BP_TWO_RUNS, false },
	{ "case 4: a tie prefers the front", 5,
	  SIDE(2, AT(610, 620), OF(8, 8)), SIDE(2, AT(490, 480), OF(8, 8)),
	  BP_TWO_RUNS, true, true },
	{ "case 4: pairs in distant blocks", 5,
	  SIDE(2, AT(910, 920), OF(8, 8)), SIDE(2, AT(290, 280), OF(8, 9)),
	  BP_TWO_RUNS, false },
	{ "case 3: front pair, no back", 5,
	  SIDE(2, AT(610, 620), OF(8, 8)), SIDE(0), BP_ONE_RUN, true },
	{ "case 3: back pair, no front", 5,
	  SIDE(0), SIDE(2, AT(490, 480), OF(8, 8)), BP_ONE_RUN, false },
	{ "no case: no pair on either side", 5,
	  SIDE(2, AT(610, 720), OF(8, 99)), SIDE(2, AT(490, 390), OF(9, 1)),
	  BP_NO_CASE },
	{ "no case: one request on each side", 5,
	  SIDE(1, AT(610), OF(8)), SIDE(1, AT(490), OF(8)), BP_NO_CASE },
	{ "no case: front only", 5,
	  SIDE(1, AT(610), OF(8)), SIDE(0), BP_NO_CASE },
	{ "no case: two back requests in different blocks", 5,
	  SIDE(0), SIDE(2, AT(490, 390), OF(8, 8)), BP_NO_CASE },
	{ "lookahead 4: the longer run is larger", 5,
	  SIDE(4, AT(610, 620, 630, 640), OF(8, 8, 8, 8)),
	  SIDE(4, AT(490, 480, 390, 380), OF(8, 8, 99, 99)),
	  BP_TWO_RUNS, true },
	{ "no write before", U64_MAX,
	  SIDE(2, AT(610, 620), OF(8, 8)), SIDE(0), BP_ONE_RUN, true },
};

static void bp_choice_name(const struct bp_choice *choice, char *name)
{
	strscpy(name, choice->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bp_choice, bp_choices, bp_choice_name);

static void bp_test_preference(struct kunit *test)
{
	const struct bp_choice *choice = test->param_value;
	bool in_front;

	KUNIT_EXPECT_EQ(test, choice->which,
			bp_prefer(&choice->front, &choice->back, choice->last,
				  BLOCK, &in_front));
	if (choice->which != BP_NO_CASE)
		KUNIT_EXPECT_EQ(test, choice->in_front, in_front);
}

/* Each choice mirrored: front and back are exchanged. */
static void bp_test_preference_mirrored(struct kunit *test)
{
	const struct bp_choice *choice = test->param_value;
	struct bp_side front = { .nr = 0 }, back = { .nr = 0 };
	const u64 middle = 10 * BLOCK;
	enum bp_case which;
	bool in_front;
	unsigned int i;

	if (choice->last == U64_MAX)
		return;
	/* The mirrored request starts where the original one ends. */
	for (i = 0; i < choice->front.nr; i++)
		bp_side_add(&back, middle - choice->front.sector[i] -
			    choice->front.sectors[i],
			    choice->front.sectors[i]);
	for (i = 0; i < choice->back.nr; i++)
		bp_side_add(&front, middle - choice->back.sector[i] -
			    choice->back.sectors[i], choice->back.sectors[i]);
	/* The mirror of a request that spans blocks is in another block. */
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
	KUNIT_EXPECT_EQ(test, choice->tie || !choice->in_front, in_front);
}

/* Random sets of requests against brute force */

#define BP_SET	6	/* requests */

struct bp_set {
	unsigned int nr;
	u64 sector[BP_SET];
	u32 sectors[BP_SET];
};

/* Draw disjoint requests in ascending order, each @within a block if set. */
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

/* Return the boundaries that a write crosses, and move *@last to its last block. */
static unsigned int bp_crossings(const struct bp_set *set, unsigned int i,
				 u64 *last)
{
	u64 first = bp_block(set->sector[i], BLOCK), crossed = first != *last;

	*last = bp_block(set->sector[i] + set->sectors[i] - 1, BLOCK);
	return crossed + *last - first;
}

/* Return the fewest crossings that any order of the requests in @left needs. */
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

/* Return the crossings that BP's order needs; *@end is the end of the last write. */
static unsigned int bp_needs(struct kunit *test, const struct bp_set *set,
			     unsigned int left, u64 *end, unsigned int lookahead)
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
		for (i = ahead; i < set->nr && front.nr < lookahead; i++)
			if (left & (1U << i))
				bp_side_add(&front, set->sector[i],
					    set->sectors[i]);
		for (i = behind; i-- && back.nr < lookahead;)
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
		/* It never leaves a block in which a request waits. */
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
 * For requests within blocks no order crosses fewer boundaries than BP's. BP
 * does not know where requests that span blocks end, so it may need more
 * crossings.
 */
static void bp_test_preference_optimal(struct kunit *test)
{
	unsigned int i, spanning, needed, fewest, more = 0;
	u32 first = fake_first_seed(test);

	for (i = 0; i < sequences; i++) {
		unsigned int lookahead = 1 + fake_random(4);
		struct bp_set set;
		u64 end;

		fake_sequence(first + i);
		spanning = fake_random(2);
		bp_random_set(&set, !spanning);
		end = 1 + fake_random(500);
		fewest = bp_fewest(&set, (1U << set.nr) - 1,
				   bp_block(end - 1, BLOCK));
		needed = bp_needs(test, &set, (1U << set.nr) - 1, &end, lookahead);
		if (spanning) {
			FAKE_ASSERT(test, needed >= fewest, "%u crossings, fewest are %u",
				    needed, fewest);
			more += needed - fewest;
		} else {
			FAKE_ASSERT(test, needed == fewest, "%u crossings, must be %u",
				    needed, fewest);
		}
	}
	kunit_info(test, "sets that span blocks: %u more crossings than the fewest",
		   more);
}

/* The record of open blocks counts crossings and closes the oldest block. */
static void bp_test_open_record(struct kunit *test)
{
	struct bp_open open = { };
	unsigned int i;

	bp_open_init(&open);
	KUNIT_EXPECT_FALSE(test, bp_is_open(&open, BP_OPEN_MAX, 0));
	bp_written(&open, 1, 7, 7);
	bp_written(&open, 1, 7, 7);
	KUNIT_EXPECT_EQ(test, open.crossings, 1U);
	/* A write that spans blocks opens each; the last one stays open. */
	bp_written(&open, 1, 7, 9);
	KUNIT_EXPECT_EQ(test, open.crossings, 3U);
	KUNIT_EXPECT_TRUE(test, bp_is_open(&open, 1, 9));
	KUNIT_EXPECT_FALSE(test, bp_is_open(&open, 1, 8));
	KUNIT_EXPECT_TRUE(test, bp_is_open(&open, 2, 8));
	bp_written(&open, 1, 100, 1ULL << 31);
	KUNIT_EXPECT_EQ(test, open.crossings, 4U + (1U << 31) - 100);
	KUNIT_EXPECT_TRUE(test, bp_is_open(&open, 1, 1ULL << 31));

	/* Cycling through as many blocks as are open costs nothing, one more does. */
	bp_open_init(&open);
	open.crossings = 0;
	for (i = 0; i < 100; i++)
		bp_written(&open, 4, i % 4, i % 4);
	KUNIT_EXPECT_EQ(test, open.crossings, 4U);
	for (i = 0; i < 100; i++)
		bp_written(&open, 4, i % 5, i % 5);
	KUNIT_EXPECT_EQ(test, open.crossings, 4U + 100 - 4);
	/* The block opened first is closed, even if it was used last. */
	bp_open_init(&open);
	bp_written(&open, 2, 1, 1);
	bp_written(&open, 2, 2, 2);
	bp_written(&open, 2, 1, 1);
	bp_written(&open, 2, 3, 3);
	KUNIT_EXPECT_FALSE(test, bp_is_open(&open, 2, 1));
	KUNIT_EXPECT_TRUE(test, bp_is_open(&open, 2, 2));
}

/* Anticipation */

static const struct bp_limits bp_soon = { .wait = 1000 };
static const struct bp_limits bp_soon_near = { .wait = 1000, .near_kb = 100 };

/* Have a process come back @pause us after its requests, @times times. */
static void bp_teach(struct bp_think *think, struct bp_newcomers *all,
		     u32 pause, unsigned int times)
{
	while (times--)
		bp_learn_pause(think, all, think->done + pause, &bp_soon);
}

/* A process is worth waiting for if its mean think time is below the limit. */
static void bp_test_think_time(struct kunit *test)
{
	struct bp_newcomers all = { .soon = BP_WHOLE };
	struct bp_think think = { .done = 5 };

	bp_teach(&think, &all, 100, 1);
	KUNIT_EXPECT_EQ(test, think.mean >> BP_MEAN_SHIFT, 100U);
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));

	/* A pause of an hour counts as 2000 us, so a single one changes little. */
	bp_teach(&think, &all, 3600U * 1000000, 1);
	KUNIT_EXPECT_EQ(test, think.mean >> BP_MEAN_SHIFT, 337U);
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));

	/* Several long pauses end the waiting, some short ones restore it. */
	bp_teach(&think, &all, 5000, 20);
	KUNIT_EXPECT_FALSE(test, bp_worth(&think, &all, &bp_soon));
	bp_teach(&think, &all, 100, 8);
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));

	/* The limit itself is still worth it; without a limit nothing is. */
	bp_teach(&think, &all, 1000, 100);
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));
	bp_teach(&think, &all, 1100, 100);
	KUNIT_EXPECT_FALSE(test, bp_worth(&think, &all, &bp_soon));
	bp_teach(&think, &all, 0, 100);
	KUNIT_EXPECT_FALSE(test, bp_worth(&think, &all, &(struct bp_limits){}));
}

/* A process is worth waiting for if its reads are near each other. */
static void bp_test_distance(struct kunit *test)
{
	struct bp_newcomers all = { .soon = BP_WHOLE };
	struct bp_think think = { .done = 5 };
	unsigned int i;

	bp_teach(&think, &all, 100, 1);
	for (i = 0; i < 10; i++)
		bp_learn_read(&think, 1000 + 8 * i, 8, &bp_soon_near);
	KUNIT_EXPECT_EQ(test, think.end, 1080ULL);
	KUNIT_EXPECT_EQ(test, think.distance >> BP_MEAN_SHIFT, 0U);
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon_near));

	/* Near is within 100 KB on either side, or anywhere without a limit. */
	KUNIT_EXPECT_TRUE(test, bp_is_near(&think, 1280, &bp_soon_near));
	KUNIT_EXPECT_FALSE(test, bp_is_near(&think, 1282, &bp_soon_near));
	KUNIT_EXPECT_TRUE(test, bp_is_near(&think, 880, &bp_soon_near));
	KUNIT_EXPECT_FALSE(test, bp_is_near(&think, 878, &bp_soon_near));
	KUNIT_EXPECT_TRUE(test, bp_is_near(&think, 1ULL << 40, &bp_soon));

	/* Distant reads end the waiting, unless everything counts as near. */
	for (i = 0; i < 20; i++)
		bp_learn_read(&think, i % 2 ? 1ULL << 40 : 0, 8, &bp_soon_near);
	KUNIT_EXPECT_FALSE(test, bp_worth(&think, &all, &bp_soon_near));
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));
}

/* The behaviour of all processes decides about one with a first request. */
static void bp_test_new_processes(struct kunit *test)
{
	struct bp_newcomers all = { .soon = BP_WHOLE };
	struct bp_think think = { };
	unsigned int i;

	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));
	/* Many processes with a single request end the waiting for new ones. */
	for (i = 0; i < 20; i++) {
		think = (struct bp_think){ };
		bp_count_newcomer(&think, &all);
		bp_count_newcomer(&think, &all);
	}
	KUNIT_EXPECT_FALSE(test, bp_worth(&think, &all, &bp_soon));
	/* A known process is judged by its own behaviour. */
	bp_teach(&think, &all, 100, 1);
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));
	/* Processes that come back restore the waiting for new ones. */
	for (i = 0; i < 20; i++) {
		think = (struct bp_think){ };
		bp_count_newcomer(&think, &all);
		bp_teach(&think, &all, 100, 3);
	}
	think = (struct bp_think){ };
	KUNIT_EXPECT_TRUE(test, bp_worth(&think, &all, &bp_soon));
	KUNIT_EXPECT_LE(test, all.soon, (u32)BP_WHOLE);
}

/* The start, the rest and the outcome of a wait. */
static void bp_test_wait(struct kunit *test)
{
	struct bp_newcomers all = { .soon = BP_WHOLE };
	struct bp_think think = { .done = U32_MAX - 100 };
	struct bp_antic antic = { };
	u32 now = think.done + 300;	/* the clock has wrapped around */

	/* The wait lasts for the rest of the time since the completion. */
	KUNIT_EXPECT_EQ(test, 700U,
			bp_wait_begin(&antic, &think, &all, now, &bp_soon));
	KUNIT_EXPECT_PTR_EQ(test, antic.awaited, &think);
	bp_wait_end(&antic, BP_HIT, now + 50);
	KUNIT_EXPECT_PTR_EQ(test, antic.awaited, (struct bp_think *)NULL);
	/* A wait ends only once. */
	bp_wait_end(&antic, BP_BROKEN, now + 60);
	KUNIT_EXPECT_EQ(test, antic.ended[BP_HIT], 1U);
	KUNIT_EXPECT_EQ(test, antic.ended[BP_BROKEN], 0U);
	KUNIT_EXPECT_EQ(test, antic.waited, 50ULL);

	/* No wait if the time is over, or if the process is not worth it. */
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

/* The table of processes */

static void *bp_test_key(unsigned long number)
{
	return (void *)(number * 64 + 0x1000);
}

/* Set the requests in flight of all processes, known or not. */
static void bp_set_in_flight(struct bp_processes *table, int in_flight)
{
	unsigned int i;

	for (i = 0; i < BP_PROCESSES; i++)
		atomic_set(&table->all[i].in_flight, in_flight);
}

static void bp_test_processes(struct kunit *test)
{
	struct bp_processes *table = fake_zalloc(test, sizeof(*table));
	struct bp_process *first, *busy;
	unsigned long i;

	KUNIT_ASSERT_EQ(test, bp_processes_init(table, 4), 0);
	KUNIT_EXPECT_PTR_EQ(test, bp_process_find(table, bp_test_key(0), 1),
			    (struct bp_process *)NULL);
	first = bp_process_get(table, bp_test_key(0), 1);
	KUNIT_EXPECT_PTR_EQ(test, first, bp_process_get(table, bp_test_key(0), 1));
	KUNIT_EXPECT_PTR_NE(test, first, bp_process_get(table, bp_test_key(0), 2));
	busy = bp_process_get(table, bp_test_key(1), 1);
	busy->queued = 1;
	first->think.known = true;

	/* New processes replace old ones, but none that has requests. */
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
	/* The processes used last are still known. */
	KUNIT_EXPECT_NOT_NULL(test, bp_process_find(table, bp_test_key(4999), 1));
	KUNIT_EXPECT_NOT_NULL(test, bp_process_find(table, bp_test_key(4999 -
							BP_PROCESSES + 2), 1));

	/* All are busy: a new process gets no entry until one is idle. */
	bp_set_in_flight(table, 1);
	KUNIT_EXPECT_PTR_EQ(test, bp_process_get(table, bp_test_key(6000), 1),
			    (struct bp_process *)NULL);
	/* Only BP_LOOK entries are examined at once, but all of them in turn. */
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

#endif /* _BP_PARTS_H */
