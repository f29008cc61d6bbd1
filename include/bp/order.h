/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The order of the requests in a queue, for both bases. A part of bp-iosched.c.
 *
 *  1. Reads and writes take turns. A batch of one direction ends when none of
 *     its requests is left, or after read_batch_ms or write_batch_ms if
 *     requests of the other direction are queued.
 *  2. Reads are dispatched by ascending sector, from the end of the queue's
 *     last read. Behind the highest sector the sweep starts again at the
 *     lowest.
 *  3. Writes are chosen by the first two cases of bp/preference.h (section 4.1),
 *     with lookahead=2 or more by all four, as in the paper, or by a sweep of
 *     their own with preference=0.
 *  4. If no case applies, the sweep of the writes decides. With lookahead=0,
 *     the block in which most writes are queued decides instead. To find that
 *     block, all queued writes are visited under the lock. (Not in the paper.)
 *  5. A drive that keeps several blocks open loses nothing when writes
 *     alternate between them. With open_blocks=n, the n blocks that were opened
 *     last count as open, and a write that leaves them all is dispatched only
 *     if no queued write is in one of them. (Not in the paper.)
 */
#ifndef _BP_ORDER_H
#define _BP_ORDER_H

#include "bp/data.h"

static u32 bp_block_sectors(struct bp_data *bd)
{
	return bd->block_size_kb * IOSCHED_KB_SECTORS;
}

/* Block of a sector. */
static u64 bp_block_at(struct bp_data *bd, u64 sector)
{
	return bp_block(sector, bp_block_sectors(bd));
}

/* Block of the last write, U64_MAX if there was none. */
static u64 bp_last_block(struct bp_data *bd)
{
	return bd->write_end ? bp_block_at(bd, bd->write_end - 1) : U64_MAX;
}

/* Return true if a write that begins where @rq does leaves the open blocks. */
static bool bp_crosses(struct bp_data *bd, struct request *rq)
{
	return !bp_is_open(&bd->open, bd->open_blocks,
			   bp_block_at(bd, blk_rq_pos(rq)));
}

/* Return true if @rq begins in the block in which its process wrote last. */
static bool bp_stays_in_block(struct bp_data *bd, struct bp_think *think,
			      struct request *rq)
{
	return think->write_end && bp_block_at(bd, blk_rq_pos(rq)) ==
				   bp_block_at(bd, think->write_end - 1);
}

/* Rule 2: the next request of a sweep. */
static struct request *bp_ascending(struct bp_queue *queue, unsigned int dir)
{
	return iosched_ascending(&queue->sort[dir], queue->pos[dir]);
}

/* Rule 5: a queued write in an open block, or NULL. */
static struct request *bp_in_open_block(struct bp_data *bd,
					struct rb_root *root)
{
	u32 block_sectors = bp_block_sectors(bd);
	unsigned int i;

	for (i = 0; i < bd->open_blocks; i++) {
		u64 block = bp_opened(&bd->open, i);
		struct request *rq;

		if (block == U64_MAX)
			break;
		rq = iosched_from(root, block * block_sectors);
		if (rq && bp_block(blk_rq_pos(rq), block_sectors) == block)
			return rq;
	}
	return NULL;
}

/*
 * Rule 4, lookahead=0: the first write of the block in which most are queued.
 * The search begins at @front and wraps around, so that of blocks with equally
 * many the next one in ascending order is chosen.
 */
static struct request *bp_fullest(struct bp_data *bd, struct rb_root *root,
				  struct request *front)
{
	struct request *begin = front ? front : iosched_from(root, 0);
	struct request *rq = begin, *first = begin, *best = begin;
	unsigned int nr = 0, most = 0;

	do {
		if (bp_block_at(bd, blk_rq_pos(rq)) !=
		    bp_block_at(bd, blk_rq_pos(first))) {
			first = rq;
			nr = 0;
		}
		if (++nr > most) {
			most = nr;
			best = first;
		}
		rq = iosched_next(rq);
		if (!rq)
			rq = iosched_from(root, 0);
	} while (rq != begin);
	return best;
}

/*
 * Apply the cases to @front and the writes in front of it, and to @back and
 * those behind it; either may be NULL.
 */
static enum bp_case bp_case_of(struct bp_data *bd, struct request *front,
			       struct request *back, bool *go_front)
{
	struct bp_side *in_front = &bd->in_front, *behind = &bd->behind;
	unsigned int look = max(bd->lookahead, 1U);

	in_front->nr = 0;
	behind->nr = 0;
	for (; front && in_front->nr < look; front = iosched_next(front))
		bp_side_add(in_front, blk_rq_pos(front), blk_rq_sectors(front));
	for (; back && behind->nr < look; back = iosched_prev(back))
		bp_side_add(behind, blk_rq_pos(back), blk_rq_sectors(back));
	return bp_prefer(in_front, behind, bp_last_block(bd),
			 bp_block_sectors(bd), go_front);
}

/* Rules 3 and 4: the write that the cases choose, and *@which of them. */
static struct request *bp_by_cases(struct bp_data *bd, struct bp_queue *queue,
				   enum bp_case *which)
{
	struct rb_root *root = &queue->sort[WRITE];
	struct request *front = iosched_from(root, bd->write_end), *back;
	bool go_front;

	back = front ? iosched_prev(front) :
		       rb_entry(rb_last(root), struct request, rb_node);
	*which = bp_case_of(bd, front, back, &go_front);
	if (*which == BP_NO_CASE && !bd->lookahead)
		return bp_fullest(bd, root, front);
	if (*which == BP_NO_CASE)
		return bp_ascending(queue, WRITE);
	return go_front ? front : back;
}

/* Rule 5: return true if another open block is better than what @which chose. */
static bool bp_wants_open(struct bp_data *bd, enum bp_case which)
{
	return which > BP_ONE_IN && bd->open_blocks > 1;
}

/* Count why a write is the next one. */
static void bp_count_choice(struct bp_data *bd, enum bp_case which,
			    bool in_open)
{
	if (in_open)
		bd->in_open++;
	else
		bd->cases[which]++;
}

/* Rules 3 to 5: the next write. */
static struct request *bp_preferred(struct bp_data *bd, struct bp_queue *queue)
{
	struct request *rq, *open = NULL;
	enum bp_case which;

	rq = bp_by_cases(bd, queue, &which);
	if (bp_wants_open(bd, which))
		open = bp_in_open_block(bd, &queue->sort[WRITE]);
	bp_count_choice(bd, which, open);
	if (open)
		rq = open;
	if (!bp_crosses(bd, rq) && bp_crosses(bd, bp_ascending(queue, WRITE)))
		bd->avoided++;
	return rq;
}

/* Count @rq, the only write, whose case follows from where it begins. */
static void bp_count_only(struct bp_data *bd, struct request *rq)
{
	enum bp_case which = bp_block_at(bd, blk_rq_pos(rq)) == bp_last_block(bd) ?
			     BP_ONE_IN : BP_NO_CASE;

	bp_count_choice(bd, which, bp_wants_open(bd, which) &&
			!bp_crosses(bd, rq));
}

/* Rule 1: direction of the next request of a queue that has some. */
static unsigned int bp_direction(struct bp_queue *queue)
{
	unsigned int other = !queue->dir;

	if (RB_EMPTY_ROOT(&queue->sort[other]))
		return queue->dir;
	if (RB_EMPTY_ROOT(&queue->sort[queue->dir]) ||
	    time_after_eq(jiffies, queue->batch_end))
		return other;
	return queue->dir;
}

/* Rule 1: @rq is the next of @queue: continue its sweep, or begin a batch. */
static void bp_advance(struct bp_data *bd, struct bp_queue *queue,
		       struct request *rq)
{
	unsigned int dir = rq_data_dir(rq);
	unsigned int ms = dir == READ ? bd->read_batch_ms : bd->write_batch_ms;

	if (dir != queue->dir) {
		queue->dir = dir;
		queue->batch_end = jiffies + msecs_to_jiffies(ms);
	}
	queue->pos[dir] = iosched_rq_end(rq);
}

/* The next request of a direction of a queue that has some. */
static struct request *bp_next(struct bp_data *bd, struct bp_queue *queue,
			       unsigned int dir)
{
	return dir == WRITE && bd->preference ? bp_preferred(bd, queue) :
						bp_ascending(queue, dir);
}

/* The next request of a queue that has some. */
static struct request *bp_take(struct bp_data *bd, struct bp_queue *queue)
{
	struct request *rq = bp_next(bd, queue, bp_direction(queue));

	bp_advance(bd, queue, rq);
	return rq;
}

/* bp_take() if the only request of the queue is @rq, which is in no tree. */
static void bp_take_lone(struct bp_data *bd, struct bp_queue *queue,
			 struct request *rq)
{
	if (rq_data_dir(rq) == WRITE && bd->preference)
		bp_count_only(bd, rq);
	bp_advance(bd, queue, rq);
}

/* @rq is dispatched, as the next of its queue or because it has expired. */
static void bp_record_write(struct bp_data *bd, struct request *rq)
{
	if (req_op(rq) != REQ_OP_WRITE)
		return;
	bd->write_end = iosched_rq_end(rq);
	bp_written(&bd->open, bd->open_blocks, bp_block_at(bd, blk_rq_pos(rq)),
		   bp_block_at(bd, bd->write_end - 1));
}

#endif /* _BP_ORDER_H */
