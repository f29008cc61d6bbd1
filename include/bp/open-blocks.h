/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The erase blocks that a drive keeps open: those that writes have opened last.
 *
 * Pure: no allocation, no locking, no side effect outside the arguments.
 */
#ifndef _BP_OPEN_BLOCKS_H
#define _BP_OPEN_BLOCKS_H

#include <linux/limits.h>
#include <linux/types.h>

/* Most blocks that a drive is taken to keep open: those opened last. */
#define BP_OPEN_MAX	64

/**
 * struct bp_open - blocks that writes have opened
 * @block: ring of the last ones
 * @newest: number of the last one
 * @crossings: number of blocks opened so far
 */
struct bp_open {
	u64 block[BP_OPEN_MAX];
	unsigned int newest;
	unsigned int crossings;
};

static inline void bp_open_init(struct bp_open *open)
{
	unsigned int i;

	for (i = 0; i < BP_OPEN_MAX; i++)
		open->block[i] = U64_MAX;
}

/* The block after which @back others were opened, U64_MAX if there is none. */
static inline u64 bp_opened(const struct bp_open *open, unsigned int back)
{
	return open->block[(open->newest - back) % BP_OPEN_MAX];
}

/* Return true if @block is one of the last @keeps that were opened. */
static inline bool bp_is_open(const struct bp_open *open, unsigned int keeps,
			      u64 block)
{
	unsigned int i;

	for (i = 0; i < keeps; i++)
		if (bp_opened(open, i) == block)
			return true;
	return false;
}

static inline void bp_enter(struct bp_open *open, unsigned int keeps, u64 block)
{
	if (bp_is_open(open, keeps, block))
		return;
	open->crossings++;
	open->block[++open->newest % BP_OPEN_MAX] = block;
}

/**
 * bp_written() - a write is dispatched
 * @open: the open blocks
 * @keeps: number of blocks that the drive keeps open
 * @first: block in which the write begins
 * @last: block in which it ends
 */
static inline void bp_written(struct bp_open *open, unsigned int keeps,
			      u64 first, u64 last)
{
	bp_enter(open, keeps, first);
	/* Of more than fit the ring, only the last can be open afterwards. */
	if (last - first > BP_OPEN_MAX) {
		open->crossings += last - first - BP_OPEN_MAX;
		first = last - BP_OPEN_MAX;
	}
	while (first < last)
		bp_enter(open, keeps, ++first);
}

#endif /* _BP_OPEN_BLOCKS_H */
