/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kernel differences, all of them: the schedulers are written against the
 * newest interface (7.2) and older kernels are adapted here, by what the
 * kernel has (IOSCHED_HAVE_*, found by scripts/gen-kernel-header), not by its
 * version. Also here: small macros and inline functions of the block layer
 * that neither BTF nor a header package holds.
 */
#ifndef _IOSCHED_COMPAT_H
#define _IOSCHED_COMPAT_H

#include <linux/backing-dev-defs.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/blktrace_api.h>
#include <linux/ioprio.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/sbitmap.h>
#include <trace/events/block.h>

#include "iosched-kernel.h"

/* Set while the elevator has a request prepared: finish_request() will come. */
#ifdef RQF_ELVPRIV
#define IOSCHED_RQF_PREPARED	RQF_ELVPRIV
#else
#define IOSCHED_RQF_PREPARED	RQF_USE_SCHED
#endif

/*
 * Prepare @rq as the block layer should have. A plug allocates requests in
 * advance by its first operation; 6.12 leaves them unprepared when that is
 * passthrough, although reads and writes may get them. 6.1 does not prepare FUA
 * writes and inserts them after a requeue.
 */
static inline void iosched_late_prepare(struct request *rq,
					void (*prepare)(struct request *rq))
{
	if (likely(rq->rq_flags & IOSCHED_RQF_PREPARED))
		return;
	INIT_HLIST_NODE(&rq->hash);
	prepare(rq);
	rq->rq_flags |= IOSCHED_RQF_PREPARED;
}

/* The core's test for a request that may be merged with, as in block/blk.h. */
static inline bool iosched_rq_mergeable(struct request *rq)
{
	return !blk_rq_is_passthrough(rq) && req_op(rq) != REQ_OP_FLUSH &&
	       req_op(rq) != REQ_OP_WRITE_ZEROES &&
	       req_op(rq) != REQ_OP_ZONE_APPEND &&
	       !(rq->cmd_flags & REQ_NOMERGE_FLAGS) &&
	       !(rq->rq_flags & RQF_NOMERGE_FLAGS);
}

/* Discards of a device that takes several ranges merge whatever their place. */
static inline bool iosched_discard_mergeable(struct request *rq)
{
	return req_op(rq) == REQ_OP_DISCARD &&
	       queue_max_discard_segments(rq->q) > 1;
}

/* Is somebody tracing @q? Cheaper than entering an RCU section to find out. */
static inline bool iosched_traced(struct request_queue *q)
{
#ifdef CONFIG_BLK_DEV_IO_TRACE
	return rcu_access_pointer(q->blk_trace);
#else
	return false;
#endif
}

static inline void iosched_free_requests(struct list_head *list)
{
	struct request *rq, *next;

	list_for_each_entry_safe(rq, next, list, queuelist) {
		list_del_init(&rq->queuelist);
		blk_mq_free_request(rq);
	}
}

/*
 * Insertion flags: a bool before 6.5, a set of bits since. Only "at head"
 * concerns an elevator; block/blk-mq.h names it BLK_MQ_INSERT_AT_HEAD.
 */
#ifdef IOSCHED_HAVE_INSERT_FLAGS
#define iosched_insert_t blk_insert_t

static inline bool iosched_at_head(iosched_insert_t flags)
{
	return ((__force unsigned int)flags) & 0x01;
}
#else
#define iosched_insert_t bool

static inline bool iosched_at_head(iosched_insert_t at_head)
{
	return at_head;
}
#endif

/*
 * Before 6.18 init_sched() gets the elevator's type and makes the
 * elevator_queue itself; since then it gets the queue, which the core frees
 * when init_sched() fails. @handle names the parameter for both.
 */
#ifdef IOSCHED_HAVE_INIT_BY_EQ
#define iosched_init_t struct elevator_queue

static inline struct elevator_queue *
iosched_eq_get(struct request_queue *q, iosched_init_t *eq)
{
	return eq;
}

static inline void iosched_eq_put(struct elevator_queue *eq)
{
}
#else
#define iosched_init_t struct elevator_type

static inline struct elevator_queue *
iosched_eq_get(struct request_queue *q, iosched_init_t *type)
{
	return elevator_alloc(q, type);
}

static inline void iosched_eq_put(struct elevator_queue *eq)
{
	kobject_put(&eq->kobj);
}
#endif

/*
 * Newer kernels (7.2) ask for an elevator's data before they freeze the queue and
 * take the old elevator away, so that failing to make it leaves that one at
 * work; older ones leave it to init_sched() and exit_sched().
 */
struct iosched;

#ifdef IOSCHED_HAVE_ALLOC_SCHED_DATA
#define IOSCHED_DATA_OPS(new, free)					\
	.alloc_sched_data = (new), .free_sched_data = (free),

static inline struct iosched *
iosched_data_get(struct request_queue *q, struct elevator_queue *eq,
		 struct iosched *(*new)(struct request_queue *q))
{
	return eq->elevator_data;
}

static inline void iosched_data_put(struct iosched *io, void (*free)(void *io))
{
}
#else
#define IOSCHED_DATA_OPS(new, free)

static inline struct iosched *
iosched_data_get(struct request_queue *q, struct elevator_queue *eq,
		 struct iosched *(*new)(struct request_queue *q))
{
	eq->elevator_data = new(q);
	return eq->elevator_data;
}

static inline void iosched_data_put(struct iosched *io, void (*free)(void *io))
{
	free(io);
}
#endif

#ifdef IOSCHED_HAVE_CONST_ATTRS
#define IOSCHED_ATTRS static const struct elv_fs_entry
#else
#define IOSCHED_ATTRS static struct elv_fs_entry
#endif

/*
 * How many requests that are not synchronous reads may hold scheduler tags.
 * 7.2 keeps that number in the queue, with a sysfs file of its own; older
 * kernels leave it to the elevator (@own). The number means requests of one
 * hardware queue everywhere; what limit_depth() must return is either that
 * (whole bitmap) or, on 6.1, the share of one word of the tag bitmap.
 */
#ifdef IOSCHED_HAVE_QUEUE_ASYNC_DEPTH
#define IOSCHED_OWN_ASYNC_DEPTH(attr)

static inline unsigned int
iosched_async_depth(struct request_queue *q, unsigned int own)
{
	return q->async_depth;
}

static inline bool
iosched_async_bounded(struct request_queue *q, unsigned int own)
{
	return q->async_depth < q->nr_requests;
}

static inline void
iosched_init_async_depth(struct request_queue *q, unsigned int own)
{
	q->async_depth = own ? min_t(unsigned int, own, q->nr_requests) :
			       q->nr_requests;
}
#else
#define IOSCHED_OWN_ASYNC_DEPTH(attr) attr

static inline unsigned int
iosched_async_depth(struct request_queue *q, unsigned int own)
{
	return own ? own : q->nr_requests;
}

/* nr_requests may be about to change when this is asked: any bound counts. */
static inline bool
iosched_async_bounded(struct request_queue *q, unsigned int own)
{
	return own;
}

static inline void
iosched_init_async_depth(struct request_queue *q, unsigned int own)
{
}
#endif

static inline unsigned int
iosched_shallow_depth(struct blk_mq_alloc_data *data, unsigned int depth)
{
#ifdef IOSCHED_SHALLOW_DEPTH_PER_WORD
	struct blk_mq_hw_ctx *hctx = data->hctx;
	unsigned int word;

	/* Early 6.1 asks before it knows the hardware queue; all are alike. */
	if (!hctx)
		hctx = xa_load(&data->q->hctx_table, 0);
	word = 1U << hctx->sched_tags->bitmap_tags.sb.shift;
	return max(1U, depth * word / (unsigned int)data->q->nr_requests);
#else
	return depth;
#endif
}

/*
 * Tell the tag bitmap the least shallow_depth to expect, by which it wakes
 * waiters in batches. A bound may become any: 1 is right for all.
 */
static inline void iosched_min_shallow_depth(struct blk_mq_hw_ctx *hctx,
					     bool bounded)
{
	sbitmap_queue_min_shallow_depth(&hctx->sched_tags->bitmap_tags,
					bounded ? 1 : UINT_MAX);
}

#ifdef IOSCHED_HAVE_QUEUE_DEPTH_UPDATED
#define iosched_depth_t struct request_queue

static inline struct request_queue *iosched_depth_queue(iosched_depth_t *q)
{
	return q;
}
#else
#define iosched_depth_t struct blk_mq_hw_ctx

static inline struct request_queue *iosched_depth_queue(iosched_depth_t *hctx)
{
	return hctx->queue;
}
#endif

/*
 * Changing a queue's limits: iosched_limits_begin() gives a copy to be changed,
 * iosched_limits_commit() takes it or iosched_limits_cancel() drops it, nothing
 * that sleeps in between. @disk is the queue's, referenced by the caller; NULL
 * if the caller has no reference, and then no disk is touched.
 * iosched_max_sectors() is the field for the largest request that the user
 * wants (6.9 gave that a field of its own, and the limits a mutex; until then
 * queue_lock protects them, with interrupts disabled). Begin with no lock held
 * and the queue not frozen by the caller: sd sends commands to the queue with
 * the mutex held.
 */
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
 * The commit raises a read-ahead below the kernel's default, which is the
 * user's: put it back, unless the user has written another value since. In 7.2
 * a write to queue/read_ahead_kb waits for the mutex of the limits. 6.12 has no
 * lock there, so freeze the queue, which may take long, before reading the
 * value. Two writes are still lost: one of exactly the raised value between the
 * commit and the cmpxchg(), and one of less than that during the commit, which
 * overwrites it (6.12: through sysfs; all kernels: BLKRASET and the bdi's
 * read_ahead_kb, which take no lock).
 */
static inline int
iosched_limits_commit(struct request_queue *q, struct gendisk *disk,
		      struct queue_limits *lim)
{
	unsigned long pages;
	int ret;

	if (!disk) {
		/* A commit would touch q->disk, which may be freed meanwhile. */
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

/* Would a boundary get in the way of writes that the device keeps whole? */
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

#endif /* _IOSCHED_COMPAT_H */
