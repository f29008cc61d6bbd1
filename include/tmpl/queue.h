/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where requests are queued: the trees, the FIFOs and the hash. A part of
 * iosched-tmpl.h.
 */
#ifndef _IOSCHED_TMPL_QUEUE_H
#define _IOSCHED_TMPL_QUEUE_H

#include "tmpl/policy.h"
#include "tmpl/seal.h"

/* The tree in which a request that starts at @sector would be sorted. */
static struct rb_root *iosched_tree_for(struct iosched *io, unsigned int tier,
					unsigned int dir, sector_t sector)
{
	return IOSCHED_POLICY.tree_for ?
		IOSCHED_POLICY.tree_for(io, tier, dir, sector) :
		&io->sort[tier][dir];
}

/* The tree in which @rq is sorted. */
static struct rb_root *iosched_tree_of(struct iosched *io, struct request *rq)
{
	return IOSCHED_POLICY.tree_of ?
		IOSCHED_POLICY.tree_of(rq) :
		&io->sort[iosched_rq_tier(rq)][rq_data_dir(rq)];
}

/* Change the number of queued requests by @change for @rq. */
static void iosched_count(struct iosched *io, struct request *rq, int change)
{
	unsigned int tier = iosched_rq_tier(rq);

	WRITE_ONCE(io->queued[tier], io->queued[tier] + change);
	WRITE_ONCE(io->nr, io->nr + change);
}

/* Add @rq to its tree, its FIFO and, if it may be merged, the hash. */
static void iosched_sort(struct iosched *io, struct request *rq)
{
	unsigned int tier = iosched_rq_tier(rq), dir = rq_data_dir(rq);

	lockdep_assert_held(&io->lock);
	if (IOSCHED_POLICY.place)
		IOSCHED_POLICY.place(io, rq);
	elv_rb_add(iosched_tree_of(io, rq), rq);
	list_add_tail(&rq->queuelist, &io->fifo[tier][dir]);
	if (iosched_rq_mergeable(rq)) {
		elv_rqhash_add(io->q, rq);
		if (!io->q->last_merge)
			io->q->last_merge = rq;
		iosched_seal_around(io, rq);
	}
}

/* Return true if all queued requests are fresh, and there are some. */
static bool iosched_any_fresh(struct iosched *io)
{
	return IOSCHED_POLICY.take_fresh && io->fresh;
}

static void iosched_add_fresh(struct iosched *io, struct request *rq)
{
	rq->rq_next = NULL;
	if (io->fresh)
		io->fresh_last->rq_next = rq;
	else
		io->fresh = rq;
	io->fresh_last = rq;
}

/* Take the first fresh request out of everything that it is in. */
static void iosched_del_fresh(struct iosched *io)
{
	struct request *rq = io->fresh;

	io->fresh = rq->rq_next;
	INIT_LIST_HEAD(&rq->queuelist);
	if (rq->rq_flags & RQF_HASHED)
		elv_rqhash_del(io->q, rq);
}

/* The last fresh request may be merged with the next one. */
static void iosched_hash_fresh(struct iosched *io)
{
	if (iosched_rq_mergeable(io->fresh_last))
		elv_rqhash_add(io->q, io->fresh_last);
}

static noinline void iosched_sort_all_fresh(struct iosched *io)
{
	struct request *rq;

	while ((rq = io->fresh)) {
		iosched_del_fresh(io);
		iosched_sort(io, rq);
	}
}

static void iosched_sort_fresh(struct iosched *io)
{
	if (iosched_any_fresh(io))
		iosched_sort_all_fresh(io);
}

/* Take @rq out of its tree, its FIFO and the hash. @heir: see iosched_unlink(). */
static void iosched_unsort(struct iosched *io, struct request *rq,
			   struct request *heir)
{
	elv_rb_del(iosched_tree_of(io, rq), rq);
	iosched_seal(io, rq);
	iosched_count(io, rq, -1);
	if (IOSCHED_POLICY.removed)
		IOSCHED_POLICY.removed(io, rq, heir);
	if (heir)
		list_move(&heir->queuelist, &rq->queuelist);
	list_del_init(&rq->queuelist);
}

/*
 * Take @rq out of everything that it is queued in. @heir: request that moves to
 * its place in the FIFO, or NULL.
 */
static void iosched_unlink(struct iosched *io, struct request *rq,
			   struct request *heir)
{
	lockdep_assert_held(&io->lock);
	/* Merged before it was queued. */
	if (list_empty(&rq->queuelist))
		return;
	/* Requests at the head are in no tree. */
	if (!RB_EMPTY_NODE(&rq->rb_node)) {
		iosched_unsort(io, rq, heir);
	} else {
		WRITE_ONCE(io->nr, io->nr - 1);
		list_del_init(&rq->queuelist);
	}
}

#endif /* _IOSCHED_TMPL_QUEUE_H */
