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
 * later. One worker serves all queues. It never waits for the mutex: a disk that
 * does not answer must not hold up others, nor the end of the module. If the mutex
 * is taken, it tries again later.
 *
 * A loan keeps the queue's own limits. It outlives the elevator until they are
 * restored. The next PAI on the queue takes over a loan that is still there, as it
 * would take PAI's limits for the queue's own. A limit that has another value at the
 * end than PAI gave it was changed by the user or the driver, and is left alone.
 */
#ifndef _PAI_LIMITS_H
#define _PAI_LIMITS_H

#include <linux/delay.h>
#include <linux/workqueue.h>

#include "iosched.h"
#include "pai/compat-limits.h"
#include "pai/geometry.h"

/* Time until the worker tries again, in jiffies. */
#define PAI_RETRY	msecs_to_jiffies(20)

/* Time for which the end of the module waits for the limits of a queue, in ms. */
#define PAI_PATIENCE_MS	5000

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
 * @list: in pai_loans
 * @work: sets the limits for @params. Without a user, restores the queue's own limits
 *	and frees the loan.
 * @q: the queue, with a reference
 * @users: elevators that have the loan. 7.2 has a new one before the old one ends.
 * @disk: its disk, with a reference; NULL if there is none, or no user of the loan
 * @name: the name of the disk
 * @splits_no_polled: see iosched_splits_no_polled()
 * @lock: protects @params and @wanted
 * @params: parameters of the SSD
 * @wanted: @params have been set
 * @max: limit on the size of a request
 * @boundary: limit on where a request may lie
 * @own: largest request that the driver and the user allow
 *
 * pai_loans_lock protects what @lock does not. It may be taken with the queue frozen:
 * its holder waits for nothing.
 */
struct pai_loan {
	struct list_head list;
	struct delayed_work work;
	struct request_queue *q;
	unsigned int users;
	struct gendisk *disk;
	char name[DISK_NAME_LEN];
	bool splits_no_polled;
	spinlock_t lock;	/* see above */
	struct pai_params params;
	bool wanted;

	struct pai_limit max;
	struct pai_limit boundary;
	unsigned int own;
};

static struct workqueue_struct *pai_worker;
static LIST_HEAD(pai_loans);
static DEFINE_MUTEX(pai_loans_lock);
static bool pai_ending;		/* the worker does not try again */

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
			loan->name);
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
			loan->name,
			cut.boundary / IOSCHED_KB_SECTORS, PAGE_SIZE / SZ_1K);
}

/*
 * Set the limits for @params. Restore the queue's own limits if @params is
 * NULL, or if there is no disk and thus no bio to split. Return false if the limits
 * are locked.
 */
static inline bool pai_limits_update(struct pai_loan *loan,
				     const struct pai_params *params)
{
	bool changed = loan->max.set || loan->boundary.set;
	struct queue_limits lim;
	unsigned int *max;
	bool ours;

	if (!iosched_limits_try_begin(loan->q, &lim))
		return false;
	max = iosched_max_sectors(&lim);
	ours = pai_limit_is_ours(&loan->max, max);
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
	return true;
}

/* Let go of a loan that is not in pai_loans. */
static inline void pai_loan_free(struct pai_loan *loan)
{
	if (loan->disk)
		put_disk(loan->disk);
	blk_put_queue(loan->q);
	kfree(loan);
}

/*
 * Copy the parameters before beginning to change the limits. On 6.1 queue_lock
 * protects the limits. blk-throttle's timer takes queue_lock in a softirq,
 * while loan->lock is taken with softirqs enabled. Nesting loan->lock inside
 * would deadlock if that timer expired on the CPU that holds loan->lock.
 */
static void pai_limits_work(struct work_struct *work)
{
	struct pai_loan *loan = container_of(to_delayed_work(work),
					     struct pai_loan, work);
	struct pai_params params;
	bool wanted, done, over;

	mutex_lock(&pai_loans_lock);
	spin_lock(&loan->lock);
	params = loan->params;
	wanted = loan->wanted;
	spin_unlock(&loan->lock);
	done = pai_limits_update(loan, wanted ? &params : NULL);
	over = done && !loan->users;
	if (over)
		list_del(&loan->list);
	if (!done && !pai_ending)
		queue_delayed_work(pai_worker, &loan->work, PAI_RETRY);
	mutex_unlock(&pai_loans_lock);

	if (over) {
		/* pai_limits_close() may have queued it again. */
		cancel_delayed_work(&loan->work);
		pai_loan_free(loan);
	}
}

static inline int pai_limits_load(void)
{
	pai_worker = alloc_ordered_workqueue("pai", 0);
	return pai_worker ? 0 : -ENOMEM;
}

static inline bool pai_loans_left(void)
{
	bool left;

	mutex_lock(&pai_loans_lock);
	left = !list_empty(&pai_loans);
	mutex_unlock(&pai_loans_lock);
	return left;
}

/*
 * Wait until the limits of all queues are restored, but not for a disk that does not
 * answer: it keeps PAI's.
 */
static inline void pai_limits_unload(void)
{
	struct pai_loan *loan, *next;
	unsigned int ms;

	for (ms = 0; ms < PAI_PATIENCE_MS && pai_loans_left(); ms += 20)
		msleep(20);
	mutex_lock(&pai_loans_lock);
	pai_ending = true;
	list_for_each_entry(loan, &pai_loans, list)
		cancel_delayed_work(&loan->work);
	mutex_unlock(&pai_loans_lock);
	destroy_workqueue(pai_worker);
	list_for_each_entry_safe(loan, next, &pai_loans, list) {
		pr_warn("pai: %s does not answer, it keeps the limits that PAI has set\n",
			loan->name);
		pai_loan_free(loan);
	}
}

/* A loan for @q that is in no list, or NULL. */
static inline struct pai_loan *pai_loan_new(struct request_queue *q)
{
	struct pai_loan *loan = kzalloc(sizeof(*loan), GFP_NOIO);

	if (!loan)
		return NULL;
	if (!blk_get_queue(q)) {
		kfree(loan);
		return NULL;
	}
	INIT_DELAYED_WORK(&loan->work, pai_limits_work);
	spin_lock_init(&loan->lock);
	loan->q = q;
	/* The tag set may be freed before the queue. */
	loan->splits_no_polled = iosched_splits_no_polled(q);
	loan->disk = q->disk;
	if (loan->disk) {
		get_device(disk_to_dev(loan->disk));
		strscpy(loan->name, loan->disk->disk_name, sizeof(loan->name));
	}
	return loan;
}

/* The loan of @q that is still there, or NULL. */
static inline struct pai_loan *pai_loan_find(struct request_queue *q)
{
	struct pai_loan *loan;

	list_for_each_entry(loan, &pai_loans, list)
		if (loan->q == q)
			return loan;
	return NULL;
}

/**
 * pai_limits_open() - prepare to change the limits of a queue
 * @q: the queue, which may be frozen
 *
 * Return: a loan, or NULL if there is no memory or the queue is dying.
 */
static inline struct pai_loan *pai_limits_open(struct request_queue *q)
{
	struct pai_loan *new = pai_loan_new(q), *loan;

	if (!new)
		return NULL;
	mutex_lock(&pai_loans_lock);
	loan = pai_loan_find(q);
	if (!loan) {
		list_add(&new->list, &pai_loans);
	} else if (!loan->users) {
		/* The disk may be another one by now. */
		swap(loan->disk, new->disk);
		strscpy(loan->name, new->name, sizeof(loan->name));
		loan->splits_no_polled = new->splits_no_polled;
	}
	if (!loan)
		swap(loan, new);
	loan->users++;
	mutex_unlock(&pai_loans_lock);
	if (new)
		pai_loan_free(new);
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
	loan->wanted = true;
	spin_unlock(&loan->lock);
	queue_delayed_work(pai_worker, &loan->work, 0);
}

/**
 * pai_limits_close() - have the queue's own limits restored
 * @loan: from pai_limits_open(); the caller must not use it any more
 *
 * Without another user, the queue has its own limits at once, or if they are locked, a
 * moment later. The disk is not kept until then: its driver may be unloaded, and the
 * release of a disk clears q->disk even if the queue has another one by then.
 */
static inline void pai_limits_close(struct pai_loan *loan)
{
	struct gendisk *disk = NULL;

	mutex_lock(&pai_loans_lock);
	if (!--loan->users) {
		spin_lock(&loan->lock);
		loan->wanted = false;
		spin_unlock(&loan->lock);
		pai_limits_update(loan, NULL);
		swap(disk, loan->disk);
		queue_delayed_work(pai_worker, &loan->work, 0);
	}
	mutex_unlock(&pai_loans_lock);
	if (disk)
		put_disk(disk);
}

#endif /* _PAI_LIMITS_H */
