/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The model's table of requests, and the core's rules of dispatch.
 */
#ifndef _MODEL_RULES_H
#define _MODEL_RULES_H

#include "fake-blk.h"

enum model_state {
	MODEL_NONE,
	MODEL_FRESH,		/* queued, not sorted */
	MODEL_QUEUED,
	MODEL_HEAD,		/* queued before all others */
	MODEL_IN_FLIGHT,
};

/* The model of a request. */
struct model_request {
	enum model_state state;
	sector_t sector;
	sector_t end;
	unsigned int tier;
	unsigned int dir;
	unsigned long deadline;	/* jiffies */
	s64 place;		/* position in its FIFO, lowest first */
	u64 sorted;		/* position among requests of the same sector */
	u64 start_ns;		/* arrival of its oldest part */
	bool sync;
	bool polled;
	bool counted;		/* in flight; policy->dispatched() was called */
	bool timed;		/* in flight, dispatched as the only one */
	long priv[4];		/* for the model of the policy, 0 at first */
};

/**
 * struct model_policy - the model of a policy; (opt) may be NULL
 * @type: the scheduler
 * @capacity: of the device, in sectors; bounds the random requests
 * @spread: (opt) random requests start at multiples of @spread sectors plus less
 *	than MODEL_JITTER, or anywhere for 0
 * @start: (opt) a sequence starts: reset the model and draw settings
 * @select: take and return the next request of the tier; NULL for none. May
 *	change the state of the policy's model, since the request is dispatched.
 *	@only: the direction to take from, or IOSCHED_ANY.
 * @ready: (opt) return true if the policy's bounds allow a dispatch now
 * @may_merge: (opt) return true if one request may cover sectors [start, end)
 * @arrived: (opt) the request was queued, not at the head
 * @queued: (opt) it is sorted now, and one of those from which @select chooses
 * @unqueued: (opt) the request left the queue: it was dispatched (called after
 *	@dispatched) or merged into another one
 * @inherits: (opt) @mr takes the place of @next in the FIFO
 * @grown: (opt) the request was extended by merging
 * @dispatched: (opt) the request is dispatched and counted in flight
 * @released: (opt) a counted request completes or is requeued
 * @disturb: (opt) a random operation of the policy, such as a change of a tunable
 *	or of the capacity
 * @may_wait: (opt) return true if the policy may hold all requests although none
 *	is in flight, because its timer is armed
 * @sender: (opt) choose the process that submits the next request of this
 *	direction; return flags such as REQ_SYNC
 * @overdue: (opt) return true if a timer must have woken a held request by now
 * @compare: (opt) compare what only the policy knows
 *
 * The core's operations are checked for wake-ups here. An operation of the
 * policy that widens a bound must wake, too.
 */
struct model_policy {
	struct elevator_type *type;
	sector_t capacity;
	unsigned int spread;
	void (*start)(struct kunit *test);
	struct model_request *(*select)(unsigned int tier, unsigned int only);
	bool (*ready)(struct model_request *mr);
	bool (*may_merge)(unsigned int dir, sector_t start, sector_t end);
	void (*arrived)(struct model_request *mr);
	void (*queued)(struct model_request *mr);
	void (*unqueued)(struct model_request *mr);
	void (*inherits)(struct model_request *mr, struct model_request *next);
	void (*grown)(struct model_request *mr);
	void (*dispatched)(struct model_request *mr);
	void (*released)(struct model_request *mr);
	void (*disturb)(struct kunit *test);
	bool (*may_wait)(void);
	blk_opf_t (*sender)(unsigned int dir);
	bool (*overdue)(void);
	void (*compare)(struct kunit *test);
};

struct model_stats {
	unsigned int inserted, merged, dispatched, expired, completed, requeued;
};

static struct {
	const struct model_policy *policy;
	struct model_request requests[FAKE_REQUESTS];
	struct model_stats stats[IOSCHED_TIERS][IOSCHED_DIRS];
	bool all_tiers;		/* otherwise, all requests are best effort */
	s64 first, last;	/* lowest and highest place given so far */
	u64 sorted;		/* highest model_request.sorted so far */
	unsigned int depth;	/* settings, as in struct iosched */
	unsigned int read_expire;
	unsigned int write_expire;
	unsigned int prio_aging_expire;
	unsigned int write_share;
	unsigned int bypass;
	unsigned long reads_until;	/* jiffies; write_share applies until then */
	bool reads_seen;
	unsigned long last_write;	/* jiffies */
	bool overtaken;		/* the last request overtook those of the head */
	u32 timed_since;		/* us */
	unsigned int owed_us;		/* to reads */
	unsigned int over_us;		/* that reads had beyond that */
	u32 read_done, waiting;		/* us, see model_us(); 0: none */
	unsigned int soon;		/* of 256 */
	bool refused;		/* the last dispatch returned no request */
	u64 operations;		/* so far, in all sequences */
} model;

#define model_for_each(mr)						\
	for (mr = model.requests; mr < model.requests + FAKE_REQUESTS; mr++)

#define MODEL_ASSERT(test, condition, fmt, ...)				\
	KUNIT_ASSERT_TRUE_MSG(test, condition,				\
			      "seed %u (sequences=1), op %llu: " fmt,	\
			      fake.seed, model.operations, ##__VA_ARGS__)

static struct model_request *model_of(struct request *rq)
{
	struct fake_request *fr = container_of(rq, struct fake_request, rq);

	return &model.requests[fr - fake.requests];
}

static struct request *model_rq(struct model_request *mr)
{
	return &fake.requests[mr - model.requests].rq;
}

static struct model_stats *model_stats_of(struct model_request *mr)
{
	return &model.stats[mr->tier][mr->dir];
}

/* Return the number of requests in a state, of one tier or of all (-1). */
static unsigned int model_count(enum model_state state, int tier)
{
	struct model_request *mr;
	unsigned int count = 0;

	model_for_each(mr)
		count += mr->state == state &&
			 (tier < 0 || mr->tier == tier);
	return count;
}

/* Return the first request in a FIFO behind a place. */
static struct model_request *model_behind(unsigned int tier, unsigned int dir,
					  s64 place)
{
	struct model_request *mr, *oldest = NULL;

	model_for_each(mr)
		if (mr->state == MODEL_QUEUED && mr->tier == tier &&
		    mr->dir == dir && mr->place > place &&
		    (!oldest || mr->place < oldest->place))
			oldest = mr;
	return oldest;
}

static struct model_request *model_oldest(unsigned int tier, unsigned int dir)
{
	return model_behind(tier, dir, S64_MIN);
}

/*
 * Return the request of a tier and direction with the lowest sector from @from
 * on, of the policy's @group (priv[0]) or of all groups (-1). Of two requests
 * at the same sector the one sorted first is the lower one.
 */
static inline struct model_request *
model_lowest(unsigned int tier, unsigned int dir, sector_t from, long group)
{
	struct model_request *mr, *lowest = NULL;

	model_for_each(mr)
		if (mr->state == MODEL_QUEUED && mr->tier == tier &&
		    mr->dir == dir && mr->sector >= from &&
		    (group < 0 || mr->priv[0] == group) &&
		    (!lowest || mr->sector < lowest->sector ||
		     (mr->sector == lowest->sector &&
		      mr->sorted < lowest->sorted)))
			lowest = mr;
	return lowest;
}

/*
 * Return the number of queued requests of a tier in a group (priv[0]), of one
 * direction or of both (-1).
 */
static inline unsigned int model_count_group(unsigned int tier, int dir,
					     long group)
{
	struct model_request *mr;
	unsigned int count = 0;

	model_for_each(mr)
		count += mr->state == MODEL_QUEUED && mr->tier == tier &&
			 mr->priv[0] == group && (dir < 0 || mr->dir == dir);
	return count;
}

/*
 * Rings of numbers from 0 on, for policies that take turns: arrays that end
 * with -1, with room for all numbers.
 */
static inline bool model_ring_has(const int *ring, int number)
{
	while (*ring >= 0 && *ring != number)
		ring++;
	return *ring == number;
}

static inline void model_ring_add(int *ring, int number)
{
	while (*ring >= 0)
		ring++;
	ring[0] = number;
	ring[1] = -1;
}

static inline void model_ring_remove(int *ring, int number)
{
	while (*ring >= 0 && *ring != number)
		ring++;
	for (; *ring >= 0; ring++)
		*ring = ring[1];
}

/* Return the requests in flight that count in bounds, of a tier or of all (-1). */
static unsigned int model_in_bounds(int tier)
{
	struct model_request *mr;
	unsigned int count = 0;

	model_for_each(mr)
		count += mr->state == MODEL_IN_FLIGHT && !mr->polled &&
			 (tier < 0 || mr->tier == tier);
	return count;
}

static bool model_in_use(unsigned int tier)
{
	return model_count(MODEL_QUEUED, tier) ||
	       model_count(MODEL_FRESH, tier) || model_in_bounds(tier);
}

/* Return the number of tiers in use. */
static unsigned int model_tiers(void)
{
	unsigned int tier, count = 0;

	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		count += model_in_use(tier);
	return count;
}

static bool model_ready(struct model_request *mr)
{
	return !model.policy->ready || model.policy->ready(mr);
}

/*
 * Return the oldest request of a FIFO if it was due at @when and may be
 * dispatched.
 */
static struct model_request *model_due(unsigned int tier, unsigned int dir,
				       unsigned long when)
{
	struct model_request *mr = model_oldest(tier, dir);

	return mr && !time_before(when, mr->deadline) && model_ready(mr) ?
		mr : NULL;
}

/* Return true if all tags, or as many as the bound allows, are in use. */
static bool model_full(void)
{
	unsigned int in_flight = model_in_bounds(-1);

	return in_flight >= fake.set.queue_depth ||
	       (model.depth && in_flight >= model.depth);
}

/* Return the most requests that may be in flight. */
static unsigned int model_limit(void)
{
	return model.depth ? min(model.depth, fake.set.queue_depth) :
			     fake.set.queue_depth;
}

/* Return true if writes use their share of the limit; one is always allowed. */
static bool model_share_used(unsigned int share)
{
	struct model_request *mr;
	unsigned int in_flight = 0;

	model_for_each(mr)
		in_flight += mr->state == MODEL_IN_FLIGHT &&
			     !mr->polled && mr->dir == WRITE;
	return share < 100 && in_flight &&
	       (in_flight + 1) * 100 > model_limit() * share;
}

static bool model_reads_in_flight(void)
{
	struct model_request *mr;

	model_for_each(mr)
		if (mr->state == MODEL_IN_FLIGHT && !mr->polled && mr->dir == READ)
			return true;
	return false;
}

static bool model_reads_recent(void)
{
	return model.reads_seen && time_before(jiffies, model.reads_until);
}

/*
 * Turns of reads and writes on a device that takes one request: tmpl/readers/turns.h. The
 * first bit of a time in us is always set.
 */
static u32 model_us(void)
{
	return (u32)div_u64(fake_ns, NSEC_PER_USEC) | 1;
}

static void model_pay(unsigned int us)
{
	model.owed_us = us < model.owed_us ? model.owed_us - us : 0;
}

/* Return true if a read is expected. */
static bool model_read_is_near(void)
{
	return model.read_done && model.soon >= 128 &&
	       model_us() - model.read_done < 2000 &&
	       (!model.waiting || model_us() - model.waiting < model.owed_us);
}

/* Return true if a timer must end a wait for a read. */
static inline bool model_awaits(void)
{
	return model_limit() == 1 && !model_full() && model.owed_us &&
	       model_read_is_near();
}

/* Return true if a timer must end a wait of writes. Core tests check when reads are alone. */
static inline bool model_reads_alone(void)
{
	return model_awaits() || iosched_of(fake.q)->phases.alone;
}

static void model_learn(bool soon)
{
	model.soon = model.soon - model.soon / 8 + (soon ? 32 : 0);
}

/* A request is queued. */
static inline void model_turn_arrival(struct model_request *mr)
{
	if (mr->dir == WRITE || !model.read_done)
		return;
	model_learn(model_us() - model.read_done < 2000);
	model.read_done = 0;
}

/* A request is dispatched as the only one. Only a dispatch that is refused begins a wait. */
static inline void model_turn_begins(struct model_request *mr)
{
	if (model.waiting) {
		model_pay(model_us() - model.waiting);
		if (mr->dir == WRITE && model_us() - model.read_done >= 2000) {
			model_learn(false);
			model.read_done = 0;
		}
	}
	model.waiting = 0;
	if (!mr->polled)
		model.timed_since = model_us();
}

/* A request that was dispatched as the only one completes. */
static inline void model_turn_ends(struct model_request *mr)
{
	unsigned int us = min_t(u32, model_us() - model.timed_since, 1000000U);
	unsigned int share, all;

	if (mr->dir == READ) {
		if (us > model.owed_us)
			model.over_us += us - model.owed_us;
		model.over_us = min(model.over_us, 100000U);
		model_pay(us);
		model.read_done = model_us();
		return;
	}
	share = max(model.write_share, 50U);
	all = us;
	us = us * (100 - share) / share;
	if (!model.owed_us)
		all -= us;
	model.over_us -= min(all, model.over_us);
	model.owed_us = min(model.owed_us + us, 1000000U);
}

/* A request is dispatched, or allocated to bypass the queue. */
static void model_issue(unsigned int dir)
{
	if (dir == WRITE) {
		model.last_write = jiffies;
		return;
	}
	model.reads_seen = true;
	model.reads_until = jiffies + IOSCHED_READS_RECENT;
}

/* Return true if a tier above this one is in use. */
static bool model_above_in_use(unsigned int tier)
{
	while (tier--)
		if (model_in_use(tier))
			return true;
	return false;
}

/* Return the deadline of a queued request in jiffies, later under a busy tier. */
static unsigned long model_deadline(struct model_request *mr)
{
	if (!model_above_in_use(mr->tier))
		return mr->deadline;
	return mr->deadline + msecs_to_jiffies(model.prio_aging_expire) -
	       msecs_to_jiffies(mr->dir == READ ? model.read_expire :
						  model.write_expire);
}

/* Return true if writes must wait for reads on a device that takes one request. */
static bool model_reads_turn(bool reads)
{
	return model.write_share < 100 && model.owed_us &&
	       (reads || model_read_is_near());
}

/* Return the request that is overdue, so that only a lack of tags can hold it. */
static struct model_request *model_overdue(void)
{
	struct model_request *mr, *overdue = NULL;

	if (model_in_bounds(-1) >= fake.set.queue_depth)
		return NULL;
	model_for_each(mr) {
		if (mr->state != MODEL_QUEUED ||
		    model_oldest(mr->tier, mr->dir) != mr ||
		    (mr->dir == WRITE && model_limit() == 1 &&
		     model_reads_turn(false)) ||
		    time_before(jiffies, model_deadline(mr) + IOSCHED_SLACK))
			continue;
		if (!overdue || mr->tier < overdue->tier ||
		    (mr->tier == overdue->tier &&
		     (time_before(mr->deadline, overdue->deadline) ||
		      (mr->deadline == overdue->deadline && mr->dir == READ))))
			overdue = mr;
	}
	return overdue;
}

/* Return true if the tier's writes must leave tags to reads. */
static bool model_writes_wait(unsigned int tier)
{
	struct model_request *write = model_oldest(tier, WRITE);
	bool reads = model_oldest(tier, READ);
	unsigned int share = model.write_share;

	if (!write)
		return false;
	if (model_limit() == 1)
		return model_reads_turn(reads);
	if (iosched_of(fake.q)->phases.alone &&
	    (reads || model_reads_recent() || model_reads_in_flight()))
		return true;
	if (!time_before(jiffies, write->deadline))
		share = max(share, 50U);
	return model_share_used(share) && (reads || model_reads_recent()) &&
	       time_before(jiffies, model.last_write + IOSCHED_SLACK);
}

/* Return the direction whose turn it is. */
static unsigned int model_turn(unsigned int tier)
{
	if (!model_oldest(tier, WRITE))
		return IOSCHED_ANY;
	if (model_writes_wait(tier))
		return READ;
	return model_limit() == 1 && model.over_us == 100000 &&
	       model.write_share < 100 && model_tiers() == 1 &&
	       model_count(MODEL_QUEUED, -1) > 1 ? WRITE : IOSCHED_ANY;
}

/* Return the next request of a tier: a late one, or the policy's. */
static struct model_request *model_next_only(unsigned int tier, unsigned int only)
{
	struct model_request *read, *write;

	read = only == WRITE ? NULL : model_due(tier, READ, jiffies);
	write = only == READ ? NULL : model_due(tier, WRITE, jiffies);
	if (read && write)
		return time_after(read->deadline, write->deadline) ? write : read;
	if (read || write)
		return read ? read : write;
	return model.policy->select(tier, only);
}

/* Return the next request within all bounds. */
static struct model_request *model_next_bounded(void)
{
	unsigned long now = jiffies, then;
	struct model_request *mr;
	unsigned int tier, only;

	if (model_full())
		return NULL;

	then = now - msecs_to_jiffies(model.prio_aging_expire);
	for (tier = IOSCHED_BE; model_tiers() > 1 && tier < IOSCHED_TIERS;
	     tier++) {
		if (!model_above_in_use(tier))
			continue;
		mr = model_due(tier, READ,
			       then + msecs_to_jiffies(model.read_expire));
		if (!mr)
			mr = model_due(tier, WRITE,
				       then + msecs_to_jiffies(model.write_expire));
		if (mr)
			return mr;
	}
	for (tier = 0; tier < IOSCHED_TIERS; tier++) {
		if (model_count(MODEL_QUEUED, tier)) {
			only = model_turn(tier);
			if (only == READ && !model_oldest(tier, READ))
				return NULL;
			mr = model_next_only(tier, only);
			return mr || only != WRITE ? mr :
			       model_next_only(tier, IOSCHED_ANY);
		}
		if (model_tiers() > 1 && model_in_bounds(tier))
			return NULL;
	}
	return NULL;
}

/* Return the request that the core must dispatch now, or NULL. Once for each dispatch. */
static struct model_request *model_next(void)
{
	struct model_request *mr, *next = NULL;

	model_for_each(mr)
		if (mr->state == MODEL_HEAD &&
		    (!next || mr->place < next->place))
			next = mr;
	/* An overdue request passes those of the head, but no two in a row. */
	mr = next && !model.overtaken ? model_overdue() : NULL;
	model.overtaken = mr;
	if (next)
		return mr ? mr : next;
	next = model_next_bounded();
	return next ? next : model_overdue();
}

static void model_unqueue(struct model_request *mr, enum model_state state)
{
	bool was = mr->state == MODEL_QUEUED;

	mr->state = state;
	if (was && model.policy->unqueued)
		model.policy->unqueued(mr);
}

/* Return the first request that is not sorted. */
static struct model_request *model_first_fresh(void)
{
	struct model_request *mr, *first = NULL;

	model_for_each(mr)
		if (mr->state == MODEL_FRESH &&
		    (!first || mr->place < first->place))
			first = mr;
	return first;
}

static void model_sort(struct model_request *mr)
{
	mr->state = MODEL_QUEUED;
	mr->sorted = ++model.sorted;
	if (model.policy->queued)
		model.policy->queued(mr);
}

/*
 * Follow the elevator, which decides when it sorts. It must not if that could change what
 * is dispatched next: see model_dispatch().
 */
static void model_sync(void)
{
	struct model_request *mr;

	if (iosched_of(fake.q)->fresh)
		return;
	while ((mr = model_first_fresh()))
		model_sort(mr);
}

/*
 * iosched_replace_all() was called: queue all requests again in the policy's
 * model, which the caller has reset.
 */
static inline void model_replaced(void)
{
	struct model_request *mr;
	unsigned int tier, dir;
	s64 done;

	model_for_each(mr)
		if (mr->state == MODEL_FRESH)
			mr->state = MODEL_QUEUED;
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (dir = READ; dir <= WRITE; dir++)
			for (done = S64_MIN; (mr = model_behind(tier, dir, done));
			     done = mr->place) {
				mr->sorted = ++model.sorted;
				model.policy->queued(mr);
			}
}

#endif /* _MODEL_RULES_H */
