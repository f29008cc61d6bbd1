/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The elevator core that the SSD-aware schedulers share: what a request goes
 * through whatever the policy.
 *
 * A request is inserted, possibly merged, waits in an arrival FIFO (by I/O
 * priority tier and direction, with a deadline) and in one of the policy's
 * sector-sorted trees (unless it is the only one and can go at once, see
 * alone()), is dispatched, and completes or is requeued. The
 * policy says which tree, which request is next, what may be merged, and what
 * may go now; the core does the rest. Each module instantiates the core at
 * compile time: it fills in a struct iosched_policy called as IOSCHED_POLICY
 * and includes iosched-tmpl.h last, so that every hook is a direct call.
 *
 * The core dispatches at most as many requests as the device has tags, or
 * @depth. A request dispatched beyond that would wait in hctx->dispatch, where
 * it can no longer be merged or reordered.
 *
 * No request waits for ever. While a request is held, a completion, an
 * insertion or a timer that is armed for the earliest deadline runs the queue
 * again. A request whose deadline has passed is dispatched before others; when
 * IOSCHED_SLACK more has passed, neither @depth nor the policy holds it, only
 * the lack of a device tag. Its deadline is read_expire or write_expire after
 * its insertion, or prio_aging_expire while a higher tier is in use.
 *
 * A polled request completes when its owner polls, which may be never. So the
 * core dispatches it at once, and counts it in no bound.
 *
 * Nothing is allocated per request. rq->elv.priv[0] is the policy's,
 * rq->elv.priv[1] holds the core's IOSCHED_RQ_* bits. The other fields that the
 * core uses share memory with fields of others (all three kernels, unless it
 * says otherwise). Their owners:
 *
 * queuelist (rq_next)	the plug until insertion, the core until dispatch, then
 *			the block layer and the driver.
 * hash (ipi_list)	the core while RQF_HASHED is set, which dispatch clears;
 *			then the completion on a remote CPU.
 * rb_node (special_vec; on 6.1 completion_data too)
 *			the core from place() until the request is taken out of
 *			its tree; then the driver, which need not clear it
 *			before it requeues the request (sd prepares a discard
 *			anew). So insertion clears the node.
 * elv (on 6.1 flush)	the core from prepare_request() to finish_request(). 6.1
 *			does not prepare what carries a FLUSH or FUA; the flush
 *			machine has these and inserts none, but for a FUA write
 *			that needs no flush and was requeued: the machine is
 *			done with it, the core prepares it late.
 * fifo_time (on 6.1 csd)	the core from insertion to dispatch; csd belongs to
 *			the completion.
 *
 * Locking: iosched.lock protects everything that is queued. Completions run
 * in any context and do not take it: they touch atomics only. Hence the rule
 * for code that holds a request back (see iosched_wake()).
 */
#ifndef _IOSCHED_H
#define _IOSCHED_H

#include <linux/timer.h>

#include "iosched-compat.h"

/* I/O priority classes in the order in which they are served. */
enum {
	IOSCHED_RT,
	IOSCHED_BE,
	IOSCHED_IDLE,
	IOSCHED_TIERS,
};

/* Directions, as in rq_data_dir(): discards and write-zeroes are writes. */
#define IOSCHED_DIRS	2

/* rq->elv.priv[1]: zero until the request was inserted. */
#define IOSCHED_RQ_OURS		BIT(0)	/* inserted, not yet finished */
#define IOSCHED_RQ_IN_FLIGHT	BIT(1)	/* dispatched, not yet completed */
#define IOSCHED_RQ_COUNTED	BIT(2)	/* the policy was told dispatched() */
#define IOSCHED_RQ_POLLED	BIT(3)	/* in flight, in no bound */
#define IOSCHED_RQ_TIER_SHIFT	4

/* For so long past its deadline a request still waits for bounds, in jiffies. */
#define IOSCHED_SLACK	msecs_to_jiffies(100)

/**
 * struct iosched_stats - what happened to the requests of a tier and direction
 * @inserted: requests handed to the elevator, each once
 * @merged: requests that became part of another one while queued
 * @dispatched: requests given to the device, each time
 * @expired: dispatched after their deadline
 *
 * Under iosched.lock. With struct iosched_done: inserted = merged + queued +
 * in flight + polled + completed, at any time.
 */
struct iosched_stats {
	unsigned int inserted;
	unsigned int merged;
	unsigned int dispatched;
	unsigned int expired;
};

/**
 * struct iosched_done - what completions count, of a tier and direction
 * @completed: finished, merged ones apart
 * @requeued: returned by the driver after dispatch
 * @bypassed: of those, finished without coming through the elevator again
 * @polled: polled requests in flight
 *
 * Atomic, apart from what the lock protects: completions run on other CPUs.
 */
struct iosched_done {
	atomic_t completed;
	atomic_t requeued;
	atomic_t bypassed;
	atomic_t polled;
};

/**
 * struct iosched - one elevator on one device, embedded first in the policy's
 *
 * Run-time data, under @lock unless it says otherwise:
 * @lock: protects what is queued; never taken in interrupt context
 * @q: the device's queue
 * @head: requests that go before all others: polled ones, passthrough, and
 *	those that were inserted at the head, as requeued ones are
 * @fifo: the other queued requests in order of arrival
 * @alone: the only one, if it is not in @fifo and a tree; see iosched_sort_alone()
 * @queued: their number, by tier
 * @nr: number of all queued requests, those at the head included
 * @tiers: mask of the tiers that have requests, and perhaps of some that had
 * @merged: request that the merge under way has made larger
 * @room: lower bound of the free slots below the dispatch limit; 0 means
 *	unknown, recount
 * @stats: counters
 * @timer: armed while a request is held, for the earliest deadline
 * @held: all queued requests are held; see iosched_wake(). Atomic.
 * @looked: hardware queue from which dispatch last found all of them held
 * @done: counters of completions. Atomic.
 *
 * Settings, one word each, written under @lock and read without it:
 * @read_expire: deadline of a read, in ms from its insertion
 * @write_expire: the same for a write
 * @prio_aging_expire: ms after which a request of a lower tier goes first
 * @front_merges: whether to look for front merges
 * @async_depth: scheduler tags for all but synchronous reads, per hardware
 *	queue; 0 for no bound
 * @depth: most requests in flight on the device; 0 for as many as it has tags
 */
struct iosched {
	spinlock_t lock;	/* see above */
	struct request_queue *q;
	struct list_head head;
	struct list_head fifo[IOSCHED_TIERS][IOSCHED_DIRS];
	struct request *alone;
	unsigned int queued[IOSCHED_TIERS];
	unsigned int nr;
	unsigned int tiers;
	struct request *merged;
	unsigned int room;
	struct iosched_stats stats[IOSCHED_TIERS][IOSCHED_DIRS];
	struct timer_list timer;

	/* Completions read this line; it is written when requests are held. */
	unsigned int held ____cacheline_aligned_in_smp;
	struct blk_mq_hw_ctx *looked;

	struct iosched_done done[IOSCHED_TIERS][IOSCHED_DIRS]
		____cacheline_aligned_in_smp;

	unsigned int read_expire ____cacheline_aligned_in_smp;
	unsigned int write_expire;
	unsigned int prio_aging_expire;
	unsigned int front_merges;
	unsigned int async_depth;
	unsigned int depth;
};

/**
 * struct iosched_policy - what a scheduler gives the core
 *
 * All but released() are called with iosched.lock held, unless it says
 * otherwise. Those marked (opt) may be NULL.
 *
 * @size: size of the policy's struct, whose first member is a struct iosched
 * @load: (opt) the module is loaded: set up what its devices share; sleeps
 * @unload: (with @load) the module goes, no device has the scheduler; sleeps
 * @init: set up the policy's part, whose settings are there; sleeps, no lock.
 *	The queue may be another scheduler's still, and stay so: nothing of it is
 *	changed.
 *	Negative errno on failure, after which exit() is not called.
 * @exit: free it; sleeps, no lock; no request is queued or in flight, and nobody
 *	reads debugfs any more
 * @start: (opt) the queue is the scheduler's from now on; it is frozen
 * @stop: (with @start) it is not any more; frozen, no request is left. Before
 *	another scheduler's start().
 * @root: tree in which a request of that tier and direction that starts at
 *	that sector is, or would be, sorted
 * @arrives: (opt) @rq is handed over by the task that sends it, or comes back
 *	after dispatch, and was not merged
 * @place: @rq is about to be sorted: remember its place in rq->elv.priv[0],
 *	return its tree
 * @placed: tree that place() chose for @rq
 * @removed: (opt) @rq is taken out of its tree: to be dispatched (after
 *	dispatched()), to be placed anew, or because it was merged into another
 *	request. It is still in its FIFO. @heir is NULL, or the request that it
 *	was merged into if that moves to the place of @rq in the FIFO.
 * @resized: (opt) @rq has become larger by merging
 * @may_merge: (opt) may a request of that direction cover [start, end)?
 *	Sectors. Sees nothing but its arguments and the settings.
 * @ready: (opt) return true if the policy's bounds let @rq be dispatched.
 *	@due: its deadline has passed. Otherwise it was just placed, and false
 *	saves a queue run that could not dispatch it.
 * @select: the request to dispatch next among those of a tier, which the
 *	core then does; NULL when all have to wait for a completion
 * @alone: (opt) @rq is the only request, and was not sorted: place() was not
 *	called. May it go now? Then do what place() and select() would have, as
 *	far as it shows later; it goes, removed() is not called. If not, it is
 *	sorted in. Saves the work of sorting where there is nothing to sort.
 * @dispatched: (opt) @rq goes to the device. Requests from the head of the
 *	queue (at_head, requeued) obey no bound and are not told.
 * @released: (opt) @rq has left the device, or comes back to be queued again,
 *	after dispatched(). Any context, no lock. The core wakes the queue
 *	after it.
 */
struct iosched_policy {
	size_t size;
	int (*load)(void);
	void (*unload)(void);
	int (*init)(struct iosched *io);
	void (*exit)(struct iosched *io);
	void (*start)(struct iosched *io);
	void (*stop)(struct iosched *io);
	struct rb_root *(*root)(struct iosched *io, unsigned int tier,
				unsigned int dir, sector_t sector);
	void (*arrives)(struct iosched *io, struct request *rq);
	struct rb_root *(*place)(struct iosched *io, struct request *rq);
	struct rb_root *(*placed)(struct request *rq);
	void (*removed)(struct iosched *io, struct request *rq,
			struct request *heir);
	void (*resized)(struct iosched *io, struct request *rq);
	bool (*may_merge)(struct iosched *io, unsigned int dir,
			  sector_t start, sector_t end);
	bool (*ready)(struct iosched *io, struct request *rq, bool due);
	struct request *(*select)(struct iosched *io, unsigned int tier);
	bool (*alone)(struct iosched *io, struct request *rq);
	void (*dispatched)(struct iosched *io, struct request *rq);
	void (*released)(struct request *rq);
};

/* Write a note into the device's blktrace stream; free when nobody traces. */
#define iosched_note(io, fmt, ...)					\
do {									\
	if (unlikely(iosched_traced((io)->q)))				\
		blk_add_trace_msg((io)->q, fmt, ##__VA_ARGS__);		\
} while (0)

/* The elevator's data of a queue that has one of ours. */
static inline struct iosched *iosched_of(struct request_queue *q)
{
	return q->elevator->elevator_data;
}

static inline unsigned long iosched_rq_state(struct request *rq)
{
	return (unsigned long)rq->elv.priv[1];
}

static inline void iosched_rq_set_state(struct request *rq, unsigned long state)
{
	rq->elv.priv[1] = (void *)state;
}

/* Tier of a request that was inserted. */
static inline unsigned int iosched_rq_tier(struct request *rq)
{
	return iosched_rq_state(rq) >> IOSCHED_RQ_TIER_SHIFT;
}

/* First sector behind @rq. */
static inline sector_t iosched_rq_end(struct request *rq)
{
	return blk_rq_pos(rq) + blk_rq_sectors(rq);
}

/* Return true if @rq completes only when its owner polls. */
static inline bool iosched_rq_polled(struct request *rq)
{
	return rq->cmd_flags & REQ_POLLED;
}

static inline unsigned int iosched_tier_of(unsigned short ioprio)
{
	switch (IOPRIO_PRIO_CLASS(ioprio)) {
	case IOPRIO_CLASS_RT:
		return IOSCHED_RT;
	case IOPRIO_CLASS_IDLE:
		return IOSCHED_IDLE;
	default:
		return IOSCHED_BE;
	}
}

static inline struct iosched_stats *
iosched_rq_stats(struct iosched *io, struct request *rq)
{
	return &io->stats[iosched_rq_tier(rq)][rq_data_dir(rq)];
}

static inline struct iosched_done *
iosched_rq_done(struct iosched *io, struct request *rq)
{
	return &io->done[iosched_rq_tier(rq)][rq_data_dir(rq)];
}

/**
 * iosched_in_flight() - requests dispatched and not completed, polled ones apart
 * @io: elevator
 * @tier: I/O priority tier
 * @dir: direction
 *
 * Exact under iosched.lock while nothing completes; a completion under way
 * can only make it too high, never too low.
 */
static inline unsigned int iosched_in_flight(struct iosched *io,
					     unsigned int tier,
					     unsigned int dir)
{
	struct iosched_done *done = &io->done[tier][dir];
	unsigned int gone = atomic_read(&done->completed) +
			    atomic_read(&done->requeued);

	/*
	 * Pairs with completions, which first change polled and bypassed, then
	 * what is read above.
	 */
	smp_rmb();
	return READ_ONCE(io->stats[tier][dir].dispatched) +
	       atomic_read(&done->bypassed) - atomic_read(&done->polled) - gone;
}

/* The same of all requests of a direction, and of all of a tier. Under the lock. */
static inline unsigned int iosched_dir_in_flight(struct iosched *io,
						 unsigned int dir)
{
	unsigned int tier, in_flight = 0;

	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		if (io->tiers & BIT(tier))
			in_flight += iosched_in_flight(io, tier, dir);
	return in_flight;
}

static inline unsigned int iosched_tier_in_flight(struct iosched *io,
						  unsigned int tier)
{
	return iosched_in_flight(io, tier, READ) +
	       iosched_in_flight(io, tier, WRITE);
}

/* The same of all requests. */
static inline unsigned int iosched_all_in_flight(struct iosched *io)
{
	return iosched_dir_in_flight(io, READ) +
	       iosched_dir_in_flight(io, WRITE);
}

/* Most requests that the driver takes: its tags. */
static inline unsigned int iosched_tags(struct iosched *io)
{
	struct blk_mq_tag_set *set = io->q->tag_set;
	unsigned int tags = set->queue_depth - set->reserved_tags;

	return set->flags & BLK_MQ_F_TAG_HCTX_SHARED ?
		tags : tags * io->q->nr_hw_queues;
}

/**
 * iosched_from() - first request of a tree at or behind a sector
 * @root: sorted tree
 * @sector: where to begin
 *
 * Return: the request, or NULL when all lie in front of @sector.
 */
static inline struct request *iosched_from(struct rb_root *root,
					   sector_t sector)
{
	struct rb_node *node = root->rb_node;
	struct request *found = NULL;

	while (node) {
		struct request *rq = rb_entry(node, struct request, rb_node);

		if (blk_rq_pos(rq) >= sector) {
			found = rq;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

/* The request before or behind a queued one in its tree, or NULL. */
static inline struct request *iosched_prev(struct request *rq)
{
	struct rb_node *node = rb_prev(&rq->rb_node);

	return rb_entry_safe(node, struct request, rb_node);
}

static inline struct request *iosched_next(struct request *rq)
{
	struct rb_node *node = rb_next(&rq->rb_node);

	return rb_entry_safe(node, struct request, rb_node);
}

/* Return true if @hctx can take requests from the elevator and pass them on. */
static inline bool iosched_hctx_able(struct blk_mq_hw_ctx *hctx)
{
	return !test_bit(BLK_MQ_S_STOPPED, &hctx->state) &&
	       list_empty_careful(&hctx->dispatch);
}

/*
 * Run the queue. One hardware queue dispatches the requests of all. The block
 * layer does not come to the elevator through one that is stopped or still has
 * requests that the driver refused, so another is taken then.
 */
static inline void iosched_run(struct iosched *io)
{
	struct blk_mq_hw_ctx *hctx = READ_ONCE(io->looked);
	unsigned long i;

	if (hctx && iosched_hctx_able(hctx)) {
		blk_mq_run_hw_queue(hctx, true);
		return;
	}
	queue_for_each_hw_ctx(io->q, hctx, i)
		if (iosched_hctx_able(hctx)) {
			blk_mq_run_hw_queue(hctx, true);
			return;
		}
	blk_mq_run_hw_queues(io->q, true);
}

/* Return true if requests are held, after saying that they no longer are. */
static inline bool iosched_unhold(struct iosched *io)
{
	return READ_ONCE(io->held) && xchg(&io->held, 0);
}

/**
 * iosched_wake() - run the queue if requests are held
 * @io: elevator
 *
 * Code that makes room (a completion, a wider bound, a timer) calls this after
 * having made it. The other side is iosched_hold(): it first sets
 * @held, then looks a last time. The barriers on both sides ensure that either
 * that look finds the room or the waker finds @held. While @held is set,
 * has_work() is false: the block layer does not poll. Any context.
 */
static inline void iosched_wake(struct iosched *io)
{
	/* Pairs with the one in iosched_hold(). */
	smp_mb();
	if (iosched_unhold(io))
		iosched_run(io);
}

/**
 * iosched_sort_alone() - sort in the request that came when no other was queued
 * @io: elevator, lock held
 *
 * Before anybody looks for it: a policy with alone() has such a request put
 * aside, for it mostly goes at once. Defined in iosched-tmpl.h.
 */
static void iosched_sort_alone(struct iosched *io);

/**
 * iosched_replace_all() - place all queued requests anew
 * @io: elevator, lock held
 * @change: the change to the policy's structures that makes it necessary,
 *	called when no request is in them
 * @arg: for @change
 *
 * For a setting that decides where requests are placed. Those in flight stay
 * counted where they were. Defined in iosched-tmpl.h.
 */
static void iosched_replace_all(struct iosched *io,
				void (*change)(struct iosched *, void *),
				void *arg);

#endif /* _IOSCHED_H */
