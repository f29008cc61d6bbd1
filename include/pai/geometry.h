/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PAI's arithmetic: where requests are cut and which of them are well-split,
 * given an SSD's parameters. It has no state and calls nothing of the block
 * layer, so it is tested by itself (tests/kunit/pai_test.c). All sizes are in
 * sectors; none has to be a power of two.
 *
 * Example, with sizes in KB: clustered pages of 16, a read buffer of 256, a
 * write buffer of 255. With split=pas requests have at most 255: the queue has
 * one limit for both directions, set by the smaller buffer. With split=pasa
 * they have at most 240, the whole pages of 255, and are cut on multiples of
 * 240, which are page boundaries:
 *
 *	a write of [100,1000) becomes [100,240) [240,480) [480,720) [720,960)
 *	[960,1000): an unaligned head, aligned pieces and the remainder.
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
 * struct pai_params - parameters of an SSD, and how requests are to suit it
 * @page: size of a clustered page
 * @block: size of a clustered block
 * @buffer: size of the read and of the write buffer, 0 for none
 * @align: PAI_ALIGN_*, the boundaries that cuts and requests are aligned to
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
 * struct pai_cut - bounds on the extent of a request
 * @max: largest size, 0 for no bound
 * @boundary: no request crosses a multiple of this, 0 for no bound
 */
struct pai_cut {
	unsigned int max;
	unsigned int boundary;
};

/* Distance of @sector from the last multiple of @unit. */
static inline unsigned int pai_offset(sector_t sector, unsigned int unit)
{
	if (is_power_of_2(unit))
		return sector & (unit - 1);
	return sector_div(sector, unit);
}

/* Round down to whole clustered pages; less than a page stays as it is. */
static inline unsigned int pai_whole_pages(const struct pai_params *p,
					   unsigned int size)
{
	return size < p->page ? size : size - size % p->page;
}

/* End of the clustered block that contains the last sector before @end. */
static inline sector_t pai_block_end(const struct pai_params *p, sector_t end)
{
	return end + p->block - 1 - pai_offset(end - 1, p->block);
}

/**
 * pai_queue_cut() - bounds for the queue, for both directions (rules 1 and 2)
 * @p: parameters
 * @own: largest request that the driver and the user allow
 *
 * A queue has one limit for reads and writes. The smaller buffer sets it: a
 * request smaller than its buffer costs less than one that overflows it. The
 * limit is at least a clustered page, as writing part of a page takes longer
 * than writing all of it. Without a buffer, @own is the limit.
 *
 * Return: the bounds.
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
 * pai_merge_cut() - bounds for merging requests of a direction
 * @p: parameters
 * @dir: READ or WRITE
 *
 * Return: the bounds of the queue, and the buffer of that direction.
 */
static inline struct pai_cut pai_merge_cut(const struct pai_params *p,
					   unsigned int dir)
{
	struct pai_cut cut = pai_queue_cut(p, 0);

	cut.max = min_not_zero(cut.max, p->buffer[dir]);
	return cut;
}

/* The greatest end of a request that begins at @start, exclusive. */
static inline sector_t pai_cut_end(const struct pai_cut *cut, sector_t start)
{
	sector_t end = cut->max ? start + cut->max : (sector_t)-1;

	if (!cut->boundary)
		return end;
	return min_t(sector_t, end, start + cut->boundary -
				    pai_offset(start, cut->boundary));
}

/**
 * pai_full_size() - size of a request that is split by the buffer's size
 * @p: parameters
 * @cut: from pai_merge_cut() for its direction
 * @most: largest request that the queue accepts at present
 *
 * Return: the whole clustered pages that fit, 0 if there is no buffer.
 */
static inline unsigned int pai_full_size(const struct pai_params *p,
					 const struct pai_cut *cut,
					 unsigned int most)
{
	return cut->max ? pai_whole_pages(p, min(cut->max, most)) : 0;
}

/* Return true if a request of @size is as large as a full one of size @full. */
static inline bool pai_is_full(const struct pai_params *p, unsigned int size,
			       unsigned int full)
{
	return full && pai_whole_pages(p, size) == full;
}

/*
 * Return true if a request begins on a boundary. With PAI_ALIGN_BLOCK that is
 * the beginning of a clustered block, or of a full-size piece of a block.
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
 * pai_well_split() - tell whether a request suits the SSD as it is (rule 3)
 * @p: parameters
 * @start: first sector
 * @size: number of sectors
 * @full: from pai_full_size() for its direction
 *
 * Return: true if the request is aligned and split by the buffer's size, as in
 * the paper. With PAI_WELL_SPLIT_ALIGNED, or without a buffer, true if it is
 * aligned and consists of whole clustered pages.
 */
static inline bool pai_well_split(const struct pai_params *p, sector_t start,
				  unsigned int size, unsigned int full)
{
	if (!pai_aligned(p, start, full))
		return false;
	if (p->well_split == PAI_WELL_SPLIT_PAPER && full)
		return pai_is_full(p, size, full);
	return !(size % p->page);
}

#endif /* _PAI_GEOMETRY_H */
