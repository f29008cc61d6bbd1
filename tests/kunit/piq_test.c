// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of PIQ: location vectors (piq-vectors.h), conflict-free batches
 * (piq-batches.h), trials (piq-trials.h), the rules of the elevator one by one, then
 * random sequences against a model (piq-model.h), without trials.
 */
#include "fake-blk.h"
#include "../../piq-iosched.c"
#include "piq-batches.h"
#include "piq-model.h"
#include "piq-trials.h"

#define PAGE		8U		/* sectors */
#define CAPACITY	BIT(20)	/* sectors */

/* A drive of four units, as in the paper's figures. */
static int piq_test_init(struct kunit *test)
{
	piq_data_channels_tunable.value = 4;
	piq_data_chips_tunable.value = 1;
	piq_data_dies_tunable.value = 1;
	piq_data_planes_tunable.value = 1;
	piq_data_trials_tunable.value = 0;
	return 0;
}

/* No lock is needed, since nothing runs concurrently. */
static struct piq_map *piq_test_map(struct piq_data *pd)
{
	return rcu_dereference_protected(pd->map, true);
}

static struct piq_data *piq_begin(struct kunit *test, unsigned int scheme)
{
	KUNIT_ASSERT_EQ(test, fake_start(&iosched_type, CAPACITY), 0);
	fake_set(test, "scheme", piq_scheme_names[scheme]);
	return piq_of(iosched_of(fake.q));
}

/* Insert a request; pages that are a multiple of four apart share a unit. */
static struct request *piq_send(blk_opf_t opf, unsigned int page,
				unsigned int pages)
{
	return fake_insert(opf, page * PAGE, pages * PAGE);
}

static struct request *piq_expect(struct kunit *test, unsigned int page)
{
	return fake_expect(test, page * PAGE);
}

/* Insert the requests of figures 6 and 7: reads and writes of units 3, 6 and 12. */
static void piq_send_figure(void)
{
	unsigned int i;

	for (i = 0; i < 3; i++)
		piq_send(REQ_OP_READ, 5 * i, 2);
	for (i = 0; i < 3; i++)
		piq_send(REQ_OP_WRITE, 100 + 5 * i, 2);
}

/*
 * Figures 6 and 7 under each scheme: the cycles needed, each dispatching as
 * many requests as possible and then completing them.
 */
static void piq_test_schemes(struct kunit *test)
{
	static const unsigned int cycles[] = {
		[PIQ_NOOP]	= 1,	/* holds no request */
		[PIQ_RWS]	= 5,	/* the last read and the first write together */
		[PIQ_READS]	= 5,
		[PIQ_WRITES]	= 5,
		[PIQ_BOTH]	= 4,
		[PIQ_PLUS]	= 4,
	};
	unsigned int scheme, n;

	for (scheme = PIQ_NOOP; scheme <= PIQ_PLUS; scheme++) {
		piq_begin(test, scheme);
		piq_send_figure();
		for (n = 0; fake_dispatch(); n++) {
			while (fake_dispatch())
				;
			fake_complete_all();
		}
		KUNIT_EXPECT_EQ_MSG(test, n, cycles[scheme], "%s",
				    piq_scheme_names[scheme]);
		fake_stop();
	}
}

/* The order of figure 7; a request waits for units held by requests in flight. */
static void piq_test_order(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *rq[6];
	unsigned int runs;

	piq_send_figure();
	rq[0] = piq_expect(test, 0);
	rq[2] = piq_expect(test, 10);
	fake_expect_none(test);
	runs = fake_runs;
	fake_complete(rq[2]);
	KUNIT_EXPECT_EQ(test, fake_runs, runs + 1);
	/* The next read lacks a unit; the last write has all its units. */
	rq[5] = piq_expect(test, 110);
	fake_expect_none(test);
	fake_complete(rq[0]);
	rq[3] = piq_expect(test, 100);
	fake_complete(rq[5]);
	fake_complete(rq[3]);
	rq[1] = piq_expect(test, 5);
	fake_expect_none(test);
	fake_complete(rq[1]);
	rq[4] = piq_expect(test, 105);
	fake_complete(rq[4]);
	KUNIT_EXPECT_EQ(test, pd->batches[READ], 2U);
	KUNIT_EXPECT_EQ(test, pd->batches[WRITE], 2U);
	KUNIT_EXPECT_EQ(test, pd->sizes[READ][1], 1U);
	fake_finish();
}

/* NOOP dispatches in order of arrival and holds no request. */
static void piq_test_noop(struct kunit *test)
{
	piq_begin(test, PIQ_NOOP);
	piq_send(REQ_OP_WRITE, 0, 2);
	fake_advance_ns(1);
	piq_send(REQ_OP_READ, 4, 2);
	fake_advance_ns(1);
	piq_send(REQ_OP_WRITE, 8, 2);
	fake_advance_ns(1);
	piq_send(REQ_OP_READ, 12, 2);
	piq_expect(test, 0);
	piq_expect(test, 4);
	piq_expect(test, 8);
	piq_expect(test, 12);
	fake_finish();
}

/* RWS: reads first, each direction in order; a request that would wait is held. */
static void piq_test_rws(struct kunit *test)
{
	struct request *rq;

	piq_begin(test, PIQ_RWS);
	piq_send(REQ_OP_WRITE, 103, 1);
	piq_send(REQ_OP_READ, 0, 2);
	piq_send(REQ_OP_READ, 5, 1);
	piq_send(REQ_OP_READ, 10, 1);
	rq = piq_expect(test, 0);
	/*
	 * Page 5 waits for unit 1, page 10 for page 5; the write needs neither
	 * unit.
	 */
	piq_expect(test, 103);
	fake_expect_none(test);
	fake_complete(rq);
	piq_expect(test, 5);
	fake_finish();
}

/* Insertion runs the queue only if the units of the request are free. */
static void piq_test_insert_run(struct kunit *test)
{
	piq_begin(test, PIQ_PLUS);
	piq_send(REQ_OP_READ, 0, 1);
	piq_expect(test, 0);
	piq_send(REQ_OP_READ, 4, 1);
	fake_expect_none(test);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	piq_send(REQ_OP_WRITE, 8, 1);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	piq_send(REQ_OP_WRITE, 13, 1);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	piq_expect(test, 13);
	fake_expect_none(test);
	fake_advance_ms(500);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	piq_expect(test, 4);
	fake_finish();
}

/* Buffered writes wait for no unit, so their insertion runs the queue. */
static void piq_test_insert_run_buffered(struct kunit *test)
{
	piq_begin(test, PIQ_PLUS)->buffered_writes = 1;
	piq_send(REQ_OP_READ, 0, 1);
	piq_expect(test, 0);
	piq_send(REQ_OP_READ, 4, 1);
	fake_expect_none(test);
	piq_send(REQ_OP_WRITE, 8, 1);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	piq_expect(test, 8);
	fake_finish();
}

/* Rule 5: under continuous reads, write batches are dispatched in between. */
static void piq_test_write_wait(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *read, *write;

	piq_send(REQ_OP_READ, 0, 1);
	read = piq_expect(test, 0);
	piq_send(REQ_OP_WRITE, 100, 1);
	piq_send(REQ_OP_WRITE, 104, 1);
	piq_send(REQ_OP_READ, 4, 1);
	fake_advance_ns(999 * NSEC_PER_USEC);
	fake_complete(read);
	read = piq_expect(test, 4);
	piq_send(REQ_OP_READ, 8, 1);
	fake_advance_ns(NSEC_PER_USEC);
	fake_expect_none(test);
	fake_complete(read);
	write = piq_expect(test, 100);
	KUNIT_EXPECT_EQ(test, pd->prioritised, 1U);
	/* The wait of the next write batch starts now. */
	fake_complete(write);
	read = piq_expect(test, 8);
	piq_send(REQ_OP_READ, 12, 1);
	fake_advance_ns(1000 * NSEC_PER_USEC);
	fake_complete(read);
	write = piq_expect(test, 104);
	fake_complete(write);
	KUNIT_EXPECT_EQ(test, pd->prioritised, 2U);
	piq_expect(test, 12);
	fake_finish();

	/* Not with scheme=piq. A batch without reads to pass does not count. */
	pd = piq_begin(test, PIQ_BOTH);
	piq_send(REQ_OP_WRITE, 100, 1);
	fake_advance_ms(10);
	piq_send(REQ_OP_READ, 8, 1);
	read = piq_expect(test, 8);
	fake_complete(read);
	piq_expect(test, 100);
	KUNIT_EXPECT_EQ(test, pd->prioritised, 0U);
	fake_finish();
}

/* Complete @rq after 20 ms; the request at @page is the next one then. */
static struct request *piq_complete_late(struct kunit *test, struct request *rq,
					 unsigned int page)
{
	fake_advance_ms(20);
	fake_complete(rq);
	return piq_expect(test, page);
}

/* Rule 5 on a drive whose operations take longer than write_wait_us. */
static void piq_test_read_turn(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *rq;

	piq_send(REQ_OP_READ, 0, 1);
	rq = piq_expect(test, 0);
	piq_send(REQ_OP_READ, 4, 1);
	piq_send(REQ_OP_READ, 8, 1);
	piq_send(REQ_OP_WRITE, 100, 1);
	piq_send(REQ_OP_WRITE, 104, 1);
	rq = piq_complete_late(test, rq, 100);
	/* A batch of reads, then a batch of writes again. */
	rq = piq_complete_late(test, rq, 4);
	rq = piq_complete_late(test, rq, 104);
	KUNIT_EXPECT_EQ(test, pd->prioritised, 2U);
	fake_complete(rq);
	piq_expect(test, 8);
	fake_finish();
}

/*
 * The first write of a prioritised batch, page 105, is dispatched and returned. The
 * other, page 100, waits for @read, which is in flight; a read of page 5 waits, too.
 */
static struct request *piq_begin_write_turn(struct kunit *test,
					    struct request **read)
{
	struct request *rq;

	piq_send(REQ_OP_READ, 0, 1);
	*read = piq_expect(test, 0);
	piq_send(REQ_OP_READ, 1, 1);
	rq = piq_expect(test, 1);
	piq_send(REQ_OP_WRITE, 100, 1);
	piq_send(REQ_OP_WRITE, 105, 1);
	piq_send(REQ_OP_READ, 5, 1);
	return piq_complete_late(test, rq, 105);
}

/* Rule 5: a read that is alone is a batch of reads. */
static void piq_test_read_turn_alone(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *first, *second, *rq;

	rq = piq_begin_write_turn(test, &first);
	/* The read is dispatched before the last write of the batch. */
	fake_complete(rq);
	second = piq_expect(test, 5);
	fake_complete(first);
	rq = piq_expect(test, 100);
	KUNIT_EXPECT_EQ(test, pd->prioritised, 1U);
	fake_complete(second);
	fake_complete(rq);

	piq_send(REQ_OP_READ, 8, 1);
	rq = piq_expect(test, 8);
	piq_send(REQ_OP_WRITE, 104, 1);
	piq_send(REQ_OP_READ, 12, 1);
	rq = piq_complete_late(test, rq, 104);
	KUNIT_EXPECT_EQ(test, pd->prioritised, 2U);
	fake_complete(rq);
	piq_expect(test, 12);
	fake_finish();
}

/* Rule 5: a batch that ends because its last request moves to another ends its turn. */
static void piq_test_turn_ends_by_merge(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *first, *rq;

	rq = piq_begin_write_turn(test, &first);
	KUNIT_EXPECT_EQ(test, pd->prioritised, 0U);
	/* The write of page 100 needs the unit of the dispatched one, too. */
	piq_send(REQ_OP_WRITE, 101, 1);
	KUNIT_EXPECT_EQ(test, pd->prioritised, 1U);
	fake_complete(rq);
	fake_complete(first);
	rq = piq_expect(test, 5);
	fake_complete(rq);
	piq_expect(test, 100);
	fake_finish();
}

/* Rule 7: writes that the drive buffers hold no other request. */
static void piq_test_buffered_writes(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *read;

	pd->buffered_writes = 1;
	/* A write that is alone, and one from a batch. */
	piq_send(REQ_OP_WRITE, 100, 1);
	piq_expect(test, 100);
	piq_send(REQ_OP_READ, 0, 1);
	read = piq_expect(test, 0);
	piq_send(REQ_OP_READ, 4, 1);
	piq_send(REQ_OP_WRITE, 104, 1);
	piq_expect(test, 104);
	fake_expect_none(test);
	/* Reads still wait for reads, and write batches still have turns. */
	piq_send(REQ_OP_READ, 8, 1);
	piq_send(REQ_OP_WRITE, 108, 1);
	fake_advance_ms(2);
	fake_complete(read);
	piq_expect(test, 108);
	KUNIT_EXPECT_EQ(test, pd->prioritised, 1U);
	piq_expect(test, 4);
	fake_expect_none(test);
	fake_finish();
}

/* A setting on which waits depend may end one. */
static void piq_test_wait_setting(struct kunit *test)
{
	piq_begin(test, PIQ_PLUS);
	piq_send(REQ_OP_READ, 0, 1);
	piq_expect(test, 0);
	piq_send(REQ_OP_WRITE, 100, 1);
	fake_expect_none(test);
	fake_set(test, "buffered_writes", "1");
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	piq_expect(test, 100);
	fake_finish();
}

/* The first write batch claims its units; reads of other units pass. */
static void piq_test_write_claims(struct kunit *test)
{
	struct request *read;

	piq_begin(test, PIQ_PLUS);
	piq_send(REQ_OP_READ, 0, 1);
	read = piq_expect(test, 0);
	piq_send(REQ_OP_WRITE, 100, 2);
	piq_send(REQ_OP_READ, 5, 1);
	piq_send(REQ_OP_READ, 10, 1);
	fake_advance_ms(1);
	piq_expect(test, 10);
	fake_expect_none(test);
	fake_complete(read);
	piq_expect(test, 100);
	fake_finish();
}

/* A request extended into a unit of its batch moves to another batch. */
static void piq_test_merge(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *a, *b;

	a = piq_send(REQ_OP_READ, 0, 1);
	b = piq_send(REQ_OP_READ, 9, 1);
	KUNIT_EXPECT_PTR_EQ(test, piq_entry(a)->batch, piq_entry(b)->batch);
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, PAGE, PAGE, 0));
	KUNIT_EXPECT_PTR_NE(test, piq_entry(a)->batch, piq_entry(b)->batch);
	KUNIT_EXPECT_EQ(test, piq_entry(a)->vector[0], 3UL);
	/* A merge of two requests keeps the place of the older one. */
	fake_advance_ms(1);
	piq_send(REQ_OP_READ, 11, 1);
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, 10 * PAGE, PAGE, 0));
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 1U);
	KUNIT_EXPECT_EQ(test, piq_entry(b)->vector[0], 14UL);
	KUNIT_EXPECT_EQ(test, piq_test_map(pd)->queue[IOSCHED_BE][READ].nr, 2U);
	fake_finish();
}

/* Requests outside the window are admitted as those inside are dispatched. */
static void piq_test_window(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *rq[4];
	unsigned int i;

	fake_set(test, "window", "2");
	for (i = 0; i < 4; i++)
		rq[i] = piq_send(REQ_OP_READ, 4 * i, 1);
	KUNIT_EXPECT_NOT_NULL(test, piq_entry(rq[1]));
	KUNIT_EXPECT_NULL(test, piq_entry(rq[2]));
	KUNIT_EXPECT_PTR_EQ(test, pd->outside[IOSCHED_BE][READ], rq[2]);
	/* A bio merged inside the window does not change the order. */
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, 3 * PAGE, PAGE, 0));
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_PTR_EQ(test, fake_dispatch(), rq[i]);
		fake_complete(rq[i]);
	}
	KUNIT_EXPECT_NULL(test, pd->outside[IOSCHED_BE][READ]);
	fake_finish();
}

/* A request outside takes the place of one inside that is merged into it. */
static void piq_test_window_merge(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *late, *early;

	fake_set(test, "window", "1");
	early = piq_send(REQ_OP_READ, 11, 1);
	fake_advance_ms(1);
	late = piq_send(REQ_OP_READ, 9, 1);
	KUNIT_EXPECT_NULL(test, piq_entry(late));
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, 10 * PAGE, PAGE, 0));
	KUNIT_EXPECT_PTR_EQ(test, fake.freed[0], early);
	KUNIT_ASSERT_NOT_NULL(test, piq_entry(late));
	KUNIT_EXPECT_EQ(test, piq_entry(late)->vector[0], 14UL);
	KUNIT_EXPECT_NULL(test, pd->outside[IOSCHED_BE][READ]);
	piq_expect(test, 9);
	fake_finish();
}

/* A new geometry remaps queued requests and forgets those in flight. */
static void piq_test_geometry(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *a, *b;

	piq_send(REQ_OP_READ, 0, 1);
	a = piq_expect(test, 0);
	b = piq_send(REQ_OP_READ, 4, 1);
	fake_expect_none(test);
	fake_set(test, "channels", "8");
	KUNIT_EXPECT_EQ(test, piq_entry(b)->vector[0], 16UL);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	piq_expect(test, 4);
	/* Its completion does not change the new map. */
	fake_complete(a);
	KUNIT_EXPECT_EQ(test, piq_test_map(pd)->units.held[0], 16UL);
	fake_expect_file(test, piq_units_show,
			 "# 8 units of 8 planes\nunit served in_flight\n"
			 "0 0 0\n1 0 0\n2 0 0\n3 0 0\n4 1 1\n5 0 0\n6 0 0\n7 0 0\n");
	fake_finish();
}

/* Too many units and an invalid page size are refused and change nothing. */
static void piq_test_refused(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);

	KUNIT_EXPECT_EQ(test, fake_try_set("chips", "257"), (ssize_t)-EINVAL);
	KUNIT_EXPECT_EQ(test, pd->chips, 1U);
	KUNIT_EXPECT_EQ(test, fake_try_set("page_size_kb", "3"),
			(ssize_t)-EINVAL);
	KUNIT_EXPECT_EQ(test, fake_try_set("allocation", "cwdd"),
			(ssize_t)-EINVAL);
	KUNIT_EXPECT_EQ(test, fake_try_set("scheme", "piq++"),
			(ssize_t)-EINVAL);
	fake_set(test, "chips", "256");
	KUNIT_EXPECT_EQ(test, piq_test_map(pd)->lv.units, 1024U);
	fake_stop();
}

/* Parameters that make no geometry do not keep an elevator from starting. */
static void piq_test_fit(struct kunit *test)
{
	struct piq_data *pd;

	piq_data_channels_tunable.value = 4;
	piq_data_planes_tunable.value = 257;
	piq_data_page_size_kb_tunable.value = 15;
	pd = piq_begin(test, PIQ_PLUS);
	KUNIT_EXPECT_EQ(test, piq_test_map(pd)->lv.units, 4U);
	KUNIT_EXPECT_EQ(test, pd->planes, 1U);
	KUNIT_EXPECT_EQ(test, pd->page_size_kb, 8U);
	fake_stop();
	piq_data_page_size_kb_tunable.value = 4;
}

/* A discard moves no data, so it counts as its first page. */
static void piq_test_discard(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *rq = piq_send(REQ_OP_DISCARD, 0, 64);

	model_sort_fresh();
	KUNIT_EXPECT_EQ(test, piq_entry(rq)->vector[0], 1UL);
	piq_expect(test, 0);
	KUNIT_EXPECT_EQ(test, piq_test_map(pd)->units.held[0], 1UL);
	fake_finish();
}

/* A request past its deadline is dispatched even if its units are held. */
static void piq_test_deadline(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *a, *b;

	piq_send(REQ_OP_READ, 0, 1);
	piq_send(REQ_OP_READ, 4, 1);
	a = piq_expect(test, 0);
	fake_expect_none(test);
	fake_advance_ms(500);
	b = piq_expect(test, 4);
	/* The unit is held until both requests complete. */
	piq_send(REQ_OP_READ, 8, 1);
	fake_complete(a);
	fake_expect_none(test);
	fake_complete(b);
	piq_expect(test, 8);
	KUNIT_EXPECT_EQ(test, pd->io.stats[IOSCHED_BE][READ].expired, 1U);
	fake_finish();
}

/* The debugfs files of batches and counters. */
static void piq_test_files(struct kunit *test)
{
	piq_begin(test, PIQ_PLUS);
	piq_send(REQ_OP_READ, 0, 1);
	piq_send(REQ_OP_READ, 4, 1);		/* RR */
	piq_send(REQ_OP_WRITE, 100, 1);		/* RW */
	piq_send(REQ_OP_WRITE, 105, 1);
	piq_send(REQ_OP_WRITE, 109, 1);		/* WW */
	fake_advance_ms(1);
	fake_expect_file(test, piq_batches_show,
			 "tier dir batch size gone age_us waiting units\n"
			 "be read 1 1 0 1000 0 0\n"
			 "be read 2 1 0 1000 0 0\n"
			 "be write 1 2 0 1000 0-1 0-1\n"
			 "be write 2 1 0 1000 1 1\n");
	/* The first write batch has waited for long enough. */
	piq_expect(test, 100);
	piq_send(REQ_OP_WRITE, 104, 1);		/* WW in flight, RW */
	piq_expect(test, 105);
	fake_expect_none(test);
	fake_expect_file(test, piq_counts_show,
			 "conflicts rr 1 ww 2 rw 2\n"
			 "batches read 0 write 1 prioritised 1\n"
			 "holding 1 trials 0 changes 0\n"
			 "read_sizes_log2 0 0 0 0 0 0 0 0 0 0 0\n"
			 "write_sizes_log2 0 1 0 0 0 0 0 0 0 0 0\n");
	fake_finish();
}

/* The first conflict begins a trial: two reads of a unit are dispatched together. */
static void piq_test_trial(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *rq;

	fake_set(test, "trials", "1");
	piq_send(REQ_OP_READ, 0, 1);
	piq_send(REQ_OP_READ, 4, 1);
	piq_send(REQ_OP_READ, 8, 1);
	rq = piq_expect(test, 0);
	KUNIT_EXPECT_FALSE(test, pd->trial.window);
	piq_expect(test, 4);
	piq_expect(test, 8);
	KUNIT_EXPECT_TRUE(test, pd->trial.window);
	/* Not the device's tags: as many as that may never complete. */
	KUNIT_EXPECT_EQ(test, pd->trial.backlog, 3U);
	fake_advance_ms(2);
	fake_complete(rq);
	KUNIT_EXPECT_EQ(test, atomic_read(&pd->trial.sums[READ].nr), 1);
	KUNIT_EXPECT_EQ(test, atomic64_read(&pd->trial.sums[READ].us), 2001LL);
	/* Alone, and its unit is taken. */
	piq_send(REQ_OP_READ, 12, 1);
	piq_expect(test, 12);
	fake_set(test, "trials", "0");
	piq_send(REQ_OP_READ, 16, 1);
	fake_expect_none(test);
	fake_finish();
}

static void piq_test_random(struct kunit *test)
{
	model_run(test, &piq_model_policy);
}

static struct kunit_case piq_cases[] = {
	KUNIT_CASE(piq_vector_paper),
	KUNIT_CASE(piq_vector_edges),
	KUNIT_CASE(piq_vector_refused),
	KUNIT_CASE(piq_vector_orders),
	KUNIT_CASE(piq_conflict_paper),
	KUNIT_CASE(piq_batch_paper),
	KUNIT_CASE(piq_batch_cycles),
	KUNIT_CASE(piq_batch_closed),
	KUNIT_CASE(piq_batch_merge),
	KUNIT_CASE(piq_batch_claims),
	KUNIT_CASE(piq_batch_claims_all),
	KUNIT_CASE_SLOW(piq_batch_model),
	KUNIT_CASE(piq_batch_geometry),
	KUNIT_CASE(piq_units_held),
	KUNIT_CASE(piq_units_shared),
	KUNIT_CASE(piq_units_tasks),
	KUNIT_CASE(piq_test_schemes),
	KUNIT_CASE(piq_test_order),
	KUNIT_CASE(piq_test_noop),
	KUNIT_CASE(piq_test_rws),
	KUNIT_CASE(piq_test_insert_run),
	KUNIT_CASE(piq_test_insert_run_buffered),
	KUNIT_CASE(piq_test_write_wait),
	KUNIT_CASE(piq_test_read_turn),
	KUNIT_CASE(piq_test_read_turn_alone),
	KUNIT_CASE(piq_test_turn_ends_by_merge),
	KUNIT_CASE(piq_test_buffered_writes),
	KUNIT_CASE(piq_test_wait_setting),
	KUNIT_CASE(piq_test_write_claims),
	KUNIT_CASE(piq_test_merge),
	KUNIT_CASE(piq_test_window),
	KUNIT_CASE(piq_test_window_merge),
	KUNIT_CASE(piq_test_geometry),
	KUNIT_CASE(piq_test_refused),
	KUNIT_CASE(piq_test_fit),
	KUNIT_CASE(piq_test_discard),
	KUNIT_CASE(piq_test_deadline),
	KUNIT_CASE(piq_test_files),
	KUNIT_CASE(piq_trial_log),
	KUNIT_CASE(piq_trial_keeps),
	KUNIT_CASE(piq_trial_changes),
	KUNIT_CASE(piq_trial_latency),
	KUNIT_CASE(piq_trial_starving),
	KUNIT_CASE(piq_trial_undecided),
	KUNIT_CASE(piq_test_trial),
	KUNIT_CASE_SLOW(piq_test_random),
	{}
};

static struct kunit_suite piq_suite = {
	.name = "piq-iosched",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = piq_test_init,
	.test_cases = piq_cases,
};

kunit_test_suite(piq_suite);
