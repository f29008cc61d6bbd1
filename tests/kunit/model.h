/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The reference model: what the elevator core and a policy have to do, told a
 * second time in the plainest way, without trees, rings or counters that are
 * kept up to date: a table of requests that is searched from end to end for each
 * question. model_run() makes random sequences of operations, does each one to
 * the elevator and to the model, and compares all that can be seen: which
 * request is dispatched, every statistic, the FIFOs, who is woken when.
 *
 * Which of several possible merges the block layer takes is its own business: the
 * model sees what became of the requests, and checks that it was allowed.
 *
 * Included after the policy. A test gives a struct model_policy.
 */
#ifndef _MODEL_H
#define _MODEL_H

#include "fake-blk.h"

/* Operations in a sequence, before it is drained. */
#define MODEL_OPERATIONS	60
/* Requests at a time: few, so that one finds all there is to find. */
#define MODEL_REQUESTS		24

enum model_state {
	MODEL_NONE,
	MODEL_QUEUED,
	MODEL_HEAD,		/* queued before all others */
	MODEL_IN_FLIGHT,
};

/* A request as the model sees it. */
struct model_request {
	enum model_state state;
	sector_t sector;
	sector_t end;
	unsigned int tier;
	unsigned int dir;
	unsigned long deadline;	/* jiffies */
	s64 place;		/* the lower, the earlier in its FIFO */
	u64 sorted;		/* the lower, the earlier it was sorted in */
	u64 start_ns;		/* when it, or the oldest part of it, came */
	bool sync;
	bool polled;
	bool counted;		/* in flight, and the policy was told */
	long priv[4];		/* the policy's model's; zero at first */
};

/**
 * struct model_policy - the model of a policy; (opt) may be NULL
 * @type: the scheduler
 * @capacity: of the device, in sectors; random requests lie in it
 * @spread: (opt) random requests begin at multiples of @spread sectors plus a
 *	few, or anywhere for 0
 * @start: (opt) a sequence begins: forget all; settings may be drawn here
 * @select: which request of the tier goes next? NULL for none. May change what
 *	the policy's model remembers, as the request does go.
 * @ready: (opt) may it go now, as to the policy's bounds?
 * @may_merge: (opt) may one request cover all that? Sectors.
 * @queued: (opt) it was queued (not at the head)
 * @unqueued: (opt) it is no longer queued, for it goes to the device (after
 *	dispatched()) or was merged into another
 * @inherits: (opt) it takes the place of that one in the FIFO
 * @grown: (opt) it was extended by merging
 * @dispatched: (opt) it goes, counted
 * @released: (opt) it is done or comes back, having been counted
 * @disturb: (opt) a random operation of the policy's own: change a tunable,
 *	let the device grow
 * @sender: (opt) somebody is about to send something of that direction: choose
 *	who. Returns flags beside the operation, such as REQ_SYNC.
 * @overdue: (opt) one that waits should have been woken by a timer by now
 * @compare: (opt) compare what only the policy knows
 * @may_wait: (opt) it is right that nothing was dispatched now, though nothing
 *	is in flight, because a timer is set
 *
 * A bound that was made wider must wake; the core's own operations are checked
 * for that here.
 */
struct model_policy {
	struct elevator_type *type;
	sector_t capacity;
	unsigned int spread;
	void (*start)(struct kunit *test);
	struct model_request *(*select)(unsigned int tier);
	bool (*ready)(struct model_request *mr);
	bool (*may_merge)(unsigned int dir, sector_t start, sector_t end);
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
	unsigned int max_tier;	/* of the sequence: 1 all best effort */
	s64 first, last;	/* places given so far */
	u64 sorted;		/* the same for model_request.sorted */
	unsigned int depth;	/* settings, as in struct iosched */
	unsigned int read_expire;
	unsigned int write_expire;
	unsigned int prio_aging_expire;
	bool refused;		/* the last dispatch had nothing */
	u64 operations;		/* done in all */
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

/* How many are in that state; tier -1: any. */
static unsigned int model_count(enum model_state state, int tier)
{
	struct model_request *mr;
	unsigned int count = 0;

	model_for_each(mr)
		count += mr->state == state &&
			 (tier < 0 || mr->tier == tier);
	return count;
}

/* The first in the FIFO of a tier and direction behind a place. */
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
 * The request of a tier and direction with the lowest sector from @from on
 * that the policy's model has put into @group (its priv[0]); group -1: any.
 * Of two at the same sector the one that was sorted first goes first.
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

/* How many requests of a tier are in flight and count in bounds; -1: any. */
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
	return model_count(MODEL_QUEUED, tier) || model_in_bounds(tier);
}

/* How many tiers are in use. */
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

/* The oldest of a FIFO, if it was due then, and may go. */
static struct model_request *model_due(unsigned int tier, unsigned int dir,
				       unsigned long when)
{
	struct model_request *mr = model_oldest(tier, dir);

	return mr && !time_before(when, mr->deadline) && model_ready(mr) ?
		mr : NULL;
}

/* Are all tags in use, or as many as the bound allows? */
static bool model_full(void)
{
	unsigned int in_flight = model_in_bounds(-1);

	return in_flight >= fake.set.queue_depth ||
	       (model.depth && in_flight >= model.depth);
}

/* The deadline of a queued request as its tier is, in jiffies. */
static unsigned long model_deadline(struct model_request *mr)
{
	unsigned int tier;

	for (tier = 0; tier < mr->tier; tier++)
		if (model_in_use(tier))
			return mr->deadline +
			       msecs_to_jiffies(model.prio_aging_expire) -
			       msecs_to_jiffies(mr->dir == READ ?
						model.read_expire :
						model.write_expire);
	return mr->deadline;
}

/* The request that bounds no longer hold, if the device has a tag for it. */
static struct model_request *model_overdue(void)
{
	struct model_request *mr, *overdue = NULL;

	if (model_in_bounds(-1) >= fake.set.queue_depth)
		return NULL;
	model_for_each(mr) {
		if (mr->state != MODEL_QUEUED ||
		    model_oldest(mr->tier, mr->dir) != mr ||
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

/* The next request within all bounds. */
static struct model_request *model_next_bounded(void)
{
	struct model_request *mr, *write;
	unsigned long now = jiffies, then;
	unsigned int tier;

	if (model_full())
		return NULL;

	then = now - msecs_to_jiffies(model.prio_aging_expire);
	for (tier = IOSCHED_BE; model_tiers() > 1 && tier < IOSCHED_TIERS;
	     tier++) {
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
			mr = model_due(tier, READ, now);
			write = model_due(tier, WRITE, now);
			if (mr && write)
				return time_after(mr->deadline,
						  write->deadline) ? write : mr;
			if (mr || write)
				return mr ? mr : write;
			return model.policy->select(tier);
		}
		if (model_tiers() > 1 && model_in_bounds(tier))
			return NULL;
	}
	return NULL;
}

/* What the core's rules say is to be dispatched now. */
static struct model_request *model_next(void)
{
	struct model_request *mr, *next = NULL;

	model_for_each(mr)
		if (mr->state == MODEL_HEAD &&
		    (!next || mr->place < next->place))
			next = mr;
	if (!next)
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

/*
 * iosched_replace_all() was called: have the policy's model, which has forgotten
 * all, queue everything again.
 */
static inline void model_replaced(void)
{
	struct model_request *mr;
	unsigned int tier, dir;
	s64 done;

	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (dir = READ; dir <= WRITE; dir++)
			for (done = S64_MIN; (mr = model_behind(tier, dir, done));
			     done = mr->place) {
				mr->sorted = ++model.sorted;
				model.policy->queued(mr);
			}
}

/*
 * Compare with the elevator.
 */

/* For a look at what the policy knows of a request: sort in the only one. */
static inline void model_sort_alone(void)
{
	struct iosched *io = iosched_of(fake.q);

	spin_lock(&io->lock);
	iosched_sort_alone(io);
	spin_unlock(&io->lock);
}

/*
 * Where all is held although the device has a tag, the timer is armed for the
 * first time at which a request may go without a completion.
 */
static void model_compare_timer(struct kunit *test)
{
	struct iosched *io = iosched_of(fake.q);
	struct model_request *mr;

	if (!io->held || model_in_bounds(-1) >= fake.set.queue_depth)
		return;
	MODEL_ASSERT(test, fake_timer_pending(&io->timer), "held, no timer");
	model_for_each(mr) {
		unsigned long when;

		if (mr->state != MODEL_QUEUED)
			continue;
		when = model_deadline(mr);
		if (time_before_eq(when, jiffies))
			when += IOSCHED_SLACK;
		MODEL_ASSERT(test, time_before_eq(when, jiffies) ||
			     time_before_eq(io->timer.expires, when) ||
			     model_oldest(mr->tier, mr->dir) != mr,
			     "sector %llu is due in %ld ms, the timer in %ld",
			     (u64)mr->sector, (long)(when - jiffies),
			     (long)(io->timer.expires - jiffies));
	}
}

/* Its statistics are the model's, and so are its lists, in order. */
static void model_compare(struct kunit *test)
{
	struct iosched *io = iosched_of(fake.q);
	unsigned int tier, dir, queued = 0;
	struct request *rq;

	list_for_each_entry(rq, &io->head, queuelist) {
		MODEL_ASSERT(test, model_of(rq)->state == MODEL_HEAD,
			     "at the head, not so in the model");
		queued++;
	}
	MODEL_ASSERT(test, queued == model_count(MODEL_HEAD, -1),
		     "%u at the head", queued);
	if (io->alone) {
		struct model_request *mr = model_of(io->alone);

		MODEL_ASSERT(test, !queued && mr->state == MODEL_QUEUED &&
			     mr->deadline == (unsigned long)io->alone->fifo_time,
			     "alone: %llu..%llu", (u64)mr->sector, (u64)mr->end);
		queued++;
	}
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (dir = READ; dir <= WRITE; dir++) {
			struct model_stats *ms = &model.stats[tier][dir];
			struct iosched_stats *st = &io->stats[tier][dir];
			struct iosched_done *done = &io->done[tier][dir];
			s64 place = S64_MIN;

			MODEL_ASSERT(test, ms->inserted == st->inserted &&
				     ms->merged == st->merged &&
				     ms->dispatched == st->dispatched &&
				     ms->expired == st->expired &&
				     ms->completed == atomic_read(&done->completed) &&
				     ms->requeued == atomic_read(&done->requeued),
				     "tier %u dir %u: ins %u=%u merged %u=%u disp %u=%u exp %u=%u done %u=%u requeued %u=%u",
				     tier, dir, st->inserted, ms->inserted,
				     st->merged, ms->merged, st->dispatched,
				     ms->dispatched, st->expired, ms->expired,
				     atomic_read(&done->completed), ms->completed,
				     atomic_read(&done->requeued), ms->requeued);
			list_for_each_entry(rq, &io->fifo[tier][dir], queuelist) {
				struct model_request *mr = model_of(rq);

				MODEL_ASSERT(test, mr->state == MODEL_QUEUED &&
					     mr->tier == tier && mr->dir == dir &&
					     mr->place > place &&
					     mr->deadline == (unsigned long)rq->fifo_time &&
					     mr->sector == blk_rq_pos(rq) &&
					     mr->end == iosched_rq_end(rq),
					     "FIFO of tier %u dir %u: %llu+%u",
					     tier, dir, (u64)blk_rq_pos(rq),
					     blk_rq_sectors(rq));
				place = mr->place;
				queued++;
			}
		}
	MODEL_ASSERT(test, queued == io->nr && queued ==
		     model_count(MODEL_QUEUED, -1) + model_count(MODEL_HEAD, -1),
		     "%u queued, the elevator says %u", queued, io->nr);
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		MODEL_ASSERT(test, iosched_tier_in_flight(io, tier) ==
			     model_in_bounds(tier) &&
			     (!model_in_use(tier) || io->tiers & BIT(tier)),
			     "tier %u in flight", tier);
	model_compare_timer(test);
	/* The block layer asks until there is nothing, and then waits. */
	MODEL_ASSERT(test, !io->held || !model.refused ||
		     !model.policy->overdue || !model.policy->overdue(),
		     "not woken in time");
	if (model.policy->compare)
		model.policy->compare(test);
}

/* The bios of a request are one after the other, from its begin to its end. */
static void model_check_bios(struct kunit *test, struct request *rq)
{
	sector_t at = blk_rq_pos(rq);
	struct bio *bio;

	for (bio = rq->bio; bio; bio = bio->bi_next) {
		MODEL_ASSERT(test, bio->bi_iter.bi_sector == at &&
			     bio_data_dir(bio) == rq_data_dir(rq),
			     "bio at %llu, not %llu",
			     (u64)bio->bi_iter.bi_sector, (u64)at);
		at = bio_end_sector(bio);
	}
	MODEL_ASSERT(test, at == iosched_rq_end(rq), "bios end too early");
}

/* @next has become a part of @mr. */
static void model_join(struct kunit *test, struct model_request *mr,
		       struct model_request *next)
{
	mr->start_ns = min(mr->start_ns, next->start_ns);
	/* The newcomer itself was never queued. */
	if (next->state != MODEL_QUEUED)
		return;
	MODEL_ASSERT(test, next->tier == mr->tier && next->dir == mr->dir,
		     "joined across tiers or directions");
	if (time_before(next->deadline, mr->deadline)) {
		if (model.policy->inherits)
			model.policy->inherits(mr, next);
		mr->deadline = next->deadline;
		mr->place = next->place;
	}
	model_unqueue(next, MODEL_NONE);
	model_stats_of(next)->merged++;
}

/* It covers that now, by one merge. */
static void model_grown(struct kunit *test, struct model_request *mr,
			sector_t sector, sector_t end)
{
	/* What begins elsewhere is sorted anew. */
	if (mr->sector != sector)
		mr->sorted = ++model.sorted;
	mr->sector = sector;
	mr->end = end;
	MODEL_ASSERT(test, !model.policy->may_merge ||
		     model.policy->may_merge(mr->dir, sector, end),
		     "must not be one request: %llu..%llu", (u64)sector,
		     (u64)end);
	if (model.policy->grown)
		model.policy->grown(mr);
}

/* The one that has grown: the only one whose size is not what it was. */
static struct model_request *model_find_grown(struct kunit *test)
{
	struct model_request *mr, *grown = NULL;

	model_for_each(mr)
		if (mr->state == MODEL_QUEUED && fake.requests[mr - model.requests].used &&
		    mr->end - mr->sector != blk_rq_sectors(model_rq(mr))) {
			MODEL_ASSERT(test, !grown, "two have grown");
			grown = mr;
		}
	MODEL_ASSERT(test, grown, "none has grown");
	return grown;
}

/* The one of @grown and those that were freed that ends where @mr begins. */
static struct model_request *model_in_front(struct model_request *mr,
					    struct model_request *grown)
{
	unsigned int i;

	for (i = 0; i < fake.nr_freed; i++)
		if (model_of(fake.freed[i])->state == MODEL_QUEUED &&
		    model_of(fake.freed[i])->end == mr->sector)
			return model_of(fake.freed[i]);
	return grown;
}

/*
 * Something of that size and priority was merged into a queued request, which
 * may then have been joined with others (fake.freed): find it, see that all is
 * right with it, and let the model have it so, merge by merge: a request that was
 * inserted (@newcomer, else NULL) joined the one in front of it, that perhaps
 * another one in front, and so on. A bio went together with its join.
 */
static void model_merged(struct kunit *test, unsigned int tier,
			 unsigned int dir, sector_t sectors,
			 struct model_request *newcomer)
{
	struct model_request *grown = model_find_grown(test), *front;
	sector_t begin = blk_rq_pos(model_rq(grown));
	sector_t end = iosched_rq_end(model_rq(grown));
	unsigned int i;

	MODEL_ASSERT(test, grown->tier == tier && grown->dir == dir,
		     "merged across tiers or directions");
	model_check_bios(test, model_rq(grown));
	sectors += grown->end - grown->sector;
	for (i = 0; i < fake.nr_freed; i++)
		if (model_of(fake.freed[i]) != newcomer)
			sectors += model_of(fake.freed[i])->end -
				   model_of(fake.freed[i])->sector;
	MODEL_ASSERT(test, sectors == end - begin,
		     "merged into %llu sectors, not %llu",
		     (u64)(end - begin), (u64)sectors);
	if (newcomer) {
		do {
			front = model_in_front(newcomer, grown);
			MODEL_ASSERT(test, front->end == newcomer->sector,
				     "joined one that is elsewhere");
			model_join(test, front, newcomer);
			model_grown(test, front, front->sector, end);
			newcomer = front;
		} while (front != grown);
		return;
	}
	for (i = 0; i < fake.nr_freed; i++)
		model_join(test, grown, model_of(fake.freed[i]));
	model_grown(test, grown, begin, end);
}

/*
 * Operations: to the elevator and to the model
 */

static bool model_dispatch(struct kunit *test)
{
	struct model_request *want = model_next(), *mr;
	struct request *rq = fake_dispatch();

	mr = rq ? model_of(rq) : NULL;
	model.refused = !rq;
	MODEL_ASSERT(test, mr == want,
		     "dispatched %lld, must be %lld (sector, -1: none)",
		     mr ? (s64)mr->sector : -1, want ? (s64)want->sector : -1);
	if (!mr)
		return false;
	model_check_bios(test, rq);
	if (mr->state == MODEL_QUEUED) {
		if (time_after_eq(jiffies, mr->deadline))
			model_stats_of(mr)->expired++;
		mr->counted = true;
		if (model.policy->dispatched)
			model.policy->dispatched(mr);
	}
	model_unqueue(mr, MODEL_IN_FLIGHT);
	model_stats_of(mr)->dispatched++;
	return true;
}

static void model_queue(struct kunit *test, struct request *rq, bool at_head)
{
	struct model_request *mr = model_of(rq);
	unsigned int expire = mr->dir == READ ? model.read_expire :
						model.write_expire;
	struct iosched *io = iosched_of(fake.q);
	bool looked;

	/* A driver may have left anything there. */
	if (at_head)
		memset(&rq->special_vec, 0x5a, sizeof(rq->special_vec));
	fake_insert_request(rq, at_head);
	looked = !io->nr || fake_has_work();
	MODEL_ASSERT(test, looked || (!at_head && !mr->polled && !fake.nr_freed),
		     "nobody looks after a merge, or at the head");
	if (!at_head && fake.nr_freed) {
		model_stats_of(mr)->merged++;
		model_merged(test, mr->tier, mr->dir, mr->end - mr->sector, mr);
		return;
	}
	if (at_head || mr->polled) {
		mr->state = MODEL_HEAD;
		mr->place = at_head ? --model.first : ++model.last;
		return;
	}
	mr->state = MODEL_QUEUED;
	mr->place = ++model.last;
	mr->sorted = ++model.sorted;
	mr->deadline = jiffies + msecs_to_jiffies(expire);
	if (model.policy->queued)
		model.policy->queued(mr);
	if (!looked && fake_once_in(2)) {
		model_dispatch(test);
		MODEL_ASSERT(test, mr->state == MODEL_QUEUED,
			     "a newcomer that may go is not looked at");
	}
}

static unsigned short model_prio(unsigned int tier)
{
	static const unsigned int classes[] = {
		[IOSCHED_RT] = IOPRIO_CLASS_RT,
		[IOSCHED_BE] = IOPRIO_CLASS_NONE,
		[IOSCHED_IDLE] = IOPRIO_CLASS_IDLE,
	};

	return IOPRIO_PRIO_VALUE(classes[tier], 0);
}

/* A random place on the device, often beside something that is there. */
static sector_t model_sector(unsigned int sectors)
{
	struct model_request *mr = &model.requests[fake_random(FAKE_REQUESTS)];
	sector_t capacity = model.policy->capacity, sector;

	if (mr->state == MODEL_QUEUED && mr->end + sectors <= capacity)
		return mr->end;
	if (mr->state == MODEL_HEAD && mr->sector >= sectors)
		return mr->sector - sectors;
	if (!model.policy->spread)
		return fake_random(capacity - sectors);
	sector = fake_random(capacity / model.policy->spread) *
		 model.policy->spread + fake_random(64);
	return min_t(sector_t, sector, capacity - sectors);
}

static void model_arrive(struct kunit *test)
{
	unsigned int tier = model.max_tier ? fake_random(IOSCHED_TIERS) :
					     IOSCHED_BE;
	unsigned int sectors = 8 * (1 + fake_random(4));
	unsigned int dir = fake_random(5) < 3 ? READ : WRITE;
	blk_opf_t opf = dir == READ ? REQ_OP_READ : REQ_OP_WRITE;
	sector_t sector = model_sector(sectors);
	struct model_request *mr;
	struct request *rq;

	if (model_count(MODEL_NONE, -1) <= FAKE_REQUESTS - MODEL_REQUESTS)
		return;
	if (model.policy->sender)
		opf |= model.policy->sender(dir);
	if (fake_once_in(20))
		opf |= REQ_POLLED;
	if (fake_merge_bio(opf, sector, sectors, model_prio(tier))) {
		MODEL_ASSERT(test, !(opf & REQ_POLLED), "merged a polled bio");
		model_merged(test, tier, dir, sectors, NULL);
		return;
	}
	rq = fake_once_in(10) ?
		fake_alloc_unprepared(opf, sector, sectors, model_prio(tier)) :
		fake_alloc(opf, sector, sectors, model_prio(tier));
	mr = model_of(rq);
	memset(mr, 0, sizeof(*mr));
	mr->sector = sector;
	mr->end = sector + sectors;
	mr->tier = tier;
	mr->dir = dir;
	mr->sync = op_is_sync(opf);
	mr->polled = opf & REQ_POLLED;
	mr->start_ns = fake_ns;
	model_stats_of(mr)->inserted++;
	model_queue(test, rq, fake_once_in(50));
}

/* A random one that is in flight. */
static struct model_request *model_in_flight(void)
{
	unsigned int nr = model_count(MODEL_IN_FLIGHT, -1);
	struct model_request *mr;

	if (!nr)
		return NULL;
	nr = fake_random(nr);
	model_for_each(mr)
		if (mr->state == MODEL_IN_FLIGHT && !nr--)
			break;
	return mr;
}

/* Whoever waited has to be woken by what was just done. */
static void model_check_woken(struct kunit *test, bool held, unsigned int runs)
{
	MODEL_ASSERT(test, !held || (fake_runs != runs &&
				     !iosched_of(fake.q)->held),
		     "not woken");
}

static void model_leave(struct kunit *test, bool requeue)
{
	bool held = iosched_of(fake.q)->held;
	struct model_request *mr = model_in_flight();
	unsigned int runs = fake_runs;

	if (!mr)
		return;
	if (mr->counted && model.policy->released)
		model.policy->released(mr);
	mr->counted = false;
	mr->state = MODEL_NONE;
	if (requeue) {
		model_stats_of(mr)->requeued++;
		fake_requeue(model_rq(mr));
		model_check_woken(test, held, runs);
		model_queue(test, model_rq(mr), fake_once_in(2));
	} else {
		model_stats_of(mr)->completed++;
		fake_complete(model_rq(mr));
		model_check_woken(test, held, runs);
	}
}

/* Write a tunable of the elevator's, and see that it wakes who waits. */
static inline void model_write(struct kunit *test, const char *name,
			       const char *text)
{
	bool held = iosched_of(fake.q)->held;
	unsigned int runs = fake_runs;

	KUNIT_ASSERT_EQ(test, fake_set(iosched_attrs, name, text),
			(ssize_t)strlen(text));
	model_check_woken(test, held, runs);
}

static inline void model_set(struct kunit *test, const char *name,
			     unsigned int *field, unsigned int value)
{
	char text[16];

	*field = value;
	snprintf(text, sizeof(text), "%u\n", value);
	model_write(test, name, text);
}

/* The same where the value has a name. */
static inline void model_choose(struct kunit *test, const char *name,
				unsigned int *field, unsigned int value,
				const char * const *names)
{
	*field = value;
	model_write(test, name, names[value]);
}

static void model_operation(struct kunit *test)
{
	unsigned int what = fake_random(100);

	if (what < 38)
		model_arrive(test);
	else if (what < 66)
		model_dispatch(test);
	else if (what < 86)
		model_leave(test, false);
	else if (what < 90)
		model_leave(test, true);
	else if (what < 96)
		fake_advance_ns(fake_random(200) * NSEC_PER_MSEC);
	else if (what < 97)
		model_set(test, "depth", &model.depth, fake_random(6));
	else if (model.policy->disturb)
		model.policy->disturb(test);
	model.operations++;
	model_compare(test);
}

/*
 * Finish as the block layer does: it asks again only when it was told to, or
 * when there is work that nobody holds back. Whoever is forgotten shows.
 */
static void model_drain(struct kunit *test)
{
	unsigned int runs, idle = 0;

	while (model_count(MODEL_NONE, -1) != FAKE_REQUESTS) {
		runs = fake_runs;
		if (fake_has_work())
			while (model_dispatch(test))
				;
		if (model_count(MODEL_IN_FLIGHT, -1)) {
			model_leave(test, false);
			continue;
		}
		/* Nothing in flight: only a timer may be what is waited for. */
		MODEL_ASSERT(test, fake_runs != runs || fake_has_work() ||
			     (fake_timer && model.policy->may_wait &&
			      model.policy->may_wait()),
			     "stalled");
		fake_advance_ms(1);
		MODEL_ASSERT(test, ++idle < 5000, "no end of waiting");
	}
	model_compare(test);
	MODEL_ASSERT(test, !iosched_of(fake.q)->nr, "something is left");
}

static void model_start(struct kunit *test, const struct model_policy *policy,
			u32 of_seed)
{
	u64 operations = model.operations;
	struct iosched *io;

	memset(&model, 0, sizeof(model));
	model.operations = operations;
	model.policy = policy;
	model.max_tier = of_seed % 3 == 0;
	fake_sequence(of_seed);
	fake.set.queue_depth = fake_random(4) ? FAKE_REQUESTS :
						1 + fake_random(4);
	KUNIT_ASSERT_EQ(test, fake_start(policy->type, policy->capacity), 0);
	io = iosched_of(fake.q);
	io->read_expire = 100;
	io->write_expire = 300;
	io->prio_aging_expire = 700;
	model.read_expire = io->read_expire;
	model.write_expire = io->write_expire;
	model.prio_aging_expire = io->prio_aging_expire;
	if (policy->start)
		policy->start(test);
}

/* The random sequences: a test case's last call. */
static void model_run(struct kunit *test, const struct model_policy *policy)
{
	u32 first = fake_first_seed(test);
	unsigned int i, op;

	model.operations = 0;
	for (i = 0; i < sequences; i++) {
		model_start(test, policy, first + i);
		for (op = 0; op < MODEL_OPERATIONS; op++)
			model_operation(test);
		model_drain(test);
		fake_stop();
		cond_resched();
	}
	fake.set.queue_depth = FAKE_REQUESTS;
	kunit_info(test, "%llu operations compared", model.operations);
}

#endif /* _MODEL_H */
