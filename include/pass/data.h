/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What PASS knows of a device: its map, and the laps of each tier.
 */
#ifndef _PASS_DATA_H
#define _PASS_DATA_H

#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "iosched.h"
#include "pass/map.h"

/**
 * struct pass_lap - the rings of a tier, and its lap
 * @ring: sub-queues that have requests of each direction; without laps, those that have
 *	requests are in the first one
 * @nr: number of them
 * @dir: direction of the lap
 * @left: turns left in it, the current one included, at most @nr; 0 if it has not
 *	begun
 */
struct pass_lap {
	struct list_head ring[IOSCHED_DIRS];
	unsigned int nr[IOSCHED_DIRS];
	unsigned int dir;
	unsigned int left;
};

struct pass_data {
	struct iosched io;		/* must be first */

	/* run-time data, under io.lock */
	struct pass_map *map;
	sector_t capacity;		/* of @map, or for which none could be made */
	struct pass_lap lap[IOSCHED_TIERS];
	struct list_head retired;	/* former maps in use; under resize_lock */
	struct work_struct resize_work;
	struct mutex resize_lock;	/* serialises changes of the map and of @laps */

	/* settings */
	unsigned int region_size_mb;
	unsigned int read_batch;
	unsigned int write_batch;
	unsigned int region_depth;
	unsigned int laps;
};

static struct pass_data *pass_of(struct iosched *io)
{
	return container_of(io, struct pass_data, io);
}

#endif /* _PASS_DATA_H */
