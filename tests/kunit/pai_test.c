// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of PAI: its arithmetic (pai-arithmetic.h), the pending queue and the
 * limits of the queue one by one, then random sequences against a model
 * (pai-model.h).
 */
#include "fake-blk.h"
#include "../../pai-iosched.c"
#include "pai-arithmetic.h"
#include "pai-model.h"

#define CAPACITY	BIT(20)	/* sectors */

static struct pai_data *pai_begin(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, fake_start(&iosched_type, CAPACITY), 0);
	fake_run_works();
	return pai_of(iosched_of(fake.q));
}

static void pai_end(void)
{
	fake_finish();
	fake_run_works();
}

/* Start with a write buffer of this size in KB. */
static struct pai_data *pai_begin_buffered(struct kunit *test, const char *kb)
{
	struct pai_data *pd = pai_begin(test);

	fake_set(test, "write_buffer_kb", kb);
	return pd;
}

/* Start with a write buffer of this size in KB, and with a split mode. */
static struct pai_data *pai_begin_split(struct kunit *test, const char *kb,
					const char *split)
{
	struct pai_data *pd = pai_begin_buffered(test, kb);

	fake_set(test, "split", split);
	return pd;
}

/* Blocks are as large as the buffer, so that few requests share one. */
static struct pai_data *pai_begin_example(struct kunit *test)
{
	struct pai_data *pd = pai_begin_buffered(test, "64");

	fake_set(test, "clustered_block_kb", "64");
	return pd;
}

/* Dispatch the next request and expect it at so many KB. */
static struct request *pai_expect(struct kunit *test, sector_t kb)
{
	return fake_expect(test, kb * KB);
}

/* The example on top of pai-iosched.c, up to the point where all requests wait. */
static struct request *pai_send_example(struct kunit *test)
{
	struct request *first;

	fake_insert(REQ_OP_WRITE, 64 * KB, 64 * KB);
	fake_insert(REQ_OP_WRITE, 4 * KB, 12 * KB);
	first = pai_expect(test, 64);
	fake_expect_none(test);
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_WRITE, 0, 4 * KB, 0));
	return first;
}

static void pai_test_example(struct kunit *test)
{
	struct pai_data *pd = pai_begin_example(test);
	struct request *first;
	unsigned int runs;

	/* The small write waits for write_pending_us, */
	pai_send_example(test);
	fake_expect_none(test);
	runs = fake_runs;
	fake_advance_ns(999 * NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, fake_runs, runs);
	fake_expect_none(test);
	fake_advance_ns(NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, fake_runs, runs + 1);
	pai_expect(test, 0);
	fake_expect_file(test, pai_classes_show,
			 "dir well_split closed pending aligned full aligned_percent full_percent merges promoted expired waited_us longest_us\n"
			 "read 0 0 0 0 0 0 0 0 0 0 0 0\n"
			 "write 1 0 1 2 1 100 50 1 0 1 1000 1000\n");
	pai_end();

	/* or until the first write has completed. */
	pai_begin_example(test);
	first = pai_send_example(test);
	fake_expect_none(test);
	fake_complete(first);
	pai_expect(test, 0);
	pai_end();

	/* With well_split=aligned it does not wait. */
	pd = pai_begin_example(test);
	fake_set(test, "well_split", "aligned");
	runs = fake_runs;
	pai_send_example(test);
	KUNIT_EXPECT_EQ(test, pd->stats[WRITE].promoted, 1U);
	/* The merge of a bio does not run the queue by itself. */
	KUNIT_EXPECT_EQ(test, fake_runs, runs + 1);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	pai_expect(test, 0);
	pai_end();
}

/* A merge can make a request too large to be well-split. */
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

/* Requests that waiting cannot improve are dispatched at once. */
static void pai_test_not_pending(struct kunit *test)
{
	struct pai_data *pd = pai_begin_example(test);
	struct request *rq;

	/* Only small requests, of both directions: the oldest first. */
	fake_insert(REQ_OP_WRITE, 100, 1);
	fake_advance_ns(1);
	fake_insert(REQ_OP_READ, 200, 1);
	fake_advance_ns(1);
	fake_insert(REQ_OP_WRITE, 300, 1);
	fake_expect(test, 100);
	fake_expect(test, 200);
	fake_expect(test, 300);

	/* A request that cannot be merged any more, and a discard. */
	fake_insert(REQ_OP_WRITE, 128 * KB, 64 * KB);
	pai_expect(test, 128);
	rq = fake_insert(REQ_OP_WRITE, 1 * KB, 64 * KB);
	model_sort_fresh();
	KUNIT_EXPECT_EQ(test, pai_class_of(rq), (enum pai_class)PAI_CLOSED);
	pai_expect(test, 1);
	fake_insert(REQ_OP_DISCARD, 1000 * KB, 4 * KB);
	pai_expect(test, 1000);
	KUNIT_EXPECT_EQ(test, pd->stats[WRITE].requests[PAI_CLOSED], 2U);
	pai_end();
}

/* Insert a request of one sector, younger than all before it. */
static void pai_insert_in_turn(blk_opf_t opf, sector_t kb)
{
	fake_insert(opf, kb * KB, 1);
	fake_advance_ns(1);
}

/* The writes of a block are dispatched together, in ascending order. */
static void pai_test_block(struct kunit *test)
{
	unsigned int i;

	pai_begin_example(test);
	pai_insert_in_turn(REQ_OP_WRITE, 40);
	pai_insert_in_turn(REQ_OP_WRITE, 100);	/* the next block */
	pai_insert_in_turn(REQ_OP_WRITE, 8);	/* below the oldest */
	pai_insert_in_turn(REQ_OP_READ, 16);	/* the other direction */
	pai_insert_in_turn(REQ_OP_WRITE, 60);
	pai_insert_in_turn(REQ_OP_WRITE, 40);	/* the same sector again */
	pai_expect(test, 8);
	pai_insert_in_turn(REQ_OP_WRITE, 4);	/* the run has passed it */
	pai_expect(test, 40);
	pai_expect(test, 40);
	pai_expect(test, 60);
	pai_expect(test, 100);
	pai_expect(test, 16);
	pai_expect(test, 4);
	fake_complete_all();

	/* At most PAI_RUN follow. */
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

/* A write across the end of a block waits for its turn by age. */
static void pai_test_block_crossed(struct kunit *test)
{
	pai_begin_example(test);
	pai_insert_in_turn(REQ_OP_WRITE, 48);
	pai_insert_in_turn(REQ_OP_WRITE, 300);
	fake_insert(REQ_OP_WRITE, 60 * KB, 8 * KB);
	fake_advance_ns(1);
	pai_insert_in_turn(REQ_OP_WRITE, 500);
	pai_insert_in_turn(REQ_OP_WRITE, 70);
	pai_expect(test, 48);
	pai_expect(test, 300);
	pai_expect(test, 60);
	pai_expect(test, 70);
	pai_expect(test, 500);
	pai_end();
}

/* A pending write of the block stays held. */
static void pai_test_block_held(struct kunit *test)
{
	struct request *first;

	pai_begin_example(test);
	fake_set(test, "clustered_block_kb", "128");
	fake_insert(REQ_OP_WRITE, 0, 64 * KB);
	fake_insert(REQ_OP_WRITE, 68 * KB, 4 * KB);
	fake_insert(REQ_OP_WRITE, 256 * KB, 64 * KB);
	first = pai_expect(test, 0);
	fake_complete(first);
	pai_expect(test, 256);
	fake_expect_none(test);
	fake_advance_ms(1);
	pai_expect(test, 68);
	pai_end();
}

/* A well-split request is preceded by the pending ones that lead to it. */
static void pai_test_stream(struct kunit *test)
{
	struct request *apart;

	pai_begin_example(test);
	fake_insert(REQ_OP_WRITE, 1024 * KB, 64 * KB);
	apart = fake_insert(REQ_OP_WRITE, 516 * KB, 4 * KB);
	fake_insert(REQ_OP_WRITE, 28 * KB, 4 * KB);
	fake_insert(REQ_OP_WRITE, 64 * KB, 64 * KB);
	fake_insert(REQ_OP_WRITE, 32 * KB, 32 * KB);
	pai_expect(test, 1024);
	pai_expect(test, 28);
	pai_expect(test, 64);
	fake_expect_none(test);
	fake_advance_ms(1);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), apart);
	pai_end();
}

/* PAI_RUN requests precede the oldest one; the first of the stream is left out. */
static void pai_test_stream_bound(struct kunit *test)
{
	int i;

	pai_begin_example(test);
	for (i = PAI_RUN + 1; i >= 0; i--) {
		fake_insert(REQ_OP_WRITE, i * 64 * KB, 64 * KB);
		fake_advance_ns(1);
	}
	for (i = 1; i <= PAI_RUN + 1; i++)
		pai_expect(test, i * 64);
	pai_expect(test, 0);
	pai_end();
}

/* A write that is alone ends the run of a block, too. */
static void pai_test_run_alone(struct kunit *test)
{
	unsigned int i;

	pai_begin_example(test);
	for (i = 0; i < 4; i++)
		pai_insert_in_turn(REQ_OP_WRITE, 0);
	for (i = 0; i < 4; i++)
		pai_expect(test, 0);
	fake_complete_all();
	pai_insert_in_turn(REQ_OP_WRITE, 1000);
	pai_expect(test, 1000);
	fake_complete_all();

	pai_insert_in_turn(REQ_OP_WRITE, 2000);
	for (i = 0; i < 1 + PAI_RUN; i++)
		pai_insert_in_turn(REQ_OP_WRITE, 1000);
	for (i = 0; i < PAI_RUN; i++)
		pai_expect(test, 1000);
	pai_expect(test, 2000);
	pai_expect(test, 1000);
	pai_end();
}

/* Well-split requests pass a pending one until it is due. */
static void pai_test_pending_passed(struct kunit *test)
{
	struct pai_data *pd = pai_begin_example(test);
	unsigned int i;

	fake_set(test, "read_pending_us", "1000");
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
	fake_expect_none(test);
	/* Both are due: reads and writes by age. */
	fake_advance_ns(600 * NSEC_PER_USEC);
	pai_expect(test, 900);
	pai_expect(test, 65);
	KUNIT_EXPECT_EQ(test, pd->stats[READ].expired, 1U);
	KUNIT_EXPECT_EQ(test, pd->stats[WRITE].longest,
			1000ULL * NSEC_PER_USEC);
	pai_end();
}

/* A pending request that is due is dispatched before all younger ones. */
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
	/* The older one is still first. */
	pai_expect(test, 64);
	pai_expect(test, 1);
	pai_expect(test, 128);
	/* It was never kept pending, so it did not expire. */
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

/* A requeued request cannot be merged any more, so it does not wait again. */
static void pai_test_requeue(struct kunit *test)
{
	struct pai_data *pd = pai_begin_example(test);
	struct request *small;

	small = fake_insert(REQ_OP_WRITE, 1 * KB, 4 * KB);
	model_sort_fresh();
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
	fake_expect_none(test);
	pai_end();
}

/* No merge exceeds the buffer size, not even if requests overlap. */
static void pai_test_overlap(struct kunit *test)
{
	struct request *over, *left;

	pai_begin_buffered(test, "16");
	over = fake_insert(REQ_OP_WRITE, 16, 24);
	left = fake_insert(REQ_OP_WRITE, 0, 24);
	fake_insert(REQ_OP_WRITE, 24, 24);
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 0U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(left), 24U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(over), 24U);
	/* Eight more sectors reach the buffer size exactly. */
	fake_insert(REQ_OP_WRITE, 40, 8);
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 1U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(over), 32U);
	pai_end();
}

/* Execute the worker and compare the limits of the queue, in sectors. */
static void pai_expect_limits(struct kunit *test, unsigned int max,
			      unsigned int boundary)
{
	fake_run_works();
	KUNIT_EXPECT_EQ(test, queue_max_sectors(fake.q), max);
	KUNIT_EXPECT_EQ(test, fake.q->limits.chunk_sectors, boundary);
}

/* Change the limits of the queue as a user or a driver would. */
static void pai_change_limits(struct kunit *test, unsigned int max,
			      unsigned int boundary)
{
	struct queue_limits lim;

	KUNIT_ASSERT_TRUE(test, iosched_limits_try_begin(fake.q, &lim));
	*iosched_max_sectors(&lim) = max;
	lim.max_sectors = max;
	lim.chunk_sectors = boundary;
	iosched_limits_commit(fake.q, fake.q->disk, &lim);
}

/* The limits of the queue follow the tunables and are restored. */
static void pai_test_queue_limits(struct kunit *test)
{
	unsigned int own = queue_max_sectors(fake.q);

	pai_begin(test);
	pai_expect_limits(test, own, 0);
	fake_set(test, "read_buffer_kb", "256");
	fake_set(test, "write_buffer_kb", "255");
	pai_expect_limits(test, own, 0);
	fake_set(test, "split", "pas");
	/* The worker sets the limits, not the write. */
	KUNIT_EXPECT_EQ(test, queue_max_sectors(fake.q), own);
	pai_expect_limits(test, 255 * KB, 0);
	fake_set(test, "split", "pasa");
	pai_expect_limits(test, 240 * KB, 240 * KB);
	fake_set(test, "align", "block");
	pai_expect_limits(test, 240 * KB, 4096 * KB);
	/* At least a page, as the block layer demands. */
	fake_set(test, "clustered_page_kb", "1");
	fake_set(test, "read_buffer_kb", "2");
	pai_expect_limits(test, PAGE_SECTORS, 4096 * KB);
	/* No boundary within a page of memory. */
	fake_set(test, "align", "page");
	fake_set(test, "clustered_page_kb", "2");
	fake_set(test, "read_buffer_kb", "254");
	pai_expect_limits(test, 254 * KB, 0);
	pai_end();
	pai_expect_limits(test, own, 0);

	/* The scheduler is started again before the worker of its last exit. */
	pai_begin_split(test, "128", "pas");
	fake_run_works();
	fake_stop();
	KUNIT_ASSERT_EQ(test, fake_start(&iosched_type, CAPACITY), 0);
	fake_set(test, "write_buffer_kb", "64");
	fake_set(test, "split", "pas");
	pai_expect_limits(test, 64 * KB, 0);
	pai_end();
	pai_expect_limits(test, own, 0);
}

/* The limits of others stay in force with PAI and after it. */
static void pai_test_queue_limits_others(struct kunit *test)
{
	unsigned int hw = fake.q->limits.max_hw_sectors;
	unsigned int own = queue_max_sectors(fake.q);

	/* A stricter limit is not relaxed. */
	pai_change_limits(test, 64 * KB, 0);
	pai_begin_split(test, "255", "pasa");
	pai_expect_limits(test, 64 * KB, 64 * KB);
	pai_end();
	pai_expect_limits(test, 64 * KB, 0);

	/* The boundary of the device stays, unless that of PAI divides it. */
	pai_change_limits(test, own, 256 * KB);
	pai_begin_split(test, "255", "pasa");
	pai_expect_limits(test, 240 * KB, 256 * KB);
	fake_set(test, "write_buffer_kb", "128");
	pai_expect_limits(test, 128 * KB, 128 * KB);
	pai_end();
	pai_expect_limits(test, own, 256 * KB);

	/* A change by the user while PAI is active is kept. */
	pai_change_limits(test, own, 0);
	pai_begin_split(test, "255", "pas");
	pai_expect_limits(test, 255 * KB, 0);
	pai_change_limits(test, 100 * KB, 0);
	pai_end();
	pai_expect_limits(test, 100 * KB, 0);
	pai_change_limits(test, own, 0);

	/* So is what the driver takes no longer. */
	pai_begin_split(test, "255", "pas");
	pai_expect_limits(test, 255 * KB, 0);
	fake.q->limits.max_hw_sectors = 64 * KB;
	fake_set(test, "write_buffer_kb", "128");
	pai_expect_limits(test, 64 * KB, 0);
	pai_end();
	pai_expect_limits(test, 64 * KB, 0);
	fake.q->limits.max_hw_sectors = hw;
	pai_change_limits(test, own, 0);
}

/* Without a reference to the disk, the limits are restored and the disk is kept. */
static void pai_test_queue_limits_no_disk(struct kunit *test)
{
	struct gendisk *disk = fake.disk;
	unsigned int own = queue_max_sectors(fake.q);
	struct pai_data *pd = pai_begin_split(test, "128", "pasa");
	unsigned long pages;

	pai_expect_limits(test, 128 * KB, 128 * KB);
	put_disk(pd->loan->disk);
	pd->loan->disk = NULL;
	pages = disk->bdi->io_pages;
	pai_end();
	pai_expect_limits(test, own, 0);
	KUNIT_EXPECT_EQ(test, disk->bdi->io_pages, pages);
	pai_change_limits(test, own, 0);

	/* A queue without a disk keeps its limits. */
	fake.q->disk = NULL;
	pai_begin_split(test, "128", "pasa");
	pai_expect_limits(test, own, 0);
	pai_end();
	pai_expect_limits(test, own, 0);
	fake.q->disk = disk;
}

/* The worker waits for no disk whose limits are locked, and tries again. */
static void pai_test_queue_limits_locked(struct kunit *test)
{
	unsigned int own = queue_max_sectors(fake.q);
	struct queue_limits lim;

	pai_begin_split(test, "128", "pas");
	KUNIT_ASSERT_TRUE(test, iosched_limits_try_begin(fake.q, &lim));
	pai_expect_limits(test, own, 0);
	iosched_limits_cancel(fake.q);
	pai_expect_limits(test, 128 * KB, 0);

	/* The next PAI does not take the limits of the last one for the queue's own. */
	KUNIT_ASSERT_TRUE(test, iosched_limits_try_begin(fake.q, &lim));
	fake_stop();
	pai_expect_limits(test, 128 * KB, 0);
	pai_begin_split(test, "64", "pas");
	pai_expect_limits(test, 128 * KB, 0);
	iosched_limits_cancel(fake.q);
	pai_expect_limits(test, 64 * KB, 0);
	KUNIT_EXPECT_TRUE(test, list_is_singular(&pai_loans));
	pai_end();
	pai_expect_limits(test, own, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&pai_loans));
}

/* A boundary leaves room for atomic writes when logical blocks grow up to a page. */
static void pai_test_atomic_growth(struct kunit *test)
{
	struct queue_limits lim = {
		.logical_block_size = PAGE_SIZE / 8,
		.atomic_write_hw_max = SZ_32K,
		.atomic_write_hw_unit_max = SZ_32K,
	};

	KUNIT_EXPECT_TRUE(test, iosched_tears_atomic(&lim, 128 * KB));
	KUNIT_EXPECT_TRUE(test, iosched_tears_atomic(&lim, 240 * KB));
	KUNIT_EXPECT_FALSE(test, iosched_tears_atomic(&lim, 256 * KB));
	lim.atomic_write_hw_boundary = SZ_64K;
	KUNIT_EXPECT_TRUE(test, iosched_tears_atomic(&lim, 256 * KB));
	KUNIT_EXPECT_FALSE(test, iosched_tears_atomic(&lim, 512 * KB));
	lim.logical_block_size = PAGE_SIZE;
	KUNIT_EXPECT_FALSE(test, iosched_tears_atomic(&lim, 128 * KB));
	KUNIT_EXPECT_TRUE(test, iosched_tears_atomic(&lim, 16 * KB));
}

static void pai_test_random(struct kunit *test)
{
	am.own = queue_max_sectors(fake.q);
	model_run(test, &pai_model);
	/* The last sequence has restored the limits, too. */
	pai_expect_limits(test, am.own, 0);
}

static struct kunit_case pai_cases[] = {
	KUNIT_CASE(pai_test_cut_sizes),
	KUNIT_CASE(pai_test_split),
	KUNIT_CASE(pai_test_well_split),
	KUNIT_CASE_SLOW(pai_test_random_arithmetic),
	KUNIT_CASE(pai_test_example),
	KUNIT_CASE(pai_test_demoted),
	KUNIT_CASE(pai_test_not_pending),
	KUNIT_CASE(pai_test_block),
	KUNIT_CASE(pai_test_block_crossed),
	KUNIT_CASE(pai_test_block_held),
	KUNIT_CASE(pai_test_stream),
	KUNIT_CASE(pai_test_stream_bound),
	KUNIT_CASE(pai_test_run_alone),
	KUNIT_CASE(pai_test_pending_passed),
	KUNIT_CASE(pai_test_due),
	KUNIT_CASE(pai_test_requeue),
	KUNIT_CASE(pai_test_overlap),
	KUNIT_CASE(pai_test_queue_limits),
	KUNIT_CASE(pai_test_queue_limits_others),
	KUNIT_CASE(pai_test_queue_limits_locked),
	KUNIT_CASE(pai_test_atomic_growth),
	KUNIT_CASE(pai_test_queue_limits_no_disk),
	KUNIT_CASE_SLOW(pai_test_random),
	{}
};

static struct kunit_suite pai_suite = {
	.name = "pai-iosched",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.test_cases = pai_cases,
};

kunit_test_suite(pai_suite);
