/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PIQ's debugfs files: "piq" (counters), "batches" (those that have requests) and "units"
 * (what is in flight on each).
 */
#ifndef _PIQ_DEBUGFS_H
#define _PIQ_DEBUGFS_H

#include "iosched-debugfs.h"
#include "piq/data.h"

#ifdef CONFIG_BLK_DEBUG_FS

static void piq_counts(struct iosched *io, struct seq_file *m)
{
	struct piq_data *pd = piq_of(io);
	unsigned int dir, i;

	seq_printf(m, "conflicts rr %u ww %u rw %u\n", pd->conflicts[PIQ_RR],
		   pd->conflicts[PIQ_WW], pd->conflicts[PIQ_RW]);
	seq_printf(m, "batches read %u write %u prioritised %u\n",
		   pd->batches[READ], pd->batches[WRITE], pd->prioritised);
	seq_printf(m, "holding %u trials %u changes %u\n", !piq_is_free(pd),
		   pd->trial.trials, pd->trial.changes);
	for (dir = READ; dir <= WRITE; dir++) {
		seq_printf(m, "%s_sizes_log2", iosched_dir_names[dir]);
		for (i = 0; i < PIQ_SIZES; i++)
			seq_printf(m, " %u", pd->sizes[dir][i]);
		seq_putc(m, '\n');
	}
}

IOSCHED_SHOW(piq_counts)

static void piq_show_batch(struct seq_file *m, unsigned int nr,
			   struct cb_queue *queue, struct cb_batch *batch)
{
	seq_printf(m, "%s %s %u %u %u %lld %*pbl %*pbl\n",
		   iosched_tier_names[nr / IOSCHED_DIRS],
		   iosched_dir_names[nr % IOSCHED_DIRS], batch->number,
		   batch->size, batch->gone,
		   div_s64(ktime_get_ns() - batch->since, NSEC_PER_USEC),
		   queue->units, cb_waiting(queue, batch), queue->units,
		   batch->vectors);
}

static bool piq_batches(struct iosched *io, struct seq_file *m,
			unsigned int row)
{
	struct cb_queue *queue = &piq_map_of(piq_of(io))->queue[0][0];
	unsigned int nr, before = 0;
	struct cb_batch *batch;

	if (!row)
		seq_puts(m, "tier dir batch size gone age_us waiting units\n");
	for (nr = 0; nr < IOSCHED_TIERS * IOSCHED_DIRS; nr++)
		list_for_each_entry(batch, &queue[nr].batches, list)
			if (before++ == row) {
				piq_show_batch(m, nr, &queue[nr], batch);
				return true;
			}
	return false;
}

IOSCHED_SHOW_ROWS(piq_batches)

static bool piq_units(struct iosched *io, struct seq_file *m, unsigned int row)
{
	struct piq_map *map = piq_map_of(piq_of(io));

	if (!row)
		seq_printf(m, "# %u units of %u planes\nunit served in_flight\n",
			   map->lv.units, map->lv.planes);
	if (row >= map->lv.units)
		return false;
	seq_printf(m, "%u %u %u\n", row, held_served(&map->units, row),
		   held_by(&map->units, row));
	return true;
}

IOSCHED_SHOW_ROWS(piq_units)
#define PIQ_DEBUGFS							\
	{ "piq", 0400, piq_counts_show },				\
	{ "batches", 0400, piq_batches_show },				\
	{ "units", 0400, piq_units_show }

#endif /* CONFIG_BLK_DEBUG_FS */

#endif /* _PIQ_DEBUGFS_H */
