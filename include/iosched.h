/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The elevator core that the SSD-aware schedulers share: everything that happens
 * to a request whatever the policy is.
 *
 * insert	The request is merged into a queued one, or added to an arrival
 *		FIFO (one for each I/O priority tier and direction, sorted by
 *		deadline) and to a sector-sorted tree.
 * hold		It waits there until the bounds let it be dispatched.
 * dispatch	The policy selects a request, or the core one whose deadline has
 *		passed.
 * complete	The request leaves, or the driver requeues it. The queue is run
 *		again if requests are held.
 *
 * The policy decides which requests may be merged and which request is next, and
 * may have trees of its own. Each module instantiates the core at compile time: it
 * defines a struct iosched_policy and includes iosched-tmpl.h last, so that each
 * hook is a direct call.
 *
 * While the device has room for all queued requests, they are not sorted (@fresh): they
 * are dispatched at once, in order of arrival, as far as the policy agrees, and sorting
 * them would be wasted work. While none is queued, requests are not even inserted on some
 * drivers (tmpl/bypass.h).
 *
 * The core dispatches at most as many requests as the device has tags, or
 * @depth. A request dispatched beyond that would wait in hctx->dispatch, where
 * it can no longer be merged or reordered. Nor does it fill a driver that lets
 * requests wait (tmpl/driver.h).
 *
 * No request waits for ever. While a request is held, a completion, an
 * insertion or a timer runs the queue again. The timer is armed for the earliest
 * deadline, or for IOSCHED_SLACK from now if that is earlier. A request whose
 * deadline has passed is dispatched before others; when IOSCHED_SLACK more has
 * passed, neither @depth nor the policy holds it, only the lack of a device tag.
 * Its deadline is read_expire or write_expire after its insertion, or
 * prio_aging_expire while a higher tier is in use. If the device has several hardware
 * queues, the timer is armed while requests are queued, held or not.
 *
 * While there are reads, writes use at most @write_share percent of the device
 * (tmpl/readers/).
 *
 * A polled request completes only when its owner polls, which may be never. So
 * the core dispatches it at once, though not before an overdue request, and counts
 * it in no bound.
 *
 * Nothing is allocated per request. rq->elv.priv[0] is the policy's,
 * rq->elv.priv[1] holds the core's IOSCHED_RQ_* bits. The other fields that the
 * core uses share memory with fields of others (on all kernels, unless it
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
 *			does not prepare a FLUSH or FUA request, which belongs to
 *			the flush state machine. Of these only a FUA write that
 *			needs no flush and was requeued is inserted; the state
 *			machine no longer uses it, so the core prepares it late.
 * fifo_time (on 6.1 csd)	the core from insertion to dispatch, or from allocation
 *			to issue if the request bypasses the queue; csd belongs
 *			to the completion.
 *
 * Locking: iosched.lock protects everything that is queued. A completion runs in
 * any context, does not take the lock, and changes atomics only. iosched_wake()
 * has the rule that makes sure that it runs the queue if a request is held.
 */
#ifndef _IOSCHED_H
#define _IOSCHED_H

#include <linux/log2.h>
#include <linux/rbtree.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/timer.h>

#include "compat-hrtimer.h"
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
/* Either direction. */
#define IOSCHED_ANY	IOSCHED_DIRS

/* Sectors in a KB. */
#define IOSCHED_KB_SECTORS	(SZ_1K >> SECTOR_SHIFT)

/*
 * rq->elv.priv[1]: the state of a request, and its tier with OURS. These are all:
 *
 * 0			set by prepare_request() (on 6.1 take_over(), late); after
 *			requests_merged(), leave() and bypass_done(). Held by
 *			the plug or the task that allocated it, or by nothing.
 * OURS			set by take_over() on insertion, and by requeue_request().
 *			Held by io->head (RB_EMPTY_NODE), or by io->fresh, or by its
 *			FIFO and its tree and, if it may be merged, the hash;
 *			by io->moving while all are placed anew. Requeued, by
 *			the block layer until it is inserted again; the block
 *			layer may also issue it without the elevator.
 * OURS, IN_FLIGHT	set by next_calm() or hand_over(), until leave() or
 *			requeue_request(). Held by the block layer and the driver.
 *  with COUNTED	by next_calm() or next_request(), if the policy has
 *			released(). Not for a request of io->head.
 *  with TIMED		by turn_begins(), called by hand_over()
 *  with POLLED		by hand_over(), for a request of io->head. Without the others.
 * BYPASS		set by try_bypass(), until bypass_done(), or make_ordinary()
 *			on insertion. Held by the task that allocated it, then the
 *			block layer and the driver.
 *  with BYPASS_WRITE	by try_bypass()
 *  with OVERLOOKED	by overlook_one(), if it is not issued in time
 *
 * Each function is iosched_*(). They run under iosched.lock, but for prepare_request(),
 * try_bypass(), bypass_done(), leave() and requeue_request(). Against these,
 * overlook_one() uses cmpxchg() and bypass_done() xchg().
 */
#define IOSCHED_RQ_OURS		BIT(0)	/* inserted, not yet finished */
#define IOSCHED_RQ_IN_FLIGHT	BIT(1)	/* dispatched, not yet completed */
#define IOSCHED_RQ_COUNTED	BIT(2)	/* released() has to be called */
#define IOSCHED_RQ_POLLED	BIT(3)	/* in flight, in no bound */
#define IOSCHED_RQ_TIMED	BIT(4)	/* of a device that takes one at a time */
#define IOSCHED_RQ_BYPASS	BIT(5)	/* counted in bypassed; no other bits but: */
#define IOSCHED_RQ_BYPASS_WRITE	BIT(6)	/* as a write */
#define IOSCHED_RQ_OVERLOOKED	BIT(7)	/* counted in bypass_done already */
#define IOSCHED_RQ_TIER_SHIFT	8

/* Longest time after its deadline for which bounds hold a request, in jiffies. */
#define IOSCHED_SLACK	msecs_to_jiffies(100)

/* Without a read for this long, in jiffies, there are no readers; writers likewise. */
#define IOSCHED_READERS_GONE	HZ

/**
 * struct iosched_stats - counters of the requests of a tier and direction
 * @inserted: requests inserted, each once
 * @merged: requests that were merged into another one
 * @dispatched: dispatches; a requeued request counts again
 * @expired: dispatches after read_expire or write_expire
 *
 * Under iosched.lock. With struct iosched_done: inserted = merged + queued +
 * in flight + polled + completed, but while requests are being placed anew.
 */
struct iosched_stats {
	unsigned int inserted;
	unsigned int merged;
	unsigned int dispatched;
	unsigned int expired;
};

/**
 * struct iosched_done - counters that completions change, of a tier and direction
 * @completed: requests completed; merged ones do not count
 * @requeued: requests that the driver requeued
 * @undispatched: requeued requests that completed without another dispatch by the
 *	elevator
 * @polled: polled requests in flight
 *
 * Atomic, and in other cache lines than what the lock protects.
 */
struct iosched_done {
	atomic_t completed;
	atomic_t requeued;
	atomic_t undispatched;
	atomic_t polled;
};

/**
 * struct iosched_turns - waits for the next read, see tmpl/readers/turns.h
 * @timer: ends a wait, and the slices of a phase of reads alone
 * @since_us: time at which the wait under way began, in us; 0 if there is none
 * @soon: how many of the last reads came soon after the one before
 * @came: waits that ended with a read
 * @missed: waits that ended without
 * @waited_us: time spent waiting
 *
 * Under iosched.lock.
 */
struct iosched_turns {
	struct hrtimer timer;
	u32 since_us;
	unsigned int soon;
	unsigned int came;
	unsigned int missed;
	u64 waited_us;
};

/**
 * struct iosched_phases - phases of reads alone, see tmpl/readers/phases.h
 * @alone: writes wait. Read without the lock, too.
 * @since_us: time at which reads became alone or mixed with writes, in us
 * @drain_us: the last time at which writes were seen in flight while reads are alone, in us
 * @slice_us: beginning of the time in which reads are counted, in us
 * @reads: reads that had completed by then
 * @before: reads that had completed when reads became alone
 * @mixed_us: mean time between two reads while they were mixed with writes, in us
 * @earned_us: time for which reads are alone, in us
 * @fast_us: time since when reads are that much faster, in us; 0 if they are not
 * @counting: add up the time of reads. Without the lock.
 * @failed: phases in a row that did not pay
 * @tried: phases begun
 * @paid: those that paid
 * @alone_us: time of all of them
 *
 * Under iosched.lock.
 */
struct iosched_phases {
	bool alone;
	u32 since_us;
	u32 drain_us;
	u32 slice_us;
	unsigned int reads;
	unsigned int before;
	u32 mixed_us;
	u32 earned_us;
	u32 fast_us;
	bool counting;
	unsigned int failed;
	unsigned int tried;
	unsigned int paid;
	u64 alone_us;
};

/**
 * struct iosched_driver - what the driver gives its device, see tmpl/driver.h
 * @sleeps: queue_rq() may sleep, and there is one hardware queue
 * @one: the device takes one request at a time. Without the lock.
 * @since_us: time at which a request was last dispatched, in us. Read without the lock.
 * @tried: time at which one was last dispatched that may be kept, in jiffies
 * @task: the task that dispatched the sample: a request that may be kept or served in
 *	queue_rq(). NULL if there is none. Without the lock.
 * @sampled: that request, only to compare it. Read without the lock.
 * @sampled_us: time at which it was dispatched, in us. Read without the lock.
 * @beside: requests in flight at that time. Read without the lock.
 * @done: requests that had completed at that time. Read without the lock.
 * @refused: requests taken at once that show nothing. Without the lock.
 * @seen: how often queue_rq() kept or refused a request, less how often it did not. Without
 *	the lock.
 * @served: the same of requests that were alone and completed in queue_rq(). Without the lock.
 *
 * Under iosched.lock; for drivers that sleep.
 */
struct iosched_driver {
	bool sleeps;
	bool one;
	u32 since_us;
	unsigned long tried;
	struct task_struct *task;
	struct request *sampled;
	u32 sampled_us;
	unsigned int beside;
	unsigned int done;
	unsigned int refused;
	unsigned int seen;
	unsigned int served;
};

/**
 * struct iosched - an elevator on a device, first member of the policy's struct
 *
 * Run-time data, under @lock unless it says otherwise:
 * @lock: protects what is queued; never taken in interrupt context
 * @q: the device's queue
 * @head: requests that are dispatched before others: polled, passthrough and
 *	requeued ones, and others that were inserted at the head
 * @fifo: the other queued requests in order of arrival
 * @sort: the same by sector, unless the policy has trees of its own
 * @fresh: in order of arrival: all queued requests, none of which is in @fifo and a tree,
 *	or none; see iosched_sort_fresh(). Linked by rq_next.
 * @fresh_last: the last one of them
 * @moving: requests that iosched_replace_all() is placing anew: in none of the above, not in
 *	@queued and @nr, not dispatched or merged
 * @free: merged into others by the insertion that has the lock, and freed without it; empty
 *	while no one has the lock
 * @placing: all have been taken out, and are being placed: a request that is inserted is
 *	added to @moving
 * @queued: number of requests in @fifo and @fresh, by tier
 * @nr: number of all queued requests, those in @head included
 * @tiers: mask of the tiers in use; may have bits of tiers that no longer are
 * @merged: request that the merge in progress has made larger, or NULL
 * @room: lower bound of the free slots below the dispatch limit; 0 means
 *	unknown, recount
 * @limit: the dispatch limit when it was last counted, see tmpl/bounds.h. Without @lock.
 * @expire: time from insertion to deadline, by direction, in jiffies
 * @calm_at: the jiffy that is calm, see tmpl/calm.h
 * @calm_tiers: mask of the tier in use then; 0 if it is calm no longer
 * @calm_dirs: mask of the directions that it has reckoned with
 * @write_room: lower bound of the writes that may be dispatched in a calm jiffy; 0 means
 *	unknown, recount
 * @bypasses: requests may bypass the queue, as far as the driver decides
 * @overtaken: the last request that was dispatched has overtaken those in @head
 * @timed_us: time at which a request that is timed was last dispatched, in us. Read without
 *	@lock.
 * @turns: waits for the next read
 * @phases: phases of reads alone
 * @driver: what the driver gives its device
 * @stats: counters
 * @timer: armed while requests are held, for the earliest deadline or the slack
 * @held: all queued requests are held; see iosched_wake(). Atomic.
 * @held_hctx: hardware queue whose run last set @held
 * @timed_out: the timer has expired; see iosched_overlook(). Without @lock.
 * @unissued: requests that bypass the queue may not be issued yet
 * @done: counters of completions. Atomic.
 * @reads_us: time of the reads that are counted, in us. Atomic.
 * @owed_us: time owed to reads, in us. Without @lock.
 * @last_rq: if the driver sleeps, the last request that was dispatched, or NULL if it
 *	has completed. Atomic.
 * @over_us: time that reads had beyond that and have not made up for, in us. Without @lock.
 * @read_done_us: time at which a read completed that was dispatched as the only one, in
 *	us; 0 once the next one is queued. Without @lock.
 * @bypassed: requests that bypass the queue or did, by direction. Atomic.
 * @bypass_done: those that have completed, were requeued or are overlooked. Atomic.
 * @last: by direction: time at which a request was last dispatched or bypassed the
 *	queue, in jiffies. Without @lock.
 * @classes_until: time until which a request may be queued that is not best-effort,
 *	in jiffies; 0 if there was none. Without @lock.
 *
 * Settings, read without @lock:
 * @read_expire: deadline of a read, in ms from its insertion
 * @write_expire: deadline of a write, in ms from its insertion
 * @prio_aging_expire: deadline of a request while a higher tier is in use, in ms
 *	from its insertion
 * @front_merges: whether to try front merges
 * @async_depth: scheduler tags for all but synchronous reads, per hardware
 *	queue; 0 for three quarters of all
 * @depth: most requests in flight on the device; 0 for as many as it takes
 * @write_share: most of the device for writes while there are reads, in percent
 * @bypass: whether several requests may be in @fresh, and bypass the queue if the policy
 *	has may_bypass()
 */
struct iosched {
	spinlock_t lock;	/* see above */
	struct request_queue *q;
	struct list_head head;
	struct list_head fifo[IOSCHED_TIERS][IOSCHED_DIRS];
	struct rb_root sort[IOSCHED_TIERS][IOSCHED_DIRS];
	struct request *fresh;
	struct request *fresh_last;
	struct list_head moving;
	struct list_head free;
	unsigned int queued[IOSCHED_TIERS];
	unsigned int nr;
	unsigned int tiers;
	struct request *merged;
	unsigned int room;
	unsigned int limit;
	unsigned long expire[IOSCHED_DIRS];
	unsigned long calm_at;
	unsigned int calm_tiers;
	unsigned int calm_dirs;
	unsigned int write_room;
	bool bypasses;
	bool overtaken;
	bool unissued;
	bool placing;
	u32 timed_us;
	struct iosched_turns turns;
	struct iosched_phases phases;
	struct iosched_driver driver;
	struct iosched_stats stats[IOSCHED_TIERS][IOSCHED_DIRS];
	struct timer_list timer;

	/* Completions read this line; only holding and waking write it. */
	unsigned int held ____cacheline_aligned_in_smp;
	struct blk_mq_hw_ctx *held_hctx;
	bool timed_out;

	struct iosched_done done[IOSCHED_TIERS][IOSCHED_DIRS]
		____cacheline_aligned_in_smp;
	atomic_t bypass_done[IOSCHED_DIRS];
	atomic_t reads_us;
	unsigned int owed_us;
	struct request *last_rq;
	unsigned int over_us;
	u32 read_done_us;

	atomic_t bypassed[IOSCHED_DIRS] ____cacheline_aligned_in_smp;
	unsigned long last[IOSCHED_DIRS];
	unsigned long classes_until;

	unsigned int read_expire ____cacheline_aligned_in_smp;
	unsigned int write_expire;
	unsigned int prio_aging_expire;
	unsigned int front_merges;
	unsigned int async_depth;
	unsigned int depth;
	unsigned int write_share;
	unsigned int bypass;
};

/*
 * Fail the build if the bytes of @type from @begin to @end share a cache line with
 * others: completions write them on any CPU, while the CPU that has the lock uses the
 * others.
 */
#ifdef CONFIG_SMP
#define IOSCHED_OWN_LINES(type, begin, end)				\
	static_assert(!((begin) % SMP_CACHE_BYTES) &&			\
		      !((end) % SMP_CACHE_BYTES),			\
		      "cache lines of " #type)
/* What a completion that is neither timed nor of a policy writes is in two lines. */
static_assert(offsetofend(struct iosched, read_done_us) -
	      offsetof(struct iosched, done) <= 128);
#else
#define IOSCHED_OWN_LINES(type, begin, end)	static_assert(true)
#endif

IOSCHED_OWN_LINES(struct iosched, offsetof(struct iosched, held),
		  offsetof(struct iosched, done));
IOSCHED_OWN_LINES(struct iosched, offsetof(struct iosched, done),
		  offsetof(struct iosched, bypassed));
IOSCHED_OWN_LINES(struct iosched, offsetof(struct iosched, bypassed),
		  offsetof(struct iosched, read_expire));

/**
 * struct iosched_policy - the hooks of a scheduler
 *
 * All but released() are called with iosched.lock held, unless it says
 * otherwise. Those marked (opt) may be NULL.
 *
 * @size: size of the policy's struct, whose first member is a struct iosched
 * @load: (opt) the module is being loaded: set up what its devices share. May
 *	sleep, no lock. Negative errno on failure.
 * @unload: (opt) undo load(); no device has the scheduler. May sleep, no lock.
 * @init: (opt) set up the policy's part of a device, whose settings are set. May sleep,
 *	no lock. The queue may still have another scheduler, and keep it if the
 *	switch fails, so this must not change the queue. Negative errno on
 *	failure; exit() is then not called. Do not fail for what the settings
 *	are: a driver that changes its number of hardware queues has the
 *	scheduler start again from the module's parameters. 7.2 gives up that
 *	change if this fails, older kernels leave the device without one.
 * @exit: (opt) undo init(). May sleep, no lock. No request is queued or in flight, and
 *	no debugfs file is being read.
 * @start: (opt) the queue, which is frozen, has the scheduler from now on. No lock.
 * @stop: (opt) the queue, which is frozen and has no request, no longer has the
 *	scheduler. Called before another scheduler's start(). No lock.
 * @tree_for: (opt) return the tree in which a request of that tier and direction that
 *	starts at that sector would be sorted. Without this and tree_of(), the core
 *	has a tree for each tier and direction.
 * @arrives: (opt) @rq is inserted and was not merged. Runs in the task that sent
 *	it, unless @rq was dispatched before.
 * @merged: (opt) @rq, for which arrives() was called, is merged into another one
 * @place: (opt) @rq is about to be added to its tree: set rq->elv.priv[0] and what
 *	the policy counts
 * @tree_of: (opt, with tree_for()) return the tree of @rq; called after place()
 * @removed: (opt) @rq is taken out of its tree: to be dispatched (after
 *	dispatched()), to be placed anew, or because it was merged into another
 *	request. It is still in its FIFO. @heir is NULL, or the request that it
 *	was merged into if that moves to the place of @rq in the FIFO.
 * @resized: (opt) @rq has become larger by merging
 * @may_merge: (opt) return true if a request of that direction may cover the
 *	sectors [start, end). Depends on its arguments and the settings only.
 * @may_grow: (opt) return what may_merge() does for @rq, which is placed, and the sector
 *	after it, at less cost
 * @ready: (opt) return true if the policy's bounds let @rq be dispatched.
 *	@expired: its deadline has passed. Otherwise it was just placed, and false
 *	saves a queue run that could not dispatch it.
 * @select: return the request of a tier to dispatch next, which the core then
 *	dispatches; NULL to hold all of them until iosched_wake() is called.
 *	@only: the direction whose turn it is, of which some are queued, or IOSCHED_ANY. For
 *	READ, as writes use their share of the device, not NULL if nothing is in flight. If
 *	it is NULL for WRITE, it is called again for IOSCHED_ANY.
 * @take_fresh: (opt) take @rq, to dispatch it, as if it were the only queued request;
 *	return false if it may not be dispatched now; it is sorted then. Neither
 *	place() nor select() was called, nor will removed() be: do what they
 *	would have left behind. No other request is placed.
 * @dispatched: (opt) @rq is dispatched. Not called for requests in the head
 *	list, which obey no bound.
 * @may_bypass: (opt) return true if a request, whose sector is not known yet, may
 *	bypass the queue now: nothing is queued, and the core's bounds leave room. No
 *	lock. Neither dispatched() nor released() is called for it. See tmpl/bypass.h.
 * @released: (opt) @rq has completed or was requeued after dispatched(). Any
 *	context, no lock. The core then runs the queue if requests are held.
 */
struct iosched_policy {
	size_t size;
	int (*load)(void);
	void (*unload)(void);
	int (*init)(struct iosched *io);
	void (*exit)(struct iosched *io);
	void (*start)(struct iosched *io);
	void (*stop)(struct iosched *io);
	struct rb_root *(*tree_for)(struct iosched *io, unsigned int tier,
				    unsigned int dir, sector_t sector);
	void (*arrives)(struct iosched *io, struct request *rq);
	void (*merged)(struct iosched *io, struct request *rq);
	void (*place)(struct iosched *io, struct request *rq);
	struct rb_root *(*tree_of)(struct request *rq);
	void (*removed)(struct iosched *io, struct request *rq,
			struct request *heir);
	void (*resized)(struct iosched *io, struct request *rq);
	bool (*may_merge)(struct iosched *io, unsigned int dir,
			  sector_t start, sector_t end);
	bool (*may_grow)(struct iosched *io, struct request *rq);
	bool (*ready)(struct iosched *io, struct request *rq, bool expired);
	struct request *(*select)(struct iosched *io, unsigned int tier,
				  unsigned int only);
	bool (*take_fresh)(struct iosched *io, struct request *rq);
	void (*dispatched)(struct iosched *io, struct request *rq);
	bool (*may_bypass)(struct iosched *io);
	void (*released)(struct request *rq);
};

/* Add a message to the device's blktrace stream. Costs nothing without a trace. */
#define iosched_note(io, fmt, ...)					\
do {									\
	if (unlikely(iosched_traced((io)->q)))				\
		blk_add_trace_msg((io)->q, fmt, ##__VA_ARGS__);		\
} while (0)

/* The elevator of a queue, which has one of these schedulers. */
static inline struct iosched *iosched_of(struct request_queue *q)
{
	return q->elevator->elevator_data;
}

/* The same, of a hardware queue of it. */
static inline struct iosched *iosched_of_hctx(struct blk_mq_hw_ctx *hctx)
{
	return hctx->sched_data;
}

static inline unsigned long iosched_rq_state(struct request *rq)
{
	return (unsigned long)rq->elv.priv[1];
}

static inline void iosched_rq_set_state(struct request *rq, unsigned long state)
{
	rq->elv.priv[1] = (void *)state;
}

/* I/O priority tier of a request that was inserted. */
static inline unsigned int iosched_rq_tier(struct request *rq)
{
	return iosched_rq_state(rq) >> IOSCHED_RQ_TIER_SHIFT;
}

/* First sector after @rq. */
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
	static const u8 tiers[IOPRIO_CLASS_MASK + 1] = {
		[IOPRIO_CLASS_NONE]	= IOSCHED_BE,
		[IOPRIO_CLASS_RT]	= IOSCHED_RT,
		[IOPRIO_CLASS_BE]	= IOSCHED_BE,
		[IOPRIO_CLASS_IDLE]	= IOSCHED_IDLE,
		/* Not valid. */
		[IOPRIO_CLASS_IDLE + 1 ... IOPRIO_CLASS_MASK] = IOSCHED_BE,
	};

	return tiers[IOPRIO_PRIO_CLASS(ioprio)];
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

/* Return true if only one tier is in use; false also if @tiers is out of date. */
static inline bool iosched_one_tier(struct iosched *io)
{
	return is_power_of_2(io->tiers);
}

/* Return true if all hardware queues share their tags, also the elevator's. */
static inline bool iosched_tags_shared(struct iosched *io)
{
	return io->q->tag_set->flags & BLK_MQ_F_TAG_HCTX_SHARED;
}

/* Most requests that the driver takes: its tags. */
static inline unsigned int iosched_tags(struct iosched *io)
{
	struct blk_mq_tag_set *set = io->q->tag_set;
	unsigned int tags = set->queue_depth - set->reserved_tags;

	return iosched_tags_shared(io) ? tags : tags * io->q->nr_hw_queues;
}

/**
 * iosched_from() - first request of a tree at or after a sector
 * @root: sorted tree
 * @sector: where to begin
 *
 * Return: the request, or NULL if all begin before @sector.
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

/**
 * iosched_ascending() - next request of an ascending sweep over a tree
 * @root: sorted tree
 * @sector: position of the sweep
 *
 * Return: the first request at or after @sector, otherwise the lowest one, or NULL
 * if the tree is empty.
 */
static inline struct request *iosched_ascending(struct rb_root *root,
						sector_t sector)
{
	struct request *rq = iosched_from(root, sector);

	return rq ? rq : iosched_from(root, 0);
}

/* The request of a tier and direction that arrived first, or NULL. Under the lock. */
static inline struct request *iosched_oldest(struct iosched *io,
					     unsigned int tier, unsigned int dir)
{
	return list_first_entry_or_null(&io->fifo[tier][dir], struct request,
					queuelist);
}

/* Of two requests, either of which may be NULL, the one that was allocated first. */
static inline struct request *iosched_older(struct request *a,
					    struct request *b)
{
	if (!a || !b)
		return a ? a : b;
	return a->start_time_ns <= b->start_time_ns ? a : b;
}

/* The oldest request of a tier, or NULL. Under the lock. */
static inline struct request *iosched_oldest_of_tier(struct iosched *io,
						     unsigned int tier)
{
	return iosched_older(iosched_oldest(io, tier, READ),
			     iosched_oldest(io, tier, WRITE));
}

/* Time from the insertion of @rq to its deadline, in jiffies. Under the lock. */
static inline unsigned long iosched_expire(struct iosched *io,
					   struct request *rq)
{
	return io->expire[rq_data_dir(rq)];
}

/* Return true if the deadline of @rq, which may be NULL, has passed at @now, in jiffies. */
static inline bool iosched_has_expired(struct request *rq, unsigned long now)
{
	return rq && time_after_eq(now, (unsigned long)rq->fifo_time);
}

/* The request before or after a queued one in its tree, or NULL. */
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

/**
 * iosched_zalloc() - allocate zeroed memory for a policy
 * @size: bytes
 *
 * Sleeps, but does not wait for I/O: the queue may be frozen.
 *
 * Return: memory that kvfree() frees, or NULL.
 */
static inline void *iosched_zalloc(size_t size)
{
	unsigned int flags = memalloc_noio_save();
	void *memory = kvzalloc(size, GFP_KERNEL);

	memalloc_noio_restore(flags);
	return memory;
}

/* Return true if running @hctx dispatches requests from the elevator. */
static inline bool iosched_hctx_able(struct blk_mq_hw_ctx *hctx)
{
	return !test_bit(BLK_MQ_S_STOPPED, &hctx->state) &&
	       list_empty_careful(&hctx->dispatch);
}

/*
 * Run the queue. Running one hardware queue dispatches the requests of all. The
 * block layer does not call the elevator for one that is stopped or has requests
 * that the driver refused, so choose another in this case.
 */
static inline void iosched_run(struct iosched *io)
{
	struct blk_mq_hw_ctx *hctx = READ_ONCE(io->held_hctx);
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

/* The time in us, never 0; it wraps around after 71 minutes. */
static inline u32 iosched_now_us(void)
{
	return (u32)div_u64(ktime_get_ns(), NSEC_PER_USEC) | 1;
}

/* Clear @held. Return true if it was set. */
static inline bool iosched_unhold(struct iosched *io)
{
	return READ_ONCE(io->held) && xchg(&io->held, 0);
}

/**
 * iosched_wake() - run the queue if requests are held
 * @io: elevator
 *
 * Code that makes room (a completion, a wider bound, a timer) calls this after it
 * has made it. The other side is iosched_hold(), which sets @held and then tries
 * once more to find a request. The barriers on both sides ensure that either
 * this try sees the room or the waker sees @held. While @held is set,
 * has_work() is false, so the block layer does not poll. Any context.
 */
static inline void iosched_wake(struct iosched *io)
{
	/* Pairs with the one in iosched_hold(). */
	smp_mb();
	if (iosched_unhold(io))
		iosched_run(io);
}

/**
 * iosched_sort_fresh() - sort the requests that are not sorted
 * @io: elevator, lock held
 *
 * Call this before using the FIFOs or trees: until then those in iosched.fresh are in
 * none of them. Defined in tmpl/queue.h.
 */
static void iosched_sort_fresh(struct iosched *io);

/**
 * iosched_all_in_flight() - requests that were dispatched and have not completed
 * @io: elevator, lock held: otherwise the number is an estimate
 *
 * With those that bypass the queue, without polled ones. A request that completes at the
 * same time may still be counted. Defined in tmpl/in-flight.h.
 */
static unsigned int iosched_all_in_flight(struct iosched *io);

/**
 * iosched_replace_all() - place all queued requests anew, and run the queue
 * @io: elevator
 * @change: changes the policy's structures; called under the lock while no
 *	request is in them
 * @arg: passed to @change
 *
 * For a setting that decides where requests are placed. Requests in flight stay
 * counted where they were. Takes the lock for IOSCHED_PIECE requests at a time, so that
 * I/O does not wait for all of them; after IOSCHED_REPLACE_US for more, and after
 * IOSCHED_REPLACE_LONG_US for all that are left, so that insertions cannot keep it from its
 * end. May sleep on PREEMPT_RT. The caller sees to it that no two calls run at a time.
 * Defined in tmpl/replace.h.
 */
static void iosched_replace_all(struct iosched *io,
				void (*change)(struct iosched *, void *),
				void *arg);

#endif /* _IOSCHED_H */
