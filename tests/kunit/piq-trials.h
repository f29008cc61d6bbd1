/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of trials: a made-up drive completes so many requests a ms, each with so much
 * latency, with and without holding.
 */
#ifndef _PIQ_TRIALS_H
#define _PIQ_TRIALS_H

#include "fake-blk.h"
#include "../../include/piq/trial.h"

/* Requests outstanding on the made-up drive. */
#define PIQ_OUTSTANDING	64

struct piq_drive {
	/* by mode (0: requests are held) and direction */
	unsigned int per_ms[2][IOSCHED_DIRS];
	unsigned int latency_us[2][IOSCHED_DIRS];
};

/* Let the drive work for @ms from *@now on; return the ms in which requests were held. */
static unsigned int piq_drive_run(struct piq_trial *trial,
				  const struct piq_drive *drive, u64 *now,
				  unsigned int ms)
{
	unsigned int dir, i, held = 0;

	while (ms--) {
		*now += NSEC_PER_MSEC;
		trial->conflicts = true;
		if (piq_trial_step(trial, *now))
			trial->backlog = PIQ_OUTSTANDING;
		held += !trial->free;
		for (dir = READ; dir <= WRITE; dir++)
			for (i = 0; i < drive->per_ms[trial->free][dir]; i++)
				piq_trial_count(trial, dir,
						drive->latency_us[trial->free][dir] *
						(u64)NSEC_PER_USEC);
	}
	return held;
}

static void piq_trial_log(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, piq_log2(1), 0);
	KUNIT_EXPECT_EQ(test, piq_log2(8), 3 << PIQ_LOG_SHIFT);
	KUNIT_EXPECT_EQ(test, piq_log2(12), (3 << PIQ_LOG_SHIFT) + PIQ_PAIR_MOST / 2);
	KUNIT_EXPECT_EQ(test, piq_log2(U64_MAX), (64 << PIQ_LOG_SHIFT) - 1);
}

/* Holding wins: it goes on but for about a hundredth of the time. */
static void piq_trial_keeps(struct kunit *test)
{
	static const struct piq_drive drive = {
		.per_ms = { { 20, 20 }, { 15, 15 } },
		.latency_us = { { 1000, 2000 }, { 1500, 2500 } },
	};
	struct piq_trial trial = { };
	u64 now = 0;

	KUNIT_EXPECT_GT(test, piq_drive_run(&trial, &drive, &now, 100000), 98500U);
	KUNIT_EXPECT_EQ(test, trial.changes, 0U);
	KUNIT_EXPECT_GT(test, trial.trials, 5U);
}

/* Holding loses a tenth: it ends within a second. When it wins, it comes back. */
static void piq_trial_changes(struct kunit *test)
{
	static const struct piq_drive loses = {
		.per_ms = { { 18, 18 }, { 20, 20 } },
		.latency_us = { { 1100, 1100 }, { 1000, 1000 } },
	};
	static const struct piq_drive wins = {
		.per_ms = { { 20, 20 }, { 18, 18 } },
		.latency_us = { { 1000, 1000 }, { 1100, 1100 } },
	};
	struct piq_trial trial = { };
	u64 now = 0;

	piq_drive_run(&trial, &loses, &now, 1000);
	KUNIT_EXPECT_TRUE(test, trial.better);
	KUNIT_EXPECT_LT(test, piq_drive_run(&trial, &loses, &now, 100000), 1500U);
	piq_drive_run(&trial, &wins, &now, 17000);
	KUNIT_EXPECT_FALSE(test, trial.better);
	KUNIT_EXPECT_EQ(test, trial.changes, 2U);
}

/* A load of a given rate shows in the latency only. */
static void piq_trial_latency(struct kunit *test)
{
	static const struct piq_drive drive = {
		.per_ms = { { 5, 5 }, { 5, 5 } },
		.latency_us = { { 2000, 1000 }, { 1000, 1000 } },
	};
	struct piq_trial trial = { };
	u64 now = 0;

	piq_drive_run(&trial, &drive, &now, 1000);
	KUNIT_EXPECT_TRUE(test, trial.better);
}

/* Reads that starve without holding count, though hardly any completes. */
static void piq_trial_starving(struct kunit *test)
{
	static const struct piq_drive drive = {
		.per_ms = { { 4, 20 }, { 0, 24 } },
		.latency_us = { { 1000, 1000 }, { 0, 900 } },
	};
	struct piq_trial trial = { };
	u64 now = 0;

	piq_drive_run(&trial, &drive, &now, 20000);
	KUNIT_EXPECT_FALSE(test, trial.better);
	KUNIT_EXPECT_EQ(test, trial.changes, 0U);
}

/* No difference, no change; too few requests, no decision. */
static void piq_trial_undecided(struct kunit *test)
{
	static const struct piq_drive same = {
		.per_ms = { { 20, 20 }, { 20, 20 } },
		.latency_us = { { 1000, 1000 }, { 1000, 1000 } },
	};
	static const struct piq_drive idle = { };
	struct piq_trial trial = { };
	u64 now = 0;

	piq_drive_run(&trial, &same, &now, 10000);
	KUNIT_EXPECT_GT(test, trial.trials, 1U);
	KUNIT_EXPECT_EQ(test, trial.changes, 0U);
	memset(&trial, 0, sizeof(trial));
	piq_drive_run(&trial, &idle, &now, 11000);
	KUNIT_EXPECT_FALSE(test, trial.window);
	KUNIT_EXPECT_EQ(test, trial.trials, 1U);
}

#endif /* _PIQ_TRIALS_H */
