/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Scheduler tags: how many asynchronous requests may hold, and how many requests a
 * plug allocates in advance. A part of iosched-tmpl.h.
 */
#ifndef _IOSCHED_TMPL_TAGS_H
#define _IOSCHED_TMPL_TAGS_H

/*
 * Requests other than synchronous reads may hold async_depth tags. While a request may
 * bypass the queue, none is allocated in advance: it would be counted before it is known
 * what for, and those of a plug that has any do not bypass.
 */
static void iosched_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct iosched *io = iosched_of(data->q);
	unsigned int depth;

	if (IOSCHED_POLICY.may_bypass && READ_ONCE(io->bypass) &&
	    !READ_ONCE(io->nr))
		data->nr_tags = 1;
	if (op_is_sync(opf) && !op_is_write(opf))
		return;
	depth = iosched_async_depth(data->q, READ_ONCE(io->async_depth));
	if (depth < data->q->nr_requests)
		data->shallow_depth = iosched_shallow_depth(data, depth);
}

static void iosched_expect_async_depth(struct blk_mq_hw_ctx *hctx)
{
	struct iosched *io = iosched_of(hctx->queue);

	iosched_min_shallow_depth(hctx,
				  iosched_async_bounded(io->q, io->async_depth));
}

static void iosched_depth_updated(iosched_depth_t *handle)
{
	struct request_queue *q = iosched_depth_queue(handle);
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		iosched_expect_async_depth(hctx);
}

static int iosched_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int idx)
{
	iosched_expect_async_depth(hctx);
	return 0;
}

#endif /* _IOSCHED_TMPL_TAGS_H */
