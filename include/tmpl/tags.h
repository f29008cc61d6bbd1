/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Scheduler tags: how many asynchronous requests may hold, and how many requests a
 * plug allocates in advance. A part of iosched-tmpl.h.
 */
#ifndef _IOSCHED_TMPL_TAGS_H
#define _IOSCHED_TMPL_TAGS_H

#include "iosched.h"
#include "tmpl/in-flight.h"

/*
 * Requests other than synchronous reads may hold async_depth tags: otherwise deep writers
 * take all, and a reader waits for one before the elevator sees its request. The default
 * is three quarters while there are readers, and all while there are none. A value that is
 * set holds at any time, but for one that is three quarters.
 *
 * While a request may bypass the queue, none is allocated in advance: it would be counted
 * before it is known what for, and those of a plug that has any do not bypass.
 */
static void iosched_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct iosched *io = iosched_of(data->q);
	unsigned int all = data->q->nr_requests, depth;

	if (unlikely(iosched_bypasses(io)) && READ_ONCE(io->bypass) &&
	    !READ_ONCE(io->nr))
		data->nr_tags = 1;
	if (op_is_sync(opf) && !op_is_write(opf))
		return;
	depth = iosched_async_depth(data->q, READ_ONCE(io->async_depth));
	if (depth == iosched_async_part(all))
		depth = time_before(jiffies, READ_ONCE(io->last[READ]) +
					     IOSCHED_READERS_GONE) ?
			iosched_async_part_beside(all) : all;
	if (depth < all)
		data->shallow_depth = iosched_shallow_depth(data, depth);
}

static void iosched_depth_updated(iosched_depth_t *handle)
{
	struct request_queue *q = iosched_depth_queue(handle);
	struct iosched *io = iosched_of(q);
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		iosched_expect_shallow_depth(hctx, io->async_depth);
}

static int iosched_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int idx)
{
	struct iosched *io = iosched_of(hctx->queue);

	hctx->sched_data = io;
	iosched_expect_shallow_depth(hctx, io->async_depth);
	return 0;
}

/* The block layer clears sched_data if there is this function. */
static void iosched_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int idx)
{
}

#endif /* _IOSCHED_TMPL_TAGS_H */
