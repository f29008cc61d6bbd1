// SPDX-License-Identifier: GPL-2.0
/*
 * PASS: its rules one by one, the paper's figure 6, and random sequences against
 * a model of it.
 */
#include "fake-blk.h"
#include "../../pass-iosched.c"
#include "model.h"

#define MB	2048U		/* sectors */
#define REGIONS	8		/* of 1 MB, on a device of 8 MB */

static int pass_test_init(struct kunit *test)
{
	region_size_mb_tunable.value = 1;
	return 0;
}

static struct pass_data *pass_begin(struct kunit *test, sector_t capacity)
{
	KUNIT_ASSERT_EQ(test, fake_start(&iosched_type, capacity), 0);
	return pass_of(iosched_of(fake.q));
}

/* Queue requests of a page each at these pages of a region. */
static void pass_fill(unsigned int region, blk_opf_t opf,
		      const unsigned int *pages, struct request **rqs,
		      unsigned int nr)
{
	while (nr--) {
		struct request *rq = fake_insert(opf, region * MB + *pages++ * 8, 8);

		if (rqs)
			*rqs++ = rq;
	}
}

/* What comes next: a page of a region, -1 for nothing. */
static void pass_expect(struct kunit *test, int region, int page)
{
	struct request *rq = fake_dispatch();

	if (region < 0) {
		KUNIT_EXPECT_NULL(test, rq);
		return;
	}
	KUNIT_ASSERT_NOT_NULL(test, rq);
	KUNIT_EXPECT_EQ(test, (u64)blk_rq_pos(rq), (u64)region * MB + page * 8);
}

/*
 * Figure 6: two regions that serve two requests at a time well. R1 R2 go, then
 * Q1 Q2, and each that is done lets the next of its region go.
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
	pass_expect(test, 0, 2);
	pass_expect(test, 1, 0);
	pass_expect(test, 1, 2);
	pass_expect(test, -1, 0);
	KUNIT_EXPECT_FALSE(test, fake_has_work());

	fake_complete(q[0]);
	KUNIT_EXPECT_EQ(test, fake_runs, 1U);
	pass_expect(test, 1, 4);
	pass_expect(test, -1, 0);
	fake_complete(r[1]);
	KUNIT_EXPECT_EQ(test, fake_runs, 2U);
	pass_expect(test, 0, 4);
	fake_complete(r[0]);
	fake_complete(r[2]);
	pass_expect(test, 0, 6);
	fake_finish();
}

/* Without a bound all of region 0's turn goes first. */
static void pass_test_figure_6_unbound(struct kunit *test)
{
	static const unsigned int pages[] = { 0, 2, 4, 6 };
	unsigned int i;

	pass_begin(test, 2 * MB);
	pass_fill(0, REQ_OP_READ, pages, NULL, 4);
	pass_fill(1, REQ_OP_READ, pages, NULL, 4);
	for (i = 0; i < 8; i++) {
		struct request *rq = fake_dispatch();

		KUNIT_ASSERT_NOT_NULL(test, rq);
		KUNIT_EXPECT_EQ(test, (u64)blk_rq_pos(rq),
				(u64)(i / 4 * MB + pages[i % 4] * 8));
		fake_complete(rq);
	}
	fake_finish();
}

/* A turn has one direction and at most a batch; the next one takes the other. */
static void pass_test_turns(struct kunit *test)
{
	static const unsigned int reads[] = { 0, 2, 4 };
	static const unsigned int writes[] = { 10, 12, 14 };
	struct pass_data *pd = pass_begin(test, 2 * MB);
	struct request *rq;
	unsigned int i;
	/* Regions 0 and 1 in turn; two reads, one write, ... of each. */
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
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		rq = fake_dispatch();
		KUNIT_ASSERT_NOT_NULL(test, rq);
		KUNIT_EXPECT_EQ(test, (u64)blk_rq_pos(rq),
				(u64)(order[i][0] * MB + order[i][1] * 8));
		fake_complete(rq);
	}
	fake_finish();
}

/* Ascending from where the last turn stopped, then from the lowest again. */
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
	pass_expect(test, -1, 0);
	fake_finish();
}

/*
 * 5 % of 64 tags are three: while reads are about no more writes are in flight,
 * what is put off goes when one has ended or the reads are forgotten.
 */
static void pass_test_write_share(struct kunit *test)
{
	static const unsigned int pages[] = { 0, 2, 4, 6, 8 };
	struct pass_data *pd = pass_begin(test, 2 * MB);
	struct request *writes[5], *read;

	pd->write_share = 5;
	pass_fill(1, REQ_OP_READ, pages, &read, 1);
	pass_expect(test, 1, 0);
	fake_complete(read);
	pass_fill(0, REQ_OP_WRITE, pages, writes, 5);
	pass_expect(test, 0, 0);
	pass_expect(test, 0, 2);
	pass_expect(test, 0, 4);
	pass_expect(test, -1, 0);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	/* A read goes all the same. */
	pass_fill(0, REQ_OP_READ, &pages[4], &read, 1);
	pass_expect(test, 0, 8);
	fake_complete(read);
	pass_expect(test, -1, 0);
	fake_complete(writes[0]);
	pass_expect(test, 0, 6);
	pass_expect(test, -1, 0);
	fake_advance_ms(PASS_READS_RECENT);
	pass_expect(test, 0, 8);
	fake_complete(writes[1]);
	fake_complete(writes[2]);
	fake_complete(writes[3]);
	fake_complete(writes[4]);
	fake_stop();
}

/* Whose deadline has passed goes first, but never into a full region. */
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
	pass_expect(test, -1, 0);
	fake_complete(rqs[0]);
	pass_expect(test, 0, 2);
	fake_complete(rqs[1]);
	fake_complete(rqs[2]);
	fake_stop();
}

/* No merge across a border, neither of a bio nor of a request. */
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

/* A device that grows gets more regions; what is in flight stays counted. */
static void pass_test_grow(struct kunit *test)
{
	struct pass_data *pd = pass_begin(test, 2 * MB);
	struct request *old, *rq;

	KUNIT_EXPECT_EQ(test, pd->map->nr, 2U);
	fake_insert(REQ_OP_READ, 0, 8);
	old = fake_dispatch();
	set_capacity(fake.disk, 5 * MB + 1);
	rq = fake_insert(REQ_OP_READ, 4 * MB, 8);
	model_sort_alone();
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

	/* Beyond what the map can hold: the last region takes the rest. */
	set_capacity(fake.disk, (sector_t)(PASS_MAX_REGIONS + 1) * MB);
	rq = fake_insert(REQ_OP_READ, 9 * MB, 8);
	fake_run_works();
	KUNIT_EXPECT_EQ(test, pd->map->nr, 6U);
	KUNIT_EXPECT_EQ(test, pass_queue_of(rq)->region - pd->map->region, 5L);
	fake_insert(REQ_OP_READ, 10 * MB, 8);
	KUNIT_EXPECT_FALSE(test, fake_has_works());
	fake_finish();
}

static void pass_test_region_size(struct kunit *test)
{
	sector_t most = (sector_t)PASS_MAX_REGIONS * MB;
	struct pass_data *pd;

	/* Too many regions: refused at the start, and later. */
	KUNIT_EXPECT_EQ(test, fake_start(&iosched_type, most + MB),
			COMPAT_REFUSED);
	pd = pass_begin(test, most);
	KUNIT_EXPECT_EQ(test, pd->map->nr, PASS_MAX_REGIONS);
	set_capacity(fake.disk, most + MB);
	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "region_size_mb", "1\n"),
			(ssize_t)-EINVAL);
	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "region_size_mb", "0"),
			(ssize_t)-EINVAL);
	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "region_size_mb", "2\n"),
			(ssize_t)2);
	KUNIT_EXPECT_EQ(test, pd->map->nr, PASS_MAX_REGIONS / 2 + 1);
	fake_stop();
}

/* An empty device, or one without a disk yet, has one region. */
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
	struct request *rq;

	pass_begin(test, 2 * MB);
	pass_fill(0, REQ_OP_READ, pages, NULL, 2);
	pass_fill(1, REQ_OP_WRITE, pages, NULL, 1);
	rq = fake_dispatch();
	fake_expect_file(test, pass_regions_show,
			 "# 2 regions of 1 MB\n"
			 "region reads writes queued in_flight\n"
			 "0 1 0 1 1\n"
			 "1 0 0 1 0\n");
	fake_complete(rq);
	fake_finish();
}

/*
 * The model: sub-queues as plain numbers, rings as plain arrays.
 */
static struct {
	unsigned int region_mb;
	unsigned int regions;
	unsigned int read_batch;
	unsigned int write_batch;
	unsigned int region_depth;
	unsigned int write_share;
	unsigned long reads_until;	/* reads are about until then, jiffies */
	bool reads_seen;
	long map;			/* which map in_flight counts in */
	int ring[IOSCHED_TIERS][REGIONS + 1];	/* ends with -1 */
	struct {
		sector_t pos[IOSCHED_DIRS];
		unsigned int taken;
		unsigned int dir;
	} queue[IOSCHED_TIERS][REGIONS];
} pm;

/* In priv[0] the region, in priv[1] the map, of a model_request. */
static unsigned int pm_region(sector_t sector)
{
	return min_t(sector_t, sector / (pm.region_mb * MB), pm.regions - 1);
}

static void pm_forget(void)
{
	sector_t capacity = get_capacity(fake.disk);
	struct model_request *mr;

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
	pm.write_share = fake_random(2) ? 5 : 100;
	pd->write_share = pm.write_share;
	pm.reads_seen = false;
	pm_forget();
}

static unsigned int pm_count(unsigned int tier, long region, int dir)
{
	struct model_request *mr;
	unsigned int count = 0;

	model_for_each(mr)
		count += mr->state == MODEL_QUEUED && mr->tier == tier &&
			 mr->priv[0] == region && (dir < 0 || mr->dir == dir);
	return count;
}

static void pm_ring_add(unsigned int tier, int region)
{
	int *end = pm.ring[tier];

	while (*end >= 0)
		end++;
	*end = region;
}

static void pm_ring_remove(unsigned int tier, int region)
{
	int *at = pm.ring[tier];

	while (*at != region)
		at++;
	do {
		*at = at[1];
	} while (*at++ >= 0);
}

static void pm_queued(struct model_request *mr)
{
	mr->priv[0] = pm_region(mr->sector);
	mr->priv[1] = pm.map;
	if (pm_count(mr->tier, mr->priv[0], -1) == 1)
		pm_ring_add(mr->tier, mr->priv[0]);
}

static void pm_unqueued(struct model_request *mr)
{
	if (!pm_count(mr->tier, mr->priv[0], -1))
		pm_ring_remove(mr->tier, mr->priv[0]);
}

static bool pm_full(long region)
{
	struct model_request *mr;
	unsigned int in_flight = 0;

	model_for_each(mr)
		in_flight += mr->state == MODEL_IN_FLIGHT && mr->counted &&
			     mr->priv[0] == region && mr->priv[1] == pm.map;
	return pm.region_depth && in_flight >= pm.region_depth;
}

/* A share of less than one write is one. */
static bool pm_writes_full(void)
{
	struct model_request *mr;
	unsigned int in_flight = 0;

	model_for_each(mr)
		in_flight += mr->state == MODEL_IN_FLIGHT &&
			     !mr->polled && mr->dir == WRITE;
	return pm.write_share < 100 && pm.reads_seen &&
	       time_before(jiffies, pm.reads_until) && in_flight &&
	       (in_flight + 1) * 100 > fake.set.queue_depth * pm.write_share;
}

static void pm_dispatched(struct model_request *mr)
{
	if (mr->dir != READ)
		return;
	pm.reads_seen = true;
	pm.reads_until = jiffies + PASS_READS_RECENT;
}

static bool pm_ready(struct model_request *mr)
{
	return !pm_full(mr->priv[0]);
}

static struct model_request *pm_take(unsigned int tier, int region)
{
	unsigned int *dir = &pm.queue[tier][region].dir, batch;
	unsigned int *taken = &pm.queue[tier][region].taken;
	sector_t *pos = pm.queue[tier][region].pos;
	struct model_request *mr;

	if (!pm_count(tier, region, *dir) ||
	    (*dir == WRITE && pm_writes_full())) {
		*taken = 0;
		*dir = !*dir;
	}
	mr = model_lowest(tier, *dir, pos[*dir], region);
	if (!mr)
		mr = model_lowest(tier, *dir, 0, region);
	pos[*dir] = mr->end;
	batch = *dir == READ ? pm.read_batch : pm.write_batch;
	if (++*taken >= batch || pm_count(tier, region, *dir) == 1) {
		*taken = 0;
		*dir = !*dir;
		pm_ring_remove(tier, region);
		pm_ring_add(tier, region);
	}
	return mr;
}

/* Whether it has a request that may go. */
static bool pm_can_take(unsigned int tier, int region)
{
	return !pm_full(region) &&
	       (!pm_writes_full() || pm_count(tier, region, READ));
}

/* The first of the ring that can; those before it go behind. */
static struct model_request *pm_select(unsigned int tier)
{
	int i, region;

	for (i = 0; i < REGIONS && pm.ring[tier][i] >= 0; i++)
		if (pm_can_take(tier, pm.ring[tier][i]))
			break;
	if (i == REGIONS || pm.ring[tier][i] < 0)
		return NULL;
	while (i--) {
		region = pm.ring[tier][0];
		pm_ring_remove(tier, region);
		pm_ring_add(tier, region);
	}
	return pm_take(tier, pm.ring[tier][0]);
}

static bool pm_may_merge(unsigned int dir, sector_t start, sector_t end)
{
	return pm_region(start) == pm_region(end - 1);
}

static void pm_disturb(struct kunit *test)
{
	switch (fake_random(6)) {
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
		model_set(test, "write_share", &pm.write_share,
			  fake_random(2) ? 1 + fake_random(10) : 100);
		break;
	case 4:
		model_set(test, "region_size_mb", &pm.region_mb, 1 + fake_random(4));
		pm_forget();
		model_replaced();
		break;
	default:
		/* Seen with the next request; then comes the work. */
		if (!fake_has_works()) {
			set_capacity(fake.disk, (5 + fake_random(4)) * MB);
			break;
		}
		fake_run_works();
		pm_forget();
		model_replaced();
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
	.dispatched = pm_dispatched,
	.disturb = pm_disturb,
};

static void pass_test_random(struct kunit *test)
{
	model_run(test, &pass_model);
}

static struct kunit_case pass_cases[] = {
	KUNIT_CASE(pass_test_figure_6),
	KUNIT_CASE(pass_test_figure_6_unbound),
	KUNIT_CASE(pass_test_turns),
	KUNIT_CASE(pass_test_ascending),
	KUNIT_CASE(pass_test_write_share),
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
