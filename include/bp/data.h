/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What BP knows of a device.
 */
#ifndef _BP_DATA_H
#define _BP_DATA_H

#include <linux/ktime.h>
#include <linux/sched.h>

#include "bp/open-blocks.h"
#include "bp/preference.h"
#include "bp/process.h"
#include "bp/queue.h"
#include "bp/think-time.h"
#include "iosched.h"

enum {
	BP_ANTICIPATORY,
	BP_FAIR,
};

/**
 * struct bp_data - the scheduler of a device
 * @io: the core's part, first
 *
 * Run-time data, under io.lock unless it says otherwise:
 * @shared: queue of each tier (base anticipatory)
 * @async: queues of requests without a process (base fair)
 * @ring: queues that are served in turn (base fair)
 * @active: queue that has the slice (base fair)
 * @processes: the processes
 * @newcomers: what is known of processes seen for the first time
 * @in_front: writes in front of the last one, for bp_prefer(); with @behind too
 *	large for the stack
 * @behind: writes behind it
 * @open: blocks that are open
 * @write_end: sector behind the last write
 * @antic: the wait under way
 * @timer: ends it
 * @timed_out: the timer has expired. Any context.
 * @thinker: by direction: the process whose request completed last. Any context.
 * @cases: number of writes chosen by each case
 * @in_open: number of writes chosen because they are in another open block
 * @avoided: number of writes that stay in the open blocks where a sweep leaves
 */
struct bp_data {
	struct iosched io;

	struct bp_queue shared[IOSCHED_TIERS];
	struct bp_queue async[IOSCHED_TIERS][IOPRIO_NR_LEVELS];
	struct list_head ring[IOSCHED_TIERS];
	struct bp_queue *active[IOSCHED_TIERS];
	struct bp_processes processes;
	struct bp_newcomers newcomers;
	struct bp_side in_front;
	struct bp_side behind;
	struct bp_open open;
	sector_t write_end;
	struct bp_antic antic;
	struct hrtimer timer;
	bool timed_out;
	struct bp_process *thinker[IOSCHED_DIRS] ____cacheline_aligned_in_smp;
	unsigned int cases[BP_CASES] ____cacheline_aligned_in_smp;
	unsigned int in_open;
	unsigned int avoided;

	/* private: settings, see BP_TUNABLES */
	unsigned int base;
	unsigned int preference;
	unsigned int block_size_kb;
	unsigned int lookahead;
	unsigned int open_blocks;
	unsigned int antic_us;
	unsigned int antic_near_kb;
	unsigned int read_batch_ms;
	unsigned int write_batch_ms;
	unsigned int slice_sync_ms;
	unsigned int slice_async_ms;
};

IOSCHED_OWN_LINES(struct bp_data, offsetof(struct bp_data, thinker),
		  offsetof(struct bp_data, cases));

static struct bp_data *bp_of(struct iosched *io)
{
	return container_of(io, struct bp_data, io);
}

/* Process of a synchronous request, or NULL. */
static struct bp_process *bp_process_of(struct request *rq)
{
	return rq->elv.priv[0];
}

/* What tells the process that inserts a request from others. */
static void *bp_key(void)
{
	return current->io_context ? (void *)current->io_context : current;
}

#endif /* _BP_DATA_H */
