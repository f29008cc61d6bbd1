// SPDX-License-Identifier: GPL-2.0
/*
 * Block mapping with open (log) blocks. It has the block-crossing penalty of
 * the block-preferential paper.
 *
 * A logical block is one flash block on every plane (the clustered block of the
 * PAI paper: planes * pages * page size). A write is appended to the log block
 * that is open for its logical block. At most open_blocks are open. A write to
 * a logical block that is not open opens a log block, after merging the oldest
 * open one if none is left. A write that finds its log block full merges that
 * one.
 *
 * A merge costs, on every plane:
 *
 *	log written in order, from the first page to the last: erase of the old block
 *	log written in order, up to a page: copies of the remaining pages, erase of
 *		the old block
 *	log written in another order: copies of all pages with data, erases of the
 *		log block and of the old block
 *
 * An old block that was never written needs no erase. Allocation is static.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include "ssdemu.h"

struct ssdemu_log {
	struct list_head list;
	u32 lbn;		/* logical block */
	u16 *used;		/* log pages written, by plane */
	bool empty;		/* nothing written yet; closing it costs nothing */
	bool ordered;		/* the n-th write of every plane was its n-th page */
};

static u32 lbn_pages(const struct ssdemu *dev)
{
	return dev->nr_planes * dev->cfg.pages;
}

static struct ssdemu_log *find_log(struct ssdemu *dev, u32 lbn)
{
	struct ssdemu_log *log;

	list_for_each_entry(log, &dev->logs_open, list)
		if (log->lbn == lbn)
			return log;
	return NULL;
}

/*
 * Return the counter of a logical block's pages with data on a plane. It
 * includes the pages programmed in the log block.
 */
static u16 *written_counter(struct ssdemu *dev, u32 lbn, u32 plane)
{
	return &dev->written_count[lbn * dev->nr_planes + plane];
}

/* Close a log block and have its logical block merged. */
static void merge_log(struct ssdemu *dev, struct ssdemu_log *log)
{
	bool had_old = test_bit(log->lbn, dev->lbn_mapped);
	u32 p;

	list_move_tail(&log->list, &dev->logs_free);
	if (log->empty)
		return;
	dev->stats.merges++;
	__set_bit(log->lbn, dev->lbn_mapped);
	for (p = 0; p < dev->nr_planes; p++) {
		u32 copies = *written_counter(dev, log->lbn, p);

		if (log->ordered)
			copies -= min_t(u32, copies, log->used[p]);
		dev->planes[p].copies_due += copies;
		dev->planes[p].erases_due += had_old + !log->ordered;
		if (dev->planes[p].copies_due || dev->planes[p].erases_due)
			ssdemu_clean_plane(dev, p);
	}
}

static void open_log(struct ssdemu *dev, u32 lbn)
{
	struct ssdemu_log *log;

	if (list_empty(&dev->logs_free))
		merge_log(dev, list_first_entry(&dev->logs_open,
						struct ssdemu_log, list));
	log = list_first_entry(&dev->logs_free, struct ssdemu_log, list);
	list_move_tail(&log->list, &dev->logs_open);
	log->lbn = lbn;
	log->ordered = true;
	log->empty = true;
	memset(log->used, 0, dev->nr_planes * sizeof(*log->used));
}

static bool block_prepare(struct ssdemu *dev, u32 plane, u32 lpn)
{
	u32 lbn = lpn / lbn_pages(dev);
	struct ssdemu_log *log = find_log(dev, lbn);

	if (log && log->used[plane] < dev->cfg.pages)
		return false;
	if (log)
		merge_log(dev, log);
	open_log(dev, lbn);
	return dev->planes[plane].to_clean;
}

static u32 block_program(struct ssdemu *dev, u32 plane, u32 lpn)
{
	struct ssdemu_log *log = find_log(dev, lpn / lbn_pages(dev));
	u32 offset = lpn % lbn_pages(dev);
	u32 page = log->used[plane]++;

	log->empty = false;
	if (offset / dev->nr_planes != page)
		log->ordered = false;
	if (!__test_and_set_bit(lpn, dev->written))
		(*written_counter(dev, log->lbn, plane))++;
	return page;
}

static enum ssdemu_clean_step block_clean(struct ssdemu *dev, u32 p,
					  struct ssdemu_copy *copy)
{
	struct ssdemu_plane *plane = &dev->planes[p];

	if (plane->copies_due) {
		plane->copies_due--;
		copy->pages = 1;
		copy->senses = 1;
		copy->slc = false;
		return SSDEMU_CLEAN_COPY;
	}
	if (plane->erases_due) {
		plane->erases_due--;
		return SSDEMU_CLEAN_ERASE;
	}
	return SSDEMU_CLEAN_DONE;
}

static void block_trim(struct ssdemu *dev, u32 lpn)
{
	u32 row, plane = ssdemu_home_plane(dev, lpn, &row);

	if (__test_and_clear_bit(lpn, dev->written))
		(*written_counter(dev, lpn / lbn_pages(dev), plane))--;
}

static u32 block_locate(struct ssdemu *dev, u32 lpn, u32 *block, u32 *page)
{
	u32 row, plane = ssdemu_home_plane(dev, lpn, &row);

	*block = row / dev->cfg.pages;
	*page = row % dev->cfg.pages;
	return plane;
}

static void block_fill(struct ssdemu *dev)
{
	u32 filled = div_u64((u64)dev->nr_lpns * dev->cfg.fill, 100), lpn, row;

	bitmap_set(dev->written, 0, filled);
	for (lpn = 0; lpn < filled; lpn++) {
		u32 lbn = lpn / lbn_pages(dev);

		__set_bit(lbn, dev->lbn_mapped);
		(*written_counter(dev, lbn, ssdemu_home_plane(dev, lpn, &row)))++;
		if (!(lpn & 0xffff))
			cond_resched();
	}
}

/**
 * ssdemu_ftl_block_memory() - size of the block mapping's tables
 * @dev: device with a resolved capacity
 *
 * Return: bytes that init() will allocate.
 */
u64 ssdemu_ftl_block_memory(const struct ssdemu *dev)
{
	return dev->nr_lpns / 8 +
	       (u64)dev->nr_planes * dev->cfg.blocks * sizeof(u16) +
	       (u64)dev->cfg.open_blocks * dev->nr_planes * sizeof(u16);
}

static void block_exit(struct ssdemu *dev)
{
	u32 i;

	for (i = 0; dev->logs && i < dev->cfg.open_blocks; i++)
		kvfree(dev->logs[i].used);
	kvfree(dev->logs);
	kvfree(dev->lbn_mapped);
	kvfree(dev->written_count);
	kvfree(dev->written);
}

static int block_init(struct ssdemu *dev)
{
	u32 nr_lbns = dev->nr_lpns / lbn_pages(dev);
	u32 i;

	INIT_LIST_HEAD(&dev->logs_open);
	INIT_LIST_HEAD(&dev->logs_free);
	dev->written = kvcalloc(BITS_TO_LONGS(dev->nr_lpns), sizeof(long),
				GFP_KERNEL);
	dev->lbn_mapped = kvcalloc(BITS_TO_LONGS(nr_lbns), sizeof(long),
				   GFP_KERNEL);
	dev->written_count = kvcalloc((size_t)nr_lbns * dev->nr_planes,
				      sizeof(u16), GFP_KERNEL);
	dev->logs = kvcalloc(dev->cfg.open_blocks, sizeof(*dev->logs),
			     GFP_KERNEL);
	if (!dev->written || !dev->lbn_mapped || !dev->written_count ||
	    !dev->logs)
		return -ENOMEM;

	for (i = 0; i < dev->cfg.open_blocks; i++) {
		struct ssdemu_log *log = &dev->logs[i];

		log->used = kvcalloc(dev->nr_planes, sizeof(u16), GFP_KERNEL);
		if (!log->used)
			return -ENOMEM;
		list_add_tail(&log->list, &dev->logs_free);
	}
	block_fill(dev);
	return 0;
}

const struct ssdemu_ftl_ops ssdemu_ftl_block = {
	.init = block_init,
	.exit = block_exit,
	.locate = block_locate,
	.prepare = block_prepare,
	.program = block_program,
	.clean = block_clean,
	.trim = block_trim,
};
