/* SPDX-License-Identifier: GPL-2.0 */
/*
 * debugfs files of every scheduler in /sys/kernel/debug/block/<disk>/sched/:
 * "stats" (counters of requests by tier and direction), "queue" (the queued
 * requests, oldest first) and "readers" (what reads get beside writes, and what it costs).
 */
#ifndef _IOSCHED_DEBUGFS_H
#define _IOSCHED_DEBUGFS_H

#include "iosched.h"

#ifdef CONFIG_BLK_DEBUG_FS

static struct elevator_type iosched_type;

/*
 * The elevator of a queue if it is one of this module's, otherwise NULL: on 7.2 a file
 * may be read before the queue has the scheduler, or after.
 */
static struct iosched *iosched_shown(struct request_queue *q)
{
	struct elevator_queue *eq = READ_ONCE(q->elevator);

	return eq && eq->type == &iosched_type ? eq->elevator_data : NULL;
}

/*
 * Call @show for each row until it returns false. Each row is a hold of the lock of its
 * own, with all queued requests sorted, as a file may have thousands: the rows may be of
 * different times.
 */
static int iosched_show_rows(struct request_queue *q, struct seq_file *m,
			     bool (*show)(struct iosched *io,
					  struct seq_file *m, unsigned int row))
{
	struct iosched *io = iosched_shown(q);
	unsigned int row = 0;
	bool more = true;

	if (!io)
		return -ENODEV;
	while (more) {
		spin_lock(&io->lock);
		iosched_sort_fresh(io);
		more = show(io, m, row++);
		spin_unlock(&io->lock);
		cond_resched();
	}
	return 0;
}

/*
 * Make a debugfs file from a function (struct iosched *io, struct seq_file *m,
 * unsigned int row), which prints a row or nothing and returns true if more may follow.
 */
#define IOSCHED_SHOW_ROWS(show)						\
static int show##_show(void *data, struct seq_file *m)			\
{									\
	return iosched_show_rows(data, m, show);			\
}

/* The same from a function without a row, which prints a few lines. */
#define IOSCHED_SHOW(show)						\
static bool show##_row(struct iosched *io, struct seq_file *m,		\
		       unsigned int row)				\
{									\
	show(io, m);							\
	return false;							\
}									\
									\
static int show##_show(void *data, struct seq_file *m)			\
{									\
	return iosched_show_rows(data, m, show##_row);			\
}

static const char * const iosched_tier_names[] = { "rt", "be", "idle" };
static const char * const iosched_dir_names[] = { "read", "write" };

static void iosched_counters_of(struct iosched *io, struct seq_file *m,
				unsigned int tier, unsigned int dir)
{
	struct iosched_stats *st = &io->stats[tier][dir];
	struct iosched_done *done = &io->done[tier][dir];
	/*
	 * Completions change these in the reverse order, so that neither of the
	 * numbers that follow from them is negative.
	 */
	unsigned int completed = atomic_read_acquire(&done->completed);
	unsigned int undispatched = atomic_read_acquire(&done->undispatched);
	unsigned int requeued = atomic_read_acquire(&done->requeued);
	unsigned int polled = atomic_read(&done->polled);
	unsigned int left = st->inserted - st->merged;
	unsigned int queued = left - st->dispatched - undispatched + requeued;
	unsigned int bypass_done = 0, bypassed = 0;

	if (tier == IOSCHED_BE) {
		bypass_done = atomic_read_acquire(&io->bypass_done[dir]);
		bypassed = atomic_read(&io->bypassed[dir]);
	}
	seq_printf(m, "%s %s %u %u %u %u %u %u %u %u %u %u\n",
		   iosched_tier_names[tier], iosched_dir_names[dir],
		   st->inserted + bypassed, st->merged,
		   st->dispatched + bypassed, completed + bypass_done,
		   st->expired, requeued, queued,
		   left - queued - completed - polled + bypassed - bypass_done,
		   polled, bypassed);
}

static void iosched_counters(struct iosched *io, struct seq_file *m)
{
	unsigned int tier, dir;

	seq_puts(m, "tier dir inserted merged dispatched completed expired requeued queued in_flight polled bypassed\n");
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (dir = READ; dir <= WRITE; dir++)
			iosched_counters_of(io, m, tier, dir);
}

IOSCHED_SHOW(iosched_counters)

/*
 * "queue": the lists of queued requests one after another. The lock is held while a page
 * of the file is filled.
 */

#define IOSCHED_LISTS	(1 + IOSCHED_TIERS * IOSCHED_DIRS)

/* The list of a number below IOSCHED_LISTS. */
static struct list_head *iosched_list(struct iosched *io, unsigned int nr)
{
	return nr ? &io->fifo[0][0] + nr - 1 : &io->head;
}

/* The number of the list whose head @entry is, or IOSCHED_LISTS if it is a request. */
static unsigned int iosched_list_nr(struct iosched *io, struct list_head *entry)
{
	unsigned int nr;

	for (nr = 0; nr < IOSCHED_LISTS; nr++)
		if (entry == iosched_list(io, nr))
			break;
	return nr;
}

/* The entry that follows @skip others in the lists from @nr on, or NULL. */
static struct list_head *iosched_list_entry(struct iosched *io, unsigned int nr,
					    loff_t skip)
{
	struct list_head *entry;

	for (; nr < IOSCHED_LISTS; nr++)
		list_for_each(entry, iosched_list(io, nr))
			if (!skip--)
				return entry;
	return NULL;
}

/*
 * Return @entry, and unlock if it is NULL: then nothing is queued that would keep the
 * queue from a switch, and @io may not be the queue's any more when the file is stopped.
 */
static struct list_head *iosched_found(struct iosched *io,
				       struct list_head *entry)
	__must_hold(&io->lock)
{
	if (!entry) {
		spin_unlock(&io->lock);
		__acquire(&io->lock);
	}
	return entry;
}

static void *iosched_queue_start(struct seq_file *m, loff_t *pos)
	__acquires(&io->lock)
{
	struct iosched *io = iosched_shown(m->private);

	if (!io) {
		__acquire(&io->lock);
		return ERR_PTR(-ENODEV);
	}
	spin_lock(&io->lock);
	iosched_sort_fresh(io);
	return iosched_found(io, iosched_list_entry(io, 0, *pos));
}

static void *iosched_queue_next(struct seq_file *m, void *entry, loff_t *pos)
{
	struct iosched *io = iosched_shown(m->private);
	struct list_head *next = ((struct list_head *)entry)->next;
	unsigned int nr = iosched_list_nr(io, next);

	++*pos;
	if (nr < IOSCHED_LISTS)
		next = iosched_list_entry(io, nr + 1, 0);
	return iosched_found(io, next);
}

static void iosched_queue_stop(struct seq_file *m, void *entry)
	__releases(&io->lock)
{
	struct iosched *io = iosched_shown(m->private);

	if (IS_ERR_OR_NULL(entry))
		__release(&io->lock);
	else
		spin_unlock(&io->lock);
}

static int iosched_queue_show(struct seq_file *m, void *entry)
{
	struct iosched *io = iosched_shown(m->private);
	struct list_head *before = ((struct list_head *)entry)->prev;
	unsigned int nr = iosched_list_nr(io, before);

	if (!nr)
		seq_puts(m, "head:\n");
	else if (nr < IOSCHED_LISTS)
		seq_printf(m, "%s %s:\n",
			   iosched_tier_names[(nr - 1) / IOSCHED_DIRS],
			   iosched_dir_names[(nr - 1) % IOSCHED_DIRS]);
	return blk_mq_debugfs_rq_show(m, entry);
}

static const struct seq_operations iosched_queue_ops = {
	.start	= iosched_queue_start,
	.next	= iosched_queue_next,
	.stop	= iosched_queue_stop,
	.show	= iosched_queue_show,
};

static void iosched_readers(struct iosched *io, struct seq_file *m)
{
	struct iosched_phases *phases = &io->phases;
	struct iosched_turns *turns = &io->turns;

	seq_printf(m, "owed_us %u\nreads_soon %u\ncame %u\nmissed %u\nwaited_us %llu\n",
		   READ_ONCE(io->owed_us), turns->soon, turns->came,
		   turns->missed, turns->waited_us);
	seq_printf(m, "takes_one %u\nkept %u\n", READ_ONCE(io->driver.one),
		   READ_ONCE(io->driver.seen));
	seq_printf(m, "alone %u\ntried %u\npaid %u\nalone_us %llu\n",
		   phases->alone, phases->tried, phases->paid, phases->alone_us);
}

IOSCHED_SHOW(iosched_readers)

#define IOSCHED_CORE_DEBUGFS						\
	{ "readers", 0400, iosched_readers_show },			\
	{ "stats", 0400, iosched_counters_show },			\
	{ "queue", 0400, .seq_ops = &iosched_queue_ops }

#endif /* CONFIG_BLK_DEBUG_FS */
#endif /* _IOSCHED_DEBUGFS_H */
