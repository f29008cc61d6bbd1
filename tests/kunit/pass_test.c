// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of PASS: its rules one by one, the paper's figure 6, then random
 * sequences against a model.
 */
#include "fake-blk.h"
#include "../../pass-iosched.c"
#include "model.h"

#define MB	2048U		/* sectors */
#define REGIONS	8		/* of 1 MB, on the model's device */
#define PAGE	8U		/* sectors */

static int pass_test_init(struct kunit *test)
{
	pass_data_region_size_mb_tunable.value = 1;
	return 0;
}

static struct pass_data *pass_begin(struct kunit *test, sector_t capacity)
{
	KUNIT_ASSERT_EQ(test, fake_start(&iosched_type, capacity), 0);
	return pass_of(iosched_of(fake.q));
}

/* Insert requests of one page each at @pages of a region. */
static void pass_fill(unsigned int region, blk_opf_t opf,
		      const unsigned int *pages, struct request **rqs,
		      unsigned int nr)
{
	while (nr--) {
		struct request *rq = fake_insert(opf, region * MB +
						 *pages++ * PAGE, PAGE);

		if (rqs)
			*rqs++ = rq;
	}
}

/* Dispatch the next request and expect it at a page of a region. */
static struct request *pass_expect(struct kunit *test, unsigned int region,
				   unsigned int page)
{
	return fake_expect(test, region * MB + page * PAGE);
}

/*
 * Figure 6: two regions with a best depth of two. R1 and R2 and Q1 and Q2 are
 * dispatched; each completion allows the next request of its region.
 */
static void pass_test_figure_6(struct kunit *test)
{
	static const unsigned int pages[] = { 0, 2, 4, 6 };
	struct pass_data *pd = pass_begin(test, 2 * MB);
	struct request *r[4], *q[4];

	pd->region_depth = 2;
	pass_fill(0, REQ_OP_READ, pages, r, 4);
	pass_fill(1, REQ_OP_READ, pages, q, 4);
	pass_expect(test, 0, 0);
	pass_expect(test, 1, 0);
	pass_expect(test, 0, 2);
	pass_expect(test, 1, 2);
	fake_expect_none(test);

	fake_complete(q[0]);
	KUNIT_EXPECT_EQ(test, fake_runs, 1U);
	pass_expect(test, 1, 4);
	fake_expect_none(test);
	fake_complete(r[1]);
	KUNIT_EXPECT_EQ(test, fake_runs, 2U);
	pass_expect(test, 0, 4);
	fake_complete(r[0]);
	fake_complete(r[2]);
	pass_expect(test, 0, 6);
	fake_finish();
}

/* A drive that takes one request at a time completes the turn of region 0 first. */
static void pass_test_figure_6_unbound(struct kunit *test)
{
	static const unsigned int pages[] = { 0, 2, 4, 6 };
	unsigned int i;

	pass_begin(test, 2 * MB);
	pass_fill(0, REQ_OP_READ, pages, NULL, 4);
	pass_fill(1, REQ_OP_READ, pages, NULL, 4);
	for (i = 0; i < 8; i++)
		fake_complete(pass_expect(test, i / 4, pages[i % 4]));
	fake_finish();
}

/*
 * Without laps, as in the paper: one sub-queue after the other has its whole turn, and each
 * alternates between reads and writes by itself. Laps may be switched at any time.
 */
static void pass_test_alternate(struct kunit *test)
{
	static const unsigned int pages[] = { 0, 2, 4, 6 };
	struct pass_data *pd = pass_begin(test, 2 * MB);
	unsigned int i;

	fake_set(test, "laps", "0");
	pd->read_batch = 2;
	pd->write_batch = 3;
	pass_fill(0, REQ_OP_READ, pages, NULL, 4);
	pass_fill(1, REQ_OP_WRITE, pages, NULL, 4);
	pass_fill(0, REQ_OP_WRITE, pages + 1, NULL, 1);
	/* Region 0 has a turn of two reads, region 1 one of three writes. */
	pass_expect(test, 0, 0);
	pass_expect(test, 0, 2);
	for (i = 0; i < 3; i++)
		pass_expect(test, 1, pages[i]);
	/* Region 0 writes, region 1 has no reads, region 0 reads. */
	pass_expect(test, 0, 2);
	pass_expect(test, 1, 6);
	pass_expect(test, 0, 4);
	/* A lap begins with the reads; a setting in a turn loses nothing. */
	pass_fill(1, REQ_OP_READ, pages, NULL, 4);
	fake_set(test, "laps", "1");
	pass_expect(test, 0, 6);
	pass_expect(test, 1, 0);
	fake_set(test, "laps", "0");
	pass_expect(test, 1, 2);
	pass_expect(test, 1, 4);
	pass_expect(test, 1, 6);
	fake_expect_none(test);
	KUNIT_EXPECT_EQ(test, pd->io.nr, 0U);
	fake_finish();
}

/* The policy's next read. It is not dispatched. */
static sector_t pass_select_read(struct iosched *io)
{
	struct request *rq;

	spin_lock(&io->lock);
	rq = pass_select(io, IOSCHED_BE, READ);
	spin_unlock(&io->lock);
	return rq ? blk_rq_pos(rq) : U64_MAX;
}

/*
 * Without laps a turn of writes is broken off if only reads may be dispatched. Of many
 * sub-queues without reads, PASS_COMPARED are passed.
 */
static void pass_test_alternate_only(struct kunit *test)
{
	static const unsigned int pages[] = { 0, 2, 4, 6 };
	struct pass_data *pd = pass_begin(test, 30 * MB);
	unsigned int i;

	fake_set(test, "laps", "0");
	for (i = 0; i < 25; i++)
		pass_fill(i, REQ_OP_WRITE, pages, NULL, 2);
	pass_fill(25, REQ_OP_READ, pages, NULL, 1);
	KUNIT_EXPECT_EQ(test, pass_select_read(&pd->io), 25ULL * MB);
	pass_expect(test, 0, 0);
	pass_fill(0, REQ_OP_READ, pages + 2, NULL, 1);
	KUNIT_EXPECT_EQ(test, pass_select_read(&pd->io), 4ULL * PAGE);
	fake_finish();
}

/* Inserts a request for a full region, while all are held. */
static void pass_insert_meanwhile(void)
{
	fake_insert(REQ_OP_READ, MB - PAGE, PAGE);
}

/* Requests are placed anew while a region is full and all others are held. */
static void pass_test_replace_full(struct kunit *test)
{
	struct pass_data *pd = pass_begin(test, 2 * MB);
	struct request *first;
	unsigned int i;

	pd->region_depth = 1;
	for (i = 0; i < 40; i++)
		fake_insert(REQ_OP_READ, 2 * i * PAGE, PAGE);
	first = pass_expect(test, 0, 0);
	fake_expect_none(test);
	fake_meanwhile = pass_insert_meanwhile;
	fake_set(test, "laps", "0");
	fake_meanwhile = NULL;
	fake_expect_none(test);
	KUNIT_EXPECT_GT(test, pd->io.nr, 39U);
	pd->region_depth = 0;
	fake_complete(first);
	fake_finish();
}

/* Without laps, random requests, merges and switches of laps lose nothing. */
static void pass_test_alternate_random(struct kunit *test)
{
	struct pass_data *pd = pass_begin(test, REGIONS * MB);
	unsigned int i, inserted = 0, dispatched = 0;
	struct request *rq;

	pd->read_batch = 2;
	pd->write_batch = 2;
	for (i = 0; i < 2000; i++) {
		if (!fake_random(50))
			fake_set(test, "laps", fake_random(3) ? "0" : "1");
		if (!fake_random(100))
			fake_set(test, "region_size_mb",
				 fake_random(2) ? "1" : "2");
		pd->region_depth = fake_random(3);
		if (fake_random(2) && pd->io.nr < 30) {
			/* Odd pages apart: none is merged. */
			fake_insert(fake_random(2) ? REQ_OP_READ : REQ_OP_WRITE,
				    fake_random(REGIONS * 128) * 2 * PAGE, PAGE);
			inserted++;
			continue;
		}
		rq = fake_dispatch();
		if (rq) {
			dispatched++;
			fake_complete(rq);
		}
	}
	pd->region_depth = 0;
	while ((rq = fake_dispatch())) {
		dispatched++;
		fake_complete(rq);
	}
	KUNIT_EXPECT_EQ(test, dispatched, inserted);
	fake_finish();
}

/*
 * Without region_depth, the region with fewer requests in flight is next, the first in the
 * ring if both have as many.
 */
static void pass_test_balance(struct kunit *test)
{
	static const unsigned int pages[] = { 0, 2, 4, 6 };
	struct request *q[2];
	unsigned int i;

	pass_begin(test, 2 * MB);
	pass_fill(0, REQ_OP_READ, pages, NULL, 4);
	pass_fill(1, REQ_OP_READ, pages, NULL, 4);
	for (i = 0; i < 2; i++) {
		pass_expect(test, 0, pages[i]);
		q[i] = pass_expect(test, 1, pages[i]);
	}
	fake_complete(q[0]);
	fake_complete(q[1]);
	pass_expect(test, 1, 4);
	pass_expect(test, 1, 6);
	pass_expect(test, 0, 4);
	pass_expect(test, 0, 6);
	fake_finish();
}

/*
 * So many reads in each of one more region than are compared. The first one of each region
 * but the last is dispatched, then another one of the first region.
 */
static void pass_begin_crowd(struct kunit *test, unsigned int reads,
			     unsigned int region_depth)
{
	static const unsigned int pages[] = { 0, 2, 4 };
	struct pass_data *pd = pass_begin(test, (PASS_COMPARED + 1) * MB);
	unsigned int i;

	pd->region_depth = region_depth;
	for (i = 0; i <= PASS_COMPARED; i++)
		pass_fill(i, REQ_OP_READ, pages, NULL, reads);
	for (i = 0; i < PASS_COMPARED; i++)
		pass_expect(test, i, 0);
	pass_expect(test, 0, 2);
}

/* The last region is not compared until another one has left the ring. */
static void pass_test_compared(struct kunit *test)
{
	pass_begin_crowd(test, 2, 0);
	pass_expect(test, PASS_COMPARED, 0);
	fake_finish();
}

/* Nor until another one is full. */
static void pass_test_compared_full(struct kunit *test)
{
	pass_begin_crowd(test, 3, 2);
	pass_expect(test, PASS_COMPARED, 0);
	fake_finish();
}

/* A turn is a batch of one direction; all regions have one, then the other. */
static void pass_test_turns(struct kunit *test)
{
	static const unsigned int reads[] = { 0, 2, 4 };
	static const unsigned int writes[] = { 10, 12, 14 };
	struct pass_data *pd = pass_begin(test, 2 * MB);
	unsigned int i;
	/* Regions 0 and 1 take turns of two reads and of one write. */
	static const unsigned int order[][2] = {
		{ 0, 0 }, { 0, 2 }, { 1, 0 }, { 1, 2 }, { 0, 10 }, { 1, 10 },
		{ 0, 4 }, { 1, 4 }, { 0, 12 }, { 1, 12 }, { 0, 14 }, { 1, 14 },
	};

	pd->read_batch = 2;
	pd->write_batch = 1;
	for (i = 0; i < 2; i++) {
		pass_fill(i, REQ_OP_READ, reads, NULL, 3);
		pass_fill(i, REQ_OP_WRITE, writes, NULL, 3);
	}
	for (i = 0; i < ARRAY_SIZE(order); i++)
		fake_complete(pass_expect(test, order[i][0], order[i][1]));
	fake_finish();
}

/*
 * Start with turns of one read. So many regions have @reads reads each, region 0 also a
 * write on the page behind them. The first read is dispatched.
 */
static void pass_begin_lap(struct kunit *test, sector_t capacity,
			   unsigned int regions, unsigned int reads)
{
	static const unsigned int pages[] = { 0, 2, 4 };
	struct pass_data *pd = pass_begin(test, capacity);
	unsigned int i;

	pd->read_batch = 1;
	for (i = 0; i < regions; i++)
		pass_fill(i, REQ_OP_READ, pages, NULL, reads);
	pass_fill(0, REQ_OP_WRITE, &pages[reads], NULL, 1);
	pass_expect(test, 0, 0);
}

/*
 * Regions whose reads have expired have no turn left in the lap; the write is next, though
 * the regions have reads again.
 */
static void pass_test_expired_lap(struct kunit *test)
{
	static const unsigned int page;
	unsigned int i;

	pass_begin_lap(test, 4 * MB, 4, 1);
	fake_advance_ms(500);
	for (i = 1; i < 4; i++)
		pass_expect(test, i, 0);
	for (i = 0; i < 4; i++)
		pass_fill(i, REQ_OP_READ, &page, NULL, 1);
	pass_expect(test, 0, 2);
	pass_expect(test, 1, 0);
	fake_finish();
}

/* After four regions have become one, the lap has one turn left. */
static void pass_test_resized_lap(struct kunit *test)
{
	pass_begin_lap(test, 4 * MB, 4, 2);
	fake_set(test, "region_size_mb", "4");
	pass_expect(test, 0, 4);
	pass_expect(test, 0, 2);
	fake_finish();
}

/* A region that joins in the middle of a lap does not make it longer. */
static void pass_test_joining_lap(struct kunit *test)
{
	static const unsigned int page;

	pass_begin_lap(test, 3 * MB, 2, 2);
	pass_fill(2, REQ_OP_READ, &page, NULL, 1);
	pass_expect(test, 1, 0);
	pass_expect(test, 0, 4);
	pass_expect(test, 2, 0);
	pass_expect(test, 1, 2);
	pass_expect(test, 0, 2);
	fake_finish();
}

/* Requests bypass while none is queued, but not while regions are bounded. */
static void pass_test_bypass(struct kunit *test)
{
	struct pass_data *pd = pass_begin(test, 2 * MB);
	struct request *rq;

	pd->io.bypass = 1;
	rq = fake_alloc(REQ_OP_READ, 0, 8, 0);
	KUNIT_EXPECT_FALSE(test, rq->rq_flags & RQF_SCHED_TAGS);
	fake_complete(rq);
	pd->region_depth = 1;
	rq = fake_alloc(REQ_OP_READ, 0, 8, 0);
	KUNIT_EXPECT_TRUE(test, rq->rq_flags & RQF_SCHED_TAGS);
	fake_complete(rq);
	fake_finish();
}

/*
 * While the device has room for all, requests are dispatched in order of arrival. A region
 * that is full has the rest sorted.
 */
static void pass_test_fresh(struct kunit *test)
{
	static const unsigned int pages[] = { 40, 20, 30 };
	struct pass_data *pd = pass_begin(test, 2 * MB);
	struct request *rqs[3], *more[3];

	pd->io.bypass = 1;
	/* The driver takes lists of requests, so that none bypasses the queue. */
	pd->io.bypasses = false;
	/* The first one in a jiffy finds it calm: see tmpl/calm.h. */
	pass_fill(0, REQ_OP_READ, pages, rqs, 1);
	pass_expect(test, 0, 40);
	fake_complete(rqs[0]);
	pass_fill(0, REQ_OP_READ, pages, rqs, 3);
	pass_expect(test, 0, 40);
	pass_expect(test, 0, 20);
	pass_expect(test, 0, 30);
	pd->region_depth = 5;
	pass_fill(0, REQ_OP_READ, pages, more, 3);
	pass_expect(test, 0, 40);
	pass_expect(test, 0, 20);
	fake_expect_none(test);
	fake_complete(rqs[0]);
	pass_expect(test, 0, 30);
	/* Merging finds those that are not sorted. */
	fake_insert(REQ_OP_WRITE, MB, 8);
	fake_insert(REQ_OP_WRITE, MB + 64, 8);
	fake_insert(REQ_OP_WRITE, MB + 8, 8);
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 1U);
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_WRITE, MB + 72, 8, 0));
	fake_finish();
}

/* A turn ascends from the end of the region's last one, then wraps around. */
static void pass_test_ascending(struct kunit *test)
{
	static const unsigned int first[] = { 40, 20, 30 };
	static const unsigned int then[] = { 10, 50 };
	struct pass_data *pd = pass_begin(test, 2 * MB);

	pd->read_batch = 2;
	pass_fill(0, REQ_OP_READ, first, NULL, 3);
	pass_expect(test, 0, 20);
	pass_expect(test, 0, 30);
	pass_fill(0, REQ_OP_READ, then, NULL, 2);
	pass_expect(test, 0, 40);
	pass_expect(test, 0, 50);
	pass_expect(test, 0, 10);
	fake_expect_none(test);
	fake_finish();
}

/* A request past its deadline is dispatched first, but not into a full region. */
static void pass_test_deadline(struct kunit *test)
{
	static const unsigned int pages[] = { 100, 0, 2 };
	struct pass_data *pd = pass_begin(test, 2 * MB);
	struct request *rqs[3];

	pass_fill(0, REQ_OP_READ, pages, rqs, 3);
	fake_advance_ms(499);
	pass_expect(test, 0, 0);
	fake_advance_ms(1);
	pass_expect(test, 0, 100);
	pd->region_depth = 2;
	fake_expect_none(test);
	fake_complete(rqs[0]);
	pass_expect(test, 0, 2);
	fake_finish();
}

/* Neither a bio nor a request merges across a border of regions. */
static void pass_test_border(struct kunit *test)
{
	pass_begin(test, 2 * MB);
	fake_insert(REQ_OP_READ, MB - 8, 8);
	KUNIT_EXPECT_FALSE(test, fake_merge_bio(REQ_OP_READ, MB, 8, 0));
	fake_insert(REQ_OP_READ, MB, 8);
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 0U);
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, MB + 8, 8, 0));
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, MB - 16, 8, 0));
	fake_finish();
}

/* A device that grows gets more regions; requests in flight stay counted. */
static void pass_test_grow(struct kunit *test)
{
	struct pass_data *pd = pass_begin(test, 2 * MB);
	struct request *old, *rq;

	KUNIT_EXPECT_EQ(test, pd->map->nr, 2U);
	fake_insert(REQ_OP_READ, 0, 8);
	old = fake_dispatch();
	set_capacity(fake.disk, 5 * MB + 1);
	rq = fake_insert(REQ_OP_READ, 4 * MB, 8);
	model_sort_fresh();
	KUNIT_EXPECT_EQ(test, pass_queue_of(rq)->region - pd->map->region, 1L);
	KUNIT_EXPECT_TRUE(test, fake_has_works());
	fake_run_works();
	KUNIT_EXPECT_EQ(test, pd->map->nr, 6U);
	KUNIT_EXPECT_EQ(test, pass_queue_of(rq)->region - pd->map->region, 4L);
	KUNIT_EXPECT_FALSE(test, list_empty(&pd->retired));
	KUNIT_EXPECT_EQ(test, atomic_read(&pd->map->region[0].in_flight), 0);
	fake_complete(old);
	pass_reap(pd);
	KUNIT_EXPECT_TRUE(test, list_empty(&pd->retired));

	/* Beyond the capacity of the map, the last region takes the rest. */
	set_capacity(fake.disk, (sector_t)(PASS_MAX_REGIONS + 1) * MB);
	rq = fake_insert(REQ_OP_READ, 9 * MB, 8);
	KUNIT_EXPECT_EQ(test, pass_queue_of(rq)->region - pd->map->region, 5L);
	/* Regions of 1 MB would be too many. */
	fake_run_works();
	KUNIT_EXPECT_EQ(test, pd->map->nr, PASS_MAX_REGIONS / 2 + 1);
	KUNIT_EXPECT_EQ(test, pd->region_size_mb, 2U);
	KUNIT_EXPECT_EQ(test, pass_queue_of(rq)->region - pd->map->region, 4L);
	fake_insert(REQ_OP_READ, 10 * MB, 8);
	KUNIT_EXPECT_FALSE(test, fake_has_works());
	fake_finish();
}

static void pass_test_region_size(struct kunit *test)
{
	sector_t most = (sector_t)PASS_MAX_REGIONS * MB;
	struct pass_data *pd;

	/* Too many regions get a size that fits at the start, and are refused on a change. */
	pd = pass_begin(test, 3 * most + 1);
	KUNIT_EXPECT_EQ(test, pd->region_size_mb, 4U);
	KUNIT_EXPECT_EQ(test, pd->map->nr, 3 * PASS_MAX_REGIONS / 4 + 1);
	fake_stop();
	pd = pass_begin(test, most);
	KUNIT_EXPECT_EQ(test, pd->map->nr, PASS_MAX_REGIONS);
	set_capacity(fake.disk, most + MB);
	KUNIT_EXPECT_EQ(test, fake_try_set("region_size_mb", "1\n"),
			(ssize_t)-EINVAL);
	KUNIT_EXPECT_EQ(test, fake_try_set("region_size_mb", "0"),
			(ssize_t)-EINVAL);
	fake_set(test, "region_size_mb", "2\n");
	KUNIT_EXPECT_EQ(test, pd->map->nr, PASS_MAX_REGIONS / 2 + 1);
	fake_stop();
}

/* An empty device has one region; a queue without a disk counts as empty. */
static void pass_test_empty(struct kunit *test)
{
	struct gendisk *disk = fake.disk;
	struct pass_data *pd = pass_begin(test, 0);

	KUNIT_EXPECT_EQ(test, pd->map->nr, 1U);
	fake.q->disk = NULL;
	KUNIT_EXPECT_EQ(test, pass_capacity(fake.q), (sector_t)0);
	fake.q->disk = disk;
	fake_insert(REQ_OP_READ, 12345, 8);
	fake_finish();
}

static void pass_test_files(struct kunit *test)
{
	static const unsigned int pages[] = { 0, 2 };

	pass_begin(test, 2 * MB);
	pass_fill(0, REQ_OP_READ, pages, NULL, 2);
	pass_fill(1, REQ_OP_WRITE, pages, NULL, 1);
	pass_expect(test, 0, 0);
	fake_expect_file(test, pass_regions_show,
			 "# 2 regions of 1 MB\n"
			 "region reads writes queued in_flight\n"
			 "0 1 0 1 1\n"
			 "1 0 0 1 0\n");
	fake_finish();
}

/* The model. A request's priv[0] is its region, priv[1] the map it counts in. */

static struct {
	unsigned int region_mb;
	unsigned int regions;
	unsigned int read_batch;
	unsigned int write_batch;
	unsigned int region_depth;
	long map;			/* number of the current map */
	int ring[IOSCHED_TIERS][IOSCHED_DIRS][REGIONS + 1];
	struct {
		sector_t pos[IOSCHED_DIRS];
		unsigned int taken[IOSCHED_DIRS];
	} queue[IOSCHED_TIERS][REGIONS];
	struct {
		unsigned int dir;
		unsigned int left;	/* turns, 0 before the first one */
	} lap[IOSCHED_TIERS];
} pm;

static unsigned int pm_region(sector_t sector)
{
	return min_t(sector_t, sector / (pm.region_mb * MB), pm.regions - 1);
}

static void pm_next_lap(unsigned int tier)
{
	pm.lap[tier].dir = !pm.lap[tier].dir;
	pm.lap[tier].left = 0;
}

/* So many regions can have a turn in the lap. */
static void pm_shorten(unsigned int tier, unsigned int regions)
{
	if (pm.lap[tier].left && !regions)
		pm_next_lap(tier);
	pm.lap[tier].left = min(pm.lap[tier].left, regions);
}

static void pm_forget(void)
{
	sector_t capacity = get_capacity(fake.disk);
	struct model_request *mr;
	unsigned int tier;

	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		pm_shorten(tier, 0);
	model_for_each(mr)
		if (mr->state == MODEL_QUEUED)
			mr->priv[0] = -1;
	pm.regions = DIV_ROUND_UP(capacity, pm.region_mb * MB);
	pm.map++;
	memset(pm.queue, 0, sizeof(pm.queue));
	memset(pm.ring, -1, sizeof(pm.ring));
}

static void pm_start(struct kunit *test)
{
	struct pass_data *pd = pass_of(iosched_of(fake.q));

	pm.region_mb = 1;
	pm.read_batch = 1 + fake_random(4);
	pm.write_batch = 1 + fake_random(4);
	pm.region_depth = fake_random(4);
	pd->read_batch = pm.read_batch;
	pd->write_batch = pm.write_batch;
	pd->region_depth = pm.region_depth;
	memset(pm.lap, 0, sizeof(pm.lap));
	pm_forget();
}

/* Move a region to the end of its ring. */
static void pm_ring_rotate(int *ring, int region)
{
	model_ring_remove(ring, region);
	model_ring_add(ring, region);
}

static void pm_queued(struct model_request *mr)
{
	mr->priv[0] = pm_region(mr->sector);
	mr->priv[1] = pm.map;
	if (model_count_group(mr->tier, mr->dir, mr->priv[0]) == 1)
		model_ring_add(pm.ring[mr->tier][mr->dir], mr->priv[0]);
}

/* Return the number of regions that have queued requests. */
static unsigned int pm_regions(unsigned int tier, unsigned int dir)
{
	unsigned int region, nr = 0;

	for (region = 0; region < pm.regions; region++)
		nr += model_count_group(tier, dir, region) > 0;
	return nr;
}

static void pm_unqueued(struct model_request *mr)
{
	if (model_count_group(mr->tier, mr->dir, mr->priv[0]))
		return;
	model_ring_remove(pm.ring[mr->tier][mr->dir], mr->priv[0]);
	if (pm.lap[mr->tier].dir == mr->dir)
		pm_shorten(mr->tier, pm_regions(mr->tier, mr->dir));
	pm.queue[mr->tier][mr->priv[0]].taken[mr->dir] = 0;
}

/* Return the number of counted requests in flight in a region of the current map. */
static unsigned int pm_in_flight(long region)
{
	struct model_request *mr;
	unsigned int in_flight = 0;

	model_for_each(mr)
		in_flight += mr->state == MODEL_IN_FLIGHT && mr->counted &&
			     mr->priv[0] == region && mr->priv[1] == pm.map;
	return in_flight;
}

static bool pm_full(long region)
{
	return pm.region_depth && pm_in_flight(region) >= pm.region_depth;
}

static bool pm_ready(struct model_request *mr)
{
	return !pm_full(mr->priv[0]);
}

/* The next request of a turn of a region, which has one of the lap's direction. */
static struct model_request *pm_take(unsigned int tier, int region)
{
	unsigned int dir = pm.lap[tier].dir, *left = &pm.lap[tier].left;
	unsigned int *taken = &pm.queue[tier][region].taken[dir];
	sector_t *pos = &pm.queue[tier][region].pos[dir];
	struct model_request *mr;

	if (!*left)
		*left = pm_regions(tier, dir);
	mr = model_lowest(tier, dir, *pos, region);
	if (!mr)
		mr = model_lowest(tier, dir, 0, region);
	*pos = mr->end;
	++*taken;
	if (*taken < (dir == READ ? pm.read_batch : pm.write_batch) &&
	    model_count_group(tier, dir, region) > 1)
		return mr;
	*taken = 0;
	pm_ring_rotate(pm.ring[tier][dir], region);
	if (!--*left)
		pm_next_lap(tier);
	return mr;
}

/*
 * The first regions of the ring have a turn left in the lap. The next one of them is the
 * first with the fewest requests in flight that is not full; if all are full, the first
 * other region that is not.
 */
static int pm_least(unsigned int tier)
{
	unsigned int dir = pm.lap[tier].dir, i;
	unsigned int turns = pm.lap[tier].left ?: pm_regions(tier, dir);
	int *ring = pm.ring[tier][dir], best = -1;

	for (i = 0; i < turns; i++)
		if (!pm_full(ring[i]) &&
		    (best < 0 || pm_in_flight(ring[i]) < pm_in_flight(best)))
			best = ring[i];
	for (; best < 0 && ring[i] >= 0; i++)
		if (!pm_full(ring[i]))
			best = ring[i];
	return best;
}

static struct model_request *pm_go_on(unsigned int tier, unsigned int only)
{
	int region;

	if (only != IOSCHED_ANY && pm.lap[tier].dir != only)
		return NULL;
	region = pm_least(tier);
	return region < 0 ? NULL : pm_take(tier, region);
}

static struct model_request *pm_select(unsigned int tier, unsigned int only)
{
	struct model_request *mr = pm_go_on(tier, only);
	unsigned int left = pm.lap[tier].left;

	if (mr)
		return mr;
	pm_next_lap(tier);
	mr = pm_go_on(tier, only);
	if (!mr) {
		pm_next_lap(tier);
		pm.lap[tier].left = left;
	}
	return mr;
}

static bool pm_may_merge(unsigned int dir, sector_t start, sector_t end)
{
	return pm_region(start) == pm_region(end - 1);
}

static void pm_disturb(struct kunit *test)
{
	switch (fake_random(5)) {
	case 0:
		model_set(test, "read_batch", &pm.read_batch, 1 + fake_random(4));
		break;
	case 1:
		model_set(test, "write_batch", &pm.write_batch, 1 + fake_random(4));
		break;
	case 2:
		model_set(test, "region_depth", &pm.region_depth, fake_random(4));
		break;
	case 3:
		model_set(test, "region_size_mb", &pm.region_mb, 1 + fake_random(4));
		pm_forget();
		model_replaced();
		break;
	default:
		/* The next request notices the change and schedules the work. */
		if (!fake_has_works()) {
			set_capacity(fake.disk, (5 + fake_random(4)) * MB);
			break;
		}
		fake_run_works();
		pm_forget();
		model_replaced();
	}
}

/* A lap has no more turns left than sub-queues that can have one. */
static void pm_compare(struct kunit *test)
{
	struct pass_data *pd = pass_of(iosched_of(fake.q));
	unsigned int tier;

	for (tier = 0; tier < IOSCHED_TIERS; tier++) {
		struct pass_lap *lap = &pd->lap[tier];

		MODEL_ASSERT(test, lap->left <= pm_regions(tier, lap->dir),
			     "tier %u: %u turns left", tier, lap->left);
	}
}

static const struct model_policy pass_model = {
	.type = &iosched_type,
	.capacity = REGIONS * MB,
	.spread = MB / 2,
	.start = pm_start,
	.select = pm_select,
	.ready = pm_ready,
	.may_merge = pm_may_merge,
	.queued = pm_queued,
	.unqueued = pm_unqueued,
	.disturb = pm_disturb,
	.compare = pm_compare,
};

static void pass_test_random(struct kunit *test)
{
	model_run(test, &pass_model);
}

static struct kunit_case pass_cases[] = {
	KUNIT_CASE(pass_test_figure_6),
	KUNIT_CASE(pass_test_figure_6_unbound),
	KUNIT_CASE(pass_test_alternate),
	KUNIT_CASE(pass_test_alternate_only),
	KUNIT_CASE(pass_test_replace_full),
	KUNIT_CASE(pass_test_alternate_random),
	KUNIT_CASE(pass_test_balance),
	KUNIT_CASE(pass_test_compared),
	KUNIT_CASE(pass_test_compared_full),
	KUNIT_CASE(pass_test_turns),
	KUNIT_CASE(pass_test_expired_lap),
	KUNIT_CASE(pass_test_resized_lap),
	KUNIT_CASE(pass_test_joining_lap),
	KUNIT_CASE(pass_test_bypass),
	KUNIT_CASE(pass_test_fresh),
	KUNIT_CASE(pass_test_ascending),
	KUNIT_CASE(pass_test_deadline),
	KUNIT_CASE(pass_test_border),
	KUNIT_CASE(pass_test_grow),
	KUNIT_CASE(pass_test_region_size),
	KUNIT_CASE(pass_test_empty),
	KUNIT_CASE(pass_test_files),
	KUNIT_CASE_SLOW(pass_test_random),
	{}
};

static struct kunit_suite pass_suite = {
	.name = "pass-iosched",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = pass_test_init,
	.test_cases = pass_cases,
};

kunit_test_suite(pass_suite);
