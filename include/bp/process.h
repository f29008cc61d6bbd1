/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The processes that send requests to a device, told apart by a key.
 *
 * There is a fixed number of structs. A process keeps its own until another
 * one needs it and it has no request left; the one unused for longest goes
 * first. So there is nothing to do when a process exits, nothing to allocate
 * when one appears, and a struct that a request points to stays valid as long
 * as the table. What may point to an idle one (a slice, a wait) must bear that
 * it becomes another process's. If the BP_LOOK structs that were unused for
 * longest are all busy, a newcomer gets none.
 *
 * Used by the BP elevator, under its lock; in_flight is atomic.
 */
#ifndef _BP_PROCESS_H
#define _BP_PROCESS_H

#include <linux/hash.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/rbtree.h>
#include <linux/sched/mm.h>
#include <linux/string.h>
#include "bp/think-time.h"

/*
 * More than have requests queued at a time with the usual number of tags (256),
 * few enough for some 130 kB.
 */
#define BP_PROCESSES	512
#define BP_HASH_BITS	8
/*
 * Structs examined for a newcomer's request, as it is done under the lock. Busy
 * ones move to the end of the line, so idle ones are in front before long.
 */
#define BP_LOOK		8

/**
 * struct bp_queue - requests that are ordered together
 * @sort: by sector, reads and writes apart
 * @pos: where the last request of each direction ended
 * @dir: direction of the batch
 * @batch_end: in jiffies
 * @process: owner, or NULL
 * @ring: among the queues that are served in turn (base fair)
 * @slice_end: in jiffies (base fair)
 * @slices: number of slices so far (base fair)
 * @level: I/O priority level of the last request
 */
struct bp_queue {
	struct rb_root sort[2];
	u64 pos[2];
	unsigned int dir;
	unsigned long batch_end;
	struct bp_process *process;
	struct list_head ring;
	unsigned long slice_end;
	unsigned int slices;
	unsigned int level;
};

/**
 * struct bp_process - a process, as far as its synchronous requests show it
 * @queue: its requests (base fair)
 * @hash: by key and tier, once it is used
 * @lru: the longest unused first
 * @key: what tells it from others
 * @tier: I/O priority class; a process has one of these for each
 * @pid: of the task that was seen last
 * @queued: requests in the scheduler
 * @in_flight: requests in the device
 * @think: what is known of it
 */
struct bp_process {
	struct bp_queue queue;
	struct hlist_node hash;
	struct list_head lru;
	void *key;
	unsigned int tier;
	pid_t pid;
	unsigned int queued;
	atomic_t in_flight;
	struct bp_think think;
};

struct bp_processes {
	struct bp_process *all;
	struct hlist_head hash[1 << BP_HASH_BITS];
	struct list_head lru;
};

static inline bool bp_queue_empty(struct bp_queue *queue)
{
	return RB_EMPTY_ROOT(&queue->sort[0]) && RB_EMPTY_ROOT(&queue->sort[1]);
}

static inline void bp_queue_init(struct bp_queue *queue, unsigned int level,
				 struct bp_process *process)
{
	INIT_LIST_HEAD(&queue->ring);
	queue->batch_end = jiffies;
	queue->level = level;
	queue->process = process;
}

/* Sleeps, but never waits for I/O. */
static inline int bp_processes_init(struct bp_processes *table,
				    unsigned int level)
{
	unsigned int i, flags = memalloc_noio_save();

	table->all = kvcalloc(BP_PROCESSES, sizeof(*table->all), GFP_KERNEL);
	memalloc_noio_restore(flags);
	if (!table->all)
		return -ENOMEM;
	for (i = 0; i < 1 << BP_HASH_BITS; i++)
		INIT_HLIST_HEAD(&table->hash[i]);
	INIT_LIST_HEAD(&table->lru);
	for (i = 0; i < BP_PROCESSES; i++) {
		bp_queue_init(&table->all[i].queue, level, &table->all[i]);
		list_add_tail(&table->all[i].lru, &table->lru);
	}
	return 0;
}

static inline void bp_processes_exit(struct bp_processes *table)
{
	kvfree(table->all);
}

static inline bool bp_process_idle(struct bp_process *process)
{
	return !process->queued && !atomic_read(&process->in_flight);
}

/* A process that has a struct, or NULL. */
static inline struct bp_process *bp_process_find(struct bp_processes *table,
						 void *key, unsigned int tier)
{
	struct bp_process *process;

	hlist_for_each_entry(process, &table->hash[hash_ptr(key, BP_HASH_BITS)],
			     hash)
		if (process->key == key && process->tier == tier)
			return process;
	return NULL;
}

/*
 * Give a new process the struct that was unused for longest, if it is one of the
 * first BP_LOOK. Return NULL if these are all busy: the next call examines others.
 */
static inline struct bp_process *bp_process_new(struct bp_processes *table,
						void *key, unsigned int tier)
{
	struct bp_process *process;
	unsigned int looked;

	for (looked = 0; looked < BP_LOOK; looked++) {
		process = list_first_entry(&table->lru, struct bp_process, lru);
		if (bp_process_idle(process))
			break;
		list_move_tail(&process->lru, &table->lru);
	}
	if (looked == BP_LOOK)
		return NULL;
	hlist_del_init(&process->hash);
	list_del_init(&process->queue.ring);
	memset(&process->think, 0, sizeof(process->think));
	process->queue.slices = 0;
	process->key = key;
	process->tier = tier;
	hlist_add_head(&process->hash,
		       &table->hash[hash_ptr(key, BP_HASH_BITS)]);
	return process;
}

/**
 * bp_process_get() - the process that a request is from
 * @table: processes
 * @key: what tells it from others
 * @tier: I/O priority class of the request
 *
 * Return: its struct, which is the last to be given to another one; NULL if it
 * has none and bp_process_new() finds none for it.
 */
static inline struct bp_process *bp_process_get(struct bp_processes *table,
						void *key, unsigned int tier)
{
	struct bp_process *process = bp_process_find(table, key, tier);

	if (!process)
		process = bp_process_new(table, key, tier);
	if (!process)
		return NULL;
	list_move_tail(&process->lru, &table->lru);
	return process;
}

#endif /* _BP_PROCESS_H */
