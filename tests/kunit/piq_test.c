// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of what PIQ rests on: location vectors (the paper's worked
 * examples, all 24 orders, random spans), conflict-free batches (the paper's
 * figures, random sequences against a model that looks at every entry), units
 * in flight.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "conflict-batch.h"
#include "held-units.h"
#include "location-vector.h"

/* A generator of its own, so that each run tries the same. */
static u32 piq_random(u32 *state, u32 below)
{
	*state = *state * 1664525 + 1013904223;
	return (u64)(*state >> 8) * below >> 24;
}

static struct lv_geometry *piq_geometry(struct kunit *test, u32 page,
					u32 channels, u32 ways, u32 dies,
					u32 planes, const char *order_name,
					enum lv_level level)
{
	const unsigned int count[LV_DIGITS] = { channels, ways, dies, planes };
	struct lv_geometry *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);
	u8 order[LV_DIGITS];

	KUNIT_ASSERT_NOT_NULL(test, g);
	KUNIT_ASSERT_EQ(test, 0, lv_parse_order(order_name, order));
	KUNIT_ASSERT_EQ(test, 0, lv_init(g, page, count, order, level));
	return g;
}

/*
 * Location vectors
 */

/* Section IV.A.2: LSN 14896, 16 sectors, pages of 4 KB. */
static void piq_vector_paper(struct kunit *test)
{
	DECLARE_BITMAP(vector, LV_MAX_UNITS);
	struct lv_geometry *g;

	g = piq_geometry(test, 4096, 2, 4, 1, 2, "cwdp", LV_CHIP);
	KUNIT_EXPECT_EQ(test, 8U, g->units);
	lv_set(g, 14896, 16, vector);
	KUNIT_EXPECT_EQ(test, BIT(6) | BIT(7), vector[0]);

	g = piq_geometry(test, 4096, 2, 4, 1, 2, "cwdp", LV_PLANE_LEVEL);
	KUNIT_EXPECT_EQ(test, 16U, g->units);
	lv_set(g, 14896, 16, vector);
	KUNIT_EXPECT_EQ(test, BIT(6) | BIT(7), vector[0]);
}

/* Formula (1) says ceil(start / page); the first page touched is the floor. */
static void piq_vector_edges(struct kunit *test)
{
	struct lv_geometry *g = piq_geometry(test, 4096, 4, 2, 1, 1, "cwdp",
					     LV_CHIP);
	DECLARE_BITMAP(vector, LV_MAX_UNITS);

	lv_set(g, 0, 0, vector);
	KUNIT_EXPECT_EQ(test, 0UL, vector[0]);
	lv_set(g, 4, 1, vector);
	KUNIT_EXPECT_EQ(test, BIT(0), vector[0]);
	lv_set(g, 7, 2, vector);
	KUNIT_EXPECT_EQ(test, BIT(0) | BIT(1), vector[0]);
	/* Over the end of a row. */
	lv_set(g, 7 * 8, 16, vector);
	KUNIT_EXPECT_EQ(test, BIT(7) | BIT(0), vector[0]);
	/* All but one, all, more than all. */
	lv_set(g, 3 * 8, 7 * 8, vector);
	KUNIT_EXPECT_EQ(test, 0xffUL & ~BIT(2), vector[0]);
	lv_set(g, 3 * 8, 8 * 8, vector);
	KUNIT_EXPECT_EQ(test, 0xffUL, vector[0]);
	lv_set(g, (1ULL << 40) + 1, 1 << 20, vector);
	KUNIT_EXPECT_EQ(test, 0xffUL, vector[0]);
}

static void piq_vector_refused(struct kunit *test)
{
	const unsigned int none[LV_DIGITS] = { 8, 0, 1, 1 };
	const unsigned int many[LV_DIGITS] = { 32, 33, 1, 1 };
	const unsigned int most[LV_DIGITS] = { 32, 32, 1, 1 };
	struct lv_geometry *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);
	u8 order[LV_DIGITS];

	KUNIT_ASSERT_NOT_NULL(test, g);
	KUNIT_EXPECT_EQ(test, -EINVAL, lv_parse_order("cwd", order));
	KUNIT_EXPECT_EQ(test, -EINVAL, lv_parse_order("cwdd", order));
	KUNIT_EXPECT_EQ(test, -EINVAL, lv_parse_order("cwdx", order));
	KUNIT_ASSERT_EQ(test, 0, lv_parse_order("cwdp", order));
	KUNIT_EXPECT_EQ(test, -EINVAL, lv_init(g, 4096, none, order, LV_CHIP));
	KUNIT_EXPECT_EQ(test, -EINVAL, lv_init(g, 4096, many, order, LV_CHIP));
	KUNIT_EXPECT_EQ(test, -EINVAL, lv_init(g, 4095, most, order, LV_CHIP));
	KUNIT_EXPECT_EQ(test, 0, lv_init(g, 4096, most, order, LV_CHIP));
	KUNIT_EXPECT_EQ(test, 1024U, g->units);
}

/* The unit of a page from the words of the paper: digits in their order. */
static unsigned int piq_model_unit(const unsigned int *count, const char *order,
				   enum lv_level level, u64 page)
{
	unsigned int digit[LV_DIGITS], i;

	for (i = 0; i < LV_DIGITS; i++) {
		int which = strchr("cwdp", order[i]) - "cwdp";
		u32 rest;

		page = div_u64_rem(page, count[which], &rest);
		digit[which] = rest;
	}
	if (level == LV_CHIP)
		return digit[LV_CHANNEL] + count[LV_CHANNEL] * digit[LV_WAY];
	return digit[LV_CHANNEL] + count[LV_CHANNEL] *
	       (digit[LV_WAY] + count[LV_WAY] *
		(digit[LV_DIE] + count[LV_DIE] * digit[LV_PLANE]));
}

static void piq_vector_spans(struct kunit *test, const char *order,
			     enum lv_level level, u32 *seed)
{
	const unsigned int count[LV_DIGITS] = { 4, 3, 2, 5 };
	struct lv_geometry *g = piq_geometry(test, 8192, count[0], count[1],
					     count[2], count[3], order, level);
	DECLARE_BITMAP(vector, LV_MAX_UNITS);
	DECLARE_BITMAP(model, LV_MAX_UNITS);
	unsigned int tries;

	for (tries = 0; tries < 50; tries++) {
		u64 start = piq_random(seed, 1 << 20), page;
		u32 sectors = 1 + piq_random(seed, 16 * 150);

		bitmap_zero(model, LV_MAX_UNITS);
		for (page = start / 16; page * 16 < start + sectors; page++)
			__set_bit(piq_model_unit(count, order, level, page),
				  model);
		lv_set(g, start, sectors, vector);
		if (!bitmap_equal(vector, model, g->units))
			KUNIT_FAIL(test, "%s level %d: %llu+%u: %*pbl, not %*pbl",
				   order, level, start, sectors, g->units,
				   vector, g->units, model);
	}
}

/* All 24 orders at both levels, with counts that are no powers of two. */
static void piq_vector_orders(struct kunit *test)
{
	unsigned int n, orders = 0;
	u32 seed = 1;

	for (n = 0; n < 256; n++) {
		char order[LV_DIGITS + 1] = {
			"cwdp"[n & 3], "cwdp"[n >> 2 & 3], "cwdp"[n >> 4 & 3],
			"cwdp"[n >> 6]
		};
		u8 parsed[LV_DIGITS];

		if (lv_parse_order(order, parsed))
			continue;
		orders++;
		piq_vector_spans(test, order, LV_CHIP, &seed);
		piq_vector_spans(test, order, LV_PLANE_LEVEL, &seed);
	}
	KUNIT_EXPECT_EQ(test, 24U, orders);
}

/* Section IV.A.3 and figure 5. */
static void piq_conflict_paper(struct kunit *test)
{
	struct lv_geometry *g = piq_geometry(test, 4096, 2, 4, 1, 1, "cwdp",
					     LV_CHIP);
	const unsigned long r1 = 12, r2 = 64, r3 = 6, r4 = 96, r5 = 3;

	KUNIT_EXPECT_EQ(test, 4UL, r1 & r3);
	KUNIT_EXPECT_TRUE(test, lv_conflict(g, &r1, &r3));
	KUNIT_EXPECT_EQ(test, 64UL, r2 & r4);
	KUNIT_EXPECT_TRUE(test, lv_conflict(g, &r2, &r4));
	KUNIT_EXPECT_EQ(test, 2UL, r3 & r5);
	KUNIT_EXPECT_TRUE(test, lv_conflict(g, &r3, &r5));
	KUNIT_EXPECT_FALSE(test, lv_conflict(g, &r1, &r2));
	KUNIT_EXPECT_FALSE(test, lv_conflict(g, &r4, &r5));
}

/*
 * Batches
 */

static struct cb_queue *piq_queue(struct kunit *test, unsigned int units,
				  unsigned int entries)
{
	struct cb_queue *queue = kunit_kzalloc(test, sizeof(*queue), GFP_KERNEL);
	void *memory = kunit_kzalloc(test, cb_queue_bytes(units, entries),
				     GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, queue);
	KUNIT_ASSERT_NOT_NULL(test, memory);
	cb_queue_init(queue, units, entries, memory);
	return queue;
}

static struct cb_entry *piq_put(struct cb_queue *queue, unsigned long vector)
{
	struct cb_entry *entry = cb_get(queue);

	entry->vector[0] = vector;
	entry->since = 0;
	cb_place(queue, entry);
	return entry;
}

/* Figure 7: R0=3, R1=6, R2=12 gives {R0, R2} and {R1}. */
static void piq_batch_paper(struct kunit *test)
{
	struct cb_queue *queue = piq_queue(test, 4, 8);
	struct cb_entry *r0 = piq_put(queue, 3);
	struct cb_entry *r1 = piq_put(queue, 6);
	struct cb_entry *r2 = piq_put(queue, 12);

	KUNIT_EXPECT_PTR_EQ(test, r0->batch, r2->batch);
	KUNIT_EXPECT_PTR_NE(test, r0->batch, r1->batch);
	KUNIT_EXPECT_PTR_EQ(test, r0->batch, cb_first(queue));
	KUNIT_EXPECT_EQ(test, 15UL, r0->batch->vectors[0]);
	KUNIT_EXPECT_EQ(test, 2U, r0->batch->size);
	KUNIT_EXPECT_EQ(test, 6UL, r1->batch->vectors[0]);
}

/* Cycles in which all in the queue are served, each taking what it can. */
static unsigned int piq_cycles(struct cb_queue *queue)
{
	unsigned int cycles = 0;

	for (; queue->nr; cycles++) {
		unsigned long taken = 0;
		struct cb_entry *entry;

		while ((entry = cb_find(queue, &taken, 0))) {
			taken |= entry->vector[0];
			cb_take(queue, entry);
		}
	}
	return cycles;
}

/* Figures 6 and 7: six requests, in six cycles in order of arrival, here four. */
static void piq_batch_cycles(struct kunit *test)
{
	static const unsigned long arrivals[] = { 3, 6, 12 };
	struct cb_queue *reads = piq_queue(test, 4, 8);
	struct cb_queue *writes = piq_queue(test, 4, 8);
	unsigned int i, in_order = 2;

	for (i = 0; i < ARRAY_SIZE(arrivals); i++) {
		piq_put(reads, arrivals[i]);
		piq_put(writes, arrivals[i]);
		if (i && arrivals[i] & arrivals[i - 1])
			in_order += 2;
	}
	KUNIT_EXPECT_EQ(test, 6U, in_order);
	KUNIT_EXPECT_EQ(test, 2U, piq_cycles(reads));
	KUNIT_EXPECT_EQ(test, 2U, piq_cycles(writes));
}

/* Who comes for a unit that one of the batch had goes in a later batch. */
static void piq_batch_closed(struct kunit *test)
{
	struct cb_queue *queue = piq_queue(test, 8, 8);
	struct cb_entry *gone = piq_put(queue, 1), *stays = piq_put(queue, 2);
	struct cb_batch *first = stays->batch;

	KUNIT_EXPECT_EQ(test, 0U, cb_take(queue, gone));
	KUNIT_EXPECT_PTR_NE(test, first, piq_put(queue, 1)->batch);
	KUNIT_EXPECT_PTR_EQ(test, first, piq_put(queue, 4)->batch);
	/* One that was merged away leaves its units to others. */
	KUNIT_EXPECT_EQ(test, 0U, cb_drop(queue, stays));
	stays = piq_put(queue, 2);
	KUNIT_EXPECT_PTR_EQ(test, first, stays->batch);
	KUNIT_EXPECT_EQ(test, 0U, cb_take(queue, stays));
	KUNIT_EXPECT_EQ(test, 3U,
			cb_take(queue, list_first_entry(&first->entries,
							struct cb_entry, list)));
	KUNIT_EXPECT_PTR_NE(test, first, cb_first(queue));
}

/* A merge adds units: the entry stays if they are free there, else it moves. */
static void piq_batch_merge(struct kunit *test)
{
	struct cb_queue *queue = piq_queue(test, 8, 8);
	struct cb_entry *a = piq_put(queue, 1), *b = piq_put(queue, 8);
	struct cb_batch *first = a->batch;
	unsigned long vector = 3;

	cb_resize(queue, a, &vector);
	KUNIT_EXPECT_PTR_EQ(test, first, a->batch);
	KUNIT_EXPECT_EQ(test, 11UL, first->vectors[0]);
	vector = 12;
	cb_resize(queue, a, &vector);
	KUNIT_EXPECT_PTR_NE(test, first, a->batch);
	KUNIT_EXPECT_EQ(test, 8UL, first->vectors[0]);
	KUNIT_EXPECT_EQ(test, 12UL, a->batch->vectors[0]);
	KUNIT_EXPECT_EQ(test, 2U, queue->nr);
	/* Alone in its batch: it takes the batch's place at the tail. */
	vector = 24;
	cb_resize(queue, a, &vector);
	KUNIT_EXPECT_EQ(test, 24UL, a->batch->vectors[0]);
	KUNIT_EXPECT_PTR_EQ(test, first, b->batch);
	KUNIT_EXPECT_PTR_EQ(test, first, cb_first(queue));
}

static struct cb_entry *piq_put_at(struct cb_queue *queue, u64 since,
				   unsigned long vector)
{
	struct cb_entry *entry = cb_get(queue);

	entry->vector[0] = vector;
	entry->since = since;
	cb_place(queue, entry);
	return entry;
}

/* A batch that was opened before a point in time claims what it waits for. */
static void piq_batch_claims(struct kunit *test)
{
	struct cb_queue *queue = piq_queue(test, 8, 8);
	struct cb_entry *large, *small;
	unsigned long taken = 8;

	large = piq_put_at(queue, 10, 15);
	small = piq_put_at(queue, 20, 1);
	KUNIT_EXPECT_PTR_EQ(test, small, cb_find(queue, &taken, 10));
	KUNIT_EXPECT_EQ(test, 8UL, taken);
	KUNIT_EXPECT_NULL(test, cb_find(queue, &taken, 11));
	KUNIT_EXPECT_EQ(test, 15UL, taken);
	taken = 0;
	KUNIT_EXPECT_PTR_EQ(test, large, cb_find(queue, &taken, 11));
	KUNIT_EXPECT_EQ(test, 0UL, taken);
}

/* All entries of a batch claim; two batches claim one after the other. */
static void piq_batch_claims_all(struct kunit *test)
{
	struct cb_queue *queue = piq_queue(test, 8, 8);
	unsigned long taken = 17;

	piq_put_at(queue, 1, 3);
	piq_put_at(queue, 2, 0x30);
	piq_put_at(queue, 3, 6);
	piq_put_at(queue, 4, 0xe0);
	KUNIT_EXPECT_NULL(test, cb_find(queue, &taken, 2));
	/* The first batch's 3 and 0x30; the second one is too young. */
	KUNIT_EXPECT_EQ(test, 0x33UL, taken);
	KUNIT_EXPECT_NULL(test, cb_find(queue, &taken, 4));
	KUNIT_EXPECT_EQ(test, 0xf7UL, taken);
}

/*
 * The same by brute force: entries with the number of their batch, and all that
 * ever were in a batch that still has one waiting.
 */
#define MODEL_ENTRIES	32
#define MODEL_HISTORY	(16 * MODEL_ENTRIES)

struct piq_model_entry {
	unsigned long vector[2];
	unsigned int batch;
	bool waits;
	bool dropped;
	struct cb_entry *entry;
};

struct piq_model {
	struct piq_model_entry all[MODEL_HISTORY];
	unsigned int nr;
	unsigned int opened;
};

static bool piq_model_meet(const unsigned long *a, const unsigned long *b)
{
	return a[0] & b[0] || a[1] & b[1];
}

static bool piq_model_alive(struct piq_model *model, unsigned int batch)
{
	unsigned int i;

	for (i = 0; i < model->nr; i++)
		if (model->all[i].batch == batch && model->all[i].waits)
			return true;
	return false;
}

static bool piq_model_fits(struct piq_model *model, unsigned int batch,
			   struct piq_model_entry *entry)
{
	unsigned int i;

	for (i = 0; i < model->nr; i++)
		if (&model->all[i] != entry && model->all[i].batch == batch &&
		    !model->all[i].dropped &&
		    piq_model_meet(model->all[i].vector, entry->vector))
			return false;
	return true;
}

static void piq_model_place(struct piq_model *model,
			    struct piq_model_entry *entry)
{
	unsigned int batch;

	entry->batch = 0;
	for (batch = 1; batch <= model->opened; batch++)
		if (piq_model_alive(model, batch) &&
		    piq_model_fits(model, batch, entry))
			break;
	if (batch > model->opened)
		model->opened = batch;
	entry->batch = batch;
}

/* First by batch: one of those that need none of the taken units. */
static unsigned int piq_model_next(struct piq_model *model,
				   const unsigned long *taken)
{
	unsigned int i, best = 0;

	for (i = 0; i < model->nr; i++)
		if (model->all[i].waits &&
		    !piq_model_meet(model->all[i].vector, taken) &&
		    (!best || model->all[i].batch < best))
			best = model->all[i].batch;
	return best;
}

static void piq_random_vector(u32 *seed, unsigned long *vector)
{
	unsigned int first = piq_random(seed, 128);
	unsigned int n = 1 + piq_random(seed, piq_random(seed, 3) ? 3 : 40);

	bitmap_zero(vector, 128);
	for (; n; n--, first = (first + 1) % 128)
		__set_bit(first, vector);
}

static void piq_model_check(struct kunit *test, struct piq_model *model,
			    struct cb_queue *queue)
{
	unsigned int i, waiting = 0;
	struct cb_batch *batch;

	for (i = 0; i < model->nr; i++) {
		struct piq_model_entry *entry = &model->all[i];

		if (!entry->waits)
			continue;
		waiting++;
		KUNIT_ASSERT_EQ(test, entry->batch, entry->entry->batch->number);
		KUNIT_ASSERT_TRUE(test, bitmap_equal(entry->vector,
						     entry->entry->vector, 128));
	}
	KUNIT_ASSERT_EQ(test, waiting, queue->nr);

	list_for_each_entry(batch, &queue->batches, list) {
		unsigned long all[2] = {}, wait[2] = {};

		for (i = 0; i < model->nr; i++) {
			struct piq_model_entry *entry = &model->all[i];

			if (entry->batch != batch->number || entry->dropped)
				continue;
			bitmap_or(all, all, entry->vector, 128);
			if (entry->waits)
				bitmap_or(wait, wait, entry->vector, 128);
		}
		KUNIT_ASSERT_TRUE(test, bitmap_equal(all, batch->vectors, 128));
		KUNIT_ASSERT_TRUE(test, bitmap_equal(wait, cb_waiting(queue, batch),
						     128));
		KUNIT_ASSERT_FALSE(test, list_empty(&batch->entries));
	}
}

/* One of the entries that wait, or NULL. */
static struct piq_model_entry *piq_model_any(struct piq_model *model, u32 *seed)
{
	unsigned int i, n = piq_random(seed, MODEL_ENTRIES);
	struct piq_model_entry *last = NULL;

	for (i = 0; i < model->nr; i++)
		if (model->all[i].waits) {
			last = &model->all[i];
			if (!n--)
				break;
		}
	return last;
}

static void piq_model_dispatch(struct kunit *test, struct piq_model *model,
			       struct cb_queue *queue, u32 *seed)
{
	unsigned long taken[2];
	struct cb_entry *entry;
	unsigned int i;

	for (i = 0; i < 2; i++)
		taken[i] = ((unsigned long)piq_random(seed, 1 << 24) << 40) ^
			   ((unsigned long)piq_random(seed, 1 << 24) << 20) ^
			   piq_random(seed, 1 << 24);
	i = piq_model_next(model, taken);
	entry = cb_find(queue, taken, 0);
	if (!i) {
		KUNIT_ASSERT_NULL(test, entry);
		return;
	}
	KUNIT_ASSERT_NOT_NULL(test, entry);
	KUNIT_ASSERT_EQ(test, i, entry->batch->number);
	KUNIT_ASSERT_FALSE(test, piq_model_meet(entry->vector, taken));
	for (i = 0; model->all[i].entry != entry || !model->all[i].waits; i++)
		;
	model->all[i].waits = false;
	cb_take(queue, entry);
}

static void piq_model_arrive(struct piq_model *model, struct cb_queue *queue,
			     u32 *seed)
{
	struct piq_model_entry *entry = &model->all[model->nr++];

	piq_random_vector(seed, entry->vector);
	entry->entry = cb_get(queue);
	bitmap_copy(entry->entry->vector, entry->vector, 128);
	cb_place(queue, entry->entry);
	piq_model_place(model, entry);
	entry->waits = true;
}

static void piq_model_resize(struct piq_model *model, struct cb_queue *queue,
			     u32 *seed)
{
	struct piq_model_entry *entry = piq_model_any(model, seed);
	unsigned long more[2];

	if (!entry)
		return;
	piq_random_vector(seed, more);
	bitmap_or(entry->vector, entry->vector, more, 128);
	cb_resize(queue, entry->entry, entry->vector);
	if (!piq_model_fits(model, entry->batch, entry)) {
		entry->waits = false;
		piq_model_place(model, entry);
		entry->waits = true;
	}
}

static void piq_batch_model(struct kunit *test)
{
	struct cb_queue *queue = piq_queue(test, 128, MODEL_ENTRIES);
	struct piq_model *model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);
	struct piq_model_entry *entry;
	u32 round, seed = 41;

	KUNIT_ASSERT_NOT_NULL(test, model);
	for (round = 0; round < 20; round++) {
		memset(model, 0, sizeof(*model));
		model->opened = queue->opened;
		while (model->nr < MODEL_HISTORY) {
			switch (piq_random(&seed, 8)) {
			case 0:
				entry = piq_model_any(model, &seed);
				if (entry) {
					entry->waits = false;
					entry->dropped = true;
					cb_drop(queue, entry->entry);
				}
				break;
			case 1:
				piq_model_resize(model, queue, &seed);
				break;
			case 2:
			case 3:
			case 4:
				piq_model_dispatch(test, model, queue, &seed);
				break;
			default:
				if (!cb_full(queue))
					piq_model_arrive(model, queue, &seed);
				else
					piq_model_dispatch(test, model, queue,
							   &seed);
			}
			piq_model_check(test, model, queue);
		}
		while (queue->nr) {
			unsigned long taken[2] = {};

			cb_take(queue, cb_find(queue, taken, 0));
		}
	}
}

/* Another geometry: the same spans anew, in queues of another size. */
static void piq_batch_geometry(struct kunit *test)
{
	static const u32 shapes[][2] = { { 1, 1 }, { 2, 4 }, { 8, 8 }, { 32, 32 } };
	unsigned int shape, i;

	for (shape = 0; shape < ARRAY_SIZE(shapes); shape++) {
		struct lv_geometry *g = piq_geometry(test, 4096, shapes[shape][0],
						     shapes[shape][1], 1, 1,
						     "cwdp", LV_CHIP);
		struct cb_queue *queue = piq_queue(test, g->units, 64);
		unsigned int batches = 0;
		struct cb_batch *batch;
		u32 seed = 3;

		for (i = 0; i < 64; i++) {
			struct cb_entry *entry = cb_get(queue);

			lv_set(g, piq_random(&seed, 1 << 24), 8, entry->vector);
			cb_place(queue, entry);
		}
		KUNIT_EXPECT_TRUE(test, cb_full(queue));
		list_for_each_entry(batch, &queue->batches, list)
			batches++;
		/* A request that is not aligned needs two pages. */
		KUNIT_EXPECT_GE(test, batches, 64 / g->units);
		KUNIT_EXPECT_LE(test, batches, 64U);
		if (g->units == 1)
			KUNIT_EXPECT_EQ(test, batches, 64U);
		if (g->units == 1024)
			KUNIT_EXPECT_LE(test, batches, 4U);
	}
}

/* A unit is held until its last holder has left, also if taken meanwhile. */
static void piq_units_held(struct kunit *test)
{
	struct held_units *units = kunit_kzalloc(test, sizeof(*units),
						 GFP_KERNEL);
	const unsigned long low[2] = { 6, 1 }, high[2] = { 4, 2 };

	KUNIT_ASSERT_NOT_NULL(test, units);
	held_take(units, low, 128);
	held_take(units, high, 128);
	KUNIT_EXPECT_EQ(test, 6UL, units->held[0]);
	KUNIT_EXPECT_EQ(test, 3UL, units->held[1]);
	held_give_back(units, low, 128);
	held_settle(units, 128);
	KUNIT_EXPECT_EQ(test, 4UL, units->held[0]);
	KUNIT_EXPECT_EQ(test, 2UL, units->held[1]);
	/* Free and taken again before anybody looked. */
	held_give_back(units, high, 128);
	held_take(units, low, 128);
	held_settle(units, 128);
	KUNIT_EXPECT_EQ(test, 6UL, units->held[0]);
	KUNIT_EXPECT_EQ(test, 1UL, units->held[1]);
	held_give_back(units, low, 128);
	held_settle(units, 128);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(units->held, 128));
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
	KUNIT_CASE(piq_batch_model),
	KUNIT_CASE(piq_batch_geometry),
	KUNIT_CASE(piq_units_held),
	{}
};

static struct kunit_suite piq_suite = {
	.name = "piq",
	.test_cases = piq_cases,
};

kunit_test_suite(piq_suite);

MODULE_DESCRIPTION("KUnit tests of PIQ's location vectors and batches");
MODULE_LICENSE("GPL");
