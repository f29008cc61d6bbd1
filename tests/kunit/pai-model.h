/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The model of PAI: the class of a request by the definitions of the paper, the
 * next request by a search of all. Sizes are in sectors.
 */
#ifndef _PAI_MODEL_H
#define _PAI_MODEL_H

#include "model.h"
#include "pai-arithmetic.h"

static struct {
	unsigned int kb[4];		/* page, block, read and write buffer */
	unsigned int pending_us[IOSCHED_DIRS];
	unsigned int align, split, well_split;
	unsigned int own;		/* max_sectors of the queue without PAI */
	unsigned int max, boundary;	/* limits of the queue, in sectors */
	unsigned int dispatched[IOSCHED_DIRS][PAI_CLASSES];
	unsigned int aligned[IOSCHED_DIRS], merges[IOSCHED_DIRS];
	unsigned int promoted[IOSCHED_DIRS], expired[IOSCHED_DIRS];
	u64 kept_ns;			/* when a request was last kept pending */
	unsigned int last_tier;
	sector_t last_start, last_end;	/* of the write dispatched last */
	unsigned int last_block;	/* block size at that time, in sectors */
	unsigned int in_a_row;		/* dispatched by block, not by age */
} am;

#define AM_PAGE		(am.kb[0] * KB)
#define AM_BLOCK	(am.kb[1] * KB)
#define AM_BUFFER(dir)	(am.kb[2 + (dir)] * KB)

static const char * const am_sizes[] = {
	"clustered_page_kb", "clustered_block_kb", "read_buffer_kb",
	"write_buffer_kb",
};

static const char * const am_pendings[] = {
	"read_pending_us", "write_pending_us",
};

static unsigned int am_whole(unsigned int size)
{
	return size < AM_PAGE ? size : size / AM_PAGE * AM_PAGE;
}

/* Return the most sectors of a request under PAS or PASA, 0: limit of the queue. */
static unsigned int am_split_size(void)
{
	unsigned int read = AM_BUFFER(READ), write = AM_BUFFER(WRITE);
	unsigned int size = read && (!write || read < write) ? read : write;

	if (am.split == PAI_SPLIT_NONE || !size)
		return 0;
	if (size < AM_PAGE)
		size = AM_PAGE;
	return am.split == PAI_SPLIT_PASA ? am_whole(size) : size;
}

/* Execute the worker, and work out the limits that it must set. */
static void am_work(void)
{
	unsigned int size = am_split_size(), cut;

	fake_run_works();
	am.max = am.own;
	am.boundary = 0;
	if (am.split == PAI_SPLIT_NONE)
		return;
	cut = size && size < am.own ? size : am.own;
	if (am.split == PAI_SPLIT_PASA) {
		cut = am_whole(cut);
		am.boundary = am.align == PAI_ALIGN_BLOCK ? AM_BLOCK :
			      cut < AM_PAGE ? AM_PAGE : cut;
		/* Not within a page of memory. */
		if (am.boundary % PAGE_SECTORS)
			am.boundary = 0;
	}
	am.max = max_t(unsigned int, cut, PAGE_SECTORS);
}

/* Return the most sectors of a merged request, 0: no limit. */
static unsigned int am_largest(unsigned int dir)
{
	unsigned int size = am_split_size(), buffer = AM_BUFFER(dir);

	return !size || (buffer && buffer < size) ? buffer : size;
}

static bool am_may_merge(unsigned int dir, sector_t start, sector_t end)
{
	unsigned int largest = am_largest(dir), boundary = 0;

	if (largest && end - start > largest)
		return false;
	if (am.split == PAI_SPLIT_PASA && am_split_size())
		boundary = am.align == PAI_ALIGN_BLOCK ? AM_BLOCK :
							 am_split_size();
	return !boundary ||
	       (u32)start / boundary == (u32)(end - 1) / boundary;
}

/* Return the size that counts as the buffer's, 0 if there is no buffer. */
static unsigned int am_full(unsigned int dir)
{
	unsigned int largest = am_largest(dir);

	return am_whole(largest < am.max ? largest : am.max) *
	       (largest != 0);
}

static bool am_is_aligned(unsigned int dir, u32 start)
{
	unsigned int full = am_full(dir);

	if (am.align == PAI_ALIGN_PAGE)
		return start % AM_PAGE == 0;
	start %= AM_BLOCK;
	return full ? start % full == 0 : start == 0;
}

static enum pai_class am_class(struct model_request *mr)
{
	unsigned int full = am_full(mr->dir), size = mr->end - mr->sector;
	bool suits = am.well_split == PAI_WELL_SPLIT_PAPER && full ?
		     am_whole(size) == full : size % AM_PAGE == 0;

	if (suits && am_is_aligned(mr->dir, mr->sector))
		return PAI_WELL_SPLIT;
	/* The block layer marks requests that it does not merge any more. */
	if (iosched_rq_mergeable(model_rq(mr)) && size < am.max &&
	    (am_may_merge(mr->dir, mr->sector, mr->end + 1) ||
	     (mr->sector && am_may_merge(mr->dir, mr->sector - 1, mr->end))))
		return PAI_PENDING;
	return PAI_CLOSED;
}

static void am_arrived(struct model_request *mr)
{
	mr->priv[0] = am_class(mr);
}

/* A request that was dispatched without being sorted is no longer mergeable. */
static void am_queued(struct model_request *mr)
{
	if (!(iosched_rq_state(model_rq(mr)) & IOSCHED_RQ_IN_FLIGHT))
		mr->priv[0] = am_class(mr);
}

static void am_grown(struct model_request *mr)
{
	bool pending = mr->priv[0] == PAI_PENDING;

	mr->priv[0] = am_class(mr);
	am.merges[mr->dir] += pending;
	am.promoted[mr->dir] += pending && mr->priv[0] == PAI_WELL_SPLIT;
}

static bool am_due(struct model_request *mr)
{
	return fake_ns >= mr->start_ns + am.pending_us[mr->dir] * 1000ULL;
}

/*
 * Return the oldest request that is not pending or has waited for long enough.
 * The FIFO is in order of age, so if all are pending only the oldest can be
 * due.
 */
static struct model_request *am_next(unsigned int tier, unsigned int dir)
{
	struct model_request *mr;
	bool all_wait = true;

	model_for_each(mr)
		if (mr->state == MODEL_QUEUED && mr->tier == tier &&
		    mr->dir == dir && mr->priv[0] != PAI_PENDING)
			all_wait = false;
	mr = model_oldest(tier, dir);
	while (mr && mr->priv[0] == PAI_PENDING && !am_due(mr))
		mr = all_wait ? NULL : model_behind(tier, dir, mr->place);
	return mr;
}

static struct model_request *am_older(struct model_request *a,
				      struct model_request *b)
{
	if (!a || !b)
		return a ? a : b;
	return b->start_ns < a->start_ns ? b : a;
}

/* Return true if a request that is not pending is queued or in flight. */
static bool am_any_better(unsigned int tier)
{
	struct model_request *mr;

	model_for_each(mr)
		if ((mr->state == MODEL_QUEUED && mr->tier == tier &&
		     mr->priv[0] != PAI_PENDING) ||
		    (mr->state == MODEL_IN_FLIGHT && mr->counted &&
		     mr->priv[0] == PAI_WELL_SPLIT))
			return true;
	return false;
}

/* Return true if a write goes on in the block in which the last one ended. */
static bool am_continues(struct model_request *mr)
{
	return am.last_block && mr->tier == am.last_tier &&
	       am.in_a_row < PAI_RUN && mr->sector >= am.last_start &&
	       (u32)(mr->end - 1) / am.last_block <=
	       (u32)(am.last_end - 1) / am.last_block;
}

/* Return the queued request of the same tier and direction that is sorted before @mr. */
static struct model_request *am_before(struct model_request *mr)
{
	struct model_request *other, *before = NULL;

	model_for_each(other)
		if (other->state == MODEL_QUEUED && other->tier == mr->tier &&
		    other->dir == mr->dir &&
		    (other->sector < mr->sector ||
		     (other->sector == mr->sector && other->sorted < mr->sorted)) &&
		    (!before || other->sector > before->sector ||
		     (other->sector == before->sector &&
		      other->sorted > before->sorted)))
			before = other;
	return before;
}

/* Return where the stream that leads to @mr begins, at most PAI_RUN requests before. */
static struct model_request *am_stream(struct model_request *mr)
{
	struct model_request *before;
	unsigned int left = PAI_RUN;

	while (mr && left--) {
		before = am_before(mr);
		if (!before || before->end != mr->sector)
			break;
		mr = before;
	}
	return mr;
}

/* Return true if @a is sorted before @b. */
static bool am_sorted(struct model_request *a, struct model_request *b)
{
	return a->sector < b->sector ||
	       (a->sector == b->sector && a->sorted < b->sorted);
}

/*
 * Return the lowest write from a sector on that is not held, if it and all those
 * before it end in a block up to @block, and PAI_RUN are enough to find it.
 */
static struct model_request *am_lowest(unsigned int tier, sector_t from,
				       u32 block, u32 size, bool hold)
{
	struct model_request *mr, *next, *last = NULL;
	unsigned int n;

	for (n = 0; n < PAI_RUN; n++) {
		next = NULL;
		model_for_each(mr)
			if (mr->state == MODEL_QUEUED && mr->tier == tier &&
			    mr->dir == WRITE && mr->sector >= from &&
			    (!last || am_sorted(last, mr)) &&
			    (!next || am_sorted(mr, next)))
				next = mr;
		if (!next || (u32)(next->end - 1) / size > block)
			return NULL;
		if (!hold || next->priv[0] != PAI_PENDING || am_due(next))
			return next;
		am.kept_ns = fake_ns;
		last = next;
	}
	return NULL;
}

/* Return the write to dispatch if @oldest, a write, is the oldest request. */
static struct model_request *am_in_block(struct model_request *oldest, bool hold)
{
	unsigned int tier = oldest->tier;
	u32 block = (u32)oldest->sector / AM_BLOCK;
	struct model_request *mr = NULL;

	if (am.last_block && tier == am.last_tier && am.in_a_row < PAI_RUN)
		mr = am_lowest(tier, am.last_start,
			       (u32)(am.last_end - 1) / am.last_block,
			       am.last_block, hold);
	if (!mr)
		mr = am_lowest(tier, block * AM_BLOCK, block, AM_BLOCK, hold);
	return mr ? mr : oldest;
}

static struct model_request *am_select(unsigned int tier, unsigned int only)
{
	struct model_request *mr, *next[IOSCHED_DIRS] = {};
	bool hold = am_any_better(tier);
	unsigned int dir;

	if (only == READ)
		return am_stream(model_oldest(tier, READ));
	for (dir = only == WRITE ? WRITE : READ; dir <= WRITE; dir++) {
		mr = model_oldest(tier, dir);
		if (hold && mr && mr->priv[0] == PAI_PENDING && !am_due(mr))
			am.kept_ns = fake_ns;
		next[dir] = hold ? am_next(tier, dir) : mr;
	}
	mr = am_older(next[READ], next[WRITE]);
	return am_stream(mr && mr->dir == WRITE ? am_in_block(mr, hold) : mr);
}

static void am_note_write(struct model_request *mr)
{
	am.in_a_row = am_continues(mr) ? am.in_a_row + 1 : 0;
	am.last_tier = mr->tier;
	am.last_start = mr->sector;
	am.last_end = mr->end;
	am.last_block = AM_BLOCK;
}

static void am_dispatched(struct model_request *mr)
{
	if (mr->dir == WRITE)
		am_note_write(mr);
	am.dispatched[mr->dir][mr->priv[0]]++;
	am.aligned[mr->dir] += am_is_aligned(mr->dir, mr->sector);
	am.expired[mr->dir] += mr->priv[0] == PAI_PENDING && am_due(mr) &&
			       mr->start_ns <= am.kept_ns;
}

/*
 * Return true if a request of the tier to be dispatched has waited long enough. A
 * completion ends a wait for the share of writes, the core's timer one for a read.
 */
static bool am_overdue(void)
{
	unsigned int tier;

	if (model_full())
		return false;
	for (tier = 0; tier < IOSCHED_TIERS; tier++) {
		if (am_next(tier, READ) ||
		    (am_next(tier, WRITE) && !model_reads_alone() &&
		     !model_share_used(model.write_share)))
			return true;
		if (model_count(MODEL_QUEUED, tier) ||
		    model_in_bounds(tier))
			break;
	}
	return false;
}

static unsigned int am_any_kb(unsigned int which)
{
	if (which >= 2 && fake_once_in(4))
		return 0;
	return 1 + fake_random(which == 0 ? 20 : which == 1 ? 300 : 40);
}

static void am_start(struct kunit *test)
{
	struct pai_data *pd = pai_of(iosched_of(fake.q));
	unsigned int own = am.own, i;

	memset(&am, 0, sizeof(am));
	am.own = own;
	for (i = 0; i < ARRAY_SIZE(am.kb); i++)
		model_set(test, am_sizes[i], &am.kb[i], am_any_kb(i));
	for (i = READ; i <= WRITE; i++)
		model_set(test, am_pendings[i], &am.pending_us[i],
			  fake_random(200000));
	model_choose(test, "align", &am.align, fake_random(2), pai_align_names);
	model_choose(test, "split", &am.split, fake_random(3), pai_split_names);
	model_choose(test, "well_split", &am.well_split, fake_random(2),
		     pai_well_split_names);
	pd->io.depth = 0;
	iosched_count_limit(&pd->io);
	am_work();
}

static void am_disturb(struct kunit *test)
{
	unsigned int i;

	switch (fake_random(6)) {
	case 0:
		i = fake_random(ARRAY_SIZE(am.kb));
		model_set(test, am_sizes[i], &am.kb[i], am_any_kb(i));
		break;
	case 1:
		model_choose(test, "align", &am.align, fake_random(2),
			     pai_align_names);
		break;
	case 2:
		model_choose(test, "split", &am.split, fake_random(3),
			     pai_split_names);
		break;
	case 3:
		model_choose(test, "well_split", &am.well_split,
			     fake_random(2), pai_well_split_names);
		break;
	case 4:
		i = fake_random(2);
		model_set(test, am_pendings[i], &am.pending_us[i],
			  fake_random(200000));
		return;
	default:
		/* The worker does not sort in a request that is alone. */
		model_sort_fresh();
		am_work();
		return;
	}
	model_replaced();
}

static void am_compare(struct kunit *test)
{
	struct pai_data *pd = pai_of(iosched_of(fake.q));
	struct model_request *mr;
	unsigned int dir, class;

	model_for_each(mr)
		MODEL_ASSERT(test, mr->state != MODEL_QUEUED ||
			     pai_class_of(model_rq(mr)) == mr->priv[0],
			     "%llu..%llu has class %u, must be %ld",
			     (u64)mr->sector, (u64)mr->end,
			     pai_class_of(model_rq(mr)), mr->priv[0]);
	MODEL_ASSERT(test, queue_max_sectors(fake.q) == am.max &&
		     fake.q->limits.chunk_sectors == am.boundary,
		     "limits %u %u, must be %u %u", queue_max_sectors(fake.q),
		     fake.q->limits.chunk_sectors, am.max, am.boundary);
	for (dir = READ; dir <= WRITE; dir++) {
		struct pai_stats *st = &pd->stats[dir];

		for (class = 0; class < PAI_CLASSES; class++)
			MODEL_ASSERT(test, st->requests[class] ==
				     am.dispatched[dir][class],
				     "dir %u: %u requests of class %u, must be %u",
				     dir, st->requests[class], class,
				     am.dispatched[dir][class]);
		MODEL_ASSERT(test, st->aligned == am.aligned[dir] &&
			     st->merges == am.merges[dir] &&
			     st->promoted == am.promoted[dir] &&
			     st->expired == am.expired[dir],
			     "aligned %u=%u merges %u=%u promoted %u=%u expired %u=%u",
			     st->aligned, am.aligned[dir], st->merges,
			     am.merges[dir], st->promoted, am.promoted[dir],
			     st->expired, am.expired[dir]);
	}
}

static const struct model_policy pai_model = {
	.type = &iosched_type,
	.capacity = 1 << 14,
	.spread = 32,
	.start = am_start,
	.select = am_select,
	.may_merge = am_may_merge,
	.arrived = am_arrived,
	.queued = am_queued,
	.grown = am_grown,
	.dispatched = am_dispatched,
	.disturb = am_disturb,
	.overdue = am_overdue,
	.compare = am_compare,
};

#endif /* _PAI_MODEL_H */
