// SPDX-License-Identifier: GPL-2.0
/*
 * PIQ: parallel issue queueing, an I/O scheduler that keeps requests that need
 * the same part of an SSD out of each other's way.
 *
 * After "Exploiting Parallelism for Access Conflict Minimization in Flash-based
 * Solid State Drives", sections IV and V.
 *
 * Problem: an SSD works on many requests at once if they lie in different parallel
 * units (chips or planes). A request whose unit is busy waits, and in a device that
 * serves its queue in order so do all requests behind it.
 *
 * Idea: with a static allocation the units follow from the logical address. So the
 * host knows which requests conflict, and can hold those that would only wait.
 *
 *  1. A request's location vector is the set of units that it touches
 *     (include/location-vector.h). (IV.A)
 *  2. Reads and writes apart, a request joins the first batch in which no request
 *     needs one of its units, or opens a new one (include/piq/conflict-batch.h).
 *     The oldest `window` requests of a direction are in batches
 *     (include/piq/window.h). (IV.B.1, 2)
 *  3. Batches are dispatched in order, reads before writes. A request is dispatched
 *     when no request in flight holds one of its units. Until then later requests
 *     may be dispatched, of later batches or writes, so no unit idles that a queued
 *     request needs alone. (The paper starts a batch when the one before it was
 *     issued.)
 *  4. A batch that has waited for claim_us claims the units that its requests wait
 *     for: no request of a later batch gets one of them. Otherwise a request that
 *     needs many units could be overtaken for ever. (Not in the paper.)
 *  5. The first write batch that has waited for write_wait_us is dispatched before
 *     the reads and claims units likewise. The wait of the next one begins after it
 *     (IV.B.3), but ends when that batch claims by rule 4 and is older than all
 *     reads. A read batch is dispatched between two prioritised write batches:
 *     otherwise reads would starve on a drive where an operation takes longer than
 *     write_wait_us. (The paper has no such rule.)
 *  6. A request whose deadline has passed is dispatched whatever holds its units.
 *  7. Now and then it is tried whether holding requests pays, since the map may be
 *     wrong (include/piq/trial.h). While it does not, requests are dispatched in
 *     order of arrival, as by the scheme noop. (Not in the paper.)
 *  8. A drive with a write buffer completes a write independently of its units. With
 *     buffered_writes, off by default, writes hold no units and wait for none.
 *     (Not in the paper, whose drive has no buffer.)
 *  9. While the device has room for all that are queued, requests are dispatched in order
 *     of arrival, each as a batch of its own, up to the first one whose units are held.
 *     (Not in the paper.)
 *
 * Example (figures 6 and 7): four units; reads 0011, 0110, 1100 and the same as
 * writes. In order of arrival each waits for the one before it: three read and
 * three write cycles. Here: {0011, 1100}, {0110} of the reads, then of the writes:
 * two and two.
 *
 * The paper's six schemes (section V) are in include/piq/schemes.h.
 *
 * Data: a map for the geometry, with the units that are held and the batches; it is
 * replaced as a whole (include/piq/map.h). Completions give units back without a
 * lock (include/piq/held-units.h).
 */
#include <linux/ktime.h>

#include "piq/data.h"
#include "piq/debugfs.h"
#include "piq/window.h"

#define IOSCHED_NAME "piq"

static const char * const piq_level_names[] = { "chip", "plane" };

static const char * const piq_allocation_names[] = {
	"cwdp", "cwpd", "cdwp", "cdpw", "cpwd", "cpdw",
	"wcdp", "wcpd", "wdcp", "wdpc", "wpcd", "wpdc",
	"dcwp", "dcpw", "dwcp", "dwpc", "dpcw", "dpwc",
	"pcwd", "pcdw", "pwcd", "pwdc", "pdcw", "pdwc",
};

/* Most requests of a direction in batches, as in the paper's figure 18 and more. */
#define PIQ_MAX_WINDOW 1024

/*
 * The map
 */

/* Make a map for the settings. May sleep. */
static struct piq_map *piq_new_map(struct piq_data *pd)
{
	const unsigned int count[LV_DIGITS] = {
		pd->channels, pd->chips, pd->dies, pd->planes
	};

	return piq_map_alloc(count, pd->page_size_kb,
			     piq_allocation_names[pd->allocation], pd->level,
			     pd->window);
}

/* Use the map @arg from now on, and set it to the former one. */
static void piq_map_switch(struct iosched *io, void *arg)
{
	struct piq_data *pd = piq_of(io);
	struct piq_map **map = arg, *former = piq_map_of(pd);

	lockdep_assert_held(&io->lock);
	piq_number_map(*map, former);
	rcu_assign_pointer(pd->map, *map);
	*map = former;
}

/* Store a setting on which the map depends, and replace the map. */
static int piq_set_map(struct iosched *io, unsigned int *field,
		       unsigned int value)
{
	struct piq_data *pd = piq_of(io);
	unsigned int before = *field;
	struct piq_map *map;

	WRITE_ONCE(*field, value);
	map = piq_new_map(pd);
	if (IS_ERR(map)) {
		WRITE_ONCE(*field, before);
		return PTR_ERR(map);
	}
	iosched_replace_all(io, piq_map_switch, &map);
	kvfree_rcu(map, rcu);
	return 0;
}

static void piq_scheme_switch(struct iosched *io, void *scheme)
{
	lockdep_assert_held(&io->lock);
	WRITE_ONCE(piq_of(io)->scheme, *(unsigned int *)scheme);
}

static int piq_set_scheme(struct iosched *io, unsigned int *field,
			  unsigned int value)
{
	iosched_replace_all(io, piq_scheme_switch, &value);
	return 0;
}

/* Store a setting that decides whether a request waits, and search again. */
static int piq_set_wait(struct iosched *io, unsigned int *field,
			unsigned int value)
{
	spin_lock(&io->lock);
	WRITE_ONCE(*field, value);
	piq_map_of(piq_of(io))->stuck = 0;
	spin_unlock(&io->lock);
	return 0;
}

/*
 * Where requests wait
 */

static void piq_place(struct iosched *io, struct request *rq)
{
	unsigned int tier = iosched_rq_tier(rq), dir = rq_data_dir(rq);
	struct piq_data *pd = piq_of(io);
	struct piq_map *map = piq_map_of(pd);
	struct cb_queue *queue = &map->queue[tier][dir];

	lockdep_assert_held(&io->lock);
	map->stuck = 0;
	rq->elv.priv[0] = NULL;
	if (piq_batched(pd, dir) && !pd->outside[tier][dir]) {
		if (cb_full(queue))
			pd->outside[tier][dir] = rq;
		else
			piq_enter(pd, queue, rq);
	}
}

/* Free the units of completed requests. Return true if there were any. */
static bool piq_settle(struct piq_data *pd)
{
	struct piq_map *map = piq_map_of(pd);

	if (!held_settle(&map->units, map->lv.units))
		return false;
	map->stuck = 0;
	return true;
}

/*
 * Only a request whose deadline has passed is dispatched whatever holds its
 * units, and before it is in a batch (rule 6).
 */
static bool piq_ready(struct iosched *io, struct request *rq, bool expired)
{
	unsigned int dir = rq_data_dir(rq);
	struct piq_data *pd = piq_of(io);
	struct cb_entry *entry = piq_entry(rq);

	lockdep_assert_held(&io->lock);
	if (expired || !piq_batched(pd, dir) || piq_is_free(pd))
		return true;
	/* While writes leave the device to reads, select() may not have been called. */
	piq_settle(pd);
	return entry && piq_units_free(pd, dir, entry->vector);
}

static void piq_removed(struct iosched *io, struct request *rq,
			struct request *heir)
{
	unsigned int tier = iosched_rq_tier(rq), dir = rq_data_dir(rq);
	struct piq_data *pd = piq_of(io);
	struct piq_map *map = piq_map_of(pd);
	struct cb_entry *entry;
	bool prioritised;

	lockdep_assert_held(&io->lock);
	map->stuck = 0;
	if (pd->outside[tier][dir] == rq)
		pd->outside[tier][dir] = heir ? heir : piq_behind(io, rq);
	if (heir)
		piq_inherit(pd, rq, heir);
	entry = piq_entry(rq);
	if (entry) {
		prioritised = entry->batch->prioritised;
		piq_end_batch(pd, rq, cb_drop(&map->queue[tier][dir], entry),
			      prioritised);
		rq->elv.priv[0] = NULL;
	}
}

static void piq_resized(struct iosched *io, struct request *rq)
{
	unsigned int tier = iosched_rq_tier(rq), dir = rq_data_dir(rq);
	struct piq_data *pd = piq_of(io);
	struct piq_map *map = piq_map_of(pd);
	struct cb_entry *entry = piq_entry(rq);
	bool prioritised;

	lockdep_assert_held(&io->lock);
	map->stuck = 0;
	if (!entry)
		return;
	prioritised = entry->batch->prioritised;
	lv_set_span(&map->lv, piq_span(map, rq), map->vector);
	piq_end_batch(pd, rq, cb_resize(&map->queue[tier][dir], entry,
					map->vector), prioritised);
}

/*
 * Dispatch
 */

/* Rule 4: batches opened before this time, in ns, claim units. */
static u64 piq_claims_before(struct piq_data *pd, u64 now)
{
	u64 wait = (u64)pd->claim_us * NSEC_PER_USEC;

	return max(now, wait) - wait;
}

/* Rule 5: the write batch to dispatch before all reads, which is marked, or NULL. */
static struct cb_batch *piq_prioritise(struct piq_data *pd, unsigned int tier,
				       u64 now)
{
	struct cb_queue *queue = piq_map_of(pd)->queue[tier];
	struct cb_batch *batch = cb_first(&queue[WRITE]);
	struct cb_batch *read = cb_first(&queue[READ]);
	u64 turn;

	/* If no read waits, writes need no precedence. */
	if (!read)
		pd->read_turn[tier] = false;
	if (!batch || !read || !piq_schemes[pd->scheme].write_wait)
		return NULL;
	if (batch->prioritised)
		return batch;
	turn = max(batch->since, pd->write_turn[tier]) +
	       (u64)pd->write_wait_us * NSEC_PER_USEC;
	if (pd->read_turn[tier] ||
	    (now < turn && (batch->since >= piq_claims_before(pd, now) ||
			    batch->since >= read->since)))
		return NULL;
	batch->prioritised = true;
	return batch;
}

/* Rule 7: go on with a trial, or begin one. Without holding, any request may conflict. */
static void piq_try(struct piq_data *pd)
{
	struct piq_trial *trial = &pd->trial;
	unsigned long now = jiffies;
	bool free = trial->free;

	if (!pd->trials || !(trial->window || trial->free || trial->conflicts))
		return;
	trial->conflicts |= trial->free;
	/* Without a window under way, look at the time once a jiffy. */
	if (!trial->window && pd->tried_at == now)
		return;
	pd->tried_at = now;
	if (piq_trial_step(trial, ktime_get_ns()))
		trial->backlog = pd->io.nr + iosched_all_in_flight(&pd->io);
	if (trial->free != free)
		piq_map_of(pd)->stuck = 0;
}

/*
 * In order of arrival: the oldest request if its units are free. Otherwise take them
 * and return NULL.
 */
static struct request *piq_take_oldest(struct piq_data *pd, unsigned int tier,
				       unsigned int dir)
{
	struct piq_map *map = piq_map_of(pd);
	struct request *rq = iosched_oldest(&pd->io, tier, dir);

	if (!rq)
		return NULL;
	lv_set_span(&map->lv, piq_span(map, rq), map->vector);
	if (!lv_meet(map->vector, map->taken, map->lv.units))
		return rq;
	lv_or(map->taken, map->vector, map->lv.units);
	return NULL;
}

/* Rule 8: no unit is taken for a direction that needs none. */
static void piq_forget_taken(struct piq_data *pd, unsigned int dir)
{
	struct piq_map *map = piq_map_of(pd);

	if (piq_buffered(pd, dir))
		lv_zero(map->taken, map->lv.units);
}

/* Rule 3: the request of a direction to dispatch next, or NULL. */
static struct request *piq_pick(struct piq_data *pd, unsigned int tier,
				unsigned int dir, u64 now)
{
	struct piq_map *map = piq_map_of(pd);
	struct cb_queue *queue = &map->queue[tier][dir];
	struct cb_entry *entry;

	piq_forget_taken(pd, dir);
	if (!piq_batched(pd, dir))
		return piq_take_oldest(pd, tier, dir);
	if (!queue->nr)
		return NULL;
	entry = cb_find(queue, map->taken, piq_claims_before(pd, now));
	return entry ? entry->item : NULL;
}

/*
 * Rules 3 and 5: reads before writes, but for a prioritised write batch, and if it is
 * the turn of writes only.
 */
static struct request *piq_in_order(struct piq_data *pd, unsigned int tier,
				    unsigned int only)
{
	struct piq_map *map = piq_map_of(pd);
	u64 now = ktime_get_ns();
	struct cb_batch *batch;
	struct request *rq;

	lv_copy(map->taken, map->units.held, map->lv.units);
	piq_admit(pd, tier, READ);
	piq_admit(pd, tier, WRITE);

	batch = only == READ ? NULL : piq_prioritise(pd, tier, now);
	if (batch) {
		struct cb_queue *queue = &map->queue[tier][WRITE];
		struct cb_entry *entry;

		piq_forget_taken(pd, WRITE);
		entry = cb_find_in(queue, batch, map->taken);
		if (entry)
			return entry->item;
		cb_claim(queue, batch, map->taken);
	}
	rq = only == WRITE ? NULL : piq_pick(pd, tier, READ, now);
	return rq || only == READ ? rq : piq_pick(pd, tier, WRITE, now);
}

static struct request *piq_select(struct iosched *io, unsigned int tier,
				  unsigned int only)
{
	struct piq_data *pd = piq_of(io);
	struct piq_map *map = piq_map_of(pd);
	struct request *rq;

	lockdep_assert_held(&io->lock);
	piq_try(pd);
	/* The scheme noop holds no request. */
	if (!piq_schemes[pd->scheme].reads_first || piq_is_free(pd))
		return only == IOSCHED_ANY ? iosched_oldest_of_tier(io, tier) :
					     iosched_oldest(io, tier, only);
	if (!piq_settle(pd) && map->stuck & BIT(tier))
		return NULL;
	rq = piq_in_order(pd, tier, only);
	if (!rq) {
		pd->trial.conflicts = true;
		if (only == IOSCHED_ANY)
			map->stuck |= BIT(tier);
	}
	return rq;
}

/*
 * Accounting
 */

/* Hold the units of @rq's @span, which are @vector. */
static void piq_take(struct piq_data *pd, struct request *rq,
		     struct lv_span span, const unsigned long *vector)
{
	struct piq_map *map = piq_map_of(pd);

	if (piq_buffered(pd, rq_data_dir(rq))) {
		lv_zero(map->vector, map->lv.units);
		piq_hold(map, rq, (struct lv_span){}, map->vector);
		return;
	}
	piq_hold(map, rq, span, vector);
}

/* Rule 9: @rq is dispatched if its units are free. */
static bool piq_take_fresh(struct iosched *io, struct request *rq)
{
	unsigned int tier = iosched_rq_tier(rq), dir = rq_data_dir(rq);
	struct piq_data *pd = piq_of(io);
	struct piq_map *map = piq_map_of(pd);
	unsigned int number;
	struct lv_span span;

	lockdep_assert_held(&io->lock);
	piq_try(pd);
	if (!piq_schemes[pd->scheme].reads_first)
		return false;
	held_settle(&map->units, map->lv.units);
	map->stuck = 0;
	span = piq_span(map, rq);
	lv_set_span(&map->lv, span, map->vector);
	if (!piq_units_free(pd, dir, map->vector))
		return false;
	/* Rule 5, as if it had been the only one: it is a batch of reads, or passes none. */
	pd->read_turn[tier] = false;
	if (piq_batched(pd, dir)) {
		number = cb_next_number(&map->queue[tier][dir]);
		piq_trace(pd, rq, number, 1, false);
		piq_count_batch(pd, dir, 1);
	}
	piq_take(pd, rq, span, map->vector);
	return true;
}

/* Dispatch @rq, from its batch if it is in one. */
static noinline void piq_take_sorted(struct piq_data *pd, struct request *rq)
{
	struct piq_map *map = piq_map_of(pd);
	struct cb_entry *entry = piq_entry(rq);
	unsigned long *vector = map->vector;
	struct lv_span span;

	span = piq_span(map, rq);
	if (entry) {
		piq_leave(pd, rq, entry);
		/* Free, but not used again yet. */
		vector = entry->vector;
	} else {
		lv_set_span(&map->lv, span, vector);
	}
	/* If no request is held back (rule 7, noop), nothing else has settled them. */
	if (lv_meet(vector, map->units.held, map->lv.units))
		piq_settle(pd);
	piq_take(pd, rq, span, vector);
}

static void piq_dispatched(struct iosched *io, struct request *rq)
{
	lockdep_assert_held(&io->lock);
	/* Of a fresh one, piq_take_fresh() has taken the units. */
	if (!piq_is_holding(rq))
		piq_take_sorted(piq_of(io), rq);
}

static void piq_released(struct request *rq)
{
	struct piq_data *pd = piq_of(iosched_of(rq->q));

	if (READ_ONCE(pd->trial.window))
		piq_trial_count(&pd->trial, rq_data_dir(rq),
				ktime_get_ns() - rq->start_time_ns);
	rcu_read_lock();
	piq_give_back(rcu_dereference(pd->map), rq);
	rcu_read_unlock();
}

/*
 * Start and end
 */

/* Largest flash page. */
#define PIQ_PAGE_KB_MAX	1024
/* Longest wait: a minute. */
#define PIQ_US_MAX	60000000

#define PIQ_TUNABLES(T, C)						\
	T(piq_data, page_size_kb, 4, 1, PIQ_PAGE_KB_MAX, piq_set_map,	\
	  "KB in a flash page, a power of two")				\
	T(piq_data, channels, 8, 1, LV_MAX_UNITS, piq_set_map,		\
	  "channels in the drive")					\
	T(piq_data, chips, 8, 1, LV_MAX_UNITS, piq_set_map,		\
	  "chips on a channel")						\
	T(piq_data, dies, 2, 1, LV_MAX_UNITS, piq_set_map,		\
	  "dies in a chip")						\
	T(piq_data, planes, 2, 1, LV_MAX_UNITS, piq_set_map,		\
	  "planes in a die")						\
	T(piq_data, window, 64, 1, PIQ_MAX_WINDOW, piq_set_map,		\
	  "requests of a direction in batches")				\
	T(piq_data, write_wait_us, 1000, 0, PIQ_US_MAX, piq_set_wait,	\
	  "piq+: us until the first write batch is dispatched before reads")	\
	T(piq_data, claim_us, 4000, 0, PIQ_US_MAX, piq_set_wait,	\
	  "us until a batch claims the units that it waits for")	\
	T(piq_data, buffered_writes, 0, 0, 1, piq_set_wait,		\
	  "1: the drive buffers writes: they hold no units")		\
	T(piq_data, trials, 1, 0, 1, piq_set_wait,			\
	  "try now and then whether holding requests pays")		\
	C(piq_data, allocation, 0, piq_allocation_names, piq_set_map,	\
	  "pages go over channels, ways, dies, planes (cwdp in any order; default cwdp)") \
	C(piq_data, level, LV_CHIP, piq_level_names, piq_set_map,	\
	  "what works in parallel (chip, plane; default chip)")		\
	C(piq_data, scheme, PIQ_PLUS, piq_scheme_names, piq_set_scheme,	\
	  "scheme of the paper (noop, rws, piq-r, piq-w, piq, piq+; default piq+)")

/*
 * The module's parameters, each in its range, make no geometry, for which init() must not
 * fail. Use one that has the channels.
 */
static void piq_fit(struct piq_data *pd)
{
	pd->page_size_kb = rounddown_pow_of_two(pd->page_size_kb);
	pd->chips = 1;
	pd->dies = 1;
	pd->planes = 1;
	pr_warn("piq: uses %u channels of a plane, pages of %u KB\n",
		pd->channels, pd->page_size_kb);
}

static int piq_init(struct iosched *io)
{
	struct piq_data *pd = piq_of(io);
	struct piq_map *map;

	map = piq_new_map(pd);
	if (PTR_ERR_OR_ZERO(map) == -EINVAL) {
		piq_fit(pd);
		map = piq_new_map(pd);
	}
	if (IS_ERR(map))
		return PTR_ERR(map);
	RCU_INIT_POINTER(pd->map, map);
	return 0;
}

static void piq_exit(struct iosched *io)
{
	kvfree(rcu_dereference_protected(piq_of(io)->map, true));
}

static const struct iosched_policy piq_policy = {
	.size		= sizeof(struct piq_data),
	.init		= piq_init,
	.exit		= piq_exit,
	.place		= piq_place,
	.removed	= piq_removed,
	.resized	= piq_resized,
	.ready		= piq_ready,
	.select		= piq_select,
	.take_fresh	= piq_take_fresh,
	.dispatched	= piq_dispatched,
	.released	= piq_released,
};

#define IOSCHED_POLICY		piq_policy
#define IOSCHED_POLICY_TUNABLES	PIQ_TUNABLES
#define IOSCHED_POLICY_DEBUGFS	PIQ_DEBUGFS
#include "iosched-tmpl.h"

MODULE_AUTHOR("The ssd-iosched developers");
MODULE_DESCRIPTION("PIQ, an I/O scheduler that avoids access conflicts in SSDs");
MODULE_LICENSE("GPL");
