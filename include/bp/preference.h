/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which write goes next, so that a flash drive leaves an erase block as rarely
 * as can be: the four cases of the block-preferential scheduler ("A new I/O
 * scheduler for solid state devices", section 4.1 and figure 13).
 *
 * In front of the last write lie the requests of higher sectors, behind it
 * those of lower ones. Looked at are the nearest few of each side. A request
 * lies in the block in which it begins, and leaves the drive in the block in
 * which it ends.
 *
 *	1. The nearest of both sides lie in the last write's block: the larger.
 *	2. One of them does: that one.
 *	3. None does, and on one side those nearest share a block: that side.
 *	4. None does, and they share a block on both sides: the side with more
 *	   sectors.
 *
 * When no case applies, which the paper leaves open, the order of the base does:
 * it sweeps, and so comes to each part of the drive after the longest time, with
 * the most requests in it. (Taking the larger of the two nearest, as in 1 and 4,
 * was tried first: on scattered writes it crosses more boundaries than a sweep.)
 * Where a case has a tie the front one goes.
 *
 * Used by the BP elevator. Pure: no allocation, no locking, no side effect
 * outside the arguments.
 */
#ifndef _BP_PREFERENCE_H
#define _BP_PREFERENCE_H

#include <linux/math64.h>
#include <linux/types.h>

/* How many requests of a side may be looked at; the paper looks at two. */
#define BP_LOOKAHEAD_MAX	16

/* What decided. */
enum bp_case {
	BP_BOTH_IN,	/* 1 */
	BP_ONE_IN,	/* 2 */
	BP_ONE_RUN,	/* 3 */
	BP_TWO_RUNS,	/* 4 */
	BP_NO_CASE,
	BP_CASES,
};

/**
 * struct bp_side - the nearest requests on one side, the nearest first
 * @nr: how many; less than are looked at when there are no more
 * @sector: where each begins
 * @sectors: its size
 */
struct bp_side {
	unsigned int nr;
	u64 sector[BP_LOOKAHEAD_MAX];
	u32 sectors[BP_LOOKAHEAD_MAX];
};

static inline void bp_side_add(struct bp_side *side, u64 sector, u32 sectors)
{
	side->sector[side->nr] = sector;
	side->sectors[side->nr++] = sectors;
}

static inline u64 bp_block(u64 sector, u32 block_sectors)
{
	return div_u64(sector, block_sectors);
}

/*
 * The nearest requests of a side that can be had without leaving a block on
 * the way: their number, and their sectors in *@sectors.
 */
static inline unsigned int bp_run(const struct bp_side *side,
				  u32 block_sectors, u64 *sectors)
{
	unsigned int i;

	*sectors = 0;
	for (i = 0; i < side->nr; i++) {
		if (i && bp_block(side->sector[i], block_sectors) !=
			 bp_block(side->sector[i - 1] + side->sectors[i - 1] - 1,
				  block_sectors))
			break;
		*sectors += side->sectors[i];
	}
	return i;
}

/**
 * bp_prefer() - choose between the requests in front and those behind
 * @front: nearest ones in front of the last write
 * @back: nearest ones behind it; a side may be empty
 * @last: block in which the last write ended
 * @block_sectors: size of an erase block
 * @in_front: set to whether the nearest in front goes, or the nearest behind;
 *	says nothing if no case applies
 *
 * Return: the case that decided.
 */
static inline enum bp_case bp_prefer(const struct bp_side *front,
				     const struct bp_side *back, u64 last,
				     u32 block_sectors, bool *in_front)
{
	bool front_in = front->nr &&
			bp_block(front->sector[0], block_sectors) == last;
	bool back_in = back->nr &&
		       bp_block(back->sector[0], block_sectors) == last;
	u64 front_sectors, back_sectors;
	bool front_run, back_run;

	if (front_in && back_in) {
		*in_front = front->sectors[0] >= back->sectors[0];
		return BP_BOTH_IN;
	}
	if (front_in || back_in) {
		*in_front = front_in;
		return BP_ONE_IN;
	}
	front_run = bp_run(front, block_sectors, &front_sectors) > 1;
	back_run = bp_run(back, block_sectors, &back_sectors) > 1;
	if (front_run && back_run) {
		*in_front = front_sectors >= back_sectors;
		return BP_TWO_RUNS;
	}
	*in_front = front_run;
	return front_run || back_run ? BP_ONE_RUN : BP_NO_CASE;
}

/*
 * The blocks that the drive has open: those that were opened last, as many as
 * it keeps.
 */
#define BP_OPEN_MAX	64

/**
 * struct bp_open - blocks that writes have opened
 * @block: a ring
 * @newest: number of the last one
 * @crossings: how many were opened so far
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

/* The block that was opened when @back others were opened after it. */
static inline u64 bp_opened(const struct bp_open *open, unsigned int back)
{
	return open->block[(open->newest - back) % BP_OPEN_MAX];
}

/* Is that block one of the last @keeps that were opened? */
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
 * bp_written() - a write goes to the drive
 * @open: the open blocks
 * @keeps: how many the drive keeps
 * @first: block in which the write begins
 * @last: block in which it ends
 */
static inline void bp_written(struct bp_open *open, unsigned int keeps,
			      u64 first, u64 last)
{
	bp_enter(open, keeps, first);
	/* Of very many only the last can be open afterwards. */
	if (last - first > BP_OPEN_MAX) {
		open->crossings += last - first - BP_OPEN_MAX;
		first = last - BP_OPEN_MAX;
	}
	while (first < last)
		bp_enter(open, keeps, ++first);
}

#endif /* _BP_PREFERENCE_H */
