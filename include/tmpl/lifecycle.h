/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A scheduler's start and end on a device. A part of iosched-tmpl.h.
 */
#ifndef _IOSCHED_TMPL_LIFECYCLE_H
#define _IOSCHED_TMPL_LIFECYCLE_H

#include "tmpl/bounds.h"
#include "tmpl/bypass.h"
#include "tmpl/deadlines.h"
#include "tmpl/driver.h"
#include "tmpl/in-flight.h"
#include "tmpl/policy.h"
#include "tmpl/readers/turns.h"
#include "tmpl/tunables.h"

/*
 * The queue may still have another elevator, and keep it if the switch fails. It
 * may be frozen, so reclaim must not write to it.
 */
static struct iosched *iosched_new(struct request_queue *q)
{
	struct iosched *io = kzalloc_node(IOSCHED_POLICY.size, GFP_NOIO,
					  q->node);
	unsigned int tier;
	int ret;

	if (!io)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&io->lock);
	io->q = q;
	timer_setup(&io->timer, iosched_timeout, 0);
	compat_hrtimer_setup(&io->turns.timer, iosched_turns_timeout,
			     CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	io->turns.soon = IOSCHED_ALL_SOON / 2;
	io->phases.since_us = iosched_now_us();
	INIT_LIST_HEAD(&io->head);
	INIT_LIST_HEAD(&io->moving);
	INIT_LIST_HEAD(&io->free);
	for (tier = 0; tier < IOSCHED_TIERS; tier++) {
		INIT_LIST_HEAD(&io->fifo[tier][READ]);
		INIT_LIST_HEAD(&io->fifo[tier][WRITE]);
	}
	iosched_tunables_init(io);
	io->last[READ] = jiffies - IOSCHED_READERS_GONE;
	io->last[WRITE] = jiffies;
	ret = IOSCHED_POLICY.init ? IOSCHED_POLICY.init(io) : 0;
	if (ret) {
		kfree(io);
		return ERR_PTR(ret);
	}
	return io;
}

/* alloc_sched_data(): any failure is NULL. */
static inline void *iosched_new_data(struct request_queue *q)
{
	struct iosched *io = iosched_new(q);

	return IS_ERR(io) ? NULL : io;
}

static void iosched_free(void *data)
{
	if (IOSCHED_POLICY.exit)
		IOSCHED_POLICY.exit(data);
	kfree(data);
}

static int iosched_init_sched(struct request_queue *q, iosched_init_t *handle)
{
	struct elevator_queue *eq = iosched_eq_get(q, handle);
	struct iosched *io;

	if (!eq)
		return -ENOMEM;
	io = iosched_data_get(q, eq, iosched_new);
	if (IS_ERR(io)) {
		iosched_eq_put(eq);
		return PTR_ERR(io);
	}
	/* The order is the device's: run one hardware queue at a time. */
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	iosched_init_async_depth(q, io->async_depth);
	iosched_driver_init(io);
	iosched_bypass_init(io);
	iosched_count_limit(io);
	q->elevator = eq;
	if (IOSCHED_POLICY.start)
		IOSCHED_POLICY.start(io);
	return 0;
}

/* Warn unless every request that was inserted has completed or merged. */
static void iosched_check_left(struct iosched *io)
{
	unsigned int tier, dir;

	WARN_ON_ONCE(!list_empty(&io->head) || !list_empty(&io->moving) ||
		     !list_empty(&io->free) || io->fresh);
	WARN_ON_ONCE(iosched_any_bypassing(io));
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (dir = READ; dir <= WRITE; dir++) {
			struct iosched_stats *st = &io->stats[tier][dir];
			struct iosched_done *done = &io->done[tier][dir];
			unsigned int completed = atomic_read(&done->completed);

			WARN_ON_ONCE(!list_empty(&io->fifo[tier][dir]));
			WARN_ONCE(st->inserted != st->merged + completed,
				  "%s: tier %u dir %u: inserted %u, merged %u, completed %u\n",
				  IOSCHED_NAME, tier, dir, st->inserted,
				  st->merged, completed);
		}
}

static void iosched_exit_sched(struct elevator_queue *eq)
{
	struct iosched *io = eq->elevator_data;

	iosched_check_left(io);
	timer_delete_sync(&io->timer);
	hrtimer_cancel(&io->turns.timer);
	if (IOSCHED_POLICY.stop)
		IOSCHED_POLICY.stop(io);
	iosched_data_put(io, iosched_free);
}

#endif /* _IOSCHED_TMPL_LIFECYCLE_H */
