// SPDX-License-Identifier: GPL-2.0
/*
 * BP: block-preferential ordering for SSDs.
 *
 * After "A new I/O scheduler for solid state devices", section 4.
 *
 * Problem: an SSD that maps whole erase blocks keeps few of them open. A write
 * to another block closes one of them, which takes tens of milliseconds: the
 * SSD copies the pages that were not rewritten and erases the old block.
 * Schedulers made for disks sort by sector and sweep in one direction. They
 * know no distance but that of sectors, and cross block boundaries without
 * need.
 *
 * Idea: dispatch the writes to the block of the last write first, on whichever
 * side of it they are. If there is none, sweep in ascending order: the block
 * that the sweep reaches next was left longest ago, so most writes are queued in
 * it. (With lookahead=2, as in the paper, a nearer block in which two writes are
 * queued precedes it.)
 *
 * This preference orders the writes of one queue (bp/order.h, with the four
 * cases in bp/preference.h). It is added to a scheduler, the base, which
 * chooses the queue and decides when to wait for the next request of a process
 * (bp/waiting.h). As in the paper there are two bases, with rules of their own:
 *
 *	anticipatory	one queue for each priority class (bp/anticipatory.h)
 *	fair		one queue for each process (bp/fair.h)
 *
 * A request whose deadline has passed is dispatched first. The core does that. While the
 * device has room for all that are queued, requests are dispatched in order of arrival,
 * with the base anticipatory and unless a process is waited for. (Not in the paper.)
 *
 * Example (block_size_kb=1024, offsets in KB): the last write ended at 1500.
 * 1100, 1600, 2100 and 2200 are queued. A sweep dispatches 1600, 2100, 2200
 * and returns for 1100: two crossings. BP dispatches 1600 and 1100 first, the
 * larger of them before the other (case 1, then 2), then 2100, 2200: one
 * crossing.
 *
 * Data: a queue (struct bp_queue, bp/queue.h) has two sector-sorted trees, one of
 * reads and one of writes. A process (struct bp_process, bp/process.h) has a queue,
 * used by the base fair, and what is known of its pauses (struct bp_think,
 * bp/think-time.h). Processes are told apart on insertion, by their I/O context
 * or, without one, by the task. Deadlines are the core's (include/iosched.h).
 */
#include "bp/anticipatory.h"
#include "bp/data.h"
#include "bp/fair.h"
#include "bp/order.h"
#include "bp/waiting.h"
#include "compat-hrtimer.h"
#include "iosched-debugfs.h"

#define IOSCHED_NAME "bp"

static const char * const bp_bases[] = { "anticipatory", "fair" };

/*
 * What the base decides: each of these calls its bp_anticipatory_*() or bp_fair_*()
 */

static bool bp_is_fair(struct bp_data *bd)
{
	return bd->base == BP_FAIR;
}

/* The queue of a request. */
static struct bp_queue *bp_queue_of(struct bp_data *bd, struct request *rq)
{
	return bp_is_fair(bd) ? bp_fair_queue(bd, rq) :
				bp_anticipatory_queue(bd, rq);
}

/* The queue to serve, or NULL to wait for a process. */
static struct bp_queue *bp_turn(struct bp_data *bd, unsigned int tier)
{
	return bp_is_fair(bd) ? bp_fair_turn(bd, tier) :
				bp_anticipatory_turn(bd, tier);
}

/* What is worth waiting for. */
static struct bp_limits bp_limits_of(struct bp_data *bd)
{
	return bp_is_fair(bd) ? bp_fair_limits(bd) : bp_anticipatory_limits(bd);
}

/* @process, while one is waited for, inserts @rq. */
static void bp_meet(struct bp_data *bd, struct bp_process *process,
		    struct request *rq)
{
	if (bp_is_fair(bd))
		bp_fair_meet(bd, process, rq);
	else
		bp_anticipatory_meet(bd, process, rq);
}

/*
 * Insertion
 */

static struct rb_root *bp_tree_of(struct request *rq)
{
	struct bp_data *bd = bp_of(iosched_of(rq->q));

	lockdep_assert_held(&bd->io.lock);
	return &bp_queue_of(bd, rq)->sort[rq_data_dir(rq)];
}

/* For front merges of bios only. */
static struct rb_root *bp_tree_for(struct iosched *io, unsigned int tier,
				   unsigned int dir, sector_t sector)
{
	struct bp_data *bd = bp_of(io);

	lockdep_assert_held(&io->lock);
	return bp_is_fair(bd) ? bp_fair_tree_for(bd, tier, dir) :
				bp_anticipatory_tree_for(bd, tier, dir);
}

/* Learn from a request that a process inserts. */
static void bp_learn_from(struct bp_data *bd, struct bp_process *process,
			  struct request *rq)
{
	struct bp_limits limits = bp_limits_of(bd);
	struct bp_think *think = &process->think;
	bool back = bp_process_idle(process);

	bp_count_newcomer(think, &bd->newcomers);
	if (back && think->done)
		bp_learn_pause(think, &bd->newcomers, bp_now(), &limits);
	if (rq_data_dir(rq) == READ)
		bp_learn_read(think, blk_rq_pos(rq), blk_rq_sectors(rq), &limits);
	else
		bp_learn_write(think, blk_rq_pos(rq), blk_rq_sectors(rq),
			       bp_stays_in_block(bd, think, rq), back);
}

/*
 * Note the process that inserts @rq. If the table has no room for it, the
 * request counts as asynchronous.
 */
static void bp_identify(struct bp_data *bd, struct request *rq)
{
	struct bp_process *process;

	process = bp_process_get(&bd->processes, bp_key(), iosched_rq_tier(rq));
	if (!process)
		return;
	process->pid = current->pid;
	rq->elv.priv[0] = process;
	if (bd->antic.awaited)
		bp_meet(bd, process, rq);
	bp_learn_from(bd, process, rq);
}

/* A requeued request keeps its process. */
static void bp_arrives(struct iosched *io, struct request *rq)
{
	lockdep_assert_held(&io->lock);
	if (op_is_sync(rq->cmd_flags) && !bp_process_of(rq))
		bp_identify(bp_of(io), rq);
	if (bp_process_of(rq))
		bp_process_of(rq)->queued++;
}

static void bp_merged(struct iosched *io, struct request *rq)
{
	lockdep_assert_held(&io->lock);
	if (bp_process_of(rq))
		bp_process_of(rq)->queued--;
}

/* A queue that all share needs no turn. */
static void bp_place(struct iosched *io, struct request *rq)
{
	struct bp_data *bd = bp_of(io);

	lockdep_assert_held(&io->lock);
	if (bp_is_fair(bd))
		bp_fair_join(bd, rq);
}

static void bp_removed(struct iosched *io, struct request *rq,
		       struct request *heir)
{
	struct bp_data *bd = bp_of(io);

	lockdep_assert_held(&io->lock);
	if (bp_is_fair(bd))
		bp_fair_leave(bd, rq);
}

/*
 * Dispatch and completion
 */

/*
 * It is the turn of one direction, whose oldest request is @oldest: the next one of its
 * queue. The queue's turn and batch go on.
 */
static struct request *bp_take_only(struct bp_data *bd, struct request *oldest)
{
	struct bp_queue *queue = bp_queue_of(bd, oldest);
	unsigned int dir = rq_data_dir(oldest);
	struct request *rq = bp_next(bd, queue, dir);

	queue->pos[dir] = iosched_rq_end(rq);
	return rq;
}

static struct request *bp_select(struct iosched *io, unsigned int tier,
				 unsigned int only)
{
	struct bp_data *bd = bp_of(io);
	struct bp_queue *queue;

	lockdep_assert_held(&io->lock);
	if (only != IOSCHED_ANY)
		return bp_take_only(bd, iosched_oldest(io, tier, only));
	queue = bp_turn(bd, tier);
	return queue ? bp_take(bd, queue) : NULL;
}

/* With the base fair, even the only request needs its queue and a slice. */
static bool bp_take_fresh(struct iosched *io, struct request *rq)
{
	struct bp_data *bd = bp_of(io);

	lockdep_assert_held(&io->lock);
	return !bp_is_fair(bd) && bp_anticipatory_take_fresh(bd, rq);
}

static void bp_dispatched(struct iosched *io, struct request *rq)
{
	struct bp_process *process = bp_process_of(rq);
	struct bp_data *bd = bp_of(io);

	lockdep_assert_held(&io->lock);
	bp_stop_waiting(bd, BP_BROKEN);
	if (process) {
		atomic_inc(&process->in_flight);
		process->queued--;
	}
	bp_record_write(bd, rq);
}

static void bp_released(struct request *rq)
{
	struct bp_data *bd = bp_of(iosched_of(rq->q));
	struct bp_process *process = bp_process_of(rq);

	if (!process)
		return;
	WRITE_ONCE(bd->thinker[rq_data_dir(rq)], process);
	/* Only the time of the last one matters. */
	if (atomic_add_unless(&process->in_flight, -1, 1))
		return;
	WRITE_ONCE(process->think.done, bp_now());
	/* Pairs with bp_process_idle(). */
	smp_mb__before_atomic();
	atomic_dec(&process->in_flight);
}

/*
 * Settings
 */

static void bp_switch_base(struct iosched *io, void *base)
{
	struct bp_data *bd = bp_of(io);

	lockdep_assert_held(&io->lock);
	bp_stop_waiting(bd, BP_BROKEN);
	bp_fair_leave_all(bd);
	WRITE_ONCE(bd->base, *(unsigned int *)base);
}

/* Store the size of a block. The open blocks are numbered by the old one. */
static int bp_set_block(struct iosched *io, unsigned int *field,
			unsigned int value)
{
	spin_lock(&io->lock);
	WRITE_ONCE(*field, value);
	bp_open_init(&bp_of(io)->open);
	spin_unlock(&io->lock);
	return 0;
}

static int bp_set_base(struct iosched *io, unsigned int *field,
		       unsigned int value)
{
	if (*field != value)
		iosched_replace_all(io, bp_switch_base, &value);
	return 0;
}

/* Largest erase block: 1 GB. */
#define BP_BLOCK_KB_MAX	1048576
/* Longest wait: a second. */
#define BP_ANTIC_US_MAX	1000000
/* Largest distance: the longest that bp_learn() tells from longer ones. */
#define BP_NEAR_KB_MAX	268435455

#define BP_TUNABLES(T, C)						\
	T(bp_data, preference, 1, 0, 1, iosched_set,			\
	  "prefer writes to the erase block of the last one")		\
	T(bp_data, block_size_kb, 1024, 4, BP_BLOCK_KB_MAX, bp_set_block, \
	  "KB in an erase block")					\
	T(bp_data, lookahead, 1, 0, BP_LOOKAHEAD_MAX, iosched_set,	\
	  "writes examined on each side of the last one; 2: the paper's, 0: all") \
	T(bp_data, open_blocks, 1, 1, BP_OPEN_MAX, iosched_set,	\
	  "erase blocks that the device keeps open")			\
	T(bp_data, antic_us, 1000, 0, BP_ANTIC_US_MAX, iosched_set,	\
	  "us to wait for the next request of a process, 0: never")	\
	T(bp_data, antic_near_kb, 0, 0, BP_NEAR_KB_MAX, iosched_set,	\
	  "KB within which a read is near another, 0: any")		\
	T(bp_data, read_batch_ms, 500, 1, IOSCHED_MS_MAX, iosched_set,	\
	  "ms after which a batch of reads ends if writes are queued")	\
	T(bp_data, write_batch_ms, 125, 1, IOSCHED_MS_MAX, iosched_set,	\
	  "ms after which a batch of writes ends if reads are queued")	\
	T(bp_data, slice_sync_ms, 100, 1, IOSCHED_MS_MAX, iosched_set,	\
	  "ms in a slice of a process")					\
	T(bp_data, slice_async_ms, 40, 1, IOSCHED_MS_MAX, iosched_set,	\
	  "ms in a slice of asynchronous writes")			\
	C(bp_data, base, BP_ANTICIPATORY, bp_bases, bp_set_base,	\
	  "scheduler that the preference is added to (anticipatory, fair; default anticipatory)")

static int bp_init(struct iosched *io)
{
	struct bp_data *bd = bp_of(io);
	unsigned int tier, i;

	for (tier = 0; tier < IOSCHED_TIERS; tier++) {
		INIT_LIST_HEAD(&bd->ring[tier]);
		bp_queue_init(&bd->shared[tier], IOPRIO_BE_NORM, NULL);
		for (i = 0; i < IOPRIO_NR_LEVELS; i++)
			bp_queue_init(&bd->async[tier][i], i, NULL);
	}
	bp_open_init(&bd->open);
	bd->newcomers.soon = BP_WHOLE;
	compat_hrtimer_setup(&bd->timer, bp_timer, CLOCK_MONOTONIC,
			     HRTIMER_MODE_REL);
	return bp_processes_init(&bd->processes, IOPRIO_BE_NORM);
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

static bool bp_known_processes(struct iosched *io, struct seq_file *m,
			       unsigned int row)
{
	struct bp_data *bd = bp_of(io);
	struct bp_process *process;
	unsigned int before = 0;

	if (!row)
		seq_puts(m, "# the longest unused first\npid tier level slices queued in_flight think_us distance_kb\n");
	list_for_each_entry(process, &bd->processes.lru, lru)
		if (before++ == row)
			break;
	if (list_entry_is_head(process, &bd->processes.lru, lru))
		return false;
	if (!hlist_unhashed(&process->hash))
		seq_printf(m, "%d %s %u %u %u %d %u %u\n", process->pid,
			   iosched_tier_names[process->tier],
			   process->queue.level, process->queue.slices,
			   process->queued, atomic_read(&process->in_flight),
			   process->think.mean >> BP_MEAN_SHIFT,
			   process->think.distance >> BP_MEAN_SHIFT);
	return true;
}

IOSCHED_SHOW_ROWS(bp_known_processes)

#define BP_DEBUGFS							\
	{ "preference", 0400, bp_preference_show },			\
	{ "anticipation", 0400, bp_anticipation_show },			\
	{ "processes", 0400, bp_known_processes_show }
#endif

static const struct iosched_policy bp_policy = {
	.size		= sizeof(struct bp_data),
	.init		= bp_init,
	.exit		= bp_exit,
	.tree_for	= bp_tree_for,
	.arrives	= bp_arrives,
	.merged		= bp_merged,
	.place		= bp_place,
	.tree_of	= bp_tree_of,
	.removed	= bp_removed,
	.select		= bp_select,
	.take_fresh	= bp_take_fresh,
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
