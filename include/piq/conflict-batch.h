/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Conflict-free batches: a queue of entries, each of which needs a set of
 * parallel units (its vector), kept in batches in which no two entries need the
 * same unit. After "Exploiting Parallelism for Access Conflict Minimization in
 * Flash-based Solid State Drives", section IV.B.
 *
 * An entry joins the first batch that never had one of its units, or opens a new
 * batch at the tail. A batch's vector keeps the units of dispatched entries: a
 * later entry for the same unit joins a later batch. So each batch ends, and at
 * each unit the batches are served in order.
 *
 * Example: vectors 0011, 0110, 1100 arrive. The first opens batch 1, the second
 * shares unit 1 with it and opens batch 2, the third joins batch 1.
 *
 * Cost: placing an entry compares it with each batch, not with each entry. A batch
 * that has no entry to dispatch costs one comparison of bitmaps.
 *
 * cb_queue_init() gets all memory. The caller locks.
 */
#ifndef _PIQ_CONFLICT_BATCH_H
#define _PIQ_CONFLICT_BATCH_H

#include <linux/list.h>
#include <linux/types.h>

#include "iosched-compat.h"
#include "location-vector.h"

/**
 * struct cb_batch - entries that share no unit
 * @list: in the queue's batches, in order of their creation
 * @free: the next one that is not in use
 * @entries: those that wait
 * @number: counts the queue's batches
 * @size: entries that wait or were dispatched
 * @gone: entries that were dispatched
 * @since: arrival of the entry that opened the batch, in ns
 * @prioritised: for the caller
 * @vectors: bitmaps: units of all entries, then units of those that wait
 */
struct cb_batch {
	union {
		struct list_head list;
		struct cb_batch *free;
	};
	struct list_head entries;
	unsigned int number;
	unsigned int size;
	unsigned int gone;
	u64 since;
	bool prioritised;
	unsigned long vectors[];
};

/**
 * struct cb_entry - something that needs units
 * @list: in the batch's entries
 * @free: the next one that is not in use
 * @batch: the batch that it is in
 * @item: for the caller
 * @since: arrival, in ns; the caller sets it before cb_place()
 * @vector: bitmap of its units, not empty; the caller sets it before cb_place(),
 *	then only cb_resize() changes it
 */
struct cb_entry {
	union {
		struct list_head list;
		struct cb_entry *free;
	};
	struct cb_batch *batch;
	void *item;
	u64 since;
	unsigned long vector[];
};

/**
 * struct cb_queue - batches in order
 * @units: bits of a vector
 * @nr: entries that wait
 * @opened: batches opened so far
 * @batches: in order of creation
 * @free_batches: not in use
 * @free_entries: not in use
 */
struct cb_queue {
	unsigned int units;
	unsigned int nr;
	unsigned int opened;
	struct list_head batches;
	struct cb_batch *free_batches;
	struct cb_entry *free_entries;
};

static inline void cb_free_batch(struct cb_queue *queue, struct cb_batch *batch)
{
	batch->free = queue->free_batches;
	queue->free_batches = batch;
}

static inline void cb_free_entry(struct cb_queue *queue, struct cb_entry *entry)
{
	entry->free = queue->free_entries;
	queue->free_entries = entry;
}

static inline size_t cb_entry_size(unsigned int units)
{
	return struct_size_t(struct cb_entry, vector, BITS_TO_LONGS(units));
}

static inline size_t cb_batch_size(unsigned int units)
{
	return struct_size_t(struct cb_batch, vectors, 2 * BITS_TO_LONGS(units));
}

/* Size of the memory for a queue of at most @entries, in bytes. */
static inline size_t cb_queue_bytes(unsigned int units, unsigned int entries)
{
	return entries * (cb_entry_size(units) + cb_batch_size(units));
}

/**
 * cb_queue_init() - make an empty queue
 * @queue: queue to set up
 * @units: bits of a vector
 * @entries: most entries
 * @memory: cb_queue_bytes() of memory
 */
static inline void cb_queue_init(struct cb_queue *queue, unsigned int units,
				 unsigned int entries, void *memory)
{
	queue->units = units;
	queue->nr = 0;
	queue->opened = 0;
	INIT_LIST_HEAD(&queue->batches);
	queue->free_batches = NULL;
	queue->free_entries = NULL;
	for (; entries; entries--) {
		struct cb_batch *batch = memory;
		struct cb_entry *entry = memory + cb_batch_size(units);

		cb_free_batch(queue, batch);
		cb_free_entry(queue, entry);
		memory = (void *)entry + cb_entry_size(units);
	}
}

/* Units of the entries of a batch that wait. */
static inline unsigned long *cb_waiting(const struct cb_queue *queue,
					struct cb_batch *batch)
{
	return batch->vectors + BITS_TO_LONGS(queue->units);
}

/* The batch that was opened first, or NULL. */
static inline struct cb_batch *cb_first(struct cb_queue *queue)
{
	return list_first_entry_or_null(&queue->batches, struct cb_batch, list);
}

static inline bool cb_full(struct cb_queue *queue)
{
	return !queue->free_entries;
}

/* Get an entry for cb_place(); the queue must not be full. */
static inline struct cb_entry *cb_get(struct cb_queue *queue)
{
	struct cb_entry *entry = queue->free_entries;

	queue->free_entries = entry->free;
	return entry;
}

/* Number of a new batch, or of a batch of one request that needs no struct. */
static inline unsigned int cb_next_number(struct cb_queue *queue)
{
	return ++queue->opened;
}

static inline struct cb_batch *cb_open(struct cb_queue *queue, u64 since)
{
	struct cb_batch *batch = queue->free_batches;

	queue->free_batches = batch->free;
	INIT_LIST_HEAD(&batch->entries);
	batch->number = cb_next_number(queue);
	batch->size = 0;
	batch->gone = 0;
	batch->since = since;
	batch->prioritised = false;
	lv_zero(batch->vectors, queue->units);
	lv_zero(cb_waiting(queue, batch), queue->units);
	list_add_tail(&batch->list, &queue->batches);
	return batch;
}

static inline void cb_join(struct cb_queue *queue, struct cb_batch *batch,
			   struct cb_entry *entry)
{
	unsigned long *waiting = cb_waiting(queue, batch);

	lv_or(batch->vectors, entry->vector, queue->units);
	lv_or(waiting, entry->vector, queue->units);
}

static inline void cb_leave(struct cb_queue *queue, struct cb_batch *batch,
			    struct cb_entry *entry)
{
	unsigned long *waiting = cb_waiting(queue, batch);

	lv_andnot(batch->vectors, entry->vector, queue->units);
	lv_andnot(waiting, entry->vector, queue->units);
}

/**
 * cb_place() - add an entry to the first batch without a conflict
 * @queue: queue
 * @entry: from cb_get(), its vector and arrival set
 */
static inline void cb_place(struct cb_queue *queue, struct cb_entry *entry)
{
	struct cb_batch *batch;

	list_for_each_entry(batch, &queue->batches, list)
		if (!lv_meet(batch->vectors, entry->vector, queue->units))
			break;
	if (list_entry_is_head(batch, &queue->batches, list))
		batch = cb_open(queue, entry->since);
	cb_join(queue, batch, entry);
	entry->batch = batch;
	list_add_tail(&entry->list, &batch->entries);
	batch->size++;
	queue->nr++;
}

/* End a batch in which no entry waits. Return its size, or 0 if it continues. */
static inline unsigned int cb_end_if_empty(struct cb_queue *queue,
					   struct cb_batch *batch)
{
	if (!list_empty(&batch->entries))
		return 0;
	list_del(&batch->list);
	cb_free_batch(queue, batch);
	return batch->size;
}

/*
 * Take an entry out of the list of its batch, which may end. Return the size of the
 * batch if it has ended, or 0.
 */
static inline unsigned int cb_unlist(struct cb_queue *queue,
				     struct cb_entry *entry)
{
	list_del(&entry->list);
	queue->nr--;
	return cb_end_if_empty(queue, entry->batch);
}

/**
 * cb_take() - take out an entry that is dispatched
 * @queue: queue
 * @entry: to be taken out; its vector stays valid until the next cb_get()
 *
 * Return: the size of the batch if it has ended with this entry, otherwise 0.
 */
static inline unsigned int cb_take(struct cb_queue *queue,
				   struct cb_entry *entry)
{
	struct cb_batch *batch = entry->batch;
	unsigned long *waiting = cb_waiting(queue, batch);
	unsigned int size;

	lv_andnot(waiting, entry->vector, queue->units);
	batch->gone++;
	size = cb_unlist(queue, entry);
	cb_free_entry(queue, entry);
	return size;
}

/**
 * cb_drop() - take out an entry as if it had never been placed
 * @queue: queue
 * @entry: to be taken out
 *
 * Return: the size of the batch if it has ended with this entry, otherwise 0.
 */
static inline unsigned int cb_drop(struct cb_queue *queue,
				   struct cb_entry *entry)
{
	struct cb_batch *batch = entry->batch;
	unsigned int size;

	cb_leave(queue, batch, entry);
	batch->size--;
	size = cb_unlist(queue, entry);
	cb_free_entry(queue, entry);
	return size;
}

/**
 * cb_resize() - give a placed entry more units
 * @queue: queue
 * @entry: entry
 * @vector: all units that it needs now, those of before included
 *
 * The entry stays in its batch if that has no conflict; otherwise it is placed
 * anew.
 *
 * Return: the size of its former batch if that has ended, otherwise 0.
 */
static inline unsigned int cb_resize(struct cb_queue *queue,
				     struct cb_entry *entry,
				     const unsigned long *vector)
{
	struct cb_batch *batch = entry->batch;
	unsigned int size;

	if (lv_within(vector, entry->vector, queue->units))
		return 0;
	cb_leave(queue, batch, entry);
	lv_copy(entry->vector, vector, queue->units);
	if (!lv_meet(batch->vectors, vector, queue->units)) {
		cb_join(queue, batch, entry);
		return 0;
	}
	batch->size--;
	size = cb_unlist(queue, entry);
	cb_place(queue, entry);
	return size;
}

/* The first entry of a batch that needs none of the @taken units, or NULL. */
static inline struct cb_entry *cb_find_in(struct cb_queue *queue,
					  struct cb_batch *batch,
					  const unsigned long *taken)
{
	struct cb_entry *entry;

	if (lv_within(cb_waiting(queue, batch), taken, queue->units))
		return NULL;
	list_for_each_entry(entry, &batch->entries, list)
		if (!lv_meet(entry->vector, taken, queue->units))
			return entry;
	return NULL;
}

/* Add the units that a batch waits for to @taken, so that later batches get none. */
static inline void cb_claim(struct cb_queue *queue, struct cb_batch *batch,
			    unsigned long *taken)
{
	lv_or(taken, cb_waiting(queue, batch), queue->units);
}

/**
 * cb_find() - find the entry to dispatch next
 * @queue: queue
 * @taken: units that are not free; units that batches claim are added
 * @before: batches opened before this time, in ns, claim units
 *
 * An entry that needs many units might otherwise wait for ever for all of them to
 * be free at once: an old batch claims the units that its entries wait for.
 *
 * Return: an entry of the first batch that has one which needs no taken unit, or
 * NULL.
 */
static inline struct cb_entry *cb_find(struct cb_queue *queue,
				       unsigned long *taken,
				       u64 before)
{
	struct cb_batch *batch;

	list_for_each_entry(batch, &queue->batches, list) {
		struct cb_entry *entry = cb_find_in(queue, batch, taken);

		if (entry)
			return entry;
		if (batch->since < before)
			cb_claim(queue, batch, taken);
	}
	return NULL;
}

/* Return true if an entry in the queue waits for a unit of @vector. */
static inline bool cb_conflicts(struct cb_queue *queue,
				const unsigned long *vector)
{
	struct cb_batch *batch;

	list_for_each_entry(batch, &queue->batches, list)
		if (lv_meet(cb_waiting(queue, batch), vector, queue->units))
			return true;
	return false;
}

#endif /* _PIQ_CONFLICT_BATCH_H */
