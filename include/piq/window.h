/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rule 2 of piq-iosched.c: how requests enter the batches and leave them. The oldest
 * `window` requests of a tier and direction are in batches; the others wait outside, in
 * order of arrival.
 */
#ifndef _PIQ_WINDOW_H
#define _PIQ_WINDOW_H

#include "piq/data.h"

/* Count the conflicts of @rq, which enters the batches. */
static void piq_count_conflicts(struct piq_data *pd, struct request *rq,
				const unsigned long *vector)
{
	unsigned int dir = rq_data_dir(rq);
	bool with[IOSCHED_DIRS];

	piq_conflicts(piq_map_of(pd), iosched_rq_tier(rq), vector, with);
	pd->conflicts[dir == READ ? PIQ_RR : PIQ_WW] += with[dir];
	pd->conflicts[PIQ_RW] += with[!dir];
}

/* Rule 2: add @rq to a batch. */
static void piq_enter(struct piq_data *pd, struct cb_queue *queue,
		      struct request *rq)
{
	struct cb_entry *entry = cb_get(queue);
	struct piq_map *map = piq_map_of(pd);

	lv_set_span(&map->lv, piq_span(map, rq), entry->vector);
	piq_count_conflicts(pd, rq, entry->vector);
	entry->item = rq;
	entry->since = rq->start_time_ns;
	rq->elv.priv[0] = entry;
	cb_place(queue, entry);
}

/* The request after @rq in its FIFO, or NULL. */
static struct request *piq_behind(struct iosched *io, struct request *rq)
{
	struct list_head *fifo = &io->fifo[iosched_rq_tier(rq)][rq_data_dir(rq)];

	return list_is_last(&rq->queuelist, fifo) ? NULL :
	       list_next_entry(rq, queuelist);
}

/* Rule 2: add requests outside the window to batches while there is room. */
static void piq_admit(struct piq_data *pd, unsigned int tier, unsigned int dir)
{
	struct cb_queue *queue = &piq_map_of(pd)->queue[tier][dir];
	struct request *rq;

	while ((rq = pd->outside[tier][dir]) && !cb_full(queue)) {
		pd->outside[tier][dir] = piq_behind(&pd->io, rq);
		if (!piq_entry(rq))
			piq_enter(pd, queue, rq);
	}
}

static void piq_count_batch(struct piq_data *pd, unsigned int dir,
			    unsigned int size)
{
	pd->batches[dir]++;
	pd->sizes[dir][ilog2(size)]++;
}

/*
 * The batch that @rq was in has ended, after @size of its requests were dispatched.
 * @size is 0 if it continues, or if none was. Rule 5: the wait of the next write
 * batch begins.
 */
static void piq_end_batch(struct piq_data *pd, struct request *rq,
			  unsigned int size, bool prioritised)
{
	unsigned int tier = iosched_rq_tier(rq), dir = rq_data_dir(rq);

	if (!size)
		return;
	piq_count_batch(pd, dir, size);
	if (prioritised) {
		pd->prioritised++;
		pd->write_turn[tier] = ktime_get_ns();
		pd->read_turn[tier] = true;
	} else if (dir == READ) {
		pd->read_turn[tier] = false;
	}
}

/* @heir moves to the place of @rq: into its batch, if @rq is in one. */
static void piq_inherit(struct piq_data *pd, struct request *rq,
			struct request *heir)
{
	unsigned int tier = iosched_rq_tier(rq), dir = rq_data_dir(rq);
	struct cb_entry *entry = piq_entry(rq);

	if (!entry || piq_entry(heir))
		return;
	if (pd->outside[tier][dir] == heir)
		pd->outside[tier][dir] = piq_behind(&pd->io, heir);
	entry->item = heir;
	heir->elv.priv[0] = entry;
	rq->elv.priv[0] = NULL;
}

static noinline void piq_trace_on(struct piq_data *pd, struct request *rq,
				  unsigned int number, unsigned int size,
				  bool prioritised)
{
	unsigned int tier = iosched_rq_tier(rq);
	char dir = rq_data_dir(rq) == READ ? 'R' : 'W';

	if (size)
		iosched_note(&pd->io, "piq batch %u %c %u size %u%s", tier, dir,
			     number, size, prioritised ? " prioritised" : "");
	iosched_note(&pd->io, "piq %u %c %u %llu", tier, dir, number,
		     (unsigned long long)blk_rq_pos(rq));
}

/* Trace @rq, and its batch of @size requests if it is the first of them. */
static void piq_trace(struct piq_data *pd, struct request *rq,
		      unsigned int number, unsigned int size, bool prioritised)
{
	if (unlikely(iosched_traced(pd->io.q)))
		piq_trace_on(pd, rq, number, size, prioritised);
}

/* @rq is dispatched from its batch. */
static void piq_leave(struct piq_data *pd, struct request *rq,
		      struct cb_entry *entry)
{
	unsigned int tier = iosched_rq_tier(rq), dir = rq_data_dir(rq);
	struct cb_batch *batch = entry->batch;
	bool prioritised = batch->prioritised;

	piq_trace(pd, rq, batch->number, batch->gone ? 0 : batch->size,
		  prioritised);
	piq_end_batch(pd, rq, cb_take(&piq_map_of(pd)->queue[tier][dir], entry),
		      prioritised);
}

#endif /* _PIQ_WINDOW_H */
