/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replacing the map of PASS: if region_size_mb is set, or the capacity of the device has
 * changed.
 */
#ifndef _PASS_RESIZE_H
#define _PASS_RESIZE_H

#include "pass/data.h"

/*
 * Free the former maps whose requests have all completed. Under resize_lock, or at the
 * end. Requests are placed in the present map only, so an idle one stays idle: to look at
 * all regions needs no lock that others wait for.
 */
static void pass_reap(struct pass_data *pd)
{
	struct pass_map *map, *next;

	list_for_each_entry_safe(map, next, &pd->retired, list)
		if (pass_map_idle(map)) {
			list_del(&map->list);
			kvfree(map);
		}
}

static void pass_use_map(struct pass_data *pd, struct pass_map *map)
{
	pd->map = map;
	WRITE_ONCE(pd->capacity, map->capacity);
}

static void pass_map_switch(struct iosched *io, void *map)
{
	struct pass_data *pd = pass_of(io);

	lockdep_assert_held(&io->lock);
	list_add(&pd->map->list, &pd->retired);
	pass_use_map(pd, map);
}

/*
 * The present size of regions, in MB, or the least that the capacity allows if that is
 * larger: init() must not fail for it.
 */
static unsigned int pass_fit_mb(struct pass_data *pd, sector_t capacity)
{
	unsigned int least = pass_least_mb(capacity);

	if (pd->region_size_mb >= least)
		return pd->region_size_mb;
	pr_warn("pass: region_size_mb=%u makes more than %u regions of %s: uses %u\n",
		pd->region_size_mb, PASS_MAX_REGIONS, pd->io.q->disk->disk_name,
		least);
	return least;
}

/*
 * Replace the map by one for the present capacity of the device, with regions
 * of @size_mb, or of a size that fits if that is 0.
 */
static int pass_resize(struct pass_data *pd, unsigned int size_mb)
{
	struct pass_map *map;
	sector_t capacity;
	int ret = 0;

	mutex_lock(&pd->resize_lock);
	capacity = pass_capacity(pd->io.q);
	if (!size_mb)
		size_mb = pass_fit_mb(pd, capacity);
	map = pass_map_alloc(capacity, size_mb);
	if (IS_ERR(map)) {
		ret = PTR_ERR(map);
	} else {
		WRITE_ONCE(pd->region_size_mb, size_mb);
		iosched_replace_all(&pd->io, pass_map_switch, map);
		pass_reap(pd);
	}
	mutex_unlock(&pd->resize_lock);
	return ret;
}

static void pass_resize_work(struct work_struct *work)
{
	struct pass_data *pd = container_of(work, struct pass_data,
					    resize_work);

	if (pass_resize(pd, 0)) {
		/* Keep the map for this capacity, instead of trying again. */
		spin_lock(&pd->io.lock);
		WRITE_ONCE(pd->capacity, pass_capacity(pd->io.q));
		spin_unlock(&pd->io.lock);
	}
}

static int pass_set_region_size(struct iosched *io, unsigned int *field,
				unsigned int value)
{
	int ret = pass_resize(pass_of(io), value);

	if (ret == -EINVAL)
		pr_err("pass: region_size_mb=%u makes more than %u regions of %s: the least is %u\n",
		       value, PASS_MAX_REGIONS, io->q->disk->disk_name,
		       pass_least_mb(pass_capacity(io->q)));
	return ret;
}

#endif /* _PASS_RESIZE_H */
