/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A queue of BP: the requests among which the preference chooses. The base decides
 * which requests share a queue, and which queue is next.
 */
#ifndef _BP_QUEUE_H
#define _BP_QUEUE_H

#include <linux/list.h>
#include <linux/rbtree.h>

#include "iosched.h"

/**
 * struct bp_queue - requests that are ordered together
 * @sort: by sector, reads and writes apart
 * @pos: sector behind the last request of each direction
 * @dir: direction of the batch
 * @batch_end: when it ends, in jiffies
 * @process: owner, or NULL
 * @ring: among the queues that are served in turn (base fair)
 * @slice_end: when its slice ends, in jiffies (base fair)
 * @slices: number of slices so far (base fair)
 * @level: I/O priority level of the last request (base fair)
 */
struct bp_queue {
	struct rb_root sort[IOSCHED_DIRS];
	u64 pos[IOSCHED_DIRS];
	unsigned int dir;
	unsigned long batch_end;
	struct bp_process *process;
	struct list_head ring;
	unsigned long slice_end;
	unsigned int slices;
	unsigned int level;
};

static inline bool bp_queue_empty(struct bp_queue *queue)
{
	return RB_EMPTY_ROOT(&queue->sort[READ]) &&
	       RB_EMPTY_ROOT(&queue->sort[WRITE]);
}

static inline void bp_queue_init(struct bp_queue *queue, unsigned int level,
				 struct bp_process *process)
{
	INIT_LIST_HEAD(&queue->ring);
	queue->batch_end = jiffies;
	queue->level = level;
	queue->process = process;
}

#endif /* _BP_QUEUE_H */
