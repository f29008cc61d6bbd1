// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the elevator core under a minimal policy: FIFOs, deadlines, priority
 * tiers, merging, accounting and wake-ups one by one, then random sequences
 * against the model.
 */
#include "core-policy.h"
#include "model.h"

#define CAPACITY	4096U	/* sectors */

static struct core_data *core_begin(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, fake_start(&iosched_type, CAPACITY), 0);
	return core_of(iosched_of(fake.q));
}

static unsigned int core_limit(struct iosched *io)
{
	unsigned int limit;

	spin_lock(&io->lock);
	limit = iosched_limit(io);
	spin_unlock(&io->lock);
	return limit;
}

static struct request *core_insert(blk_opf_t opf, sector_t sector,
				   unsigned int class)
{
	return fake_insert_prio(opf, sector, 8, class, 0);
}

static void core_test_order(struct kunit *test)
{
	struct request *a, *b, *c, *w;

	core_begin(test);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	w = fake_insert(REQ_OP_WRITE, 0, 8);
	b = fake_insert(REQ_OP_READ, 300, 8);
	a = fake_insert(REQ_OP_READ, 100, 8);
	c = fake_insert_head(REQ_OP_READ, 900, 8);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), c);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), a);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), b);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), w);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	fake_finish();
}

/* From its deadline on, a request overrides the policy; the earliest comes first. */
static void core_test_deadlines(struct kunit *test)
{
	struct request *w, *r, *x;

	core_begin(test);
	w = fake_insert(REQ_OP_WRITE, 2000, 8);
	fake_advance_ms(4600);
	r = fake_insert(REQ_OP_READ, 1000, 8);
	fake_advance_ms(399);
	x = fake_insert(REQ_OP_READ, 0, 8);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), x);
	fake_advance_ms(101);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), w);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), r);
	fake_expect_file(test, iosched_counters_show,
			 "tier dir inserted merged dispatched completed expired requeued queued in_flight polled bypassed\n"
			 "rt read 0 0 0 0 0 0 0 0 0 0\n"
			 "rt write 0 0 0 0 0 0 0 0 0 0\n"
			 "be read 2 0 2 0 1 0 0 2 0 0\n"
			 "be write 1 0 1 0 1 0 0 1 0 0\n"
			 "idle read 0 0 0 0 0 0 0 0 0 0\n"
			 "idle write 0 0 0 0 0 0 0 0 0 0\n");
	fake_finish();
}

/* A lower class waits for a higher one that is queued or in flight, until it ages. */
static void core_test_classes(struct kunit *test)
{
	struct request *rt, *be, *idle, *old;

	core_begin(test);
	idle = core_insert(REQ_OP_READ, 0, IOPRIO_CLASS_IDLE);
	be = core_insert(REQ_OP_READ, 100, IOPRIO_CLASS_NONE);
	rt = core_insert(REQ_OP_READ, 200, IOPRIO_CLASS_RT);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rt);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_complete(rt);
	KUNIT_EXPECT_EQ(test, fake_runs, 1U);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), be);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	fake_advance_ms(9999);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_advance_ms(1);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), idle);
	fake_complete(idle);
	old = core_insert(REQ_OP_WRITE, 0, IOPRIO_CLASS_IDLE);
	fake_advance_ms(10000);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), old);
	fake_finish();
}

/* A merged request has the earlier deadline, and its place in the FIFO. */
static void core_test_merge(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *a, *b, *c;

	c = fake_insert(REQ_OP_READ, 24, 8);
	fake_advance_ms(10);
	b = fake_insert(REQ_OP_READ, 200, 8);
	a = fake_insert(REQ_OP_READ, 8, 8);
	/* Fills the gap between a and c: all are merged, in the place of c. */
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, 16, 8, 0));
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 1U);
	KUNIT_EXPECT_PTR_EQ(test, fake.freed[0], c);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(a), 24U);
	KUNIT_EXPECT_EQ(test, data->inherited, 1U);
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&data->io.fifo[IOSCHED_BE][READ],
						   struct request, queuelist), a);
	/* A front merge. */
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, 0, 8, 0));
	KUNIT_EXPECT_EQ(test, (u64)blk_rq_pos(a), 0ULL);
	data->io.front_merges = 0;
	KUNIT_EXPECT_FALSE(test, fake_merge_bio(REQ_OP_READ, 192, 8, 0));
	/* No merge with another direction or class. */
	KUNIT_EXPECT_FALSE(test, fake_merge_bio(REQ_OP_WRITE, 208, 8, 0));
	KUNIT_EXPECT_FALSE(test, fake_merge_bio(REQ_OP_READ, 208, 8,
						IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0)));
	/* Merge of a request. */
	fake_insert(REQ_OP_READ, 208, 8);
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 1U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(b), 16U);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), a);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), b);
	fake_finish();
}

/* No kind of merge crosses a border of the policy. */
static void core_test_borders(struct kunit *test)
{
	struct request *left, *right;

	core_begin(test);
	left = fake_insert(REQ_OP_READ, CORE_BORDER - 16, 8);
	right = fake_insert(REQ_OP_READ, CORE_BORDER, 8);
	KUNIT_EXPECT_FALSE(test, fake_merge_bio(REQ_OP_READ, CORE_BORDER - 8,
						16, 0));
	/* The requests are adjacent, but not merged. */
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, CORE_BORDER - 8,
					       8, 0));
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 0U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(left), 16U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(right), 8U);
	fake_insert(REQ_OP_READ, CORE_BORDER + 8, 8);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(right), 16U);
	fake_finish();
}

/* Requests held by a bound are no work; each event that makes room wakes them. */
static void core_test_bounds(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *rqs[3];
	unsigned int i;

	fake_set(test, "depth", "1\n");
	for (i = 0; i < 3; i++)
		rqs[i] = fake_insert(REQ_OP_READ, 100 * i, 8);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[0]);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	KUNIT_EXPECT_FALSE(test, fake_has_work());

	fake_complete(rqs[0]);
	KUNIT_EXPECT_EQ(test, fake_runs, 1U);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[1]);
	KUNIT_EXPECT_NULL(test, fake_dispatch());

	fake_set(test, "depth", "0");
	KUNIT_EXPECT_EQ(test, fake_runs, 2U);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[2]);

	data->limit = 2;
	rqs[0] = fake_insert(REQ_OP_READ, 0, 8);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_requeue(rqs[2]);
	KUNIT_EXPECT_EQ(test, fake_runs, 3U);
	fake_insert_request(rqs[2], true);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[2]);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[0]);
	fake_finish();
}

/*
 * 5 % of 64 tags are three. For some time after a read no more writes are in flight; a
 * held write is dispatched when another one completes or when that time is over.
 */
static void core_test_write_share(struct kunit *test)
{
	struct request *writes[5], *read;
	unsigned int i;

	core_begin(test);
	fake_set(test, "write_share", "5");
	/* The first write is alone, the second is sorted. */
	read = fake_insert(REQ_OP_READ, 500, 8);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), read);
	fake_complete(read);
	for (i = 0; i < 5; i++)
		writes[i] = fake_insert(REQ_OP_WRITE, 100 * i, 8);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), writes[i]);
	fake_expect_none(test);
	/* Another write cannot be dispatched either: nothing runs the queue. */
	fake_insert(REQ_OP_WRITE, 600, 8);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	/* A read is still dispatched. */
	read = fake_insert(REQ_OP_READ, 500, 8);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), read);
	fake_complete(read);
	fake_expect_none(test);
	fake_complete(writes[0]);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), writes[3]);
	fake_expect_none(test);
	/* Polled reads count, passthrough does not. */
	fake_advance_ms(IOSCHED_READS_RECENT / 2);
	read = fake_insert(REQ_OP_READ | REQ_POLLED, 900, 8);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), read);
	fake_advance_ms(IOSCHED_READS_RECENT / 2);
	read = fake_insert(REQ_OP_DRV_IN, 0, 0);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), read);
	fake_expect_none(test);
	fake_advance_ms(IOSCHED_READS_RECENT / 2);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), writes[4]);
	fake_expect(test, 600);
	fake_finish();
}

/* A read is dispatched, whatever the bounds. */
static void core_poll_read(struct kunit *test)
{
	fake_insert(REQ_OP_READ | REQ_POLLED, 900, 8);
	fake_expect(test, 900);
}

/*
 * A write that is alone is held as well. Those that the device does not complete hold it
 * no longer.
 */
static void core_test_writes_stuck(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *first, *second;

	data->writes_first = true;
	fake_set(test, "write_share", "1");
	core_poll_read(test);
	first = fake_insert(REQ_OP_WRITE, 0, 8);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), first);
	second = fake_insert(REQ_OP_WRITE, 100, 8);
	fake_expect_none(test);
	fake_advance_ms(IOSCHED_SLACK - 1);
	core_poll_read(test);
	fake_expect_none(test);
	fake_advance_ms(1);
	fake_insert(REQ_OP_READ, 500, 8);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), second);
	fake_expect(test, 500);
	fake_finish();
}

/* Past its deadline, a write has half of the tags, but no more. */
static void core_test_write_share_expired(struct kunit *test)
{
	unsigned int i;

	core_begin(test);
	fake_set(test, "write_share", "1");
	fake_set(test, "write_expire", "20");
	fake_set(test, "depth", "4");
	for (i = 0; i < 3; i++)
		fake_insert(REQ_OP_WRITE, 100 * i, 8);
	core_poll_read(test);
	fake_expect(test, 0);
	fake_expect_none(test);
	fake_advance_ms(20);
	core_poll_read(test);
	fake_expect(test, 100);
	fake_expect_none(test);
	fake_finish();
}

/* The dispatch limit of a SCSI device is its budget, if that is less than its tags. */
static void core_test_budget(struct kunit *test)
{
	unsigned int i;

	core_begin(test);
	fake.q->queue_depth = 4;
	fake_set(test, "write_share", "50");
	core_poll_read(test);
	for (i = 0; i < 3; i++)
		fake_insert(REQ_OP_WRITE, 100 * i, 8);
	fake_expect(test, 0);
	fake_expect(test, 100);
	fake_expect_none(test);
	for (i = 5; i < 8; i++)
		fake_insert(REQ_OP_READ, 100 * i, 8);
	fake_expect(test, 500);
	fake_expect(test, 600);
	fake_expect_none(test);
	fake.q->queue_depth = 0;
	fake_finish();
}

/* Expect the request at @sector, which takes @ms. */
static void core_serve(struct kunit *test, sector_t sector, unsigned int ms)
{
	struct request *rq = fake_expect(test, sector);

	fake_advance_ms(ms);
	fake_complete(rq);
}

/*
 * A device that takes one request at a time: after a write of 30 ms, reads are owed 10 ms
 * with a share of 75 %. For reads that are not there writes are held for 2 ms, and
 * no more if these did not come.
 */
static void core_test_time_share(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	unsigned int i;

	/* Writes before reads, if the core lets the policy choose. */
	data->writes_first = true;
	fake_set(test, "depth", "1");
	for (i = 0; i < 5; i++) {
		fake_insert(REQ_OP_READ, 100 * i, 8);
		fake_insert(REQ_OP_WRITE, 1000 + 100 * i, 8);
	}
	for (i = 0; i < 2; i++) {
		core_serve(test, 1000 + 100 * i, 30);
		core_serve(test, 200 * i, 6);
		core_serve(test, 200 * i + 100, 6);
	}
	core_serve(test, 1200, 30);
	core_serve(test, 400, 6);
	fake_expect_none(test);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	fake_advance_us(IOSCHED_AWAIT_US - 1);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	fake_advance_us(1);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	core_serve(test, 1300, 30);
	core_serve(test, 1400, 30);
	KUNIT_EXPECT_EQ(test, iosched_of(fake.q)->turns.missed, 1U);
	fake_finish();
}

/* Dispatch the next request, which the driver starts. */
static struct request *core_start(struct kunit *test, sector_t sector)
{
	struct request *rq = fake_expect(test, sector);

	WRITE_ONCE(rq->state, MQ_RQ_IN_FLIGHT);
	return rq;
}

/* A driver that sleeps gets one request after another, each when it has started the last. */
static void core_test_driver_starts(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *rq;
	unsigned int i;

	data->io.driver.sleeps = true;
	for (i = 0; i < 6; i++)
		fake_insert(REQ_OP_READ, 100 * i, 8);
	rq = fake_expect(test, 0);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	WRITE_ONCE(rq->state, MQ_RQ_IN_FLIGHT);
	/* The driver ends or requeues a request without having started it. */
	fake_complete(fake_expect(test, 100));
	rq = fake_expect(test, 200);
	fake_requeue(rq);
	fake_complete(fake_expect(test, 300));
	fake_insert_request(rq, true);
	fake_complete(fake_expect(test, 200));
	/* One that is not started for long is forgotten. */
	fake_expect(test, 400);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_advance_ms(100);
	fake_expect(test, 500);
	WRITE_ONCE(rq->state, MQ_RQ_IDLE);
	fake_complete_all();
	KUNIT_EXPECT_NULL(test, data->io.last_rq);
	fake_finish();
}

/*
 * With a write in flight, dispatch @number of them one by one. The driver keeps each until the
 * one before has completed, after @us; 0: it takes each at once.
 */
static void core_keep(struct kunit *test, unsigned int number, unsigned int us)
{
	struct request *rq, *next;

	fake_insert(REQ_OP_WRITE, 0, 8);
	rq = core_start(test, 0);
	while (number--) {
		fake_insert(REQ_OP_WRITE, 0, 8);
		next = fake_expect(test, 0);
		/* The run asks for another request, then gives the driver this one. */
		fake_has_work();
		WRITE_ONCE(next->state, MQ_RQ_IN_FLIGHT);
		fake_advance_us(us);
		if (us)
			fake_complete(rq);
		fake_has_work();
		if (!us)
			fake_complete(rq);
		rq = next;
	}
	fake_complete(rq);
}

/* A driver that keeps each request until the one before has completed is known by that. */
static void core_test_driver_keeps(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct iosched *io = &data->io;
	struct request *rq;

	io->driver.sleeps = true;
	core_keep(test, 15, 300);
	KUNIT_EXPECT_EQ(test, io->driver.seen, 15U);
	/* This shows nothing. */
	core_keep(test, 1, 100);
	KUNIT_EXPECT_EQ(test, io->driver.seen, 15U);
	core_keep(test, 1, 0);
	KUNIT_EXPECT_EQ(test, io->driver.seen, 7U);
	KUNIT_EXPECT_FALSE(test, io->driver.one);
	core_keep(test, 9, 300);
	KUNIT_EXPECT_TRUE(test, io->driver.one);
	KUNIT_EXPECT_EQ(test, core_limit(io), 2U);
	/* A depth that is set holds. */
	fake_set(test, "depth", "8");
	KUNIT_EXPECT_EQ(test, core_limit(io), 8U);
	fake_set(test, "depth", "0");

	/* The driver may keep a discard for another reason. */
	fake_insert(REQ_OP_WRITE, 0, 8);
	rq = core_start(test, 0);
	fake_worker = &fake.hctx->run_work.work;
	fake_insert(REQ_OP_DISCARD, 100, 8);
	core_start(test, 100);
	KUNIT_EXPECT_NULL(test, io->driver.task);
	fake_complete(rq);
	/* It is forgotten when the driver takes a request at once, and again. */
	fake_complete_all();
	core_keep(test, 1, 0);
	KUNIT_EXPECT_TRUE(test, io->driver.one);
	core_keep(test, 1, 0);
	KUNIT_EXPECT_FALSE(test, io->driver.one);
	fake_worker = NULL;
	fake_finish();
}

/* A write that is alone completes after @us, before its task asks for more or (@asks) after. */
static void core_alone(struct kunit *test, unsigned int us, bool asks)
{
	struct request *rq;

	fake_insert(REQ_OP_WRITE, 0, 8);
	rq = core_start(test, 0);
	if (asks)
		fake_has_work();
	fake_advance_us(us);
	fake_complete(rq);
	fake_has_work();
}

/* A driver that serves each request in queue_rq(), which takes time, gives one at a time. */
static void core_test_driver_serves(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct iosched_driver *driver = &data->io.driver;
	unsigned int i;

	driver->sleeps = true;
	for (i = 0; i < IOSCHED_DRIVER_SEEN - 1; i++)
		core_alone(test, 300, false);
	KUNIT_EXPECT_EQ(test, driver->served, i);
	/* This shows nothing, that a driver only sends the request. */
	core_alone(test, 100, false);
	KUNIT_EXPECT_EQ(test, driver->served, i);
	core_alone(test, 300, true);
	KUNIT_EXPECT_EQ(test, driver->served, i - 1);
	/* Nor does one that was dispatched beside another: the driver may have refused it. */
	fake_insert(REQ_OP_WRITE, 0, 8);
	core_start(test, 0);
	fake_has_work();
	fake_insert(REQ_OP_WRITE, 100, 8);
	core_start(test, 100);
	fake_advance_us(300);
	fake_complete_all();
	KUNIT_EXPECT_EQ(test, driver->served, i - 2);
	KUNIT_EXPECT_FALSE(test, driver->one);
	for (i = 0; i < 3; i++)
		core_alone(test, 300, false);
	KUNIT_EXPECT_TRUE(test, driver->one);

	/* What is known is not made surer by that, nor doubted. */
	driver->seen = IOSCHED_DRIVER_SEEN / 2;
	core_alone(test, 300, false);
	core_alone(test, 300, true);
	KUNIT_EXPECT_EQ(test, driver->seen, IOSCHED_DRIVER_SEEN / 2);
	KUNIT_EXPECT_EQ(test, driver->served, 0U);
	KUNIT_EXPECT_TRUE(test, driver->one);
	fake_finish();
}

/*
 * A driver that gives its device one request at a time gets two, the second from the
 * queue's worker; one while there are reads and writes.
 */
static void core_test_driver_takes_one(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct iosched *io = &data->io;
	struct request *first, *second;
	unsigned int runs;

	io->driver.sleeps = true;
	io->driver.one = true;
	io->driver.seen = IOSCHED_DRIVER_SEEN;
	fake_insert(REQ_OP_WRITE, 0, 8);
	fake_insert(REQ_OP_WRITE, 100, 8);
	fake_insert(REQ_OP_WRITE, 200, 8);
	first = core_start(test, 0);
	runs = fake_runs;
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	KUNIT_EXPECT_EQ(test, fake_runs, runs + 1);
	fake_worker = &fake.hctx->run_work.work;
	second = core_start(test, 100);
	fake_expect_none(test);
	fake_worker = NULL;
	fake_insert(REQ_OP_READ, 300, 8);
	KUNIT_EXPECT_EQ(test, core_limit(io), 1U);
	fake_complete(first);
	fake_expect_none(test);
	/* Not even late requests are dispatched now. */
	fake_advance_ms(6000);
	io->driver.tried = jiffies;
	fake_expect_none(test);
	/* At times the worker tries whether the driver still waits. */
	io->driver.tried = jiffies - IOSCHED_DRIVER_TRY - 1;
	KUNIT_EXPECT_EQ(test, core_limit(io), 2U);
	io->driver.tried = jiffies;
	fake_expect_none(test);
	fake_complete(second);
	fake_complete(core_start(test, 300));
	fake_advance_ms(10);
	fake_complete(core_start(test, 200));
	fake_finish();
}

/* @rq completes while the driver has refused @refused. */
static void core_refuse(struct request *refused, struct request *rq, unsigned int us)
{
	list_add(&refused->queuelist, &fake.hctx->dispatch);
	fake_advance_us(us);
	fake_complete(rq);
	list_del_init(&refused->queuelist);
}

/* A request of this operation that the driver takes. */
static struct request *core_take(struct kunit *test, blk_opf_t opf)
{
	fake_insert(opf, 0, 8);
	return core_start(test, 0);
}

/* A request that the driver has not started when another one completes was refused. */
static void core_test_driver_refuses(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct iosched_driver *driver = &data->io.driver;
	struct request *rq[5], *refused;
	unsigned int i;

	driver->sleeps = true;
	rq[0] = core_take(test, REQ_OP_WRITE);
	rq[1] = core_take(test, REQ_OP_WRITE);
	for (i = 0; i < IOSCHED_DRIVER_SEEN; i++) {
		KUNIT_EXPECT_EQ(test, driver->seen, i);
		KUNIT_EXPECT_FALSE(test, driver->one);
		fake_insert(REQ_OP_WRITE, 0, 8);
		refused = fake_expect(test, 0);
		core_refuse(refused, rq[0], 300);
		/* Another task issues it: that it is taken at once says nothing. */
		WRITE_ONCE(refused->state, MQ_RQ_IN_FLIGHT);
		driver->task = current;
		driver->sampled = refused;
		driver->sampled_us = iosched_now_us();
		driver->beside = 1;
		driver->done = iosched_all_done(&data->io);
		fake_has_work();
		rq[0] = rq[1];
		rq[1] = refused;
	}
	KUNIT_EXPECT_TRUE(test, driver->one);
	fake_complete_all();

	/* Not one that has only just been dispatched, or waits elsewhere. */
	driver->one = false;
	driver->seen = 0;
	for (i = 0; i < 3; i++)
		rq[i] = core_take(test, i ? REQ_OP_WRITE : REQ_OP_DISCARD);
	fake_insert(REQ_OP_WRITE, 0, 8);
	refused = fake_expect(test, 0);
	core_refuse(refused, rq[1], 100);
	KUNIT_EXPECT_EQ(test, driver->seen, 0U);
	fake_advance_us(300);
	fake_complete(rq[2]);
	KUNIT_EXPECT_EQ(test, driver->seen, 0U);
	/* Nor beside a discard, for which a driver may refuse all others. */
	core_refuse(refused, rq[0], 300);
	KUNIT_EXPECT_EQ(test, driver->seen, 0U);
	WRITE_ONCE(refused->state, MQ_RQ_IN_FLIGHT);
	fake_complete(refused);
	/* Nor beside more than such a driver has. */
	for (i = 0; i < 5; i++)
		rq[i] = core_take(test, REQ_OP_WRITE);
	fake_insert(REQ_OP_WRITE, 0, 8);
	refused = fake_expect(test, 0);
	core_refuse(refused, rq[0], 300);
	KUNIT_EXPECT_EQ(test, driver->seen, 0U);
	WRITE_ONCE(refused->state, MQ_RQ_IN_FLIGHT);
	fake_complete_all();
	fake_finish();
}

/* While one task is in queue_rq(), the request of another one is no sample. */
static void core_test_driver_one_sample(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct iosched_driver *driver = &data->io.driver;
	struct task_struct *other = current + 1;
	struct request *rq[3];
	unsigned int i;

	driver->sleeps = true;
	for (i = 0; i < 3; i++)
		fake_insert(REQ_OP_WRITE, 100 * i, 8);
	for (i = 0; i < 2; i++)
		rq[i] = core_start(test, 100 * i);
	KUNIT_EXPECT_PTR_EQ(test, driver->sampled, rq[1]);
	driver->task = other;
	driver->tried = jiffies - HZ;
	rq[2] = core_start(test, 200);
	KUNIT_EXPECT_PTR_EQ(test, driver->task, other);
	/* A second one beside the first is a try all the same. */
	KUNIT_EXPECT_TRUE(test, time_after(driver->tried, jiffies - HZ / 2));
	KUNIT_EXPECT_PTR_EQ(test, driver->sampled, rq[1]);
	/* Others say nothing of it, and it is none once it has completed. */
	fake_has_work();
	KUNIT_EXPECT_PTR_EQ(test, driver->task, other);
	fake_complete(rq[1]);
	KUNIT_EXPECT_NULL(test, driver->task);
	fake_insert(REQ_OP_WRITE, 300, 8);
	core_start(test, 300);
	KUNIT_EXPECT_PTR_EQ(test, driver->task, current);
	fake_complete_all();
	fake_finish();
}

/* A driver that takes several requests does not keep them. */
static void core_test_driver_takes_more(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	unsigned int i;

	data->io.driver.sleeps = true;
	data->io.driver.seen = 15;
	for (i = 0; i < 40; i++)
		fake_insert(REQ_OP_WRITE, 100 * i, 8);
	for (i = 0; i < 40; i++) {
		core_start(test, 100 * i);
		fake_advance_us(300);
		fake_has_work();
		/* Two that it takes time for, then more than such a driver has. */
		KUNIT_EXPECT_EQ(test, data->io.driver.seen, i < 3 ? 15 - i : 0U);
	}
	fake_complete_all();
	fake_finish();
}

/* A read that comes soon is dispatched before writes that were queued before. */
static void core_test_next_read(struct kunit *test)
{
	struct iosched *io;
	unsigned int i;

	core_begin(test);
	io = iosched_of(fake.q);
	fake_set(test, "depth", "1");
	for (i = 0; i < 3; i++)
		fake_insert(REQ_OP_WRITE, 1000 + 100 * i, 8);
	core_serve(test, 1000, 30);
	for (i = 0; i < 4; i++) {
		fake_insert(REQ_OP_READ, 100 * i, 8);
		core_serve(test, 100 * i, 1);
		fake_expect_none(test);
		fake_advance_us(1000);
	}
	KUNIT_EXPECT_EQ(test, io->turns.came, 3U);
	/* Eight of 10 ms were theirs. Seven late ones: none is expected any more. */
	for (i = 0; i < 7; i++) {
		fake_advance_ms(3);
		fake_insert(REQ_OP_READ, 100 * i, 8);
		core_serve(test, 100 * i, 0);
	}
	core_serve(test, 1100, 10);
	fake_finish();
}

/* So many requests, each of which arrives once the one before has completed, of @ms. */
static void core_serve_each(struct kunit *test, blk_opf_t opf,
			    unsigned int number, unsigned int ms)
{
	unsigned int i;

	for (i = 0; i < number; i++) {
		fake_insert(opf, 100 * i, 8);
		core_serve(test, 100 * i, ms);
	}
}

/* What is owed to reads adds up to a second, also beside a write that is past its deadline. */
static void core_test_owed(struct kunit *test)
{
	struct iosched *io;
	unsigned int i;

	core_begin(test);
	io = iosched_of(fake.q);
	fake_set(test, "depth", "1");
	fake_set(test, "write_expire", "200");
	core_serve_each(test, REQ_OP_WRITE, 40, 100);
	KUNIT_EXPECT_EQ(test, io->owed_us, (unsigned int)IOSCHED_OWED_US);
	fake_insert(REQ_OP_WRITE, 0, 8);
	for (i = 0; i < 20; i++) {
		fake_insert(REQ_OP_READ, 1000 + 100 * i, 8);
		core_serve(test, 1000 + 100 * i, 50);
	}
	fake_insert(REQ_OP_READ, 5000, 8);
	core_serve(test, 0, 50);
	core_serve(test, 5000, 0);
	fake_finish();
}

/* Reads that were queued before a write get 100 ms beyond their part; @share: write_share. */
static void core_over(struct kunit *test, const char *share, unsigned int reads)
{
	unsigned int i;

	core_begin(test);
	fake_set(test, "depth", "1");
	fake_set(test, "write_share", share);
	/* Most are late: that does not change it. */
	fake_set(test, "read_expire", "50");
	for (i = 0; i < 20; i++)
		fake_insert(REQ_OP_READ, 100 * i, 8);
	fake_insert(REQ_OP_WRITE, 10000, 8);
	fake_insert(REQ_OP_WRITE, 10100, 8);
	for (i = 0; i < reads; i++)
		core_serve(test, 100 * i, 10);
	core_serve(test, 10000, 10);
	if (reads < 20) {
		/* The write has made up for 6.7 ms, and reads are owed 3.3 ms. */
		core_serve(test, 100 * i++, 10);
		core_serve(test, 10100, 10);
	}
	for (; i < 20; i++)
		core_serve(test, 100 * i, 10);
	fake_complete_all();
	fake_finish();
}

static void core_test_over(struct kunit *test)
{
	core_over(test, "75", 10);
	core_over(test, "100", 20);
}

/* Once there are no reads, writes make up for what reads had: the policy orders them again. */
static void core_test_over_ends(struct kunit *test)
{
	struct iosched *io;

	core_begin(test);
	io = iosched_of(fake.q);
	fake_set(test, "depth", "1");
	fake_set(test, "write_share", "50");
	core_serve_each(test, REQ_OP_READ, 12, 10);
	KUNIT_EXPECT_EQ(test, io->over_us, IOSCHED_OVER_US);
	core_serve_each(test, REQ_OP_WRITE, 12, 10);
	KUNIT_EXPECT_EQ(test, io->over_us, 0U);
	fake_finish();
}

/* A read that takes @us, beside writes that are queued. */
static void core_read(struct kunit *test, unsigned int us)
{
	struct request *rq = fake_insert(REQ_OP_READ, 100000, 8);

	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	fake_advance_us(us);
	fake_complete(rq);
}

/* Reads of @us until reads are alone, or no longer; return the ms that have passed. */
static unsigned int core_reads(struct kunit *test, unsigned int us, bool alone)
{
	struct iosched_phases *phases = &iosched_of(fake.q)->phases;
	u64 since = fake_ns;

	while (phases->alone != alone && fake_ns - since < 2 * NSEC_PER_SEC)
		core_read(test, us);
	return div_u64(fake_ns - since, NSEC_PER_MSEC);
}

static void core_expect_ms(struct kunit *test, unsigned int ms,
			   unsigned int least, unsigned int most)
{
	KUNIT_EXPECT_GE(test, ms, least);
	KUNIT_EXPECT_LE(test, ms, most);
}

/*
 * Reads of 5 ms beside writes earn time of their own, in which writes wait: until reads
 * were fast for that long, or until it is clear that they are not.
 */
static void core_test_phases(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct iosched_phases *phases = &data->io.phases;
	unsigned int i;

	fake_set(test, "write_expire", "100000");
	for (i = 0; i < 4; i++)
		fake_insert(REQ_OP_WRITE, 100 * i, 8);
	fake_advance_ms(2000);
	core_expect_ms(test, core_reads(test, 5000, true), 50, 80);
	/* Nothing else is queued, so a timer looks after the writes. */
	fake_expect_none(test);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	KUNIT_EXPECT_TRUE(test, fake_hrtimer_is_set(&data->io.turns.timer));
	/* Of 2 s, 12 % are for reads alone. */
	core_expect_ms(test, core_reads(test, 1000, false), 270, 320);
	core_serve(test, 0, 0);
	KUNIT_EXPECT_EQ(test, phases->paid, 1U);

	/* Slow reads: after 200 ms times 88 to 12 they are alone, and stay slow. */
	core_expect_ms(test, core_reads(test, 5000, true), 1460, 1530);
	core_expect_ms(test, core_reads(test, 5000, false), 500, 530);
	core_serve(test, 100, 0);
	KUNIT_EXPECT_EQ(test, phases->failed, 1U);
	KUNIT_EXPECT_EQ(test, phases->tried, 2U);
	core_expect_ms(test, core_reads(test, 5000, true), 2000, 2010);

	/* It takes four times as long to the next phase. Fast ones have no need of one. */
	core_expect_ms(test, core_reads(test, 5000, true), 2000, 2010);
	core_expect_ms(test, core_reads(test, 5000, true), 1800, 1930);
	core_expect_ms(test, core_reads(test, 1000, false), 790, 850);
	core_expect_ms(test, core_reads(test, 1900, true), 2000, 2010);
	fake_finish();
}

/* A phase ends when there are no reads, and when a write is past its deadline. */
static void core_test_phase_ends(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct iosched_phases *phases = &data->io.phases;

	fake_set(test, "write_expire", "4000");
	fake_advance_ms(3000);
	fake_insert(REQ_OP_WRITE, 0, 8);
	fake_insert(REQ_OP_WRITE, 100, 8);
	fake_insert(REQ_OP_WRITE, 200, 8);
	core_reads(test, 5000, true);
	core_read(test, 1000);
	while (!phases->fast_us)
		core_read(test, 1000);
	fake_expect_none(test);
	fake_advance_us(2 * IOSCHED_SLICE_US);
	fake_expect(test, 0);
	fake_advance_us(IOSCHED_SLICE_US);
	fake_expect(test, 100);
	KUNIT_EXPECT_FALSE(test, phases->alone);

	/* The last write is due at 7 s. */
	fake_advance_ns(6700 * NSEC_PER_MSEC - fake_ns);
	core_reads(test, 5000, true);
	while (fake_ns < 6998 * NSEC_PER_MSEC)
		core_read(test, 1000);
	KUNIT_EXPECT_TRUE(test, phases->alone);
	fake_advance_ms(2);
	fake_insert(REQ_OP_READ, 100000, 8);
	fake_expect(test, 200);
	KUNIT_EXPECT_FALSE(test, phases->alone);
	fake_finish();
}

/* A phase has failed in which the reads stop, as those of a program whose writes wait. */
static void core_test_phase_stops(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct iosched_phases *phases = &data->io.phases;

	fake_set(test, "write_expire", "4000");
	fake_advance_ms(3000);
	fake_insert(REQ_OP_WRITE, 0, 8);
	fake_insert(REQ_OP_WRITE, 100, 8);
	core_reads(test, 5000, true);
	KUNIT_EXPECT_TRUE(test, phases->alone);
	fake_advance_ms(1);
	fake_expect_none(test);
	fake_advance_ms(IOSCHED_READS_RECENT);
	fake_expect(test, 0);
	KUNIT_EXPECT_FALSE(test, phases->alone);
	KUNIT_EXPECT_EQ(test, phases->failed, 1U);
	fake_complete_all();
	fake_finish();
}

/* Reads of 5 ms, of which one completes each 0.1 ms, wait for each other. */
static void core_test_phase_deep(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *reads[50];
	unsigned int i, round;

	fake_set(test, "write_expire", "100000");
	fake_insert(REQ_OP_WRITE, 0, 8);
	fake_insert(REQ_OP_WRITE, 100, 8);
	fake_advance_ms(2000);
	for (round = 0; round < 100; round++) {
		for (i = 0; i < ARRAY_SIZE(reads); i++)
			fake_insert(REQ_OP_READ, 1000 + 100 * i, 8);
		for (i = 0; i < ARRAY_SIZE(reads); i++) {
			reads[i] = fake_dispatch();
			KUNIT_ASSERT_NOT_NULL(test, reads[i]);
		}
		fake_advance_ms(5);
		for (i = 0; i < ARRAY_SIZE(reads); i++)
			fake_complete(reads[i]);
	}
	KUNIT_EXPECT_EQ(test, data->io.phases.tried, 0U);

	/* One after the other they are slow. */
	core_expect_ms(test, core_reads(test, 5000, true), 50, 80);
	core_reads(test, 1000, false);
	fake_finish();
}

/* A dispatch ends the hold: what allowed it may allow other requests. */
static void core_test_held_until_dispatch(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *rqs[2];

	data->limit = 1;
	fake_insert(REQ_OP_READ, 0, 8);
	rqs[0] = fake_insert(REQ_OP_READ, 100, 8);
	rqs[1] = fake_insert(REQ_OP_READ, 200, 8);
	fake_expect(test, 0);
	fake_expect_none(test);
	data->limit = 3;
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[0]);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[1]);
	fake_finish();
}

/* Insertion runs no queue while a bound is reached. */
static void core_test_no_run_when_full(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *first, *head;

	fake_set(test, "depth", "1");
	first = fake_insert(REQ_OP_READ, 0, 8);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), first);
	fake_insert(REQ_OP_READ, 100, 8);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_insert(REQ_OP_READ, 200, 8);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	/* Bounds do not hold requests at the head. */
	head = fake_insert_head(REQ_OP_READ, 900, 8);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), head);
	KUNIT_EXPECT_NULL(test, fake_dispatch());

	/* The same for the tags of the device, independent of the bound. */
	fake.set.queue_depth = 2;
	fake_set(test, "depth", "5");
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_insert(REQ_OP_READ, 400, 8);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	fake.set.queue_depth = FAKE_REQUESTS;

	/* The same for the policy's bound. */
	fake_set(test, "depth", "0");
	data->limit = 1;
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_insert(REQ_OP_READ, 300, 8);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	/* A merge can change what is dispatched next. */
	fake_insert(REQ_OP_READ, 308, 8);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_complete(first);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	fake_finish();
}

/* A requeued request may complete without another insertion. */
static void core_test_undispatched(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct iosched_done *done = &data->io.done[IOSCHED_BE][READ];
	struct iosched *io = &data->io;
	struct request *rq = fake_insert(REQ_OP_READ, 0, 8);

	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	KUNIT_EXPECT_EQ(test, iosched_in_flight(io, IOSCHED_BE, READ), 1U);
	fake_requeue(rq);
	KUNIT_EXPECT_EQ(test, iosched_in_flight(io, IOSCHED_BE, READ), 0U);
	fake_complete(rq);
	KUNIT_EXPECT_EQ(test, atomic_read(&done->undispatched), 1);
	KUNIT_EXPECT_EQ(test, iosched_in_flight(io, IOSCHED_BE, READ), 0U);
	/* A flush is never inserted, so it is not counted. */
	rq = fake_alloc(REQ_OP_FLUSH, 0, 0, 0);
	fake_requeue(rq);
	rq->rq_flags = 0;
	fake_requeue(rq);
	fake_complete(rq);
	KUNIT_EXPECT_EQ(test, atomic_read(&done->completed), 1);
	fake_finish();
}

static struct core_data *core_begin_bypass(struct kunit *test)
{
	struct core_data *data = core_begin(test);

	data->io.bypass = 1;
	data->bypassable = true;
	return data;
}

static bool core_bypasses(struct request *rq)
{
	return !(rq->rq_flags & RQF_SCHED_TAGS);
}

/* Requests bypass an empty queue within the bounds, which count them. */
static void core_test_bypass(struct kunit *test)
{
	struct core_data *data = core_begin_bypass(test);
	struct iosched *io = &data->io;
	struct request *read, *write, *held, *flush;

	fake_set(test, "depth", "2");
	read = fake_alloc(REQ_OP_READ, 0, 8, 0);
	KUNIT_EXPECT_TRUE(test, core_bypasses(read));
	flush = fake_alloc(REQ_OP_WRITE | REQ_FUA, 0, 8, 0);
	KUNIT_EXPECT_FALSE(test, core_bypasses(flush));
	fake_complete(flush);
	write = fake_alloc(REQ_OP_WRITE, 0, 8, 0);
	KUNIT_EXPECT_TRUE(test, core_bypasses(write));
	/* A plug may use it for an I/O in the other direction. */
	write->cmd_flags = REQ_OP_READ;
	KUNIT_EXPECT_EQ(test, iosched_in_flight(io, IOSCHED_BE, READ), 1U);
	KUNIT_EXPECT_EQ(test, iosched_in_flight(io, IOSCHED_BE, WRITE), 1U);
	held = fake_alloc(REQ_OP_READ, 0, 8, 0);
	KUNIT_EXPECT_FALSE(test, core_bypasses(held));
	fake_insert_request(held, false);
	fake_expect_none(test);
	fake_runs = 0;
	fake_complete(read);
	KUNIT_EXPECT_EQ(test, fake_runs, 1U);
	/* While a request is queued, others queue behind it. */
	read = fake_alloc(REQ_OP_READ, 0, 8, 0);
	KUNIT_EXPECT_FALSE(test, core_bypasses(read));
	fake_complete(read);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), held);
	fake_complete(write);
	KUNIT_EXPECT_EQ(test, iosched_in_flight(io, IOSCHED_BE, WRITE), 0U);
	fake_set(test, "depth", "0");
	data->bypassable = false;
	read = fake_alloc(REQ_OP_READ, 0, 8, 0);
	KUNIT_EXPECT_FALSE(test, core_bypasses(read));
	fake_complete(read);
	fake_finish();
}

/* A bypassing request that is inserted after all, or requeued, is an ordinary one. */
static void core_test_bypass_inserted(struct kunit *test)
{
	struct core_data *data = core_begin_bypass(test);
	struct iosched *io = &data->io;
	struct request *rq, *other, *first;
	struct blk_plug plug;

	/* Without a plug the block layer does not tell of a requeue. */
	blk_start_plug(&plug);
	fake_set(test, "depth", "2");
	first = fake_alloc(REQ_OP_READ, 900, 8, 0);
	rq = fake_alloc(REQ_OP_READ, 100, 8, 0);
	other = fake_alloc(REQ_OP_READ, 0, 8, 0);
	fake_insert_request(other, false);
	fake_expect_none(test);
	fake_insert_request(rq, false);
	KUNIT_EXPECT_FALSE(test, core_bypasses(rq));
	KUNIT_EXPECT_NULL(test, rq->end_io);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), other);
	fake_complete(other);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	fake_complete(rq);

	rq = fake_alloc(REQ_OP_READ, 100, 8, 0);
	KUNIT_EXPECT_TRUE(test, core_bypasses(rq));
	other = fake_insert(REQ_OP_READ, 0, 8);
	fake_expect_none(test);
	fake_runs = 0;
	fake_requeue(rq);
	KUNIT_EXPECT_EQ(test, fake_runs, 1U);
	KUNIT_EXPECT_EQ(test, iosched_in_flight(io, IOSCHED_BE, READ), 1U);
	fake_insert_request(rq, true);
	KUNIT_EXPECT_FALSE(test, core_bypasses(rq));
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	fake_complete(rq);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), other);
	fake_complete(other);

	/* Or it is sent again without an insertion. */
	rq = fake_alloc(REQ_OP_READ, 100, 8, 0);
	fake_requeue(rq);
	fake_complete(rq);
	fake_complete(first);
	KUNIT_EXPECT_EQ(test, iosched_in_flight(io, IOSCHED_BE, READ), 0U);
	blk_finish_plug(&plug);
	fake_finish();
}

/* Requests of other classes in flight use the limit, too, however long they take. */
static void core_test_bypass_slow_class(struct kunit *test)
{
	static const unsigned int classes[] = { IOPRIO_CLASS_RT, IOPRIO_CLASS_IDLE };
	struct request *slow[2], *rq;
	unsigned int i;

	core_begin_bypass(test);
	fake_set(test, "depth", "2");
	for (i = 0; i < ARRAY_SIZE(classes); i++) {
		core_insert(REQ_OP_READ, 100, classes[i]);
		core_insert(REQ_OP_READ, 200, classes[i]);
		slow[0] = fake_expect(test, 100);
		slow[1] = fake_expect(test, 200);
		fake_advance_ms(IOSCHED_CLASSES_RECENT + 1);
		rq = fake_alloc(REQ_OP_READ, 0, 8, 0);
		KUNIT_EXPECT_FALSE(test, core_bypasses(rq));
		fake_complete(rq);
		fake_complete(slow[0]);
		fake_complete(slow[1]);
		rq = fake_alloc(REQ_OP_READ, 0, 8, 0);
		KUNIT_EXPECT_TRUE(test, core_bypasses(rq));
		fake_complete(rq);
	}
	fake_finish();
}

/* Allocate a request that bypasses the queue and that its task does not issue. */
static struct request *core_alloc_unissued(struct kunit *test, blk_opf_t opf)
{
	struct request *rq = fake_alloc(opf, 0, 8, 0);

	KUNIT_EXPECT_TRUE(test, core_bypasses(rq));
	rq->tag = IOSCHED_NO_TAG;
	return rq;
}

/*
 * Requests that a task does not issue, because it is preempted, do not hold others for
 * longer than some ms, and are counted once.
 */
static void core_test_bypass_unissued(struct kunit *test)
{
	struct core_data *data = core_begin_bypass(test);
	struct request *unissued, *inserted, *issued, *rq;
	struct iosched *io = &data->io;

	fake_set(test, "depth", "3");
	unissued = core_alloc_unissued(test, REQ_OP_WRITE);
	inserted = core_alloc_unissued(test, REQ_OP_READ);
	issued = fake_alloc(REQ_OP_READ, 0, 8, 0);
	fake_insert(REQ_OP_READ, 100, 8);
	fake_insert(REQ_OP_READ, 200, 8);
	fake_insert(REQ_OP_READ, 300, 8);
	fake_expect_none(test);
	fake_runs = 0;
	fake_advance_ms(IOSCHED_ISSUE_TIME);
	KUNIT_EXPECT_EQ(test, fake_runs, 1U);
	/* It may be issued within this jiffy. */
	fake_expect_none(test);
	fake_advance_ms(IOSCHED_ISSUE_TIME);
	rq = fake_expect(test, 100);
	fake_complete(rq);
	/* The issued request counts. */
	rq = fake_expect(test, 200);
	fake_expect(test, 300);
	KUNIT_EXPECT_EQ(test, iosched_all_in_flight(io), 3U);

	/* One is inserted after all, the other completes. */
	fake_insert_request(inserted, false);
	fake_expect_none(test);
	fake_complete(unissued);
	KUNIT_EXPECT_EQ(test, iosched_all_in_flight(io), 3U);
	fake_complete(rq);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), inserted);
	fake_complete(issued);
	KUNIT_EXPECT_EQ(test, iosched_all_in_flight(io), 2U);
	fake_complete_all();
	KUNIT_EXPECT_EQ(test, iosched_all_in_flight(io), 0U);
	fake_expect_file(test, iosched_counters_show,
			 "tier dir inserted merged dispatched completed expired requeued queued in_flight polled bypassed\n"
			 "rt read 0 0 0 0 0 0 0 0 0 0\n"
			 "rt write 0 0 0 0 0 0 0 0 0 0\n"
			 "be read 6 0 6 6 0 0 0 0 0 2\n"
			 "be write 1 0 1 1 0 0 0 0 0 1\n"
			 "idle read 0 0 0 0 0 0 0 0 0 0\n"
			 "idle write 0 0 0 0 0 0 0 0 0 0\n");
	fake_finish();
}

/* One that was issued is not looked for again and again. */
static void core_test_bypass_issued(struct kunit *test)
{
	struct request *issued, *other;

	core_begin_bypass(test);
	fake_set(test, "depth", "2");
	issued = fake_alloc(REQ_OP_READ, 0, 8, 0);
	other = fake_alloc(REQ_OP_READ, 900, 8, 0);
	fake_insert(REQ_OP_READ, 100, 8);
	fake_expect_none(test);
	fake_runs = 0;
	fake_advance_ms(2 * IOSCHED_ISSUE_TIME);
	KUNIT_EXPECT_EQ(test, fake_runs, 1U);
	fake_expect_none(test);
	fake_advance_ms(10 * IOSCHED_ISSUE_TIME);
	KUNIT_EXPECT_EQ(test, fake_runs, 1U);
	fake_complete(issued);
	fake_complete(fake_expect(test, 100));
	fake_complete(other);
	fake_finish();
}

/* While a request may bypass the queue, none is allocated in advance. */
static void core_test_bypass_in_advance(struct kunit *test)
{
	struct blk_mq_alloc_data alloc = { .q = fake.q, .hctx = fake.hctx };

	core_begin_bypass(test);
	alloc.nr_tags = 8;
	fake_ops()->limit_depth(REQ_OP_READ | REQ_SYNC, &alloc);
	KUNIT_EXPECT_EQ(test, alloc.nr_tags, 1U);
	fake_insert(REQ_OP_READ, 100, 8);
	alloc.nr_tags = 8;
	fake_ops()->limit_depth(REQ_OP_READ | REQ_SYNC, &alloc);
	KUNIT_EXPECT_EQ(test, alloc.nr_tags, 8U);
	fake_complete(fake_expect(test, 100));
	fake_finish();
}

/* Nor does a lower class wait for them, nor a write that leaves the device to reads. */
static void core_test_bypass_unissued_bounds(struct kunit *test)
{
	struct request *a, *b, *read;

	core_begin_bypass(test);
	a = core_alloc_unissued(test, REQ_OP_READ);
	core_insert(REQ_OP_READ, 100, IOPRIO_CLASS_IDLE);
	fake_expect_none(test);
	fake_advance_ms(2 * IOSCHED_ISSUE_TIME);
	fake_expect(test, 100);
	fake_complete(a);
	fake_complete_all();

	fake_advance_ms(IOSCHED_CLASSES_RECENT + 1);
	fake_set(test, "depth", "4");
	fake_set(test, "write_share", "50");
	read = fake_alloc(REQ_OP_READ, 0, 8, 0);
	fake_complete(read);
	a = core_alloc_unissued(test, REQ_OP_WRITE);
	b = core_alloc_unissued(test, REQ_OP_WRITE);
	fake_insert(REQ_OP_WRITE, 500, 8);
	fake_expect_none(test);
	fake_advance_ms(2 * IOSCHED_ISSUE_TIME);
	fake_expect(test, 500);
	fake_complete(a);
	fake_requeue(b);
	fake_complete(b);
	fake_finish();
}

/*
 * Without a plug the block layer would insert a request that it will tell the elevator
 * of. Of others of a plug that has requests of the elevator, or that were allocated in
 * advance, none bypasses.
 */
static void core_test_bypass_plug(struct kunit *test)
{
	struct core_data *data = core_begin_bypass(test);
	struct request *rq, *cached;
	struct blk_plug plug;

	rq = fake_alloc(REQ_OP_READ, 0, 8, 0);
	KUNIT_EXPECT_TRUE(test, core_bypasses(rq));
	KUNIT_EXPECT_FALSE(test, rq->rq_flags & RQF_USE_SCHED);
	KUNIT_EXPECT_EQ(test, iosched_all_in_flight(&data->io), 1U);
	fake_complete(rq);
	KUNIT_EXPECT_EQ(test, iosched_all_in_flight(&data->io), 0U);

	/* Inserted, it is known to the elevator again. */
	rq = fake_alloc(REQ_OP_READ, 0, 8, 0);
	fake_insert_request(rq, false);
	KUNIT_EXPECT_TRUE(test, rq->rq_flags & RQF_USE_SCHED);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	KUNIT_EXPECT_EQ(test, iosched_all_in_flight(&data->io), 1U);
	fake_complete(rq);
	KUNIT_EXPECT_EQ(test, iosched_all_in_flight(&data->io), 0U);

	/* A requeue is not told, so it counts until it is inserted again. */
	rq = fake_alloc(REQ_OP_READ, 0, 8, 0);
	fake_requeue(rq);
	KUNIT_EXPECT_EQ(test, iosched_all_in_flight(&data->io), 1U);
	fake_insert_request(rq, true);
	KUNIT_EXPECT_EQ(test, iosched_all_in_flight(&data->io), 0U);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	fake_complete(rq);
	KUNIT_EXPECT_EQ(test, iosched_all_in_flight(&data->io), 0U);

	blk_start_plug(&plug);
	rq = fake_alloc(REQ_OP_READ, 0, 8, 0);
	KUNIT_EXPECT_TRUE(test, core_bypasses(rq));
	KUNIT_EXPECT_TRUE(test, rq->rq_flags & RQF_USE_SCHED);
	fake_complete(rq);
	KUNIT_EXPECT_EQ(test, iosched_all_in_flight(&data->io), 0U);
	plug.has_elevator = true;
	rq = fake_alloc(REQ_OP_READ, 0, 8, 0);
	KUNIT_EXPECT_FALSE(test, core_bypasses(rq));
	fake_complete(rq);
	plug.has_elevator = false;
	cached = fake_alloc(REQ_OP_READ, 0, 8, 0);
	compat_plug_cache(&plug, cached);
	rq = fake_alloc(REQ_OP_READ, 0, 8, 0);
	KUNIT_EXPECT_FALSE(test, core_bypasses(rq));
	fake_complete(rq);
	compat_plug_cache(&plug, NULL);
	blk_finish_plug(&plug);
	fake_complete(cached);
	fake_finish();
}

/* No request bypasses the queue while other classes than best-effort are in use. */
static void core_test_bypass_classes(struct kunit *test)
{
	struct request *rq, *idle;

	core_begin_bypass(test);
	rq = fake_alloc(REQ_OP_READ, 0, 8, 0);
	idle = core_insert(REQ_OP_READ, 100, IOPRIO_CLASS_IDLE);
	fake_expect_none(test);
	fake_complete(rq);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), idle);
	fake_complete(idle);
	rq = fake_alloc(REQ_OP_READ, 0, 8, 0);
	KUNIT_EXPECT_FALSE(test, core_bypasses(rq));
	fake_complete(rq);
	/* A jiffy is a millisecond here. */
	fake_advance_ms(IOSCHED_CLASSES_RECENT + 1);
	rq = fake_alloc(REQ_OP_READ, 0, 8, 0);
	KUNIT_EXPECT_TRUE(test, core_bypasses(rq));
	fake_complete(rq);
	KUNIT_EXPECT_FALSE(test, fake_merge_bio(REQ_OP_READ, 0, 8,
						IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0)));
	rq = fake_alloc(REQ_OP_READ, 0, 8, 0);
	KUNIT_EXPECT_FALSE(test, core_bypasses(rq));
	fake_complete(rq);
	fake_finish();
}

/* A driver may overwrite rb_node by special_vec before it requeues a request. */
static void core_test_special_vec(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *rq, *other;

	rq = fake_insert(REQ_OP_DISCARD, 0, 8);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	memset(&rq->special_vec, FAKE_POISON, sizeof(rq->special_vec));
	fake_requeue(rq);
	other = fake_insert(REQ_OP_WRITE, 100, 8);
	fake_insert_request(rq, true);
	KUNIT_EXPECT_EQ(test, data->io.nr, 2U);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	KUNIT_EXPECT_EQ(test, data->placed, data->removed + 1);
	/* The same without insertion at the head. */
	memset(&rq->special_vec, FAKE_POISON, sizeof(rq->special_vec));
	fake_requeue(rq);
	fake_insert_request(rq, false);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), other);
	fake_finish();
}

/* A request that was not prepared is accounted like others. */
static void core_test_unprepared(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct iosched_done *done = &data->io.done[IOSCHED_BE][READ];
	struct request *rqs[3];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		rqs[i] = fake_alloc_unprepared(REQ_OP_READ, 100 * i, 8, 0);
		fake_insert_request(rqs[i], i == 2);
	}
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[2]);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[0]);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[1]);
	fake_requeue(rqs[1]);
	fake_insert_request(rqs[1], true);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[1]);
	for (i = 0; i < 3; i++)
		fake_complete(rqs[i]);
	KUNIT_EXPECT_EQ(test, data->io.stats[IOSCHED_BE][READ].inserted, 3U);
	KUNIT_EXPECT_EQ(test, atomic_read(&done->completed), 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&data->in_flight), 0);
	/* If it is merged into another request, it is freed. */
	fake_insert(REQ_OP_READ, 0, 8);
	fake_insert_request(fake_alloc_unprepared(REQ_OP_READ, 8, 8, 0), false);
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 1U);
	fake_finish();
}

/* Polled requests are not held and hold no others. */
static void core_test_polled(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct iosched *io = &data->io;
	struct request *rqs[3], *polled, *low;
	unsigned int i;

	data->limit = 1;
	fake_set(test, "depth", "2");
	for (i = 0; i < 2; i++)
		rqs[i] = fake_insert(REQ_OP_READ, 100 * i, 8);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[0]);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	/* The bound is reached, but a polled request is dispatched. */
	polled = fake_alloc(REQ_OP_READ | REQ_POLLED, 108, 8,
			    IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0));
	fake_insert_request(polled, false);
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 0U);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), polled);
	KUNIT_EXPECT_FALSE(test, fake_merge_bio(REQ_OP_READ | REQ_POLLED, 108,
						8, 0));
	KUNIT_EXPECT_EQ(test, iosched_all_in_flight(io), 1U);
	KUNIT_EXPECT_EQ(test, atomic_read(&io->done[IOSCHED_RT][READ].polled),
			1);
	/* It counts in no bound, so its higher class holds nothing. */
	fake_complete(rqs[0]);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[1]);
	data->limit = 0;
	low = core_insert(REQ_OP_READ, 300, IOPRIO_CLASS_IDLE);
	fake_complete(rqs[1]);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), low);
	fake_requeue(polled);
	KUNIT_EXPECT_EQ(test, atomic_read(&io->done[IOSCHED_RT][READ].polled),
			0);
	fake_insert_request(polled, true);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), polled);
	fake_complete(polled);
	KUNIT_EXPECT_EQ(test, iosched_tier_in_flight(io, IOSCHED_RT), 0U);
	fake_finish();
}

/* Passthrough requests are not sorted and not held. */
static void core_test_passthrough(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *rq, *through;

	fake_set(test, "depth", "1");
	rq = fake_insert(REQ_OP_READ, 0, 8);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	fake_insert(REQ_OP_READ, 100, 8);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	through = fake_alloc(REQ_OP_DRV_IN, 0, 8, 0);
	through->__sector = (sector_t)-1;
	fake_insert_request(through, false);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), through);
	KUNIT_EXPECT_EQ(test, data->placed, 2U);
	fake_finish();
}

/*
 * A missing completion holds others until their deadline plus IOSCHED_SLACK, by
 * whatever bound; then the timer runs the queue.
 */
static void core_test_overdue(struct kunit *test)
{
	struct request *stuck, *rq, *late, *low;
	struct core_data *data;
	unsigned int i, runs;

	for (i = 0; i < 2; i++) {
		data = core_begin(test);
		fake_set(test, "depth", i ? "0" : "1");
		data->limit = i;
		stuck = fake_insert(REQ_OP_READ, 0, 8);
		KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), stuck);
		late = fake_insert(REQ_OP_WRITE, 100, 8);
		KUNIT_EXPECT_NULL(test, fake_dispatch());
		/* Its deadline is before the timer's expiry. */
		rq = fake_insert(REQ_OP_READ, 200, 8);
		fake_advance_ms(499);
		KUNIT_EXPECT_NULL(test, fake_dispatch());
		runs = fake_runs;
		fake_advance_ms(1);
		KUNIT_EXPECT_EQ(test, fake_runs, runs + 1);
		KUNIT_EXPECT_TRUE(test, fake_has_work());
		KUNIT_EXPECT_NULL(test, fake_dispatch());
		fake_advance_ms(99);
		KUNIT_EXPECT_FALSE(test, fake_has_work());
		fake_advance_ms(1);
		KUNIT_EXPECT_TRUE(test, fake_has_work());
		KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
		KUNIT_EXPECT_NULL(test, fake_dispatch());
		fake_advance_ms(4500);
		KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), late);
		fake_finish();
	}

	/* A request without a tag is not dispatched even then. */
	fake.set.queue_depth = 1;
	core_begin(test);
	stuck = fake_insert(REQ_OP_READ, 0, 8);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), stuck);
	rq = fake_insert(REQ_OP_READ, 200, 8);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_advance_ms(1000);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_complete(stuck);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	fake_finish();
	fake.set.queue_depth = FAKE_REQUESTS;

	/* A lower class waits for prio_aging_expire. */
	core_begin(test);
	stuck = core_insert(REQ_OP_READ, 0, IOPRIO_CLASS_RT);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), stuck);
	low = core_insert(REQ_OP_READ, 100, IOPRIO_CLASS_IDLE);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_advance_ms(9999);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_advance_ms(1);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), low);
	fake_finish();
	KUNIT_EXPECT_PTR_EQ(test, fake_core_timer, (struct timer_list *)NULL);
}

/*
 * Polled requests that wait for tags of their own hardware queue let an overdue
 * request pass, and a timer is armed for it.
 */
static void core_test_overdue_polled(struct kunit *test)
{
	struct request *polled[4], *rq;
	struct iosched *io = &core_begin(test)->io;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(polled); i++) {
		polled[i] = fake_alloc(REQ_OP_READ | REQ_POLLED, 100 * i, 8, 0);
		fake_insert_request(polled[i], false);
	}
	rq = fake_insert(REQ_OP_READ, 1000, 8);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), polled[0]);
	KUNIT_EXPECT_TRUE(test, fake_timer_pending(&io->timer));
	fake_advance_ms(599);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), polled[1]);
	fake_advance_ms(1);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	KUNIT_EXPECT_EQ(test, io->stats[IOSCHED_BE][READ].expired, 1U);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), polled[2]);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), polled[3]);
	fake_finish();
}

/*
 * If requests are overdue all the time, every other one that is dispatched is of the
 * head, unless its hardware queue would not take it.
 */
static void core_test_overdue_all(struct kunit *test)
{
	struct request *head[2], *rq[4];
	unsigned int i;

	core_begin(test);
	for (i = 0; i < ARRAY_SIZE(rq); i++)
		rq[i] = fake_insert(REQ_OP_READ, 1000 * i, 8);
	head[1] = fake_insert_head(REQ_OP_WRITE, 8000, 8);
	head[0] = fake_insert_head(REQ_OP_WRITE, 9000, 8);
	fake_advance_ms(600);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq[0]);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), head[0]);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq[1]);
	set_bit(BLK_MQ_S_STOPPED, &fake.hctx->state);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq[2]);
	clear_bit(BLK_MQ_S_STOPPED, &fake.hctx->state);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), head[1]);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq[3]);
	fake_finish();
}

/*
 * A driver that refuses the requests of one hardware queue does not delay those of
 * others. Nor does an insertion there: the block layer does not call the elevator.
 */
static void core_test_refusing_queue(struct kunit *test)
{
	struct blk_mq_hw_ctx *refuses = fake_zalloc(test, sizeof(*refuses));
	struct request *first, *second, *third;
	unsigned int runs;

	INIT_LIST_HEAD(&refuses->dispatch);
	set_bit(BLK_MQ_S_STOPPED, &refuses->state);
	core_begin(test);
	fake.q->nr_hw_queues = 2;
	first = fake_alloc(REQ_OP_READ, 0, 8, 0);
	first->mq_hctx = refuses;
	fake_insert_request(first, false);
	second = fake_insert(REQ_OP_READ, 2000, 8);
	third = fake_insert(REQ_OP_READ, 1000, 8);
	fake_advance_ms(500);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), second);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), third);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), first);
	fake.q->nr_hw_queues = 1;

	fake_set(test, "depth", "3");
	fake_insert(REQ_OP_READ, 3000, 8);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	runs = fake_runs;
	set_bit(BLK_MQ_S_STOPPED, &fake.hctx->state);
	fake_insert_head(REQ_OP_READ, 4000, 8);
	clear_bit(BLK_MQ_S_STOPPED, &fake.hctx->state);
	KUNIT_EXPECT_GT(test, fake_runs, runs);
	fake_finish();
}

/*
 * A run of the queue that ends at a request whose hardware queue has no tag leaves those
 * of other hardware queues queued, though none is held: the timer runs the queue for them.
 * The elevator of a single hardware queue is run by the completion of its requests.
 */
static void core_test_tagless_queue(struct kunit *test)
{
	struct blk_mq_hw_ctx *full = fake_zalloc(test, sizeof(*full));
	struct request *rqs[2], *other;
	struct iosched *io = &core_begin(test)->io;
	unsigned int i, runs;

	fake_insert(REQ_OP_READ, 0, 8);
	KUNIT_EXPECT_FALSE(test, fake_timer_pending(&io->timer));
	KUNIT_EXPECT_NOT_NULL(test, fake_dispatch());

	fake.q->nr_hw_queues = 2;
	INIT_LIST_HEAD(&full->dispatch);
	for (i = 0; i < ARRAY_SIZE(rqs); i++) {
		rqs[i] = fake_alloc(REQ_OP_READ, 1000 + 100 * i, 8, 0);
		rqs[i]->mq_hctx = full;
		fake_insert_request(rqs[i], false);
	}
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[0]);
	other = fake_insert(REQ_OP_READ, 2000, 8);
	/* No tag: the run ends. */
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[1]);
	set_bit(BLK_MQ_S_STOPPED, &full->state);
	KUNIT_EXPECT_EQ(test, READ_ONCE(io->held), 0);
	runs = fake_runs;
	fake_advance_ms(100);
	KUNIT_EXPECT_EQ(test, fake_runs, runs + 1);
	KUNIT_EXPECT_TRUE(test, fake_timer_pending(&io->timer));
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), other);
	/* Nothing is queued: the timer ends. */
	fake_advance_ms(200);
	KUNIT_EXPECT_FALSE(test, fake_timer_pending(&io->timer));
	fake.q->nr_hw_queues = 1;
	fake_finish();
}

/*
 * A hardware queue that completes nothing may have requests dispatched for which it has no
 * tags: those of another one are dispatched after their deadlines all the same, those of its
 * own are not.
 */
static void core_test_used_up_tags(struct kunit *test)
{
	struct blk_mq_hw_ctx *hung = fake_zalloc(test, sizeof(*hung));
	struct request *rq, *other, *own;
	unsigned int i;

	fake.set.queue_depth = 1;
	fake.q->nr_hw_queues = 2;
	core_begin(test);
	INIT_LIST_HEAD(&hung->dispatch);
	for (i = 0; i < 2; i++) {
		rq = fake_alloc(REQ_OP_READ, 1000 + 100 * i, 8, 0);
		rq->mq_hctx = hung;
		fake_insert_request(rq, false);
		KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	}
	set_bit(BLK_MQ_S_STOPPED, &hung->state);
	own = fake_alloc(REQ_OP_READ, 3000, 8, 0);
	own->mq_hctx = hung;
	fake_insert_request(own, false);
	other = fake_insert(REQ_OP_READ, 2000, 8);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_advance_ms(599);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_advance_ms(1);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), other);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	clear_bit(BLK_MQ_S_STOPPED, &hung->state);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), own);
	fake.q->nr_hw_queues = 1;
	fake_finish();
	fake.set.queue_depth = FAKE_REQUESTS;
}

/* Requests that manage a zone have no sectors: each is adjacent to itself. */
static void core_test_zones(struct kunit *test)
{
	struct request *open, *close, *write;

	core_begin(test);
	open = fake_insert(REQ_OP_ZONE_OPEN, CORE_BORDER / 2, 0);
	KUNIT_EXPECT_FALSE(test, fake_merge_bio(REQ_OP_ZONE_OPEN,
						CORE_BORDER / 2, 0, 0));
	close = fake_insert(REQ_OP_ZONE_CLOSE, CORE_BORDER / 2, 0);
	write = fake_insert(REQ_OP_WRITE, CORE_BORDER / 2, 8);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), open);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), close);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), write);
	fake_finish();
}

/* A request has a start time although the queue keeps no statistics. */
static void core_test_start_time(struct kunit *test)
{
	struct request *rqs[2];

	core_begin(test);
	fake_advance_ms(10);
	rqs[0] = fake_alloc(REQ_OP_READ, 0, 8, 0);
	rqs[1] = fake_alloc(REQ_OP_READ, 100, 8, 0);
	rqs[0]->start_time_ns = 1;
	rqs[1]->start_time_ns = 1;
	rqs[1]->rq_flags |= RQF_IO_STAT;
	fake_insert_request(rqs[0], false);
	fake_insert_request(rqs[1], false);
	KUNIT_EXPECT_EQ(test, rqs[0]->start_time_ns, fake_ns);
	KUNIT_EXPECT_EQ(test, rqs[1]->start_time_ns, 1ULL);
	fake_finish();
}

/* An unused tier is removed from the tiers in use. */
static void core_test_tiers(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *rt, *be;

	rt = core_insert(REQ_OP_READ, 0, IOPRIO_CLASS_RT);
	be = core_insert(REQ_OP_READ, 100, IOPRIO_CLASS_NONE);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rt);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	KUNIT_EXPECT_EQ(test, data->io.tiers, BIT(IOSCHED_RT) | BIT(IOSCHED_BE));
	fake_complete(rt);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), be);
	KUNIT_EXPECT_EQ(test, data->io.tiers, BIT(IOSCHED_BE));
	/* A requeued request adds its tier again. */
	fake_requeue(be);
	rt = core_insert(REQ_OP_READ, 0, IOPRIO_CLASS_RT);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rt);
	fake_insert_request(be, true);
	KUNIT_EXPECT_EQ(test, data->io.tiers, BIT(IOSCHED_RT) | BIT(IOSCHED_BE));
	fake_finish();
}

/* The block layer repeats merges; the policy can refuse each of them. */
static void core_test_repeated_merge(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *first, *second;

	data->longest = 20;
	/* Becomes last_merge: merges with that one are not repeated. */
	fake_insert(REQ_OP_WRITE, 1000, 8);
	second = fake_insert(REQ_OP_READ, 8, 8);
	/* On insertion a request is not merged with the one behind it. */
	first = fake_insert(REQ_OP_READ, 0, 8);
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 0U);
	fake_insert(REQ_OP_READ, 16, 8);
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 1U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(first), 8U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(second), 16U);
	fake_finish();

	core_begin(test);
	fake_insert(REQ_OP_WRITE, 1000, 8);
	second = fake_insert(REQ_OP_READ, 8, 8);
	first = fake_insert(REQ_OP_READ, 0, 8);
	fake_insert(REQ_OP_READ, 16, 8);
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 2U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(first), 24U);
	fake_finish();
}

/* A change of the tunable moves the deadlines of queued requests, too. */
static void core_test_expire(struct kunit *test)
{
	struct request *write, *read;

	core_begin(test);
	fake_set(test, "read_expire", "3600000");
	write = fake_insert(REQ_OP_WRITE, 0, 8);
	read = fake_insert(REQ_OP_READ, 100, 8);
	fake_set(test, "read_expire", "50");
	fake_set(test, "write_expire", "10");
	KUNIT_EXPECT_EQ(test, (unsigned long)read->fifo_time, jiffies + 50);
	fake_advance_ms(49);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), write);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), read);
	fake_finish();
}

static void core_count(struct iosched *io, void *arg)
{
	struct core_data *data = core_of(io);

	*(unsigned int *)arg = data->placed - data->removed;
}

static void core_test_replace(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	unsigned int left = 1, i;

	for (i = 0; i < 4; i++)
		fake_insert(i % 2 ? REQ_OP_READ : REQ_OP_WRITE, 100 * i, 8);
	KUNIT_EXPECT_EQ(test, data->placed - data->removed, 4U);
	iosched_replace_all(&data->io, core_count, &left);
	KUNIT_EXPECT_EQ(test, left, 0U);
	KUNIT_EXPECT_EQ(test, data->placed - data->removed, 4U);
	fake_finish();
}

/* What core_meanwhile() has dispatched and inserted. */
static struct {
	struct request *dispatched[8];
	struct request *inserted[8];
	unsigned int nr_dispatched, nr_inserted;
} core_pieces;

static void core_meanwhile(void)
{
	struct request *rq = fake_dispatch();

	if (rq)
		core_pieces.dispatched[core_pieces.nr_dispatched++] = rq;
	/* Neighbours of queued requests: they must not join one that is moving. */
	core_pieces.inserted[core_pieces.nr_inserted] =
		fake_insert(REQ_OP_WRITE, 8 + 100 * core_pieces.nr_inserted, 8);
	core_pieces.nr_inserted++;
}

/* Requests are placed anew by the piece while others are dispatched and inserted. */
static void core_test_replace_pieces(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *rq[40], *got;
	unsigned int left = 1, i;
	unsigned long last;

	memset(&core_pieces, 0, sizeof(core_pieces));
	for (i = 0; i < 40; i++) {
		rq[i] = fake_insert(REQ_OP_WRITE, 100 * (39 - i), 8);
		fake_advance_ms(1);
	}
	/* Reads of another tier, which is in use no longer when they move. */
	for (i = 0; i < 2; i++)
		core_insert(REQ_OP_READ, 10000 + 100 * i, IOPRIO_CLASS_RT);
	fake_meanwhile = core_meanwhile;
	iosched_replace_all(&data->io, core_count, &left);
	fake_meanwhile = NULL;
	KUNIT_EXPECT_EQ(test, left, 0U);
	/* 42 requests are taken out in two pieces, and placed in two. */
	KUNIT_EXPECT_EQ(test, core_pieces.nr_inserted, 2U);
	/* The first piece had those of the other tier. */
	KUNIT_EXPECT_EQ(test, core_pieces.nr_dispatched, 2U);
	KUNIT_EXPECT_PTR_EQ(test, core_pieces.dispatched[0], rq[39]);
	KUNIT_EXPECT_TRUE(test, list_empty(&data->io.moving));
	KUNIT_EXPECT_EQ(test, data->io.nr, 42U);
	/* None is merged, and the FIFO is in order of deadlines. */
	last = 0;
	list_for_each_entry(got, &data->io.fifo[IOSCHED_BE][WRITE], queuelist) {
		KUNIT_EXPECT_GE(test, (unsigned long)got->fifo_time, last);
		last = got->fifo_time;
	}
	KUNIT_EXPECT_PTR_EQ(test, list_last_entry(&data->io.fifo[IOSCHED_BE][WRITE],
						  struct request, queuelist),
			    core_pieces.inserted[1]);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	for (i = 0; i < core_pieces.nr_dispatched; i++)
		fake_complete(core_pieces.dispatched[i]);
	for (i = 0; (got = fake_dispatch()); i++)
		fake_complete(got);
	KUNIT_EXPECT_EQ(test, i, 42U);
	fake_finish();
}

static unsigned int core_breaths;

static void core_be_slow(void)
{
	core_breaths++;
	fake_advance_ms(IOSCHED_REPLACE_US / USEC_PER_MSEC);
}

/* If others have the lock for long, a piece is larger. */
static void core_test_replace_slow(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	unsigned int left = 1, i;

	for (i = 0; i < 60; i++)
		fake_insert(i % 2 ? REQ_OP_READ : REQ_OP_WRITE, 100 * i, 8);
	core_breaths = 0;
	fake_meanwhile = core_be_slow;
	iosched_replace_all(&data->io, core_count, &left);
	fake_meanwhile = NULL;
	KUNIT_EXPECT_EQ(test, left, 0U);
	KUNIT_EXPECT_EQ(test, core_breaths, 1U);
	KUNIT_EXPECT_EQ(test, data->io.nr, 60U);
	/* More than two plugs of 32 requests of each CPU, and all only if that was too few. */
	KUNIT_EXPECT_EQ(test, iosched_piece(IOSCHED_REPLACE_US - 1), 32U);
	KUNIT_EXPECT_EQ(test, iosched_piece(IOSCHED_REPLACE_US), 128 * num_online_cpus());
	KUNIT_EXPECT_EQ(test, iosched_piece(IOSCHED_REPLACE_LONG_US - 1), 128 * num_online_cpus());
	KUNIT_EXPECT_EQ(test, iosched_piece(IOSCHED_REPLACE_LONG_US), UINT_MAX);
	fake_finish();
}

/* The range of a tunable is enforced; a refused value changes nothing. */
static void core_test_tunables(struct kunit *test)
{
	static const char * const bad[] = {
		"", "\n", "-1", "abc", "0x", "1 2", "3600001", "4294967296",
		"99999999999999999999", "1e3", " 1", "\001", "100.5",
	};
	struct core_data *data = core_begin(test);
	char *page = fake_zalloc(test, PAGE_SIZE);
	const struct kernel_param kp = { .arg = &core_data_limit_tunable };
	const struct kernel_param choice = { .arg = &core_data_flavour_tunable };
	unsigned int i, limit = core_data_limit_tunable.value;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_EQ_MSG(test, fake_try_set("read_expire", bad[i]),
				    (ssize_t)-EINVAL, "'%s'", bad[i]);
		KUNIT_EXPECT_EQ_MSG(test, iosched_param_set(bad[i], &kp), -EINVAL,
				    "'%s'", bad[i]);
		KUNIT_EXPECT_EQ(test, fake_try_set("flavour", bad[i]),
				(ssize_t)-EINVAL);
		KUNIT_EXPECT_EQ(test, iosched_param_set(bad[i], &choice),
				-EINVAL);
	}
	KUNIT_EXPECT_EQ(test, data->io.read_expire, 500U);
	KUNIT_EXPECT_EQ(test, core_data_limit_tunable.value, limit);
	KUNIT_EXPECT_EQ(test, fake_try_set("limit", "101"),
			(ssize_t)-EINVAL);
	fake_set(test, "limit", "0x10\n");
	KUNIT_EXPECT_EQ(test, data->limit, 16U);
	core_data_limit_show(fake.q->elevator, page);
	KUNIT_EXPECT_STREQ(test, page, "16\n");
	KUNIT_EXPECT_EQ(test, iosched_param_set("7", &kp), 0);
	KUNIT_EXPECT_EQ(test, core_data_limit_tunable.value, 7U);
	core_data_limit_tunable.value = limit;

	fake_set(test, "flavour", "salted\n");
	core_data_flavour_show(fake.q->elevator, page);
	KUNIT_EXPECT_STREQ(test, page, "salted\n");
	KUNIT_EXPECT_EQ(test, iosched_param_set("salted", &choice), 0);
	iosched_param_get(page, &choice);
	KUNIT_EXPECT_STREQ(test, page, "salted\n");
	core_data_flavour_tunable.value = 0;
	fake_stop();
}

/* If the policy fails to start, the queue has no elevator. */
static void core_test_init_error(struct kunit *test)
{
	core_init_error = -ENOMEM;
	KUNIT_EXPECT_EQ(test, fake_start(&iosched_type, CAPACITY), -ENOMEM);
	core_init_error = 0;
	KUNIT_EXPECT_NULL(test, fake.q->elevator);
}

#ifdef IOSCHED_HAVE_ALLOC_SCHED_DATA
/* The elevator starts although the block layer allocated no data for it. */
static void core_test_no_data(struct kunit *test)
{
	struct elevator_queue eq = { .type = &iosched_type };

	KUNIT_ASSERT_EQ(test, iosched_type.ops.init_sched(fake.q, &eq), 0);
	KUNIT_EXPECT_NOT_NULL(test, eq.elevator_data);
	iosched_type.ops.exit_sched(&eq);
	fake.q->elevator = NULL;
	iosched_type.ops.free_sched_data(eq.elevator_data);
}
#endif

/* The debugfs file of queued requests shows the lists that are not empty. */
static void core_test_queue_file(struct kunit *test)
{
	const char *text;

	core_begin(test);
	fake_insert(REQ_OP_WRITE, 0, 8);
	fake_insert(REQ_OP_WRITE, 16, 8);
	fake_insert_head(REQ_OP_READ, 8, 8);
	text = fake_read_rows(test, &iosched_queue_ops);
	KUNIT_EXPECT_PTR_EQ(test, strstr(text, "head:\n"), (char *)text);
	text = strstr(text, "be write:\n");
	KUNIT_ASSERT_NOT_NULL(test, text);
	KUNIT_EXPECT_NULL(test, strstr(text + 1, "be write:\n"));
	KUNIT_EXPECT_NULL(test, strstr(text, "be read:\n"));
	fake_finish();
}

/* Set async_depth, the queue's own on 7.2; otherwise not while it is frozen. */
static void core_bound_tags(struct kunit *test, unsigned int depth,
			    const char *own)
{
#ifdef IOSCHED_HAVE_QUEUE_ASYNC_DEPTH
	fake.q->async_depth = depth;
	fake_ops()->depth_updated(compat_depth_handle(fake.hctx));
#else
	blk_mq_freeze_queue(fake.q);
	KUNIT_EXPECT_EQ(test, fake_try_set("async_depth", own),
			(ssize_t)-EBUSY);
	blk_mq_unfreeze_queue(fake.q);
	fake_set(test, "async_depth", own);
#endif
}

/*
 * Requests other than synchronous reads can use three quarters of all tags, and all while
 * there are no readers.
 */
static void core_expect_part(struct kunit *test, struct sbitmap_queue *bits)
{
	struct blk_mq_alloc_data alloc = { .q = fake.q, .hctx = fake.hctx };

	KUNIT_EXPECT_LT(test, bits->min_shallow_depth, UINT_MAX);
	KUNIT_EXPECT_GT(test, bits->wake_batch, 1U);
	fake_advance_ms(2 * IOSCHED_READERS_GONE);
	fake_ops()->limit_depth(REQ_OP_WRITE, &alloc);
	KUNIT_EXPECT_EQ(test, alloc.shallow_depth, 0U);
	fake_insert(REQ_OP_READ, 0, 8);
	fake_complete(fake_expect(test, 0));
	fake_ops()->limit_depth(REQ_OP_WRITE, &alloc);
	KUNIT_EXPECT_GE(test, alloc.shallow_depth, bits->min_shallow_depth);
	KUNIT_EXPECT_EQ(test, alloc.shallow_depth,
			iosched_async_part(fake.q->nr_requests));
	alloc.shallow_depth = 0;
	fake_ops()->limit_depth(REQ_OP_READ | REQ_SYNC, &alloc);
	KUNIT_EXPECT_EQ(test, alloc.shallow_depth, 0U);
}

/* Synchronous reads can use all tags, other requests async_depth of them. */
static void core_test_tags(struct kunit *test)
{
	struct blk_mq_alloc_data alloc = { .q = fake.q, .hctx = fake.hctx };
	struct blk_mq_tags *tags = fake.hctx->sched_tags;
	struct sbitmap_queue *bits;

	iosched_async_depth_tunable.value = 5;
	core_begin(test);
	iosched_async_depth_tunable.value = 0;
	fake.hctx->sched_tags = fake.hctx->tags;
	KUNIT_EXPECT_EQ(test, fake_ops()->init_hctx(fake.hctx, 0), 0);
	fake_ops()->depth_updated(compat_depth_handle(fake.hctx));
	fake.hctx->sched_tags = tags;
	fake_ops()->limit_depth(REQ_OP_READ | REQ_SYNC, &alloc);
	KUNIT_EXPECT_EQ(test, alloc.shallow_depth, 0U);
	fake_ops()->limit_depth(REQ_OP_WRITE, &alloc);
	KUNIT_EXPECT_EQ(test, alloc.shallow_depth, 5U);
	alloc.shallow_depth = 0;
	fake_ops()->limit_depth(REQ_OP_WRITE | REQ_SYNC, &alloc);
	KUNIT_EXPECT_EQ(test, alloc.shallow_depth, 5U);
	fake_stop();

	/* By default three quarters, of which the bitmap is told: its wake batch is not 1. */
	core_begin(test);
	fake.hctx->sched_tags = fake.hctx->tags;
	bits = &fake.hctx->tags->bitmap_tags;
	KUNIT_EXPECT_EQ(test, fake_ops()->init_hctx(fake.hctx, 0), 0);
	core_expect_part(test, bits);
	core_bound_tags(test, 3, "3");
	KUNIT_EXPECT_LE(test, bits->min_shallow_depth, 3U);
	core_bound_tags(test, iosched_async_part(fake.q->nr_requests), "0");
	fake_ops()->depth_updated(compat_depth_handle(fake.hctx));
	core_expect_part(test, bits);
	fake.hctx->sched_tags = tags;
	fake_stop();
	KUNIT_EXPECT_EQ(test, iosched_async_part(64), 48U);
	KUNIT_EXPECT_EQ(test, iosched_async_part(4), 3U);
	KUNIT_EXPECT_EQ(test, iosched_async_part(3), 3U);
}

/* The model */

static unsigned int cm_limit, cm_longest;

static void cm_start(struct kunit *test)
{
	cm_longest = fake_random(2) ? 8 * (4 + fake_random(4)) : 0;
	core_of(iosched_of(fake.q))->longest = cm_longest;
	cm_limit = fake_random(5);
	core_of(iosched_of(fake.q))->limit = cm_limit;
}

static bool cm_ready(struct model_request *mr)
{
	unsigned int counted = 0;

	model_for_each(mr)
		counted += mr->state == MODEL_IN_FLIGHT && mr->counted;
	return !cm_limit || counted < cm_limit;
}

static struct model_request *cm_select(unsigned int tier, unsigned int only)
{
	struct model_request *mr;

	mr = only == WRITE ? NULL : model_lowest(tier, READ, 0, -1);
	if (!mr && only != READ)
		mr = model_lowest(tier, WRITE, 0, -1);
	return mr && cm_ready(mr) ? mr : NULL;
}

static bool cm_may_merge(unsigned int dir, sector_t start, sector_t end)
{
	return start / CORE_BORDER == (end - 1) / CORE_BORDER &&
	       (!cm_longest || end - start <= cm_longest);
}

static void cm_queued(struct model_request *mr)
{
}

/* A change of an expiry time moves the deadlines of queued requests. */
static void cm_expire(struct kunit *test, unsigned int dir, const char *name,
		      unsigned int *field, unsigned int value)
{
	struct model_request *mr;

	model_for_each(mr)
		if (mr->state == MODEL_QUEUED && mr->dir == dir)
			mr->deadline += msecs_to_jiffies(value) -
					msecs_to_jiffies(*field);
	model_set(test, name, field, value);
}

static void cm_disturb(struct kunit *test)
{
	struct iosched *io = iosched_of(fake.q);
	unsigned int left;

	switch (fake_random(5)) {
	case 0:
		model_set(test, "limit", &cm_limit, fake_random(5));
		break;
	case 1:
		iosched_replace_all(io, core_count, &left);
		MODEL_ASSERT(test, !left, "%u requests are sorted while replacing", left);
		model_replaced();
		break;
	case 2:
		cm_expire(test, READ, "read_expire", &model.read_expire,
			  fake_random(200));
		break;
	case 3:
		cm_expire(test, WRITE, "write_expire", &model.write_expire,
			  fake_random(600));
		break;
	case 4:
		model_set(test, "prio_aging_expire", &model.prio_aging_expire,
			  fake_random(1000));
	}
}

static const struct model_policy core_model = {
	.type = &iosched_type,
	.capacity = CAPACITY,
	.start = cm_start,
	.select = cm_select,
	.ready = cm_ready,
	.may_merge = cm_may_merge,
	.queued = cm_queued,
	.disturb = cm_disturb,
};

static void core_test_random(struct kunit *test)
{
	model_run(test, &core_model);
}

static struct kunit_case core_cases[] = {
	KUNIT_CASE(core_test_order),
	KUNIT_CASE(core_test_deadlines),
	KUNIT_CASE(core_test_classes),
	KUNIT_CASE(core_test_merge),
	KUNIT_CASE(core_test_borders),
	KUNIT_CASE(core_test_bounds),
	KUNIT_CASE(core_test_write_share),
	KUNIT_CASE(core_test_writes_stuck),
	KUNIT_CASE(core_test_write_share_expired),
	KUNIT_CASE(core_test_budget),
	KUNIT_CASE(core_test_time_share),
	KUNIT_CASE(core_test_next_read),
	KUNIT_CASE(core_test_driver_starts),
	KUNIT_CASE(core_test_driver_keeps),
	KUNIT_CASE(core_test_driver_serves),
	KUNIT_CASE(core_test_driver_takes_one),
	KUNIT_CASE(core_test_driver_takes_more),
	KUNIT_CASE(core_test_driver_refuses),
	KUNIT_CASE(core_test_driver_one_sample),
	KUNIT_CASE(core_test_owed),
	KUNIT_CASE(core_test_over),
	KUNIT_CASE(core_test_over_ends),
	KUNIT_CASE(core_test_phases),
	KUNIT_CASE(core_test_phase_ends),
	KUNIT_CASE(core_test_phase_stops),
	KUNIT_CASE(core_test_phase_deep),
	KUNIT_CASE(core_test_held_until_dispatch),
	KUNIT_CASE(core_test_no_run_when_full),
	KUNIT_CASE(core_test_undispatched),
	KUNIT_CASE(core_test_bypass),
	KUNIT_CASE(core_test_bypass_inserted),
	KUNIT_CASE(core_test_bypass_classes),
	KUNIT_CASE(core_test_bypass_slow_class),
	KUNIT_CASE(core_test_bypass_unissued),
	KUNIT_CASE(core_test_bypass_unissued_bounds),
	KUNIT_CASE(core_test_bypass_issued),
	KUNIT_CASE(core_test_bypass_in_advance),
	KUNIT_CASE(core_test_bypass_plug),
	KUNIT_CASE(core_test_special_vec),
	KUNIT_CASE(core_test_unprepared),
	KUNIT_CASE(core_test_polled),
	KUNIT_CASE(core_test_passthrough),
	KUNIT_CASE(core_test_overdue),
	KUNIT_CASE(core_test_overdue_polled),
	KUNIT_CASE(core_test_overdue_all),
	KUNIT_CASE(core_test_refusing_queue),
	KUNIT_CASE(core_test_tagless_queue),
	KUNIT_CASE(core_test_used_up_tags),
	KUNIT_CASE(core_test_zones),
	KUNIT_CASE(core_test_start_time),
	KUNIT_CASE(core_test_tiers),
	KUNIT_CASE(core_test_repeated_merge),
	KUNIT_CASE(core_test_expire),
	KUNIT_CASE(core_test_replace),
	KUNIT_CASE(core_test_replace_pieces),
	KUNIT_CASE(core_test_replace_slow),
	KUNIT_CASE(core_test_tunables),
	KUNIT_CASE(core_test_init_error),
#ifdef IOSCHED_HAVE_ALLOC_SCHED_DATA
	KUNIT_CASE(core_test_no_data),
#endif
	KUNIT_CASE(core_test_queue_file),
	KUNIT_CASE(core_test_tags),
	KUNIT_CASE_SLOW(core_test_random),
	{}
};

static struct kunit_suite core_suite = {
	.name = "core-iosched",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.test_cases = core_cases,
};

kunit_test_suite(core_suite);

MODULE_DESCRIPTION("Unit tests of the core of the SSD-aware schedulers");
MODULE_LICENSE("GPL");
