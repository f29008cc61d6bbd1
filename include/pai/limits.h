/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PAS and PASA: the limits of a device's queue while PAI has it. The block
 * layer cuts bios by them before an elevator sees any.
 *
 * The limits cannot be changed where PAI is told of a change. The scheduler
 * comes and goes with the queue frozen, and its tunables are written under a
 * lock that coming and going take while it is frozen; the mutex of the limits
 * is to be taken first, as its holders wait for the queue: sd_revalidate_disk()
 * sends commands with it held. Whoever took it with the queue frozen would wait
 * for one who waits for the queue. So the limits are changed by a worker of
 * ours, as the user changes them through sysfs, a moment after; there is one
 * worker, so that changes take effect in the order in which they were asked for,
 * also from one selection of PAI to the next.
 *
 * What has to be given back is in a loan, which outlives the elevator until it
 * is. A limit that somebody else has changed meanwhile is theirs and stays.
 */
#ifndef _PAI_LIMITS_H
#define _PAI_LIMITS_H

#include <linux/workqueue.h>

#include "compat-limits.h"
#include "iosched-compat.h"
#include "pai/geometry.h"

/**
 * struct pai_limit - a limit of the queue
 * @lent: its value before, when @set
 * @ours: the value that it was given
 * @set: it was changed
 */
struct pai_limit {
	unsigned int lent;
	unsigned int ours;
	bool set;
};

/**
 * struct pai_loan - the limits of a queue that PAI has changed
 * @change: gives the queue the limits for @params
 * @end: gives back what the queue had, and frees the loan
 * @q: the queue, with a reference
 * @disk: its disk, with a reference, or NULL once that may not be kept
 * @lock: protects @params
 * @params: what to cut for
 * @max: the limit on a request's size
 * @boundary: the one on where it may lie
 * @own: largest request as the driver and the user have it
 */
struct pai_loan {
	struct work_struct change;
	struct work_struct end;
	struct request_queue *q;
	struct gendisk *disk;
	spinlock_t lock;	/* see above */
	struct pai_params params;

	/* the worker's */
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

/* What PAI leaves behind on devices is tidied up before its code goes. */
static inline void pai_limits_unload(void)
{
	destroy_workqueue(pai_worker);
}

static inline bool pai_limit_is_ours(struct pai_limit *limit,
				     unsigned int *field)
{
	return limit->set && *field == limit->ours;
}

static inline void pai_limit_give_back(struct pai_limit *limit,
				       unsigned int *field)
{
	if (pai_limit_is_ours(limit, field))
		*field = limit->lent;
	limit->set = false;
}

static inline void pai_limit_take(struct pai_limit *limit, unsigned int *field,
				  unsigned int value)
{
	limit->lent = *field;
	limit->ours = value;
	limit->set = true;
	*field = value;
}

/*
 * May requests be kept from crossing multiples of @boundary? Not where that
 * limit means zones, would let them cross what the driver has there, or would
 * cut within a logical block or what the device writes as a whole.
 */
static inline bool pai_may_bound(struct request_queue *q,
				 const struct queue_limits *lim,
				 unsigned int boundary)
{
	return !blk_queue_is_zoned(q) &&
	       !(lim->chunk_sectors && lim->chunk_sectors % boundary) &&
	       !(boundary % (lim->logical_block_size >> SECTOR_SHIFT)) &&
	       !iosched_tears_atomic(lim, boundary);
}

static inline void pai_limits_ask(struct pai_loan *loan,
				  const struct pai_params *params,
				  struct queue_limits *lim)
{
	unsigned int block = lim->logical_block_size >> SECTOR_SHIFT;
	unsigned int page = PAGE_SIZE >> SECTOR_SHIFT;
	struct pai_cut cut = pai_queue_cut(params, loan->own);

	/* The block layer wants a page and a logical block to fit. */
	cut.max = max3(round_down(cut.max, block), block, page);
	if (cut.max < loan->own)
		pai_limit_take(&loan->max, iosched_max_sectors(lim), cut.max);
	if (!cut.boundary)
		return;
	if (pai_may_bound(loan->q, lim, cut.boundary))
		pai_limit_take(&loan->boundary, &lim->chunk_sectors,
			       cut.boundary);
	else
		pr_warn("pai: %s: a boundary of %u KB does not go with the device's limits, none is set\n",
			loan->disk->disk_name, cut.boundary / 2);
}

/*
 * Set the limits for @params, or give back what the queue had if it is NULL or
 * there is no disk, which means no bios to cut.
 */
static inline void pai_limits_update(struct pai_loan *loan,
				     const struct pai_params *params)
{
	struct queue_limits lim = iosched_limits_begin(loan->q);
	unsigned int *max = iosched_max_sectors(&lim);
	bool changed = loan->max.set || loan->boundary.set;
	bool ours = pai_limit_is_ours(&loan->max, max);

	/* Without ours, the limit is what the driver and the user made it. */
	if (!ours)
		loan->own = lim.max_sectors;
	pai_limit_give_back(&loan->max, max);
	pai_limit_give_back(&loan->boundary, &lim.chunk_sectors);
	/* A commit with a disk works it out anew. */
	if (ours)
		lim.max_sectors = loan->own;
	if (params && loan->disk)
		pai_limits_ask(loan, params, &lim);

	if (!changed && !loan->max.set && !loan->boundary.set)
		iosched_limits_cancel(loan->q);
	else if (iosched_limits_commit(loan->q, loan->disk, &lim))
		pr_warn("pai: the queue refused its limits\n");
}

/*
 * Copy the parameters before taking the limits. On 6.1 these are protected by
 * queue_lock, which blk-throttle's timer takes in a softirq, while loan->lock
 * is taken with softirqs enabled: nesting it inside would deadlock if that timer
 * fired on the CPU that holds loan->lock.
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
 * pai_limits_open() - PAI comes to a queue
 * @q: the queue, maybe frozen
 *
 * Return: a loan that has changed nothing yet, or NULL.
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
	loan->disk = q->disk;
	if (loan->disk)
		get_device(disk_to_dev(loan->disk));
	return loan;
}

/**
 * pai_limits_set() - cut bios for an SSD's parameters from now on
 * @loan: from pai_limits_open()
 * @params: the parameters
 *
 * Any context that may take a spinlock, also with the queue frozen; the queue
 * has its new limits a moment later.
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
 * pai_limits_close() - PAI leaves the queue
 * @loan: from pai_limits_open(); not to be used any more
 *
 * The queue has its own limits back a moment later. The disk must not be put
 * for the last time once its driver's code has gone, so it is kept until then
 * only if the driver stays as well.
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
