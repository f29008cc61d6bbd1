/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The model of PIQ: a table of the members of all batches. Units are counted
 * page by page, and everything is searched for each query.
 */
#ifndef _PIQ_MODEL_H
#define _PIQ_MODEL_H

#include "model.h"
#include "piq-vectors.h"

#define QM_MEMBERS	1024	/* at once */
#define QM_BATCHES	4096	/* of a map */

/* A request that is or was in a batch. */
struct qm_member {
	struct model_request *mr;	/* NULL: dispatched */
	unsigned int tier, dir;
	unsigned int batch;
	u64 units;
	u64 order;			/* of admission */
	u64 since;			/* ns */
};

static struct {
	unsigned int count[LV_DIGITS];	/* channels, chips, dies, planes */
	unsigned int page_size_kb;
	unsigned int allocation;
	unsigned int level;
	unsigned int window;
	unsigned int scheme;
	unsigned int write_wait_us;
	unsigned int claim_us;
	unsigned int buffered_writes;
	long map;			/* number of the current map */
	struct qm_member member[QM_MEMBERS];
	unsigned int members;
	struct {
		u64 since;
		bool prioritised;
	} batch[QM_BATCHES];
	unsigned int batches;
	u64 order;
	u64 write_turn[IOSCHED_TIERS];
	bool read_turn[IOSCHED_TIERS];
	unsigned int prioritised;
	unsigned int stuck;		/* bitmap of tiers that cannot dispatch */
} qm;

static const char * const qm_counts[] = { "channels", "chips", "dies", "planes" };

static bool qm_buffered(unsigned int dir)
{
	return dir == WRITE && qm.buffered_writes;
}

static bool qm_reads_first(void)
{
	return qm.scheme != PIQ_NOOP;
}

static bool qm_batched(unsigned int dir)
{
	if (dir == READ)
		return qm.scheme == PIQ_READS || qm.scheme == PIQ_BOTH ||
		       qm.scheme == PIQ_PLUS;
	return qm.scheme == PIQ_WRITES || qm.scheme == PIQ_BOTH ||
	       qm.scheme == PIQ_PLUS;
}

static u64 qm_units(sector_t sector, sector_t end)
{
	const char *order = piq_allocation_names[qm.allocation];
	unsigned int size = qm.page_size_kb * 2, page;
	u64 units = 0;

	for (page = (u32)sector / size; page * size < end; page++)
		units |= BIT_ULL(piq_model_unit(qm.count, order, qm.level, page));
	return units;
}

static u64 qm_held(void)
{
	struct model_request *mr;
	u64 held = 0;

	model_for_each(mr)
		if (mr->state == MODEL_IN_FLIGHT && mr->counted &&
		    mr->priv[1] == qm.map)
			held |= qm_units(mr->sector, mr->end);
	return held;
}

static struct qm_member *qm_member_of(struct model_request *mr)
{
	unsigned int i;

	for (i = 0; i < qm.members; i++)
		if (qm.member[i].mr == mr)
			return &qm.member[i];
	return NULL;
}

/* Return true if a member of the batch waits. */
static bool qm_alive(unsigned int batch)
{
	unsigned int i;

	for (i = 0; i < qm.members; i++)
		if (qm.member[i].batch == batch && qm.member[i].mr)
			return true;
	return false;
}

/* Return true if a member of the batch was dispatched. */
static bool qm_has_gone(unsigned int batch)
{
	unsigned int i;

	for (i = 0; i < qm.members; i++)
		if (qm.member[i].batch == batch && !qm.member[i].mr)
			return true;
	return false;
}

/* Remove the members of batches in which none waits. */
static void qm_bury(void)
{
	unsigned int i, left = 0;

	for (i = 0; i < qm.members; i++)
		if (!qm_alive(qm.member[i].batch))
			qm.member[i].batch = 0;
	for (i = 0; i < qm.members; i++)
		if (qm.member[i].batch)
			qm.member[left++] = qm.member[i];
	qm.members = left;
}

/* Return the units that members of a batch, except one, need or have needed. */
static u64 qm_units_of(unsigned int batch, struct qm_member *but)
{
	unsigned int i;
	u64 units = 0;

	for (i = 0; i < qm.members; i++)
		if (qm.member[i].batch == batch && &qm.member[i] != but)
			units |= qm.member[i].units;
	return units;
}

/* Return the first batch of a tier and direction behind another, 0 for none. */
static unsigned int qm_next_batch(unsigned int tier, unsigned int dir,
				  unsigned int behind)
{
	unsigned int i, next = 0;

	for (i = 0; i < qm.members; i++) {
		struct qm_member *m = &qm.member[i];

		if (m->mr && m->tier == tier && m->dir == dir &&
		    m->batch > behind && (!next || m->batch < next))
			next = m->batch;
	}
	return next;
}

/* Return the first waiting member of a batch that needs none of the taken units. */
static struct qm_member *qm_first_of(unsigned int batch, u64 taken)
{
	struct qm_member *first = NULL;
	unsigned int i;

	for (i = 0; i < qm.members; i++) {
		struct qm_member *m = &qm.member[i];

		if (m->mr && m->batch == batch && !(m->units & taken) &&
		    (!first || m->order < first->order))
			first = m;
	}
	return first;
}

static void qm_put(struct model_request *mr, u64 since)
{
	struct qm_member *m = &qm.member[qm.members];
	unsigned int batch = 0;

	*m = (struct qm_member) {
		.mr = mr, .tier = mr->tier, .dir = mr->dir, .since = since,
		.units = qm_units(mr->sector, mr->end), .order = ++qm.order,
	};
	while ((batch = qm_next_batch(mr->tier, mr->dir, batch)))
		if (!(qm_units_of(batch, NULL) & m->units))
			break;
	if (!batch) {
		batch = ++qm.batches;
		qm.batch[batch].since = since;
		qm.batch[batch].prioritised = false;
	}
	m->batch = batch;
	qm.members++;
}

static unsigned int qm_waiting(unsigned int tier, unsigned int dir)
{
	unsigned int i, waiting = 0;

	for (i = 0; i < qm.members; i++)
		waiting += qm.member[i].mr && qm.member[i].tier == tier &&
			   qm.member[i].dir == dir;
	return waiting;
}

/* Return the oldest request outside the window. */
static struct model_request *qm_outside(unsigned int tier, unsigned int dir)
{
	struct model_request *mr;
	s64 place = S64_MIN;

	while ((mr = model_behind(tier, dir, place))) {
		if (!qm_member_of(mr))
			break;
		place = mr->place;
	}
	return mr;
}

/* Admit requests into the window, in order, as far as there is room. */
static void qm_admit(unsigned int tier, unsigned int dir)
{
	struct model_request *mr;

	while (qm_batched(dir) && qm_waiting(tier, dir) < qm.window &&
	       (mr = qm_outside(tier, dir)))
		qm_put(mr, mr->start_ns);
}

static void qm_queued(struct model_request *mr)
{
	qm.stuck = 0;
	if (qm_batched(mr->dir) && qm_outside(mr->tier, mr->dir) == mr &&
	    qm_waiting(mr->tier, mr->dir) < qm.window)
		qm_put(mr, mr->start_ns);
}

/* Rule 5: begin the next turn if a batch has ended after some of it were dispatched. */
static void qm_end(unsigned int batch, unsigned int tier, unsigned int dir)
{
	if (qm_alive(batch) || !qm_has_gone(batch))
		return;
	if (qm.batch[batch].prioritised) {
		qm.prioritised++;
		qm.write_turn[tier] = fake_ns;
		qm.read_turn[tier] = true;
	} else if (dir == READ) {
		qm.read_turn[tier] = false;
	}
	qm_bury();
}

static void qm_unqueued(struct model_request *mr)
{
	struct qm_member *m = qm_member_of(mr);
	unsigned int batch;

	qm.stuck = 0;
	if (!m)
		return;
	batch = m->batch;
	*m = qm.member[--qm.members];
	qm_end(batch, mr->tier, mr->dir);
}

static void qm_inherits(struct model_request *mr, struct model_request *next)
{
	struct qm_member *m = qm_member_of(next);

	if (m && !qm_member_of(mr))
		m->mr = mr;
}

static void qm_grown(struct model_request *mr)
{
	struct qm_member *m = qm_member_of(mr);
	u64 since;

	qm.stuck = 0;
	if (!m)
		return;
	m->units = qm_units(mr->sector, mr->end);
	if (!(qm_units_of(m->batch, m) & m->units))
		return;
	since = m->since;
	qm_unqueued(mr);
	qm_put(mr, since);
}

static void qm_dispatched(struct model_request *mr)
{
	struct qm_member *m = qm_member_of(mr);
	unsigned int batch;

	/* -1 is no map: a buffered write holds no unit. */
	mr->priv[1] = qm_buffered(mr->dir) ? -1 : qm.map;
	if (!m)
		return;
	batch = m->batch;
	m->mr = NULL;
	qm_end(batch, mr->tier, mr->dir);
}

/* Return the units that the waiting members of a batch need. */
static u64 qm_claim(unsigned int batch)
{
	unsigned int i;
	u64 units = 0;

	for (i = 0; i < qm.members; i++)
		if (qm.member[i].batch == batch && qm.member[i].mr)
			units |= qm.member[i].units;
	return units;
}

/* Return true if a batch has waited for longer than claim_us. */
static bool qm_claims(unsigned int batch)
{
	return fake_ns > qm.batch[batch].since + qm.claim_us * 1000ULL;
}

static struct model_request *qm_pick(unsigned int tier, unsigned int dir,
				     u64 *taken)
{
	struct model_request *oldest = model_oldest(tier, dir);
	unsigned int batch = 0;
	struct qm_member *m;
	u64 units;

	if (!oldest)
		return NULL;
	if (qm_buffered(dir))
		*taken = 0;
	if (!qm_batched(dir)) {
		units = qm_units(oldest->sector, oldest->end);
		if (!(units & *taken))
			return oldest;
		*taken |= units;
		return NULL;
	}
	while ((batch = qm_next_batch(tier, dir, batch))) {
		m = qm_first_of(batch, *taken);
		if (m)
			return m->mr;
		if (qm_claims(batch))
			*taken |= qm_claim(batch);
	}
	return NULL;
}

static struct model_request *qm_first_come(unsigned int tier)
{
	struct model_request *read = model_oldest(tier, READ);
	struct model_request *write = model_oldest(tier, WRITE);

	if (read && write)
		return write->start_ns < read->start_ns ? write : read;
	return read ? read : write;
}

/* Update and return the write batch to dispatch before the reads, 0 for none. */
static unsigned int qm_prioritise(unsigned int tier)
{
	unsigned int batch = qm_next_batch(tier, WRITE, 0);
	unsigned int read = qm_next_batch(tier, READ, 0);
	u64 since;

	if (!read)
		qm.read_turn[tier] = false;
	if (!batch || !read || qm.scheme != PIQ_PLUS)
		return 0;
	since = max(qm.batch[batch].since, qm.write_turn[tier]);
	if (qm.read_turn[tier] && !qm.batch[batch].prioritised)
		return 0;
	if (fake_ns >= since + qm.write_wait_us * 1000ULL ||
	    (qm_claims(batch) && qm.batch[batch].since < qm.batch[read].since))
		qm.batch[batch].prioritised = true;
	return qm.batch[batch].prioritised ? batch : 0;
}

/* A released unit can end a stall, unless another request holds it. */
static void qm_released(struct model_request *mr)
{
	u64 units = qm_units(mr->sector, mr->end);

	if (mr->priv[1] != qm.map)
		return;
	mr->counted = false;
	if (units & ~qm_held())
		qm.stuck = 0;
}

/* A tier that could not dispatch cannot until something but the time changes. */
static struct model_request *qm_select(unsigned int tier, unsigned int only)
{
	u64 taken = qm_held();
	struct model_request *mr;
	unsigned int batch;
	struct qm_member *m;

	if (!qm_reads_first())
		return only == IOSCHED_ANY ? qm_first_come(tier) :
					     model_oldest(tier, only);
	if (qm.stuck & BIT(tier))
		return NULL;
	qm_admit(tier, READ);
	qm_admit(tier, WRITE);
	batch = only == READ ? 0 : qm_prioritise(tier);
	if (batch) {
		m = qm_first_of(batch, qm_buffered(WRITE) ? 0 : taken);
		if (m)
			return m->mr;
		taken |= qm_claim(batch);
	}
	mr = only == WRITE ? NULL : qm_pick(tier, READ, &taken);
	if (!mr && only != READ)
		mr = qm_pick(tier, WRITE, &taken);
	if (!mr && only == IOSCHED_ANY)
		qm.stuck |= BIT(tier);
	return mr;
}

static struct model_request *qm_any_waiting(unsigned int tier,
					    unsigned int dir)
{
	unsigned int i;

	for (i = 0; i < qm.members; i++)
		if (qm.member[i].mr && qm.member[i].tier == tier &&
		    qm.member[i].dir == dir)
			return qm.member[i].mr;
	return NULL;
}

/* All requests leave their batches, reads first. */
static void qm_forget(void)
{
	struct model_request *mr;
	unsigned int tier, dir;

	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (dir = READ; dir <= WRITE; dir++)
			while ((mr = qm_any_waiting(tier, dir)))
				qm_unqueued(mr);
	qm.stuck = 0;
	qm.members = 0;
	qm.batches = 0;
}

static void qm_start(struct kunit *test)
{
	struct piq_data *pd = piq_of(iosched_of(fake.q));

	memset(qm.write_turn, 0, sizeof(qm.write_turn));
	memset(qm.read_turn, 0, sizeof(qm.read_turn));
	qm.prioritised = 0;
	qm.page_size_kb = pd->page_size_kb;
	qm.count[LV_CHANNEL] = pd->channels;
	qm.count[LV_WAY] = pd->chips;
	qm.count[LV_DIE] = pd->dies;
	qm.count[LV_PLANE] = pd->planes;
	qm.allocation = pd->allocation;
	qm.level = pd->level;
	qm.scheme = fake_random(3) ? PIQ_PLUS : fake_random(6);
	model_choose(test, "scheme", &qm.scheme, qm.scheme, piq_scheme_names);
	model_set(test, "window", &qm.window, 1 + fake_random(8));
	model_set(test, "write_wait_us", &qm.write_wait_us, fake_random(300000));
	model_set(test, "claim_us", &qm.claim_us, fake_random(300000));
	model_set(test, "buffered_writes", &qm.buffered_writes,
		  !fake_random(4));
	qm_forget();
}

static void qm_disturb(struct kunit *test)
{
	unsigned int i;

	switch (fake_random(9)) {
	case 0:
		i = fake_random(4);
		model_set(test, qm_counts[i], &qm.count[i],
			  1 + fake_random(i < 2 ? 4 : 2));
		break;
	case 1:
		model_set(test, "page_size_kb", &qm.page_size_kb,
			  4 << fake_random(3));
		break;
	case 2:
		model_choose(test, "allocation", &qm.allocation,
			     fake_random(24), piq_allocation_names);
		break;
	case 3:
		model_choose(test, "level", &qm.level, fake_random(2),
			     piq_level_names);
		break;
	case 4:
		model_set(test, "window", &qm.window, 1 + fake_random(8));
		break;
	case 5:
		model_choose(test, "scheme", &qm.scheme,
			     fake_random(2) ? PIQ_PLUS : fake_random(6),
			     piq_scheme_names);
		qm_forget();
		model_replaced();
		return;
	case 6:
		model_set(test, "buffered_writes", &qm.buffered_writes,
			  fake_random(2));
		qm.stuck = 0;
		return;
	case 7:
		model_set(test, "write_wait_us", &qm.write_wait_us,
			  fake_random(300000));
		qm.stuck = 0;
		return;
	case 8:
		model_set(test, "claim_us", &qm.claim_us, fake_random(300000));
		qm.stuck = 0;
		return;
	}
	/* A new map does not count the requests in flight. */
	qm.map++;
	qm_forget();
	model_replaced();
}

static void qm_compare(struct kunit *test)
{
	struct piq_data *pd = piq_of(iosched_of(fake.q));

	MODEL_ASSERT(test, pd->prioritised == qm.prioritised,
		     "%u prioritised write batches, must be %u",
		     pd->prioritised, qm.prioritised);
}

static const struct model_policy piq_model_policy = {
	.type = &iosched_type,
	.capacity = 1 << 14,
	.start = qm_start,
	.select = qm_select,
	.queued = qm_queued,
	.unqueued = qm_unqueued,
	.inherits = qm_inherits,
	.grown = qm_grown,
	.dispatched = qm_dispatched,
	.released = qm_released,
	.disturb = qm_disturb,
	.compare = qm_compare,
};

#endif /* _PIQ_MODEL_H */
