/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Think time: whether it is worth keeping the drive idle for a moment because
 * a process whose request has just completed is about to send its next one.
 *
 * For each process (struct bp_think), means are kept of the time between the
 * completion of a request and the next request, of the distance between its
 * reads, and of the share of its writes that leave their erase block. The
 * latest sample counts an eighth. A sample is cut at twice the limit that the
 * mean is compared with, so that one long pause is forgotten after a few short
 * ones.
 *
 * A process that has not come back yet is waited for if most newcomers before
 * it came back soon (struct bp_newcomers), so that processes that read once and
 * exit are not waited for.
 *
 * A wait (struct bp_antic) begins after the completion and ends in one of three
 * ways: the process sends what was waited for, it does not, or another request
 * is dispatched first.
 *
 * Times are in microseconds and wrap around; only differences count. Pure: the
 * caller has the lock, the clock and the timer.
 */
#ifndef _BP_THINK_TIME_H
#define _BP_THINK_TIME_H

#include <linux/minmax.h>
#include <linux/types.h>

#include "iosched.h"

/* A mean is kept times 8; the latest sample counts 1 / 8. */
#define BP_MEAN_SHIFT	3

/* Shares are parts of this. */
#define BP_WHOLE	256

/* Wait for a new process if at least this share of new ones issues soon again. */
#define BP_NEWCOMERS_MIN	(BP_WHOLE / 2)

/* A process stays in its block if at most this share of its writes leaves. */
#define BP_STRAYS_MAX	(BP_WHOLE / 2)

/* How a wait ended. */
enum bp_outcome {
	BP_HIT,		/* the process came back, near its last read or in its block */
	BP_MISS,	/* it did not, or came back far from it */
	BP_BROKEN,	/* the wait ended for another reason */
	BP_OUTCOMES,
};

/**
 * struct bp_think - what is known of a process
 * @done: when its last request completed
 * @mean: time from there to its next one, times 8
 * @distance: KB between the end of a read and the next read, times 8
 * @end: sector behind its last read, 0 for none
 * @write_end: sector behind its last write, 0 for none
 * @strays: of the writes with which it came back, the share that left the erase
 *	block of the write before, of BP_WHOLE; times 8
 * @known: it has come back at least once
 * @counted: it was counted as a newcomer
 */
struct bp_think {
	u32 done;
	u32 mean;
	u32 distance;
	u64 end;
	u64 write_end;
	u32 strays;
	bool known;
	bool counted;
};

/* Share of the newcomers that came back soon, of BP_WHOLE. */
struct bp_newcomers {
	u32 soon;
};

/**
 * struct bp_limits - what is worth waiting for
 * @wait: longest wait
 * @near_kb: distance at which a read is still near; 0: any distance
 */
struct bp_limits {
	u32 wait;
	u32 near_kb;
};

/**
 * struct bp_antic - the wait under way
 * @awaited: process that is waited for, or NULL
 * @since: when the wait began
 * @ended: number of waits by outcome
 * @waited: time spent waiting
 */
struct bp_antic {
	struct bp_think *awaited;
	u32 since;
	unsigned int ended[BP_OUTCOMES];
	u64 waited;
};

/* Add a sample to a mean that is compared with @limit, at most 2^28 - 1. */
static inline void bp_learn(u32 *mean, u32 sample, u32 limit, bool first)
{
	sample = min(sample, 2 * limit);
	if (first)
		*mean = sample << BP_MEAN_SHIFT;
	else
		*mean += sample - (*mean >> BP_MEAN_SHIFT);
}

/* KB between the last read of a process and @sector. */
static inline u32 bp_distance(const struct bp_think *think, u64 sector)
{
	u64 sectors = sector > think->end ? sector - think->end :
					    think->end - sector;

	return min_t(u64, sectors / IOSCHED_KB_SECTORS, U32_MAX);
}

static inline bool bp_is_near(const struct bp_think *think, u64 sector,
			      const struct bp_limits *limits)
{
	return !limits->near_kb ||
	       bp_distance(think, sector) <= limits->near_kb;
}

/* Count a process as a newcomer that has not come back, once. */
static inline void bp_count_newcomer(struct bp_think *think,
				     struct bp_newcomers *all)
{
	if (think->known || think->counted)
		return;
	think->counted = true;
	all->soon -= all->soon >> BP_MEAN_SHIFT;
}

/**
 * bp_learn_pause() - learn from a process that sends a request and had none left
 * @think: the process
 * @all: what is known of newcomers
 * @now: current time
 * @limits: settings
 */
static inline void bp_learn_pause(struct bp_think *think,
				  struct bp_newcomers *all, u32 now,
				  const struct bp_limits *limits)
{
	u32 pause = now - think->done;

	if (!think->known && pause <= limits->wait)
		all->soon += BP_WHOLE >> BP_MEAN_SHIFT;
	bp_learn(&think->mean, pause, limits->wait, !think->known);
	think->known = true;
}

/**
 * bp_learn_read() - learn from a read that a process sends
 * @think: the process
 * @sector: first sector of the read
 * @sectors: its size
 * @limits: settings
 */
static inline void bp_learn_read(struct bp_think *think, u64 sector,
				 u32 sectors, const struct bp_limits *limits)
{
	if (think->end)
		bp_learn(&think->distance, bp_distance(think, sector),
			 limits->near_kb, false);
	think->end = sector + sectors;
}

/**
 * bp_learn_write() - learn from a write that a process sends
 * @think: the process
 * @sector: first sector of the write
 * @sectors: its size
 * @stays: it begins in the erase block in which the last one ended
 * @back: the process had no request left
 */
static inline void bp_learn_write(struct bp_think *think, u64 sector,
				  u32 sectors, bool stays, bool back)
{
	if (think->write_end && back)
		bp_learn(&think->strays, stays ? 0 : BP_WHOLE, BP_WHOLE,
			 false);
	think->write_end = sector + sectors;
}

/* Return true if a process that comes back to write mostly stays in a block. */
static inline bool bp_stays(const struct bp_think *think)
{
	return think->write_end &&
	       think->strays >> BP_MEAN_SHIFT <= BP_STRAYS_MAX;
}

/* Return true if a process is expected to come back soon, and near. */
static inline bool bp_worth(const struct bp_think *think,
			    const struct bp_newcomers *all,
			    const struct bp_limits *limits)
{
	if (!limits->wait)
		return false;
	if (!think->known)
		return all->soon >= BP_NEWCOMERS_MIN;
	if (think->mean >> BP_MEAN_SHIFT > limits->wait)
		return false;
	return !limits->near_kb ||
	       think->distance >> BP_MEAN_SHIFT <= limits->near_kb;
}

/**
 * bp_wait_begin() - begin to wait for a process if that is worth it
 * @antic: a wait that is not under way
 * @think: the process; it has no request queued or in flight
 * @all: what is known of newcomers
 * @now: current time
 * @limits: settings
 *
 * Return: length of the wait, 0 for none.
 */
static inline u32 bp_wait_begin(struct bp_antic *antic, struct bp_think *think,
				const struct bp_newcomers *all, u32 now,
				const struct bp_limits *limits)
{
	u32 gone = now - think->done;

	if (gone >= limits->wait || !bp_worth(think, all, limits))
		return 0;
	antic->awaited = think;
	antic->since = now;
	return limits->wait - gone;
}

static inline void bp_wait_end(struct bp_antic *antic, enum bp_outcome outcome,
			       u32 now)
{
	if (!antic->awaited)
		return;
	antic->waited += now - antic->since;
	antic->ended[outcome]++;
	antic->awaited = NULL;
}

#endif /* _BP_THINK_TIME_H */
