// SPDX-License-Identifier: GPL-2.0
/*
 * PASS: a parallelism-aware I/O scheduler for SSDs.
 *
 * After "PASS: a simple, efficient parallelism-aware solid state drive I/O
 * scheduler", sections 3.2 to 3.6.
 *
 * Problem: an SSD has many flash packages that work in parallel, yet a region
 * of its logical space serves only a limited number of outstanding requests
 * well. More than that compete for buses and buffers while other regions are
 * idle. Reads and writes that are in the device together slow each other down,
 * and scattered addresses are slower than ascending ones.
 *
 * Idea: divide the logical space into regions of equal size, each with its own
 * sub-queue.
 *
 *  1. The sub-queues that have requests take turns, round-robin. (3.2, 3.3) The turns
 *     of a lap (rule 2) overlap: the next request is of the sub-queue whose region has
 *     the fewest requests in flight, of those that have a turn left in the lap. The
 *     first PASS_COMPARED of them are compared. (Not in the paper, whose device takes
 *     one batch at a time. A turn that is dispatched as a whole fills one region while
 *     others are idle.)
 *  2. A turn dispatches one direction only. It ends after read_batch or
 *     write_batch requests, or when none of its direction is left. (3.3) All
 *     sub-queues have the same direction. It changes after a lap, which has as
 *     many turns as sub-queues had requests of the direction when it began, or
 *     when none can dispatch one: their regions are full, or writes use their
 *     share of the device (include/tmpl/readers/). (Not in the paper,
 *     where a sub-queue alternates by itself. But then some read while others
 *     write, and the device has both at any time. With laps=0 it is as in the paper:
 *     pass_alternate().)
 *  3. A turn dispatches in ascending order, from where the last turn of its
 *     direction stopped, and continues with the lowest address after the
 *     highest. (3.3; the paper does not say what follows the highest. A turn
 *     that ended there would mostly be far shorter than a batch.)
 *  4. At most region_depth requests of a region are in flight. A sub-queue
 *     whose region is full is passed over and keeps the rest of its turn. If the
 *     regions of all that have a turn left are full, another one has a turn.
 *     (3.4; the paper argues with the number of outstanding requests but bounds
 *     only the batch. On blk-mq a device takes many batches at once, so a
 *     bound on the batch does not bound what is outstanding.)
 *  5. A request whose deadline has passed is dispatched first, whichever the
 *     direction of the lap, and counts in no turn. (3.3; done by the core, which asks
 *     pass_ready().)
 *  6. No request is merged across the border of a region. (Not in the paper.)
 *  7. While the device has room for all that are queued, requests are dispatched in order
 *     of arrival, each as a turn of its own. While none is queued, they bypass the
 *     scheduler, unless region_depth is set, and are counted in no region. (Not in the
 *     paper.)
 *
 * Example (figure 6): two regions that serve two requests at a time well; R1 to
 * R4 wait for region 0, Q1 to Q4 for region 1. With region_depth=2, R1, Q1, R2 and
 * Q2 are dispatched, and both regions are full. From then on each completion admits
 * the next request of its region. Without the bound R3, Q3, R4 and Q4 would follow
 * at once and crowd both regions.
 *
 * Data: a map (include/pass/map.h) leads from a sector to its region; another one replaces
 * it if the size of regions or of the device changes (include/pass/resize.h). A region
 * has a count of its requests in flight and, for each I/O priority tier, a
 * sub-queue: two trees sorted by sector, for reads and for writes. Each tier
 * has a ring of the sub-queues that have reads, and one of those that have
 * writes; without laps, one of all that have requests. A sub-queue moves to the end of
 * its ring when its turn ends.
 * Arrival order and deadlines are the core's (include/iosched.h). The paper has
 * FIFOs in each sub-queue, but a FIFO for all regions finds the same requests.
 */
#include "iosched-debugfs.h"
#include "pass/data.h"
#include "pass/map.h"
#include "pass/resize.h"

#define IOSCHED_NAME "pass"

/*
 * Rule 1: most sub-queues that are compared before a request is dispatched; without laps,
 * that are passed as they have none of the only direction.
 */
#define PASS_COMPARED	16

static struct pass_queue *pass_queue_of(struct request *rq)
{
	return rq->elv.priv[0];
}

/*
 * Sub-queues
 */

static struct rb_root *pass_tree_for(struct iosched *io, unsigned int tier,
				     unsigned int dir, sector_t sector)
{
	struct pass_map *map = pass_of(io)->map;

	lockdep_assert_held(&io->lock);
	return &map->region[pass_index(map, sector)].queue[tier].sort[dir];
}

static struct rb_root *pass_tree_of(struct request *rq)
{
	return &pass_queue_of(rq)->sort[rq_data_dir(rq)];
}

/*
 * Assign @rq to its sub-queue, which is returned. Have the map replaced if the
 * capacity of the device has changed; until then the last region takes what
 * lies behind it.
 */
static struct pass_queue *pass_assign(struct pass_data *pd, struct request *rq)
{
	unsigned int index = pass_index(pd->map, blk_rq_pos(rq));
	struct pass_region *region = &pd->map->region[index];
	struct pass_queue *queue = &region->queue[iosched_rq_tier(rq)];

	rq->elv.priv[0] = queue;
	if (unlikely(pass_capacity(pd->io.q) != pd->capacity))
		schedule_work(&pd->resize_work);
	return queue;
}

static void pass_place(struct iosched *io, struct request *rq)
{
	struct pass_data *pd = pass_of(io);
	struct pass_lap *lap = &pd->lap[iosched_rq_tier(rq)];
	struct pass_queue *queue = pass_assign(pd, rq);
	unsigned int dir = rq_data_dir(rq);

	lockdep_assert_held(&io->lock);
	if (!queue->nr++ && !pd->laps)
		list_add_tail(&queue->ring[READ], &lap->ring[READ]);
	if (pd->laps && RB_EMPTY_ROOT(&queue->sort[dir])) {
		list_add_tail(&queue->ring[dir], &lap->ring[dir]);
		lap->nr[dir]++;
	}
}

/* Rule 2: begin a lap of the other direction. */
static void pass_next_lap(struct pass_lap *lap)
{
	lap->dir = !lap->dir;
	lap->left = 0;
}

/* A sub-queue has left the ring of the lap, perhaps with no turn in it. */
static void pass_shorten(struct pass_lap *lap)
{
	if (lap->left <= lap->nr[lap->dir])
		return;
	lap->left = lap->nr[lap->dir];
	if (!lap->left)
		pass_next_lap(lap);
}

static noinline void pass_note(struct pass_data *pd, struct pass_queue *queue,
			       unsigned int dir, unsigned int taken)
{
	iosched_note(&pd->io, "pass turn %td %c %u",
		     queue->region - pd->map->region,
		     dir == READ ? 'R' : 'W', taken);
}

static void pass_end_turn(struct pass_data *pd, struct pass_queue *queue,
			  unsigned int dir)
{
	pass_note(pd, queue, dir, queue->taken[dir]);
	queue->taken[dir] = 0;
}

/*
 * A sub-queue without requests of a direction has no turn of it: neither the current
 * one nor another in this lap.
 */
static void pass_removed(struct iosched *io, struct request *rq,
			 struct request *heir)
{
	struct pass_data *pd = pass_of(io);
	struct pass_lap *lap = &pd->lap[iosched_rq_tier(rq)];
	struct pass_queue *queue = pass_queue_of(rq);
	unsigned int dir = rq_data_dir(rq);

	lockdep_assert_held(&io->lock);
	if (!--queue->nr && !pd->laps)
		list_del_init(&queue->ring[READ]);
	if (!RB_EMPTY_ROOT(&queue->sort[dir]))
		return;
	if (pd->laps) {
		list_del_init(&queue->ring[dir]);
		lap->nr[dir]--;
		if (dir == lap->dir)
			pass_shorten(lap);
	}
	if (!queue->taken[dir])
		return;
	pass_end_turn(pd, queue, dir);
	if (!pd->laps) {
		queue->dir = !dir;
		if (queue->nr)
			list_move_tail(&queue->ring[READ], &lap->ring[READ]);
	}
}

/* Rule 6: both sides of a border may work in parallel. */
static bool pass_may_merge(struct iosched *io, unsigned int dir,
			   sector_t start, sector_t end)
{
	struct pass_map *map = pass_of(io)->map;

	lockdep_assert_held(&io->lock);
	return pass_index(map, start) == pass_index(map, end - 1);
}

static bool pass_may_grow(struct iosched *io, struct request *rq)
{
	lockdep_assert_held(&io->lock);
	return iosched_rq_end(rq) < pass_queue_of(rq)->region->end;
}

/*
 * Bounds: rules 4, 5 and 7
 */

/* Rule 4: return true if @region has region_depth requests in flight. */
static bool pass_full(struct pass_data *pd, struct pass_region *region)
{
	unsigned int depth = READ_ONCE(pd->region_depth);

	return depth && atomic_read(&region->in_flight) >= depth;
}

/* Rule 5: a deadline does not override region_depth. */
static bool pass_ready(struct iosched *io, struct request *rq, bool expired)
{
	lockdep_assert_held(&io->lock);
	return !pass_full(pass_of(io), pass_queue_of(rq)->region);
}

static void pass_dispatched(struct iosched *io, struct request *rq)
{
	struct pass_region *region = pass_queue_of(rq)->region;

	lockdep_assert_held(&io->lock);
	region->served[rq_data_dir(rq)]++;
	atomic_inc(&region->in_flight);
}

static void pass_released(struct request *rq)
{
	atomic_dec(&pass_queue_of(rq)->region->in_flight);
}

/*
 * Rule 7: the sector is not known yet, so none bypasses while rule 4 applies. A request
 * that is inserted has the map replaced if the capacity has changed.
 */
static bool pass_may_bypass(struct iosched *io)
{
	struct pass_data *pd = pass_of(io);

	return !READ_ONCE(pd->region_depth) &&
	       pass_capacity(io->q) == READ_ONCE(pd->capacity);
}

/*
 * Turns: rules 1 to 3
 */

/*
 * Rule 3: the next request of a direction in ascending order, the lowest one
 * after the highest.
 */
static struct request *pass_ahead(struct pass_queue *queue, unsigned int dir)
{
	return iosched_ascending(&queue->sort[dir], queue->pos[dir]);
}

/*
 * Count @rq, which is dispatched next, in the turn of its sub-queue. The turn ends with a
 * full batch, or with the last request of its direction. Return true if it has ended.
 */
static bool pass_count(struct pass_data *pd, struct pass_queue *queue,
		       struct request *rq)
{
	unsigned int dir = rq_data_dir(rq);
	unsigned int batch = dir == READ ? pd->read_batch : pd->write_batch;
	bool last = !iosched_next(rq) && !iosched_prev(rq);

	queue->pos[dir] = iosched_rq_end(rq);
	if (++queue->taken[dir] < batch && !last)
		return false;
	pass_end_turn(pd, queue, dir);
	return true;
}

/*
 * Rules 1 and 2: the next request of a sub-queue, which moves to the end of the
 * ring when its turn ends.
 */
static struct request *pass_take(struct pass_data *pd, struct pass_lap *lap,
				 struct pass_queue *queue)
{
	unsigned int dir = lap->dir;
	struct request *rq = pass_ahead(queue, dir);

	if (!lap->left)
		lap->left = lap->nr[dir];
	if (pass_count(pd, queue, rq)) {
		if (!--lap->left)
			pass_next_lap(lap);
		list_move_tail(&queue->ring[dir], &lap->ring[dir]);
	}
	return rq;
}

/*
 * Rules 1 and 4: of the sub-queues whose region is not full, the first one in the ring
 * whose region has the fewest requests in flight, or NULL. A sub-queue that has had its
 * turn in the lap, which are those behind the first lap->left, is chosen only if there
 * is no other.
 */
static struct pass_queue *pass_least(struct pass_data *pd, struct pass_lap *lap)
{
	unsigned int turns = lap->left ? lap->left : lap->nr[lap->dir];
	struct pass_queue *queue, *least = NULL;
	unsigned int passed = 0, compared = 0;
	int nr, lowest = INT_MAX;

	list_for_each_entry(queue, &lap->ring[lap->dir], ring[lap->dir]) {
		if (least && (passed >= turns || compared == PASS_COMPARED))
			break;
		passed++;
		if (pass_full(pd, queue->region))
			continue;
		compared++;
		nr = atomic_read(&queue->region->in_flight);
		if (nr < lowest) {
			lowest = nr;
			least = queue;
		}
		if (!nr)
			break;
	}
	return least;
}

/* The next request of the lap, or NULL if no sub-queue can dispatch one. */
static struct request *pass_go_on(struct pass_data *pd, struct pass_lap *lap,
				  unsigned int only)
{
	struct pass_queue *queue;

	if (only != IOSCHED_ANY && lap->dir != only)
		return NULL;
	queue = pass_least(pd, lap);
	return queue ? pass_take(pd, lap, queue) : NULL;
}

/*
 * Without laps: the direction of the turn of a sub-queue, or IOSCHED_ANY if it has none:
 * @only, if that is a direction, otherwise that of the turn that has begun, or the one
 * that its last turn did not have; the other one if it has no request of it.
 */
static unsigned int pass_turn_of(struct pass_queue *queue, unsigned int only)
{
	unsigned int dir = queue->dir;

	if (only == !dir || RB_EMPTY_ROOT(&queue->sort[dir]))
		dir = !dir;
	return (only == IOSCHED_ANY || only == dir) &&
	       !RB_EMPTY_ROOT(&queue->sort[dir]) ? dir : IOSCHED_ANY;
}

/* The next request of a sub-queue without laps; with its turn it moves to the end. */
static struct request *pass_take_turn(struct pass_data *pd, struct pass_lap *lap,
				      struct pass_queue *queue, unsigned int dir)
{
	struct request *rq = pass_ahead(queue, dir);

	queue->dir = dir;
	if (pass_count(pd, queue, rq)) {
		queue->dir = !dir;
		list_move_tail(&queue->ring[READ], &lap->ring[READ]);
	}
	return rq;
}

/*
 * Rules 1 and 2 as in the paper: the first sub-queue in the ring has its turn, then moves
 * to the end and changes its direction. If only one direction may be dispatched, as is
 * not so in the paper, the sub-queues of the other one are passed, at most PASS_COMPARED;
 * then the oldest of as many requests decides whose region is not full.
 */
static noinline struct request *
pass_alternate(struct pass_data *pd, unsigned int tier, unsigned int only)
{
	struct pass_lap *lap = &pd->lap[tier];
	struct pass_queue *queue;
	unsigned int passed = 0;
	struct request *rq;

	list_for_each_entry(queue, &lap->ring[READ], ring[READ]) {
		unsigned int dir = pass_turn_of(queue, only);

		if (dir != IOSCHED_ANY && !pass_full(pd, queue->region))
			return pass_take_turn(pd, lap, queue, dir);
		if (dir == IOSCHED_ANY && ++passed == PASS_COMPARED)
			break;
	}
	if (passed < PASS_COMPARED)
		return NULL;
	list_for_each_entry(rq, &pd->io.fifo[tier][only], queuelist) {
		queue = pass_queue_of(rq);
		if (!pass_full(pd, queue->region))
			return pass_take_turn(pd, lap, queue, only);
		if (!--passed)
			break;
	}
	return NULL;
}

static struct request *pass_select(struct iosched *io, unsigned int tier,
				   unsigned int only)
{
	struct pass_data *pd = pass_of(io);
	struct pass_lap *lap = &pd->lap[tier];
	unsigned int left = lap->left;
	struct request *rq;

	lockdep_assert_held(&io->lock);
	if (unlikely(!pd->laps))
		return pass_alternate(pd, tier, only);
	rq = pass_go_on(pd, lap, only);
	if (rq)
		return rq;
	pass_next_lap(lap);
	rq = pass_go_on(pd, lap, only);
	if (!rq) {
		/* All requests are held: the lap goes on later. */
		lap->dir = !lap->dir;
		lap->left = left;
	}
	return rq;
}

/* Rule 7: @rq is dispatched within the bounds; its turn ends. */
static bool pass_take_fresh(struct iosched *io, struct request *rq)
{
	struct pass_data *pd = pass_of(io);
	struct pass_lap *lap = &pd->lap[iosched_rq_tier(rq)];
	unsigned int dir = rq_data_dir(rq);
	struct pass_queue *queue;

	lockdep_assert_held(&io->lock);
	queue = pass_assign(pd, rq);
	if (pass_full(pd, queue->region))
		return false;
	queue->pos[dir] = iosched_rq_end(rq);
	queue->dir = !dir;
	lap->dir = !dir;
	lap->left = 0;
	if (unlikely(iosched_traced(io->q)))
		pass_note(pd, queue, dir, 1);
	return true;
}

/*
 * Tunables and lifecycle
 */

/* No request is in the rings, which are others from now on. */
static void pass_switch_laps(struct iosched *io, void *laps)
{
	struct pass_data *pd = pass_of(io);

	lockdep_assert_held(&io->lock);
	WRITE_ONCE(pd->laps, *(unsigned int *)laps);
}

static int pass_set_laps(struct iosched *io, unsigned int *field,
			 unsigned int value)
{
	struct pass_data *pd = pass_of(io);

	/* One call at a time places requests anew. */
	mutex_lock(&pd->resize_lock);
	if (*field != value)
		iosched_replace_all(io, pass_switch_laps, &value);
	mutex_unlock(&pd->resize_lock);
	return 0;
}

/* Largest region: 1 TB. */
#define PASS_REGION_MB_MAX	1048576

#define PASS_TUNABLES(T, C)						\
	T(pass_data, region_size_mb, 4096, 1, PASS_REGION_MB_MAX,	\
	  pass_set_region_size, "size of a region, in MB")		\
	T(pass_data, read_batch, 16, 1, IOSCHED_REQUESTS_MAX, iosched_set,	\
	  "most reads in a turn")					\
	T(pass_data, write_batch, 16, 1, IOSCHED_REQUESTS_MAX, iosched_set,	\
	  "most writes in a turn")					\
	T(pass_data, region_depth, 0, 0, IOSCHED_REQUESTS_MAX, iosched_set,	\
	  "most requests of a region in flight, 0: no bound")		\
	T(pass_data, laps, 1, 0, 1, pass_set_laps,			\
	  "whether all regions have the same direction in turn (0: each its own, as in the paper)")

static int pass_init(struct iosched *io)
{
	struct pass_data *pd = pass_of(io);
	sector_t capacity = pass_capacity(io->q);
	struct pass_map *map;
	unsigned int tier;

	INIT_LIST_HEAD(&pd->retired);
	for (tier = 0; tier < IOSCHED_TIERS; tier++) {
		INIT_LIST_HEAD(&pd->lap[tier].ring[READ]);
		INIT_LIST_HEAD(&pd->lap[tier].ring[WRITE]);
	}
	INIT_WORK(&pd->resize_work, pass_resize_work);
	mutex_init(&pd->resize_lock);
	pd->region_size_mb = pass_fit_mb(pd, capacity);
	map = pass_map_alloc(capacity, pd->region_size_mb);
	if (IS_ERR(map))
		return PTR_ERR(map);
	pass_use_map(pd, map);
	return 0;
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
static bool pass_regions(struct iosched *io, struct seq_file *m,
			 unsigned int row)
{
	struct pass_data *pd = pass_of(io);
	struct pass_region *region = &pd->map->region[row];
	unsigned int tier, queued = 0;

	if (!row)
		seq_printf(m, "# %u regions of %u MB\nregion reads writes queued in_flight\n",
			   pd->map->nr, pd->region_size_mb);
	if (row >= pd->map->nr)
		return false;
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		queued += region->queue[tier].nr;
	if (region->served[READ] || region->served[WRITE] || queued)
		seq_printf(m, "%u %u %u %u %d\n", row, region->served[READ],
			   region->served[WRITE], queued,
			   atomic_read(&region->in_flight));
	return true;
}

IOSCHED_SHOW_ROWS(pass_regions)
#endif

static const struct iosched_policy pass_policy = {
	.size		= sizeof(struct pass_data),
	.init		= pass_init,
	.exit		= pass_exit,
	.tree_for	= pass_tree_for,
	.place		= pass_place,
	.tree_of	= pass_tree_of,
	.removed	= pass_removed,
	.may_merge	= pass_may_merge,
	.may_grow	= pass_may_grow,
	.ready		= pass_ready,
	.select		= pass_select,
	.take_fresh	= pass_take_fresh,
	.dispatched	= pass_dispatched,
	.may_bypass	= pass_may_bypass,
	.released	= pass_released,
};

#define IOSCHED_POLICY		pass_policy
#define IOSCHED_POLICY_TUNABLES	PASS_TUNABLES
#define IOSCHED_POLICY_DEBUGFS	{ "regions", 0400, pass_regions_show }
#include "iosched-tmpl.h"

MODULE_AUTHOR("The ssd-iosched developers");
MODULE_DESCRIPTION("PASS, a parallelism-aware I/O scheduler for SSDs");
MODULE_LICENSE("GPL");
