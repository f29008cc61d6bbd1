// SPDX-License-Identifier: GPL-2.0
/*
 * The elevator core under the plainest policy: lowest sector first, reads before
 * writes, a bound on what is in flight, and borders that nothing merges across.
 * Its FIFOs, deadlines, priority tiers, merging, accounting and wake-ups, one by
 * one and in random sequences against the model.
 */
#include "fake-blk.h"
#include "iosched-debugfs.h"

#define IOSCHED_NAME "core"
#define CORE_BORDER 64U		/* sectors */

struct core_data {
	struct iosched io;
	struct rb_root sort[IOSCHED_TIERS][IOSCHED_DIRS];
	atomic_t in_flight;

	unsigned int limit;
	unsigned int longest;	/* sectors of a merged request, 0: any */
	unsigned int flavour;

	/* the core's calls, counted */
	unsigned int placed, removed, inherited, resized;
};

static int core_init_error;

static struct core_data *core_of(struct iosched *io)
{
	return container_of(io, struct core_data, io);
}

static const char * const core_flavours[] = { "plain", "salted" };

#define CORE_TUNABLES(T, C)						\
	T(core_data, limit, 0, 0, 100, iosched_set, "most in flight")	\
	C(core_data, flavour, 0, core_flavours, iosched_set, "a choice")

static int core_init(struct iosched *io)
{
	return core_init_error;
}

static void core_exit(struct iosched *io)
{
	struct core_data *data = core_of(io);

	WARN_ON(data->placed != data->removed ||
		atomic_read(&data->in_flight));
}

static struct rb_root *core_root(struct iosched *io, unsigned int tier,
				 unsigned int dir, sector_t sector)
{
	return &core_of(io)->sort[tier][dir];
}

static struct rb_root *core_placed(struct request *rq)
{
	return rq->elv.priv[0];
}

static struct rb_root *core_place(struct iosched *io, struct request *rq)
{
	core_of(io)->placed++;
	rq->elv.priv[0] = &core_of(io)->sort[iosched_rq_tier(rq)][rq_data_dir(rq)];
	return rq->elv.priv[0];
}

static void core_removed(struct iosched *io, struct request *rq,
			 struct request *heir)
{
	core_of(io)->removed++;
	core_of(io)->inherited += !!heir;
}

static void core_resized(struct iosched *io, struct request *rq)
{
	core_of(io)->resized++;
}

static bool core_may_merge(struct iosched *io, unsigned int dir,
			   sector_t start, sector_t end)
{
	unsigned int longest = core_of(io)->longest;

	return start / CORE_BORDER == (end - 1) / CORE_BORDER &&
	       (!longest || end - start <= longest);
}

static bool core_ready(struct iosched *io, struct request *rq, bool due)
{
	struct core_data *data = core_of(io);

	return !data->limit || atomic_read(&data->in_flight) < data->limit;
}

static struct request *core_select(struct iosched *io, unsigned int tier)
{
	struct request *rq = iosched_from(&core_of(io)->sort[tier][READ], 0);

	if (!rq)
		rq = iosched_from(&core_of(io)->sort[tier][WRITE], 0);
	return rq && core_ready(io, rq, false) ? rq : NULL;
}

static void core_dispatched(struct iosched *io, struct request *rq)
{
	atomic_inc(&core_of(io)->in_flight);
}

static void core_released(struct request *rq)
{
	atomic_dec(&core_of(iosched_of(rq->q))->in_flight);
}

static const struct iosched_policy core_policy = {
	.size		= sizeof(struct core_data),
	.init		= core_init,
	.exit		= core_exit,
	.root		= core_root,
	.place		= core_place,
	.placed		= core_placed,
	.removed	= core_removed,
	.resized	= core_resized,
	.may_merge	= core_may_merge,
	.ready		= core_ready,
	.select		= core_select,
	.dispatched	= core_dispatched,
	.released	= core_released,
};

#define IOSCHED_POLICY		core_policy
#define IOSCHED_POLICY_TUNABLES	CORE_TUNABLES
#define IOSCHED_POLICY_DEBUGFS	{ "none", 0400, iosched_queue_show }
#include "iosched-tmpl.h"
#include "model.h"

#define CAPACITY 4096U

static struct core_data *core_begin(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, fake_start(&iosched_type, CAPACITY), 0);
	return core_of(iosched_of(fake.q));
}

static struct request *core_insert(blk_opf_t opf, sector_t sector,
				   unsigned short class)
{
	struct request *rq = fake_alloc(opf, sector, 8,
					IOPRIO_PRIO_VALUE(class, 0));

	fake_insert_request(rq, false);
	return rq;
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
	c = fake_alloc(REQ_OP_READ, 900, 8, 0);
	fake_insert_request(c, true);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), c);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), a);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), b);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), w);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	fake_finish();
}

/* A deadline overrides the policy: to the millisecond, the earlier one first. */
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
	fake_expect_file(test, iosched_stats_show,
			 "tier dir inserted merged dispatched completed expired requeued queued in_flight polled\n"
			 "rt read 0 0 0 0 0 0 0 0 0\n"
			 "rt write 0 0 0 0 0 0 0 0 0\n"
			 "be read 2 0 2 0 1 0 0 2 0\n"
			 "be write 1 0 1 0 1 0 0 1 0\n"
			 "idle read 0 0 0 0 0 0 0 0 0\n"
			 "idle write 0 0 0 0 0 0 0 0 0\n");
	fake_finish();
}

/* A lower class waits while a higher one is queued or in flight, but ages. */
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

/* The joint request has the earlier deadline, and its place in the FIFO. */
static void core_test_merge(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *a, *b, *c;

	c = fake_insert(REQ_OP_READ, 24, 8);
	fake_advance_ms(10);
	b = fake_insert(REQ_OP_READ, 200, 8);
	a = fake_insert(REQ_OP_READ, 8, 8);
	/* Fills the gap between a and c: all become one, in the place of c. */
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, 16, 8, 0));
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 1U);
	KUNIT_EXPECT_PTR_EQ(test, fake.freed[0], c);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(a), 24U);
	KUNIT_EXPECT_EQ(test, data->inherited, 1U);
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&data->io.fifo[IOSCHED_BE][READ],
						   struct request, queuelist), a);
	/* In front. */
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, 0, 8, 0));
	KUNIT_EXPECT_EQ(test, (u64)blk_rq_pos(a), 0ULL);
	data->io.front_merges = 0;
	KUNIT_EXPECT_FALSE(test, fake_merge_bio(REQ_OP_READ, 192, 8, 0));
	/* Not with another direction, or class. */
	KUNIT_EXPECT_FALSE(test, fake_merge_bio(REQ_OP_WRITE, 208, 8, 0));
	KUNIT_EXPECT_FALSE(test, fake_merge_bio(REQ_OP_READ, 208, 8,
						IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0)));
	/* A request. */
	fake_insert(REQ_OP_READ, 208, 8);
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 1U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(b), 16U);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), a);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), b);
	fake_finish();
}

/* Nothing merges across what the policy keeps apart, however it comes there. */
static void core_test_borders(struct kunit *test)
{
	struct request *left, *right;

	core_begin(test);
	left = fake_insert(REQ_OP_READ, CORE_BORDER - 16, 8);
	right = fake_insert(REQ_OP_READ, CORE_BORDER, 8);
	KUNIT_EXPECT_FALSE(test, fake_merge_bio(REQ_OP_READ, CORE_BORDER - 8,
						16, 0));
	/* Now they touch, but are not joined. */
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, CORE_BORDER - 8,
					       8, 0));
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 0U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(left), 16U);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(right), 8U);
	fake_insert(REQ_OP_READ, CORE_BORDER + 8, 8);
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(right), 16U);
	fake_finish();
}

/* Bounds: what waits is not polled for, and each way to room wakes it. */
static void core_test_bounds(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *rqs[3];
	unsigned int i;

	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "depth", "1\n"),
			(ssize_t)2);
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

	fake_set(iosched_attrs, "depth", "0");
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

/* Who comes while nobody may go is not looked at, but for what is due. */
static void core_test_full(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *first, *head;

	fake_set(iosched_attrs, "depth", "1");
	first = fake_insert(REQ_OP_READ, 0, 8);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), first);
	fake_insert(REQ_OP_READ, 100, 8);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_insert(REQ_OP_READ, 200, 8);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	/* Bounds are not for the head. */
	head = fake_alloc(REQ_OP_READ, 900, 8, 0);
	fake_insert_request(head, true);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), head);
	KUNIT_EXPECT_NULL(test, fake_dispatch());

	/* The same by the device's tags, whatever the bound. */
	fake.set.queue_depth = 2;
	fake_set(iosched_attrs, "depth", "5");
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_insert(REQ_OP_READ, 400, 8);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	fake.set.queue_depth = FAKE_REQUESTS;

	/* And by the policy's bound. */
	fake_set(iosched_attrs, "depth", "0");
	data->limit = 1;
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_insert(REQ_OP_READ, 300, 8);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	/* A merge may have changed anything. */
	fake_insert(REQ_OP_READ, 308, 8);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	fake_complete(first);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	fake_finish();
}

/* A request that the driver returned may end without coming back to us. */
static void core_test_bypass(struct kunit *test)
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
	KUNIT_EXPECT_EQ(test, atomic_read(&done->bypassed), 1);
	KUNIT_EXPECT_EQ(test, iosched_in_flight(io, IOSCHED_BE, READ), 0U);
	/* Neither are those that never came, as a flush. */
	rq = fake_alloc(REQ_OP_FLUSH, 0, 0, 0);
	fake_requeue(rq);
	rq->rq_flags = 0;
	fake_requeue(rq);
	fake_complete(rq);
	KUNIT_EXPECT_EQ(test, atomic_read(&done->completed), 1);
	fake_finish();
}

/* The same of a driver that has had its special_vec in the place of the node. */
static void core_test_special_vec(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *rq, *other;

	rq = fake_insert(REQ_OP_DISCARD, 0, 8);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	memset(&rq->special_vec, 0x5a, sizeof(rq->special_vec));
	fake_requeue(rq);
	other = fake_insert(REQ_OP_WRITE, 100, 8);
	fake_insert_request(rq, true);
	KUNIT_EXPECT_EQ(test, data->io.nr, 2U);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	KUNIT_EXPECT_EQ(test, data->placed, data->removed + 1);
	/* Not at the head either. */
	memset(&rq->special_vec, 0x5a, sizeof(rq->special_vec));
	fake_requeue(rq);
	fake_insert_request(rq, false);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), other);
	fake_finish();
}

/* A request that was not prepared is accounted for like others. */
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
	/* One that another takes in is freed as others are. */
	fake_insert(REQ_OP_READ, 0, 8);
	fake_insert_request(fake_alloc_unprepared(REQ_OP_READ, 8, 8, 0), false);
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 1U);
	fake_finish();
}

/* Polled requests are not held, and hold no others. */
static void core_test_polled(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct iosched *io = &data->io;
	struct request *rqs[3], *polled, *low;
	unsigned int i;

	data->limit = 1;
	fake_set(iosched_attrs, "depth", "2");
	for (i = 0; i < 2; i++)
		rqs[i] = fake_insert(REQ_OP_READ, 100 * i, 8);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rqs[0]);
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	/* Held: the bound is reached. One that is polled goes all the same. */
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
	/* It is of a higher class, and in no bound: it holds nothing. */
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

/* Passthrough has no place among what is ordered, and is not held. */
static void core_test_passthrough(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *rq, *through;

	fake_set(iosched_attrs, "depth", "1");
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
 * A completion that never comes holds others only until their deadline and a
 * little more, whichever bound it is; then the timer has the queue run.
 */
static void core_test_overdue(struct kunit *test)
{
	struct request *stuck, *rq, *late, *low;
	struct core_data *data;
	unsigned int i, runs;

	for (i = 0; i < 2; i++) {
		data = core_begin(test);
		fake_set(iosched_attrs, "depth", i ? "0" : "1");
		data->limit = i;
		stuck = fake_insert(REQ_OP_READ, 0, 8);
		KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), stuck);
		late = fake_insert(REQ_OP_WRITE, 100, 8);
		KUNIT_EXPECT_NULL(test, fake_dispatch());
		/* Its deadline is before that for which the timer is armed. */
		rq = fake_insert(REQ_OP_READ, 200, 8);
		runs = fake_runs;
		fake_advance_ms(499);
		KUNIT_EXPECT_EQ(test, fake_runs, runs);
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

	/* Without a tag for it, it is no use. */
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

	/* A lower class has prio_aging_expire. */
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

/* A tier that nothing uses any more costs nothing any more. */
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
	/* One that comes back is of its tier again. */
	fake_requeue(be);
	rt = core_insert(REQ_OP_READ, 0, IOPRIO_CLASS_RT);
	KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rt);
	fake_insert_request(be, true);
	KUNIT_EXPECT_EQ(test, data->io.tiers, BIT(IOSCHED_RT) | BIT(IOSCHED_BE));
	fake_finish();
}

/* The block layer goes on joining: each of these joins may be the one too many. */
static void core_test_chain(struct kunit *test)
{
	struct core_data *data = core_begin(test);
	struct request *first, *second;

	data->longest = 20;
	/* The block layer's last_merge, with which it does not go on. */
	fake_insert(REQ_OP_WRITE, 1000, 8);
	second = fake_insert(REQ_OP_READ, 8, 8);
	/* Nothing joins a request behind it when it is inserted. */
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

/* Deadlines follow the setting, for what is queued too. */
static void core_test_expire(struct kunit *test)
{
	struct request *write, *read;

	core_begin(test);
	fake_set(iosched_attrs, "read_expire", "3600000");
	write = fake_insert(REQ_OP_WRITE, 0, 8);
	read = fake_insert(REQ_OP_READ, 100, 8);
	fake_set(iosched_attrs, "read_expire", "50");
	fake_set(iosched_attrs, "write_expire", "10");
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
	spin_lock(&data->io.lock);
	iosched_replace_all(&data->io, core_count, &left);
	spin_unlock(&data->io.lock);
	KUNIT_EXPECT_EQ(test, left, 0U);
	KUNIT_EXPECT_EQ(test, data->placed - data->removed, 4U);
	fake_finish();
}

/* Every tunable: its range is enforced, a refused value changes nothing. */
static void core_test_tunables(struct kunit *test)
{
	static const char * const bad[] = {
		"", "\n", "-1", "abc", "0x", "1 2", "3600001", "4294967296",
		"99999999999999999999", "1e3", " 1", "\001", "100.5",
	};
	struct core_data *data = core_begin(test);
	char *page = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	const struct kernel_param kp = { .arg = &limit_tunable };
	const struct kernel_param choice = { .arg = &flavour_tunable };
	unsigned int i, limit = limit_tunable.value;

	KUNIT_ASSERT_NOT_NULL(test, page);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_EQ_MSG(test, fake_set(iosched_attrs, "read_expire",
						   bad[i]),
				    (ssize_t)-EINVAL, "'%s'", bad[i]);
		KUNIT_EXPECT_EQ_MSG(test, iosched_param_set(bad[i], &kp), -EINVAL,
				    "'%s'", bad[i]);
		KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "flavour", bad[i]),
				(ssize_t)-EINVAL);
		KUNIT_EXPECT_EQ(test, iosched_param_set(bad[i], &choice),
				-EINVAL);
	}
	KUNIT_EXPECT_EQ(test, data->io.read_expire, 500U);
	KUNIT_EXPECT_EQ(test, limit_tunable.value, limit);
	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "limit", "101"),
			(ssize_t)-EINVAL);
	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "limit", "0x10\n"),
			(ssize_t)5);
	KUNIT_EXPECT_EQ(test, data->limit, 16U);
	limit_show(fake.q->elevator, page);
	KUNIT_EXPECT_STREQ(test, page, "16\n");
	KUNIT_EXPECT_EQ(test, iosched_param_set("7", &kp), 0);
	KUNIT_EXPECT_EQ(test, limit_tunable.value, 7U);
	limit_tunable.value = limit;

	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "flavour", "salted\n"),
			(ssize_t)7);
	flavour_show(fake.q->elevator, page);
	KUNIT_EXPECT_STREQ(test, page, "salted\n");
	KUNIT_EXPECT_EQ(test, iosched_param_set("salted", &choice), 0);
	iosched_param_get(page, &choice);
	KUNIT_EXPECT_STREQ(test, page, "salted\n");
	flavour_tunable.value = 0;
	fake_stop();
}

/* A policy that cannot start leaves nothing behind. */
static void core_test_no_start(struct kunit *test)
{
	core_init_error = -ENOMEM;
	KUNIT_EXPECT_EQ(test, fake_start(&iosched_type, CAPACITY), -ENOMEM);
	core_init_error = 0;
	KUNIT_EXPECT_NULL(test, fake.q->elevator);
}

/* The file that shows what waits has each list and its requests. */
static void core_test_queue_file(struct kunit *test)
{
	struct seq_file m = {
		.buf = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL),
		.size = PAGE_SIZE - 1,
	};
	struct request *rq;

	KUNIT_ASSERT_NOT_NULL(test, m.buf);
	core_begin(test);
	fake_insert(REQ_OP_WRITE, 0, 8);
	rq = fake_alloc(REQ_OP_READ, 8, 8, 0);
	fake_insert_request(rq, true);
	KUNIT_EXPECT_EQ(test, iosched_queue_show(fake.q, &m), 0);
	KUNIT_EXPECT_NOT_NULL(test, strstr(m.buf, "head:\n"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(m.buf, "be write:\n"));
	KUNIT_EXPECT_NULL(test, strstr(m.buf, "be read:\n"));
	fake_finish();
}

/* Synchronous reads have all tags, the rest async_depth of them. */
static void core_test_tags(struct kunit *test)
{
	struct blk_mq_alloc_data alloc = { .q = fake.q, .hctx = fake.hctx };
	struct blk_mq_tags *tags = fake.hctx->sched_tags;
	struct sbitmap_queue *bits;

	async_depth_tunable.value = 5;
	core_begin(test);
	async_depth_tunable.value = 0;
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

	/* The bitmap expects a bound only if there is one. */
	core_begin(test);
	fake.hctx->sched_tags = fake.hctx->tags;
	bits = &fake.hctx->tags->bitmap_tags;
	KUNIT_EXPECT_EQ(test, fake_ops()->init_hctx(fake.hctx, 0), 0);
	KUNIT_EXPECT_EQ(test, bits->min_shallow_depth, UINT_MAX);
	KUNIT_EXPECT_GT(test, bits->wake_batch, 1U);
	fake_set(iosched_attrs, "async_depth", "3");
	KUNIT_EXPECT_EQ(test, bits->min_shallow_depth, 1U);
	fake_set(iosched_attrs, "async_depth", "0");
	fake_ops()->depth_updated(compat_depth_handle(fake.hctx));
	KUNIT_EXPECT_EQ(test, bits->min_shallow_depth, UINT_MAX);
	fake.hctx->sched_tags = tags;
	fake_stop();
}

/*
 * The model
 */
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

static struct model_request *cm_select(unsigned int tier)
{
	struct model_request *mr = model_lowest(tier, READ, 0, -1);

	if (!mr)
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

/* The deadlines of what is queued move with the setting. */
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
		spin_lock(&io->lock);
		iosched_replace_all(io, core_count, &left);
		spin_unlock(&io->lock);
		MODEL_ASSERT(test, !left, "%u left while replacing", left);
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
	KUNIT_CASE(core_test_full),
	KUNIT_CASE(core_test_bypass),
	KUNIT_CASE(core_test_special_vec),
	KUNIT_CASE(core_test_unprepared),
	KUNIT_CASE(core_test_polled),
	KUNIT_CASE(core_test_passthrough),
	KUNIT_CASE(core_test_overdue),
	KUNIT_CASE(core_test_tiers),
	KUNIT_CASE(core_test_chain),
	KUNIT_CASE(core_test_expire),
	KUNIT_CASE(core_test_replace),
	KUNIT_CASE(core_test_tunables),
	KUNIT_CASE(core_test_no_start),
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

MODULE_DESCRIPTION("Unit tests of what the SSD-aware schedulers share");
MODULE_LICENSE("GPL");
