/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The base "fair", a part of bp-iosched.c.
 *
 * After CFQ of Linux 2.6, to which the paper adds the preference (section 2.4):
 * divide the time of the drive between processes.
 *
 *  1. Each process has a queue for its synchronous requests (reads, direct and
 *     synced writes). All others (writeback) are in one queue for each I/O
 *     priority class and level.
 *  2. Queues that have requests are served round-robin, each for a slice of
 *     time: slice_sync_ms or slice_async_ms at priority level 4, and a fifth of
 *     that more or less for each level above or below.
 *  3. Within a slice, requests are ordered as in bp/order.h.
 *  4. If the queue of a process becomes empty, its slice continues while the
 *     process is waited for. A process that has a request in the drive is not
 *     waited for: if the drive takes more requests, the next slice begins. With
 *     depth=1 a slice belongs to one process alone. (Not in the paper, whose
 *     CFQ does not anticipate.)
 *  5. A request that is dispatched out of turn, because its deadline has
 *     passed, neither ends the slice under way nor costs its process the next
 *     one: the queue keeps its place in the ring even if it is empty now.
 *     On its turn the process is waited for as in 4. (Not in the
 *     paper.)
 *
 * Example (depth=1): processes A and B have slices of 100 ms. A sends each
 * request when the last has completed, B keeps 32 queued. Each has the drive
 * for half of the time. Without rule 4, A would have it for one request in each
 * round.
 */
#ifndef _BP_FAIR_H
#define _BP_FAIR_H

#include "bp/data.h"
#include "bp/waiting.h"

/* A priority level more or less is this part of a slice. */
#define BP_LEVEL_PART	5

static unsigned int bp_level(struct request *rq)
{
	unsigned short ioprio = req_get_ioprio(rq);

	if (IOPRIO_PRIO_CLASS(ioprio) == IOPRIO_CLASS_NONE)
		return IOPRIO_BE_NORM;
	return ioprio % IOPRIO_NR_LEVELS;
}

/* Rule 1: the queue of a request. */
static struct bp_queue *bp_fair_queue(struct bp_data *bd, struct request *rq)
{
	struct bp_process *process = bp_process_of(rq);

	return process ? &process->queue :
			 &bd->async[iosched_rq_tier(rq)][bp_level(rq)];
}

/*
 * The tree in which a bio of the current task most probably finds a request to
 * be merged with.
 */
static struct rb_root *bp_fair_tree_for(struct bp_data *bd, unsigned int tier,
					unsigned int dir)
{
	struct bp_process *process;

	process = bp_process_find(&bd->processes, bp_key(), tier);
	if (process && (dir == READ ||
			!RB_EMPTY_ROOT(&process->queue.sort[dir])))
		return &process->queue.sort[dir];
	return &bd->async[tier][IOPRIO_BE_NORM].sort[dir];
}

/* @rq is placed: its queue joins the ring. */
static void bp_fair_join(struct bp_data *bd, struct request *rq)
{
	struct bp_queue *queue = bp_fair_queue(bd, rq);

	queue->level = bp_level(rq);
	if (list_empty(&queue->ring))
		list_add_tail(&queue->ring, &bd->ring[iosched_rq_tier(rq)]);
}

/*
 * @rq is taken out of its queue. Rule 5: an empty queue leaves the ring only while it
 * has the slice.
 */
static void bp_fair_leave(struct bp_data *bd, struct request *rq)
{
	struct bp_queue *queue = bp_fair_queue(bd, rq);

	if (bp_queue_empty(queue) && queue == bd->active[iosched_rq_tier(rq)])
		list_del_init(&queue->ring);
}

/* Empty the rings. No request is placed. */
static void bp_fair_leave_all(struct bp_data *bd)
{
	struct bp_queue *queue, *next;
	unsigned int tier;

	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		list_for_each_entry_safe(queue, next, &bd->ring[tier], ring)
			list_del_init(&queue->ring);
	memset(bd->active, 0, sizeof(bd->active));
}

/* Rule 2: length of a slice, in jiffies. */
static unsigned long bp_slice(struct bp_data *bd, struct bp_queue *queue)
{
	unsigned int ms = queue->process ? bd->slice_sync_ms :
					   bd->slice_async_ms;
	unsigned int parts = BP_LEVEL_PART + IOPRIO_BE_NORM - queue->level;

	return msecs_to_jiffies(DIV_ROUND_UP(ms * parts, BP_LEVEL_PART));
}

/* Return what is worth waiting for: a process in its slice, wherever it reads next. */
static struct bp_limits bp_fair_limits(struct bp_data *bd)
{
	return (struct bp_limits) { .wait = bd->antic_us };
}

/* Rule 4: return true if @queue has requests, or its process is waited for. */
static bool bp_keep_slice(struct bp_data *bd, struct bp_queue *queue)
{
	struct bp_limits limits = bp_fair_limits(bd);

	return !bp_queue_empty(queue) ||
	       (queue->process && bp_wait(bd, queue->process, &limits));
}

/* Rule 2: begin the slice of the next queue in the ring. @last had the one before. */
static struct bp_queue *bp_next_slice(struct bp_data *bd, unsigned int tier,
				      struct bp_queue *last)
{
	struct bp_queue *queue;

	if (last && bp_queue_empty(last))
		list_del_init(&last->ring);
	else if (last)
		list_move_tail(&last->ring, &bd->ring[tier]);
	bp_stop_waiting(bd, BP_BROKEN);
	queue = list_first_entry(&bd->ring[tier], struct bp_queue, ring);
	queue->slice_end = jiffies + bp_slice(bd, queue);
	queue->slices++;
	bd->active[tier] = queue;
	return queue;
}

/*
 * Rules 2 and 4: the queue of a tier that is served now, or NULL to wait for its
 * process. The tier has requests, so its ring is not empty.
 */
static struct bp_queue *bp_fair_turn(struct bp_data *bd, unsigned int tier)
{
	struct bp_queue *queue = bd->active[tier];

	/* It was idle, and its struct became that of another tier's process. */
	if (queue && queue->process && queue->process->tier != tier)
		queue = NULL;
	if (!queue || time_after_eq(jiffies, queue->slice_end))
		queue = bp_next_slice(bd, tier, queue);
	while (!bp_keep_slice(bd, queue))
		queue = bp_next_slice(bd, tier, queue);
	return bp_queue_empty(queue) ? NULL : queue;
}

/* Rule 4: the process that is waited for came back. Others do not end the wait. */
static void bp_fair_meet(struct bp_data *bd, struct bp_process *process,
			 struct request *rq)
{
	if (bd->antic.awaited == &process->think)
		bp_stop_waiting(bd, BP_HIT);
}

#endif /* _BP_FAIR_H */
