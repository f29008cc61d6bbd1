/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PASS's region map: the regions of a device, each with its sub-queues and a
 * count of its requests in flight.
 *
 * The regions of a map are fixed. When the region size or the capacity of the
 * device changes, another map replaces it. rq->elv.priv[0] points to the
 * sub-queue of a request, so a map is freed only after the last of its requests
 * in flight has completed.
 */
#ifndef _PASS_MAP_H
#define _PASS_MAP_H

#include <linux/math64.h>
#include <linux/sizes.h>

#include "iosched.h"

/*
 * A region takes 384 bytes. This many suffice for regions of 4 GB on a device of
 * 64 TB, and the map stays below 7 MB.
 */
#define PASS_MAX_REGIONS 16384U

/**
 * struct pass_queue - a sub-queue: the requests of a region and a tier
 * @sort: requests by sector, for each direction
 * @ring: entry in pass_lap.ring while it has requests of that direction; without laps, the
 *	first one while it has requests
 * @nr: number of requests
 * @dir: without laps, the direction of the present or next turn
 * @pos: where the last turn of each direction stopped, in sectors
 * @taken: requests dispatched in the turn of each direction, 0 between turns
 * @region: the region
 */
struct pass_queue {
	struct rb_root sort[IOSCHED_DIRS];
	struct list_head ring[IOSCHED_DIRS];
	unsigned int nr;
	unsigned int dir;
	sector_t pos[IOSCHED_DIRS];
	unsigned int taken[IOSCHED_DIRS];
	struct pass_region *region;
};

/**
 * struct pass_region - a region of a device
 * @queue: its sub-queues
 * @end: sector after it; of the last one, that of the largest device
 * @served: requests dispatched, by direction; for debugfs
 * @in_flight: requests dispatched and not completed. Atomic: completions take
 *	no lock.
 */
struct pass_region {
	struct pass_queue queue[IOSCHED_TIERS];
	sector_t end;
	unsigned int served[IOSCHED_DIRS];
	atomic_t in_flight ____cacheline_aligned_in_smp;
};

IOSCHED_OWN_LINES(struct pass_region, offsetof(struct pass_region, in_flight),
		  sizeof(struct pass_region));

/**
 * struct pass_map - the regions of a device
 * @list: entry in pass_data.retired after another map has replaced this one
 * @capacity: capacity for which the map was made, in sectors
 * @region_sectors: size of a region
 * @nr: number of regions; the last one may be smaller than the others
 * @region: the regions
 */
struct pass_map {
	struct list_head list;
	sector_t capacity;
	sector_t region_sectors;
	unsigned int nr;
	struct pass_region region[];
};

/* Number of the region of @sector. The last region has no upper end. */
static inline unsigned int pass_index(struct pass_map *map, sector_t sector)
{
	u64 index = div64_u64(sector, map->region_sectors);

	return min_t(u64, index, map->nr - 1);
}

/* Capacity of a device in sectors; 0 while the queue has no disk. */
static inline sector_t pass_capacity(struct request_queue *q)
{
	return q->disk ? get_capacity(q->disk) : 0;
}

/* The least size of a region, in MB, on a device of this capacity. */
static inline unsigned int pass_least_mb(sector_t capacity)
{
	return DIV64_U64_ROUND_UP(capacity,
				  (u64)PASS_MAX_REGIONS * (SZ_1M >> SECTOR_SHIFT));
}

/**
 * pass_map_alloc() - make an empty map of a device
 * @capacity: of the device, in sectors
 * @size_mb: size of a region in MB
 *
 * Sleeps, but does not wait for I/O: the queue may be frozen.
 *
 * Return: the map, or an ERR_PTR() if there would be too many regions or there
 * is no memory.
 */
static struct pass_map *pass_map_alloc(sector_t capacity, unsigned int size_mb)
{
	sector_t sectors = (sector_t)size_mb * (SZ_1M >> SECTOR_SHIFT);
	u64 nr = max_t(u64, DIV64_U64_ROUND_UP(capacity, sectors), 1);
	unsigned int i, tier;
	struct pass_map *map;

	if (nr > PASS_MAX_REGIONS)
		return ERR_PTR(-EINVAL);
	map = iosched_zalloc(struct_size(map, region, nr));
	if (!map)
		return ERR_PTR(-ENOMEM);

	map->capacity = capacity;
	map->region_sectors = sectors;
	map->nr = nr;
	for (i = 0; i < nr; i++) {
		struct pass_region *region = &map->region[i];

		region->end = i < nr - 1 ? (i + 1) * sectors : ~(sector_t)0;
		for (tier = 0; tier < IOSCHED_TIERS; tier++) {
			struct pass_queue *queue = &region->queue[tier];

			queue->region = region;
			INIT_LIST_HEAD(&queue->ring[READ]);
			INIT_LIST_HEAD(&queue->ring[WRITE]);
		}
	}
	return map;
}

/* Return true if no request in flight is counted in @map. */
static inline bool pass_map_idle(struct pass_map *map)
{
	unsigned int i;

	for (i = 0; i < map->nr; i++)
		if (atomic_read(&map->region[i].in_flight))
			return false;
	return true;
}

#endif /* _PASS_MAP_H */
