/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernels for the unit tests, which make requests and an
 * elevator queue themselves. They use the newest interface (7.2).
 */
#ifndef _COMPAT_KUNIT_H
#define _COMPAT_KUNIT_H

#include <linux/blk-mq.h>
#include <linux/hashtable.h>
#include <linux/slab.h>

#include "iosched-kernel.h"

/* 7.2: the block layer allocates the elevator's data first. */
static inline int compat_elevator_data(struct request_queue *q,
				       struct elevator_queue *eq)
{
#ifdef IOSCHED_HAVE_ALLOC_SCHED_DATA
	eq->elevator_data = eq->type->ops.alloc_sched_data(q);
	return eq->elevator_data ? 0 : -ENOMEM;
#else
	return 0;
#endif
}

static inline void compat_elevator_data_free(struct elevator_queue *eq)
{
#ifdef IOSCHED_HAVE_ALLOC_SCHED_DATA
	eq->type->ops.free_sched_data(eq->elevator_data);
#endif
}

/* 6.18: the block layer allocates the elevator's queue, before that the elevator. */
static inline int compat_elevator_start(struct request_queue *q,
					struct elevator_type *type)
{
#ifdef IOSCHED_HAVE_INIT_BY_EQ
	struct elevator_queue *eq = kzalloc(sizeof(*eq), GFP_KERNEL);
	int ret;

	if (!eq)
		return -ENOMEM;
	eq->type = type;
	hash_init(eq->hash);
	ret = compat_elevator_data(q, eq);
	if (!ret)
		ret = type->ops.init_sched(q, eq);
	if (ret)
		kfree(eq);
	return ret;
#else
	return type->ops.init_sched(q, type);
#endif
}

static inline void compat_elevator_stop(struct request_queue *q)
{
	struct elevator_queue *eq = q->elevator;

	eq->type->ops.exit_sched(eq);
	compat_elevator_data_free(eq);
	q->elevator = NULL;
	q->last_merge = NULL;
#ifdef IOSCHED_HAVE_INIT_BY_EQ
	kfree(eq);
#else
	kobject_put(&eq->kobj);
#endif
}

/* 6.5: insertion flags replace a bool; bit 0 of both is at_head. */
#ifdef IOSCHED_HAVE_INSERT_FLAGS
#define compat_insert_flags(at_head) ((__force blk_insert_t)((at_head) ? 1 : 0))
#else
#define compat_insert_flags(at_head) (at_head)
#endif

/* Let @rq, or none if it is NULL, be the only request that a plug has allocated. */
static inline void compat_plug_cache(struct blk_plug *plug, struct request *rq)
{
#ifdef IOSCHED_HAVE_RQ_LIST
	plug->cached_rqs.head = rq;
	plug->cached_rqs.tail = rq;
#else
	plug->cached_rq = rq;
#endif
}

/* 7.0: end_io() also gets the batch of completions. */
#ifdef IOSCHED_HAVE_END_IO_BATCH
#define compat_end_io(rq) ((rq)->end_io(rq, 0, NULL))
#else
#define compat_end_io(rq) ((rq)->end_io(rq, 0))
#endif

/* 6.19: depth_updated() is called for the queue. */
#ifdef IOSCHED_HAVE_QUEUE_DEPTH_UPDATED
#define compat_depth_handle(hctx) ((hctx)->queue)
#else
#define compat_depth_handle(hctx) (hctx)
#endif

#endif /* _COMPAT_KUNIT_H */
