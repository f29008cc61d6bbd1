/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The reference model: the rules of the elevator core and of a policy,
 * implemented a second time in the simplest way. It has no trees, rings or
 * running counters, only a table of requests, which every query searches
 * completely.
 *
 *	model-rules.h    the table, and the core's rules of dispatch
 *	model-compare.h  comparison with the elevator, merges
 *	model.h          random sequences of operations on both
 *
 * model_run() draws random sequences of operations, applies each operation to
 * the elevator and to the model, and compares everything visible: the
 * dispatched request, all statistics, the FIFOs and the wake-ups.
 *
 * The block layer chooses among several possible merges. The model follows its
 * choice and checks that the merge is allowed.
 *
 * Include it after the policy, and define a struct model_policy.
 */
#ifndef _MODEL_H
#define _MODEL_H

#include "model-compare.h"

/* Operations of a sequence, before it is drained. */
#define MODEL_OPERATIONS	60
/* Requests at a time: few, so that they interact often. */
#define MODEL_REQUESTS		24
/* Random requests start less than so many sectors behind a multiple of spread. */
#define MODEL_JITTER		64
/* Longest time, in ms, that a drain may take with nothing in flight. */
#define MODEL_MAX_IDLE_MS	5000

/* Operations on the elevator and on the model */

/*
 * @rq was dispatched, or NULL. If it was the @first one that was not sorted, it must be the
 * next one as if it were the only one. Otherwise all were sorted before.
 */
static void model_follow(struct model_request *first, unsigned int fresh,
			 struct request *rq)
{
	if (first && rq == model_rq(first) &&
	    (fresh == 1 || iosched_of(fake.q)->fresh))
		model_sort(first);
	else
		model_sync();
}

static bool model_dispatch(struct kunit *test)
{
	struct model_request *fresh = model_first_fresh(), *want, *mr;
	unsigned int nr = model_count(MODEL_FRESH, -1);
	struct request *rq = fake_dispatch();

	model_follow(fresh, nr, rq);
	/* A phase of reads may have begun or ended. */
	want = model_next();
	mr = rq ? model_of(rq) : NULL;
	model.refused = !rq;
	MODEL_ASSERT(test, mr == want,
		     "dispatched sector %lld, must be %lld (-1: none)",
		     mr ? (s64)mr->sector : -1, want ? (s64)want->sector : -1);
	if (!mr) {
		if (model_count(MODEL_QUEUED, -1) && model_awaits() && !model.waiting)
			model.waiting = model_us();
		return false;
	}
	model_check_bios(test, rq);
	if (mr->state == MODEL_QUEUED) {
		if (time_after_eq(jiffies, mr->deadline))
			model_stats_of(mr)->expired++;
		mr->counted = true;
		if (model.policy->dispatched)
			model.policy->dispatched(mr);
	}
	model_issue(mr->dir);
	mr->timed = model_limit() == 1 && !mr->polled;
	model_unqueue(mr, MODEL_IN_FLIGHT);
	if (model_limit() == 1)
		model_turn_begins(mr);
	else
		model.waiting = 0;
	model_stats_of(mr)->dispatched++;
	return true;
}

/* The device must have room for all that are not sorted, if there are several. */
static void model_may_stay_fresh(struct kunit *test)
{
	unsigned int fresh = model_count(MODEL_FRESH, -1);

	MODEL_ASSERT(test, fresh == 1 ||
		     (model.bypass &&
		      model_in_bounds(-1) + fresh <= model_limit()),
		     "%u are not sorted", fresh);
}

static void model_queue(struct kunit *test, struct request *rq, bool at_head)
{
	struct model_request *mr = model_of(rq);
	unsigned int expire = mr->dir == READ ? model.read_expire :
						model.write_expire;
	struct iosched *io = iosched_of(fake.q);
	bool runs;

	/* A driver may have left anything there. */
	if (at_head)
		memset(&rq->special_vec, FAKE_POISON, sizeof(rq->special_vec));
	fake_insert_request(rq, at_head);
	model_sync();
	runs = !io->nr || fake_has_work();
	MODEL_ASSERT(test, runs || (!at_head && !mr->polled && !fake.nr_freed),
		     "no queue run after a merge or an insertion at the head");
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
	mr->place = ++model.last;
	mr->deadline = jiffies + msecs_to_jiffies(expire);
	model_turn_arrival(mr);
	if (model.policy->arrived)
		model.policy->arrived(mr);
	if (io->fresh) {
		mr->state = MODEL_FRESH;
		model_may_stay_fresh(test);
	} else {
		model_sort(mr);
	}
	if (!runs && fake_once_in(2)) {
		model_dispatch(test);
		MODEL_ASSERT(test, mr->state == MODEL_QUEUED,
			     "no queue run for a new request that can be dispatched");
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

/* Return a random sector, often adjacent to a queued request. */
static sector_t model_sector(unsigned int sectors)
{
	struct model_request *mr = &model.requests[fake_random(FAKE_REQUESTS)];
	sector_t capacity = model.policy->capacity, sector;

	if ((mr->state == MODEL_QUEUED || mr->state == MODEL_FRESH) &&
	    mr->end + sectors <= capacity)
		return mr->end;
	if (mr->state == MODEL_HEAD && mr->sector >= sectors)
		return mr->sector - sectors;
	if (!model.policy->spread)
		return fake_random(capacity - sectors);
	sector = fake_random(capacity / model.policy->spread) *
		 model.policy->spread + fake_random(MODEL_JITTER);
	return min_t(sector_t, sector, capacity - sectors);
}

static void model_arrive(struct kunit *test)
{
	unsigned int tier = model.all_tiers ? fake_random(IOSCHED_TIERS) :
					      IOSCHED_BE;
	unsigned int sectors = 8 * (1 + fake_random(4));
	unsigned int dir = fake_random(5) < 3 ? READ : WRITE;
	blk_opf_t opf = dir == READ ? REQ_OP_READ : REQ_OP_WRITE;
	sector_t sector = model_sector(sectors);
	struct model_request *mr;
	struct request *rq;
	bool merged;

	if (model_count(MODEL_NONE, -1) <= FAKE_REQUESTS - MODEL_REQUESTS)
		return;
	if (model.policy->sender)
		opf |= model.policy->sender(dir);
	if (fake_once_in(20))
		opf |= REQ_POLLED;
	merged = fake_merge_bio(opf, sector, sectors, model_prio(tier));
	model_sync();
	if (merged) {
		MODEL_ASSERT(test, !(opf & REQ_POLLED), "merged a polled bio");
		model_merged(test, tier, dir, sectors, NULL);
		return;
	}
	rq = fake_once_in(10) ?
		fake_alloc_unprepared(opf, sector, sectors, model_prio(tier)) :
		fake_alloc(opf, sector, sectors, model_prio(tier));
	/* It is to bypass the queue, though it is then inserted. */
	if (!(rq->rq_flags & IOSCHED_RQF_SCHED_TAGS))
		model_issue(dir);
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

/* Return a random request in flight. */
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

/* The last operation must have woken held requests. */
static void model_check_woken(struct kunit *test, bool held, unsigned int runs)
{
	MODEL_ASSERT(test, !held || (fake_runs != runs &&
				     !iosched_of(fake.q)->held),
		     "held requests were not woken");
}

/* Complete or requeue a random request in flight. */
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
		if (mr->timed)
			model_turn_ends(mr);
		model_stats_of(mr)->completed++;
		fake_complete(model_rq(mr));
		model_check_woken(test, held, runs);
	}
}

/* Write a tunable and check that it wakes held requests. */
static inline void model_write(struct kunit *test, const char *name,
			       const char *text)
{
	bool held = iosched_of(fake.q)->held;
	unsigned int runs = fake_runs;

	fake_set(test, name, text);
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

/* Write a tunable whose values have names. */
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
		fake_advance_ns(fake_random(2) ?
				fake_random(200) * NSEC_PER_MSEC :
				fake_random(4000) * NSEC_PER_USEC);
	else if (what < 97)
		model_set(test, "depth", &model.depth, fake_random(6));
	else if (what < 98)
		model_set(test, "write_share", &model.write_share,
			  fake_random(2) ? 1 + fake_random(10) : 100);
	else if (model.policy->disturb)
		model.policy->disturb(test);
	model_sync();
	model.operations++;
	model_compare(test);
}

/*
 * Drain as the block layer does: dispatch only after a queue run or if there is
 * work that is not held. A forgotten request shows as a stall.
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
		/* With nothing in flight only a timer can wake. */
		MODEL_ASSERT(test, fake_runs != runs || fake_has_work() ||
			     (fake_timer_set() &&
			      (model_reads_alone() || (model.policy->may_wait &&
						       model.policy->may_wait()))),
			     "stalled");
		fake_advance_ms(1);
		MODEL_ASSERT(test, ++idle < MODEL_MAX_IDLE_MS,
			     "requests are held forever");
	}
	model_compare(test);
	MODEL_ASSERT(test, !iosched_of(fake.q)->nr, "the elevator is not empty");
}

static void model_start(struct kunit *test, const struct model_policy *policy,
			u32 of_seed)
{
	static const unsigned int shares[] = { 5, 75, 100 };
	u64 operations = model.operations;
	struct iosched *io;

	memset(&model, 0, sizeof(model));
	model.operations = operations;
	model.policy = policy;
	model.all_tiers = of_seed % 3 == 0;
	fake_sequence(of_seed);
	fake.set.queue_depth = fake_random(4) ? FAKE_REQUESTS :
						1 + fake_random(4);
	KUNIT_ASSERT_EQ(test, fake_start(policy->type, policy->capacity), 0);
	io = iosched_of(fake.q);
	io->read_expire = 100;
	io->expire[READ] = msecs_to_jiffies(io->read_expire);
	io->write_expire = 300;
	io->expire[WRITE] = msecs_to_jiffies(io->write_expire);
	io->prio_aging_expire = 700;
	io->bypass = fake_random(2);
	model.bypass = io->bypass;
	io->write_share = shares[fake_random(ARRAY_SIZE(shares))];
	model.last_write = jiffies;
	model.soon = 128;
	model.write_share = io->write_share;
	model.read_expire = io->read_expire;
	model.write_expire = io->write_expire;
	model.prio_aging_expire = io->prio_aging_expire;
	if (policy->start)
		policy->start(test);
}

/**
 * model_run() - run random sequences against the model
 * @test: the test case; this must be its last call
 * @policy: model of the policy
 */
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
