/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The four cases of the block-preferential scheduler: which write to dispatch
 * next, so that a flash drive leaves an erase block as rarely as possible.
 * After "A new I/O scheduler for solid state devices", section 4.1, figure 13.
 *
 * Writes of higher sectors than the last write are in front of it, those of
 * lower sectors are behind it. The nearest few on each side are compared. A
 * write is in the block in which it begins, and leaves the drive in the block
 * in which it ends.
 *
 *	1. The nearest of both sides are in the last write's block: the larger.
 *	2. One of them is: that one.
 *	3. None is, and the nearest on one side share a block: that side.
 *	4. None is, and the nearest on each side share a block: the side with
 *	   more sectors.
 *
 * On a tie, the write in front is chosen. If no case applies, which the paper
 * leaves open, the caller continues its sweep: it reaches each part of the
 * drive after the longest time, when most requests are queued there. (Choosing
 * the larger of the two nearest crosses more block boundaries if writes are
 * scattered.)
 *
 * Cases 3 and 4 compare two writes of a side, so they do not apply if only one
 * is looked at, which is the default. The paper looks at two. If the queue holds
 * several writes for each of a few blocks, two writes share a block nearly
 * everywhere. Cases 3 and 4 then turn back to a block that was left shortly
 * before, as soon as two are queued in it, and cross more block boundaries than
 * a plain sweep.
 *
 * Pure: no allocation, no locking, no side effect outside the arguments.
 */
#ifndef _BP_PREFERENCE_H
#define _BP_PREFERENCE_H

#include <linux/math64.h>
#include <linux/types.h>

/* Most writes of a side that are looked at. */
#define BP_LOOKAHEAD_MAX	16

/* The case that applies. */
enum bp_case {
	BP_BOTH_IN,	/* 1 */
	BP_ONE_IN,	/* 2 */
	BP_ONE_RUN,	/* 3 */
	BP_TWO_RUNS,	/* 4 */
	BP_NO_CASE,
	BP_CASES,
};

/**
 * struct bp_side - the writes on one side of the last one, the nearest first
 * @nr: number of them
 * @sector: first sector of each
 * @sectors: size of each
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
 * Number of writes, from the nearest on, each of which begins in the block in
 * which the one before ends. *@sectors is set to their size.
 */
static inline unsigned int bp_run(const struct bp_side *side,
				  u32 block_sectors, u64 *sectors)
{
	unsigned int i;

	*sectors = 0;
	for (i = 0; i < side->nr; i++) {
		u64 end = i ? side->sector[i - 1] + side->sectors[i - 1] : 0;

		if (i && bp_block(side->sector[i], block_sectors) !=
			 bp_block(end - 1, block_sectors))
			break;
		*sectors += side->sectors[i];
	}
	return i;
}

/**
 * bp_prefer() - choose between the writes in front and those behind
 * @front: nearest writes in front of the last one
 * @back: nearest writes behind it; a side may be empty
 * @last: block in which the last write ended
 * @block_sectors: size of an erase block
 * @in_front: set to true for the nearest write in front, to false for the
 *	nearest behind; undefined if no case applies
 *
 * Return: the case that applies.
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

#endif /* _BP_PREFERENCE_H */
