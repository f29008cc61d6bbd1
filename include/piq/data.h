/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What PIQ knows of a device.
 */
#ifndef _PIQ_DATA_H
#define _PIQ_DATA_H

#include "iosched.h"
#include "piq/map.h"
#include "piq/schemes.h"
#include "piq/trial.h"

/* Batch sizes are counted by their log2; each request of a batch has a unit. */
#define PIQ_SIZES (const_ilog2(LV_MAX_UNITS) + 1)

/* Kinds of conflicts: between reads, between writes, between the two. */
enum {
	PIQ_RR,
	PIQ_WW,
	PIQ_RW,
	PIQ_KINDS,
};

struct piq_data {
	struct iosched io;		/* first: the core's */

	/* run-time data, under io.lock */
	struct piq_map __rcu *map;
	struct piq_trial trial;
	unsigned long tried_at;		/* jiffy of the last look at the trial */
	/* first in the core's FIFO of those that found the window full */
	struct request *outside[IOSCHED_TIERS][IOSCHED_DIRS];
	u64 write_turn[IOSCHED_TIERS];	/* ns, end of the last prioritised batch */
	bool read_turn[IOSCHED_TIERS];	/* no read batch has ended since then */
	unsigned int conflicts[PIQ_KINDS];
	unsigned int batches[IOSCHED_DIRS];
	unsigned int sizes[IOSCHED_DIRS][PIQ_SIZES];
	unsigned int prioritised;

	/* settings */
	unsigned int page_size_kb;
	unsigned int channels;
	unsigned int chips;
	unsigned int dies;
	unsigned int planes;
	unsigned int allocation;
	unsigned int level;
	unsigned int window;
	unsigned int scheme;
	unsigned int write_wait_us;
	unsigned int claim_us;
	unsigned int buffered_writes;
	unsigned int trials;
};

static struct piq_data *piq_of(struct iosched *io)
{
	return container_of(io, struct piq_data, io);
}

/* The map, under io.lock. */
static struct piq_map *piq_map_of(struct piq_data *pd)
{
	return rcu_dereference_protected(pd->map, lockdep_is_held(&pd->io.lock));
}

static bool piq_batched(struct piq_data *pd, unsigned int dir)
{
	return piq_schemes[pd->scheme].batches[dir];
}

/* Rule 8: return true if requests of this direction neither hold nor need units. */
static bool piq_buffered(struct piq_data *pd, unsigned int dir)
{
	return dir == WRITE && pd->buffered_writes;
}

/* Rule 7: return true if no request is held. */
static bool piq_is_free(struct piq_data *pd)
{
	return pd->trials && pd->trial.free;
}

/* Return true if the units of @vector are free, or a request needs none (rule 8). */
static bool piq_units_free(struct piq_data *pd, unsigned int dir,
			   const unsigned long *vector)
{
	struct piq_map *map = piq_map_of(pd);

	return piq_buffered(pd, dir) || piq_is_free(pd) ||
	       !lv_meet(vector, map->units.held, map->lv.units);
}

#endif /* _PIQ_DATA_H */
