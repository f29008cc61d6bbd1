/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sealing: a request that must not grow at its end, because of a limit or because
 * it must not join the request that is queued after it, is taken out of the
 * elevator hash, where the block layer would find it. A part of iosched-tmpl.h.
 */
#ifndef _IOSCHED_TMPL_SEAL_H
#define _IOSCHED_TMPL_SEAL_H

#include <linux/hashtable.h>

#include "tmpl/policy.h"

static bool iosched_may_join(struct iosched *io, struct request *front,
			     struct request *back)
{
	return !IOSCHED_POLICY.may_merge ||
	       IOSCHED_POLICY.may_merge(io, rq_data_dir(front),
					blk_rq_pos(front),
					iosched_rq_end(back));
}

/*
 * Return true if @back begins where @front ends but must not join it. Either may be
 * NULL.
 */
static bool iosched_must_part(struct iosched *io, struct request *front,
			      struct request *back)
{
	return front && back && iosched_rq_end(front) == blk_rq_pos(back) &&
	       !iosched_may_join(io, front, back);
}

static void iosched_seal(struct iosched *io, struct request *rq)
{
	elv_rqhash_del(io->q, rq);
	if (io->q->last_merge == rq)
		io->q->last_merge = NULL;
}

/* Return true if @rq may grow at its end by a sector. */
static bool iosched_may_grow(struct iosched *io, struct request *rq)
{
	if (IOSCHED_POLICY.may_grow)
		return IOSCHED_POLICY.may_grow(io, rq);
	return IOSCHED_POLICY.may_merge(io, rq_data_dir(rq), blk_rq_pos(rq),
					iosched_rq_end(rq) + 1);
}

/* Seal @rq, which is new or has grown, and the one before it, if necessary. */
static void iosched_seal_around(struct iosched *io, struct request *rq)
{
	struct request *prev;

	if (!IOSCHED_POLICY.may_merge || RB_EMPTY_NODE(&rq->rb_node))
		return;
	if (!iosched_may_grow(io, rq) ||
	    iosched_must_part(io, rq, iosched_next(rq)))
		iosched_seal(io, rq);
	prev = iosched_prev(rq);
	if (iosched_must_part(io, prev, rq))
		iosched_seal(io, prev);
}

/* A merge was tried: seal the request that it has made larger, if any. */
static void iosched_seal_merged(struct iosched *io)
{
	if (io->merged)
		iosched_seal_around(io, io->merged);
	io->merged = NULL;
}

/*
 * @rq is about to join the request that begins at @begin. The block layer then
 * joins both to a request that ends there, the first such one in the hash, and so
 * on. Seal the request that must not join.
 */
static void iosched_stop_chain(struct iosched *io, struct request *rq,
			       sector_t begin)
{
	unsigned int dir = rq_data_dir(rq);
	sector_t end = iosched_rq_end(rq);
	struct request *front, *found;
	struct hlist_node *next;

	do {
		found = NULL;
		hash_for_each_possible_safe(io->q->elevator->hash, front, next,
					    hash, begin) {
			if (iosched_rq_end(front) != begin ||
			    rq_data_dir(front) != dir)
				continue;
			if (!IOSCHED_POLICY.may_merge(io, dir,
						      blk_rq_pos(front), end))
				iosched_seal(io, front);
			else if (!found)
				found = front;
		}
		if (found)
			begin = blk_rq_pos(found);
	} while (found);
}

#endif /* _IOSCHED_TMPL_SEAL_H */
