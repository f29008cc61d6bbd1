/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trials: whether it pays to hold requests that conflict. A part of piq-iosched.c.
 *
 * The map may be wrong: the geometry is a guess, the drive allocates dynamically, or it
 * reorders by itself. Then a request that is held is parallelism lost, and what the map
 * says of the drive does not show it. So now and then windows of time with and without
 * holding alternate, and PIQ goes on with the better one.
 *
 * The better one has the greater power, which is the throughput divided by the mean
 * latency (Kleinrock, "Power and deterministic rules of thumb for probabilistic problems
 * in computer communications", 1979): a load that waits for completions shows in both, a
 * load of a given rate in the latency. The powers of both directions are multiplied, as
 * log2 in 1/256, and the differences are added up until they are large enough.
 *
 * A trial begins at most PIQ_TRIAL_FIRST after the one before if that has changed the
 * mode; otherwise the time between two doubles, up to PIQ_TRIAL_LAST. So a mode that
 * loses is used for about a hundredth of the time.
 *
 * Locking: iosched.lock, but for the sums of the window, which completions change.
 */
#ifndef _PIQ_TRIAL_H
#define _PIQ_TRIAL_H

#include <linux/atomic.h>
#include <linux/log2.h>
#include <linux/time64.h>

#include "iosched.h"

/* ns from the end of a trial to the next one */
#define PIQ_TRIAL_FIRST		((u64)NSEC_PER_SEC)
#define PIQ_TRIAL_LAST		(16ULL * NSEC_PER_SEC)

/* A window ends after so many completions, or after this time if there were some. */
#define PIQ_WINDOW_MOST		1024U
#define PIQ_WINDOW_SOME		64U
#define PIQ_WINDOW_NS		(NSEC_PER_SEC / 10)
/* A trial is given up after this time: there are too few requests. */
#define PIQ_TRIAL_NS		(10ULL * NSEC_PER_SEC)

/* A direction counts if it has so many completions in a window of one of the modes. */
#define PIQ_DIR_LEAST		16

/* Fractions of log2. */
#define PIQ_LOG_SHIFT		8
/* A pair of windows counts at most 1, and 1/2 decides. */
#define PIQ_PAIR_MOST		256
#define PIQ_DECIDES		(PIQ_PAIR_MOST / 2)
#define PIQ_PAIRS		8

/**
 * struct piq_sums - what completions count in a window, by direction
 * @nr: completions. Atomic.
 * @us: sum of their latencies since the insertion. Atomic.
 */
struct piq_sums {
	atomic_t nr;
	atomic64_t us;
};

/**
 * struct piq_trial - the mode, and the trial under way
 * @free: the present mode: no request is held
 * @better: the mode that goes on after the trial
 * @conflicts: a request was held, or could have been, since the last trial
 * @window: a window is under way
 * @skip: the requests from before it still complete
 * @backlog: their number
 * @pairs: pairs of windows so far
 * @power: of the last window of each mode, log2
 * @counts: by direction: that window has enough completions
 * @sum: of the differences, positive if holding is better
 * @next: time of the next trial, in ns
 * @pause: ns between trials
 * @began: time at which the trial began, in ns
 * @since: time at which the window began, in ns
 * @sums: of the window
 * @trials: number of trials that have ended
 * @changes: number of trials that have changed the mode
 */
struct piq_trial {
	bool free;
	bool better;
	bool conflicts;
	bool window;
	bool skip;
	unsigned int backlog;
	unsigned int pairs;
	int power[2][IOSCHED_DIRS];
	bool counts[2][IOSCHED_DIRS];
	int sum;
	u64 next;
	u64 pause;
	u64 began;
	u64 since;
	struct piq_sums sums[IOSCHED_DIRS];
	unsigned int trials;
	unsigned int changes;
};

/* log2 of @value, which is not 0, linear between powers of two. */
static inline int piq_log2(u64 value)
{
	unsigned int whole = ilog2(value);

	/* The bits after the first one. */
	value = value << (63 - whole) << 1;
	return (whole << PIQ_LOG_SHIFT) + (int)(value >> (64 - PIQ_LOG_SHIFT));
}

/* A request of this direction has completed in a window. Any context, no lock. */
static inline void piq_trial_count(struct piq_trial *trial, unsigned int dir,
				   u64 latency_ns)
{
	struct piq_sums *sums = &trial->sums[dir];

	atomic64_add(div_u64(latency_ns, NSEC_PER_USEC) + 1, &sums->us);
	atomic_inc(&sums->nr);
}

static inline unsigned int piq_window_nr(struct piq_trial *trial)
{
	return atomic_read(&trial->sums[READ].nr) +
	       atomic_read(&trial->sums[WRITE].nr);
}

static inline void piq_window_clear(struct piq_trial *trial, u64 now)
{
	unsigned int dir;

	for (dir = READ; dir <= WRITE; dir++) {
		atomic_set(&trial->sums[dir].nr, 0);
		atomic64_set(&trial->sums[dir].us, 0);
	}
	trial->since = now;
}

static inline void piq_window_begin(struct piq_trial *trial, bool free, u64 now)
{
	trial->free = free;
	trial->skip = true;
	piq_window_clear(trial, now);
	WRITE_ONCE(trial->window, true);
}

/*
 * Store the powers of the window that ends. If none of a direction has completed, count
 * one that took all the time.
 */
static inline void piq_window_end(struct piq_trial *trial, u64 now)
{
	u64 took = div_u64(now - trial->since, NSEC_PER_USEC) + 1;
	unsigned int dir;

	for (dir = READ; dir <= WRITE; dir++) {
		unsigned int nr = atomic_read(&trial->sums[dir].nr);
		/* piq_window_clear() may clear the time only of a completion. */
		u64 us = nr ? max_t(u64, atomic64_read(&trial->sums[dir].us), 1) : took;

		trial->counts[trial->free][dir] = nr >= PIQ_DIR_LEAST;
		trial->power[trial->free][dir] = 2 * piq_log2(max(nr, 1U)) -
						 piq_log2(us) - piq_log2(took);
	}
}

/* How much greater the power of the last window with holding is than without. */
static inline int piq_pair(struct piq_trial *trial)
{
	unsigned int dir;
	int sum = 0;

	for (dir = READ; dir <= WRITE; dir++)
		if (trial->counts[false][dir] || trial->counts[true][dir])
			sum += trial->power[false][dir] - trial->power[true][dir];
	return clamp(sum, -PIQ_PAIR_MOST, PIQ_PAIR_MOST);
}

static inline void piq_trial_end(struct piq_trial *trial, bool free, u64 now)
{
	bool change = free != trial->better;

	WRITE_ONCE(trial->window, false);
	trial->pause = change ? PIQ_TRIAL_FIRST :
			min(max(2 * trial->pause, PIQ_TRIAL_FIRST), PIQ_TRIAL_LAST);
	trial->next = now + trial->pause;
	trial->conflicts = false;
	trial->free = free;
	trial->better = free;
	trial->trials++;
	trial->changes += change;
}

/* Return true if the window is over. */
static inline bool piq_window_over(struct piq_trial *trial, u64 now)
{
	unsigned int nr = piq_window_nr(trial);

	return nr >= max(PIQ_WINDOW_MOST, 4 * trial->backlog) ||
	       (nr >= max(PIQ_WINDOW_SOME, trial->backlog) &&
		now - trial->since >= PIQ_WINDOW_NS);
}

/*
 * A window has ended: go on with the other mode and return true, or end the trial and
 * return false.
 */
static inline bool piq_trial_go_on(struct piq_trial *trial, u64 now)
{
	piq_window_end(trial, now);
	/* Each pair begins with the mode that is tried. */
	if (trial->free == trial->better) {
		trial->sum += piq_pair(trial);
		trial->pairs++;
		if (abs(trial->sum) >= PIQ_DECIDES) {
			piq_trial_end(trial, trial->sum < 0, now);
			return false;
		}
		if (trial->pairs == PIQ_PAIRS) {
			piq_trial_end(trial, trial->better, now);
			return false;
		}
	}
	piq_window_begin(trial, !trial->free, now);
	return true;
}

/**
 * piq_trial_step() - let time pass
 * @trial: trials
 * @now: time, in ns
 *
 * Call this before selecting a request, under the lock. It may change @trial->free.
 *
 * Return: true if a window begins. The caller then sets @trial->backlog.
 */
static inline bool piq_trial_step(struct piq_trial *trial, u64 now)
{
	if (!trial->window) {
		if (!trial->conflicts || now < trial->next)
			return false;
		trial->sum = 0;
		trial->pairs = 0;
		trial->began = now;
		piq_window_begin(trial, !trial->better, now);
		return true;
	} else if (now - trial->began > PIQ_TRIAL_NS) {
		piq_trial_end(trial, trial->better, now);
	} else if (trial->skip) {
		if (piq_window_nr(trial) < trial->backlog)
			return false;
		trial->skip = false;
		piq_window_clear(trial, now);
	} else if (piq_window_over(trial, now)) {
		return piq_trial_go_on(trial, now);
	}
	return false;
}

#endif /* _PIQ_TRIAL_H */
