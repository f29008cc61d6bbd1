/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The base "anticipatory", a part of bp-iosched.c.
 *
 * After the scheduler of Linux 2.6 to which the paper adds the preference
 * (section 2.4): do not leave the place of a process that is about to send its
 * next request there.
 *
 *  1. All requests of an I/O priority class are in one queue, ordered as in
 *     bp/order.h.
 *  2. During a batch of reads, writes wait for the process whose read was the
 *     last to complete, if it is expected to send its next read soon.
 *     Otherwise each of its reads would wait for a batch of writes.
 *  3. Reads of other processes do not wait: a drive without heads loses nothing
 *     by serving them. With antic_near_kb, only those do not wait that are
 *     that near to the last read of the process, as on a disk, and a process
 *     is waited for only if its reads are that near to each other. (Not in
 *     the paper.)
 *  4. With preference, writes that leave all open blocks wait for the process
 *     whose write was the last to complete, if that write was in an open block
 *     and the process mostly stays in its block. Leaving the block costs more
 *     than the wait. Reads that arrive meanwhile wait for the end of the batch
 *     of writes, so the drive may be idle while reads are queued, for antic_us
 *     at a time. (Not in the paper.)
 *
 * Example (rule 2): a process reads 4 KB at a time and needs 50 us between two
 * reads, and 100 writes are queued. Its reads are dispatched one after another
 * until read_batch_ms is over. Without the wait, each would let the queue begin
 * a batch of writes, of write_batch_ms.
 */
#ifndef _BP_ANTICIPATORY_H
#define _BP_ANTICIPATORY_H

#include "bp/data.h"
#include "bp/order.h"
#include "bp/waiting.h"

/* Rule 1: the queue of a request. */
static struct bp_queue *bp_anticipatory_queue(struct bp_data *bd,
					      struct request *rq)
{
	return &bd->shared[iosched_rq_tier(rq)];
}

static struct rb_root *bp_anticipatory_tree_for(struct bp_data *bd,
						unsigned int tier,
						unsigned int dir)
{
	return &bd->shared[tier].sort[dir];
}

/* Return what is worth waiting for. */
static struct bp_limits bp_anticipatory_limits(struct bp_data *bd)
{
	return (struct bp_limits) {
		.wait = bd->antic_us,
		.near_kb = bd->antic_near_kb,
	};
}

/* Process in @tier, not @own, whose read, or write, was the last to complete, or NULL. */
static struct bp_process *bp_thinker(struct bp_data *bd, unsigned int tier,
				     unsigned int dir, struct bp_process *own)
{
	struct bp_process *process = READ_ONCE(bd->thinker[dir]);

	return process && process != own && process->tier == tier ? process :
								    NULL;
}

/*
 * Rules 2 and 3: the process, other than @own, whose next read the next request
 * waits for, or NULL. @next is that request if it is a read, NULL if it is a write.
 */
static struct bp_process *bp_awaited_reader(struct bp_data *bd,
					    unsigned int tier,
					    struct bp_process *own,
					    struct request *next)
{
	struct bp_process *reader = bp_thinker(bd, tier, READ, own);
	struct bp_queue *queue = &bd->shared[tier];
	struct bp_limits limits = bp_anticipatory_limits(bd);

	if (!reader || queue->dir != READ ||
	    time_after_eq(jiffies, queue->batch_end))
		return NULL;
	if (next && bp_is_near(&reader->think, blk_rq_pos(next), &limits))
		return NULL;
	return reader;
}

/* Rule 4: as above, for writes that leave the open blocks and its next write. */
static struct bp_process *bp_awaited_writer(struct bp_data *bd,
					    unsigned int tier,
					    struct bp_process *own,
					    struct request *next)
{
	struct bp_process *writer = bp_thinker(bd, tier, WRITE, own);

	if (!writer || next || !bd->preference || !bp_stays(&writer->think))
		return NULL;
	return bp_is_open(&bd->open, bd->open_blocks,
			  bp_block_at(bd, writer->think.write_end - 1)) ?
	       writer : NULL;
}

/* The queue of a tier that has requests, or NULL to wait for a process. */
static struct bp_queue *bp_anticipatory_turn(struct bp_data *bd,
					     unsigned int tier)
{
	struct bp_limits limits = bp_anticipatory_limits(bd);
	struct bp_queue *queue = &bd->shared[tier];
	struct bp_process *reader, *writer;
	struct request *next = NULL;

	if (bp_direction(queue) == READ)
		next = bp_ascending(queue, READ);
	reader = bp_awaited_reader(bd, tier, NULL, next);
	if (reader && bp_wait(bd, reader, &limits))
		return NULL;
	writer = bp_awaited_writer(bd, tier, NULL, next);
	if (writer && !bp_in_open_block(bd, &queue->sort[WRITE]) &&
	    bp_wait(bd, writer, &limits))
		return NULL;
	return queue;
}

/*
 * Return true if @rq, the only request, may have to wait for another process.
 * bp_anticipatory_turn() then decides.
 */
static bool bp_anticipatory_may_wait(struct bp_data *bd, struct request *rq)
{
	unsigned int tier = iosched_rq_tier(rq);
	struct bp_process *own = bp_process_of(rq);
	struct request *next = rq_data_dir(rq) == READ ? rq : NULL;
	struct bp_process *awaited;

	/* With antic_near_kb=0 any read is near (rule 3). */
	if (next && !bd->antic_near_kb)
		return false;
	awaited = bp_awaited_reader(bd, tier, own, next);
	if (awaited && bp_process_idle(awaited))
		return true;
	awaited = bp_awaited_writer(bd, tier, own, next);
	return awaited && bp_process_idle(awaited);
}

/* Take @rq, the only request, unless it may have to wait. */
static bool bp_anticipatory_take_fresh(struct bp_data *bd, struct request *rq)
{
	if (bd->antic.awaited || bp_anticipatory_may_wait(bd, rq))
		return false;
	bp_take_lone(bd, bp_anticipatory_queue(bd, rq), rq);
	return true;
}

/*
 * @process inserts @rq: end the wait under way if it is for @process, or if @rq is a
 * read near the awaited one.
 */
static void bp_anticipatory_meet(struct bp_data *bd, struct bp_process *process,
				 struct request *rq)
{
	struct bp_limits limits = bp_anticipatory_limits(bd);
	bool read = rq_data_dir(rq) == READ;
	bool near = bp_is_near(bd->antic.awaited, blk_rq_pos(rq), &limits);

	if (bd->antic.awaited != &process->think) {
		if (read && near)
			bp_stop_waiting(bd, BP_BROKEN);
		return;
	}
	if (!read)
		near = bp_stays_in_block(bd, &process->think, rq);
	bp_stop_waiting(bd, near ? BP_HIT : BP_MISS);
}

#endif /* _BP_ANTICIPATORY_H */
