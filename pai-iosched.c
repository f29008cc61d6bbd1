// SPDX-License-Identifier: GPL-2.0
/*
 * PAI: a parameter-aware I/O scheduler for SSDs, with PAS and PASA.
 *
 * After "Parameter-aware I/O management for solid state disks (SSDs)",
 * section 5.
 *
 * Problem: an SSD reads and programs its flash in clustered pages and has
 * buffers of a certain size. A write of part of a clustered page makes the
 * device read the rest of it, and a request larger than the buffer waits for
 * the flash. File systems know neither size.
 *
 * Idea: PASA includes PAS; PAI works with either of them, or alone.
 *
 *  1. PAS: no request is larger than the read or write buffer. (5.2)
 *  2. PASA: in addition, requests are cut on boundaries of clustered pages or
 *     blocks: an unaligned head, if there is one, then aligned pieces. (5.2)
 *  3. PAI: requests that are well-split, that is aligned and of the buffer's
 *     size, form the normal queue and are dispatched first. The others form the
 *     pending queue, where they wait to be merged; one that becomes well-split
 *     by a merge moves to the normal queue. (5.3)
 *  4. No request is pending for longer than read_pending_us or
 *     write_pending_us. Then it is due: it is dispatched by age, as if
 *     well-split. (5.3)
 *
 * The block layer does 1 and 2: PAI sets the limits of the queue while it is
 * the queue's elevator (include/pai/limits.h). The arithmetic and an example
 * are in include/pai/geometry.h.
 *
 * Not in the paper, which leaves these cases open:
 *
 *  5. A pending request is held only while requests that are not pending are
 *     queued or well-split ones are in flight. So neither a lone request nor a
 *     load of small requests is ever held.
 *  6. A request that cannot be merged is never pending, but closed: it has its
 *     largest size, was cut by the block layer, is a discard, or was requeued.
 *  7. Among reads and writes the oldest request is dispatched first, as in the
 *     NOOP scheduler that the paper extends.
 *  8. If it is a write, the writes within its clustered block are dispatched in
 *     ascending order, unless rules 3 to 5 hold them: those before it first, then
 *     at most PAI_RUN in a row. A device that maps whole blocks has few of them
 *     open, and by age alone nearly every write would close one. A write across
 *     the end of a block is not within it, as it would open the next one too
 *     early.
 *  9. A request is preceded by the requests that end where it begins, pending ones
 *     too, at most PAI_RUN of them. Otherwise a well-split request would be
 *     dispatched before the pending one in front of it, and a stream arrives at
 *     the device in pieces.
 *
 * 10. While the device has room for all that are queued, rules 7 to 9 do not apply, up to
 *     the first request that rules 3 to 5 hold: they are dispatched in order of arrival.
 *
 * Example: clustered pages of 16 KB, a write buffer of 64 KB. Writes of
 * [64K,128K), [4K,16K), [0,4K) are inserted. The first one is well-split and
 * dispatched. The second one is badly split: pending. The third one is merged
 * with it, in front. Now it is aligned, but not of the buffer's size: it stays
 * pending until more is merged, the first write completes or write_pending_us
 * have passed. With well_split=aligned it is well-split and dispatched.
 *
 * Data: the class of a request is in rq->elv.priv[0] (include/pai/classes.h).
 * All classes share the core's FIFOs, where age is the order, and a tree sorted
 * by sector for each priority tier and direction, where merging finds any
 * neighbour. If a FIFO has pending requests only, looking at the oldest one is
 * enough; so a search passes over requests only if they are pending and not
 * due.
 *
 * Rule 4 in detail: a request is due a fixed time after its allocation, while
 * the FIFO is in order of insertion, which is later. The oldest request is thus
 * due at most that time after its insertion; requests behind it may have to
 * wait for it. Once it is due, only older requests are dispatched before it,
 * each with its clustered block and its stream, besides those that precede
 * well-split requests as well: higher priorities, expired deadlines, the head
 * of the queue. How long a due request waits for a busy device is not bounded
 * here.
 */
#include "compat-hrtimer.h"
#include "iosched-debugfs.h"
#include "pai/classes.h"
#include "pai/geometry.h"
#include "pai/limits.h"
#include "pai/stats.h"

#define IOSCHED_NAME "pai"

/* Rule 8: most writes in a row that follow another one in its block. */
#define PAI_RUN	16

/**
 * struct pai_run - where a write that rule 8 prefers would lie
 * @tier: tier of the write dispatched last
 * @from: its first sector
 * @to: end of the clustered block in which it ends, exclusive
 * @length: writes dispatched by rule 8 since the last one dispatched by age
 */
struct pai_run {
	unsigned int tier;
	sector_t from;
	sector_t to;
	unsigned int length;
};

struct pai_data {
	struct iosched io;		/* must be first */

	/* run-time data, under io.lock */
	unsigned int not_pending[IOSCHED_TIERS][IOSCHED_DIRS];	/* queued */
	struct pai_run run;
	/* when a pending request was last held or passed over, in ns */
	u64 last_held;
	struct hrtimer timer;		/* expires when a pending one is due */
	struct pai_loan *loan;		/* the queue's limits */
	atomic_t well_split_in_flight ____cacheline_aligned_in_smp;
	struct pai_stats stats[IOSCHED_DIRS] ____cacheline_aligned_in_smp;

	/* derived from the settings, under io.lock */
	struct pai_params params;
	struct pai_cut cut[IOSCHED_DIRS];

	/* settings */
	unsigned int clustered_page_kb;
	unsigned int clustered_block_kb;
	unsigned int read_buffer_kb;
	unsigned int write_buffer_kb;
	unsigned int align;
	unsigned int split;
	unsigned int well_split;
	unsigned int read_pending_us;
	unsigned int write_pending_us;
};

IOSCHED_OWN_LINES(struct pai_data, offsetof(struct pai_data, well_split_in_flight),
		  offsetof(struct pai_data, stats));

static struct pai_data *pai_of(struct iosched *io)
{
	return container_of(io, struct pai_data, io);
}

/*
 * Classes: rules 3 and 6
 */

static unsigned int pai_full(struct pai_data *pd, unsigned int dir)
{
	return pai_full_size(&pd->params, &pd->cut[dir],
			     queue_max_sectors(pd->io.q));
}

/* Rules 1 and 2 bound merging as well: it stops where bios would be cut. */
static bool pai_may_merge(struct iosched *io, unsigned int dir,
			  sector_t start, sector_t end)
{
	lockdep_assert_held(&io->lock);
	return end <= pai_cut_end(&pai_of(io)->cut[dir], start);
}

/* Return true if a merge can make @rq larger, at either end. */
static bool pai_may_grow(struct pai_data *pd, struct request *rq)
{
	unsigned int dir = rq_data_dir(rq);
	sector_t pos = blk_rq_pos(rq), end = iosched_rq_end(rq);

	return iosched_rq_mergeable(rq) && !blk_queue_nomerges(rq->q) &&
	       blk_rq_sectors(rq) < queue_max_sectors(rq->q) &&
	       (pai_may_merge(&pd->io, dir, pos, end + 1) ||
		(pos && pai_may_merge(&pd->io, dir, pos - 1, end)));
}

/* Rules 3 and 6. */
static enum pai_class pai_classify(struct pai_data *pd, struct request *rq)
{
	if (req_op(rq) != REQ_OP_READ && req_op(rq) != REQ_OP_WRITE)
		return PAI_CLOSED;
	if (pai_well_split(&pd->params, blk_rq_pos(rq), blk_rq_sectors(rq),
			   pai_full(pd, rq_data_dir(rq))))
		return PAI_WELL_SPLIT;
	return pai_may_grow(pd, rq) ? PAI_PENDING : PAI_CLOSED;
}

/* The count of queued requests that are not pending, for @rq. */
static unsigned int *pai_not_pending(struct pai_data *pd, struct request *rq)
{
	return &pd->not_pending[iosched_rq_tier(rq)][rq_data_dir(rq)];
}

static void pai_add_to_class(struct pai_data *pd, struct request *rq,
			     enum pai_class class)
{
	pai_rq_set_class(rq, class);
	if (class != PAI_PENDING)
		++*pai_not_pending(pd, rq);
}

static void pai_place(struct iosched *io, struct request *rq)
{
	struct pai_data *pd = pai_of(io);

	lockdep_assert_held(&io->lock);
	pai_add_to_class(pd, rq, pai_classify(pd, rq));
}

static void pai_removed(struct iosched *io, struct request *rq,
			struct request *heir)
{
	lockdep_assert_held(&io->lock);
	if (pai_class_of(rq) != PAI_PENDING)
		--*pai_not_pending(pai_of(io), rq);
}

/*
 * Rule 3: classify @rq anew after a merge, which may make it well-split; the
 * next merge may undo that. A request at the head of the queue is in no tree
 * and has no class.
 */
static void pai_resized(struct iosched *io, struct request *rq)
{
	struct pai_data *pd = pai_of(io);
	struct pai_stats *st = &pd->stats[rq_data_dir(rq)];
	enum pai_class was = pai_class_of(rq), class;

	lockdep_assert_held(&io->lock);
	if (RB_EMPTY_NODE(&rq->rb_node))
		return;
	class = pai_classify(pd, rq);
	pai_removed(io, rq, NULL);
	pai_add_to_class(pd, rq, class);
	if (was != PAI_PENDING)
		return;
	st->merges++;
	st->promoted += class == PAI_WELL_SPLIT;
	/* The request need no longer wait, and merging a bio runs no queue. */
	if (class != PAI_PENDING)
		iosched_wake(io);
}

/*
 * Dispatch: rules 4, 5, 7 and 8
 */

/* Rule 4: the time at which @rq is due, in ns. */
static u64 pai_due(struct pai_data *pd, struct request *rq)
{
	unsigned int us = rq_data_dir(rq) == READ ? pd->read_pending_us :
						    pd->write_pending_us;

	return rq->start_time_ns + (u64)us * NSEC_PER_USEC;
}

/* Rules 3 and 4: the oldest request that is due or not pending; notes those held. */
static struct request *pai_next(struct pai_data *pd, unsigned int tier,
				unsigned int dir)
{
	struct request *rq;
	u64 now = 0;

	list_for_each_entry(rq, &pd->io.fifo[tier][dir], queuelist) {
		if (pai_class_of(rq) != PAI_PENDING)
			return rq;
		now = now ?: ktime_get_ns();
		if (pai_due(pd, rq) <= now)
			return rq;
		pd->last_held = now;
		if (!pd->not_pending[tier][dir])
			break;
	}
	return NULL;
}

static enum hrtimer_restart pai_timeout(struct hrtimer *timer)
{
	iosched_wake(&container_of(timer, struct pai_data, timer)->io);
	return HRTIMER_NORESTART;
}

/* All requests of a tier are held: arm the timer for when the first is due. */
static void pai_arm(struct pai_data *pd, unsigned int tier)
{
	struct request *read = iosched_oldest(&pd->io, tier, READ);
	struct request *write = iosched_oldest(&pd->io, tier, WRITE);
	u64 due = read ? pai_due(pd, read) : U64_MAX;

	if (write)
		due = min(due, pai_due(pd, write));
	if (!hrtimer_is_queued(&pd->timer) ||
	    ktime_to_ns(hrtimer_get_expires(&pd->timer)) > due)
		hrtimer_start(&pd->timer, ns_to_ktime(due), HRTIMER_MODE_ABS);
}

/* Rule 8: return true if @rq, a write, is next in the block of the last one. */
static bool pai_continues(struct pai_run *run, struct request *rq)
{
	return iosched_rq_tier(rq) == run->tier && run->length < PAI_RUN &&
	       blk_rq_pos(rq) >= run->from && iosched_rq_end(rq) <= run->to;
}

/*
 * Rule 8: the lowest write of a tier in [from, to), or NULL; if @hold, the lowest
 * that is due or not pending. Passes over PAI_RUN requests at most.
 */
static struct request *pai_lowest(struct pai_data *pd, unsigned int tier,
				  sector_t from, sector_t to, bool hold)
{
	struct request *rq = iosched_from(&pd->io.sort[tier][WRITE], from);
	u64 now = hold ? ktime_get_ns() : U64_MAX;
	unsigned int n;

	for (n = 0; n < PAI_RUN && rq && iosched_rq_end(rq) <= to; n++) {
		if (pai_class_of(rq) != PAI_PENDING || pai_due(pd, rq) <= now)
			return rq;
		pd->last_held = now;
		rq = iosched_next(rq);
	}
	return NULL;
}

/*
 * Rule 8: the write to dispatch before @oldest, or @oldest, which may be NULL.
 * @hold: requests that are pending and not due are held.
 */
static struct request *pai_in_block(struct pai_data *pd, struct request *oldest,
				    bool hold)
{
	struct pai_run *run = &pd->run;
	struct request *rq = NULL;
	unsigned int tier;
	sector_t to;

	if (!oldest || rq_data_dir(oldest) == READ)
		return oldest;
	tier = iosched_rq_tier(oldest);
	if (tier == run->tier && run->length < PAI_RUN)
		rq = pai_lowest(pd, tier, run->from, run->to, hold);
	if (rq)
		return rq;
	to = pai_block_end(&pd->params, blk_rq_pos(oldest) + 1);
	rq = pai_lowest(pd, tier, to - pd->params.block, to, hold);
	return rq ? rq : oldest;
}

/* Rule 8: @rq is dispatched. */
static void pai_count_run(struct pai_data *pd, struct request *rq)
{
	struct pai_run *run = &pd->run;

	if (rq_data_dir(rq) == READ)
		return;
	run->length = pai_continues(run, rq) ? run->length + 1 : 0;
	run->tier = iosched_rq_tier(rq);
	run->from = blk_rq_pos(rq);
	run->to = pai_block_end(&pd->params, iosched_rq_end(rq));
}

/*
 * Rule 9: the first of the contiguous requests that end where @rq begins, at most
 * PAI_RUN of them. @rq may be NULL.
 */
static struct request *pai_stream_begin(struct request *rq)
{
	unsigned int n;

	for (n = 0; rq && n < PAI_RUN; n++) {
		struct request *before = iosched_prev(rq);

		if (!before || iosched_rq_end(before) != blk_rq_pos(rq))
			break;
		rq = before;
	}
	return rq;
}

/*
 * Rule 5: return true if pending requests of a tier may be held. The completion
 * of the last well-split request wakes the queue.
 */
static bool pai_may_hold(struct pai_data *pd, unsigned int tier)
{
	return pd->not_pending[tier][READ] || pd->not_pending[tier][WRITE] ||
	       atomic_read(&pd->well_split_in_flight);
}

/* Rules 7 and 8 for the requests that rules 3 to 5 let be dispatched; then rule 9. */
static struct request *pai_select(struct iosched *io, unsigned int tier,
				  unsigned int only)
{
	struct pai_data *pd = pai_of(io);
	struct request *read, *write, *rq;
	bool hold = pai_may_hold(pd, tier);

	lockdep_assert_held(&io->lock);
	/* No read is held: there is no write for it to let pass. */
	if (only == READ)
		return pai_stream_begin(iosched_oldest(io, tier, READ));
	if (only == WRITE) {
		rq = hold ? pai_next(pd, tier, WRITE) :
			    iosched_oldest(io, tier, WRITE);
	} else if (hold) {
		read = pai_next(pd, tier, READ);
		write = pai_next(pd, tier, WRITE);
		if (!read && !write)
			pai_arm(pd, tier);
		rq = iosched_older(read, write);
	} else {
		rq = iosched_oldest_of_tier(io, tier);
	}
	return pai_stream_begin(pai_in_block(pd, rq, hold));
}

/* Rule 10. */
static bool pai_take_fresh(struct iosched *io, struct request *rq)
{
	struct pai_data *pd = pai_of(io);
	enum pai_class class;

	lockdep_assert_held(&io->lock);
	class = pai_classify(pd, rq);
	pai_rq_set_class(rq, class);
	return class != PAI_PENDING || !pai_may_hold(pd, iosched_rq_tier(rq));
}

/* Count @rq, which is pending and was held or passed over before. */
static void pai_count_wait(struct pai_data *pd, struct request *rq)
{
	u64 due = pai_due(pd, rq), until = min(due, ktime_get_ns());

	pai_stats_waited(&pd->stats[rq_data_dir(rq)],
			 until - rq->start_time_ns, until == due);
	if (until == due)
		iosched_note(&pd->io, "pai due %llu",
			     (unsigned long long)blk_rq_pos(rq));
}

static void pai_dispatched(struct iosched *io, struct request *rq)
{
	struct pai_data *pd = pai_of(io);
	unsigned int dir = rq_data_dir(rq);
	enum pai_class class = pai_class_of(rq);

	lockdep_assert_held(&io->lock);
	pai_count_run(pd, rq);
	if (class == PAI_WELL_SPLIT)
		atomic_inc(&pd->well_split_in_flight);
	pai_stats_dispatched(&pd->stats[dir], &pd->params, rq,
			     pai_full(pd, dir));
	/* A request allocated after last_held was not there to be held. */
	if (class == PAI_PENDING && rq->start_time_ns <= pd->last_held)
		pai_count_wait(pd, rq);
}

static void pai_released(struct request *rq)
{
	if (pai_class_of(rq) == PAI_WELL_SPLIT)
		atomic_dec(&pai_of(iosched_of(rq->q))->well_split_in_flight);
}

/*
 * Tunables
 */

static const char * const pai_align_names[] = { "page", "block" };
static const char * const pai_split_names[] = { "none", "pas", "pasa" };
static const char * const pai_well_split_names[] = { "paper", "aligned" };

/* Apply the settings. No request is in the trees, or the queue is frozen. */
static void pai_apply_settings(struct iosched *io, void *unused)
{
	struct pai_data *pd = pai_of(io);

	pd->params = (struct pai_params) {
		.page		= pd->clustered_page_kb * IOSCHED_KB_SECTORS,
		.block		= pd->clustered_block_kb * IOSCHED_KB_SECTORS,
		.buffer		= { pd->read_buffer_kb * IOSCHED_KB_SECTORS,
				    pd->write_buffer_kb * IOSCHED_KB_SECTORS },
		.align		= pd->align,
		.split		= pd->split,
		.well_split	= pd->well_split,
	};
	pd->cut[READ] = pai_merge_cut(&pd->params, READ);
	pd->cut[WRITE] = pai_merge_cut(&pd->params, WRITE);
	pai_limits_set(pd->loan, &pd->params);
}

static int pai_set(struct iosched *io, unsigned int *field, unsigned int value)
{
	WRITE_ONCE(*field, value);
	iosched_replace_all(io, pai_apply_settings, NULL);
	return 0;
}

/* Largest sizes: they exceed those of any device, and cannot overflow. */
#define PAI_PAGE_KB_MAX	65536
#define PAI_KB_MAX	1048576
/* Longest wait to be merged: ten seconds. */
#define PAI_US_MAX	10000000

#define PAI_TUNABLES(T, C)						\
	T(pai_data, clustered_page_kb, 16, 1, PAI_PAGE_KB_MAX, pai_set,	\
	  "size of a clustered page, in KB")				\
	T(pai_data, clustered_block_kb, 4096, 1, PAI_KB_MAX, pai_set,	\
	  "size of a clustered block, in KB")				\
	T(pai_data, read_buffer_kb, 0, 0, PAI_KB_MAX, pai_set,		\
	  "size of the read buffer, in KB, 0: none")			\
	T(pai_data, write_buffer_kb, 0, 0, PAI_KB_MAX, pai_set,		\
	  "size of the write buffer, in KB, 0: none")			\
	T(pai_data, read_pending_us, 100, 0, PAI_US_MAX, iosched_set, \
	  "most time for which a read waits to be merged, in us")	\
	T(pai_data, write_pending_us, 1000, 0, PAI_US_MAX, iosched_set, \
	  "most time for which a write waits to be merged, in us")	\
	C(pai_data, align, PAI_ALIGN_PAGE, pai_align_names, pai_set,	\
	  "boundaries that requests are aligned to: page, block (default page)") \
	C(pai_data, split, PAI_SPLIT_NONE, pai_split_names, pai_set,	\
	  "how bios are cut: none, pas, pasa (default none)")		\
	C(pai_data, well_split, PAI_WELL_SPLIT_PAPER,			\
	  pai_well_split_names, pai_set,				\
	  "which requests are well-split: paper, aligned (default paper)")

/*
 * Lifecycle
 */

static int pai_init(struct iosched *io)
{
	struct pai_data *pd = pai_of(io);

	compat_hrtimer_setup(&pd->timer, pai_timeout, CLOCK_MONOTONIC,
			     HRTIMER_MODE_ABS);
	pd->loan = pai_limits_open(io->q);
	return pd->loan ? 0 : -ENOMEM;
}

static void pai_start(struct iosched *io)
{
	pai_apply_settings(io, NULL);
}

static void pai_stop(struct iosched *io)
{
	struct pai_data *pd = pai_of(io);

	pai_limits_close(pd->loan);
	pd->loan = NULL;
}

static void pai_exit(struct iosched *io)
{
	struct pai_data *pd = pai_of(io);

	hrtimer_cancel(&pd->timer);
	/* The loan is still there if the queue kept its other elevator. */
	if (pd->loan)
		pai_limits_close(pd->loan);
}

#ifdef CONFIG_BLK_DEBUG_FS
static void pai_classes(struct iosched *io, struct seq_file *m)
{
	pai_stats_print(pai_of(io)->stats, m);
}

IOSCHED_SHOW(pai_classes)
#endif

static const struct iosched_policy pai_policy = {
	.size		= sizeof(struct pai_data),
	.load		= pai_limits_load,
	.unload		= pai_limits_unload,
	.init		= pai_init,
	.exit		= pai_exit,
	.start		= pai_start,
	.stop		= pai_stop,
	.place		= pai_place,
	.removed	= pai_removed,
	.resized	= pai_resized,
	.may_merge	= pai_may_merge,
	.select		= pai_select,
	.take_fresh	= pai_take_fresh,
	.dispatched	= pai_dispatched,
	.released	= pai_released,
};

#define IOSCHED_POLICY		pai_policy
#define IOSCHED_POLICY_TUNABLES	PAI_TUNABLES
#define IOSCHED_POLICY_DEBUGFS	{ "classes", 0400, pai_classes_show }
#include "iosched-tmpl.h"

MODULE_AUTHOR("The ssd-iosched developers");
MODULE_DESCRIPTION("PAI, a parameter-aware I/O scheduler for SSDs");
MODULE_LICENSE("GPL");
