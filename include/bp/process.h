/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The processes that send requests to a device, told apart by a key.
 *
 * There is a fixed number of structs. A process keeps its struct until another
 * process needs one and it has no request left; the struct unused for longest
 * is taken first, and starts anew. So nothing has to be done when a process
 * exits, nothing is allocated when one appears, and the struct that a request
 * points to stays valid as long as the table. Code that points to an idle
 * process (a slice, a wait) must expect that its struct becomes another
 * process's. If the BP_LOOK structs unused for longest are all busy, a newcomer
 * gets none.
 *
 * Under the scheduler's lock; in_flight is atomic.
 */
#ifndef _BP_PROCESS_H
#define _BP_PROCESS_H

#include <linux/hash.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "bp/queue.h"
#include "bp/think-time.h"
#include "iosched.h"

/*
 * More than can have requests queued with the usual number of scheduler tags
 * (256), few enough for some 94 kB.
 */
#define BP_PROCESSES	512
#define BP_HASH_BITS	8
/*
 * Most structs that are examined for a request, as that is done under the lock.
 * Busy structs move to the end of the list, so later calls examine others.
 */
#define BP_LOOK		8

/**
 * struct bp_process - a process that sends synchronous requests
 * @queue: its requests (base fair)
 * @hash: by key and tier; unhashed until the struct is used
 * @lru: in bp_processes.lru
 * @key: what tells it from others
 * @tier: I/O priority tier; a process has a struct for each that it uses
 * @pid: of the task that inserted its last request
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
	struct list_head lru;	/* the longest unused first */
};

/* Sleeps. */
static inline int bp_processes_init(struct bp_processes *table,
				    unsigned int level)
{
	unsigned int i;

	table->all = iosched_zalloc(array_size(BP_PROCESSES,
					       sizeof(*table->all)));
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

/*
 * Return true if a process has no request. Its think.done is then up to date, but for
 * completions at the same time.
 */
static inline bool bp_process_idle(struct bp_process *process)
{
	/* Pairs with bp_released(). */
	return !process->queued && !atomic_read_acquire(&process->in_flight);
}

/* The struct of a process, or NULL if it has none. */
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
 * Give a new process the idle struct that was unused for longest. Return NULL
 * if the BP_LOOK structs examined are all busy.
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
 * bp_process_get() - find the process that sends a request, or add it
 * @table: processes
 * @key: what tells it from others
 * @tier: I/O priority tier of the request
 *
 * Return: its struct, now the last to be given to another process; NULL if
 * bp_process_new() finds none for it.
 */
static inline struct bp_process *bp_process_get(struct bp_processes *table,
						void *key, unsigned int tier)
{
	struct bp_process *process = bp_process_find(table, key, tier);

	if (!process)
		process = bp_process_new(table, key, tier);
	if (!process)
		return NULL;
	if (!list_is_last(&process->lru, &table->lru))
		list_move_tail(&process->lru, &table->lru);
	return process;
}

#endif /* _BP_PROCESS_H */
