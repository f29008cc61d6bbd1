/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernels for a block driver. The driver uses the newest
 * interface. Each adapter names the kernel that changed the interface.
 */
#ifndef _COMPAT_BLKDEV_H
#define _COMPAT_BLKDEV_H

#include <linux/blk-mq.h>

#include "compat-hrtimer.h"

/* 6.14 removed the flag: every queue merges. */
static inline unsigned int compat_tag_set_flags(void)
{
#ifdef IOSCHED_HAVE_MERGE_FLAG
	return BLK_MQ_F_SHOULD_MERGE;
#else
	return 0;
#endif
}

/* Limits and features of a non-rotational disk. */
struct compat_disk_limits {
	unsigned int logical_block;	/* bytes */
	unsigned int physical_block;	/* bytes */
	unsigned int io_min;		/* bytes */
	unsigned int io_opt;		/* bytes */
	unsigned int max_sectors;	/* of a read or write */
	unsigned int max_segments;
	unsigned int discard_granularity; /* bytes */
	unsigned int max_discard_sectors; /* of a discard or write-zeroes */
	bool write_cache;		/* volatile; FLUSH and FUA matter */
};

/* 6.9: blk_mq_alloc_disk() takes the limits. 6.11: features are limits. */
static inline struct gendisk *
compat_alloc_disk(struct blk_mq_tag_set *set,
		  const struct compat_disk_limits *l, void *queuedata)
{
#ifdef BLK_FEAT_WRITE_CACHE
	struct queue_limits lim = {
		.logical_block_size = l->logical_block,
		.physical_block_size = l->physical_block,
		.io_min = l->io_min,
		.io_opt = l->io_opt,
		.max_hw_sectors = l->max_sectors,
		.max_segments = l->max_segments,
		.discard_granularity = l->discard_granularity,
		.max_hw_discard_sectors = l->max_discard_sectors,
		.max_write_zeroes_sectors = l->max_discard_sectors,
	};

	if (l->write_cache)
		lim.features = BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA;
	return blk_mq_alloc_disk(set, &lim, queuedata);
#else
	struct gendisk *disk = blk_mq_alloc_disk(set, queuedata);
	struct request_queue *q;

	if (IS_ERR(disk))
		return disk;
	q = disk->queue;
	blk_queue_flag_set(QUEUE_FLAG_NONROT, q);
	blk_queue_flag_clear(QUEUE_FLAG_ADD_RANDOM, q);
	blk_queue_logical_block_size(q, l->logical_block);
	blk_queue_physical_block_size(q, l->physical_block);
	blk_queue_io_min(q, l->io_min);
	blk_queue_io_opt(q, l->io_opt);
	blk_queue_max_hw_sectors(q, l->max_sectors);
	blk_queue_max_segments(q, l->max_segments);
	q->limits.discard_granularity = l->discard_granularity;
	blk_queue_max_discard_sectors(q, l->max_discard_sectors);
	blk_queue_max_write_zeroes_sectors(q, l->max_discard_sectors);
	blk_queue_write_cache(q, l->write_cache, l->write_cache);
	return disk;
#endif
}

#endif /* _COMPAT_BLKDEV_H */
