// SPDX-License-Identifier: GPL-2.0
/*
 * Page mapping with greedy garbage collection.
 *
 * Each plane fills one active block after another, with host pages and copied
 * pages alike. If the active block is full and no more than gc_free_blocks are
 * free, the plane is cleaned before the next write: the valid pages of the full
 * block with the fewest of them move within the plane, then the block is
 * erased. The engine adds the time of each step.
 *
 * Full blocks are in buckets, lists by their number of valid pages. The tables
 * take 8 bytes per page and 16 per block, or 256 MiB for 128 GiB of 4 KiB
 * pages.
 */
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include "ssdemu.h"

/* A flash block, in the free list or in a bucket of its plane. */
struct ssdemu_block {
	u32 next, prev;		/* SSDEMU_NONE: end of the list */
	u32 wear;		/* erases */
	u32 valid;		/* valid pages */
};

static u32 *bucket(struct ssdemu *dev, u32 plane, u32 valid)
{
	return &dev->buckets[plane * (dev->cfg.pages + 1) + valid];
}

static void bucket_add(struct ssdemu *dev, u32 plane, u32 b)
{
	struct ssdemu_block *block = &dev->blocks[b];
	u32 *head = bucket(dev, plane, block->valid);

	block->prev = SSDEMU_NONE;
	block->next = *head;
	if (*head != SSDEMU_NONE)
		dev->blocks[*head].prev = b;
	*head = b;
}

static void bucket_del(struct ssdemu *dev, u32 plane, u32 b)
{
	struct ssdemu_block *block = &dev->blocks[b];

	if (block->prev != SSDEMU_NONE)
		dev->blocks[block->prev].next = block->next;
	else
		*bucket(dev, plane, block->valid) = block->next;
	if (block->next != SSDEMU_NONE)
		dev->blocks[block->next].prev = block->prev;
}

static void free_add(struct ssdemu *dev, struct ssdemu_plane *plane, u32 b)
{
	dev->blocks[b].next = SSDEMU_NONE;
	if (plane->nr_free++)
		dev->blocks[plane->free_last].next = b;
	else
		plane->free_first = b;
	plane->free_last = b;
}

static u32 free_take(struct ssdemu *dev, struct ssdemu_plane *plane)
{
	u32 b = plane->free_first;

	plane->free_first = dev->blocks[b].next;
	plane->nr_free--;
	return b;
}

static void invalidate(struct ssdemu *dev, u32 ppn)
{
	u32 b = ppn / dev->cfg.pages, p = b / dev->cfg.blocks;
	struct ssdemu_plane *plane = &dev->planes[p];
	bool full = b != plane->active && b != plane->victim;

	dev->p2l[ppn] = SSDEMU_NONE;
	plane->valid--;
	if (full)
		bucket_del(dev, p, b);
	dev->blocks[b].valid--;
	if (full)
		bucket_add(dev, p, b);
}

/* Map @lpn to the next free page of a plane; return its offset in the block. */
static u32 map_page(struct ssdemu *dev, u32 p, u32 lpn)
{
	struct ssdemu_plane *plane = &dev->planes[p];
	u32 page, ppn;

	if (plane->active_page == dev->cfg.pages) {
		u32 full = plane->active;

		plane->active = free_take(dev, plane);
		plane->active_page = 0;
		bucket_add(dev, p, full);
	}
	page = plane->active_page++;
	ppn = plane->active * dev->cfg.pages + page;
	dev->p2l[ppn] = lpn;
	dev->l2p[lpn] = ppn;
	dev->blocks[plane->active].valid++;
	plane->valid++;
	return page;
}

static u32 page_program(struct ssdemu *dev, u32 plane, u32 lpn)
{
	if (dev->l2p[lpn] != SSDEMU_NONE)
		invalidate(dev, dev->l2p[lpn]);
	return map_page(dev, plane, lpn);
}

static void page_trim(struct ssdemu *dev, u32 lpn)
{
	if (dev->l2p[lpn] == SSDEMU_NONE)
		return;
	invalidate(dev, dev->l2p[lpn]);
	dev->l2p[lpn] = SSDEMU_NONE;
}

static u32 page_locate(struct ssdemu *dev, u32 lpn, u32 *block, u32 *page)
{
	u32 ppn = dev->l2p[lpn], row, plane;

	if (ppn == SSDEMU_NONE) {
		plane = ssdemu_home_plane(dev, lpn, &row);
		*block = row / dev->cfg.pages;
		*page = row % dev->cfg.pages;
		return plane;
	}
	*page = ppn % dev->cfg.pages;
	*block = ppn / dev->cfg.pages % dev->cfg.blocks;
	return ppn / dev->plane_pages;
}

/* Return the full block with the fewest valid pages; SSDEMU_NONE if all are valid. */
static u32 greedy_victim(struct ssdemu *dev, u32 plane)
{
	u32 valid;

	for (valid = 0; valid < dev->cfg.pages; valid++) {
		u32 b = *bucket(dev, plane, valid);

		if (b != SSDEMU_NONE)
			return b;
	}
	return SSDEMU_NONE;
}

/*
 * Choose the victim of a plane that must be cleaned before the next write.
 * Return false if the plane need not be cleaned, or cannot.
 */
static bool choose_victim(struct ssdemu *dev, u32 p)
{
	struct ssdemu_plane *plane = &dev->planes[p];
	u32 victim;

	if (plane->active_page < dev->cfg.pages ||
	    plane->nr_free > dev->cfg.gc_free_blocks)
		return false;
	victim = greedy_victim(dev, p);
	if (victim == SSDEMU_NONE)
		return false;
	bucket_del(dev, p, victim);
	plane->victim = victim;
	plane->victim_page = 0;
	return true;
}

static bool page_prepare(struct ssdemu *dev, u32 plane, u32 lpn)
{
	if (!choose_victim(dev, plane))
		return false;
	ssdemu_clean_plane(dev, plane);
	return true;
}

static enum ssdemu_clean_step page_clean(struct ssdemu *dev, u32 p)
{
	struct ssdemu_plane *plane = &dev->planes[p];
	u32 b = plane->victim;

	if (b == SSDEMU_NONE)
		return SSDEMU_CLEAN_DONE;

	while (dev->blocks[b].valid) {
		u32 ppn = b * dev->cfg.pages + plane->victim_page++;
		u32 lpn = dev->p2l[ppn];

		if (lpn == SSDEMU_NONE)
			continue;
		invalidate(dev, ppn);
		map_page(dev, p, lpn);
		return SSDEMU_CLEAN_COPY;
	}
	plane->victim = SSDEMU_NONE;
	dev->blocks[b].wear++;
	memset32(&dev->p2l[b * dev->cfg.pages], SSDEMU_NONE, dev->cfg.pages);
	free_add(dev, plane, b);
	return SSDEMU_CLEAN_ERASE;
}

/**
 * ssdemu_plane_has_room() - check a plane for dynamic allocation
 * @dev: device
 * @plane: plane
 *
 * The capacity bounds the pages of a plane for every other allocation.
 *
 * Return: true if garbage collection has room left after one more valid page.
 */
bool ssdemu_plane_has_room(const struct ssdemu *dev, u32 plane)
{
	u32 reserve = (dev->cfg.gc_free_blocks + 2) * dev->cfg.pages;

	return dev->planes[plane].valid < dev->plane_pages - reserve;
}

/*
 * Write a page at creation, without time and statistics. @next is the plane at
 * which dynamic allocation continues.
 */
static void fill_write(struct ssdemu *dev, u32 lpn, u32 *next)
{
	u32 row, plane;

	if (dev->cfg.allocation == SSDEMU_DYNAMIC) {
		do {
			plane = *next;
			*next = plane + 1 < dev->nr_planes ? plane + 1 : 0;
		} while (!ssdemu_plane_has_room(dev, plane));
	} else {
		plane = ssdemu_home_plane(dev, lpn, &row);
	}
	if (choose_victim(dev, plane))
		while (page_clean(dev, plane) != SSDEMU_CLEAN_ERASE)
			;
	page_program(dev, plane, lpn);
}

/*
 * Precondition the device: write the first fill percent of its pages in order,
 * then rewrite random ones of them until all planes together have used up their
 * free blocks. Garbage collection then starts with the first write. The result
 * depends on the configuration alone.
 */
static void page_fill(struct ssdemu *dev)
{
	u32 filled = div_u64((u64)dev->nr_lpns * dev->cfg.fill, 100);
	u64 reserve = (u64)dev->cfg.gc_free_blocks * dev->cfg.pages;
	u64 writes = dev->nr_planes * (dev->plane_pages - reserve);
	struct rnd_state rnd;
	u32 next = 0, b;
	u64 i;

	if (!filled)
		return;
	prandom_seed_state(&rnd, 1);
	for (i = 0; i < writes; i++) {
		u32 lpn = i;

		if (i >= filled)
			lpn = ((u64)prandom_u32_state(&rnd) * filled) >> 32;
		fill_write(dev, lpn, &next);
		if (!(i & 0xfff))
			cond_resched();
	}
	for (b = 0; b < dev->nr_planes * dev->cfg.blocks; b++)
		dev->blocks[b].wear = 0;
}

/**
 * ssdemu_ftl_page_memory() - size of the page mapping's tables
 * @dev: device with a resolved capacity
 *
 * Return: bytes that init() will allocate.
 */
u64 ssdemu_ftl_page_memory(const struct ssdemu *dev)
{
	u64 planes = dev->nr_planes;

	return sizeof(u32) * (dev->nr_lpns + planes * dev->plane_pages +
			      planes * (dev->cfg.pages + 1)) +
	       sizeof(struct ssdemu_block) * planes * dev->cfg.blocks;
}

static void page_exit(struct ssdemu *dev)
{
	kvfree(dev->buckets);
	kvfree(dev->blocks);
	kvfree(dev->p2l);
	kvfree(dev->l2p);
}

static int page_init(struct ssdemu *dev)
{
	u32 nr_buckets = dev->nr_planes * (dev->cfg.pages + 1);
	u32 nr_pages = dev->nr_planes * dev->plane_pages;
	u32 p, i;

	dev->l2p = kvmalloc_array(dev->nr_lpns, sizeof(u32), GFP_KERNEL);
	dev->p2l = kvmalloc_array(nr_pages, sizeof(u32), GFP_KERNEL);
	dev->blocks = kvcalloc(dev->nr_planes * dev->cfg.blocks,
			       sizeof(*dev->blocks), GFP_KERNEL);
	dev->buckets = kvmalloc_array(nr_buckets, sizeof(u32), GFP_KERNEL);
	if (!dev->l2p || !dev->p2l || !dev->blocks || !dev->buckets)
		return -ENOMEM;

	memset32(dev->l2p, SSDEMU_NONE, dev->nr_lpns);
	memset32(dev->p2l, SSDEMU_NONE, nr_pages);
	memset32(dev->buckets, SSDEMU_NONE, nr_buckets);
	for (p = 0; p < dev->nr_planes; p++) {
		struct ssdemu_plane *plane = &dev->planes[p];

		for (i = 0; i < dev->cfg.blocks; i++)
			free_add(dev, plane, p * dev->cfg.blocks + i);
		plane->active = free_take(dev, plane);
		plane->victim = SSDEMU_NONE;
	}
	page_fill(dev);
	return 0;
}

const struct ssdemu_ftl_ops ssdemu_ftl_page = {
	.init = page_init,
	.exit = page_exit,
	.locate = page_locate,
	.prepare = page_prepare,
	.program = page_program,
	.clean = page_clean,
	.trim = page_trim,
};
