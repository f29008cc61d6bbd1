/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernels in how a queue's limits are changed.
 *
 * iosched_limits_begin() returns a copy to be changed. iosched_limits_commit()
 * stores it, or iosched_limits_cancel() drops it; do not sleep in between. @disk
 * is the queue's disk, to which the caller has a reference; if the caller has
 * none it passes NULL, and no disk is touched. iosched_max_sectors() is the field
 * for the largest request that the user wants; 6.9 added it.
 *
 * From 6.9 a mutex protects the limits, before that queue_lock with interrupts
 * disabled. Call iosched_limits_begin() with no lock held and the queue not frozen
 * by the caller: sd sends commands to the queue with the mutex held.
 */
#ifndef _COMPAT_LIMITS_H
#define _COMPAT_LIMITS_H

#include <linux/backing-dev-defs.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/pagemap.h>

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
static inline struct queue_limits iosched_limits_begin(struct request_queue *q)
{
	return queue_limits_start_update(q);
}

static inline void iosched_limits_cancel(struct request_queue *q)
{
	queue_limits_cancel_update(q);
}

/* The read-ahead to which blk_apply_bdi_limits() raises @pages. */
static inline unsigned long
iosched_raised_ra(const struct queue_limits *lim, unsigned long pages)
{
	u64 opt = lim->io_opt;

#ifdef IOSCHED_HAVE_FREEZE_FLAGS
	if (!opt && (lim->features & BLK_FEAT_ROTATIONAL))
		opt = (u64)lim->max_sectors << SECTOR_SHIFT;
#endif
	return max3(pages, (unsigned long)(opt * 2 >> PAGE_SHIFT),
		    (unsigned long)VM_READAHEAD_PAGES);
}

/*
 * A commit raises a read-ahead that the user has set below the kernel's default.
 * Restore the user's value, unless the user writes another one meanwhile. On 7.2
 * a write to queue/read_ahead_kb waits for the mutex of the limits. 6.12 has no
 * lock there, so freeze the queue, which may take long, before reading the
 * value. Two writes can still be lost: one of exactly the raised value between
 * the commit and the cmpxchg(), and one of less than that during the commit,
 * which overwrites it (6.12: through sysfs; all kernels: BLKRASET and the bdi's
 * read_ahead_kb, which take no lock).
 */
static inline int
iosched_limits_commit(struct request_queue *q, struct gendisk *disk,
		      struct queue_limits *lim)
{
	unsigned long pages;
	int ret;

	if (!disk) {
		/* A commit would use q->disk, which may be freed meanwhile. */
		q->limits.max_user_sectors = lim->max_user_sectors;
		q->limits.max_sectors = lim->max_sectors;
		q->limits.chunk_sectors = lim->chunk_sectors;
		queue_limits_cancel_update(q);
		return 0;
	}
#ifdef IOSCHED_HAVE_FREEZE_FLAGS
	pages = READ_ONCE(disk->bdi->ra_pages);
	ret = queue_limits_commit_update_frozen(q, lim);
#else
	blk_mq_freeze_queue(q);
	pages = READ_ONCE(disk->bdi->ra_pages);
	ret = queue_limits_commit_update(q, lim);
	blk_mq_unfreeze_queue(q);
#endif
	if (!ret)
		cmpxchg(&disk->bdi->ra_pages, iosched_raised_ra(lim, pages),
			pages);
	return ret;
}

static inline unsigned int *iosched_max_sectors(struct queue_limits *lim)
{
	return &lim->max_user_sectors;
}

/* Return true if @boundary would split a write that the device keeps atomic. */
static inline bool
iosched_tears_atomic(const struct queue_limits *lim, unsigned int boundary)
{
	unsigned int whole = lim->atomic_write_hw_boundary >> SECTOR_SHIFT;

	return lim->atomic_write_hw_max >> SECTOR_SHIFT > boundary ||
	       (whole && boundary % whole);
}
#else
static inline struct queue_limits iosched_limits_begin(struct request_queue *q)
{
	spin_lock_irq(&q->queue_lock);
	return q->limits;
}

static inline void iosched_limits_cancel(struct request_queue *q)
{
	spin_unlock_irq(&q->queue_lock);
}

static inline int
iosched_limits_commit(struct request_queue *q, struct gendisk *disk,
		      struct queue_limits *lim)
{
	q->limits.max_sectors = lim->max_sectors;
	q->limits.chunk_sectors = lim->chunk_sectors;
	if (disk)
		disk->bdi->io_pages = lim->max_sectors >>
				      (PAGE_SHIFT - SECTOR_SHIFT);
	spin_unlock_irq(&q->queue_lock);
	return 0;
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

#endif /* _COMPAT_LIMITS_H */
