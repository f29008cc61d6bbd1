/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PAI's arithmetic: where requests are cut and which of them are well-split,
 * from an SSD's parameters. No state and no block layer here, so that it can be
 * tested by itself (tests/kunit/pai_test.c). All sizes are in sectors; none has
 * to be a power of two.
 *
 * Example, an SSD with clustered pages of 16 KB, a read buffer of 256 KB and a
 * write buffer of 255 KB (sizes in KB here). With split=pas requests are at
 * most 255 long: the queue has one limit for both directions, the tighter
 * buffer sets it. With split=pasa that is 240, the whole pages of it, and cuts
 * fall on multiples of 240, so that they are page boundaries:
 *
 *	a write of [100, 1000) becomes [100,240) [240,480) [480,720) [720,960)
 *	[960,1000): an unaligned head, aligned pieces, and what is left.
 */
#ifndef _PAI_GEOMETRY_H
#define _PAI_GEOMETRY_H

#include <linux/blk_types.h>
#include <linux/blkdev.h>
#include <linux/log2.h>
#include <linux/minmax.h>

enum { PAI_ALIGN_PAGE, PAI_ALIGN_BLOCK };
enum { PAI_SPLIT_NONE, PAI_SPLIT_PAS, PAI_SPLIT_PASA };
enum { PAI_WELL_SPLIT_PAPER, PAI_WELL_SPLIT_ALIGNED };

/**
 * struct pai_params - what is known of an SSD, and what is wanted of requests
 * @page: clustered page
 * @block: clustered block
 * @buffer: read and write buffer, 0 for none
 * @align: PAI_ALIGN_*, what cuts and requests are aligned to
 * @split: PAI_SPLIT_*, how bios are cut
 * @well_split: PAI_WELL_SPLIT_*, which requests are well-split
 */
struct pai_params {
	unsigned int page;
	unsigned int block;
	unsigned int buffer[2];
	unsigned int align;
	unsigned int split;
	unsigned int well_split;
};

/**
 * struct pai_cut - how far a request may reach
 * @max: its largest size, 0 for no bound
 * @boundary: it does not cross a multiple of this; 0 for any
 */
struct pai_cut {
	unsigned int max;
	unsigned int boundary;
};

/* How far @sector lies behind a multiple of @unit. */
static inline unsigned int pai_offset(sector_t sector, unsigned int unit)
{
	if (is_power_of_2(unit))
		return sector & (unit - 1);
	return sector_div(sector, unit);
}

/* The whole clustered pages in a size; less than a page stays what it is. */
static inline unsigned int pai_whole_pages(const struct pai_params *p,
					   unsigned int size)
{
	return size < p->page ? size : size - size % p->page;
}

/* Where the clustered page ends that has the last sector in front of @end. */
static inline sector_t pai_page_end(const struct pai_params *p, sector_t end)
{
	return end + p->page - 1 - pai_offset(end - 1, p->page);
}

/**
 * pai_queue_cut() - what to ask of the queue, for both directions
 * @p: parameters
 * @own: largest request that the driver and the user allow
 *
 * A queue has one limit for reads and writes: the tighter buffer sets it, as a
 * request that is smaller than its buffer costs less than one that overflows
 * it. But it is never less than a clustered page, part of which no device
 * writes as fast as all of it. Where there is no buffer, @own takes its place.
 */
static inline struct pai_cut pai_queue_cut(const struct pai_params *p,
					   unsigned int own)
{
	unsigned int max = min_not_zero(p->buffer[READ], p->buffer[WRITE]);
	struct pai_cut cut = { .max = own };

	if (p->split == PAI_SPLIT_NONE)
		return cut;
	if (max)
		cut.max = min_not_zero(max(max, p->page), own);
	if (p->split == PAI_SPLIT_PAS || !cut.max)
		return cut;

	cut.max = pai_whole_pages(p, cut.max);
	if (p->align == PAI_ALIGN_BLOCK)
		cut.boundary = p->block;
	else
		cut.boundary = max(cut.max, p->page);
	return cut;
}

/**
 * pai_merge_cut() - how far requests of a direction may grow by merging
 * @p: parameters
 * @dir: READ or WRITE
 *
 * As far as the queue lets both directions, and not beyond their own buffer.
 */
static inline struct pai_cut pai_merge_cut(const struct pai_params *p,
					   unsigned int dir)
{
	struct pai_cut cut = pai_queue_cut(p, 0);

	cut.max = min_not_zero(cut.max, p->buffer[dir]);
	return cut;
}

/* The sector at which a request that begins at @start has to end at last. */
static inline sector_t pai_cut_end(const struct pai_cut *cut, sector_t start)
{
	sector_t end = cut->max ? start + cut->max : (sector_t)-1;

	if (!cut->boundary)
		return end;
	return min_t(sector_t, end, start + cut->boundary -
				    pai_offset(start, cut->boundary));
}

/**
 * pai_full_size() - size of a request that is split by the buffer
 * @p: parameters
 * @cut: what pai_merge_cut() says of its direction
 * @most: largest request that the queue takes at present
 *
 * Return: the whole clustered pages that fit, 0 when there is no buffer.
 */
static inline unsigned int pai_full_size(const struct pai_params *p,
					 const struct pai_cut *cut,
					 unsigned int most)
{
	return cut->max ? pai_whole_pages(p, min(cut->max, most)) : 0;
}

/*
 * Does a request begin on a boundary? Within a clustered block, where full-size
 * pieces that are cut from its start begin counts as well.
 */
static inline bool pai_aligned(const struct pai_params *p, sector_t start,
			       unsigned int full)
{
	unsigned int offset;

	if (p->align == PAI_ALIGN_PAGE)
		return !pai_offset(start, p->page);
	offset = pai_offset(start, p->block);
	return !(full ? offset % full : offset);
}

/**
 * pai_well_split() - does a request suit the SSD as it is?
 * @p: parameters
 * @start: its first sector
 * @size: its sectors
 * @full: what pai_full_size() says of its direction
 *
 * By the paper: aligned and split by the buffer's size. Otherwise aligned and
 * whole clustered pages, as is also the paper's meaning without a buffer.
 */
static inline bool pai_well_split(const struct pai_params *p, sector_t start,
				  unsigned int size, unsigned int full)
{
	if (!pai_aligned(p, start, full))
		return false;
	if (p->well_split == PAI_WELL_SPLIT_PAPER && full)
		return pai_whole_pages(p, size) == full;
	return !(size % p->page);
}

#endif /* _PAI_GEOMETRY_H */
