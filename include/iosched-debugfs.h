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
 * Make a debugfs file from a function (struct iosched *io, struct seq_file *m).
 * It is called under the lock, with all queued requests sorted. On 7.2 a file
 * may be read before the queue has the scheduler, or after.
 */
#define IOSCHED_SHOW(show)						\
static int show##_show(void *data, struct seq_file *m)			\
{									\
	struct request_queue *q = data;					\
	struct elevator_queue *eq = READ_ONCE(q->elevator);		\
	struct iosched *io;						\
									\
	if (!eq || eq->type != &iosched_type)				\
		return -ENODEV;						\
	io = eq->elevator_data;						\
	spin_lock(&io->lock);						\
	iosched_sort_fresh(io);						\
	show(io, m);							\
	spin_unlock(&io->lock);						\
	return 0;							\
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

static void iosched_list_show(struct seq_file *m, const char *name,
			      struct list_head *list)
{
	struct request *rq;

	if (list_empty(list))
		return;
	seq_printf(m, "%s:\n", name);
	list_for_each_entry(rq, list, queuelist)
		blk_mq_debugfs_rq_show(m, &rq->queuelist);
}

static void iosched_queue(struct iosched *io, struct seq_file *m)
{
	unsigned int tier, dir;
	char name[16];

	iosched_list_show(m, "head", &io->head);
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (dir = READ; dir <= WRITE; dir++) {
			snprintf(name, sizeof(name), "%s %s",
				 iosched_tier_names[tier],
				 iosched_dir_names[dir]);
			iosched_list_show(m, name, &io->fifo[tier][dir]);
		}
}

IOSCHED_SHOW(iosched_queue)

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
	{ "queue", 0400, iosched_queue_show }

#endif /* CONFIG_BLK_DEBUG_FS */
#endif /* _IOSCHED_DEBUGFS_H */
