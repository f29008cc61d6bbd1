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
 * With gc_start_blocks the plane is cleaned in the background before that, step by
 * step. Pages of the free blocks, of the rest of the active block and of the
 * victim, in proportion to its pages already copied, count as free. Below the
 * start threshold each page that the host programs incurs a debt of copies,
 *
 *	2 * (deficit / band) * valid / (pages - valid)
 *
 * where valid / (pages - valid) is what keeps the number of free pages, with the
 * valid pages of the victim, and band is the distance from gc_start_blocks to
 * gc_free_blocks. So the equilibrium is in the middle of the band.
 *
 * With an SLC cache the plane has more blocks, of slc_pages each, in a ring. While
 * one of them is free the host's writes go there. The valid pages of the oldest
 * one are folded into the other blocks: while the drive is idle, or beside writes
 * in proportion to them.
 *
 * With one-shot programs an ssdemu_plane stands for all planes of a unit, whose
 * blocks form one block of block_pages. It is written in write units of
 * program_pages. A write unit with fewer pages is padded. The collector fills
 * the last write unit of a victim with pages of the next one.
 *
 * Full blocks are in buckets, lists by their number of valid pages. Those of the
 * SLC cache are not. The tables
 * take 8 bytes per page and 16 per block, or 256 MiB for 128 GiB of 4 KiB
 * pages.
 */
#include <linux/gcd.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include "ssdemu.h"

/* ssdemu_plane.debt of a page */
#define DEBT_PAGE	256U

/* A flash block, in the free list or in a bucket of its plane. */
struct ssdemu_block {
	u32 next, prev;		/* SSDEMU_NONE: end of the list */
	u32 valid;		/* valid pages */
};

static u32 *bucket(struct ssdemu *dev, u32 plane, u32 valid)
{
	return &dev->buckets[plane * (dev->block_pages + 1) + valid];
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
	u32 b = ppn / dev->block_pages, p = b / dev->plane_blocks;
	struct ssdemu_plane *plane = &dev->planes[p];
	bool full = b != plane->active && b != plane->victim &&
		    b % dev->plane_blocks < dev->cfg.blocks;

	dev->p2l[ppn] = SSDEMU_NONE;
	plane->valid--;
	if (full)
		bucket_del(dev, p, b);
	dev->blocks[b].valid--;
	if (full)
		bucket_add(dev, p, b);
}

/* Take the plane's next free page; return its offset in the active block. */
static u32 take_page(struct ssdemu *dev, u32 p)
{
	struct ssdemu_plane *plane = &dev->planes[p];

	if (plane->active_page == dev->block_pages) {
		u32 full = plane->active;

		plane->active = free_take(dev, plane);
		plane->active_page = 0;
		bucket_add(dev, p, full);
	}
	return plane->active_page++;
}

static void map_to(struct ssdemu *dev, u32 p, u32 lpn, u32 b, u32 page)
{
	u32 ppn = b * dev->block_pages + page;

	dev->p2l[ppn] = lpn;
	dev->l2p[lpn] = ppn;
	dev->blocks[b].valid++;
	dev->planes[p].valid++;
}

/* Map @lpn to the next free page of a plane; return its offset in the block. */
static u32 map_page(struct ssdemu *dev, u32 p, u32 lpn)
{
	u32 page = take_page(dev, p);

	map_to(dev, p, lpn, dev->planes[p].active, page);
	return page;
}

/* SLC cache */

/* Return the n-th block of the plane's ring. */
static u32 slc_block(const struct ssdemu *dev, u32 p, u32 n)
{
	n = (dev->planes[p].slc_first + n) % dev->slc_blocks;
	return p * dev->plane_blocks + dev->cfg.blocks + n;
}

/**
 * ssdemu_slc_open() - which blocks the next program of a plane uses
 * @dev: device
 * @plane: plane
 *
 * Return: true if it is a program of the SLC cache.
 */
bool ssdemu_slc_open(const struct ssdemu *dev, u32 plane)
{
	const struct ssdemu_plane *p = &dev->planes[plane];

	return p->slc_drained + p->slc_full < dev->slc_blocks;
}

/**
 * ssdemu_write_unit() - size of the next program of a plane
 * @dev: device
 * @plane: plane
 *
 * Return: pages.
 */
u32 ssdemu_write_unit(const struct ssdemu *dev, u32 plane)
{
	return ssdemu_slc_open(dev, plane) ? dev->cfg.read_pages :
					     dev->cfg.program_pages;
}

/* Map @lpn to the next page of the SLC cache; return its offset in the block. */
static u32 map_slc(struct ssdemu *dev, u32 p, u32 lpn)
{
	struct ssdemu_plane *plane = &dev->planes[p];
	u32 page = plane->slc_page++;

	map_to(dev, p, lpn, slc_block(dev, p, plane->slc_drained +
				      plane->slc_full), page);
	return page;
}

/* End a program of the SLC cache; return the pages that it left unused. */
static u32 pad_slc(struct ssdemu *dev, u32 p)
{
	struct ssdemu_plane *plane = &dev->planes[p];
	u32 used = plane->slc_page % dev->cfg.read_pages;
	u32 rest = used ? dev->cfg.read_pages - used : 0;

	plane->slc_page += rest;
	if (plane->slc_page == dev->slc_pages) {
		plane->slc_full++;
		plane->slc_page = 0;
		dev->slc_open -= !ssdemu_slc_open(dev, p);
	}
	return rest;
}

static u32 page_program(struct ssdemu *dev, u32 plane, u32 lpn)
{
	if (dev->l2p[lpn] != SSDEMU_NONE)
		invalidate(dev, dev->l2p[lpn]);
	return ssdemu_slc_open(dev, plane) ? map_slc(dev, plane, lpn) :
					     map_page(dev, plane, lpn);
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
		*block = row / dev->block_pages;
		*page = row % dev->block_pages;
		return plane;
	}
	*page = ppn % dev->block_pages;
	*block = ppn / dev->block_pages % dev->plane_blocks;
	return ppn / dev->block_pages / dev->plane_blocks;
}

/* Return the full block with the fewest valid pages; SSDEMU_NONE if all are valid. */
static u32 greedy_victim(struct ssdemu *dev, u32 plane)
{
	u32 valid;

	for (valid = 0; valid < dev->block_pages; valid++) {
		u32 b = *bucket(dev, plane, valid);

		if (b != SSDEMU_NONE)
			return b;
	}
	return SSDEMU_NONE;
}

/* Choose a victim unless there is one. Return false if all pages are valid. */
static bool choose_victim(struct ssdemu *dev, u32 p)
{
	struct ssdemu_plane *plane = &dev->planes[p];
	u32 victim;

	if (plane->victim != SSDEMU_NONE)
		return true;
	victim = greedy_victim(dev, p);
	if (victim == SSDEMU_NONE)
		return false;
	bucket_del(dev, p, victim);
	plane->victim = victim;
	plane->victim_valid = dev->blocks[victim].valid;
	plane->victim_page = 0;
	return true;
}

/* Return true, and start to collect, if the plane is out of free blocks. */
static bool must_collect(struct ssdemu *dev, u32 p)
{
	struct ssdemu_plane *plane = &dev->planes[p];

	if (plane->active_page < dev->block_pages ||
	    plane->nr_free > dev->cfg.gc_free_blocks ||
	    !choose_victim(dev, p))
		return false;
	plane->collecting = true;
	plane->must_collect = true;
	return true;
}

static bool page_prepare(struct ssdemu *dev, u32 plane, u32 lpn)
{
	if (ssdemu_slc_open(dev, plane) || !must_collect(dev, plane))
		return false;
	ssdemu_clean_plane(dev, plane);
	return true;
}

/* Leave the rest of the write unit unused; return the number of its pages. */
static u32 pad_unit(struct ssdemu *dev, u32 p)
{
	struct ssdemu_plane *plane = &dev->planes[p];
	u32 used = plane->active_page % dev->cfg.program_pages;
	u32 rest = used ? dev->cfg.program_pages - used : 0;

	plane->active_page += rest;
	return rest;
}

/* Return the pages that lie between start and reserve of background collection. */
static u32 band_pages(const struct ssdemu *dev)
{
	return (dev->cfg.gc_start_blocks - dev->cfg.gc_free_blocks) *
	       dev->block_pages;
}

/* Return the free pages that the plane lacks, from 0 to band_pages(). */
static u32 deficit(const struct ssdemu *dev, u32 p)
{
	const struct ssdemu_plane *plane = &dev->planes[p];
	u32 size = dev->block_pages, start = dev->cfg.gc_start_blocks * size;
	u32 free = (plane->nr_free + plane->nr_drained + 1) * size -
		   plane->active_page;

	if (plane->victim != SSDEMU_NONE)
		free += size - div_u64((u64)size * dev->blocks[plane->victim].valid,
				       max(plane->victim_valid, 1U));
	return free < start ? min(start - free, band_pages(dev)) : 0;
}

/* The host programmed @pages pages: have as many copied as wins them back. */
static void incur_debt(struct ssdemu *dev, u32 p, u32 pages)
{
	struct ssdemu_plane *plane = &dev->planes[p];
	u32 lack = deficit(dev, p);
	u64 due;

	if (!lack || !choose_victim(dev, p))
		return;
	due = (u64)pages * plane->victim_valid * lack * (2 * DEBT_PAGE);
	plane->debt += div64_u64(due, (u64)band_pages(dev) *
				 (dev->block_pages - plane->victim_valid));
	plane->debt = min(plane->debt, (u64)dev->block_pages * DEBT_PAGE);
}

static void page_programmed(struct ssdemu *dev, u32 p, u32 pages, bool slc)
{
	u32 padded = slc ? pad_slc(dev, p) : pad_unit(dev, p);
	u64 most = dev->slc_pages * 100ULL;

	dev->stats.padded_pages += padded;
	if (!slc && dev->cfg.gc_start_blocks)
		incur_debt(dev, p, pages + padded);
	dev->planes[p].fold_due += pages * dev->cfg.slc_fold_percent;
	dev->planes[p].fold_due = min(dev->planes[p].fold_due, most);
}

static bool fold_is_due(const struct ssdemu *dev, u32 p)
{
	const struct ssdemu_plane *plane = &dev->planes[p];

	if (plane->slc_drained)
		return true;
	return plane->slc_full &&
	       (dev->idle || plane->fold_due >= dev->cfg.program_pages * 100);
}

static bool page_due(struct ssdemu *dev, u32 p)
{
	struct ssdemu_plane *plane = &dev->planes[p];

	plane->folding = false;
	plane->collecting = plane->must_collect ||
			    plane->drained != SSDEMU_NONE ||
			    plane->debt >= dev->cfg.program_pages * DEBT_PAGE ||
			    (plane->victim != SSDEMU_NONE &&
			     !dev->blocks[plane->victim].valid) ||
			    (dev->idle && deficit(dev, p) &&
			     choose_victim(dev, p));
	if (plane->collecting)
		return true;
	if (!fold_is_due(dev, p))
		return false;
	/* What is folded needs a free block. */
	plane->folding = plane->slc_drained || !must_collect(dev, p);
	return true;
}

/* Put the victim, which has no valid page left, among the blocks to be erased. */
static void drain_victim(struct ssdemu *dev, struct ssdemu_plane *plane)
{
	dev->blocks[plane->victim].next = plane->drained;
	plane->drained = plane->victim;
	plane->nr_drained++;
	plane->victim = SSDEMU_NONE;
}

/* Copy the next valid page of block @b from *@page on, of which there is one. */
static void copy_valid(struct ssdemu *dev, u32 p, u32 b, u32 *page,
		       struct ssdemu_copy *copy, u32 *group)
{
	u32 ppn, lpn;

	do {
		ppn = b * dev->block_pages + (*page)++;
		lpn = dev->p2l[ppn];
	} while (lpn == SSDEMU_NONE);
	invalidate(dev, ppn);
	map_page(dev, p, lpn);
	copy->pages++;
	if (ppn / dev->cfg.read_pages != *group)
		copy->senses++;
	*group = ppn / dev->cfg.read_pages;
}

/*
 * Fill a write unit with pages of victims. Return false if a drained block has
 * to be erased first, or if there is nothing to copy.
 */
static bool copy_unit(struct ssdemu *dev, u32 p, struct ssdemu_copy *copy)
{
	struct ssdemu_plane *plane = &dev->planes[p];
	u32 group = SSDEMU_NONE;

	*copy = (struct ssdemu_copy){};
	while (copy->pages < dev->cfg.program_pages) {
		if (!copy->pages && plane->drained != SSDEMU_NONE)
			return false;
		if (!choose_victim(dev, p))
			break;
		if (dev->blocks[plane->victim].valid)
			copy_valid(dev, p, plane->victim, &plane->victim_page,
				   copy, &group);
		if (!dev->blocks[plane->victim].valid)
			drain_victim(dev, plane);
	}
	dev->stats.padded_pages += pad_unit(dev, p);
	plane->debt -= min(plane->debt, (u64)copy->pages * DEBT_PAGE);
	return copy->pages;
}

static void erase_drained(struct ssdemu *dev, struct ssdemu_plane *plane)
{
	u32 b = plane->drained;

	plane->drained = dev->blocks[b].next;
	plane->nr_drained--;
	memset32(&dev->p2l[b * dev->block_pages], SSDEMU_NONE, dev->block_pages);
	free_add(dev, plane, b);
}

/*
 * Fill a write unit with pages of the oldest SLC blocks. Return false if a block
 * without valid pages has to be erased first.
 */
static bool fold_unit(struct ssdemu *dev, u32 p, struct ssdemu_copy *copy)
{
	struct ssdemu_plane *plane = &dev->planes[p];
	u32 group = SSDEMU_NONE, padded;

	*copy = (struct ssdemu_copy){ .slc = true };
	while (copy->pages < dev->cfg.program_pages && plane->slc_full) {
		u32 b = slc_block(dev, p, plane->slc_drained);

		if (!copy->pages && plane->slc_drained)
			return false;
		if (dev->blocks[b].valid)
			copy_valid(dev, p, b, &plane->fold_page, copy, &group);
		if (!dev->blocks[b].valid) {
			plane->slc_full--;
			plane->slc_drained++;
			plane->fold_page = 0;
		}
	}
	padded = pad_unit(dev, p);
	dev->stats.padded_pages += padded;
	plane->fold_due -= min(plane->fold_due, copy->pages * 100ULL);
	if (dev->cfg.gc_start_blocks)
		incur_debt(dev, p, copy->pages + padded);
	return copy->pages;
}

/* Take the next step of folding, of which there is one. */
static enum ssdemu_clean_step fold_step(struct ssdemu *dev, u32 p,
					struct ssdemu_copy *copy)
{
	struct ssdemu_plane *plane = &dev->planes[p];
	u32 b;

	plane->folding = false;
	if (!plane->slc_drained && fold_unit(dev, p, copy))
		return SSDEMU_CLEAN_COPY;
	b = slc_block(dev, p, 0);
	memset32(&dev->p2l[b * dev->block_pages], SSDEMU_NONE, dev->block_pages);
	dev->slc_open += !ssdemu_slc_open(dev, p);
	plane->slc_first = (plane->slc_first + 1) % dev->slc_blocks;
	plane->slc_drained--;
	return SSDEMU_CLEAN_ERASE;
}

static enum ssdemu_clean_step page_clean(struct ssdemu *dev, u32 p,
					 struct ssdemu_copy *copy)
{
	struct ssdemu_plane *plane = &dev->planes[p];

	if (plane->folding)
		return fold_step(dev, p, copy);
	if (plane->drained == SSDEMU_NONE) {
		if (!plane->collecting)
			return SSDEMU_CLEAN_DONE;
		if (copy_unit(dev, p, copy))
			return SSDEMU_CLEAN_COPY;
	}
	plane->collecting = false;
	plane->must_collect = false;
	if (plane->drained == SSDEMU_NONE)
		return SSDEMU_CLEAN_DONE;
	erase_drained(dev, plane);
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
	u32 reserve = (ssdemu_free_target(&dev->cfg) + 2) * dev->block_pages;

	return dev->planes[plane].valid < dev->plane_pages - reserve;
}

/*
 * Write a page at creation, without time and statistics. @next is the plane at
 * which dynamic allocation continues.
 */
static void fill_write(struct ssdemu *dev, u32 lpn, u32 *next)
{
	struct ssdemu_copy copy;
	u32 row, plane;

	if (dev->cfg.allocation == SSDEMU_DYNAMIC) {
		plane = *next;
		while (!ssdemu_plane_has_room(dev, plane))
			plane = plane + 1 < dev->nr_planes ? plane + 1 : 0;
	} else {
		plane = ssdemu_home_plane(dev, lpn, &row);
	}
	/* A block may be full of valid pages but for a part of a program unit. */
	while (must_collect(dev, plane))
		while (page_clean(dev, plane, &copy) != SSDEMU_CLEAN_ERASE)
			;
	if (dev->l2p[lpn] != SSDEMU_NONE)
		invalidate(dev, dev->l2p[lpn]);
	map_page(dev, plane, lpn);
	*next = plane;
	if (!(dev->planes[plane].active_page % dev->cfg.program_pages))
		*next = plane + 1 < dev->nr_planes ? plane + 1 : 0;
}

/*
 * Precondition the device: write the first fill percent of its pages in order,
 * then rewrite random ones of them until all planes together have used up their
 * free blocks. Garbage collection then starts with the first write. The result
 * depends on the configuration alone.
 */
static void fill_rewriting(struct ssdemu *dev, u32 filled)
{
	u64 reserve = (u64)dev->cfg.gc_free_blocks * dev->block_pages;
	u64 writes = dev->nr_planes * (dev->plane_pages - reserve);
	struct rnd_state rnd;
	u32 next = 0, b;
	u64 i;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < writes; i++) {
		u32 lpn = i;

		if (i >= filled)
			lpn = ((u64)prandom_u32_state(&rnd) * filled) >> 32;
		fill_write(dev, lpn, &next);
		if (!(i & 0xfff))
			cond_resched();
	}
	for (b = 0; b < dev->nr_planes; b++)
		pad_unit(dev, b);
}

/* The plane that the steady state of background collection is laid out on. */
struct layout {
	u32 *share;		/* valid pages by block, oldest first, in 1/U32_MAX */
	u32 blocks;		/* in share */
	u32 used;		/* pages of a plane that are not free */
	struct rnd_state rnd;
};

/* Return the pages of all blocks if each has @ratio / 2^32 of the next one's. */
static u64 valid_pages(const struct ssdemu *dev, struct layout *layout, u32 ratio)
{
	u32 share = U32_MAX, i;
	u64 sum = 0;

	for (i = layout->blocks; i--; ) {
		layout->share[i] = share;
		sum += ((u64)share * dev->block_pages) >> 32;
		share = ((u64)share * ratio) >> 32;
	}
	return sum;
}

/*
 * Random writes overwrite the same share of the valid pages of all blocks while
 * a block is written, so the valid pages of the blocks form a geometric series.
 * Find the one with @valid pages.
 */
static void lay_out(const struct ssdemu *dev, struct layout *layout, u64 valid)
{
	u32 ratio = 0, bit;

	for (bit = BIT(31); bit; bit >>= 1)
		if (valid_pages(dev, layout, ratio | bit) <= valid)
			ratio |= bit;
	valid_pages(dev, layout, ratio);
}

static u32 used_pages(const struct ssdemu *dev, u32 p)
{
	const struct ssdemu_plane *plane = &dev->planes[p];

	return (dev->cfg.blocks - plane->nr_free - 1) * dev->block_pages +
	       plane->active_page;
}

/* Map a page to the next place of its plane that holds valid data. */
static void lay_page(struct ssdemu *dev, struct layout *layout, u32 p, u32 lpn)
{
	u32 b = used_pages(dev, p) / dev->block_pages;

	while (b < layout->blocks && used_pages(dev, p) < layout->used &&
	       prandom_u32_state(&layout->rnd) > layout->share[b]) {
		take_page(dev, p);
		b = used_pages(dev, p) / dev->block_pages;
	}
	map_page(dev, p, lpn);
}

/*
 * Finish a plane: the rest of its pages is invalid, and part of its first victim
 * has been copied, another part on each plane, so that they do not erase at once.
 */
static void lay_end(struct ssdemu *dev, const struct layout *layout, u32 p)
{
	struct ssdemu_plane *plane = &dev->planes[p];
	struct ssdemu_copy copy;
	u32 used = layout->used, copies;

	if (!choose_victim(dev, p))
		return;
	used += div_u64((u64)p * (dev->block_pages - plane->victim_valid),
			dev->nr_planes);
	while (used_pages(dev, p) < used)
		take_page(dev, p);
	pad_unit(dev, p);
	copies = div_u64((u64)p * plane->victim_valid, dev->nr_planes);
	while (copies >= dev->cfg.program_pages &&
	       copy_unit(dev, p, &copy))
		copies -= copy.pages;
}

/* Return a number near the golden section of @n that has no factor in common with it. */
static u32 coprime(u32 n)
{
	u32 step = max_t(u32, ((u64)n * 0x9e3779b9) >> 32, 1);

	while (gcd(step, n) > 1)
		step++;
	return step;
}

/* Lay the pages of a stripe: those of one write unit on each plane. */
static void lay_stripe(struct ssdemu *dev, struct layout *layout, u32 lpn, u32 end)
{
	u32 p, row;

	for (; lpn < end; lpn++) {
		if (dev->cfg.allocation == SSDEMU_DYNAMIC)
			p = lpn / dev->cfg.program_pages % dev->nr_planes;
		else
			p = ssdemu_home_plane(dev, lpn, &row);
		lay_page(dev, layout, p, lpn);
	}
}

/*
 * Write the first pages of the device as they would lie after random ones of them
 * had been overwritten for long. Each block has pages of the whole device:
 * otherwise a part of it that is overwritten would have blocks of its own, and the
 * collector would find hot data apart from cold data.
 */
static void lay_stripes(struct ssdemu *dev, struct layout *layout, u32 filled)
{
	u32 size = dev->nr_planes * dev->cfg.program_pages;
	u32 stripes = DIV_ROUND_UP(filled, size);
	u32 step = coprime(stripes), n = 0, i;

	for (i = 0; i < stripes; i++) {
		lay_stripe(dev, layout, n * size, min((n + 1) * size, filled));
		n = (n + step) % stripes;
		cond_resched();
	}
}

static int fill_steady(struct ssdemu *dev, u32 filled)
{
	u32 free = (dev->cfg.gc_start_blocks + dev->cfg.gc_free_blocks) *
		   dev->block_pages / 2;
	struct layout layout = { .used = dev->plane_pages - free };
	u32 valid = filled / dev->nr_planes, p;

	/* The planes of a concatenation are filled one after another. */
	if (dev->cfg.allocation == SSDEMU_CONCAT)
		valid = min(filled, dev->nr_lpns / dev->nr_planes);

	layout.blocks = layout.used / dev->block_pages;
	layout.share = kvmalloc_array(layout.blocks, sizeof(u32), GFP_KERNEL);
	if (!layout.share)
		return -ENOMEM;
	lay_out(dev, &layout, valid);
	prandom_seed_state(&layout.rnd, 1);
	lay_stripes(dev, &layout, filled);
	for (p = 0; p < dev->nr_planes; p++)
		lay_end(dev, &layout, p);
	kvfree(layout.share);
	return 0;
}

static int page_fill(struct ssdemu *dev)
{
	u32 filled = div_u64((u64)dev->nr_lpns * dev->cfg.fill, 100);

	if (!filled)
		return 0;
	if (dev->cfg.gc_start_blocks)
		return fill_steady(dev, filled);
	fill_rewriting(dev, filled);
	return 0;
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

	u64 blocks = planes * dev->plane_blocks;

	return sizeof(u32) * (dev->nr_lpns + blocks * dev->block_pages +
			      planes * (dev->block_pages + 1)) +
	       sizeof(struct ssdemu_block) * blocks;
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
	u32 nr_buckets = dev->nr_planes * (dev->block_pages + 1);
	u32 nr_blocks = dev->nr_planes * dev->plane_blocks;
	u32 nr_pages = nr_blocks * dev->block_pages;
	u32 p, i;

	dev->l2p = kvmalloc_array(dev->nr_lpns, sizeof(u32), GFP_KERNEL);
	dev->p2l = kvmalloc_array(nr_pages, sizeof(u32), GFP_KERNEL);
	dev->blocks = kvcalloc(nr_blocks, sizeof(*dev->blocks), GFP_KERNEL);
	dev->buckets = kvmalloc_array(nr_buckets, sizeof(u32), GFP_KERNEL);
	if (!dev->l2p || !dev->p2l || !dev->blocks || !dev->buckets)
		return -ENOMEM;

	dev->slc_open = dev->slc_blocks ? dev->nr_planes : 0;
	memset32(dev->l2p, SSDEMU_NONE, dev->nr_lpns);
	memset32(dev->p2l, SSDEMU_NONE, nr_pages);
	memset32(dev->buckets, SSDEMU_NONE, nr_buckets);
	for (p = 0; p < dev->nr_planes; p++) {
		struct ssdemu_plane *plane = &dev->planes[p];

		for (i = 0; i < dev->cfg.blocks; i++)
			free_add(dev, plane, p * dev->plane_blocks + i);
		plane->active = free_take(dev, plane);
		plane->victim = SSDEMU_NONE;
		plane->drained = SSDEMU_NONE;
	}
	return page_fill(dev);
}

const struct ssdemu_ftl_ops ssdemu_ftl_page = {
	.init = page_init,
	.exit = page_exit,
	.locate = page_locate,
	.prepare = page_prepare,
	.program = page_program,
	.programmed = page_programmed,
	.due = page_due,
	.clean = page_clean,
	.trim = page_trim,
};
