// SPDX-License-Identifier: GPL-2.0
/*
 * BP: block-preferential ordering for SSDs.
 *
 * After "A new I/O scheduler for solid state devices", section 4.
 *
 * Problem: an SSD that maps whole erase blocks keeps few of them open. A write
 * to another block closes one, which means merging it: copying what was not
 * rewritten and erasing, tens of milliseconds. Schedulers made for disks sort
 * by sector and sweep in one direction; they cross block boundaries without
 * need, and know no other distance.
 *
 * Idea: prefer the write in the erase block of the last one, whichever side it
 * lies on; where none is, look a little further, so as to leave for a block in
 * which there is more to do; else sweep. The four cases are in bp/preference.h,
 * where they can be tested alone. A request whose deadline has passed goes before all
 * that: the core sees to it.
 *
 * The preference orders the writes of a queue. Which queue, and whether reads
 * or writes, is up to the base that it stands on:
 *
 * anticipatory: all requests of an I/O priority class are one queue.
 *
 *  1. Reads and writes take turns: a batch of one direction ends when no
 *     request of it is left, or after read_batch_ms or write_batch_ms when
 *     there are others.
 *  2. A batch of reads does not end just because the process that reads is
 *     about to send its next one only now that the last has completed. Writes
 *     wait for it, antic_us after the completion at most, if it is known to be
 *     back that soon. The wait ends early with its next request, with a read
 *     of somebody else, with an expired deadline.
 *  3. The reads of others go at once: a drive without heads loses nothing by
 *     turning to them. With antic_near_kb set, only if they are that near to
 *     the last read, as on a disk; then a process is waited for only if its
 *     reads are that near to each other.
 *  4. With preference, the open block is not left either just because the process
 *     that fills it sends its next write only now: writes elsewhere wait for it
 *     as in 2, if it has mostly stayed in its block so far. Leaving costs more.
 *     Reads that arrive meanwhile have their turn when the batch of writes ends,
 *     so the drive may idle with some queued, for antic_us at a time at most.
 *
 * fair: each process has a queue for its synchronous requests (reads, direct
 * and synced writes); those that nobody waits for (writeback) share one for
 * each priority level.
 *
 *  1. Queues that have requests are served round-robin, each for a slice of
 *     time: slice_sync_ms or slice_async_ms at priority level 4, a fifth of
 *     that more or less for each level above or below.
 *  2. Within a slice, batches as above.
 *  3. The slice of a process is not over because it has no request at the
 *     moment: as above, it is waited for, once its last one has completed. As
 *     long as it has one in the drive and the drive takes more, others go on:
 *     depth=1 gives a slice to a process alone.
 *  4. What goes out of turn, because its deadline has passed, goes alone: it
 *     neither ends the slice of another nor costs its process the next one. Of
 *     a process with one request at a time nothing may be left when its turn
 *     comes; it is waited for as within a slice.
 *
 * Example (block_size_kb=1024, offsets in KB): the last write ended at 1500.
 * 1100, 1600, 2100 and 2200 wait. A sweep takes 1600, 2100, 2200 and comes
 * back for 1100: two crossings. BP takes 1600 and 1100 first, the larger of
 * them before the other (case 1, then 2), then 2100, 2200: one crossing.
 *
 * Beyond the paper, lookahead=0 has the whole queue looked at: where neither
 * neighbour is in the last block, the next one is the block in which most are
 * waiting. That look is under the lock and passes over all queued writes.
 *
 * A drive that keeps several blocks open loses nothing by going from one to
 * another of them. With open_blocks=n the n blocks that were last opened count
 * as open, and before a write leaves them all each is looked into.
 *
 * Processes are told apart by their I/O context, or by the task when it has
 * none, on insertion. They get their struct from a fixed array and keep it
 * until another needs it and they have no request left; then they start anew,
 * and so does one that exits: there is nothing to clean up. As long as no idle
 * one is found, the requests of a newcomer are taken for some that nobody waits
 * for.
 */
#include <linux/ktime.h>
#include <linux/sched.h>

#include "bp/antic.h"
#include "bp/preference.h"
#include "bp/process.h"
#include "compat-hrtimer.h"
#include "iosched-debugfs.h"

#define IOSCHED_NAME "bp"

/* I/O priority levels of a class, and the one of who has not set any. */
#define BP_LEVELS	8
#define BP_LEVEL_NORM	4

enum {
	BP_ANTICIPATORY,
	BP_FAIR,
};

static const char * const bp_bases[] = { "anticipatory", "fair" };

struct bp_data {
	struct iosched io;		/* first: the core's */

	/* run-time data, under io.lock */
	struct bp_queue shared[IOSCHED_TIERS];		/* anticipatory */
	struct bp_queue async[IOSCHED_TIERS][BP_LEVELS];	/* fair */
	struct list_head ring[IOSCHED_TIERS];
	struct bp_queue *active[IOSCHED_TIERS];		/* has its slice */

	struct bp_processes processes;
	struct bp_newcomers newcomers;

	struct bp_side in_front, behind;	/* of bp_prefer(): large for a stack */
	struct bp_open open;
	sector_t write_end;		/* of the last write */

	struct bp_antic antic;
	struct hrtimer timer;
	bool over;			/* the wait's time is; set by the timer */
	struct bp_process *thinker[2];	/* its last read, write is done; any context */

	/* counters, under io.lock */
	unsigned int cases[BP_CASES];
	unsigned int in_open;		/* went to another open block */
	unsigned int avoided;

	/* settings */
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

static struct bp_data *bp_of(struct iosched *io)
{
	return container_of(io, struct bp_data, io);
}

/* Process of a synchronous request, or NULL. */
static struct bp_process *bp_process_of(struct request *rq)
{
	return rq->elv.priv[0];
}

static u32 bp_now(void)
{
	return div_u64(ktime_get_ns(), NSEC_PER_USEC);
}

static struct bp_limits bp_limits_of(struct bp_data *bd)
{
	return (struct bp_limits) {
		.wait = bd->antic_us,
		.near_kb = bd->base == BP_FAIR ? 0 : bd->antic_near_kb,
	};
}

static u32 bp_block_sectors(struct bp_data *bd)
{
	return bd->block_size_kb * 2;
}

/* Does a request begin in the block of what ends at a sector? */
static bool bp_in_block_of(struct bp_data *bd, struct request *rq, u64 end)
{
	u32 block_sectors = bp_block_sectors(bd);

	return end && bp_block(blk_rq_pos(rq), block_sectors) ==
		      bp_block(end - 1, block_sectors);
}

/* What tells the process that inserts a request from others. */
static void *bp_key(void)
{
	return current->io_context ? (void *)current->io_context : current;
}

/*
 * Where requests wait
 */

static unsigned int bp_level(struct request *rq)
{
	unsigned short ioprio = req_get_ioprio(rq);

	if (IOPRIO_PRIO_CLASS(ioprio) == IOPRIO_CLASS_NONE)
		return BP_LEVEL_NORM;
	return ioprio % BP_LEVELS;
}

static struct bp_queue *bp_queue_of(struct bp_data *bd, struct request *rq)
{
	unsigned int tier = iosched_rq_tier(rq);

	if (bd->base == BP_ANTICIPATORY)
		return &bd->shared[tier];
	if (bp_process_of(rq))
		return &bp_process_of(rq)->queue;
	return &bd->async[tier][bp_level(rq)];
}

static struct rb_root *bp_placed(struct request *rq)
{
	struct bp_data *bd = bp_of(iosched_of(rq->q));

	return &bp_queue_of(bd, rq)->sort[rq_data_dir(rq)];
}

/*
 * The only use of this is to find a request to put a bio in front of. Under
 * fair it is looked for where it most probably is.
 */
static struct rb_root *bp_root(struct iosched *io, unsigned int tier,
			       unsigned int dir, sector_t sector)
{
	struct bp_data *bd = bp_of(io);
	struct bp_process *process;

	if (bd->base == BP_ANTICIPATORY)
		return &bd->shared[tier].sort[dir];
	process = bp_process_find(&bd->processes, bp_key(), tier);
	if (process && (dir == READ ||
			!RB_EMPTY_ROOT(&process->queue.sort[dir])))
		return &process->queue.sort[dir];
	return &bd->async[tier][BP_LEVEL_NORM].sort[dir];
}

/* Learn from a synchronous request and see if it was waited for. */
static void bp_observe(struct bp_data *bd, struct bp_process *process,
		       struct request *rq)
{
	struct bp_limits limits = bp_limits_of(bd);
	struct bp_think *think = &process->think, *whom = bd->antic.whom;
	bool read = rq_data_dir(rq) == READ, back = bp_process_idle(process);
	bool near = whom && bp_is_near(whom, blk_rq_pos(rq), &limits);
	bool stays = !read && bp_in_block_of(bd, rq, think->write_end);
	u32 now = bp_now();

	bp_newcomer(&bd->newcomers, think);
	if (back && think->done)
		bp_came_back(think, &bd->newcomers, now, &limits);
	if (read)
		bp_reads(think, blk_rq_pos(rq), blk_rq_sectors(rq), &limits);
	else
		bp_writes(think, blk_rq_pos(rq), blk_rq_sectors(rq), stays, back);

	if (whom == think)
		bp_wait_end(&bd->antic, bd->base == BP_FAIR ||
			    (read ? near : stays) ? BP_HIT : BP_MISS, now);
	else if (bd->base == BP_ANTICIPATORY && read && near)
		bp_wait_end(&bd->antic, BP_BROKEN, now);
}

/* Remember the process that inserts a request, if there is room for it. */
static void bp_identify(struct iosched *io, struct request *rq)
{
	struct bp_data *bd = bp_of(io);
	struct bp_process *process;

	lockdep_assert_held(&io->lock);
	/* One that comes back is of whoever inserted it first. */
	if (!op_is_sync(rq->cmd_flags) || bp_process_of(rq))
		return;
	process = bp_process_get(&bd->processes, bp_key(), iosched_rq_tier(rq));
	if (!process)
		return;
	process->pid = current->pid;
	rq->elv.priv[0] = process;
	bp_observe(bd, process, rq);
}

static struct rb_root *bp_place(struct iosched *io, struct request *rq)
{
	struct bp_data *bd = bp_of(io);
	unsigned int tier = iosched_rq_tier(rq);
	struct bp_queue *queue = bp_queue_of(bd, rq);

	lockdep_assert_held(&io->lock);
	if (bp_process_of(rq))
		bp_process_of(rq)->queued++;
	queue->level = bp_level(rq);
	if (list_empty(&queue->ring) && bd->base == BP_FAIR)
		list_add_tail(&queue->ring, &bd->ring[tier]);
	return &queue->sort[rq_data_dir(rq)];
}

static void bp_removed(struct iosched *io, struct request *rq,
		       struct request *heir)
{
	struct bp_data *bd = bp_of(io);
	struct bp_queue *queue = bp_queue_of(bd, rq);

	lockdep_assert_held(&io->lock);
	if (bp_process_of(rq))
		bp_process_of(rq)->queued--;
	/* Others keep their place until it is their turn. */
	if (bp_queue_empty(queue) && queue == bd->active[iosched_rq_tier(rq)])
		list_del_init(&queue->ring);
}

/*
 * Order within a queue
 */

/* Would a write there leave the open blocks? */
static bool bp_crosses(struct bp_data *bd, struct request *rq)
{
	return !bp_is_open(&bd->open, bd->open_blocks,
			   bp_block(blk_rq_pos(rq), bp_block_sectors(bd)));
}

/* Ascending, from where the last one ended; then from the lowest again. */
static struct request *bp_ascending(struct bp_queue *queue, unsigned int dir)
{
	struct request *rq = iosched_from(&queue->sort[dir], queue->pos[dir]);

	return rq ? rq : iosched_from(&queue->sort[dir], 0);
}

/* A write in an open block other than the last one's, if there is one. */
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

/* The first write of the block in which most are waiting. */
static struct request *bp_fullest(struct bp_data *bd, struct rb_root *root,
				  struct request *front)
{
	struct request *begin = front ? front : iosched_from(root, 0);
	struct request *rq = begin, *first = begin, *best = begin;
	u32 block_sectors = bp_block_sectors(bd);
	unsigned int nr = 0, most = 0;

	/* Around, so that of blocks that are as full the sweep's next one goes. */
	do {
		if (bp_block(blk_rq_pos(rq), block_sectors) !=
		    bp_block(blk_rq_pos(first), block_sectors)) {
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

/* Block in which the last write ended. */
static u64 bp_last_block(struct bp_data *bd)
{
	return bd->write_end ? bp_block(bd->write_end - 1,
					bp_block_sectors(bd)) : U64_MAX;
}

/*
 * The write that the four cases choose. If none applies, the next one of the
 * queue's own sweep, or the fullest block's when the whole queue is to be looked at.
 */
static struct request *bp_by_cases(struct bp_data *bd, struct bp_queue *queue,
				   enum bp_case *which)
{
	struct rb_root *root = &queue->sort[WRITE];
	struct request *front = iosched_from(root, bd->write_end), *back, *rq;
	struct bp_side *in_front = &bd->in_front, *behind = &bd->behind;
	unsigned int look = max(bd->lookahead, 1U);
	bool go_front;

	in_front->nr = 0;
	behind->nr = 0;
	back = front ? iosched_prev(front) :
		       rb_entry(rb_last(root), struct request, rb_node);
	for (rq = front; rq && in_front->nr < look; rq = iosched_next(rq))
		bp_side_add(in_front, blk_rq_pos(rq), blk_rq_sectors(rq));
	for (rq = back; rq && behind->nr < look; rq = iosched_prev(rq))
		bp_side_add(behind, blk_rq_pos(rq), blk_rq_sectors(rq));
	*which = bp_prefer(in_front, behind, bp_last_block(bd),
			   bp_block_sectors(bd), &go_front);
	if (*which == BP_NO_CASE && !bd->lookahead)
		return bp_fullest(bd, root, front);
	if (*which == BP_NO_CASE)
		return bp_ascending(queue, WRITE);
	return go_front ? front : back;
}

/* Return true if an open block other than the last one's is better than @which. */
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

/* The same for @rq, the only write of its queue, which is in no tree. */
static void bp_prefer_only(struct bp_data *bd, struct request *rq)
{
	enum bp_case which;
	bool in_front;

	bd->in_front.nr = 0;
	bd->behind.nr = 0;
	bp_side_add(&bd->in_front, blk_rq_pos(rq), blk_rq_sectors(rq));
	which = bp_prefer(&bd->in_front, &bd->behind, bp_last_block(bd),
			  bp_block_sectors(bd), &in_front);
	bp_count_choice(bd, which, bp_wants_open(bd, which) &&
			!bp_crosses(bd, rq));
}

/* Direction of the next request of a queue that has some. */
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

static void bp_turn_to(struct bp_data *bd, struct bp_queue *queue,
		       unsigned int dir)
{
	if (dir == queue->dir)
		return;
	queue->dir = dir;
	queue->batch_end = jiffies +
			   msecs_to_jiffies(dir == READ ? bd->read_batch_ms :
							  bd->write_batch_ms);
}

/* @rq is the next request of @queue. */
static void bp_advance(struct bp_data *bd, struct bp_queue *queue,
		       struct request *rq)
{
	unsigned int dir = rq_data_dir(rq);

	bp_turn_to(bd, queue, dir);
	queue->pos[dir] = iosched_rq_end(rq);
}

/* The next request of a queue. */
static struct request *bp_take(struct bp_data *bd, struct bp_queue *queue)
{
	unsigned int dir = bp_direction(queue);
	struct request *rq;

	if (dir == WRITE && bd->preference)
		rq = bp_preferred(bd, queue);
	else
		rq = bp_ascending(queue, dir);
	bp_advance(bd, queue, rq);
	return rq;
}

/*
 * Waiting
 *
 * A wait is a select() that returns NULL: the core then says that it holds
 * requests, and looks again when the timer or a completion calls
 * iosched_wake(), or a request is inserted.
 */

static enum hrtimer_restart bp_timer(struct hrtimer *timer)
{
	struct bp_data *bd = container_of(timer, struct bp_data, timer);

	WRITE_ONCE(bd->over, true);
	iosched_wake(&bd->io);
	return HRTIMER_NORESTART;
}

/* us until the first deadline of a tier, which a wait must not outlast. */
static u32 bp_until_deadline(struct bp_data *bd, unsigned int tier)
{
	unsigned long left = MAX_JIFFY_OFFSET, now = jiffies;
	unsigned int dir;

	for (dir = READ; dir <= WRITE; dir++) {
		struct request *rq;

		rq = list_first_entry_or_null(&bd->io.fifo[tier][dir],
					      struct request, queuelist);
		if (rq && time_after((unsigned long)rq->fifo_time, now))
			left = min(left, (unsigned long)rq->fifo_time - now);
		else if (rq)
			left = 0;
	}
	return jiffies_to_usecs(min(left, msecs_to_jiffies(MSEC_PER_SEC)));
}

/*
 * Wait for a process, or go on waiting for whoever is waited for. A timer that
 * is left from a wait that ended early may at worst end this one early.
 */
static bool bp_wait(struct bp_data *bd, struct bp_process *process)
{
	struct bp_limits limits = bp_limits_of(bd);
	u32 left;

	if (bd->antic.whom) {
		if (!READ_ONCE(bd->over))
			return true;
		bp_wait_end(&bd->antic, BP_MISS, bp_now());
		return false;
	}
	if (!bp_process_idle(process))
		return false;
	left = bp_wait_begin(&bd->antic, &process->think, &bd->newcomers,
			     bp_now(), &limits);
	if (!left)
		return false;
	left = min(left, bp_until_deadline(bd, process->tier));
	WRITE_ONCE(bd->over, false);
	hrtimer_start(&bd->timer, ns_to_ktime((u64)left * NSEC_PER_USEC),
		      HRTIMER_MODE_REL);
	return true;
}

/*
 * Base: anticipatory
 */

/* The process whose request of a direction was the last to complete, if in @tier. */
static struct bp_process *bp_thinker(struct bp_data *bd, unsigned int tier,
				     unsigned int dir)
{
	struct bp_process *process = READ_ONCE(bd->thinker[dir]);

	return process && process->tier == tier ? process : NULL;
}

/* Rules 2 and 3. @next is the read that would be next, NULL if a write would. */
static bool bp_is_read_awaited(struct bp_data *bd, struct bp_queue *queue,
			       struct bp_process *reader, struct request *next)
{
	struct bp_limits limits = bp_limits_of(bd);

	return queue->dir == READ && time_before(jiffies, queue->batch_end) &&
	       !(next && bp_is_near(&reader->think, blk_rq_pos(next), &limits));
}

/* Rule 4, when a write is next that leaves the open blocks. */
static bool bp_is_write_awaited(struct bp_data *bd, struct bp_process *writer)
{
	return bd->preference && bp_stays(&writer->think) &&
	       bp_is_open(&bd->open, bd->open_blocks,
			  bp_block(writer->think.write_end - 1,
				   bp_block_sectors(bd)));
}

/* Wait for the process that the rules have the next request of a tier wait for. */
static bool bp_try_wait(struct bp_data *bd, unsigned int tier)
{
	struct bp_process *reader = bp_thinker(bd, tier, READ);
	struct bp_process *writer = bp_thinker(bd, tier, WRITE);
	struct bp_queue *queue = &bd->shared[tier];
	struct request *next = NULL;

	if (bp_direction(queue) == READ)
		next = bp_ascending(queue, READ);
	if (reader && bp_is_read_awaited(bd, queue, reader, next) &&
	    bp_wait(bd, reader))
		return true;
	return writer && !next && bp_is_write_awaited(bd, writer) &&
	       !bp_in_open_block(bd, &queue->sort[WRITE]) &&
	       bp_wait(bd, writer);
}

/*
 * Base: fair
 */

static unsigned long bp_slice(struct bp_data *bd, struct bp_queue *queue)
{
	unsigned int ms = queue->process ? bd->slice_sync_ms :
					   bd->slice_async_ms;
	unsigned int fifths = 5 + BP_LEVEL_NORM - queue->level;

	return msecs_to_jiffies(DIV_ROUND_UP(ms * fifths, 5));
}

/* Has a queue something to do, or will its process have, soon? */
static bool bp_serve_or_wait(struct bp_data *bd, struct bp_queue *queue)
{
	return !bp_queue_empty(queue) ||
	       (queue->process && bp_wait(bd, queue->process));
}

/* The queue that is served now, NULL to wait for its process. */
static struct bp_queue *bp_turn(struct bp_data *bd, unsigned int tier)
{
	struct bp_queue *queue = bd->active[tier];
	bool over;

	/* It was idle, and its struct became that of another tier's process. */
	if (queue && queue->process && queue->process->tier != tier)
		queue = NULL;
	over = !queue || time_after_eq(jiffies, queue->slice_end);
	while (over || !bp_serve_or_wait(bd, queue)) {
		if (queue && bp_queue_empty(queue))
			list_del_init(&queue->ring);
		else if (queue)
			list_move_tail(&queue->ring, &bd->ring[tier]);
		bp_wait_end(&bd->antic, BP_BROKEN, bp_now());
		queue = list_first_entry(&bd->ring[tier], struct bp_queue,
					 ring);
		queue->slice_end = jiffies + bp_slice(bd, queue);
		queue->slices++;
		bd->active[tier] = queue;
		over = false;
	}
	return bp_queue_empty(queue) ? NULL : queue;
}

static struct request *bp_select(struct iosched *io, unsigned int tier)
{
	struct bp_data *bd = bp_of(io);
	struct bp_queue *queue = &bd->shared[tier];

	lockdep_assert_held(&io->lock);
	if (bd->base == BP_FAIR)
		queue = bp_turn(bd, tier);
	else if (bp_try_wait(bd, tier))
		queue = NULL;
	return queue ? bp_take(bd, queue) : NULL;
}

/* Return true if @rq, the only request, may have to wait for another process. */
static bool bp_may_wait(struct bp_data *bd, struct bp_queue *queue,
			struct request *rq)
{
	unsigned int tier = iosched_rq_tier(rq);
	struct bp_process *own = bp_process_of(rq);
	struct bp_process *reader = bp_thinker(bd, tier, READ);
	struct bp_process *writer = bp_thinker(bd, tier, WRITE);
	struct request *next = rq_data_dir(rq) == READ ? rq : NULL;

	if (reader && reader != own && bp_process_idle(reader) &&
	    bp_is_read_awaited(bd, queue, reader, next))
		return true;
	return writer && !next && writer != own && bp_process_idle(writer) &&
	       bp_is_write_awaited(bd, writer);
}

static bool bp_alone(struct iosched *io, struct request *rq)
{
	struct bp_data *bd = bp_of(io);
	struct bp_queue *queue = &bd->shared[iosched_rq_tier(rq)];

	lockdep_assert_held(&io->lock);
	if (bd->base == BP_FAIR || bd->antic.whom || bp_may_wait(bd, queue, rq))
		return false;
	if (rq_data_dir(rq) == WRITE && bd->preference)
		bp_prefer_only(bd, rq);
	bp_advance(bd, queue, rq);
	return true;
}

static void bp_dispatched(struct iosched *io, struct request *rq)
{
	struct bp_data *bd = bp_of(io);

	lockdep_assert_held(&io->lock);
	if (bd->antic.whom)
		bp_wait_end(&bd->antic, BP_BROKEN, bp_now());
	if (bp_process_of(rq))
		atomic_inc(&bp_process_of(rq)->in_flight);
	if (req_op(rq) == REQ_OP_WRITE) {
		u32 block_sectors = bp_block_sectors(bd);

		bd->write_end = iosched_rq_end(rq);
		bp_written(&bd->open, bd->open_blocks,
			   bp_block(blk_rq_pos(rq), block_sectors),
			   bp_block(bd->write_end - 1, block_sectors));
	}
}

static void bp_released(struct request *rq)
{
	struct bp_data *bd = bp_of(iosched_of(rq->q));
	struct bp_process *process = bp_process_of(rq);

	if (!process)
		return;
	WRITE_ONCE(process->think.done, bp_now());
	WRITE_ONCE(bd->thinker[rq_data_dir(rq)], process);
	/* Whoever sees it gone sees that too. */
	smp_mb__before_atomic();
	atomic_dec(&process->in_flight);
}

/*
 * Coming and going
 */

static void bp_switch_base(struct iosched *io, void *base)
{
	struct bp_data *bd = bp_of(io);
	struct bp_queue *queue, *next;
	unsigned int tier;

	lockdep_assert_held(&io->lock);
	bp_wait_end(&bd->antic, BP_BROKEN, bp_now());
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		list_for_each_entry_safe(queue, next, &bd->ring[tier], ring)
			list_del_init(&queue->ring);
	memset(bd->active, 0, sizeof(bd->active));
	WRITE_ONCE(bd->base, *(unsigned int *)base);
}

static int bp_set_base(struct iosched *io, unsigned int *field,
		       unsigned int value)
{
	spin_lock(&io->lock);
	if (*field != value)
		iosched_replace_all(io, bp_switch_base, &value);
	spin_unlock(&io->lock);
	iosched_run(io);
	return 0;
}

#define BP_TUNABLES(T, C)						\
	T(bp_data, preference, 1, 0, 1, iosched_set,			\
	  "keep writes in the erase block of the last one")		\
	T(bp_data, block_size_kb, 1024, 4, 1048576, iosched_set,	\
	  "KB in an erase block")					\
	T(bp_data, lookahead, 2, 0, 16, iosched_set,			\
	  "writes looked at on each side of the last one, 0: all")	\
	T(bp_data, open_blocks, 1, 1, 64, iosched_set,			\
	  "erase blocks that the device keeps open")			\
	T(bp_data, antic_us, 1000, 0, 1000000, iosched_set,		\
	  "us to wait for a process's next request, 0: never")		\
	T(bp_data, antic_near_kb, 0, 0, 1073741824, iosched_set,	\
	  "KB within which a read is near another, 0: any")		\
	T(bp_data, read_batch_ms, 500, 1, 3600000, iosched_set,		\
	  "ms after which reads let writes go")				\
	T(bp_data, write_batch_ms, 125, 1, 3600000, iosched_set,	\
	  "ms after which writes let reads go")				\
	T(bp_data, slice_sync_ms, 100, 1, 3600000, iosched_set,		\
	  "ms in a slice of a process")					\
	T(bp_data, slice_async_ms, 40, 1, 3600000, iosched_set,		\
	  "ms in a slice of asynchronous writes")			\
	C(bp_data, base, BP_ANTICIPATORY, bp_bases, bp_set_base,	\
	  "what the preference stands on (anticipatory, fair; default anticipatory)")

static int bp_init(struct iosched *io)
{
	struct bp_data *bd = bp_of(io);
	unsigned int tier, i;

	for (tier = 0; tier < IOSCHED_TIERS; tier++) {
		INIT_LIST_HEAD(&bd->ring[tier]);
		bp_queue_init(&bd->shared[tier], BP_LEVEL_NORM, NULL);
		for (i = 0; i < BP_LEVELS; i++)
			bp_queue_init(&bd->async[tier][i], i, NULL);
	}
	bp_open_init(&bd->open);
	bd->newcomers.soon = BP_WHOLE;
	compat_hrtimer_setup(&bd->timer, bp_timer, CLOCK_MONOTONIC,
			     HRTIMER_MODE_REL);
	return bp_processes_init(&bd->processes, BP_LEVEL_NORM);
}

static void bp_exit(struct iosched *io)
{
	struct bp_data *bd = bp_of(io);

	hrtimer_cancel(&bd->timer);
	bp_processes_exit(&bd->processes);
}

#ifdef CONFIG_BLK_DEBUG_FS
static const char * const bp_case_names[] = {
	"both_in", "one_in", "one_run", "two_runs", "no_case",
};

static const char * const bp_outcome_names[] = { "hits", "misses", "broken" };

static void bp_preference(struct iosched *io, struct seq_file *m)
{
	struct bp_data *bd = bp_of(io);
	unsigned int i;

	seq_printf(m, "crossings %u\navoided %u\n", bd->open.crossings,
		   bd->avoided);
	for (i = 0; i < BP_CASES; i++)
		seq_printf(m, "%s %u\n", bp_case_names[i], bd->cases[i]);
	seq_printf(m, "in_open %u\n", bd->in_open);
}

IOSCHED_SHOW(bp_preference)

static void bp_anticipation(struct iosched *io, struct seq_file *m)
{
	struct bp_data *bd = bp_of(io);
	unsigned int i;

	for (i = 0; i < BP_OUTCOMES; i++)
		seq_printf(m, "%s %u\n", bp_outcome_names[i],
			   bd->antic.ended[i]);
	seq_printf(m, "waited_us %llu\nnewcomers_soon %u\n", bd->antic.waited,
		   bd->newcomers.soon);
}

IOSCHED_SHOW(bp_anticipation)

static void bp_known_processes(struct iosched *io, struct seq_file *m)
{
	struct bp_data *bd = bp_of(io);
	struct bp_process *process;

	seq_puts(m, "# the longest unused first\npid tier level slices queued in_flight think_us distance_kb\n");
	list_for_each_entry(process, &bd->processes.lru, lru)
		if (!hlist_unhashed(&process->hash))
			seq_printf(m, "%d %s %u %u %u %d %u %u\n", process->pid,
				   iosched_tier_names[process->tier],
				   process->queue.level, process->queue.slices,
				   process->queued,
				   atomic_read(&process->in_flight),
				   process->think.mean >> BP_MEAN_SHIFT,
				   process->think.distance >> BP_MEAN_SHIFT);
}

IOSCHED_SHOW(bp_known_processes)

#define BP_DEBUGFS							\
	{ "preference", 0400, bp_preference_show },			\
	{ "anticipation", 0400, bp_anticipation_show },			\
	{ "processes", 0400, bp_known_processes_show }
#endif

static const struct iosched_policy bp_policy = {
	.size		= sizeof(struct bp_data),
	.init		= bp_init,
	.exit		= bp_exit,
	.root		= bp_root,
	.arrives	= bp_identify,
	.place		= bp_place,
	.placed		= bp_placed,
	.removed	= bp_removed,
	.select		= bp_select,
	.alone		= bp_alone,
	.dispatched	= bp_dispatched,
	.released	= bp_released,
};

#define IOSCHED_POLICY		bp_policy
#define IOSCHED_POLICY_TUNABLES	BP_TUNABLES
#define IOSCHED_POLICY_DEBUGFS	BP_DEBUGFS
#include "iosched-tmpl.h"

MODULE_AUTHOR("The ssd-iosched developers");
MODULE_DESCRIPTION("BP, block-preferential ordering for SSDs");
MODULE_LICENSE("GPL");
