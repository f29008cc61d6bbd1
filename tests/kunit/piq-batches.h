/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of conflict-free batches and of held units: the paper's examples, then
 * random sequences against a model that searches all entries.
 */
#ifndef _PIQ_BATCHES_H
#define _PIQ_BATCHES_H

#include <linux/llist.h>
#include <linux/workqueue.h>

#include "piq-vectors.h"

static struct cb_queue *piq_queue(struct kunit *test, unsigned int units,
				  unsigned int entries)
{
	struct cb_queue *queue = fake_zalloc(test, sizeof(*queue));

	cb_queue_init(queue, units, entries,
		      fake_zalloc(test, cb_queue_bytes(units, entries)));
	return queue;
}

/* Place an entry that has waited since a time in ns. */
static struct cb_entry *piq_put_at(struct cb_queue *queue, u64 since,
				   unsigned long vector)
{
	struct cb_entry *entry = cb_get(queue);

	entry->vector[0] = vector;
	entry->since = since;
	cb_place(queue, entry);
	return entry;
}

static struct cb_entry *piq_put(struct cb_queue *queue, unsigned long vector)
{
	return piq_put_at(queue, 0, vector);
}

/* Figure 7 of the paper: R0=3, R1=6, R2=12 gives {R0, R2} and {R1}. */
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

/*
 * Return the cycles that serve all entries; a cycle takes all that do not
 * conflict.
 */
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

/* Figures 6 and 7: six requests take four cycles, but six in order of arrival. */
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

/* An entry that conflicts with a dispatched one of a batch joins a later batch. */
static void piq_batch_closed(struct kunit *test)
{
	struct cb_queue *queue = piq_queue(test, 8, 8);
	struct cb_entry *gone = piq_put(queue, 1), *stays = piq_put(queue, 2);
	struct cb_batch *first = stays->batch;

	KUNIT_EXPECT_EQ(test, 0U, cb_take(queue, gone));
	KUNIT_EXPECT_PTR_NE(test, first, piq_put(queue, 1)->batch);
	KUNIT_EXPECT_PTR_EQ(test, first, piq_put(queue, 4)->batch);
	/* The units of a dropped entry are free for others. */
	KUNIT_EXPECT_EQ(test, 0U, cb_drop(queue, stays));
	stays = piq_put(queue, 2);
	KUNIT_EXPECT_PTR_EQ(test, first, stays->batch);
	KUNIT_EXPECT_EQ(test, 0U, cb_take(queue, stays));
	KUNIT_EXPECT_EQ(test, 3U,
			cb_take(queue, list_first_entry(&first->entries,
							struct cb_entry, list)));
	KUNIT_EXPECT_PTR_NE(test, first, cb_first(queue));
}

/* An entry extended by a merge stays in its batch unless it conflicts there. */
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
	/* An entry alone in its batch keeps the batch. */
	vector = 24;
	cb_resize(queue, a, &vector);
	KUNIT_EXPECT_EQ(test, 24UL, a->batch->vectors[0]);
	KUNIT_EXPECT_PTR_EQ(test, first, b->batch);
	KUNIT_EXPECT_PTR_EQ(test, first, cb_first(queue));
}

/* A batch opened before a point in time claims the units it waits for. */
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

/* A batch claims the units of all its entries; batches claim in order. */
static void piq_batch_claims_all(struct kunit *test)
{
	struct cb_queue *queue = piq_queue(test, 8, 8);
	unsigned long taken = 17;

	piq_put_at(queue, 1, 3);
	piq_put_at(queue, 2, 0x30);
	piq_put_at(queue, 3, 6);
	piq_put_at(queue, 4, 0xe0);
	KUNIT_EXPECT_NULL(test, cb_find(queue, &taken, 2));
	/* The first batch claims 3 and 0x30; the second one is too young. */
	KUNIT_EXPECT_EQ(test, 0x33UL, taken);
	KUNIT_EXPECT_NULL(test, cb_find(queue, &taken, 4));
	KUNIT_EXPECT_EQ(test, 0xf7UL, taken);
}

/*
 * The model: entries with the number of their batch. An entry counts in its
 * batch until no entry of the batch waits any more.
 */
#define MODEL_ENTRIES	16	/* in the queue */
#define MODEL_HISTORY	64	/* of a sequence */
#define MODEL_UNITS	128

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

/* Return the first batch with an entry that needs no taken unit, 0 for none. */
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

/* Set a run of units: mostly few, sometimes many. */
static void piq_random_vector(unsigned long *vector)
{
	unsigned int first = fake_random(MODEL_UNITS);
	unsigned int n = 1 + fake_random(fake_random(3) ? 3 : 40);

	bitmap_zero(vector, MODEL_UNITS);
	for (; n; n--, first = (first + 1) % MODEL_UNITS)
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
			    "in batch %u, must be %u", entry->entry->batch->number,
			    entry->batch);
		KUNIT_ASSERT_TRUE(test, bitmap_equal(entry->vector,
						     entry->entry->vector, MODEL_UNITS));
	}
	FAKE_ASSERT(test, waiting == queue->nr, "%u entries wait, must be %u", queue->nr,
		    waiting);

	list_for_each_entry(batch, &queue->batches, list) {
		unsigned long all[2] = {}, wait[2] = {};

		for (i = 0; i < model->nr; i++) {
			struct piq_model_entry *entry = &model->all[i];

			if (entry->batch != batch->number || entry->dropped)
				continue;
			bitmap_or(all, all, entry->vector, MODEL_UNITS);
			if (entry->waits)
				bitmap_or(wait, wait, entry->vector, MODEL_UNITS);
		}
		KUNIT_ASSERT_TRUE(test, bitmap_equal(all, batch->vectors, MODEL_UNITS));
		KUNIT_ASSERT_TRUE(test, bitmap_equal(wait, cb_waiting(queue, batch),
						     MODEL_UNITS));
		KUNIT_ASSERT_FALSE(test, list_empty(&batch->entries));
	}
}

/* Return a random waiting entry, or NULL. */
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
		FAKE_ASSERT(test, !entry, "found an entry, must be none");
		return;
	}
	FAKE_ASSERT(test, entry && entry->batch->number == i &&
		    !piq_model_meet(entry->vector, taken),
		    "found an entry, must be of batch %u", i);
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
	bitmap_copy(entry->entry->vector, entry->vector, MODEL_UNITS);
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
	bitmap_or(entry->vector, entry->vector, more, MODEL_UNITS);
	cb_resize(queue, entry->entry, entry->vector);
	if (!piq_model_fits(model, entry->batch, entry)) {
		entry->waits = false;
		piq_model_place(model, entry);
		entry->waits = true;
	}
}

static void piq_batch_model(struct kunit *test)
{
	struct cb_queue *queue = fake_zalloc(test, sizeof(*queue));
	void *memory = fake_zalloc(test, cb_queue_bytes(MODEL_UNITS,
							MODEL_ENTRIES));
	struct piq_model *model = fake_zalloc(test, sizeof(*model));
	struct piq_model_entry *entry;
	u32 first = fake_first_seed(test), round;

	for (round = 0; round < sequences; round++) {
		fake_sequence(first + round);
		memset(model, 0, sizeof(*model));
		cb_queue_init(queue, MODEL_UNITS, MODEL_ENTRIES, memory);
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

/* Batches of random requests in small and large geometries. */
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
		/* An unaligned request needs two pages. */
		KUNIT_EXPECT_GE(test, batches, 64 / g->units);
		KUNIT_EXPECT_LE(test, batches, 64U);
		if (g->units == 1)
			KUNIT_EXPECT_EQ(test, batches, 64U);
		if (g->units == 1024)
			KUNIT_EXPECT_LE(test, batches, 4U);
	}
}

/* A unit is held until its last holder gives it back. */
static void piq_units_held(struct kunit *test)
{
	struct held_units *units = fake_zalloc(test, sizeof(*units));
	const unsigned long low[2] = { 6, 1 }, high[2] = { 4, 2 };

	held_take(units, low, 128);
	held_take(units, high, 128);
	KUNIT_EXPECT_EQ(test, 6UL, units->held[0]);
	KUNIT_EXPECT_EQ(test, 3UL, units->held[1]);
	held_give_back(units, low, 128);
	held_settle(units, 128);
	KUNIT_EXPECT_EQ(test, 4UL, units->held[0]);
	KUNIT_EXPECT_EQ(test, 2UL, units->held[1]);
	/* Given back and taken again before the next update. */
	held_give_back(units, high, 128);
	held_take(units, low, 128);
	held_settle(units, 128);
	KUNIT_EXPECT_EQ(test, 6UL, units->held[0]);
	KUNIT_EXPECT_EQ(test, 1UL, units->held[1]);
	held_give_back(units, low, 128);
	held_settle(units, 128);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(units->held, 128));
}

/* Fail unless the counts of some units are those of their @holders. */
static void piq_units_check(struct kunit *test, struct held_units *units,
			    const unsigned int *holders, bool settled)
{
	unsigned int unit, more = 0;

	for (unit = 0; unit < 128; unit++) {
		more += atomic_read(&units->more[unit]);
		FAKE_ASSERT(test, held_by(units, unit) == holders[unit],
			    "unit %u: %u holders", unit, holders[unit]);
		FAKE_ASSERT(test, holders[unit] ? test_bit(unit, units->held) :
			    !settled || !test_bit(unit, units->held),
			    "unit %u", unit);
	}
	FAKE_ASSERT(test, atomic_read(&units->all_more) == more, "%u more", more);
}

/* As many holders as requests that took a unit and have not given it back. */
static void piq_units_shared(struct kunit *test)
{
	struct held_units *units = fake_zalloc(test, sizeof(*units));
	unsigned int holders[128] = {}, turn, unit, nr = 0, *served;
	unsigned long (*vectors)[2];
	bool freed = false;

	fake_sequence(fake_first_seed(test));
	vectors = fake_zalloc(test, 16 * sizeof(*vectors));
	served = fake_zalloc(test, 128 * sizeof(*served));
	for (turn = 0; turn < 5000; turn++) {
		unsigned int what = fake_random(4), at;

		if (what == 0) {
			FAKE_ASSERT(test, held_settle(units, 128) == freed,
				    "freed: %u", freed);
			freed = false;
		} else if (what == 1 && nr) {
			at = fake_random(nr--);
			held_give_back(units, vectors[at], 128);
			for_each_set_bit(unit, vectors[at], 128)
				holders[unit]--;
			bitmap_copy(vectors[at], vectors[nr], 128);
			freed = atomic_long_read(&units->freed[0]) ||
				atomic_long_read(&units->freed[1]);
		} else if (what > 1 && nr < 16) {
			vectors[nr][0] = 1UL << fake_random(8);
			vectors[nr][1] = fake_random(8) ? fake_random(4) : ULONG_MAX;
			held_take(units, vectors[nr], 128);
			for_each_set_bit(unit, vectors[nr], 128) {
				holders[unit]++;
				served[unit]++;
			}
			nr++;
		}
		piq_units_check(test, units, holders, !what);
	}
	for (unit = 0; unit < 128; unit++)
		KUNIT_EXPECT_EQ(test, served[unit], held_served(units, unit));
}

#define PIQ_HOLDERS	16

/* A request that holds units, on its way to the CPU that completes it, and back. */
struct piq_holder {
	struct llist_node node;
	unsigned long vector[2];
};

struct piq_givers {
	struct held_units units;
	struct llist_head sent;
	struct llist_head back;
	atomic_t away;
	struct work_struct work[2];
};

static void piq_units_give(struct piq_givers *givers)
{
	struct piq_holder *holder, *next;

	while (atomic_read(&givers->away) >= 0) {
		llist_for_each_entry_safe(holder, next,
					  llist_del_all(&givers->sent), node) {
			held_give_back(&givers->units, holder->vector, 128);
			llist_add(&holder->node, &givers->back);
			atomic_dec(&givers->away);
		}
		cond_resched();
	}
}

static void piq_units_give_first(struct work_struct *work)
{
	piq_units_give(container_of(work, struct piq_givers, work[0]));
}

static void piq_units_give_second(struct work_struct *work)
{
	piq_units_give(container_of(work, struct piq_givers, work[1]));
}

/* The same with two tasks that give units back, while this one takes and settles. */
static void piq_units_tasks(struct kunit *test)
{
	struct piq_holder *holders = fake_zalloc(test, PIQ_HOLDERS * sizeof(*holders));
	struct piq_givers *givers = fake_zalloc(test, sizeof(*givers));
	const unsigned int none[128] = {};
	struct piq_holder *holder, *next;
	unsigned int turn, n;

	fake_sequence(fake_first_seed(test));
	for (n = 0; n < PIQ_HOLDERS; n++)
		llist_add(&holders[n].node, &givers->back);
	INIT_WORK(&givers->work[0], piq_units_give_first);
	INIT_WORK(&givers->work[1], piq_units_give_second);
	for (n = 0; n < 2; n++)
		queue_work(system_unbound_wq, &givers->work[n]);
	for (turn = 0; turn < 20000; turn++) {
		llist_for_each_entry_safe(holder, next,
					  llist_del_all(&givers->back), node) {
			holder->vector[0] = 1UL << fake_random(4);
			holder->vector[1] = fake_random(4);
			held_take(&givers->units, holder->vector, 128);
			atomic_inc(&givers->away);
			llist_add(&holder->node, &givers->sent);
		}
		held_settle(&givers->units, 128);
		if (!(turn % 64))
			cond_resched();
	}
	while (atomic_read(&givers->away))
		cond_resched();
	atomic_set(&givers->away, -1);
	for (n = 0; n < 2; n++)
		flush_work(&givers->work[n]);
	held_settle(&givers->units, 128);
	piq_units_check(test, &givers->units, none, true);
}

#endif /* _PIQ_BATCHES_H */
