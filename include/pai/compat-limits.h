/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernels in how a queue's limits are changed.
 *
 * iosched_limits_try_begin() makes a copy to be changed, or returns false if another
 * task is changing the limits. iosched_limits_commit() stores its max_sectors and
 * chunk_sectors, and iosched_max_sectors(), or iosched_limits_cancel() drops it; do not
 * sleep in between. @disk is the queue's
 * disk, to which the caller has a reference; if the caller has none it passes NULL,
 * and no disk is touched. iosched_max_sectors() is the field for the largest request
 * that the user wants; 6.9 added it.
 *
 * A write to sysfs freezes the queue to change a limit. iosched_limits_commit() does
 * not: the queue would stay frozen until all polled requests are reaped, and new I/O
 * would wait. The kernel loads each limit once when it splits a bio, so it uses the
 * old limit or the new one; the driver takes both. The read-ahead does not change.
 *
 * From 6.9 a mutex protects the limits, before that queue_lock with interrupts
 * disabled. Do not wait for the mutex: sd sends commands to the disk with it held.
 */
#ifndef _PAI_COMPAT_LIMITS_H
#define _PAI_COMPAT_LIMITS_H

#include <linux/backing-dev-defs.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>

#include "iosched-kernel.h"

/*
 * Return true if polled bios of @q must not be split. 6.1 marks asynchronous polled
 * bios REQ_NOWAIT and fails a REQ_NOWAIT bio that has to be split with -EAGAIN. A
 * worker of io_uring then submits it again for ever.
 */
static inline bool iosched_splits_no_polled(const struct request_queue *q)
{
#ifdef IOSCHED_POLLED_IS_NOWAIT
	return q->tag_set->nr_maps > HCTX_TYPE_POLL &&
	       q->tag_set->map[HCTX_TYPE_POLL].nr_queues;
#else
	return false;
#endif
}

#ifdef IOSCHED_HAVE_LIMITS_LOCK
static inline bool iosched_limits_try_begin(struct request_queue *q,
					    struct queue_limits *lim)
{
	if (!mutex_trylock(&q->limits_lock))
		return false;
	*lim = q->limits;
	return true;
}

static inline void iosched_limits_cancel(struct request_queue *q)
{
	queue_limits_cancel_update(q);
}

static inline unsigned int *iosched_max_sectors(struct queue_limits *lim)
{
	return &lim->max_user_sectors;
}

/*
 * Return true if @boundary would split a write that the device keeps atomic. Such a
 * write begins at a multiple of its size, a power of two up to the largest unit. Devices
 * count them in logical blocks. If these become larger, up to a page, so do atomic writes,
 * and a driver that finds a boundary of less has none any more, with a warning.
 */
static inline bool
iosched_tears_atomic(const struct queue_limits *lim, unsigned int boundary)
{
	unsigned int growth = max(PAGE_SIZE / lim->logical_block_size, 1UL);
	unsigned int whole = (lim->atomic_write_hw_boundary >> SECTOR_SHIFT) * growth;
	unsigned int unit = (lim->atomic_write_hw_unit_max >> SECTOR_SHIFT) * growth;
	unsigned int most = (lim->atomic_write_hw_max >> SECTOR_SHIFT) * growth;

	return most > boundary || (unit && boundary % unit) ||
	       (whole && boundary % whole);
}
#else
static inline bool iosched_limits_try_begin(struct request_queue *q,
					    struct queue_limits *lim)
{
	spin_lock_irq(&q->queue_lock);
	*lim = q->limits;
	return true;
}

static inline void iosched_limits_cancel(struct request_queue *q)
{
	spin_unlock_irq(&q->queue_lock);
}

static inline unsigned int *iosched_max_sectors(struct queue_limits *lim)
{
	return &lim->max_sectors;
}

static inline bool
iosched_tears_atomic(const struct queue_limits *lim, unsigned int boundary)
{
	return false;
}
#endif

static inline void iosched_limits_commit(struct request_queue *q,
					 struct gendisk *disk,
					 const struct queue_limits *lim)
{
#ifdef IOSCHED_HAVE_LIMITS_LOCK
	WRITE_ONCE(q->limits.max_user_sectors, lim->max_user_sectors);
#endif
	WRITE_ONCE(q->limits.max_sectors, lim->max_sectors);
	WRITE_ONCE(q->limits.chunk_sectors, lim->chunk_sectors);
	if (disk)
		disk->bdi->io_pages = lim->max_sectors >>
				      (PAGE_SHIFT - SECTOR_SHIFT);
	iosched_limits_cancel(q);
}

/* The most sectors of a request that the driver takes. */
static inline unsigned int iosched_hw_sectors(const struct queue_limits *lim)
{
	return round_down(min_not_zero(lim->max_hw_sectors,
				       lim->max_dev_sectors),
			  lim->logical_block_size >> SECTOR_SHIFT);
}

#endif /* _PAI_COMPAT_LIMITS_H */
