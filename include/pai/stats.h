/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PAI's statistics of dispatched requests by class, which debugfs shows.
 */
#ifndef _PAI_STATS_H
#define _PAI_STATS_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/seq_file.h>

#include "iosched-debugfs.h"
#include "iosched.h"
#include "pai/classes.h"
#include "pai/geometry.h"

/**
 * struct pai_stats - statistics of a direction
 * @requests: requests dispatched, by class
 * @aligned: of those, requests that begin on a boundary
 * @full: of those, requests as large as the buffer
 * @merges: bios and requests merged into pending requests
 * @promoted: pending requests that became well-split by a merge
 * @expired: pending requests dispatched because they were due
 * @waited: sum of the times for which requests were pending, each until its
 *	dispatch or until it was due, in ns. Only requests that were held or
 *	passed over count.
 * @longest: longest of these times
 */
struct pai_stats {
	unsigned int requests[PAI_CLASSES];
	unsigned int aligned;
	unsigned int full;
	unsigned int merges;
	unsigned int promoted;
	unsigned int expired;
	u64 waited;
	u64 longest;
};

/* Count @rq, which is dispatched. @full: from pai_full_size(). */
static inline void pai_stats_dispatched(struct pai_stats *st,
					const struct pai_params *p,
					struct request *rq, unsigned int full)
{
	st->requests[pai_class_of(rq)]++;
	st->aligned += pai_aligned(p, blk_rq_pos(rq), full);
	st->full += pai_is_full(p, blk_rq_sectors(rq), full);
}

/* Count a pending request that is dispatched after @waited ns. */
static inline void pai_stats_waited(struct pai_stats *st, u64 waited,
				    bool expired)
{
	st->waited += waited;
	st->longest = max(st->longest, waited);
	st->expired += expired;
}

#ifdef CONFIG_BLK_DEBUG_FS
static unsigned int pai_percent(unsigned int part, unsigned int all)
{
	return all ? div_u64(100ULL * part + all / 2, all) : 0;
}

/* Print the statistics of both directions. */
static void pai_stats_print(struct pai_stats *stats, struct seq_file *m)
{
	unsigned int dir;

	seq_puts(m, "dir well_split closed pending aligned full aligned_percent full_percent merges promoted expired waited_us longest_us\n");
	for (dir = READ; dir <= WRITE; dir++) {
		struct pai_stats *st = &stats[dir];
		unsigned int *nr = st->requests;
		unsigned int all = nr[PAI_WELL_SPLIT] + nr[PAI_CLOSED] +
				   nr[PAI_PENDING];

		seq_printf(m, "%s %u %u %u %u %u %u %u %u %u %u %llu %llu\n",
			   iosched_dir_names[dir], nr[PAI_WELL_SPLIT],
			   nr[PAI_CLOSED], nr[PAI_PENDING], st->aligned,
			   st->full, pai_percent(st->aligned, all),
			   pai_percent(st->full, all), st->merges,
			   st->promoted, st->expired,
			   div_u64(st->waited, NSEC_PER_USEC),
			   div_u64(st->longest, NSEC_PER_USEC));
	}
}
#endif

#endif /* _PAI_STATS_H */
