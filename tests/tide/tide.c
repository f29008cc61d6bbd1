// SPDX-License-Identifier: GPL-2.0
/*
 * tide: the core alone, to compare the policies with, and an example of one.
 *
 * What keeps reads fast beside writes is what the core does for every policy
 * (include/tmpl/readers/, include/tmpl/driver.h). This one adds no order of its own:
 *
 *  1. Dispatch the oldest request of the highest priority class in use.
 *  2. During the turn of one direction, dispatch the oldest of that direction.
 *  3. While no request is queued, requests bypass the scheduler.
 *
 * (In no paper.)
 */
#include "iosched-debugfs.h"

#define IOSCHED_NAME "tide"

static struct request *tide_select(struct iosched *io, unsigned int tier,
				   unsigned int only)
{
	lockdep_assert_held(&io->lock);
	return only == IOSCHED_ANY ? iosched_oldest_of_tier(io, tier) :
				     iosched_oldest(io, tier, only);
}

static bool tide_take_fresh(struct iosched *io, struct request *rq)
{
	return true;
}

static bool tide_may_bypass(struct iosched *io)
{
	return true;
}

/* It has none but the core's. */
#define TIDE_TUNABLES(T, C)

static const struct iosched_policy tide_policy = {
	.size		= sizeof(struct iosched),
	.select		= tide_select,
	.take_fresh	= tide_take_fresh,
	.may_bypass	= tide_may_bypass,
};

#define IOSCHED_POLICY		tide_policy
#define IOSCHED_POLICY_TUNABLES	TIDE_TUNABLES
#include "iosched-tmpl.h"

MODULE_AUTHOR("The ssd-iosched developers");
MODULE_DESCRIPTION("The core of the I/O schedulers for SSDs, without a policy of a paper");
MODULE_LICENSE("GPL");
/* A module NAME-iosched needs none. */
MODULE_ALIAS("tide-iosched");
