/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Anticipation: is it worth keeping the drive idle for a moment because a
 * process whose request has just completed is about to send the next one?
 *
 * What is known of a process (struct bp_think) is the time between the
 * completion of a request and its next one, and how far apart its reads are.
 * Both are means in which the latest sample counts an eighth. A sample is cut
 * at twice the limit that the mean is compared with, so that one long pause is
 * forgotten after a few short ones. Of a process that has not come back yet
 * nothing is known: it is waited for when those before it did come back soon
 * (struct bp_newcomers), so that processes that read once and exit are not.
 *
 * A wait (struct bp_antic) begins after the completion and has one of three
 * ends: the process came back with what was waited for, it did not, or
 * something else was to be done first.
 *
 * Times are in microseconds and wrap around; only differences count. Used by
 * the BP elevator, under its lock. Pure: whoever waits owns clock and timer.
 */
#ifndef _BP_THINK_TIME_H
#define _BP_THINK_TIME_H

#include <linux/minmax.h>
#include <linux/types.h>

/* The latest sample counts 1 / 8. */
#define BP_MEAN_SHIFT	3

/* Shares are out of this. */
#define BP_WHOLE	256

/* Share of the newcomers that has to come back soon for them to be waited for. */
#define BP_NEWCOMERS_MIN	(BP_WHOLE / 2)

/* Largest share of its writes that leaves a block for a process to stay there. */
#define BP_STRAYS_MAX	(BP_WHOLE / 2)

/* How a wait ended. */
enum bp_outcome {
	BP_HIT,		/* the process came back, near its last read */
	BP_MISS,	/* it did not, or came back far from it */
	BP_BROKEN,	/* another request went first */
	BP_OUTCOMES,
};

/**
 * struct bp_think - what is known of a process
 * @done: when its last request completed
 * @mean: time from there to its next one, times 8
 * @distance: KB between the end of a read and the next read, times 8
 * @end: sector behind its last read
 * @write_end: sector behind its last write
 * @strays: share of its writes that left the erase block of the one before when
 *	it came back, of BP_WHOLE; times 8
 * @known: it has come back at least once
 * @counted: as a newcomer
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

/* Share of the newcomers that came back soon, of BP_WHOLE; a mean as above. */
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
 * struct bp_antic - the wait, if there is one
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

static inline void bp_learn(u32 *mean, u32 sample, u32 limit, bool first)
{
	limit = min_t(u32, limit, U32_MAX >> (BP_MEAN_SHIFT + 1));
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

	return min_t(u64, sectors >> 1, U32_MAX);
}

static inline bool bp_is_near(const struct bp_think *think, u64 sector,
			      const struct bp_limits *limits)
{
	return !limits->near_kb ||
	       bp_distance(think, sector) <= limits->near_kb;
}

/* A newcomer has had its first request completed: nothing until it is back. */
static inline void bp_newcomer(struct bp_newcomers *all, struct bp_think *think)
{
	if (think->known || think->counted)
		return;
	think->counted = true;
	all->soon -= all->soon >> BP_MEAN_SHIFT;
}

/**
 * bp_came_back() - a process that had no request left sends one
 * @think: the process
 * @all: what is known of newcomers
 * @now: time
 * @limits: settings
 */
static inline void bp_came_back(struct bp_think *think,
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
 * bp_reads() - a process sends a read
 * @think: the process
 * @sector: first sector of the read
 * @sectors: its size
 * @limits: settings
 */
static inline void bp_reads(struct bp_think *think, u64 sector, u32 sectors,
			    const struct bp_limits *limits)
{
	if (think->end)
		bp_learn(&think->distance, bp_distance(think, sector),
			 limits->near_kb, false);
	think->end = sector + sectors;
}

/**
 * bp_writes() - a process sends a write
 * @think: the process
 * @sector: first sector of the write
 * @sectors: its size
 * @stays: it begins in the erase block in which the last one ended
 * @back: the process had no request left
 */
static inline void bp_writes(struct bp_think *think, u64 sector, u32 sectors,
			     bool stays, bool back)
{
	if (think->write_end && back)
		bp_learn(&think->strays, stays ? 0 : BP_WHOLE, BP_WHOLE,
			 false);
	think->write_end = sector + sectors;
}

/* Does a process that comes back to write stay in its block, mostly? */
static inline bool bp_stays(const struct bp_think *think)
{
	return think->write_end &&
	       think->strays >> BP_MEAN_SHIFT <= BP_STRAYS_MAX;
}

/* Does a process come back soon, and near, as far as is known? */
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
 * bp_wait_begin() - wait for a process if that is worth it
 * @antic: no wait under way
 * @think: the process; it has no request queued or in flight
 * @all: what is known of newcomers
 * @now: time
 * @limits: settings
 *
 * Return: for how long; 0 for no wait.
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
