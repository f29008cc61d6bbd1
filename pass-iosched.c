// SPDX-License-Identifier: GPL-2.0
/*
 * PASS: a parallelism-aware I/O scheduler for SSDs.
 *
 * After "PASS: a simple, efficient parallelism-aware solid state drive I/O
 * scheduler", sections 3.2 to 3.6.
 *
 * Problem: an SSD is many flash packages in parallel, yet a region of its
 * logical space serves only so many outstanding requests well: beyond that
 * they get in each other's way (buses, buffers) while other regions idle.
 * Reads and writes that are in the device together slow each other down, and
 * scattered addresses are slower than ascending ones.
 *
 * Idea: divide the space into regions of equal size, with a sub-queue each.
 *
 *  1. Sub-queues that have work take turns, round-robin. (3.2, 3.3)
 *  2. A turn is one direction only; the sub-queue's next turn takes the other
 *     one if it can. It ends after read_batch or write_batch requests, or
 *     when no request of its direction is left. (3.3)
 *  3. Within a turn requests go in ascending order, from where the last turn
 *     of that direction stopped; past the last one from the lowest again.
 *     (Ending the turn there would make turns far shorter than the batch.)
 *  4. At most region_depth requests of a region are in flight. A sub-queue
 *     whose region is full passes, keeps the rest of its turn and goes on
 *     when it comes round again. (3.4: the paper argues with the number of
 *     outstanding requests but bounds only the batch. On blk-mq that is not
 *     the same, as a device takes many batches at once.)
 *  5. While reads are about, writes take at most write_share percent of the
 *     device's tags: the rest of a write turn is put off when they have them.
 *     (Beyond the paper, which sends to a device that takes one batch at a
 *     time. One with tags to spare is filled by the writers alone, and each
 *     read then waits for a tag before it waits for the flash.)
 *  6. A request whose deadline has passed goes before all that. (3.3)
 *
 * Example (figure 6): two regions that serve two requests at a time well;
 * R1 to R4 wait for region 0, Q1 to Q4 for region 1. With region_depth=2:
 * R1 R2 go, region 0 is full; Q1 Q2 go, region 1 is full; from then on each
 * completion lets the next request of its region go. Without it R1 to R4
 * would crowd region 0 while region 1 idles.
 *
 * Data: a map from sector to region; in each region a count of requests in
 * flight and, for each I/O priority tier, a sub-queue of two sector-sorted
 * trees (reads, writes). Each tier keeps a ring of the sub-queues that have
 * requests: the first one has its turn, and none without work is looked at.
 * Arrival order and deadlines are the core's (include/iosched.h): one FIFO for
 * all regions tells the oldest request as well as one each would.
 *
 * The map is replaced as a whole when the region size or the capacity of the
 * device changes. Requests in flight keep counting in the old one, which is
 * freed once they have left it.
 */
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/workqueue.h>

#include "iosched-debugfs.h"

#define IOSCHED_NAME "pass"

/*
 * A region costs some 350 bytes. This many are enough for regions of 4 GB on
 * a device of 64 TB, and few enough that the map stays below 6 MB.
 */
#define PASS_MAX_REGIONS 16384U

/* Reads are about when one was dispatched within this time. */
#define PASS_READS_ABOUT (HZ / 10)

/**
 * struct pass_queue - a sub-queue: the requests of a region and a tier
 * @sort: by sector, reads and writes apart
 * @ring: in pass_data.ring while there are requests
 * @nr: number of requests
 * @pos: where the last turn of each direction stopped
 * @taken: requests that the turn under way has had, 0 between turns
 * @dir: direction of the turn, or the one that the next turn prefers
 * @region: the region
 */
struct pass_queue {
	struct rb_root sort[IOSCHED_DIRS];
	struct list_head ring;
	unsigned int nr;
	sector_t pos[IOSCHED_DIRS];
	unsigned int taken;
	unsigned int dir;
	struct pass_region *region;
};

struct pass_region {
	struct pass_queue queue[IOSCHED_TIERS];
	unsigned int served[IOSCHED_DIRS];	/* requests dispatched */
	atomic_t in_flight;
};

/**
 * struct pass_map - the regions of a device
 * @list: in pass_data.retired once another map has taken over
 * @capacity: of the device, in sectors, when the map was made
 * @region_sectors: size of a region
 * @nr: number of regions; the last one may be smaller
 * @region: the regions
 */
struct pass_map {
	struct list_head list;
	sector_t capacity;
	sector_t region_sectors;
	unsigned int nr;
	struct pass_region region[];
};

struct pass_data {
	struct iosched io;		/* first: the core's */

	/* run-time data, under io.lock */
	struct pass_map *map;
	struct list_head ring[IOSCHED_TIERS];
	struct list_head retired;
	unsigned long last_read;	/* jiffies, when one was dispatched */
	struct work_struct resize_work;
	struct mutex resize_lock;	/* one change of the map at a time */

	/* settings */
	unsigned int region_size_mb;
	unsigned int read_batch;
	unsigned int write_batch;
	unsigned int region_depth;
	unsigned int write_share;
};

static struct pass_data *pass_of(struct iosched *io)
{
	return container_of(io, struct pass_data, io);
}

static struct pass_queue *pass_queue_of(struct request *rq)
{
	return rq->elv.priv[0];
}

/*
 * Regions
 */

static unsigned int pass_index(struct pass_map *map, sector_t sector)
{
	u64 index = div64_u64(sector, map->region_sectors);

	return min_t(u64, index, map->nr - 1);
}

static bool pass_full(struct pass_data *pd, struct pass_region *region)
{
	return pd->region_depth &&
	       atomic_read(&region->in_flight) >= pd->region_depth;
}

/* Capacity in sectors; a queue without a disk yet counts as empty. */
static sector_t pass_capacity(struct request_queue *q)
{
	return q->disk ? get_capacity(q->disk) : 0;
}

/*
 * Make a map for the device as it is. Sleeps, but never waits for I/O: the
 * queue may be frozen.
 */
static struct pass_map *pass_map_alloc(struct pass_data *pd,
				       unsigned int size_mb)
{
	sector_t capacity = pass_capacity(pd->io.q);
	sector_t sectors = (sector_t)size_mb * (SZ_1M >> SECTOR_SHIFT);
	u64 nr = max_t(u64, DIV64_U64_ROUND_UP(capacity, sectors), 1);
	unsigned int i, tier, flags;
	struct pass_map *map;

	if (nr > PASS_MAX_REGIONS) {
		pr_err("pass: region_size_mb=%u makes %llu regions of %s, at most %u: use %llu or more\n",
		       size_mb, nr, pd->io.q->disk->disk_name,
		       PASS_MAX_REGIONS,
		       DIV64_U64_ROUND_UP(nr * size_mb, PASS_MAX_REGIONS));
		return ERR_PTR(-EINVAL);
	}
	flags = memalloc_noio_save();
	map = kvzalloc(struct_size(map, region, nr), GFP_KERNEL);
	memalloc_noio_restore(flags);
	if (!map)
		return ERR_PTR(-ENOMEM);

	map->capacity = capacity;
	map->region_sectors = sectors;
	map->nr = nr;
	for (i = 0; i < nr; i++)
		for (tier = 0; tier < IOSCHED_TIERS; tier++) {
			struct pass_queue *queue = &map->region[i].queue[tier];

			queue->region = &map->region[i];
			INIT_LIST_HEAD(&queue->ring);
		}
	return map;
}

static bool pass_map_idle(struct pass_map *map)
{
	unsigned int i;

	for (i = 0; i < map->nr; i++)
		if (atomic_read(&map->region[i].in_flight))
			return false;
	return true;
}

/* Free the maps that no request in flight counts in any more. */
static void pass_reap(struct pass_data *pd)
{
	struct pass_map *map, *next;
	LIST_HEAD(idle);

	spin_lock(&pd->io.lock);
	list_for_each_entry_safe(map, next, &pd->retired, list)
		if (pass_map_idle(map))
			list_move(&map->list, &idle);
	spin_unlock(&pd->io.lock);

	list_for_each_entry_safe(map, next, &idle, list)
		kvfree(map);
}

static void pass_map_switch(struct iosched *io, void *map)
{
	struct pass_data *pd = pass_of(io);

	lockdep_assert_held(&io->lock);
	list_add(&pd->map->list, &pd->retired);
	pd->map = map;
}

/*
 * Divide the device's present capacity anew, into regions of @size_mb, or of
 * the size that they have for 0.
 */
static int pass_resize(struct pass_data *pd, unsigned int size_mb)
{
	struct pass_map *map;
	int ret = 0;

	mutex_lock(&pd->resize_lock);
	if (!size_mb)
		size_mb = pd->region_size_mb;
	map = pass_map_alloc(pd, size_mb);
	if (IS_ERR(map)) {
		ret = PTR_ERR(map);
	} else {
		spin_lock(&pd->io.lock);
		WRITE_ONCE(pd->region_size_mb, size_mb);
		iosched_replace_all(&pd->io, pass_map_switch, map);
		spin_unlock(&pd->io.lock);
		pass_reap(pd);
		iosched_run(&pd->io);
	}
	mutex_unlock(&pd->resize_lock);
	return ret;
}

static void pass_resize_work(struct work_struct *work)
{
	struct pass_data *pd = container_of(work, struct pass_data,
					    resize_work);

	if (pass_resize(pd, 0)) {
		/* The last region keeps what lies behind it: don't try again. */
		spin_lock(&pd->io.lock);
		pd->map->capacity = pass_capacity(pd->io.q);
		spin_unlock(&pd->io.lock);
	}
}

static int pass_set_region_size(struct iosched *io, unsigned int *field,
				unsigned int value)
{
	return pass_resize(pass_of(io), value);
}

/*
 * Where requests wait
 */

static struct rb_root *pass_root(struct iosched *io, unsigned int tier,
				 unsigned int dir, sector_t sector)
{
	struct pass_map *map = pass_of(io)->map;
	unsigned int index = pass_index(map, sector);

	return &map->region[index].queue[tier].sort[dir];
}

static struct rb_root *pass_placed(struct request *rq)
{
	return &pass_queue_of(rq)->sort[rq_data_dir(rq)];
}

/* The sub-queue of a request that arrives. */
static struct pass_queue *pass_assign(struct pass_data *pd, struct request *rq)
{
	unsigned int index = pass_index(pd->map, blk_rq_pos(rq));
	struct pass_region *region = &pd->map->region[index];

	if (unlikely(pass_capacity(pd->io.q) != pd->map->capacity))
		schedule_work(&pd->resize_work);

	rq->elv.priv[0] = &region->queue[iosched_rq_tier(rq)];
	return pass_queue_of(rq);
}

static struct rb_root *pass_place(struct iosched *io, struct request *rq)
{
	struct pass_data *pd = pass_of(io);
	struct pass_queue *queue = pass_assign(pd, rq);

	lockdep_assert_held(&io->lock);
	if (!queue->nr++)
		list_add_tail(&queue->ring, &pd->ring[iosched_rq_tier(rq)]);
	return pass_placed(rq);
}

static void pass_removed(struct iosched *io, struct request *rq,
			 struct request *heir)
{
	struct pass_queue *queue = pass_queue_of(rq);

	lockdep_assert_held(&io->lock);
	if (!--queue->nr)
		list_del_init(&queue->ring);
}

/* No merge across a region border: the two sides may go in parallel. */
static bool pass_may_merge(struct iosched *io, unsigned int dir,
			   sector_t start, sector_t end)
{
	struct pass_map *map = pass_of(io)->map;

	return pass_index(map, start) == pass_index(map, end - 1);
}

/*
 * Turns
 */

/* Have writes in flight their share? Then one of them will end and wake us. */
static bool pass_writes_full(struct pass_data *pd)
{
	return pd->write_share < 100 &&
	       time_before(jiffies, pd->last_read + PASS_READS_ABOUT) &&
	       iosched_dir_in_flight(&pd->io, WRITE) >=
	       max(iosched_tags(&pd->io) * pd->write_share / 100, 1U);
}

/* Return true if the bounds let a request of @region be dispatched. */
static bool pass_within_bounds(struct pass_data *pd, struct pass_region *region,
			       bool is_read, bool writes_full)
{
	return !pass_full(pd, region) && (is_read || !writes_full);
}

/* The next request of a direction: ascending, then from the lowest. (Rule 3) */
static struct request *pass_ahead(struct pass_queue *queue, unsigned int dir)
{
	struct request *rq = iosched_from(&queue->sort[dir], queue->pos[dir]);

	return rq ? rq : iosched_from(&queue->sort[dir], 0);
}

static void pass_end_turn(struct pass_data *pd, struct pass_queue *queue)
{
	iosched_note(&pd->io, "pass turn %td %c %u",
		     queue->region - pd->map->region,
		     queue->dir == READ ? 'R' : 'W', queue->taken);
	queue->taken = 0;
	queue->dir = !queue->dir;
}

/* The other direction's turn, if not after one of its own. */
static void pass_turn_over(struct pass_data *pd, struct pass_queue *queue)
{
	/* The rest of a turn may have been merged, or have expired. */
	if (queue->taken)
		pass_end_turn(pd, queue);
	else
		queue->dir = !queue->dir;
}

/*
 * @rq is the next request of @queue. Rule 2: it belongs to a turn of its
 * direction, which ends with it after a batch, or if it is the last one. Return
 * true if the turn has ended.
 */
static bool pass_advance(struct pass_data *pd, struct pass_queue *queue,
			 struct request *rq, bool last)
{
	unsigned int dir = rq_data_dir(rq);
	unsigned int batch = dir == READ ? pd->read_batch : pd->write_batch;

	if (queue->dir != dir)
		pass_turn_over(pd, queue);
	queue->pos[dir] = iosched_rq_end(rq);
	if (++queue->taken < batch && !last)
		return false;
	pass_end_turn(pd, queue);
	return true;
}

/* The next request of a sub-queue that is within its bounds. */
static struct request *pass_take(struct pass_data *pd,
				 struct pass_queue *queue, bool writes_full)
{
	unsigned int dir = queue->dir;
	struct request *rq;

	if (RB_EMPTY_ROOT(&queue->sort[dir]) || (dir == WRITE && writes_full))
		dir = !dir;
	rq = pass_ahead(queue, dir);
	if (pass_advance(pd, queue, rq,
			 !iosched_next(rq) && !iosched_prev(rq)))
		list_move_tail(&queue->ring, &pd->ring[iosched_rq_tier(rq)]);
	return rq;
}

/*
 * Rule 1: the sub-queues behind the last one served come first; one lap at most.
 */
static struct request *pass_select(struct iosched *io, unsigned int tier)
{
	struct pass_data *pd = pass_of(io);
	struct list_head *ring = &pd->ring[tier];
	struct pass_queue *queue, *passed = NULL;
	bool writes_full = !list_empty(&io->fifo[tier][WRITE]) &&
			   pass_writes_full(pd);

	lockdep_assert_held(&io->lock);
	while ((queue = list_first_entry_or_null(ring, struct pass_queue,
						 ring)) != passed) {
		if (pass_within_bounds(pd, queue->region,
				       !RB_EMPTY_ROOT(&queue->sort[READ]),
				       writes_full))
			return pass_take(pd, queue, writes_full);
		if (!passed)
			passed = queue;
		list_move_tail(&queue->ring, ring);
	}
	return NULL;
}

/* The only request of all: its turn ends with it. */
static bool pass_alone(struct iosched *io, struct request *rq)
{
	struct pass_data *pd = pass_of(io);
	struct pass_queue *queue = pass_assign(pd, rq);
	bool is_read = rq_data_dir(rq) == READ;

	lockdep_assert_held(&io->lock);
	if (!pass_within_bounds(pd, queue->region, is_read,
				!is_read && pass_writes_full(pd)))
		return false;
	pass_advance(pd, queue, rq, true);
	return true;
}

static bool pass_ready(struct iosched *io, struct request *rq, bool due)
{
	return !pass_full(pass_of(io), pass_queue_of(rq)->region);
}

static void pass_dispatched(struct iosched *io, struct request *rq)
{
	struct pass_region *region = pass_queue_of(rq)->region;

	lockdep_assert_held(&io->lock);
	if (rq_data_dir(rq) == READ)
		pass_of(io)->last_read = jiffies;
	region->served[rq_data_dir(rq)]++;
	atomic_inc(&region->in_flight);
}

static void pass_released(struct request *rq)
{
	atomic_dec(&pass_queue_of(rq)->region->in_flight);
}

/*
 * Coming and going
 */

#define PASS_TUNABLES(T, C)						\
	T(pass_data, region_size_mb, 4096, 1, 1048576,			\
	  pass_set_region_size, "MB in a region")			\
	T(pass_data, read_batch, 16, 1, 65535, iosched_set,		\
	  "most reads in a turn")					\
	T(pass_data, write_batch, 16, 1, 65535, iosched_set,		\
	  "most writes in a turn")					\
	T(pass_data, region_depth, 0, 0, 65535, iosched_set,		\
	  "most requests of a region in flight, 0: no bound")		\
	T(pass_data, write_share, 75, 1, 100, iosched_set,		\
	  "percent of the device's tags for writes while reads are about, 100: no bound")

static int pass_init(struct iosched *io)
{
	struct pass_data *pd = pass_of(io);
	unsigned int tier;

	pd->last_read = jiffies - PASS_READS_ABOUT;
	INIT_LIST_HEAD(&pd->retired);
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		INIT_LIST_HEAD(&pd->ring[tier]);
	INIT_WORK(&pd->resize_work, pass_resize_work);
	mutex_init(&pd->resize_lock);
	pd->map = pass_map_alloc(pd, pd->region_size_mb);
	return PTR_ERR_OR_ZERO(pd->map);
}

static void pass_exit(struct iosched *io)
{
	struct pass_data *pd = pass_of(io);

	cancel_work_sync(&pd->resize_work);
	pass_reap(pd);
	WARN_ON_ONCE(!list_empty(&pd->retired) || !pass_map_idle(pd->map));
	kvfree(pd->map);
}

#ifdef CONFIG_BLK_DEBUG_FS
static void pass_regions(struct iosched *io, struct seq_file *m)
{
	struct pass_data *pd = pass_of(io);
	unsigned int i, tier, queued;

	seq_printf(m, "# %u regions of %u MB\nregion reads writes queued in_flight\n",
		   pd->map->nr, pd->region_size_mb);
	for (i = 0; i < pd->map->nr; i++) {
		struct pass_region *region = &pd->map->region[i];

		for (queued = 0, tier = 0; tier < IOSCHED_TIERS; tier++)
			queued += region->queue[tier].nr;
		if (region->served[READ] || region->served[WRITE] || queued)
			seq_printf(m, "%u %u %u %u %d\n", i,
				   region->served[READ], region->served[WRITE],
				   queued, atomic_read(&region->in_flight));
	}
}

IOSCHED_SHOW(pass_regions)
#endif

static const struct iosched_policy pass_policy = {
	.size		= sizeof(struct pass_data),
	.init		= pass_init,
	.exit		= pass_exit,
	.root		= pass_root,
	.place		= pass_place,
	.placed		= pass_placed,
	.removed	= pass_removed,
	.may_merge	= pass_may_merge,
	.ready		= pass_ready,
	.select		= pass_select,
	.alone		= pass_alone,
	.dispatched	= pass_dispatched,
	.released	= pass_released,
};

#define IOSCHED_POLICY		pass_policy
#define IOSCHED_POLICY_TUNABLES	PASS_TUNABLES
#define IOSCHED_POLICY_DEBUGFS	{ "regions", 0400, pass_regions_show }
#include "iosched-tmpl.h"

MODULE_AUTHOR("The ssd-iosched developers");
MODULE_DESCRIPTION("PASS, a parallelism-aware I/O scheduler for SSDs");
MODULE_LICENSE("GPL");
