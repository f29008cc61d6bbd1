// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of BP: its parts (bp-parts.h), the rules of the elevator one by one,
 * then random sequences against a model (bp-model.h).
 */
#include "fake-blk.h"

/* The processes, and the one that submits. */
static struct task_struct bp_tasks[3];
static struct task_struct *bp_task = bp_tasks;
#undef current
#define current bp_task

#include "../../bp-iosched.c"
#include "bp-parts.h"
#include "bp-model.h"

#define REQUEST_KB	4	/* size of a request unless stated */
#define CAPACITY	KB(1 << 20)

static struct bp_data *bp_begin(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bp_tasks); i++)
		bp_tasks[i].pid = 100 + i;
	bp_task = bp_tasks;
	/* The device takes one request at a time. */
	fake.set.queue_depth = 1;
	KUNIT_ASSERT_EQ(test, fake_start(&iosched_type, CAPACITY), 0);
	fake_advance_ms(10);
	return bp_of(iosched_of(fake.q));
}

static struct bp_data *bp_begin_fair(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);

	bd->base = BP_FAIR;
	return bd;
}

static void bp_end(void)
{
	/* End a wait, so that all requests can be dispatched. */
	bp_of(iosched_of(fake.q))->antic_us = 0;
	fake_advance_ms(1000);
	fake.set.queue_depth = FAKE_REQUESTS;
	fake_finish();
}

/* Insert a request of a task at @at KB. */
static struct request *bp_send_kb(unsigned int task, blk_opf_t opf, u64 at,
				  unsigned int kb)
{
	bp_task = &bp_tasks[task];
	return fake_insert(opf, KB(at), KB(kb));
}

static struct request *bp_send(unsigned int task, blk_opf_t opf, u64 at)
{
	return bp_send_kb(task, opf, at, REQUEST_KB);
}

/* Dispatch the next request and expect it at @at KB. */
static struct request *bp_expect(struct kunit *test, u64 at)
{
	return fake_expect(test, KB(at));
}

/* Dispatch, compare and complete the next request. */
static void bp_finish(struct kunit *test, u64 at)
{
	fake_complete(bp_expect(test, at));
}

/* Insert, dispatch and complete a request. */
static void bp_serve(struct kunit *test, unsigned int task, blk_opf_t opf, u64 at)
{
	bp_send(task, opf, at);
	bp_finish(test, at);
}

/* Insert the requests of the example on top of bp-iosched.c. */
static void bp_send_example(struct kunit *test)
{
	bp_serve(test, 0, REQ_OP_WRITE, 1496);
	bp_send(0, REQ_OP_WRITE, 1100);
	bp_send_kb(0, REQ_OP_WRITE, 1600, 8);
	bp_send(0, REQ_OP_WRITE, 2100);
	bp_send(0, REQ_OP_WRITE, 2200);
}

/* The example: one crossing instead of two. */
static void bp_test_example(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	static const u64 sweep[] = { 1600, 2100, 2200, 1100 };
	static const u64 preferred[] = { 1600, 1100, 2100, 2200 };
	unsigned int i;

	bp_send_example(test);
	for (i = 0; i < ARRAY_SIZE(preferred); i++)
		bp_finish(test, preferred[i]);
	KUNIT_EXPECT_EQ(test, bd->open.crossings, 2U);
	KUNIT_EXPECT_EQ(test, bd->avoided, 1U);
	KUNIT_EXPECT_EQ(test, bd->cases[BP_BOTH_IN], 1U);
	/* 1100, and 2200 after 2100. */
	KUNIT_EXPECT_EQ(test, bd->cases[BP_ONE_IN], 2U);
	/* 1496, and 2100. */
	KUNIT_EXPECT_EQ(test, bd->cases[BP_NO_CASE], 2U);
	fake_expect_file(test, bp_preference_show,
			 "crossings 2\navoided 1\nboth_in 1\none_in 2\n"
			 "one_run 0\ntwo_runs 0\nno_case 2\nin_open 0\n");
	bp_end();

	bd = bp_begin(test);
	bd->preference = 0;
	bp_send_example(test);
	for (i = 0; i < ARRAY_SIZE(sweep); i++)
		bp_finish(test, sweep[i]);
	KUNIT_EXPECT_EQ(test, bd->open.crossings, 3U);
	bp_end();
}

/* With two open blocks, writes of the other one precede a third block. */
static void bp_test_open_blocks(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	unsigned int n;

	for (n = 1; n <= 2; n++) {
		bd->open_blocks = n;
		bp_serve(test, 0, REQ_OP_WRITE, 1024);
		bp_serve(test, 0, REQ_OP_WRITE, 4096);
		bp_send(0, REQ_OP_WRITE, 1100);
		bp_send(0, REQ_OP_WRITE, 8192);
		bp_send(0, REQ_OP_WRITE, 8200);
		bp_finish(test, n == 1 ? 8192 : 1100);
		bp_finish(test, n == 1 ? 8200 : 8192);
		bp_finish(test, n == 1 ? 1100 : 8200);
	}
	KUNIT_EXPECT_EQ(test, bd->in_open, 1U);
	bp_end();
}

/*
 * A block that was left longest ago precedes the one that was left last, where
 * two more writes wait. The paper's lookahead of two turns back.
 */
static void bp_test_longest_ago(struct kunit *test)
{
	static const u64 sent[] = { 100, 200, 2200, 2300 };
	static const struct {
		bool paper;
		unsigned int runs;
		u64 order[ARRAY_SIZE(sent)];
	} ways[] = {
		{ false, 0, { 100, 200, 2200, 2300 } },
		{ true, 2, { 2300, 2200, 200, 100 } },
	};
	unsigned int n, i;

	for (n = 0; n < ARRAY_SIZE(ways); n++) {
		struct bp_data *bd = bp_begin(test);

		if (ways[n].paper)
			bd->lookahead = 2;
		bp_serve(test, 0, REQ_OP_WRITE, 2100);
		bp_serve(test, 0, REQ_OP_WRITE, 3100);
		for (i = 0; i < ARRAY_SIZE(sent); i++)
			bp_send(0, REQ_OP_WRITE, sent[i]);
		for (i = 0; i < ARRAY_SIZE(sent); i++)
			bp_finish(test, ways[n].order[i]);
		KUNIT_EXPECT_EQ(test, bd->cases[BP_ONE_RUN], ways[n].runs);
		bp_end();
	}
}

/*
 * With lookahead=0 the block with the most writes is next, of two the sweep's
 * next. With 1 the sweep's next is. The paper's two sees only the nearest pair
 * on each side.
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
		{ 1, { 1600, 2100, 4100, 4200, 4300, 6200, 6300, 100, 200 } },
		{ 2, { 1600, 200, 100, 2100, 4100, 4200, 4300, 6200, 6300 } },
	};
	unsigned int n, i;

	for (n = 0; n < ARRAY_SIZE(ways); n++) {
		struct bp_data *bd = bp_begin(test);

		bd->lookahead = ways[n].lookahead;
		bp_serve(test, 0, REQ_OP_WRITE, 1496);
		for (i = 0; i < ARRAY_SIZE(sent); i++)
			bp_send(0, REQ_OP_WRITE, sent[i]);
		for (i = 0; i < ARRAY_SIZE(sent); i++)
			bp_finish(test, ways[n].order[i]);
		KUNIT_EXPECT_EQ(test, bd->open.crossings, 5U);
		if (!bd->lookahead)
			KUNIT_EXPECT_EQ(test, bd->cases[BP_NO_CASE], 5U);
		bp_end();
	}
}

/* A full device gets no request, not even one past its deadline. */
static void bp_test_full_device(struct kunit *test)
{
	struct request *rq;

	bp_begin(test);
	bp_send(0, REQ_OP_READ, 0);
	bp_send(0, REQ_OP_READ, 100);
	rq = bp_expect(test, 0);
	fake_expect_none(test);
	fake_advance_ms(1000);
	fake_expect_none(test);
	fake_complete(rq);
	KUNIT_EXPECT_GE(test, fake_runs, 1U);
	bp_finish(test, 100);
	bp_end();
}

/* A batch ends with its time or with the last request of its direction. */
static void bp_test_batches(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);

	bd->antic_us = 0;
	bp_serve(test, 0, REQ_OP_WRITE, 0);
	bp_send(0, REQ_OP_WRITE, 100);
	bp_send(0, REQ_OP_WRITE, 200);
	bp_send(0, REQ_OP_READ, 5000);
	bp_send(0, REQ_OP_READ, 6000);
	bp_finish(test, 100);
	fake_advance_ms(bd->write_batch_ms);
	bp_finish(test, 5000);
	fake_advance_ms(bd->read_batch_ms - 1);
	bp_finish(test, 6000);
	bp_finish(test, 200);
	bp_end();
}

/* Expect a wait for task 0. */
static void bp_expect_wait(struct kunit *test, struct bp_data *bd)
{
	struct bp_process *process;

	process = bp_process_find(&bd->processes, &bp_tasks[0], IOSCHED_BE);
	KUNIT_ASSERT_NOT_NULL(test, process);
	KUNIT_EXPECT_PTR_EQ(test, bd->antic.awaited, &process->think);
}

/* Expect no wait now, and one before, with this outcome (BP_OUTCOMES: none). */
static void bp_expect_ended(struct kunit *test, struct bp_data *bd,
			    enum bp_outcome outcome)
{
	unsigned int i;

	KUNIT_EXPECT_NULL(test, bd->antic.awaited);
	for (i = 0; i < BP_OUTCOMES; i++)
		KUNIT_EXPECT_EQ(test, bd->antic.ended[i], i == outcome ? 1U : 0U);
}

/* Start, up to the point where a write waits for the next read of task 0. */
static struct bp_data *bp_begin_wait(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	struct request *rq;

	/* A write first, so that the read starts a batch. */
	bp_serve(test, 1, REQ_OP_WRITE, 0);
	bp_send(0, REQ_OP_READ, 1000);
	rq = bp_expect(test, 1000);
	bp_send(1, REQ_OP_WRITE, 100);
	fake_expect_none(test);
	fake_complete(rq);
	fake_expect_none(test);
	bp_expect_wait(test, bd);
	return bd;
}

/* Task 0 submits after a wait of 300 us. */
static void bp_expect_hit(struct kunit *test, struct bp_data *bd, blk_opf_t opf,
			  u64 at)
{
	fake_advance_ns(300 * NSEC_PER_USEC);
	fake_expect_none(test);
	bp_send(0, opf, at);
	bp_expect_ended(test, bd, BP_HIT);
	KUNIT_EXPECT_EQ(test, bd->antic.waited, 300ULL);
	bp_finish(test, at);
}

/* No request comes: after antic_us, not earlier, that at @at is dispatched. */
static void bp_expect_miss(struct kunit *test, struct bp_data *bd, u64 at)
{
	unsigned int runs = fake_runs;

	fake_advance_ns(999 * NSEC_PER_USEC);
	fake_expect_none(test);
	KUNIT_EXPECT_EQ(test, fake_runs, runs);
	fake_advance_ns(NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, fake_runs, runs + 1);
	bp_finish(test, at);
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

	/* A read of another process is dispatched at once. */
	bp_send(2, REQ_OP_READ, 9000);
	bp_expect_ended(test, bd, BP_BROKEN);
	bp_finish(test, 9000);
	bp_end();

	/* A synchronous write of the process itself ends the wait, too. */
	bd = bp_begin_wait(test);
	bp_send(0, REQ_OP_WRITE | REQ_SYNC, 200);
	bp_expect_ended(test, bd, BP_MISS);
	bp_end();

	/* A change of the base ends it; the held write is dispatched. */
	bd = bp_begin_wait(test);
	fake_set(test, "base", "fair\n");
	bp_expect_ended(test, bd, BP_BROKEN);
	bp_finish(test, 100);
	bp_end();
}

/*
 * With @rq complete, the write at @at waits for its process until the deadline,
 * 3 ms later, and no longer. write_expire is 5 ms.
 */
static void bp_expect_wait_to_deadline(struct kunit *test, struct bp_data *bd,
				       struct request *rq, u64 at)
{
	unsigned int runs;

	bd->antic_us = USEC_PER_SEC;
	fake_advance_ms(2);
	fake_complete(rq);
	fake_expect_none(test);
	fake_advance_ms(2);
	fake_expect_none(test);
	runs = fake_runs;
	fake_advance_ms(1);
	KUNIT_EXPECT_EQ(test, fake_runs, runs + 1);
	bp_finish(test, at);
	KUNIT_EXPECT_EQ(test, bd->io.stats[IOSCHED_BE][WRITE].expired, 1U);
}

/* No wait outlasts a deadline. */
static void bp_test_wait_deadline(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	struct request *rq;

	bd->io.expire[WRITE] = 5;
	bp_serve(test, 1, REQ_OP_WRITE, 0);
	bp_send(0, REQ_OP_READ, 1000);
	rq = bp_expect(test, 1000);
	bp_send(1, REQ_OP_WRITE, 100);
	bp_expect_wait_to_deadline(test, bd, rq, 100);
	bp_end();
}

/* With antic_near_kb far reads of others wait, and a far read is a miss. */
static void bp_test_near(struct kunit *test)
{
	struct bp_data *bd = bp_begin_wait(test);

	bd->antic_near_kb = 100;
	bp_send(2, REQ_OP_READ, 9000);
	fake_expect_none(test);
	bp_send(0, REQ_OP_READ, 5000);
	bp_expect_ended(test, bd, BP_MISS);
	bp_finish(test, 5000);
	fake_expect_none(test);
	fake_advance_ms(1);
	bp_finish(test, 9000);
	bp_end();
}

/* A process with long pauses is not waited for. */
static void bp_test_not_worth(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	unsigned int i;

	for (i = 0; i < 10; i++) {
		bp_serve(test, 0, REQ_OP_READ, 1000 + 4 * i);
		fake_advance_ms(10);
	}
	bp_serve(test, 0, REQ_OP_READ, 2000);
	bp_serve(test, 1, REQ_OP_WRITE, 100);
	bp_expect_ended(test, bd, BP_OUTCOMES);
	bp_end();
}

/* Start, up to the point where a write waits for task 0, which fills a block. */
static struct bp_data *bp_begin_linger(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	struct request *rq;

	bp_send(0, REQ_OP_WRITE | REQ_SYNC, 0);
	rq = bp_expect(test, 0);
	bp_send(1, REQ_OP_WRITE | REQ_SYNC, 5000);
	fake_complete(rq);
	fake_expect_none(test);
	bp_expect_wait(test, bd);
	return bd;
}

static void bp_test_linger_hit(struct kunit *test)
{
	struct bp_data *bd = bp_begin_linger(test);

	bp_expect_hit(test, bd, REQ_OP_WRITE | REQ_SYNC, 4);
	KUNIT_EXPECT_EQ(test, bd->open.crossings, 1U);
	/* The wait is repeated while it comes back. */
	fake_expect_none(test);
	bp_end();
}

static void bp_test_linger_miss(struct kunit *test)
{
	struct bp_data *bd = bp_begin_linger(test);

	bp_expect_miss(test, bd, 5000);
	bp_end();

	/* It comes back in another block, so the sweep continues. */
	bd = bp_begin_linger(test);
	bp_send(0, REQ_OP_WRITE | REQ_SYNC, 9000);
	bp_expect_ended(test, bd, BP_MISS);
	bp_finish(test, 5000);
	bp_end();
}

/* A write in the open block is dispatched at once, whatever its process. */
static void bp_test_linger_broken(struct kunit *test)
{
	static const blk_opf_t sent[] = { REQ_OP_WRITE, REQ_OP_WRITE | REQ_SYNC };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sent); i++) {
		struct bp_data *bd = bp_begin_linger(test);

		bp_send(2, sent[i], 100);
		bp_finish(test, 100);
		bp_expect_ended(test, bd, BP_BROKEN);
		bp_end();
	}
}

static void bp_test_linger_deadline(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	struct request *rq;

	bd->io.expire[WRITE] = 5;
	bp_send(0, REQ_OP_WRITE | REQ_SYNC, 0);
	rq = bp_expect(test, 0);
	bp_send(1, REQ_OP_WRITE, 5000);
	bp_expect_wait_to_deadline(test, bd, rq, 5000);
	bp_expect_ended(test, bd, BP_BROKEN);
	KUNIT_EXPECT_EQ(test, bd->antic.waited, 3000ULL);
	bp_end();
}

/* No wait: after @rq completes, a write elsewhere is dispatched at once. */
static void bp_expect_no_linger(struct kunit *test, struct bp_data *bd,
				struct request *rq)
{
	bp_send(1, REQ_OP_WRITE | REQ_SYNC, 500000);
	fake_complete(rq);
	bp_finish(test, 500000);
	bp_expect_ended(test, bd, BP_OUTCOMES);
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

	/* A process that mostly leaves its block, and one with long pauses. */
	for (n = 0; n < ARRAY_SIZE(ways); n++) {
		bd = bp_begin(test);
		for (i = 0; i < 10; i++) {
			bp_serve(test, 0, REQ_OP_WRITE | REQ_SYNC, ways[n].step * i);
			fake_advance_ms(ways[n].pause);
		}
		bp_send(0, REQ_OP_WRITE | REQ_SYNC, ways[n].step * 10);
		bp_expect_no_linger(test, bd, bp_expect(test, ways[n].step * 10));
	}

	/* An asynchronous write, and one whose block is closed. */
	bd = bp_begin(test);
	bp_send(0, REQ_OP_WRITE, 0);
	bp_expect_no_linger(test, bd, bp_expect(test, 0));
	bd = bp_begin(test);
	fake.set.queue_depth = 2;
	bp_send(0, REQ_OP_WRITE | REQ_SYNC, 0);
	rq = bp_expect(test, 0);
	bp_send(2, REQ_OP_WRITE, 3000);
	fake_complete(bp_expect(test, 3000));
	bp_expect_no_linger(test, bd, rq);

	/* Without preference no block is preferred. */
	bd = bp_begin(test);
	bd->preference = 0;
	bp_send(0, REQ_OP_WRITE | REQ_SYNC, 0);
	bp_expect_no_linger(test, bd, bp_expect(test, 0));
}

/* Slices take turns; the rest of a slice is kept for a process worth waiting for. */
static void bp_test_fair(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);

	fake_set(test, "base", "fair");
	bp_send(0, REQ_OP_READ, 1000);
	bp_send(1, REQ_OP_READ, 3000);
	bp_send(0, REQ_OP_READ, 2000);
	bp_send(2, REQ_OP_WRITE, 7000);
	bp_finish(test, 1000);
	bp_finish(test, 2000);
	/* The first process is waited for and comes back. */
	fake_expect_none(test);
	bp_send(0, REQ_OP_READ, 2100);
	KUNIT_EXPECT_EQ(test, bd->antic.ended[BP_HIT], 1U);
	bp_finish(test, 2100);
	/* It is waited for and does not come back: the next two have their slices. */
	fake_expect_none(test);
	fake_advance_ms(1);
	bp_finish(test, 3000);
	fake_advance_ms(bd->slice_sync_ms);
	bp_finish(test, 7000);
	fake_expect_file(test, bp_known_processes_show,
			 "# the longest unused first\n"
			 "pid tier level slices queued in_flight think_us distance_kb\n"
			 "101 be 4 1 0 0 0 0\n100 be 4 1 0 0 0 0\n");

	/* After its slice a queue moves to the end, or continues if alone. */
	bd->antic_us = 0;
	bp_send(0, REQ_OP_READ, 1000);
	bp_send(0, REQ_OP_READ, 1100);
	bp_send(1, REQ_OP_READ, 3000);
	bp_finish(test, 1000);
	fake_advance_ms(bd->slice_sync_ms);
	bp_finish(test, 3000);
	bp_finish(test, 1100);
	bp_end();
}

/* A queue continues its own sweep, wherever other queues have written. */
static void bp_test_own_sweep(struct kunit *test)
{
	struct bp_data *bd = bp_begin_fair(test);

	bd->antic_us = 0;
	bp_send(0, REQ_OP_WRITE, 4096);
	bp_send(1, REQ_OP_WRITE | REQ_SYNC, 20480);
	bp_finish(test, 4096);
	bp_send(0, REQ_OP_WRITE, 2048);
	bp_send(0, REQ_OP_WRITE, 8192);
	fake_advance_ms(bd->slice_async_ms);
	bp_finish(test, 20480);
	bp_finish(test, 8192);
	bp_finish(test, 2048);
	KUNIT_EXPECT_EQ(test, bd->cases[BP_NO_CASE], 4U);
	bp_end();
}

/* A queue whose late request is dispatched out of turn keeps its place. */
static void bp_test_out_of_turn(struct kunit *test)
{
	struct bp_data *bd = bp_begin_fair(test);

	bd->io.expire[READ] = 50;
	bp_serve(test, 0, REQ_OP_READ, 1000);
	bp_send(1, REQ_OP_READ, 3000);
	bp_send(2, REQ_OP_READ, 5000);
	fake_advance_ms(50);
	bp_send(0, REQ_OP_READ, 1100);
	/* The oldest request first, then the slice continues. */
	bp_finish(test, 3000);
	bp_finish(test, 5000);
	bd->io.expire[READ] = 1000;
	bp_send(2, REQ_OP_READ, 5100);
	bp_send(1, REQ_OP_READ, 3100);
	bp_send(1, REQ_OP_READ, 3200);
	bp_finish(test, 1100);
	/* After its end the other two have their slices, in order of arrival. */
	bp_send(0, REQ_OP_READ, 1200);
	fake_advance_ms(49);
	bp_finish(test, 1200);
	fake_advance_ms(1);
	bp_send(0, REQ_OP_READ, 1300);
	bp_finish(test, 3100);
	bp_finish(test, 3200);
	fake_advance_ms(1);
	bp_finish(test, 5100);
	fake_advance_ms(1);
	bp_finish(test, 1300);
	KUNIT_EXPECT_EQ(test, bd->io.stats[IOSCHED_BE][READ].expired, 2U);
	bp_end();
}

/*
 * Start, up to the turn of a process whose only request was late and dispatched
 * before.
 */
static struct bp_data *bp_begin_late(struct kunit *test, unsigned int antic_us)
{
	struct bp_data *bd = bp_begin_fair(test);

	bd->antic_us = antic_us;
	bd->io.expire[READ] = msecs_to_jiffies(bd->slice_sync_ms);
	bp_serve(test, 0, REQ_OP_READ, 1000);
	bp_send(1, REQ_OP_READ, 3000);
	fake_advance_ms(50);
	bp_send(2, REQ_OP_READ, 5000);
	fake_advance_ms(50);
	bp_finish(test, 3000);
	KUNIT_EXPECT_EQ(test, bd->io.stats[IOSCHED_BE][READ].expired, 1U);
	return bd;
}

/* That process is waited for, if it is worth it. */
static void bp_test_turn_after_late(struct kunit *test)
{
	struct bp_data *bd = bp_begin_late(test, 1000);

	fake_expect_none(test);
	bp_send(1, REQ_OP_READ, 3100);
	bp_expect_ended(test, bd, BP_HIT);
	bp_finish(test, 3100);
	bp_serve(test, 1, REQ_OP_READ, 3200);
	bp_end();

	bd = bp_begin_late(test, 1000);
	fake_expect_none(test);
	fake_advance_ms(1);
	bp_finish(test, 5000);
	bp_expect_ended(test, bd, BP_MISS);
	bp_end();

	bp_begin_late(test, 0);
	bp_finish(test, 5000);
	bp_end();
}

/* The entry of a former process may be reused in another tier during its slice. */
static void bp_test_reused_process(struct kunit *test)
{
	struct bp_data *bd = bp_begin_fair(test);
	struct bp_process *process;
	struct request *rq;

	rq = fake_insert_prio(REQ_OP_READ, KB(1000), KB(REQUEST_KB),
			      IOPRIO_CLASS_RT, IOPRIO_BE_NORM);
	process = bp_process_of(rq);
	bp_finish(test, 1000);
	KUNIT_EXPECT_PTR_EQ(test, bd->active[IOSCHED_RT], &process->queue);
	bp_set_in_flight(&bd->processes, 1);
	atomic_set(&process->in_flight, 0);
	list_move(&process->lru, &bd->processes.lru);
	KUNIT_EXPECT_PTR_EQ(test, process,
			    bp_process_of(bp_send(1, REQ_OP_READ, 3000)));
	bp_task = &bp_tasks[2];
	fake_insert_prio(REQ_OP_READ, KB(5000), KB(REQUEST_KB),
			 IOPRIO_CLASS_RT, IOPRIO_BE_NORM);
	bp_finish(test, 5000);
	bp_finish(test, 3000);
	bp_set_in_flight(&bd->processes, 0);
	bp_end();
}

/* Slices and queues by priority level. */
static void bp_test_levels(struct kunit *test)
{
	static const unsigned int slices[] = { 180, 160, 140, 120, 100, 80, 60, 40 };
	struct bp_data *bd = bp_begin_fair(test);
	struct request *rq;
	unsigned int i;

	for (i = 0; i < IOPRIO_NR_LEVELS; i++) {
		struct bp_queue *queue = &bd->processes.all[0].queue;

		queue->level = i;
		KUNIT_EXPECT_EQ(test, bp_slice(bd, queue),
				msecs_to_jiffies(slices[i]));
		queue->level = IOPRIO_BE_NORM;
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

/* Front merges under both bases. */
static void bp_test_front_merge(struct kunit *test)
{
	unsigned int base;

	for (base = 0; base < 2; base++) {
		struct bp_data *bd = bp_begin(test);

		bd->base = base;
		bp_send(0, REQ_OP_READ, 1000);
		bp_send(0, REQ_OP_WRITE, 2000);
		KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, KB(996), KB(4), 0));
		KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_WRITE, KB(1996), KB(4), 0));
		bp_send(0, REQ_OP_WRITE | REQ_SYNC, 3000);
		KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_WRITE | REQ_SYNC,
						       KB(2996), KB(4), 0));
		bp_end();
	}
}

/* Without room for another process, its requests are served without one. */
static void bp_test_table_full(struct kunit *test)
{
	struct bp_data *bd = bp_begin_fair(test);
	struct request *rq;

	bp_set_in_flight(&bd->processes, 1);
	rq = bp_send(0, REQ_OP_READ, 1000);
	KUNIT_EXPECT_NULL(test, bp_process_of(rq));
	bp_finish(test, 1000);
	bp_set_in_flight(&bd->processes, 0);
	bp_end();
}

/* A requeued request keeps its process and is counted once. */
static void bp_test_requeue(struct kunit *test)
{
	struct bp_data *bd = bp_begin(test);
	struct bp_process *process;
	struct request *rq;

	bp_send(0, REQ_OP_READ, 1000);
	rq = bp_expect(test, 1000);
	process = bp_process_of(rq);
	KUNIT_EXPECT_EQ(test, atomic_read(&process->in_flight), 1);
	fake_requeue(rq);
	KUNIT_EXPECT_TRUE(test, bp_process_idle(process));
	bp_task = &bp_tasks[2];
	fake_insert_request(rq, false);
	model_sort_fresh();
	KUNIT_EXPECT_PTR_EQ(test, bp_process_of(rq), process);
	KUNIT_EXPECT_EQ(test, process->queued, 1U);
	fake_set(test, "base", "fair");
	KUNIT_EXPECT_EQ(test, process->queued, 1U);
	KUNIT_EXPECT_EQ(test, bd->base, BP_FAIR + 0U);
	bp_finish(test, 1000);
	KUNIT_EXPECT_TRUE(test, bp_process_idle(process));
	bp_end();
}

static void bp_test_random(struct kunit *test)
{
	model_run(test, &bp_model);
}

static struct kunit_case bp_test_cases[] = {
	KUNIT_CASE_PARAM(bp_test_preference, bp_choice_gen_params),
	KUNIT_CASE_PARAM(bp_test_preference_mirrored, bp_choice_gen_params),
	KUNIT_CASE_SLOW(bp_test_preference_optimal),
	KUNIT_CASE(bp_test_open_record),
	KUNIT_CASE(bp_test_think_time),
	KUNIT_CASE(bp_test_distance),
	KUNIT_CASE(bp_test_new_processes),
	KUNIT_CASE(bp_test_wait),
	KUNIT_CASE(bp_test_processes),
	KUNIT_CASE(bp_test_example),
	KUNIT_CASE(bp_test_open_blocks),
	KUNIT_CASE(bp_test_longest_ago),
	KUNIT_CASE(bp_test_fullest),
	KUNIT_CASE(bp_test_full_device),
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
	KUNIT_CASE(bp_test_turn_after_late),
	KUNIT_CASE(bp_test_reused_process),
	KUNIT_CASE(bp_test_levels),
	KUNIT_CASE(bp_test_front_merge),
	KUNIT_CASE(bp_test_table_full),
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
