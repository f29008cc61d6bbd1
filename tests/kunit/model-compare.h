/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Comparison of the model with the elevator, and merges in the model.
 */
#ifndef _MODEL_COMPARE_H
#define _MODEL_COMPARE_H

#include "model-rules.h"

/*
 * Have the policy sort in a request that is alone, so that its data of the
 * request are valid.
 */
static inline void model_sort_fresh(void)
{
	struct iosched *io = iosched_of(fake.q);

	spin_lock(&io->lock);
	iosched_sort_fresh(io);
	spin_unlock(&io->lock);
	model_sync();
}

/*
 * If all requests are held, the timer must be armed for IOSCHED_SLACK from now at
 * most, and while the device has a tag for the first time at which one may be
 * dispatched without a completion.
 */
static void model_compare_timer(struct kunit *test)
{
	struct iosched *io = iosched_of(fake.q);
	struct model_request *mr;

	if (!io->held)
		return;
	MODEL_ASSERT(test, fake_timer_pending(&io->timer) &&
		     time_before_eq(io->timer.expires, jiffies + IOSCHED_SLACK),
		     "requests are held, but no timer is armed");
	MODEL_ASSERT(test, !model.refused || !model_reads_alone() ||
		     fake_hrtimer_is_set(&io->turns.timer),
		     "writes wait for reads, but no timer is armed");
	if (model_in_bounds(-1) >= fake.set.queue_depth)
		return;
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
			     "sector %llu is due in %ld ms, the timer expires in %ld",
			     (u64)mr->sector, (long)(when - jiffies),
			     (long)(io->timer.expires - jiffies));
	}
}

/* Compare statistics, lists and their order, and the core's timer. */
static void model_compare(struct kunit *test)
{
	struct iosched *io = iosched_of(fake.q);
	unsigned int tier, dir, queued = 0;
	struct request *rq;
	s64 place = S64_MIN;

	list_for_each_entry(rq, &io->head, queuelist) {
		MODEL_ASSERT(test, model_of(rq)->state == MODEL_HEAD,
			     "at the head, but not in the model");
		queued++;
	}
	MODEL_ASSERT(test, queued == model_count(MODEL_HEAD, -1),
		     "%u at the head", queued);
	MODEL_ASSERT(test, !io->fresh ||
		     (!queued && !model_count(MODEL_QUEUED, -1)),
		     "some are sorted, and others are not");
	for (rq = io->fresh; rq; rq = rq->rq_next) {
		struct model_request *mr = model_of(rq);

		MODEL_ASSERT(test, mr->state == MODEL_FRESH && mr->place > place &&
			     mr->deadline == (unsigned long)rq->fifo_time,
			     "not sorted: %llu..%llu", (u64)mr->sector,
			     (u64)mr->end);
		place = mr->place;
		queued++;
	}
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		for (dir = READ; dir <= WRITE; dir++) {
			struct model_stats *ms = &model.stats[tier][dir];
			struct iosched_stats *st = &io->stats[tier][dir];
			struct iosched_done *done = &io->done[tier][dir];

			place = S64_MIN;
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
		     model_count(MODEL_QUEUED, -1) + model_count(MODEL_HEAD, -1) +
		     model_count(MODEL_FRESH, -1),
		     "%u queued, the elevator says %u", queued, io->nr);
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		MODEL_ASSERT(test, iosched_tier_in_flight(io, tier) ==
			     model_in_bounds(tier) &&
			     (!model_in_use(tier) || io->tiers & BIT(tier)),
			     "tier %u in flight", tier);
	model_compare_timer(test);
	/* After a refused dispatch the block layer waits for a wake-up. */
	MODEL_ASSERT(test, !io->held || !model.refused ||
		     !model.policy->overdue || !model.policy->overdue(),
		     "not woken in time");
	if (model.policy->compare)
		model.policy->compare(test);
}

/* The bios of a request must be contiguous and cover it. */
static void model_check_bios(struct kunit *test, struct request *rq)
{
	sector_t at = blk_rq_pos(rq);
	struct bio *bio;

	for (bio = rq->bio; bio; bio = bio->bi_next) {
		MODEL_ASSERT(test, bio->bi_iter.bi_sector == at &&
			     bio_data_dir(bio) == rq_data_dir(rq),
			     "bio at %llu, must be %llu",
			     (u64)bio->bi_iter.bi_sector, (u64)at);
		at = bio_end_sector(bio);
	}
	MODEL_ASSERT(test, at == iosched_rq_end(rq), "the bios end too early");
}

/* @next was merged into @mr. */
static void model_join(struct kunit *test, struct model_request *mr,
		       struct model_request *next)
{
	mr->start_ns = min(mr->start_ns, next->start_ns);
	/* A request merged on insertion was never queued. */
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

/* One merge has extended @mr to [sector, end). */
static void model_grown(struct kunit *test, struct model_request *mr,
			sector_t sector, sector_t end)
{
	/* A new start sector sorts it again. */
	if (mr->sector != sector)
		mr->sorted = ++model.sorted;
	mr->sector = sector;
	mr->end = end;
	MODEL_ASSERT(test, !model.policy->may_merge ||
		     model.policy->may_merge(mr->dir, sector, end),
		     "merged what must stay apart: %llu..%llu", (u64)sector,
		     (u64)end);
	if (model.policy->grown)
		model.policy->grown(mr);
}

/* Return the extended request: the only one whose size has changed. */
static struct model_request *model_find_grown(struct kunit *test)
{
	struct model_request *mr, *grown = NULL;

	model_for_each(mr)
		if (mr->state == MODEL_QUEUED && fake.requests[mr - model.requests].used &&
		    mr->end - mr->sector != blk_rq_sectors(model_rq(mr))) {
			MODEL_ASSERT(test, !grown, "two requests were extended");
			grown = mr;
		}
	MODEL_ASSERT(test, grown, "no request was extended");
	return grown;
}

/* Return the one of @grown and the freed requests that ends where @mr starts. */
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
 * A bio or a request (@newcomer, otherwise NULL) of @sectors was merged into a
 * queued request, which may then have been merged with others (fake.freed).
 * Find and check the result, and repeat the merges in the model: a request is
 * merged into the one in front of it, that one possibly into the next, and so
 * on. A bio and the merge after it count as one.
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
		     "merged into %llu sectors, must be %llu",
		     (u64)(end - begin), (u64)sectors);
	if (newcomer) {
		do {
			front = model_in_front(newcomer, grown);
			MODEL_ASSERT(test, front->end == newcomer->sector,
				     "merged with a request that is not adjacent");
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

#endif /* _MODEL_COMPARE_H */
