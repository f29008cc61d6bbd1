// SPDX-License-Identifier: GPL-2.0
/*
 * PIQ: what it rests on (location vectors, conflict-free batches, units in
 * flight), each by itself: the paper's worked examples, random sequences against
 * a model that looks at every entry; then its rules on a device in the test's
 * hands, and random sequences of everything against a model of the elevator.
 */
#include "fake-blk.h"
#include "../../piq-iosched.c"
#include "model.h"

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

static void lv_set(const struct lv_geometry *g, u64 sector, u64 sectors,
		   unsigned long *vector)
{
	lv_set_span(g, lv_span_of(g, sector, sectors), vector);
}

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
	KUNIT_EXPECT_TRUE(test, bitmap_full(vector, g->units));
	lv_set(g, (1ULL << 40) + 1, 1 << 20, vector);
	KUNIT_EXPECT_TRUE(test, bitmap_full(vector, g->units));
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
			     enum lv_level level)
{
	const unsigned int count[LV_DIGITS] = { 4, 3, 2, 5 };
	struct lv_geometry *g = piq_geometry(test, 8192, count[0], count[1],
					     count[2], count[3], order, level);
	DECLARE_BITMAP(vector, LV_MAX_UNITS);
	DECLARE_BITMAP(model, LV_MAX_UNITS);
	unsigned int tries;

	for (tries = 0; tries < 50; tries++) {
		u64 start = fake_random(1 << 20), page;
		u32 sectors = 1 + fake_random(16 * 150);

		bitmap_zero(model, LV_MAX_UNITS);
		for (page = start / 16; page * 16 < start + sectors; page++)
			__set_bit(piq_model_unit(count, order, level, page),
				  model);
		lv_set(g, start, sectors, vector);
		if (!bitmap_equal(vector, model, g->units))
			KUNIT_FAIL(test, "seed %u: %s level %d: %llu+%u: %*pbl, not %*pbl",
				   fake.seed, order, level, start, sectors, g->units,
				   vector, g->units, model);
	}
}

/* All 24 orders at both levels, with counts that are no powers of two. */
static void piq_vector_orders(struct kunit *test)
{
	unsigned int n, orders = 0;

	fake_sequence(fake_first_seed(test));

	for (n = 0; n < 256; n++) {
		char order[LV_DIGITS + 1] = {
			"cwdp"[n & 3], "cwdp"[n >> 2 & 3], "cwdp"[n >> 4 & 3],
			"cwdp"[n >> 6]
		};
		u8 parsed[LV_DIGITS];

		if (lv_parse_order(order, parsed))
			continue;
		orders++;
		piq_vector_spans(test, order, LV_CHIP);
		piq_vector_spans(test, order, LV_PLANE_LEVEL);
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
	KUNIT_EXPECT_TRUE(test, lv_meet(&r1, &r3, g->units));
	KUNIT_EXPECT_EQ(test, 64UL, r2 & r4);
	KUNIT_EXPECT_TRUE(test, lv_meet(&r2, &r4, g->units));
	KUNIT_EXPECT_EQ(test, 2UL, r3 & r5);
	KUNIT_EXPECT_TRUE(test, lv_meet(&r3, &r5, g->units));
	KUNIT_EXPECT_FALSE(test, lv_meet(&r1, &r2, g->units));
	KUNIT_EXPECT_FALSE(test, lv_meet(&r4, &r5, g->units));
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
#define MODEL_ENTRIES	16
#define MODEL_HISTORY	64

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

static void piq_random_vector(unsigned long *vector)
{
	unsigned int first = fake_random(128);
	unsigned int n = 1 + fake_random(fake_random(3) ? 3 : 40);

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
		FAKE_ASSERT(test, entry->batch == entry->entry->batch->number,
			    "in batch %u, not %u", entry->entry->batch->number,
			    entry->batch);
		KUNIT_ASSERT_TRUE(test, bitmap_equal(entry->vector,
						     entry->entry->vector, 128));
	}
	FAKE_ASSERT(test, waiting == queue->nr, "%u wait", queue->nr);

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
static struct piq_model_entry *piq_model_any(struct piq_model *model)
{
	unsigned int i, n = fake_random(MODEL_ENTRIES);
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
			       struct cb_queue *queue)
{
	unsigned long taken[2];
	struct cb_entry *entry;
	unsigned int i;

	for (i = 0; i < 2; i++)
		taken[i] = ((unsigned long)fake_random(1 << 24) << 40) ^
			   ((unsigned long)fake_random(1 << 24) << 20) ^
			   fake_random(1 << 24);
	i = piq_model_next(model, taken);
	entry = cb_find(queue, taken, 0);
	if (!i) {
		FAKE_ASSERT(test, !entry, "one goes");
		return;
	}
	FAKE_ASSERT(test, entry && entry->batch->number == i &&
		    !piq_model_meet(entry->vector, taken),
		    "not one of batch %u goes", i);
	for (i = 0; model->all[i].entry != entry || !model->all[i].waits; i++)
		;
	model->all[i].waits = false;
	cb_take(queue, entry);
}

static void piq_model_arrive(struct piq_model *model, struct cb_queue *queue)
{
	struct piq_model_entry *entry = &model->all[model->nr++];

	piq_random_vector(entry->vector);
	entry->entry = cb_get(queue);
	bitmap_copy(entry->entry->vector, entry->vector, 128);
	cb_place(queue, entry->entry);
	piq_model_place(model, entry);
	entry->waits = true;
}

static void piq_model_resize(struct piq_model *model, struct cb_queue *queue)
{
	struct piq_model_entry *entry = piq_model_any(model);
	unsigned long more[2];

	if (!entry)
		return;
	piq_random_vector(more);
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
	struct cb_queue *queue = kunit_kzalloc(test, sizeof(*queue), GFP_KERNEL);
	void *memory = kunit_kzalloc(test, cb_queue_bytes(128, MODEL_ENTRIES),
				     GFP_KERNEL);
	struct piq_model *model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);
	struct piq_model_entry *entry;
	u32 first = fake_first_seed(test), round;

	KUNIT_ASSERT_NOT_NULL(test, queue);
	KUNIT_ASSERT_NOT_NULL(test, memory);
	KUNIT_ASSERT_NOT_NULL(test, model);
	for (round = 0; round < sequences; round++) {
		fake_sequence(first + round);
		memset(model, 0, sizeof(*model));
		cb_queue_init(queue, 128, MODEL_ENTRIES, memory);
		while (model->nr < MODEL_HISTORY) {
			switch (fake_random(8)) {
			case 0:
				entry = piq_model_any(model);
				if (entry) {
					entry->waits = false;
					entry->dropped = true;
					cb_drop(queue, entry->entry);
				}
				break;
			case 1:
				piq_model_resize(model, queue);
				break;
			case 2:
			case 3:
			case 4:
				piq_model_dispatch(test, model, queue);
				break;
			default:
				if (!cb_full(queue))
					piq_model_arrive(model, queue);
				else
					piq_model_dispatch(test, model, queue);
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

		for (i = 0; i < 64; i++) {
			struct cb_entry *entry = cb_get(queue);

			lv_set(g, fake_random(1 << 24), 8, entry->vector);
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

/*
 * The elevator
 */

#define PAGE	8U		/* sectors */

/* A drive of four units, as the paper's figures have it. */
static int piq_test_init(struct kunit *test)
{
	channels_tunable.value = 4;
	chips_tunable.value = 1;
	dies_tunable.value = 1;
	planes_tunable.value = 1;
	return 0;
}

/* Nothing runs beside the test. */
static struct piq_map *piq_test_map(struct piq_data *pd)
{
	return rcu_dereference_protected(pd->map, true);
}

static struct piq_data *piq_begin(struct kunit *test, unsigned int scheme)
{
	struct piq_data *pd;

	KUNIT_ASSERT_EQ(test, fake_start(&iosched_type, 1 << 20), 0);
	pd = piq_of(iosched_of(fake.q));
	KUNIT_ASSERT_EQ(test, fake_set(iosched_attrs, "scheme",
				       piq_scheme_names[scheme]),
			(ssize_t)strlen(piq_scheme_names[scheme]));
	return pd;
}

/* Pages; those that are a multiple of four apart lie in the same units. */
static struct request *piq_send(blk_opf_t opf, unsigned int page,
				unsigned int pages)
{
	return fake_insert(opf, page * PAGE, pages * PAGE);
}

static struct request *piq_expect(struct kunit *test, unsigned int page)
{
	struct request *rq = fake_dispatch();

	KUNIT_EXPECT_NOT_NULL(test, rq);
	if (rq)
		KUNIT_EXPECT_EQ(test, (u64)blk_rq_pos(rq), (u64)page * PAGE);
	return rq;
}

static void piq_expect_none(struct kunit *test)
{
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	KUNIT_EXPECT_FALSE(test, fake_has_work());
}

/*
 * Figures 6 and 7 under each scheme: reads of units 0011, 0110, 1100 and the
 * same as writes. All that may go goes, all that went ends: how many times?
 */
static void piq_test_schemes(struct kunit *test)
{
	static const unsigned int cycles[] = {
		[PIQ_NOOP]	= 1,	/* nobody is held back */
		[PIQ_RWS]	= 5,	/* the last read beside the first write */
		[PIQ_READS]	= 5,
		[PIQ_WRITES]	= 5,
		[PIQ_BOTH]	= 4,
		[PIQ_PLUS]	= 4,
	};
	unsigned int scheme, i, n;

	for (scheme = PIQ_NOOP; scheme <= PIQ_PLUS; scheme++) {
		piq_begin(test, scheme);
		for (i = 0; i < 3; i++)
			piq_send(REQ_OP_READ, 5 * i, 2);
		for (i = 0; i < 3; i++)
			piq_send(REQ_OP_WRITE, 100 + 5 * i, 2);
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

/* The order of figure 7; a request waits for units that one in flight holds. */
static void piq_test_order(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *rq[6];
	unsigned int i, runs;

	for (i = 0; i < 3; i++)
		piq_send(REQ_OP_READ, 5 * i, 2);
	for (i = 0; i < 3; i++)
		piq_send(REQ_OP_WRITE, 100 + 5 * i, 2);
	rq[0] = piq_expect(test, 0);
	rq[2] = piq_expect(test, 10);
	piq_expect_none(test);
	runs = fake_runs;
	fake_complete(rq[2]);
	KUNIT_EXPECT_EQ(test, fake_runs, runs + 1);
	/* Half of what the next read needs is free; all that a write needs. */
	rq[5] = piq_expect(test, 110);
	piq_expect_none(test);
	fake_complete(rq[0]);
	rq[3] = piq_expect(test, 100);
	fake_complete(rq[5]);
	fake_complete(rq[3]);
	rq[1] = piq_expect(test, 5);
	piq_expect_none(test);
	fake_complete(rq[1]);
	rq[4] = piq_expect(test, 105);
	fake_complete(rq[4]);
	KUNIT_EXPECT_EQ(test, pd->batches[READ], 2U);
	KUNIT_EXPECT_EQ(test, pd->batches[WRITE], 2U);
	KUNIT_EXPECT_EQ(test, pd->sizes[READ][1], 1U);
	fake_finish();
}

/* The oldest of all goes first, whatever the direction, and nobody waits. */
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

/* Reads first, each direction in its order; who would wait is held back. */
static void piq_test_rws(struct kunit *test)
{
	struct request *rq;

	piq_begin(test, PIQ_RWS);
	piq_send(REQ_OP_WRITE, 103, 1);
	piq_send(REQ_OP_READ, 0, 2);
	piq_send(REQ_OP_READ, 5, 1);
	piq_send(REQ_OP_READ, 10, 1);
	rq = piq_expect(test, 0);
	/* Page 5 waits for unit 1, and 10 behind it; the write needs neither. */
	piq_expect(test, 103);
	piq_expect_none(test);
	fake_complete(rq);
	piq_expect(test, 5);
	fake_finish();
}

/* Insertion runs the queue if the units of the request are free. */
static void piq_test_newcomers(struct kunit *test)
{
	piq_begin(test, PIQ_PLUS);
	piq_send(REQ_OP_READ, 0, 1);
	piq_expect(test, 0);
	piq_send(REQ_OP_READ, 4, 1);
	piq_expect_none(test);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	piq_send(REQ_OP_WRITE, 8, 1);
	KUNIT_EXPECT_FALSE(test, fake_has_work());
	piq_send(REQ_OP_WRITE, 13, 1);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	piq_expect(test, 13);
	piq_expect_none(test);
	fake_advance_ms(500);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	piq_expect(test, 4);
	fake_finish();
}

/* Buffered writes wait for no unit, so they are looked at. */
static void piq_test_newcomers_buffered(struct kunit *test)
{
	piq_begin(test, PIQ_PLUS)->buffered_writes = 1;
	piq_send(REQ_OP_READ, 0, 1);
	piq_expect(test, 0);
	piq_send(REQ_OP_READ, 4, 1);
	piq_expect_none(test);
	piq_send(REQ_OP_WRITE, 8, 1);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	piq_expect(test, 8);
	fake_finish();
}

/* Rule 5: under a flood of reads the writes have a turn of one batch. */
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
	piq_expect_none(test);
	fake_complete(read);
	write = piq_expect(test, 100);
	KUNIT_EXPECT_EQ(test, pd->prioritised, 1U);
	/* The next one's wait begins now, however long it has waited. */
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

	/* Not so under piq; nor does the batch count that has no read to pass. */
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

/* Rule 5 on a drive that takes longer than write_wait_us for an operation. */
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
	fake_advance_ms(20);
	fake_complete(rq);
	rq = piq_expect(test, 100);
	/* Now the reads: one batch, then it is the writes' turn again. */
	fake_advance_ms(20);
	fake_complete(rq);
	rq = piq_expect(test, 4);
	fake_advance_ms(20);
	fake_complete(rq);
	rq = piq_expect(test, 104);
	KUNIT_EXPECT_EQ(test, pd->prioritised, 2U);
	fake_complete(rq);
	piq_expect(test, 8);
	fake_finish();
}

/* Rule 8: writes that a drive buffers are nobody's hindrance. */
static void piq_test_buffered_writes(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *read;

	pd->buffered_writes = 1;
	/* One that is alone, and one from a batch. */
	piq_send(REQ_OP_WRITE, 100, 1);
	piq_expect(test, 100);
	piq_send(REQ_OP_READ, 0, 1);
	read = piq_expect(test, 0);
	piq_send(REQ_OP_READ, 4, 1);
	piq_send(REQ_OP_WRITE, 104, 1);
	piq_expect(test, 104);
	piq_expect_none(test);
	/* Reads still wait for reads; so go the first writes in their turn. */
	piq_send(REQ_OP_READ, 8, 1);
	piq_send(REQ_OP_WRITE, 108, 1);
	fake_advance_ms(2);
	fake_complete(read);
	piq_expect(test, 108);
	KUNIT_EXPECT_EQ(test, pd->prioritised, 1U);
	piq_expect(test, 4);
	piq_expect_none(test);
	fake_finish();
}

/* The first write batch claims what its requests need: reads go around. */
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
	piq_expect_none(test);
	fake_complete(read);
	piq_expect(test, 100);
	fake_finish();
}

/* A merge that adds a unit: into another batch, if its own has it already. */
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
	/* And when two become one, the place of the older one is kept. */
	fake_advance_ms(1);
	piq_send(REQ_OP_READ, 11, 1);
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, 10 * PAGE, PAGE, 0));
	KUNIT_EXPECT_EQ(test, fake.nr_freed, 1U);
	KUNIT_EXPECT_EQ(test, piq_entry(b)->vector[0], 14UL);
	KUNIT_EXPECT_EQ(test, piq_test_map(pd)->queue[IOSCHED_BE][READ].nr, 2U);
	fake_finish();
}

/* What is beyond the window waits, and comes in as those in it go. */
static void piq_test_window(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *rq[4];
	unsigned int i;

	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "window", "2"), (ssize_t)1);
	for (i = 0; i < 4; i++)
		rq[i] = piq_send(REQ_OP_READ, 4 * i, 1);
	KUNIT_EXPECT_NOT_NULL(test, piq_entry(rq[1]));
	KUNIT_EXPECT_NULL(test, piq_entry(rq[2]));
	KUNIT_EXPECT_PTR_EQ(test, pd->outside[IOSCHED_BE][READ], rq[2]);
	/* One outside takes the place of the one inside that it swallows. */
	KUNIT_EXPECT_TRUE(test, fake_merge_bio(REQ_OP_READ, 3 * PAGE, PAGE, 0));
	for (i = 0; i < 4; i++) {
		struct request *next = fake_dispatch();

		KUNIT_ASSERT_NOT_NULL(test, next);
		KUNIT_EXPECT_PTR_EQ(test, next, rq[i]);
		fake_complete(next);
	}
	KUNIT_EXPECT_NULL(test, pd->outside[IOSCHED_BE][READ]);
	fake_finish();
}

static void piq_test_window_merge(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *late, *early;

	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "window", "1"), (ssize_t)1);
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

/* Another geometry: what is queued has other units, what is in flight none. */
static void piq_test_geometry(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *a, *b;

	piq_send(REQ_OP_READ, 0, 1);
	a = piq_expect(test, 0);
	b = piq_send(REQ_OP_READ, 4, 1);
	piq_expect_none(test);
	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "channels", "8"),
			(ssize_t)1);
	KUNIT_EXPECT_EQ(test, piq_entry(b)->vector[0], 16UL);
	KUNIT_EXPECT_TRUE(test, fake_has_work());
	piq_expect(test, 4);
	/* It leaves nothing behind in the new map. */
	fake_complete(a);
	KUNIT_EXPECT_EQ(test, piq_test_map(pd)->units.held[0], 16UL);
	fake_expect_file(test, piq_units_show,
			 "# 8 units of 8 planes\nunit served in_flight\n"
			 "0 0 0\n1 0 0\n2 0 0\n3 0 0\n4 1 1\n5 0 0\n6 0 0\n7 0 0\n");
	fake_finish();
}

/* More units than there may be, and pages of an odd size, change nothing. */
static void piq_test_refused(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);

	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "chips", "257"),
			(ssize_t)-EINVAL);
	KUNIT_EXPECT_EQ(test, pd->chips, 1U);
	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "page_size_kb", "3"),
			(ssize_t)-EINVAL);
	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "allocation", "cwdd"),
			(ssize_t)-EINVAL);
	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "scheme", "piq++"),
			(ssize_t)-EINVAL);
	KUNIT_EXPECT_EQ(test, fake_set(iosched_attrs, "chips", "256"),
			(ssize_t)3);
	KUNIT_EXPECT_EQ(test, piq_test_map(pd)->lv.units, 1024U);
	fake_stop();
	channels_tunable.value = 1025;
	KUNIT_EXPECT_EQ(test, fake_start(&iosched_type, 1 << 20),
			COMPAT_REFUSED);
	channels_tunable.value = 4;
}

/* A discard moves no data: it counts as its first page. */
static void piq_test_discard(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *rq = fake_alloc(REQ_OP_DISCARD, 0, 64 * PAGE, 0);

	fake_insert_request(rq, false);
	model_sort_alone();
	KUNIT_EXPECT_EQ(test, piq_entry(rq)->vector[0], 1UL);
	piq_expect(test, 0);
	KUNIT_EXPECT_EQ(test, piq_test_map(pd)->units.held[0], 1UL);
	fake_finish();
}

/* One whose deadline has passed goes whatever holds its units. */
static void piq_test_deadline(struct kunit *test)
{
	struct piq_data *pd = piq_begin(test, PIQ_PLUS);
	struct request *a, *b;

	piq_send(REQ_OP_READ, 0, 1);
	piq_send(REQ_OP_READ, 4, 1);
	a = piq_expect(test, 0);
	piq_expect_none(test);
	fake_advance_ms(500);
	b = piq_expect(test, 4);
	/* The unit is held until both have left it. */
	piq_send(REQ_OP_READ, 8, 1);
	fake_complete(a);
	piq_expect_none(test);
	fake_complete(b);
	piq_expect(test, 8);
	KUNIT_EXPECT_EQ(test, pd->io.stats[IOSCHED_BE][READ].expired, 1U);
	fake_finish();
}

static void piq_test_counts(struct kunit *test)
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
	/* The first write batch has waited for its turn. */
	piq_expect(test, 100);
	piq_send(REQ_OP_WRITE, 104, 1);		/* WW with one in flight, RW */
	piq_expect(test, 105);
	piq_expect_none(test);
	fake_expect_file(test, piq_counts_show,
			 "conflicts rr 1 ww 2 rw 2\n"
			 "batches read 0 write 1 prioritised 1\n"
			 "read_sizes_log2 0 0 0 0 0 0 0 0 0 0 0\n"
			 "write_sizes_log2 0 1 0 0 0 0 0 0 0 0 0\n");
	fake_finish();
}

/*
 * The model of the elevator: who is, or was, in which batch, in a table; units
 * counted out page by page; everything is looked for anew for each question.
 */
#define QM_MEMBERS	1024
#define QM_BATCHES	4096

struct qm_member {
	struct model_request *mr;	/* NULL: it has gone */
	unsigned int tier, dir;
	unsigned int batch;
	u64 units;
	u64 order;			/* in the batch */
	u64 since;
};

static struct {
	unsigned int count[LV_DIGITS];	/* channels, chips, dies, planes */
	unsigned int page_size_kb;
	unsigned int allocation;
	unsigned int level;
	unsigned int window;
	unsigned int scheme;
	unsigned int write_wait_us;
	unsigned int claim_us;
	unsigned int buffered_writes;
	long map;
	struct qm_member member[QM_MEMBERS];
	unsigned int members;
	struct {
		u64 since;
		bool prioritised;
	} batch[QM_BATCHES];
	unsigned int batches;
	u64 order;
	u64 write_turn[IOSCHED_TIERS];
	bool read_turn[IOSCHED_TIERS];
	unsigned int prioritised;
	unsigned int stuck;		/* tiers that had none to go */
} qm;

static const char * const qm_counts[] = { "channels", "chips", "dies", "planes" };

static bool qm_buffered(unsigned int dir)
{
	return dir == WRITE && qm.buffered_writes;
}

static bool qm_reads_first(void)
{
	return qm.scheme != PIQ_NOOP;
}

static bool qm_batched(unsigned int dir)
{
	if (dir == READ)
		return qm.scheme == PIQ_READS || qm.scheme == PIQ_BOTH ||
		       qm.scheme == PIQ_PLUS;
	return qm.scheme == PIQ_WRITES || qm.scheme == PIQ_BOTH ||
	       qm.scheme == PIQ_PLUS;
}

static u64 qm_units(sector_t sector, sector_t end)
{
	const char *order = piq_allocation_names[qm.allocation];
	unsigned int size = qm.page_size_kb * 2, page;
	u64 units = 0;

	for (page = (u32)sector / size; page * size < end; page++)
		units |= BIT_ULL(piq_model_unit(qm.count, order, qm.level, page));
	return units;
}

static u64 qm_held(void)
{
	struct model_request *mr;
	u64 held = 0;

	model_for_each(mr)
		if (mr->state == MODEL_IN_FLIGHT && mr->counted &&
		    mr->priv[1] == qm.map)
			held |= qm_units(mr->sector, mr->end);
	return held;
}

static struct qm_member *qm_member_of(struct model_request *mr)
{
	unsigned int i;

	for (i = 0; i < qm.members; i++)
		if (qm.member[i].mr == mr)
			return &qm.member[i];
	return NULL;
}

/* Is somebody of the batch left? */
static bool qm_alive(unsigned int batch)
{
	unsigned int i;

	for (i = 0; i < qm.members; i++)
		if (qm.member[i].batch == batch && qm.member[i].mr)
			return true;
	return false;
}

/* Forget those of batches that have ended. */
static void qm_bury(void)
{
	unsigned int i, left = 0;

	for (i = 0; i < qm.members; i++)
		if (!qm_alive(qm.member[i].batch))
			qm.member[i].batch = 0;
	for (i = 0; i < qm.members; i++)
		if (qm.member[i].batch)
			qm.member[left++] = qm.member[i];
	qm.members = left;
}

/* All units that others in a batch need, or have needed. */
static u64 qm_units_of(unsigned int batch, struct qm_member *but)
{
	unsigned int i;
	u64 units = 0;

	for (i = 0; i < qm.members; i++)
		if (qm.member[i].batch == batch && &qm.member[i] != but)
			units |= qm.member[i].units;
	return units;
}

/* The first batch of a tier and direction behind another, 0 for none. */
static unsigned int qm_next_batch(unsigned int tier, unsigned int dir,
				  unsigned int behind)
{
	unsigned int i, next = 0;

	for (i = 0; i < qm.members; i++) {
		struct qm_member *m = &qm.member[i];

		if (m->mr && m->tier == tier && m->dir == dir &&
		    m->batch > behind && (!next || m->batch < next))
			next = m->batch;
	}
	return next;
}

/* Who waits in a batch, for none of these units, and came into it first. */
static struct qm_member *qm_first_of(unsigned int batch, u64 taken)
{
	struct qm_member *first = NULL;
	unsigned int i;

	for (i = 0; i < qm.members; i++) {
		struct qm_member *m = &qm.member[i];

		if (m->mr && m->batch == batch && !(m->units & taken) &&
		    (!first || m->order < first->order))
			first = m;
	}
	return first;
}

static void qm_put(struct model_request *mr, u64 since)
{
	struct qm_member *m = &qm.member[qm.members];
	unsigned int batch = 0;

	*m = (struct qm_member) {
		.mr = mr, .tier = mr->tier, .dir = mr->dir, .since = since,
		.units = qm_units(mr->sector, mr->end), .order = ++qm.order,
	};
	while ((batch = qm_next_batch(mr->tier, mr->dir, batch)))
		if (!(qm_units_of(batch, NULL) & m->units))
			break;
	if (!batch) {
		batch = ++qm.batches;
		qm.batch[batch].since = since;
		qm.batch[batch].prioritised = false;
	}
	m->batch = batch;
	qm.members++;
}

static unsigned int qm_waiting(unsigned int tier, unsigned int dir)
{
	unsigned int i, waiting = 0;

	for (i = 0; i < qm.members; i++)
		waiting += qm.member[i].mr && qm.member[i].tier == tier &&
			   qm.member[i].dir == dir;
	return waiting;
}

/* The oldest that is in no batch. */
static struct model_request *qm_outside(unsigned int tier, unsigned int dir)
{
	struct model_request *mr;
	s64 place = S64_MIN;

	while ((mr = model_behind(tier, dir, place))) {
		if (!qm_member_of(mr))
			break;
		place = mr->place;
	}
	return mr;
}

/* Those outside come in, in their order, as far as there is room. */
static void qm_admit(unsigned int tier, unsigned int dir)
{
	struct model_request *mr;

	while (qm_batched(dir) && qm_waiting(tier, dir) < qm.window &&
	       (mr = qm_outside(tier, dir)))
		qm_put(mr, mr->start_ns);
}

static void qm_queued(struct model_request *mr)
{
	qm.stuck = 0;
	if (qm_batched(mr->dir) && qm_outside(mr->tier, mr->dir) == mr &&
	    qm_waiting(mr->tier, mr->dir) < qm.window)
		qm_put(mr, mr->start_ns);
}

static void qm_unqueued(struct model_request *mr)
{
	struct qm_member *m = qm_member_of(mr);

	qm.stuck = 0;
	if (!m)
		return;
	*m = qm.member[--qm.members];
	qm_bury();
}

static void qm_inherits(struct model_request *mr, struct model_request *next)
{
	struct qm_member *m = qm_member_of(next);

	if (m && !qm_member_of(mr))
		m->mr = mr;
}

static void qm_grown(struct model_request *mr)
{
	struct qm_member *m = qm_member_of(mr);
	u64 since;

	qm.stuck = 0;
	if (!m)
		return;
	m->units = qm_units(mr->sector, mr->end);
	if (!(qm_units_of(m->batch, m) & m->units))
		return;
	since = m->since;
	qm_unqueued(mr);
	qm_put(mr, since);
}

static void qm_dispatched(struct model_request *mr)
{
	struct qm_member *m = qm_member_of(mr);
	unsigned int batch;

	/* A map that there is not: nothing is held. */
	mr->priv[1] = qm_buffered(mr->dir) ? -1 : qm.map;
	if (!m)
		return;
	batch = m->batch;
	m->mr = NULL;
	if (!qm_alive(batch) && qm.batch[batch].prioritised) {
		qm.prioritised++;
		qm.write_turn[mr->tier] = fake_ns;
		qm.read_turn[mr->tier] = true;
	} else if (!qm_alive(batch) && mr->dir == READ) {
		qm.read_turn[mr->tier] = false;
	}
	qm_bury();
}

/* All that those who wait in a batch need. */
static u64 qm_claim(unsigned int batch)
{
	unsigned int i;
	u64 units = 0;

	for (i = 0; i < qm.members; i++)
		if (qm.member[i].batch == batch && qm.member[i].mr)
			units |= qm.member[i].units;
	return units;
}

/* Has a batch waited for longer than claim_us? */
static bool qm_claims(unsigned int batch)
{
	return fake_ns > qm.batch[batch].since + qm.claim_us * 1000ULL;
}

static struct model_request *qm_pick(unsigned int tier, unsigned int dir,
				     u64 *taken)
{
	struct model_request *oldest = model_oldest(tier, dir);
	unsigned int batch = 0;
	struct qm_member *m;
	u64 units;

	if (!oldest)
		return NULL;
	if (qm_buffered(dir))
		*taken = 0;
	if (!qm_batched(dir)) {
		units = qm_units(oldest->sector, oldest->end);
		if (!(units & *taken))
			return oldest;
		*taken |= units;
		return NULL;
	}
	while ((batch = qm_next_batch(tier, dir, batch))) {
		m = qm_first_of(batch, *taken);
		if (m)
			return m->mr;
		if (qm_claims(batch))
			*taken |= qm_claim(batch);
	}
	return NULL;
}

static struct model_request *qm_first_come(unsigned int tier)
{
	struct model_request *read = model_oldest(tier, READ);
	struct model_request *write = model_oldest(tier, WRITE);

	if (read && write)
		return write->start_ns < read->start_ns ? write : read;
	return read ? read : write;
}

/* The write batch that goes before the reads, 0 for none. */
static unsigned int qm_prioritised(unsigned int tier)
{
	unsigned int batch = qm_next_batch(tier, WRITE, 0);
	unsigned int read = qm_next_batch(tier, READ, 0);
	u64 since;

	if (!read)
		qm.read_turn[tier] = false;
	if (!batch || !read || qm.scheme != PIQ_PLUS)
		return 0;
	since = max(qm.batch[batch].since, qm.write_turn[tier]);
	if (qm.read_turn[tier] && !qm.batch[batch].prioritised)
		return 0;
	if (fake_ns >= since + qm.write_wait_us * 1000ULL ||
	    (qm_claims(batch) && qm.batch[batch].since < qm.batch[read].since))
		qm.batch[batch].prioritised = true;
	return qm.batch[batch].prioritised ? batch : 0;
}

/* A unit comes free, unless others hold all that it held. */
static void qm_released(struct model_request *mr)
{
	u64 units = qm_units(mr->sector, mr->end);

	if (mr->priv[1] != qm.map)
		return;
	mr->counted = false;
	if (units & ~qm_held())
		qm.stuck = 0;
}

/* Nobody's turn comes as long as nothing changes but the time. */
static struct model_request *qm_select(unsigned int tier)
{
	u64 taken = qm_held();
	struct model_request *mr;
	unsigned int batch;
	struct qm_member *m;

	if (!qm_reads_first())
		return qm_first_come(tier);
	if (qm.stuck & BIT(tier))
		return NULL;
	qm_admit(tier, READ);
	qm_admit(tier, WRITE);
	batch = qm_prioritised(tier);
	if (batch) {
		m = qm_first_of(batch, qm_buffered(WRITE) ? 0 : taken);
		if (m)
			return m->mr;
		taken |= qm_claim(batch);
	}
	mr = qm_pick(tier, READ, &taken);
	if (!mr)
		mr = qm_pick(tier, WRITE, &taken);
	if (!mr)
		qm.stuck |= BIT(tier);
	return mr;
}

static void qm_forget(void)
{
	qm.stuck = 0;
	qm.members = 0;
	qm.batches = 0;
}

static void qm_start(struct kunit *test)
{
	struct piq_data *pd = piq_of(iosched_of(fake.q));

	memset(qm.write_turn, 0, sizeof(qm.write_turn));
	memset(qm.read_turn, 0, sizeof(qm.read_turn));
	qm.prioritised = 0;
	qm.page_size_kb = pd->page_size_kb;
	qm.count[LV_CHANNEL] = pd->channels;
	qm.count[LV_WAY] = pd->chips;
	qm.count[LV_DIE] = pd->dies;
	qm.count[LV_PLANE] = pd->planes;
	qm.allocation = pd->allocation;
	qm.level = pd->level;
	qm.scheme = fake_random(3) ? PIQ_PLUS : fake_random(6);
	model_choose(test, "scheme", &qm.scheme, qm.scheme, piq_scheme_names);
	model_set(test, "window", &qm.window, 1 + fake_random(8));
	model_set(test, "write_wait_us", &qm.write_wait_us, fake_random(300000));
	model_set(test, "claim_us", &qm.claim_us, fake_random(300000));
	model_set(test, "buffered_writes", &qm.buffered_writes,
		  !fake_random(4));
	qm_forget();
}

static void qm_disturb(struct kunit *test)
{
	unsigned int i;

	switch (fake_random(7)) {
	case 0:
		i = fake_random(4);
		model_set(test, qm_counts[i], &qm.count[i],
			  1 + fake_random(i < 2 ? 4 : 2));
		break;
	case 1:
		model_set(test, "page_size_kb", &qm.page_size_kb,
			  4 << fake_random(3));
		break;
	case 2:
		model_choose(test, "allocation", &qm.allocation,
			     fake_random(24), piq_allocation_names);
		break;
	case 3:
		model_choose(test, "level", &qm.level, fake_random(2),
			     piq_level_names);
		break;
	case 4:
		model_set(test, "window", &qm.window, 1 + fake_random(8));
		break;
	case 5:
		model_choose(test, "scheme", &qm.scheme,
			     fake_random(2) ? PIQ_PLUS : fake_random(6),
			     piq_scheme_names);
		qm_forget();
		model_replaced();
		return;
	case 6:
		model_set(test, "buffered_writes", &qm.buffered_writes,
			  fake_random(2));
		return;
	}
	/* Another map: what is in flight is forgotten with the old one. */
	qm.map++;
	qm_forget();
	model_replaced();
}

static void qm_compare(struct kunit *test)
{
	struct piq_data *pd = piq_of(iosched_of(fake.q));

	MODEL_ASSERT(test, pd->prioritised == qm.prioritised,
		     "%u write batches before reads, must be %u",
		     pd->prioritised, qm.prioritised);
}

static const struct model_policy piq_model_policy = {
	.type = &iosched_type,
	.capacity = 1 << 14,
	.start = qm_start,
	.select = qm_select,
	.queued = qm_queued,
	.unqueued = qm_unqueued,
	.inherits = qm_inherits,
	.grown = qm_grown,
	.dispatched = qm_dispatched,
	.released = qm_released,
	.disturb = qm_disturb,
	.compare = qm_compare,
};

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
	KUNIT_CASE(piq_test_schemes),
	KUNIT_CASE(piq_test_order),
	KUNIT_CASE(piq_test_noop),
	KUNIT_CASE(piq_test_rws),
	KUNIT_CASE(piq_test_newcomers),
	KUNIT_CASE(piq_test_newcomers_buffered),
	KUNIT_CASE(piq_test_write_wait),
	KUNIT_CASE(piq_test_read_turn),
	KUNIT_CASE(piq_test_buffered_writes),
	KUNIT_CASE(piq_test_write_claims),
	KUNIT_CASE(piq_test_merge),
	KUNIT_CASE(piq_test_window),
	KUNIT_CASE(piq_test_window_merge),
	KUNIT_CASE(piq_test_geometry),
	KUNIT_CASE(piq_test_refused),
	KUNIT_CASE(piq_test_discard),
	KUNIT_CASE(piq_test_deadline),
	KUNIT_CASE(piq_test_counts),
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
