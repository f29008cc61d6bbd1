/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A minimal policy for the tests of the core: reads before writes, lowest
 * sector first, a bound on the requests in flight, and borders of merging.
 */
#ifndef _CORE_POLICY_H
#define _CORE_POLICY_H

#include "fake-blk.h"
#include "iosched-debugfs.h"

#define IOSCHED_NAME "core"
#define CORE_BORDER	64U	/* sectors; nothing merges across multiples of it */

struct core_data {
	struct iosched io;
	atomic_t in_flight;

	unsigned int limit;
	unsigned int longest;	/* most sectors of a merged request, 0: any */
	unsigned int flavour;
	bool bypassable;	/* what may_bypass() returns */
	bool writes_first;

	/* number of calls by the core */
	unsigned int placed, removed, inherited, resized;
};

/* What core_init() returns. */
static int core_init_error;

static struct core_data *core_of(struct iosched *io)
{
	return container_of(io, struct core_data, io);
}

static const char * const core_flavours[] = { "plain", "salted" };

#define CORE_TUNABLES(T, C)						\
	T(core_data, limit, 0, 0, 100, iosched_set, "most in flight")	\
	C(core_data, flavour, 0, core_flavours, iosched_set, "a choice")

static int core_init(struct iosched *io)
{
	return core_init_error;
}

static void core_exit(struct iosched *io)
{
	struct core_data *data = core_of(io);

	WARN_ON(data->placed != data->removed ||
		atomic_read(&data->in_flight));
}

static void core_place(struct iosched *io, struct request *rq)
{
	core_of(io)->placed++;
}

static void core_removed(struct iosched *io, struct request *rq,
			 struct request *heir)
{
	core_of(io)->removed++;
	core_of(io)->inherited += !!heir;
}

static void core_resized(struct iosched *io, struct request *rq)
{
	core_of(io)->resized++;
}

static bool core_may_merge(struct iosched *io, unsigned int dir,
			   sector_t start, sector_t end)
{
	unsigned int longest = core_of(io)->longest;

	return start / CORE_BORDER == (end - 1) / CORE_BORDER &&
	       (!longest || end - start <= longest);
}

static bool core_ready(struct iosched *io, struct request *rq, bool expired)
{
	struct core_data *data = core_of(io);

	return !data->limit || atomic_read(&data->in_flight) < data->limit;
}

static struct request *core_select(struct iosched *io, unsigned int tier,
				   unsigned int only)
{
	struct request *rq, *write;

	rq = only == WRITE ? NULL : iosched_from(&io->sort[tier][READ], 0);
	write = only == READ ? NULL : iosched_from(&io->sort[tier][WRITE], 0);
	if (write && (!rq || core_of(io)->writes_first))
		rq = write;
	return rq && core_ready(io, rq, false) ? rq : NULL;
}

static void core_dispatched(struct iosched *io, struct request *rq)
{
	atomic_inc(&core_of(io)->in_flight);
}

static bool core_may_bypass(struct iosched *io)
{
	return core_of(io)->bypassable;
}

static void core_released(struct request *rq)
{
	atomic_dec(&core_of(iosched_of(rq->q))->in_flight);
}

static const struct iosched_policy core_policy = {
	.size		= sizeof(struct core_data),
	.init		= core_init,
	.exit		= core_exit,
	.place		= core_place,
	.removed	= core_removed,
	.resized	= core_resized,
	.may_merge	= core_may_merge,
	.ready		= core_ready,
	.select		= core_select,
	.dispatched	= core_dispatched,
	.may_bypass	= core_may_bypass,
	.released	= core_released,
};

#define IOSCHED_POLICY		core_policy
#define IOSCHED_POLICY_TUNABLES	CORE_TUNABLES
#define IOSCHED_POLICY_DEBUGFS	{ "none", 0400, iosched_counters_show }
#include "iosched-tmpl.h"

#endif /* _CORE_POLICY_H */
