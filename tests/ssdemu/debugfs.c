// SPDX-License-Identifier: GPL-2.0
/*
 * The state of a device, in /sys/kernel/debug/ssdemu/<name>/:
 *
 *	config	the effective configuration, key=value
 *	stats	statistics, in the device's time; a write to this file resets them
 *	units	busy time of channels, units and planes, erases of planes
 *	where	write "sector [sectors]", read the location of these pages
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include "ssdemu.h"

/* Most sectors that "where" locates at once, since it holds the lock meanwhile. */
#define WHERE_MAX_SECTORS	4096

static struct dentry *ssdemu_root;

/**
 * ssdemu_stats_reset() - start the statistics from zero
 * @dev: device
 *
 * The state of the flash stays. An operation under way counts from now on.
 */
void ssdemu_stats_reset(struct ssdemu *dev)
{
	struct ssdemu_stats *stats = &dev->stats;
	u32 i;

	memset(stats, 0, sizeof(*stats));
	stats->since = dev->now;
	stats->read.min_ns = U64_MAX;
	stats->write.min_ns = U64_MAX;
	stats->flush.min_ns = U64_MAX;
	stats->discard.min_ns = U64_MAX;
	stats->max_units_busy = dev->units_busy;
	dev->active_since = dev->now;
	if (dev->head_blocked_since)
		dev->head_blocked_since = dev->now;

	for (i = 0; i < dev->cfg.channels; i++) {
		dev->channels[i].bus.busy_ns = 0;
		dev->channels[i].bus.transfers = 0;
		dev->channels[i].bus.conflicts = 0;
	}
	for (i = 0; i < dev->nr_units; i++) {
		dev->units[i].busy_ns = 0;
		dev->units[i].busy_since = dev->now;
		dev->units[i].op_since = dev->now;
		dev->units[i].clean_ns = 0;
	}
	for (i = 0; i < dev->nr_planes; i++) {
		dev->planes[i].busy_ns = 0;
		dev->planes[i].erases = 0;
	}
}

static u64 unit_busy_ns(const struct ssdemu *dev, const struct ssdemu_unit *unit)
{
	return unit->busy_ns + (unit->busy ? dev->now - unit->busy_since : 0);
}

static void show_latency(struct seq_file *m, const char *name,
			 const struct ssdemu_latency *lat)
{
	seq_printf(m, "%s_count %llu\n", name, lat->count);
	seq_printf(m, "%s_mean_ns %llu\n", name,
		   lat->count ? div64_u64(lat->sum_ns, lat->count) : 0);
	seq_printf(m, "%s_min_ns %llu\n", name, lat->count ? lat->min_ns : 0);
	seq_printf(m, "%s_max_ns %llu\n", name, lat->max_ns);
}

static void show_depths(struct seq_file *m, const struct ssdemu_stats *stats)
{
	u32 i;

	seq_puts(m, "depth_log2");
	for (i = 0; i < SSDEMU_DEPTH_BUCKETS; i++)
		seq_printf(m, " %llu", stats->depth[i]);
	seq_putc(m, '\n');
}

/* Return flash pages used per page written by the host, in thousandths. */
static u64 write_amplification(const struct ssdemu *dev)
{
	const struct ssdemu_stats *stats = &dev->stats;
	u64 host = div_u64(stats->host_write_bytes, dev->cfg.page_size);
	u64 flash = stats->flash_programs + stats->flash_copies +
		    stats->folded_pages + stats->padded_pages;

	return host ? div64_u64(flash * 1000, host) : 0;
}

static void show_erases(struct seq_file *m, const struct ssdemu *dev)
{
	u64 least = U64_MAX, most = 0;
	u32 i;

	for (i = 0; i < dev->nr_planes; i++) {
		least = min(least, dev->planes[i].erases);
		most = max(most, dev->planes[i].erases);
	}
	seq_printf(m, "plane_erases_min %llu\n", least);
	seq_printf(m, "plane_erases_max %llu\n", most);
}

static void show_busy(struct seq_file *m, const struct ssdemu *dev)
{
	u64 elapsed = max(dev->now - dev->stats.since, 1ULL);
	u64 active = dev->stats.active_ns, busy = 0, cleaning = 0;
	u64 transfers = 0, conflicts = 0, bus = 0;
	u32 i;

	if (dev->units_busy)
		active += dev->now - dev->active_since;
	for (i = 0; i < dev->nr_units; i++) {
		busy += unit_busy_ns(dev, &dev->units[i]);
		cleaning += dev->units[i].clean_ns;
	}
	for (i = 0; i < dev->cfg.channels; i++) {
		bus += dev->channels[i].bus.busy_ns;
		transfers += dev->channels[i].bus.transfers;
		conflicts += dev->channels[i].bus.conflicts;
	}
	seq_printf(m, "elapsed_ns %llu\n", elapsed);
	seq_printf(m, "active_ns %llu\n", active);
	seq_printf(m, "unit_busy_ns %llu\n", busy);
	seq_printf(m, "units_busy_milli %llu\n",
		   active ? div64_u64(busy * 1000, active) : 0);
	seq_printf(m, "units_busy_max %llu\n", dev->stats.max_units_busy);
	seq_printf(m, "unit_utilisation_ppm %llu\n",
		   mul_u64_u64_div_u64(div_u64(busy, dev->nr_units), 1000000,
				       elapsed));
	seq_printf(m, "cleaning_ns %llu\n", cleaning);
	seq_printf(m, "channel_utilisation_ppm %llu\n",
		   mul_u64_u64_div_u64(div_u64(bus, dev->cfg.channels), 1000000,
				       elapsed));
	seq_printf(m, "channel_transfers %llu\n", transfers);
	seq_printf(m, "channel_conflicts %llu\n", conflicts);
}

#define COUNTER(name) { #name, offsetof(struct ssdemu_stats, name) }

static const struct {
	const char *name;
	size_t offset;
} counters[] = {
	COUNTER(host_read_bytes),
	COUNTER(host_write_bytes),
	COUNTER(host_pages_read),
	COUNTER(host_pages_written),
	COUNTER(flash_reads),
	COUNTER(flash_programs),
	COUNTER(flash_copies),
	COUNTER(background_copies),
	COUNTER(background_erases),
	COUNTER(foreground_waits),
	COUNTER(slc_programs),
	COUNTER(folded_pages),
	COUNTER(copy_senses),
	COUNTER(padded_pages),
	COUNTER(shared_senses),
	COUNTER(flash_erases),
	COUNTER(rmw_reads),
	COUNTER(prefetch_reads),
	COUNTER(trimmed_pages),
	COUNTER(merges),
	COUNTER(multiplane),
	COUNTER(conflict_rr),
	COUNTER(conflict_rw),
	COUNTER(conflict_ww),
	COUNTER(conflict_clean),
	COUNTER(interference),
	COUNTER(head_blocked),
	COUNTER(head_blocked_ns),
	COUNTER(buffer_write_hits),
	COUNTER(buffer_read_hits),
	COUNTER(read_buffer_hits),
	COUNTER(buffer_waits),
	COUNTER(crowd_ns),
	COUNTER(rw_switches),
	COUNTER(suspends),
	COUNTER(suspended_ns),
	COUNTER(events),
	COUNTER(timers),
	COUNTER(late_max_ns),
};

#undef COUNTER

static void show_counters(struct seq_file *m, const struct ssdemu_stats *stats)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(counters); i++)
		seq_printf(m, "%s %llu\n", counters[i].name,
			   *(u64 *)((void *)stats + counters[i].offset));
}

static int stats_show(struct seq_file *m, void *v)
{
	struct ssdemu *dev = m->private;
	const struct ssdemu_stats *stats = &dev->stats;

	ssdemu_run(dev, NULL);
	spin_lock_irq(&dev->lock);
	seq_printf(m, "time_scale %u\n", dev->cfg.time_scale);
	show_latency(m, "read", &stats->read);
	show_latency(m, "write", &stats->write);
	show_latency(m, "flush", &stats->flush);
	show_latency(m, "discard", &stats->discard);
	seq_printf(m, "write_amplification_milli %llu\n",
		   write_amplification(dev));
	show_counters(m, stats);
	show_erases(m, dev);
	show_busy(m, dev);
	show_depths(m, stats);
	seq_printf(m, "inside %u\n", dev->inside);
	spin_unlock_irq(&dev->lock);
	return 0;
}

static ssize_t stats_write(struct file *file, const char __user *buf,
			   size_t len, loff_t *pos)
{
	struct ssdemu *dev = file_inode(file)->i_private;

	ssdemu_run(dev, NULL);
	spin_lock_irq(&dev->lock);
	ssdemu_stats_reset(dev);
	spin_unlock_irq(&dev->lock);
	return len;
}

static int units_show(struct seq_file *m, void *v)
{
	struct ssdemu *dev = m->private;
	u32 i;

	ssdemu_run(dev, NULL);
	spin_lock_irq(&dev->lock);
	for (i = 0; i < dev->cfg.channels; i++) {
		const struct ssdemu_bus *bus = &dev->channels[i].bus;

		seq_printf(m, "channel %u busy_ns %llu transfers %llu conflicts %llu\n",
			   i, bus->busy_ns, bus->transfers, bus->conflicts);
	}
	for (i = 0; i < dev->nr_units; i++) {
		const struct ssdemu_unit *unit = &dev->units[i];

		seq_printf(m, "unit %u busy_ns %llu cleaning_ns %llu waiting %u\n",
			   i, unit_busy_ns(dev, unit), unit->clean_ns,
			   unit->waiting);
	}
	for (i = 0; i < dev->nr_planes; i++) {
		const struct ssdemu_plane *plane = &dev->planes[i];

		seq_printf(m, "plane %u busy_ns %llu erases %llu free_blocks %u valid_pages %u slc_free_blocks %u\n",
			   i, plane->busy_ns, plane->erases, plane->nr_free,
			   plane->valid, dev->slc_blocks -
			   plane->slc_drained - plane->slc_full);
	}
	spin_unlock_irq(&dev->lock);
	return 0;
}

static int config_show(struct seq_file *m, void *v)
{
	struct ssdemu *dev = m->private;

	ssdemu_config_show(&dev->cfg, m);
	return 0;
}

/* Parse "sector [sectors]". */
static ssize_t where_write(struct file *file, const char __user *buf,
			   size_t len, loff_t *pos)
{
	struct ssdemu *dev = file_inode(file)->i_private;
	u64 sector, sectors = 1, end = dev->capacity >> SECTOR_SHIFT;
	char text[64];

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, len))
		return -EFAULT;
	text[len] = '\0';
	if (sscanf(text, "%llu %llu", &sector, &sectors) < 1 || !sectors ||
	    sector >= end || sectors > end - sector)
		return -EINVAL;
	spin_lock_irq(&dev->lock);
	dev->where_sector = sector;
	dev->where_sectors = min_t(u64, sectors, WHERE_MAX_SECTORS);
	spin_unlock_irq(&dev->lock);
	return len;
}

static int where_show(struct seq_file *m, void *v)
{
	struct ssdemu *dev = m->private;
	u32 lpn, last, block, page;

	ssdemu_run(dev, NULL);
	spin_lock_irq(&dev->lock);
	lpn = dev->where_sector >> dev->geo.page_shift;
	last = (dev->where_sector + max(dev->where_sectors, 1ULL) - 1) >>
	       dev->geo.page_shift;
	for (; lpn <= last; lpn++) {
		u32 plane = dev->ftl->locate(dev, lpn, &block, &page);
		u32 chip = plane % dev->nr_chips;

		/* Pages of a write unit alternate between the planes in lockstep. */
		plane += page % dev->lockstep * dev->nr_planes;
		page /= dev->lockstep;
		seq_printf(m, "page %u unit %u channel %u chip %u die %u plane %u block %u page_in_block %u\n",
			   lpn, plane % dev->nr_units,
			   chip % dev->cfg.channels, chip / dev->cfg.channels,
			   plane % dev->nr_dies / dev->nr_chips,
			   plane / dev->nr_dies, block, page);
	}
	spin_unlock_irq(&dev->lock);
	return 0;
}

/* A file of name##_show(); the operations may follow, such as .write. */
#define SEQ_FILE(name, ...)						\
static int name##_open(struct inode *inode, struct file *file)		\
{									\
	return single_open(file, name##_show, inode->i_private);	\
}									\
									\
static const struct file_operations name##_fops = {			\
	.owner = THIS_MODULE,						\
	.open = name##_open,						\
	.read = seq_read,						\
	.llseek = seq_lseek,						\
	.release = single_release,					\
	__VA_ARGS__							\
}

SEQ_FILE(config);
SEQ_FILE(stats, .write = stats_write);
SEQ_FILE(units);
SEQ_FILE(where, .write = where_write);

#undef SEQ_FILE

/**
 * ssdemu_debugfs_add() - create the files of a device
 * @dev: device with a disk; removing dev->debugfs removes them
 */
void ssdemu_debugfs_add(struct ssdemu *dev)
{
	struct dentry *dir;

	dir = debugfs_create_dir(dev->disk->disk_name, ssdemu_root);
	debugfs_create_file("config", 0444, dir, dev, &config_fops);
	debugfs_create_file("stats", 0644, dir, dev, &stats_fops);
	debugfs_create_file("units", 0444, dir, dev, &units_fops);
	debugfs_create_file("where", 0644, dir, dev, &where_fops);
	dev->debugfs = dir;
}

void ssdemu_debugfs_init(void)
{
	ssdemu_root = debugfs_create_dir("ssdemu", NULL);
}

void ssdemu_debugfs_exit(void)
{
	debugfs_remove(ssdemu_root);
}
