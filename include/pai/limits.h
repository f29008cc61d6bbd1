/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PAS and PASA (rules 1 and 2): the limits of a queue while PAI is its
 * elevator. The block layer splits bios by these limits before the elevator
 * sees them.
 *
 * PAI cannot change the limits at once when it starts or stops, or when a
 * tunable is written. An elevator starts and stops with the queue frozen, and
 * tunables are written under a lock that is taken for both with the queue
 * frozen. Taking the limits mutex with the queue frozen would deadlock: its
 * holder may be waiting for the queue to unfreeze, as sd_revalidate_disk()
 * sends commands with the mutex held. So a worker changes the limits a moment
 * later. One worker serves all queues and keeps the order of the changes, also
 * across the end of one elevator and the start of the next.
 *
 * A loan keeps the queue's own limits. It outlives the elevator until they are
 * restored. A limit that has another value by then than PAI gave it was changed
 * by the user or the driver, and is left alone.
 */
#ifndef _PAI_LIMITS_H
#define _PAI_LIMITS_H

#include <linux/workqueue.h>

#include "compat-limits.h"
#include "iosched.h"
#include "pai/geometry.h"

/**
 * struct pai_limit - a limit of the queue
 * @saved: its value before PAI changed it
 * @ours: the value that PAI gave it
 * @set: PAI has changed it; otherwise @saved and @ours mean nothing
 */
struct pai_limit {
	unsigned int saved;
	unsigned int ours;
	bool set;
};

/**
 * struct pai_loan - the limits of a queue that PAI has changed
 * @change: sets the limits for @params
 * @end: restores the queue's own limits and frees the loan
 * @q: the queue, with a reference
 * @disk: its disk, with a reference; NULL if there is none or it must not
 *	be kept
 * @splits_no_polled: see iosched_splits_no_polled()
 * @lock: protects @params
 * @params: parameters of the SSD
 * @max: limit on the size of a request
 * @boundary: limit on where a request may lie
 * @own: largest request that the driver and the user allow
 */
struct pai_loan {
	struct work_struct change;
	struct work_struct end;
	struct request_queue *q;
	struct gendisk *disk;
	bool splits_no_polled;
	spinlock_t lock;	/* see above */
	struct pai_params params;

	/* only used by the worker */
	struct pai_limit max;
	struct pai_limit boundary;
	unsigned int own;
};

static struct workqueue_struct *pai_worker;

static inline int pai_limits_load(void)
{
	pai_worker = alloc_ordered_workqueue("pai", 0);
	return pai_worker ? 0 : -ENOMEM;
}

/* Waits until the limits of all queues are restored. */
static inline void pai_limits_unload(void)
{
	destroy_workqueue(pai_worker);
}

static inline bool pai_limit_is_ours(struct pai_limit *limit,
				     unsigned int *field)
{
	return limit->set && *field == limit->ours;
}

static inline void pai_limit_restore(struct pai_limit *limit,
				     unsigned int *field)
{
	if (pai_limit_is_ours(limit, field))
		*field = limit->saved;
	limit->set = false;
}

static inline void pai_limit_override(struct pai_limit *limit,
				      unsigned int *field, unsigned int value)
{
	limit->saved = *field;
	limit->ours = value;
	limit->set = true;
	*field = value;
}

/*
 * Return true if chunk_sectors may be set to @boundary. It may not if it is the
 * size of zones, if requests would cross the driver's own boundary, or if they
 * would be cut within a logical block or within an atomic write. A driver keeps
 * chunk_sectors when its logical blocks become larger, so none up to a page may
 * be cut: the block layer of 6.1 dies of a bio of which no sector fits, that of
 * 6.12 sends it without data.
 */
static inline bool pai_may_bound(struct request_queue *q,
				 const struct queue_limits *lim,
				 unsigned int boundary)
{
	unsigned int block = max_t(unsigned int, lim->logical_block_size,
				   PAGE_SIZE) >> SECTOR_SHIFT;

	return !blk_queue_is_zoned(q) &&
	       !(lim->chunk_sectors && lim->chunk_sectors % boundary) &&
	       !(boundary % block) &&
	       !iosched_tears_atomic(lim, boundary);
}

static inline void pai_limits_override(struct pai_loan *loan,
				       const struct pai_params *params,
				       struct queue_limits *lim)
{
	unsigned int block = lim->logical_block_size >> SECTOR_SHIFT;
	unsigned int page = PAGE_SIZE >> SECTOR_SHIFT;
	struct pai_cut cut = pai_queue_cut(params, loan->own);

	/* The block layer requires room for a page and a logical block. */
	cut.max = max3(round_down(cut.max, block), block, page);
	if ((cut.max < loan->own || cut.boundary) && loan->splits_no_polled) {
		pr_warn("pai: %s has queues for polling: split has no effect, this kernel never ends polled I/O that it has to split\n",
			loan->disk->disk_name);
		return;
	}
	if (cut.max < loan->own) {
		pai_limit_override(&loan->max, iosched_max_sectors(lim),
				   cut.max);
		lim->max_sectors = cut.max;
	}
	if (!cut.boundary)
		return;
	if (pai_may_bound(loan->q, lim, cut.boundary))
		pai_limit_override(&loan->boundary, &lim->chunk_sectors,
				   cut.boundary);
	else
		pr_warn("pai: %s: a boundary of %u KB is no multiple of %lu KB or conflicts with the device's limits, and is not set\n",
			loan->disk->disk_name,
			cut.boundary / IOSCHED_KB_SECTORS, PAGE_SIZE / SZ_1K);
}

/*
 * Set the limits for @params. Restore the queue's own limits if @params is
 * NULL, or if there is no disk and thus no bio to split.
 */
static inline void pai_limits_update(struct pai_loan *loan,
				     const struct pai_params *params)
{
	struct queue_limits lim = iosched_limits_begin(loan->q);
	unsigned int *max = iosched_max_sectors(&lim);
	bool changed = loan->max.set || loan->boundary.set;
	bool ours = pai_limit_is_ours(&loan->max, max);

	/*
	 * If it is not ours, the limit is the driver's and the user's. Otherwise the
	 * driver may take less by now.
	 */
	loan->own = ours ? min(loan->own, iosched_hw_sectors(&lim)) :
			   lim.max_sectors;
	pai_limit_restore(&loan->max, max);
	pai_limit_restore(&loan->boundary, &lim.chunk_sectors);
	lim.max_sectors = loan->own;
	if (params && loan->disk)
		pai_limits_override(loan, params, &lim);

	if (changed || loan->max.set || loan->boundary.set)
		iosched_limits_commit(loan->q, loan->disk, &lim);
	else
		iosched_limits_cancel(loan->q);
}

/*
 * Copy the parameters before beginning to change the limits. On 6.1 queue_lock
 * protects the limits. blk-throttle's timer takes queue_lock in a softirq,
 * while loan->lock is taken with softirqs enabled. Nesting loan->lock inside
 * would deadlock if that timer expired on the CPU that holds loan->lock.
 */
static void pai_limits_change(struct work_struct *work)
{
	struct pai_loan *loan = container_of(work, struct pai_loan, change);
	struct pai_params params;

	spin_lock(&loan->lock);
	params = loan->params;
	spin_unlock(&loan->lock);
	pai_limits_update(loan, &params);
}

static void pai_limits_end(struct work_struct *work)
{
	struct pai_loan *loan = container_of(work, struct pai_loan, end);

	pai_limits_update(loan, NULL);
	if (loan->disk) {
		struct module *driver = loan->disk->fops->owner;

		put_disk(loan->disk);
		module_put(driver);
	}
	blk_put_queue(loan->q);
	kfree(loan);
}

/**
 * pai_limits_open() - prepare to change the limits of a queue
 * @q: the queue, which may be frozen
 *
 * Return: a loan, which has changed nothing yet, or NULL if there is no memory
 * or the queue is dying.
 */
static inline struct pai_loan *pai_limits_open(struct request_queue *q)
{
	struct pai_loan *loan = kzalloc(sizeof(*loan), GFP_NOIO);

	if (!loan)
		return NULL;
	if (!blk_get_queue(q)) {
		kfree(loan);
		return NULL;
	}
	INIT_WORK(&loan->change, pai_limits_change);
	INIT_WORK(&loan->end, pai_limits_end);
	spin_lock_init(&loan->lock);
	loan->q = q;
	/* The tag set may be freed before the queue. */
	loan->splits_no_polled = iosched_splits_no_polled(q);
	loan->disk = q->disk;
	if (loan->disk)
		get_device(disk_to_dev(loan->disk));
	return loan;
}

/**
 * pai_limits_set() - have bios split for the parameters of an SSD
 * @loan: from pai_limits_open()
 * @params: the parameters
 *
 * Process context, with spinlocks held or the queue frozen as well. The queue
 * has the new limits a moment later.
 */
static inline void pai_limits_set(struct pai_loan *loan,
				  const struct pai_params *params)
{
	spin_lock(&loan->lock);
	loan->params = *params;
	spin_unlock(&loan->lock);
	queue_work(pai_worker, &loan->change);
}

/**
 * pai_limits_close() - have the queue's own limits restored
 * @loan: from pai_limits_open(); the caller must not use it any more
 *
 * The queue has its own limits a moment later. The last reference to a disk
 * must not be dropped after its driver was unloaded. So the disk is kept until
 * then only if its driver can be kept loaded.
 */
static inline void pai_limits_close(struct pai_loan *loan)
{
	if (loan->disk && !try_module_get(loan->disk->fops->owner)) {
		put_disk(loan->disk);
		loan->disk = NULL;
	}
	queue_work(pai_worker, &loan->end);
}

#endif /* _PAI_LIMITS_H */
