/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The model of BP. Queues are numbers in their tier: the shared one, then one
 * of each task, then one of each level. A request's priv[0] is its queue,
 * priv[1] its task from 1 on (0: none). All else is found by a search of all
 * requests.
 */
#ifndef _BP_MODEL_H
#define _BP_MODEL_H

#include "model.h"

#define KB(n)	((n) * 2)	/* sectors */

#define BM_TASKS	ARRAY_SIZE(bp_tasks)
#define BM_SHARED	0
#define BM_TASK(task)	(1 + (task))
#define BM_LEVEL(level)	(1 + BM_TASKS + (level))
#define BM_QUEUES	BM_LEVEL(IOPRIO_NR_LEVELS)

struct bm_queue {
	sector_t pos[IOSCHED_DIRS];
	unsigned int dir;
	unsigned long batch_end, slice_end;
	unsigned int level;
};

/* Statistics of a task's requests of a tier; times in us, means times 8. */
struct bm_think {
	u32 done, mean8, distance8, strays8;
	sector_t end, write_end;
	bool known, counted;
};

static struct {
	unsigned int base, preference, block_size_kb, lookahead, open_blocks;
	unsigned int antic_us, antic_near_kb;
	unsigned int batch_ms[IOSCHED_DIRS];
	unsigned int slice_sync_ms, slice_async_ms;

	struct bm_queue queue[IOSCHED_TIERS][BM_QUEUES];
	int ring[IOSCHED_TIERS][BM_QUEUES + 1];
	int active[IOSCHED_TIERS];		/* -1: none */
	struct bm_think think[IOSCHED_TIERS][BM_TASKS];
	u32 soon;
	struct bm_think *thinker[IOSCHED_DIRS], *awaited;
	u32 since;
	u64 until;				/* ns */
	sector_t write_end;
	u64 open[BP_OPEN_MAX];			/* last opened first */
	unsigned int crossings, in_open, avoided;
	unsigned int cases[BP_CASES];
	unsigned int ended[BP_OUTCOMES];
	u64 waited;
} bm;

static bool bm_empty(unsigned int tier, long queue, int dir)
{
	return !model_count_group(tier, dir, queue);
}

static u32 bm_now(void)
{
	return fake_ns / NSEC_PER_USEC;
}

static unsigned int bm_near_kb(void)
{
	return bm.base == BP_FAIR ? 0 : bm.antic_near_kb;
}

static u32 bm_distance_kb(struct bm_think *think, sector_t sector)
{
	return (sector > think->end ? sector - think->end :
				      think->end - sector) / 2;
}

static bool bm_near(struct bm_think *think, sector_t sector)
{
	return !bm_near_kb() || bm_distance_kb(think, sector) <= bm_near_kb();
}

static struct bm_think *bm_think_of(struct model_request *mr)
{
	return &bm.think[mr->tier][mr->priv[1] - 1];
}

/* Return true if the process has no request but @except queued or in flight. */
static bool bm_idle(struct bm_think *think, struct model_request *except)
{
	struct model_request *mr;

	model_for_each(mr)
		if (mr != except && mr->priv[1] && bm_think_of(mr) == think &&
		    (mr->state == MODEL_QUEUED || mr->state == MODEL_FRESH ||
		     (mr->state == MODEL_IN_FLIGHT && mr->counted)))
			return false;
	return true;
}

static void bm_end_wait(enum bp_outcome outcome)
{
	if (!bm.awaited)
		return;
	bm.ended[outcome]++;
	bm.waited += bm_now() - bm.since;
	bm.awaited = NULL;
}

/* Add a sample, limited to twice @limit, to a mean that weights it by an eighth. */
static void bm_learn(u32 *mean8, u32 sample, u32 limit)
{
	*mean8 = *mean8 - *mean8 / 8 + min(sample, 2 * limit);
}

static u64 bm_block(sector_t sector)
{
	return sector / KB(bm.block_size_kb);
}

/* A process submits @mr: learn from it, and end the wait for the process. */
static void bm_arrive(struct model_request *mr)
{
	struct bm_think *think = bm_think_of(mr);
	bool near = bm.awaited && bm_near(bm.awaited, mr->sector);
	bool back = bm_idle(think, mr), stays = false;
	u32 pause = bm_now() - think->done;

	if (mr->dir == WRITE && think->write_end)
		stays = bm_block(mr->sector) == bm_block(think->write_end - 1);
	if (!think->known && !think->counted) {
		think->counted = true;
		bm.soon -= bm.soon / 8;
	}
	if (think->done && back) {
		if (!think->known) {
			think->mean8 = 8 * min(pause, 2 * bm.antic_us);
			bm.soon += pause <= bm.antic_us ? BP_WHOLE / 8 : 0;
		} else {
			bm_learn(&think->mean8, pause, bm.antic_us);
		}
		think->known = true;
	}
	if (mr->dir == READ) {
		if (think->end)
			bm_learn(&think->distance8,
				 bm_distance_kb(think, mr->sector),
				 bm_near_kb());
		think->end = mr->end;
	} else {
		if (think->write_end && back)
			bm_learn(&think->strays8, stays ? 0 : BP_WHOLE,
				 BP_WHOLE);
		think->write_end = mr->end;
	}
	if (bm.awaited == think)
		bm_end_wait(bm.base == BP_FAIR || stays ||
			    (mr->dir == READ && near) ? BP_HIT : BP_MISS);
	else if (bm.base == BP_ANTICIPATORY && mr->dir == READ && near)
		bm_end_wait(BP_BROKEN);
}

static void bm_arrived(struct model_request *mr)
{
	if (mr->sync && !mr->priv[1]) {
		mr->priv[1] = 1 + (bp_task - bp_tasks);
		bm_arrive(mr);
	}
}

static void bm_queued(struct model_request *mr)
{
	unsigned int level = mr->tier == IOSCHED_BE ? IOPRIO_BE_NORM : 0;
	long queue = BM_SHARED;

	if (bm.base == BP_FAIR)
		queue = mr->priv[1] ? BM_TASK(mr->priv[1] - 1) : BM_LEVEL(level);
	mr->priv[0] = -1;
	if (bm.base == BP_FAIR && !model_ring_has(bm.ring[mr->tier], queue))
		model_ring_add(bm.ring[mr->tier], queue);
	mr->priv[0] = queue;
	bm.queue[mr->tier][queue].level = level;
}

static void bm_unqueued(struct model_request *mr)
{
	/* A queue whose turn it is not keeps its place. */
	if (bm.active[mr->tier] == mr->priv[0] &&
	    bm_empty(mr->tier, mr->priv[0], -1))
		model_ring_remove(bm.ring[mr->tier], mr->priv[0]);
}

static bool bm_is_open(u64 block)
{
	unsigned int i;

	for (i = 0; i < bm.open_blocks; i++)
		if (bm.open[i] == block)
			return true;
	return false;
}

static void bm_write(struct model_request *mr)
{
	u64 block;

	for (block = bm_block(mr->sector); block <= bm_block(mr->end - 1); block++) {
		if (bm_is_open(block))
			continue;
		bm.crossings++;
		memmove(bm.open + 1, bm.open, sizeof(bm.open) - sizeof(block));
		bm.open[0] = block;
	}
	bm.write_end = mr->end;
}

static void bm_dispatched(struct model_request *mr)
{
	bm_end_wait(BP_BROKEN);
	if (mr->dir == WRITE)
		bm_write(mr);
}

static void bm_released(struct model_request *mr)
{
	if (!mr->priv[1])
		return;
	bm_think_of(mr)->done = bm_now();
	bm.thinker[mr->dir] = bm_think_of(mr);
}

/* Return true if @a is behind @b in the order by sector. */
static bool bm_behind(struct model_request *a, struct model_request *b)
{
	return a->sector > b->sector ||
	       (a->sector == b->sector && a->sorted > b->sorted);
}

/* Return the write on a side of the last one that follows @mr, NULL: the nearest. */
static struct model_request *bm_neighbour(unsigned int tier, long queue,
					  struct model_request *mr, bool front)
{
	struct model_request *other, *nearest = NULL;

	model_for_each(other) {
		bool in_front = other->sector >= bm.write_end;

		if (other->state != MODEL_QUEUED || other->tier != tier ||
		    other->dir != WRITE || other->priv[0] != queue ||
		    in_front != front || other == mr ||
		    (mr && bm_behind(other, mr) != front))
			continue;
		if (!nearest || bm_behind(nearest, other) == front)
			nearest = other;
	}
	return nearest;
}

/* Return the next write by sector, or NULL. */
static struct model_request *bm_after(unsigned int tier, long queue,
				      struct model_request *mr)
{
	struct model_request *other, *next = NULL;

	model_for_each(other)
		if (other->state == MODEL_QUEUED && other->tier == tier &&
		    other->dir == WRITE && other->priv[0] == queue &&
		    bm_behind(other, mr) && (!next || bm_behind(next, other)))
			next = other;
	return next;
}

/*
 * Return the number of the nearest writes on a side, within the lookahead, that
 * share blocks with their predecessors; set @sectors to their size.
 */
static unsigned int bm_run(unsigned int tier, long queue, bool front,
			   unsigned int *sectors)
{
	struct model_request *mr, *before;
	unsigned int run = 1;

	mr = bm_neighbour(tier, queue, NULL, front);
	*sectors = 0;
	if (!mr)
		return 0;
	*sectors = mr->end - mr->sector;
	while (run < bm.lookahead) {
		before = mr;
		mr = bm_neighbour(tier, queue, before, front);
		if (!mr || bm_block(mr->sector) != bm_block(before->end - 1))
			break;
		*sectors += mr->end - mr->sector;
		run++;
	}
	return run;
}

static struct model_request *bm_ascending(unsigned int tier, long queue,
					  unsigned int dir, sector_t from)
{
	struct model_request *mr = model_lowest(tier, dir, from, queue);

	return mr ? mr : model_lowest(tier, dir, 0, queue);
}

/* Return the sweep's first write of a block in which the most writes wait. */
static struct model_request *bm_fullest(unsigned int tier, long queue)
{
	struct model_request *mr, *other, *best = NULL;
	unsigned int nr, most = 0;
	bool front = true;

	for (mr = bm_neighbour(tier, queue, NULL, true); ; ) {
		/* After the front, continue with the lowest sector. */
		if (!mr && !front)
			return best;
		if (!mr) {
			front = false;
			mr = model_lowest(tier, WRITE, 0, queue);
			continue;
		}
		nr = 0;
		model_for_each(other)
			nr += other->state == MODEL_QUEUED &&
			      other->tier == tier && other->dir == WRITE &&
			      other->priv[0] == queue &&
			      bm_block(other->sector) == bm_block(mr->sector);
		if (nr > most) {
			most = nr;
			best = mr;
		}
		mr = bm_after(tier, queue, mr);
	}
}

/* The paper's four cases. */
static struct model_request *bm_by_cases(unsigned int tier, long queue,
					 enum bp_case *which)
{
	struct model_request *front = bm_neighbour(tier, queue, NULL, true);
	struct model_request *back = bm_neighbour(tier, queue, NULL, false);
	unsigned int front_sectors, back_sectors, front_run, back_run;
	u64 last = bm.write_end ? bm_block(bm.write_end - 1) : U64_MAX;
	bool front_in = front && bm_block(front->sector) == last;
	bool back_in = back && bm_block(back->sector) == last;

	if (front_in && back_in) {
		*which = BP_BOTH_IN;
		return back->end - back->sector > front->end - front->sector ?
			back : front;
	}
	if (front_in || back_in) {
		*which = BP_ONE_IN;
		return front_in ? front : back;
	}
	front_run = bm_run(tier, queue, true, &front_sectors);
	back_run = bm_run(tier, queue, false, &back_sectors);
	if (front_run > 1 && back_run > 1) {
		*which = BP_TWO_RUNS;
		return back_sectors > front_sectors ? back : front;
	}
	if (front_run > 1 || back_run > 1) {
		*which = BP_ONE_RUN;
		return front_run > 1 ? front : back;
	}
	*which = BP_NO_CASE;
	if (!bm.lookahead)
		return bm_fullest(tier, queue);
	return bm_ascending(tier, queue, WRITE, bm.queue[tier][queue].pos[WRITE]);
}

/* Return the lowest write of the last opened block that has one. */
static struct model_request *bm_in_open(unsigned int tier, long queue)
{
	struct model_request *mr;
	unsigned int i;

	for (i = 0; i < bm.open_blocks && bm.open[i] != U64_MAX; i++) {
		mr = model_lowest(tier, WRITE,
				  bm.open[i] * KB(bm.block_size_kb), queue);
		if (mr && bm_block(mr->sector) == bm.open[i])
			return mr;
	}
	return NULL;
}

static struct model_request *bm_preferred(unsigned int tier, long queue)
{
	struct model_request *mr, *open = NULL, *sweep;
	enum bp_case which;

	mr = bm_by_cases(tier, queue, &which);
	if (which != BP_BOTH_IN && which != BP_ONE_IN && bm.open_blocks > 1)
		open = bm_in_open(tier, queue);
	if (open) {
		bm.in_open++;
		mr = open;
	} else {
		bm.cases[which]++;
	}
	sweep = bm_ascending(tier, queue, WRITE, bm.queue[tier][queue].pos[WRITE]);
	bm.avoided += bm_is_open(bm_block(mr->sector)) &&
		      !bm_is_open(bm_block(sweep->sector));
	return mr;
}

static unsigned int bm_direction(unsigned int tier, long queue)
{
	struct bm_queue *q = &bm.queue[tier][queue];

	if (bm_empty(tier, queue, !q->dir))
		return q->dir;
	if (bm_empty(tier, queue, q->dir) ||
	    time_after_eq(jiffies, q->batch_end))
		return !q->dir;
	return q->dir;
}

static struct model_request *bm_next(unsigned int tier, long queue,
				     unsigned int dir)
{
	return dir == WRITE && bm.preference ? bm_preferred(tier, queue) :
		bm_ascending(tier, queue, dir, bm.queue[tier][queue].pos[dir]);
}

static struct model_request *bm_take(unsigned int tier, long queue)
{
	struct bm_queue *q = &bm.queue[tier][queue];
	unsigned int dir = bm_direction(tier, queue);
	struct model_request *mr;

	if (dir != q->dir)
		q->batch_end = jiffies + bm.batch_ms[dir];
	q->dir = dir;
	mr = bm_next(tier, queue, dir);
	q->pos[dir] = mr->end;
	return mr;
}

static bool bm_worth(struct bm_think *think)
{
	if (!think->known)
		return bm.soon >= BP_WHOLE / 2;
	return think->mean8 / 8 <= bm.antic_us &&
	       (!bm_near_kb() || think->distance8 / 8 <= bm_near_kb());
}

static bool bm_is_of(struct bm_think *think, unsigned int tier)
{
	return think >= bm.think[tier] && think < bm.think[tier] + BM_TASKS;
}

static bool bm_wait(struct bm_think *think, unsigned int tier)
{
	struct model_request *oldest;
	u32 gone = bm_now() - think->done, left;
	unsigned int dir;

	if (bm.awaited && !bm_is_of(bm.awaited, tier))
		bm_end_wait(BP_BROKEN);
	if (bm.awaited) {
		if (fake_ns < bm.until)
			return true;
		bm_end_wait(BP_MISS);
		return false;
	}
	if (!bm_idle(think, NULL) || gone >= bm.antic_us || !bm_worth(think))
		return false;
	left = bm.antic_us - gone;
	for (dir = READ; dir <= WRITE; dir++) {
		oldest = model_oldest(tier, dir);
		if (oldest)
			left = min_t(u32, left, (oldest->deadline - jiffies) * 1000);
	}
	bm.awaited = think;
	bm.since = bm_now();
	bm.until = fake_ns + left * 1000ULL;
	return true;
}

/* Start or continue a wait of writes and far reads for the last reader. */
static bool bm_anticipate(unsigned int tier)
{
	struct bm_queue *q = &bm.queue[tier][BM_SHARED];
	struct bm_think *think = bm.thinker[READ];
	struct model_request *read;

	if (!bm_is_of(think, tier) || q->dir != READ ||
	    time_after_eq(jiffies, q->batch_end))
		return false;
	read = bm_ascending(tier, BM_SHARED, READ, q->pos[READ]);
	return !(read && bm_near(think, read->sector)) && bm_wait(think, tier);
}

/*
 * Start or continue a wait of writes that leave the open blocks for the last
 * writer.
 */
static bool bm_linger(unsigned int tier)
{
	struct bm_think *think = bm.thinker[WRITE];

	return bm_is_of(think, tier) && bm.preference &&
	       bm_direction(tier, BM_SHARED) == WRITE && think->write_end &&
	       think->strays8 / 8 <= BP_WHOLE / 2 &&
	       bm_is_open(bm_block(think->write_end - 1)) &&
	       !bm_in_open(tier, BM_SHARED) && bm_wait(think, tier);
}

static unsigned long bm_slice(unsigned int tier, long queue)
{
	bool task = queue < BM_LEVEL(0);
	unsigned int ms = task ? bm.slice_sync_ms : bm.slice_async_ms;

	/* Level 4 has the tunable's slice; each level changes it by a fifth. */
	return DIV_ROUND_UP(ms * (9 - bm.queue[tier][queue].level), 5);
}

/* Return the queue whose slice it is, -1 to wait. */
static long bm_turn(unsigned int tier)
{
	int queue = bm.active[tier];
	bool over = queue < 0 ||
		    !time_before(jiffies, bm.queue[tier][queue].slice_end);

	for (;;) {
		if (!over && !bm_empty(tier, queue, -1))
			return queue;
		if (!over && queue < BM_LEVEL(0) &&
		    bm_wait(&bm.think[tier][queue - BM_TASK(0)], tier))
			return -1;
		/* Move the queue to the end, or out; start the first one's slice. */
		if (queue >= 0) {
			model_ring_remove(bm.ring[tier], queue);
			if (!bm_empty(tier, queue, -1))
				model_ring_add(bm.ring[tier], queue);
		}
		bm_end_wait(BP_BROKEN);
		queue = bm.ring[tier][0];
		bm.queue[tier][queue].slice_end = jiffies + bm_slice(tier, queue);
		bm.active[tier] = queue;
		over = false;
	}
}

/* Return the next read of the queue of @mr, or NULL. */
static struct model_request *bm_take_only(unsigned int tier,
					  struct model_request *mr)
{
	struct bm_queue *q = &bm.queue[tier][mr->priv[0]];

	mr = bm_next(tier, mr->priv[0], mr->dir);
	q->pos[mr->dir] = mr->end;
	return mr;
}

static struct model_request *bm_select(unsigned int tier, unsigned int only)
{
	long queue = BM_SHARED;

	if (only != IOSCHED_ANY)
		return bm_take_only(tier, model_oldest(tier, only));
	if (bm.base == BP_FAIR)
		queue = bm_turn(tier);
	else if (bm_anticipate(tier) || bm_linger(tier))
		queue = -1;
	return queue < 0 ? NULL : bm_take(tier, queue);
}

static void bm_start(struct kunit *test)
{
	unsigned int tier, i;

	memset(&bm, 0, sizeof(bm));
	memset(bm.open, 0xff, sizeof(bm.open));
	memset(bm.ring, 0xff, sizeof(bm.ring));
	memset(bm.active, 0xff, sizeof(bm.active));
	bm.soon = BP_WHOLE;
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (i = 0; i < BM_QUEUES; i++)
			bm.queue[tier][i].batch_end = jiffies;
	if (fake_random(2))
		model_choose(test, "base", &bm.base, BP_FAIR, bp_bases);
	model_set(test, "preference", &bm.preference, !!fake_random(4));
	model_set(test, "block_size_kb", &bm.block_size_kb, 4 + fake_random(60));
	model_set(test, "lookahead", &bm.lookahead,
		  fake_random(2) ? 1 + fake_random(2) : fake_random(17));
	model_set(test, "open_blocks", &bm.open_blocks,
		  fake_random(2) ? 1 : 1 + fake_random(4));
	model_set(test, "antic_us", &bm.antic_us, fake_random(3) * 50000);
	model_set(test, "antic_near_kb", &bm.antic_near_kb,
		  fake_random(2) * fake_random(4096));
	model_set(test, "read_batch_ms", &bm.batch_ms[READ], 1 + fake_random(400));
	model_set(test, "write_batch_ms", &bm.batch_ms[WRITE],
		  1 + fake_random(200));
	model_set(test, "slice_sync_ms", &bm.slice_sync_ms, 1 + fake_random(300));
	model_set(test, "slice_async_ms", &bm.slice_async_ms,
		  1 + fake_random(100));
	fake.set.queue_depth = fake_random(3) ? 1 + fake_random(4) : FAKE_REQUESTS;
	iosched_count_limit(iosched_of(fake.q));
	/* Time 0 marks a process without a completed request. */
	fake_advance_ms(10);
}

static void bm_disturb(struct kunit *test)
{
	struct model_request *mr;

	switch (fake_random(10)) {
	case 0:
		bm_end_wait(BP_BROKEN);
		memset(bm.ring, 0xff, sizeof(bm.ring));
		memset(bm.active, 0xff, sizeof(bm.active));
		model_for_each(mr)
			if (mr->state == MODEL_QUEUED)
				mr->priv[0] = -1;
		model_choose(test, "base", &bm.base, !bm.base, bp_bases);
		model_replaced();
		break;
	case 1:
		model_set(test, "preference", &bm.preference, fake_random(2));
		break;
	case 2:
		model_set(test, "block_size_kb", &bm.block_size_kb,
			  4 + fake_random(60));
		memset(bm.open, 0xff, sizeof(bm.open));
		break;
	case 3:
		model_set(test, "lookahead", &bm.lookahead, fake_random(17));
		break;
	case 4:
		model_set(test, "open_blocks", &bm.open_blocks,
			  1 + fake_random(4));
		break;
	case 5:
		model_set(test, "antic_us", &bm.antic_us,
			  fake_random(200000));
		break;
	case 6:
		model_set(test, "antic_near_kb", &bm.antic_near_kb,
			  fake_random(4096));
		break;
	case 7:
		model_set(test, "read_batch_ms", &bm.batch_ms[READ],
			  1 + fake_random(400));
		break;
	case 8:
		model_set(test, "write_batch_ms", &bm.batch_ms[WRITE],
			  1 + fake_random(200));
		break;
	default:
		model_set(test, "slice_sync_ms", &bm.slice_sync_ms,
			  1 + fake_random(300));
	}
}

static blk_opf_t bm_sender(unsigned int dir)
{
	bp_task = &bp_tasks[fake_random(BM_TASKS)];
	return dir == WRITE && fake_random(2) ? REQ_SYNC : 0;
}

static bool bm_may_wait(void)
{
	return bm.awaited;
}

static bool bm_overdue(void)
{
	return bm.awaited && fake_ns >= bm.until && !model_reads_alone() &&
	       !model_in_bounds(-1);
}

static void bm_compare(struct kunit *test)
{
	struct bp_data *bd = bp_of(iosched_of(fake.q));
	unsigned int i;

	MODEL_ASSERT(test, bd->open.crossings == bm.crossings &&
		     bd->avoided == bm.avoided && bd->in_open == bm.in_open,
		     "crossings %u=%u avoided %u=%u in_open %u=%u",
		     bd->open.crossings, bm.crossings, bd->avoided, bm.avoided,
		     bd->in_open, bm.in_open);
	for (i = 0; i < BP_CASES; i++)
		MODEL_ASSERT(test, bd->cases[i] == bm.cases[i],
			     "case %u: %u=%u", i, bd->cases[i], bm.cases[i]);
	for (i = 0; i < BP_OUTCOMES; i++)
		MODEL_ASSERT(test, bd->antic.ended[i] == bm.ended[i],
			     "outcome %u: %u=%u", i, bd->antic.ended[i],
			     bm.ended[i]);
	MODEL_ASSERT(test, bd->antic.waited == bm.waited, "waited %llu=%llu",
		     bd->antic.waited, bm.waited);
}

static const struct model_policy bp_model = {
	.type = &iosched_type,
	.capacity = 8192,
	.start = bm_start,
	.select = bm_select,
	.arrived = bm_arrived,
	.queued = bm_queued,
	.unqueued = bm_unqueued,
	.dispatched = bm_dispatched,
	.released = bm_released,
	.disturb = bm_disturb,
	.sender = bm_sender,
	.may_wait = bm_may_wait,
	.overdue = bm_overdue,
	.compare = bm_compare,
};

#endif /* _BP_MODEL_H */
