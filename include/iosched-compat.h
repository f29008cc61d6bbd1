/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernels. The schedulers are written against the newest
 * interface (7.3); this file adapts older kernels, by what the kernel has
 * (IOSCHED_HAVE_*, found by scripts/kbuild/gen-kernel-header), not by its version. It
 * also has small macros and inline functions of the block layer that are neither
 * in BTF nor in a header package.
 */
#ifndef _IOSCHED_COMPAT_H
#define _IOSCHED_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/blktrace_api.h>
#include <linux/err.h>
#include <linux/ioprio.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/sbitmap.h>
#include <trace/events/block.h>

#include "iosched-kernel.h"

/* Since 6.5, and in late 6.1. */
#ifndef struct_size_t
#define struct_size_t(type, member, count) \
	struct_size((type *)NULL, member, count)
#endif

/* Set on a prepared request: the block layer will call finish_request(). */
#ifdef RQF_ELVPRIV
#define IOSCHED_RQF_PREPARED	RQF_ELVPRIV
#else
#define IOSCHED_RQF_PREPARED	RQF_USE_SCHED
#endif

/* Set by the block layer on a request that has a tag of the elevator. */
#ifdef RQF_ELV
#define IOSCHED_RQF_SCHED_TAGS	RQF_ELV
#else
#define IOSCHED_RQF_SCHED_TAGS	RQF_SCHED_TAGS
#endif

/* The tag of a request that has none; block/blk-mq.h names it BLK_MQ_NO_TAG. */
#define IOSCHED_NO_TAG		(-1)

/*
 * Return true if a request that the current task allocates may bypass the elevator. If
 * one of a plug does not, all are inserted. Requests that were allocated in advance may
 * be for I/O in the other direction. 6.1 issues the last request of a plug first, so it
 * has to be the only one.
 */
static inline bool iosched_plug_bypasses(void)
{
	struct blk_plug *plug = current->plug;

	if (!plug)
		return true;
	if (plug->has_elevator)
		return false;
#ifdef IOSCHED_HAVE_RQ_LIST
	return rq_list_empty(&plug->cached_rqs);
#else
	return !plug->mq_list && !plug->cached_rq;
#endif
}

/*
 * The flags for which the block layer would insert a request that the current task
 * allocates. From 6.5 on there are two; without a plug either is enough. 6.12 always has
 * a plug. There the other flag has to stay: a request that was allocated in advance, and
 * is not used, is freed without its end_io being called.
 */
static inline req_flags_t iosched_inserting_flags(void)
{
#ifndef RQF_ELV
	if (!current->plug)
		return IOSCHED_RQF_SCHED_TAGS | IOSCHED_RQF_PREPARED;
#endif
	return IOSCHED_RQF_SCHED_TAGS;
}

/* Return true if the driver of @q encrypts data. */
static inline bool iosched_encrypts(struct request_queue *q)
{
#ifdef CONFIG_BLK_INLINE_ENCRYPTION
	return q->crypto_profile;
#else
	return false;
#endif
}

/* Arguments of a request's end_io. */
#ifdef IOSCHED_HAVE_END_IO_BATCH
#define IOSCHED_END_IO_ARGS	struct request *rq, blk_status_t error, \
				const struct io_comp_batch *batch
#else
#define IOSCHED_END_IO_ARGS	struct request *rq, blk_status_t error
#endif

/*
 * Prepare @rq if the block layer has not. A plug allocates requests in advance by
 * its first operation. 6.12 leaves them unprepared if that is passthrough, but
 * also uses them for reads and writes. 6.1 does not prepare FUA writes, but
 * inserts them after a requeue.
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

/*
 * Return true if @rq may be merged with others: rq_mergeable() of block/blk.h, but
 * for requests without sectors, which manage zones.
 */
static inline bool iosched_rq_mergeable(struct request *rq)
{
	return blk_rq_sectors(rq) && !blk_rq_is_passthrough(rq) &&
	       req_op(rq) != REQ_OP_FLUSH &&
	       req_op(rq) != REQ_OP_WRITE_ZEROES &&
	       req_op(rq) != REQ_OP_ZONE_APPEND &&
	       !(rq->cmd_flags & REQ_NOMERGE_FLAGS) &&
	       !(rq->rq_flags & RQF_NOMERGE_FLAGS);
}

/* Discards merge wherever they lie if the device takes several ranges. */
static inline bool iosched_discard_mergeable(struct request *rq)
{
	return req_op(rq) == REQ_OP_DISCARD &&
	       queue_max_discard_segments(rq->q) > 1;
}

/* Return true if @q is being traced. Cheaper than blk_add_trace_msg()'s check. */
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
 * Insertion flags: a bool before 6.5, then a set of bits. Only "at head" matters
 * here; block/blk-mq.h names it BLK_MQ_INSERT_AT_HEAD.
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
 * Before 6.18 init_sched() gets the elevator's type and allocates the
 * elevator_queue. From 6.18 it gets the elevator_queue, which the block layer
 * frees if init_sched() fails.
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
 * 7.2 allocates an elevator's data before it freezes the queue and removes the old
 * elevator, which stays if that fails. On older kernels init_sched() and
 * exit_sched() allocate and free it.
 *
 * 7.2 looks up the elevator by its name before the allocation and again after it.
 * If the module registers in between there are no data. A refusal would cost the
 * disk the old elevator, which is gone by then, and every later one: allocate them
 * late.
 */
struct iosched;

#ifdef IOSCHED_HAVE_ALLOC_SCHED_DATA
#define IOSCHED_DATA_OPS(new, free)					\
	.alloc_sched_data = (new), .free_sched_data = (free),

static inline struct iosched *
iosched_data_get(struct request_queue *q, struct elevator_queue *eq,
		 struct iosched *(*new)(struct request_queue *q))
{
	struct iosched *io = eq->elevator_data ?: new(q);

	if (!IS_ERR(io))
		eq->elevator_data = io;
	return io;
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
 * Of all scheduler tags, those that requests other than synchronous reads may hold, and
 * the same while there are reads: of two or three tags, all but one.
 */
static inline unsigned int iosched_async_part(unsigned int all)
{
	return all - all / 4;
}

static inline unsigned int iosched_async_part_beside(unsigned int all)
{
	return all > 1 ? all - max(all / 4, 1U) : 1;
}

/*
 * Most scheduler tags that requests other than synchronous reads may hold, per
 * hardware queue. 7.2 keeps this number in the queue, with a sysfs file; on older
 * kernels the elevator has it (@own; 0: iosched_async_part()). limit_depth() must set
 * this number, or on 6.1 the same share of a word of the tag bitmap.
 */
#ifdef IOSCHED_HAVE_QUEUE_ASYNC_DEPTH
#define IOSCHED_OWN_ASYNC_DEPTH(attr)

static inline unsigned int
iosched_async_depth(struct request_queue *q, unsigned int own)
{
	return q->async_depth;
}

static inline void
iosched_init_async_depth(struct request_queue *q, unsigned int own)
{
	unsigned int part = iosched_async_part(q->nr_requests);

	q->async_depth = own ? min_t(unsigned int, own, q->nr_requests) : part;
}
#else
#define IOSCHED_OWN_ASYNC_DEPTH(attr) attr

static inline unsigned int
iosched_async_depth(struct request_queue *q, unsigned int own)
{
	return own ? own : iosched_async_part(q->nr_requests);
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

	/* Early 6.1 has not chosen a hardware queue yet; all have the same depth. */
	if (!hctx)
		hctx = xa_load(&data->q->hctx_table, 0);
	/* Of 4 to 7 tags, each is a word of its own: this cannot bound their number. */
	word = min(1U << hctx->sched_tags->bitmap_tags.sb.shift,
		   (unsigned int)data->q->nr_requests);
	return max(1U, depth * word / (unsigned int)data->q->nr_requests);
#else
	return depth;
#endif
}

/*
 * Tell the tag bitmap the least shallow_depth to expect, which determines its wake
 * batch: that of the default, otherwise (@own) 1, which is right for every bound.
 * nr_requests may be about to change; the bitmap has changed.
 */
static inline void iosched_expect_shallow_depth(struct blk_mq_hw_ctx *hctx,
						unsigned int own)
{
	struct sbitmap_queue *bits = &hctx->sched_tags->bitmap_tags;
#if defined(IOSCHED_HAVE_QUEUE_ASYNC_DEPTH)
	unsigned int least = min(hctx->queue->async_depth,
				 iosched_async_part_beside(bits->sb.depth));
#elif defined(IOSCHED_SHALLOW_DEPTH_PER_WORD)
	unsigned int word = min(1U << bits->sb.shift, bits->sb.depth);
	unsigned int least = own ? 1 : iosched_async_part_beside(word);
#else
	unsigned int least = own ? 1 : iosched_async_part_beside(bits->sb.depth);
#endif

	sbitmap_queue_min_shallow_depth(bits, least);
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

#endif /* _IOSCHED_COMPAT_H */
