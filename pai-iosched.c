// SPDX-License-Identifier: GPL-2.0
/*
 * PAI: a parameter-aware I/O scheduler for SSDs, with PAS and PASA.
 *
 * After "Parameter-aware I/O management for solid state disks (SSDs)",
 * section 5.
 *
 * Problem: an SSD reads and programs its flash in clustered pages and has
 * buffers of a certain size. A write of part of a clustered page costs reading
 * the rest of it, and a request larger than the buffer waits for the flash.
 * File systems know nothing of either.
 *
 * Idea: three parts, each of which can be used without the others.
 *
 *  1. PAS: no request is larger than the read or write buffer. (5.2)
 *  2. PASA: and cuts fall on boundaries of clustered pages or blocks: first an
 *     unaligned head, if need be, then aligned pieces. (5.2)
 *     The block layer does both by the limits of the queue, which PAI sets
 *     while it has it (include/pai/limits.h); the arithmetic and an example are
 *     in include/pai/geometry.h. Merging stops where cutting would cut.
 *  3. PAI: requests that are well-split, aligned and sized to the buffer, wait
 *     in the normal queue and go first, oldest first. The others wait in the
 *     pending queue to be merged; one that becomes well-split by merging moves
 *     to the normal queue. No request is pending for longer than read_pending_us
 *     or write_pending_us: then it takes its turn by age as if well-split. (5.3)
 *
 * What the paper leaves open, and what is done here:
 *
 *  - Waiting must not cost more than it wins. A pending request waits only while
 *    the device has well-split ones to do, before which it would not go anyway:
 *    the last of them to complete ends that. So neither a lone request nor a
 *    load of small ones is ever held back. And one that cannot be merged (it is
 *    as large as it may get, cut off by the block layer, a discard) has nothing
 *    to wait for: it is never pending.
 *  - The oldest of reads and writes goes first, as in the NOOP that the paper
 *    extends. With it go those that begin in the clustered page in which it ends,
 *    behind its beginning, up to PAI_RUN in a row: the buffer has that page now,
 *    and what is written to it twice is programmed once. Where many wait, age
 *    alone would bring the second write when the page has long been flushed.
 *
 * Example: clustered pages of 16 KB, a write buffer of 64 KB. Writes of
 * [64K,128K), [4K,16K), [0,4K) arrive. The first one is well-split and goes. The
 * second is badly split and pending. The third one is put in front of it, which
 * makes it aligned, yet not of the buffer's size: it stays pending until more is
 * merged, the first write has completed or write_pending_us has passed; with
 * well_split=aligned it would be well-split now and go.
 *
 * Data: pending or not is a property of a request, in rq->elv.priv[0]; so all
 * of them share the core's FIFOs, whose order is their age, and one
 * sector-sorted tree for each priority tier and direction, in which merging
 * finds any neighbour. Where only pending requests are left a look at the oldest
 * one is enough, so only pending requests that are not due are ever passed over.
 *
 * The bound: a request is due read_pending_us or write_pending_us after it was
 * made, which is before it was inserted; the FIFO has the order of insertion. So
 * the oldest one is due within that time of its insertion at the latest, and
 * those behind it, inserted later, may wait for it. From then on only what is
 * older goes before it, each with its clustered page (and what goes before
 * well-split requests as well: higher priorities, deadlines, the head of the
 * queue). How long it then waits for a
 * drive that is busy is no matter of the pending queue. What comes back from the
 * driver is not merged any more by the block layer: closed.
 */
#include <linux/hrtimer.h>

#include "compat-hrtimer.h"
#include "iosched-debugfs.h"
#include "pai/geometry.h"
#include "pai/limits.h"

#define IOSCHED_NAME "pai"

/* Sectors in a KB, the unit of sizes in tunables. */
#define PAI_KB	2

/* Most requests in a row that go by their clustered page, not by age. */
#define PAI_RUN	16

/* What a queued request is: rq->elv.priv[0]. */
enum pai_class {
	PAI_WELL_SPLIT,		/* suits the device */
	PAI_CLOSED,		/* does not, but no merge can change that */
	PAI_PENDING,		/* waits to be merged */
	PAI_CLASSES,
};

/**
 * struct pai_run - where a request of the same clustered page would be
 * @tier: of the one that was dispatched last
 * @dir: its direction
 * @from: where it begins, in sectors
 * @to: end of the clustered page in which it ends, exclusive
 * @length: how many have gone by their page since one went by age
 */
struct pai_run {
	unsigned int tier;
	unsigned int dir;
	sector_t from;
	sector_t to;
	unsigned int length;
};

/**
 * struct pai_stats - what became of the requests of a direction
 * @requests: dispatched, by class
 * @aligned: of those, begun on a boundary
 * @full: of those, as large as the buffer
 * @merges: bios and requests that a pending request has won
 * @promoted: pending requests that became well-split by that
 * @expired: requests that were pending for as long as they may
 * @waited: time for which requests were pending, in ns: until they went or were
 *	due. Those count before which others went, or that were held back.
 * @longest: the longest of these times
 */
struct pai_stats {
	unsigned int requests[PAI_CLASSES];
	unsigned int aligned;
	unsigned int full;
	unsigned int merges;
	unsigned int promoted;
	unsigned int expired;
	u64 waited;
	u64 longest;
};

struct pai_data {
	struct iosched io;		/* first: the core's */

	/* run-time data, under io.lock */
	struct rb_root sort[IOSCHED_TIERS][IOSCHED_DIRS];
	unsigned int free[IOSCHED_TIERS][IOSCHED_DIRS];	/* queued, not pending */
	struct pai_run run;
	u64 kept;			/* when a pending one last had to wait */
	struct hrtimer timer;		/* runs out when a pending one is due */
	struct pai_loan *loan;		/* the queue's limits */
	atomic_t well_split_in_flight;
	struct pai_stats stats[IOSCHED_DIRS];

	/* what follows from the settings, under io.lock */
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

static struct pai_data *pai_of(struct iosched *io)
{
	return container_of(io, struct pai_data, io);
}

static enum pai_class pai_class_of(struct request *rq)
{
	return (unsigned long)rq->elv.priv[0];
}

/*
 * Well-split, closed or pending
 */

static unsigned int pai_full(struct pai_data *pd, unsigned int dir)
{
	return pai_full_size(&pd->params, &pd->cut[dir],
			     queue_max_sectors(pd->io.q));
}

static bool pai_may_merge(struct iosched *io, unsigned int dir,
			  sector_t start, sector_t end)
{
	return end <= pai_cut_end(&pai_of(io)->cut[dir], start);
}

/* Can merging make @rq larger, at either end? */
static bool pai_may_grow(struct pai_data *pd, struct request *rq)
{
	unsigned int dir = rq_data_dir(rq);
	sector_t pos = blk_rq_pos(rq), end = iosched_rq_end(rq);

	return iosched_rq_mergeable(rq) && !blk_queue_nomerges(rq->q) &&
	       blk_rq_sectors(rq) < queue_max_sectors(rq->q) &&
	       (pai_may_merge(&pd->io, dir, pos, end + 1) ||
		(pos && pai_may_merge(&pd->io, dir, pos - 1, end)));
}

static enum pai_class pai_classify(struct pai_data *pd, struct request *rq)
{
	if (req_op(rq) != REQ_OP_READ && req_op(rq) != REQ_OP_WRITE)
		return PAI_CLOSED;
	if (pai_well_split(&pd->params, blk_rq_pos(rq), blk_rq_sectors(rq),
			   pai_full(pd, rq_data_dir(rq))))
		return PAI_WELL_SPLIT;
	return pai_may_grow(pd, rq) ? PAI_PENDING : PAI_CLOSED;
}

/* How many requests of the kind of @rq do not wait to be merged. */
static unsigned int *pai_free(struct pai_data *pd, struct request *rq)
{
	return &pd->free[iosched_rq_tier(rq)][rq_data_dir(rq)];
}

static void pai_set_class(struct pai_data *pd, struct request *rq,
			  enum pai_class class)
{
	rq->elv.priv[0] = (void *)(unsigned long)class;
	if (class != PAI_PENDING)
		++*pai_free(pd, rq);
}

static struct rb_root *pai_root(struct iosched *io, unsigned int tier,
				unsigned int dir, sector_t sector)
{
	return &pai_of(io)->sort[tier][dir];
}

static struct rb_root *pai_place(struct iosched *io, struct request *rq)
{
	struct pai_data *pd = pai_of(io);

	lockdep_assert_held(&io->lock);
	pai_set_class(pd, rq, pai_classify(pd, rq));
	return &pd->sort[iosched_rq_tier(rq)][rq_data_dir(rq)];
}

static struct rb_root *pai_placed(struct request *rq)
{
	struct pai_data *pd = pai_of(iosched_of(rq->q));

	return &pd->sort[iosched_rq_tier(rq)][rq_data_dir(rq)];
}

static void pai_removed(struct iosched *io, struct request *rq,
			struct request *heir)
{
	lockdep_assert_held(&io->lock);
	if (pai_class_of(rq) != PAI_PENDING)
		--*pai_free(pai_of(io), rq);
}

/* A merge may make a request well-split, and the next one undo that. */
static void pai_resized(struct iosched *io, struct request *rq)
{
	struct pai_data *pd = pai_of(io);
	struct pai_stats *st = &pd->stats[rq_data_dir(rq)];
	enum pai_class was = pai_class_of(rq), class;

	lockdep_assert_held(&io->lock);
	/* Not in a tree: it goes before all others anyway. */
	if (RB_EMPTY_NODE(&rq->rb_node))
		return;
	class = pai_classify(pd, rq);
	pai_removed(io, rq, NULL);
	pai_set_class(pd, rq, class);
	if (was != PAI_PENDING)
		return;
	st->merges++;
	st->promoted += class == PAI_WELL_SPLIT;
	/* It need not wait any more, and a merged bio runs no queue. */
	if (class != PAI_PENDING)
		iosched_wake(io);
}

/*
 * Dispatch
 */

static u64 pai_due(struct pai_data *pd, struct request *rq)
{
	unsigned int us = rq_data_dir(rq) == READ ? pd->read_pending_us :
						    pd->write_pending_us;

	return rq->start_time_ns + (u64)us * NSEC_PER_USEC;
}

/* The oldest request of a direction that need not wait, or does no more. */
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
		pd->kept = now;
		if (!pd->free[tier][dir])
			break;
	}
	return NULL;
}

static struct request *pai_oldest(struct pai_data *pd, unsigned int tier,
				  unsigned int dir)
{
	return list_first_entry_or_null(&pd->io.fifo[tier][dir], struct request,
					queuelist);
}

static struct request *pai_older(struct request *a, struct request *b)
{
	if (!a || !b)
		return a ? a : b;
	return a->start_time_ns <= b->start_time_ns ? a : b;
}

static enum hrtimer_restart pai_timeout(struct hrtimer *timer)
{
	iosched_wake(&container_of(timer, struct pai_data, timer)->io);
	return HRTIMER_NORESTART;
}

/* All requests of the tier wait: look again when the first of them is due. */
static void pai_wait(struct pai_data *pd, unsigned int tier)
{
	struct request *read = pai_oldest(pd, tier, READ);
	struct request *write = pai_oldest(pd, tier, WRITE);
	u64 due = read ? pai_due(pd, read) : U64_MAX;

	if (write)
		due = min(due, pai_due(pd, write));
	if (!hrtimer_is_queued(&pd->timer) ||
	    ktime_to_ns(hrtimer_get_expires(&pd->timer)) > due)
		hrtimer_start(&pd->timer, ns_to_ktime(due), HRTIMER_MODE_ABS);
}

/* The next one of the clustered page that the device has just seen. */
static struct request *pai_same_page(struct pai_data *pd, unsigned int tier)
{
	struct pai_run *run = &pd->run;
	struct request *rq;

	if (tier != run->tier || run->length == PAI_RUN)
		return NULL;
	rq = iosched_from(&pd->sort[tier][run->dir], run->from);
	return rq && blk_rq_pos(rq) < run->to ? rq : NULL;
}

static struct request *pai_select(struct iosched *io, unsigned int tier)
{
	struct pai_data *pd = pai_of(io);
	struct request *read, *write;
	struct request *rq = pai_same_page(pd, tier);

	lockdep_assert_held(&io->lock);
	if (rq) {
		pd->run.length++;
		return rq;
	}
	pd->run.length = 0;

	/* Nothing is well-split: by age, whatever the time. */
	if (!pd->free[tier][READ] && !pd->free[tier][WRITE] &&
	    !atomic_read(&pd->well_split_in_flight))
		return pai_older(pai_oldest(pd, tier, READ),
				 pai_oldest(pd, tier, WRITE));

	read = pai_next(pd, tier, READ);
	write = pai_next(pd, tier, WRITE);
	if (!read && !write)
		pai_wait(pd, tier);
	return pai_older(read, write);
}

/* A pending request goes: for how long was it one? */
static void pai_count_wait(struct pai_data *pd, struct request *rq)
{
	struct pai_stats *st = &pd->stats[rq_data_dir(rq)];
	u64 due = pai_due(pd, rq), until = min(due, ktime_get_ns());
	u64 waited = until - rq->start_time_ns;

	st->waited += waited;
	st->longest = max(st->longest, waited);
	if (until == due) {
		st->expired++;
		iosched_note(&pd->io, "pai due %llu",
			     (unsigned long long)blk_rq_pos(rq));
	}
}

/* The only request goes unless it has well-split ones to wait for. */
static bool pai_alone(struct iosched *io, struct request *rq)
{
	struct pai_data *pd = pai_of(io);
	enum pai_class class = pai_classify(pd, rq);

	lockdep_assert_held(&io->lock);
	rq->elv.priv[0] = (void *)(unsigned long)class;
	return class != PAI_PENDING || !atomic_read(&pd->well_split_in_flight);
}

static void pai_dispatched(struct iosched *io, struct request *rq)
{
	struct pai_data *pd = pai_of(io);
	unsigned int full = pai_full(pd, rq_data_dir(rq));
	struct pai_stats *st = &pd->stats[rq_data_dir(rq)];
	enum pai_class class = pai_class_of(rq);

	lockdep_assert_held(&io->lock);
	pd->run.tier = iosched_rq_tier(rq);
	pd->run.dir = rq_data_dir(rq);
	pd->run.from = blk_rq_pos(rq);
	pd->run.to = pai_page_end(&pd->params, iosched_rq_end(rq));
	st->requests[class]++;
	st->aligned += pai_aligned(&pd->params, blk_rq_pos(rq), full);
	st->full += full && pai_whole_pages(&pd->params,
					    blk_rq_sectors(rq)) == full;
	if (class == PAI_WELL_SPLIT)
		atomic_inc(&pd->well_split_in_flight);
	/* It was not yet there when one last had to wait. */
	if (class == PAI_PENDING && rq->start_time_ns <= pd->kept)
		pai_count_wait(pd, rq);
}

static void pai_released(struct request *rq)
{
	if (pai_class_of(rq) == PAI_WELL_SPLIT)
		atomic_dec(&pai_of(iosched_of(rq->q))->well_split_in_flight);
}

/*
 * Settings
 */

static const char * const pai_align_names[] = { "page", "block" };
static const char * const pai_split_names[] = { "none", "pas", "pasa" };
static const char * const pai_well_split_names[] = { "paper", "aligned" };

/* Take over the settings. Called when no request is in the trees. */
static void pai_settle(struct iosched *io, void *unused)
{
	struct pai_data *pd = pai_of(io);

	pd->params = (struct pai_params) {
		.page		= pd->clustered_page_kb * PAI_KB,
		.block		= pd->clustered_block_kb * PAI_KB,
		.buffer		= { pd->read_buffer_kb * PAI_KB,
				    pd->write_buffer_kb * PAI_KB },
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
	spin_lock(&io->lock);
	WRITE_ONCE(*field, value);
	iosched_replace_all(io, pai_settle, NULL);
	spin_unlock(&io->lock);
	iosched_run(io);
	return 0;
}

/* The largest sizes are beyond any device, and far from overflowing. */
#define PAI_TUNABLES(T, C)						\
	T(pai_data, clustered_page_kb, 16, 1, 65536, pai_set,		\
	  "KB in a clustered page")					\
	T(pai_data, clustered_block_kb, 4096, 1, 1048576, pai_set,	\
	  "KB in a clustered block")					\
	T(pai_data, read_buffer_kb, 0, 0, 1048576, pai_set,		\
	  "KB in the read buffer, 0: none")				\
	T(pai_data, write_buffer_kb, 0, 0, 1048576, pai_set,		\
	  "KB in the write buffer, 0: none")				\
	T(pai_data, read_pending_us, 100, 0, 10000000, iosched_set,	\
	  "us for which a read waits to be merged at most")		\
	T(pai_data, write_pending_us, 1000, 0, 10000000, iosched_set,	\
	  "us for which a write waits to be merged at most")		\
	C(pai_data, align, PAI_ALIGN_PAGE, pai_align_names, pai_set,	\
	  "what requests are aligned to: page, block (default page)")	\
	C(pai_data, split, PAI_SPLIT_NONE, pai_split_names, pai_set,	\
	  "how bios are cut: none, pas, pasa (default none)")		\
	C(pai_data, well_split, PAI_WELL_SPLIT_PAPER,			\
	  pai_well_split_names, pai_set,				\
	  "which requests are well-split: paper, aligned (default paper)")

/*
 * Coming and going
 */

static int pai_init(struct iosched *io)
{
	struct pai_data *pd = pai_of(io);
	unsigned int tier;

	for (tier = 0; tier < IOSCHED_TIERS; tier++) {
		pd->sort[tier][READ] = RB_ROOT;
		pd->sort[tier][WRITE] = RB_ROOT;
	}
	compat_hrtimer_setup(&pd->timer, pai_timeout, CLOCK_MONOTONIC,
			     HRTIMER_MODE_ABS);
	pd->loan = pai_limits_open(io->q);
	return pd->loan ? 0 : -ENOMEM;
}

static void pai_start(struct iosched *io)
{
	pai_settle(io, NULL);
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
	if (pd->loan)
		pai_limits_close(pd->loan);
}

#ifdef CONFIG_BLK_DEBUG_FS
static unsigned int pai_percent(unsigned int part, unsigned int all)
{
	return all ? div_u64(100ULL * part + all / 2, all) : 0;
}

static void pai_classes(struct iosched *io, struct seq_file *m)
{
	struct pai_data *pd = pai_of(io);
	unsigned int dir;

	seq_puts(m, "dir well_split closed pending aligned full aligned_percent full_percent merges promoted expired waited_us longest_us\n");
	for (dir = READ; dir <= WRITE; dir++) {
		struct pai_stats *st = &pd->stats[dir];
		unsigned int *nr = st->requests;
		unsigned int all = nr[PAI_WELL_SPLIT] + nr[PAI_CLOSED] +
				   nr[PAI_PENDING];

		seq_printf(m, "%s %u %u %u %u %u %u %u %u %u %u %llu %llu\n",
			   dir == READ ? "read" : "write", nr[PAI_WELL_SPLIT],
			   nr[PAI_CLOSED], nr[PAI_PENDING], st->aligned,
			   st->full, pai_percent(st->aligned, all),
			   pai_percent(st->full, all), st->merges,
			   st->promoted, st->expired,
			   div_u64(st->waited, NSEC_PER_USEC),
			   div_u64(st->longest, NSEC_PER_USEC));
	}
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
	.root		= pai_root,
	.place		= pai_place,
	.placed		= pai_placed,
	.removed	= pai_removed,
	.resized	= pai_resized,
	.may_merge	= pai_may_merge,
	.select		= pai_select,
	.alone		= pai_alone,
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
