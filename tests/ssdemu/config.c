// SPDX-License-Identifier: GPL-2.0
/*
 * The configuration of a device: its keys with limits and defaults, and the
 * values derived from them. An invalid configuration is refused with one line
 * that names the key and its valid values.
 */
#include <linux/lcm.h>
#include <linux/mm.h>
#include <linux/seq_file.h>
#include "ssdemu.h"

/*
 * Blocks between start and reserve of background collection, at least. Its
 * equilibrium is in the middle, where up to one of the blocks counted as free is
 * that of a victim not yet erased.
 */
#define GC_BAND_MIN	3

struct config_key {
	const char *name;
	size_t offset;		/* in struct ssdemu_config */
	u32 def, min, max;
	const char *const *names; /* of an enum's values; NULL for a number */
};

static const char *const unit_names[] = { "chip", "die", "plane", NULL };
static const char *const mapping_names[] = { "page", "block", NULL };
static const char *const sched_names[] = {
	"fifo", "ooo", "ooo-read", "aos", NULL
};

#define KEY(field, def, min, max) \
	{ #field, offsetof(struct ssdemu_config, field), def, min, max, NULL }
#define ENUM_KEY(field, def, names) \
	{ #field, offsetof(struct ssdemu_config, field), def, 0, 0, names }

/* The defaults describe a small drive of no particular make. */
static const struct config_key keys[] = {
	KEY(channels, 4, 1, LV_MAX_UNITS),
	KEY(chips, 4, 1, LV_MAX_UNITS),
	KEY(dies, 1, 1, LV_MAX_UNITS),
	KEY(planes, 1, 1, LV_MAX_UNITS),
	KEY(blocks, 1024, 4, SSDEMU_MAX_BLOCKS),
	KEY(pages, 64, 2, 4096),
	KEY(page_size, 4096, 512, 65536),
	KEY(capacity_mb, 0, 0, 1 << 24),
	KEY(spare, 10, 0, 90),
	ENUM_KEY(unit, SSDEMU_UNIT_CHIP, unit_names),

	KEY(read_ns, 50000, 1, 1000000000),
	KEY(program_ns, 500000, 1, 1000000000),
	KEY(erase_ns, 3000000, 1, 1000000000),
	KEY(program_pages, 1, 1, 4096),
	KEY(read_pages, 0, 0, 4096),
	KEY(command_ns, 300, 0, 1000000),
	KEY(channel_mbps, 400, 1, 100000),
	KEY(host_mbps, 0, 0, 100000),
	KEY(host_duplex, 0, 0, 1),
	KEY(firmware_ns, 0, 0, 100000000),
	KEY(time_scale, 1, 1, 1000),

	ENUM_KEY(mapping, SSDEMU_MAP_PAGE, mapping_names),
	KEY(open_blocks, 1, 1, 256),
	KEY(clustered_page_kb, 0, 0, 4096),
	KEY(gc_free_blocks, 2, 1, 1024),
	KEY(gc_start_blocks, 0, 0, 1024),
	KEY(gc_copyback, 0, 0, 1),
	KEY(gc_yield, 0, 0, 1),
	KEY(idle_us, 10000, 1, 10000000),
	KEY(slc_mb, 0, 0, 1 << 20),
	KEY(slc_bits, 3, 2, 8),
	KEY(slc_read_ns, 25000, 1, 1000000000),
	KEY(slc_program_ns, 200000, 1, 1000000000),
	KEY(slc_fold_percent, 0, 0, 1000),
	KEY(fill, 0, 0, 100),

	KEY(read_buffer_kb, 0, 0, 1 << 18),
	KEY(prefetch, 0, 0, 1),
	KEY(write_buffer_kb, 0, 0, 1 << 18),
	KEY(write_cache, 0, 0, 1),
	KEY(protected, 0, 0, 1),

	ENUM_KEY(device_sched, SSDEMU_OOO, sched_names),
	KEY(read_bound, 16, 1, 1 << 20),
	KEY(suspend_ns, 0, 0, 100000000),
	KEY(resume_ns, 0, 0, 100000000),
	KEY(suspend_max, 4, 1, 1 << 20),

	KEY(region_mb, 4096, 1, 1 << 24),
	KEY(crowd_depth, 4, 0, 65536),
	KEY(crowd_ns, 0, 0, 1000000),
	KEY(rw_switch_ns, 0, 0, 100000000),
	KEY(lookup_ns, 0, 0, 100000000),
	KEY(random_ns, 0, 0, 100000000),

	KEY(queue_depth, 64, 1, 4096),
	KEY(announced_depth, 0, 0, 4096),
	KEY(hw_queues, 1, 1, 64),
	KEY(block_size, 512, 512, 4096),
	KEY(max_request_kb, 512, 4, 4096),
	KEY(memory_backed, 0, 0, 1),
};

#undef KEY
#undef ENUM_KEY

static const char *const allocation_names[] = {
	[SSDEMU_DYNAMIC] = "dynamic",
	[SSDEMU_CONCAT] = "concat",
};

#define refuse(err, ...) \
	({ scnprintf(err, SSDEMU_ERR_LEN, __VA_ARGS__); -EINVAL; })

static u32 *field_of(const struct ssdemu_config *cfg, const struct config_key *key)
{
	return (void *)cfg + key->offset;
}

static int parse_allocation(struct ssdemu_config *cfg, const char *value,
			    char *err)
{
	cfg->allocation = SSDEMU_STATIC;
	if (!lv_parse_order(value, cfg->order))
		return 0;
	for (cfg->allocation = SSDEMU_DYNAMIC;
	     cfg->allocation < ARRAY_SIZE(allocation_names); cfg->allocation++)
		if (!strcmp(value, allocation_names[cfg->allocation]))
			return 0;
	return refuse(err, "allocation=%s: must be cwdp in any order, dynamic or concat",
		      value);
}

static int parse_enum(u32 *field, const struct config_key *key,
		      const char *value, char *err)
{
	size_t len;
	u32 i;

	for (i = 0; key->names[i]; i++) {
		if (!strcmp(value, key->names[i])) {
			*field = i;
			return 0;
		}
	}
	len = scnprintf(err, SSDEMU_ERR_LEN, "%s=%s: must be one of",
			key->name, value);
	for (i = 0; key->names[i]; i++)
		len += scnprintf(err + len, SSDEMU_ERR_LEN - len, " %s",
				 key->names[i]);
	return -EINVAL;
}

static int parse_key(struct ssdemu_config *cfg, const char *name,
		     const char *value, char *err)
{
	u32 i, n;

	if (!strcmp(name, "allocation"))
		return parse_allocation(cfg, value, err);
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct config_key *key = &keys[i];

		if (strcmp(name, key->name))
			continue;
		if (key->names)
			return parse_enum(field_of(cfg, key), key, value, err);
		if (kstrtou32(value, 10, &n) || n < key->min || n > key->max)
			return refuse(err, "%s=%s: must be a number from %u to %u",
				      name, value, key->min, key->max);
		*field_of(cfg, key) = n;
		return 0;
	}
	return refuse(err, "%s: no such key", name);
}

/**
 * ssdemu_config_parse() - parse "key=value key=value ..."
 * @cfg: filled; keys missing from @text get their defaults
 * @text: modified
 * @err: buffer of SSDEMU_ERR_LEN bytes for the reason of an error
 *
 * Needs no lock. Return: 0, or -EINVAL and a message in @err.
 */
int ssdemu_config_parse(struct ssdemu_config *cfg, char *text, char *err)
{
	char *name, *value;
	u32 i;
	int ret;

	memset(cfg, 0, sizeof(*cfg));
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		*field_of(cfg, &keys[i]) = keys[i].def;
	ret = parse_allocation(cfg, "cwdp", err);

	while (!ret && (value = strsep(&text, " \t\n"))) {
		name = strsep(&value, "=");
		if (!*name)
			continue;
		if (!value)
			return refuse(err, "%s: must be key=value", name);
		ret = parse_key(cfg, name, value, err);
	}
	return ret;
}

/**
 * ssdemu_config_show() - print a configuration
 * @cfg: configuration
 * @m: file; gets a line key=value for each key
 */
void ssdemu_config_show(const struct ssdemu_config *cfg, struct seq_file *m)
{
	u32 i;

	seq_puts(m, "allocation=");
	if (cfg->allocation == SSDEMU_STATIC)
		for (i = 0; i < LV_DIGITS; i++)
			seq_putc(m, "cwdp"[cfg->order[i]]);
	else
		seq_puts(m, allocation_names[cfg->allocation]);
	seq_putc(m, '\n');
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		u32 value = *field_of(cfg, &keys[i]);

		if (keys[i].names)
			seq_printf(m, "%s=%s\n", keys[i].name,
				   keys[i].names[value]);
		else
			seq_printf(m, "%s=%u\n", keys[i].name, value);
	}
}

/* Derived values */

static u32 units_of(const struct ssdemu *dev)
{
	switch (dev->cfg.unit) {
	case SSDEMU_UNIT_PLANE:
		return dev->geo.planes;
	case SSDEMU_UNIT_DIE:
		return dev->nr_dies;
	default:
		return dev->nr_chips;
	}
}

static int resolve_geometry(struct ssdemu *dev, char *err)
{
	const struct ssdemu_config *cfg = &dev->cfg;
	const unsigned int count[LV_DIGITS] = {
		cfg->channels, cfg->chips, cfg->dies, cfg->planes
	};
	static const u8 natural[LV_DIGITS] = {
		LV_CHANNEL, LV_WAY, LV_DIE, LV_PLANE
	};

	if (!is_power_of_2(cfg->page_size))
		return refuse(err, "page_size=%u: must be a power of two",
			      cfg->page_size);
	if (!is_power_of_2(cfg->block_size))
		return refuse(err, "block_size=%u: must be a power of two",
			      cfg->block_size);
	if (lv_init(&dev->geo, cfg->page_size, count,
		    cfg->allocation == SSDEMU_STATIC ? cfg->order : natural,
		    LV_PLANE_LEVEL))
		return refuse(err, "channels * chips * dies * planes must be at most %u",
			      LV_MAX_UNITS);

	dev->page_shift = ilog2(cfg->page_size);
	dev->nr_chips = cfg->channels * cfg->chips;
	dev->nr_dies = dev->nr_chips * cfg->dies;
	dev->nr_units = units_of(dev);
	dev->one_shot = cfg->program_pages > 1;
	dev->lockstep = dev->one_shot ? dev->geo.planes / dev->nr_units : 1;
	dev->nr_planes = dev->geo.planes / dev->lockstep;
	dev->block_pages = cfg->pages * dev->lockstep;
	dev->page_transfer_ns = max(ssdemu_transfer_ns(cfg->page_size,
						       cfg->channel_mbps), 1U);
	return 0;
}

static int resolve_program(struct ssdemu *dev, char *err)
{
	struct ssdemu_config *cfg = &dev->cfg;

	if (!cfg->read_pages)
		cfg->read_pages = cfg->program_pages;
	if (cfg->program_pages % cfg->read_pages)
		return refuse(err, "read_pages=%u: must divide program_pages=%u",
			      cfg->read_pages, cfg->program_pages);
	if (!dev->one_shot)
		return 0;
	if (cfg->read_pages % dev->lockstep)
		return refuse(err, "read_pages=%u: must be a multiple of the %u planes of a unit",
			      cfg->read_pages, dev->lockstep);
	if (dev->block_pages % cfg->program_pages)
		return refuse(err, "program_pages=%u: must divide the %u pages of a unit's block",
			      cfg->program_pages, dev->block_pages);
	if (cfg->mapping == SSDEMU_MAP_BLOCK)
		return refuse(err, "program_pages=%u: needs mapping=page",
			      cfg->program_pages);
	if (cfg->device_sched == SSDEMU_FIFO)
		return refuse(err, "program_pages=%u: needs another device_sched than fifo",
			      cfg->program_pages);
	return 0;
}

static int resolve_cluster(struct ssdemu *dev, char *err)
{
	const struct ssdemu_config *cfg = &dev->cfg;

	dev->cluster_bytes = cfg->page_size;
	if (cfg->clustered_page_kb)
		dev->cluster_bytes = cfg->clustered_page_kb * 1024;
	dev->cluster_pages = dev->cluster_bytes / cfg->page_size;
	if (dev->cluster_bytes % cfg->page_size || !dev->cluster_pages ||
	    dev->cluster_pages > SSDEMU_MASK_BITS)
		return refuse(err, "clustered_page_kb=%u: must be 1 to %u pages of %u bytes",
			      cfg->clustered_page_kb, SSDEMU_MASK_BITS,
			      cfg->page_size);
	dev->granule = max_t(u32, DIV_ROUND_UP(dev->cluster_bytes,
					       SSDEMU_MASK_BITS), SECTOR_SIZE);
	dev->granule = roundup_pow_of_two(dev->granule);
	dev->buffer_max = cfg->write_buffer_kb * 1024;
	dev->destage_max = max(2 * dev->nr_units * cfg->program_pages /
			       dev->cluster_pages, 2U);
	dev->nr_rpages = cfg->read_buffer_kb * 1024 / cfg->page_size;
	if (cfg->read_buffer_kb && !dev->nr_rpages)
		return refuse(err, "read_buffer_kb=%u: smaller than a page",
			      cfg->read_buffer_kb);
	if (cfg->prefetch && dev->nr_rpages < 2)
		return refuse(err, "prefetch=1: needs a read_buffer_kb of two pages or more");
	if (cfg->write_cache && !cfg->write_buffer_kb)
		return refuse(err, "write_cache=1: needs a write_buffer_kb");
	if (cfg->protected && !cfg->write_buffer_kb)
		return refuse(err, "protected=1: needs a write_buffer_kb");
	return 0;
}

/*
 * Return the blocks of a plane that the FTL needs beyond those with host data.
 * Garbage collection needs the blocks that it keeps free, the block being
 * written and one more, so that a full block with an invalid page exists.
 * Dynamic allocation needs another one, to have a choice of planes on a full
 * drive.
 */
static u32 blocks_needed(const struct ssdemu_config *cfg)
{
	if (cfg->mapping == SSDEMU_MAP_BLOCK)
		return cfg->open_blocks + 1;
	return ssdemu_free_target(cfg) + 2 +
	       (cfg->allocation == SSDEMU_DYNAMIC);
}

/* Derive the capacity from the geometry: all blocks but the spare ones. */
static void capacity_of_blocks(struct ssdemu *dev)
{
	const struct ssdemu_config *cfg = &dev->cfg;
	u64 pages = (u64)cfg->blocks * dev->block_pages;

	dev->plane_lpns = div_u64(pages * (100 - cfg->spare), 100);
	if (cfg->mapping == SSDEMU_MAP_BLOCK)
		dev->plane_lpns = rounddown(dev->plane_lpns, cfg->pages);
}

/* Derive the blocks of a plane from capacity_mb. */
static int blocks_of_capacity(struct ssdemu *dev, char *err)
{
	struct ssdemu_config *cfg = &dev->cfg;
	u64 block_bytes = (u64)dev->geo.planes * cfg->pages * cfg->page_size;
	u64 used = div64_u64(((u64)cfg->capacity_mb << 20) + block_bytes - 1,
			     block_bytes);
	u64 blocks = max(div_u64(used * 100 + 99 - cfg->spare, 100 - cfg->spare),
			 used + blocks_needed(cfg));

	if (blocks > SSDEMU_MAX_BLOCKS)
		return refuse(err, "capacity_mb=%u: needs more than %u blocks per plane",
			      cfg->capacity_mb, SSDEMU_MAX_BLOCKS);
	cfg->blocks = blocks;
	dev->plane_lpns = used * dev->block_pages;
	return 0;
}

static int resolve_slc(struct ssdemu *dev, char *err)
{
	const struct ssdemu_config *cfg = &dev->cfg;
	u64 bytes;

	if (!cfg->slc_mb)
		return 0;
	if (cfg->mapping == SSDEMU_MAP_BLOCK)
		return refuse(err, "slc_mb=%u: needs mapping=page", cfg->slc_mb);
	dev->slc_pages = rounddown(dev->block_pages / cfg->slc_bits,
				   cfg->read_pages);
	if (!dev->slc_pages)
		return refuse(err, "slc_bits=%u: leaves less than %u pages of a block",
			      cfg->slc_bits, cfg->read_pages);
	bytes = (u64)dev->nr_planes * dev->slc_pages * cfg->page_size;
	dev->slc_blocks = div64_u64(((u64)cfg->slc_mb << 20) + bytes - 1, bytes);
	if (dev->slc_blocks > SSDEMU_MAX_BLOCKS)
		return refuse(err, "slc_mb=%u: needs more than %u blocks per plane",
			      cfg->slc_mb, SSDEMU_MAX_BLOCKS);
	return 0;
}

static int resolve_capacity(struct ssdemu *dev, char *err)
{
	struct ssdemu_config *cfg = &dev->cfg;
	u64 lpns, spare_blocks, unit;

	if (!cfg->capacity_mb)
		capacity_of_blocks(dev);
	else if (blocks_of_capacity(dev, err))
		return -EINVAL;
	dev->plane_blocks = cfg->blocks + dev->slc_blocks;
	if ((u64)dev->geo.planes * dev->plane_blocks * cfg->pages >= U32_MAX)
		return refuse(err, "blocks=%u: more than 2^32 flash pages in all",
			      dev->plane_blocks);
	dev->plane_pages = cfg->blocks * dev->block_pages;
	spare_blocks = (dev->plane_pages - dev->plane_lpns) / dev->block_pages;
	if (spare_blocks < blocks_needed(cfg))
		return refuse(err, "spare=%u: leaves %llu spare blocks a plane, %u are needed",
			      cfg->spare, spare_blocks, blocks_needed(cfg));

	lpns = (u64)dev->plane_lpns * dev->nr_planes;
	if (cfg->capacity_mb)
		lpns = min(lpns, ((u64)cfg->capacity_mb << 20) / cfg->page_size);
	unit = dev->cluster_pages;
	if (cfg->mapping == SSDEMU_MAP_BLOCK)
		unit = lcm(unit, (u64)dev->nr_planes * cfg->pages);
	lpns = rounddown(lpns, unit);
	dev->nr_lpns = lpns;
	dev->capacity = rounddown(lpns * cfg->page_size, (u64)cfg->block_size);
	if (dev->capacity < 1 << 20)
		return refuse(err, "the capacity of %llu bytes is less than 1 MiB",
			      dev->capacity);
	return 0;
}

static int resolve_host_side(struct ssdemu *dev, char *err)
{
	const struct ssdemu_config *cfg = &dev->cfg;

	if (cfg->announced_depth && cfg->announced_depth <= cfg->queue_depth)
		return refuse(err, "announced_depth=%u: must be 0 or more than queue_depth",
			      cfg->announced_depth);
	if (cfg->announced_depth && cfg->hw_queues > 1)
		return refuse(err, "announced_depth=%u: needs hw_queues=1",
			      cfg->announced_depth);
	return 0;
}

static int resolve_mapping(struct ssdemu *dev, char *err)
{
	const struct ssdemu_config *cfg = &dev->cfg;

	if (cfg->gc_start_blocks &&
	    cfg->gc_start_blocks < cfg->gc_free_blocks + GC_BAND_MIN)
		return refuse(err, "gc_start_blocks=%u: must be 0 or at least gc_free_blocks + %u",
			      cfg->gc_start_blocks, GC_BAND_MIN);
	if (cfg->gc_start_blocks && cfg->mapping == SSDEMU_MAP_BLOCK)
		return refuse(err, "gc_start_blocks=%u: needs mapping=page",
			      cfg->gc_start_blocks);
	dev->background = cfg->gc_start_blocks || cfg->slc_mb;
	dev->sched = &ssdemu_schedulers[cfg->device_sched];
	if (cfg->suspend_ns && cfg->device_sched != SSDEMU_OOO_READ &&
	    cfg->device_sched != SSDEMU_AOS)
		return refuse(err, "suspend_ns=%u: needs device_sched=ooo-read or aos",
			      cfg->suspend_ns);
	if (cfg->mapping == SSDEMU_MAP_PAGE) {
		dev->ftl = &ssdemu_ftl_page;
		return 0;
	}
	if (cfg->allocation != SSDEMU_STATIC)
		return refuse(err, "mapping=block: needs a static allocation, such as cwdp");
	dev->ftl = &ssdemu_ftl_block;
	return 0;
}

/* Refuse a device whose tables need more than three quarters of the free memory. */
static int check_memory(struct ssdemu *dev, char *err)
{
	const struct ssdemu_config *cfg = &dev->cfg;
	u64 clusters = ssdemu_host_clusters(dev);
	u64 free = (u64)si_mem_available() << PAGE_SHIFT;
	u64 need;

	need = cfg->mapping == SSDEMU_MAP_PAGE ? ssdemu_ftl_page_memory(dev) :
						 ssdemu_ftl_block_memory(dev);
	need += (clusters + dev->destage_max) * dev->cluster_pages *
		sizeof(struct ssdemu_txn);
	need += (clusters + ssdemu_buffer_clusters(dev)) *
		sizeof(struct ssdemu_cluster);
	if (need > free / 4 * 3)
		return refuse(err, "the tables need %llu MiB of %llu: lower capacity_mb",
			      need >> 20, free >> 20);
	return 0;
}

/* Assign the regions of a concatenation to planes: chip by chip, plane by plane. */
static int resolve_concat(struct ssdemu *dev)
{
	u32 per_chip = dev->nr_planes / dev->nr_chips, i;

	if (dev->cfg.allocation != SSDEMU_CONCAT)
		return 0;
	dev->concat_plane = kvmalloc_array(dev->nr_planes, sizeof(u32), GFP_KERNEL);
	if (!dev->concat_plane)
		return -ENOMEM;
	for (i = 0; i < dev->nr_planes; i++)
		dev->concat_plane[i] = i / per_chip + i % per_chip * dev->nr_chips;
	return 0;
}

/**
 * ssdemu_config_resolve() - check a configuration, derive the device's values
 * @dev: new device with a parsed cfg
 * @err: buffer of SSDEMU_ERR_LEN bytes for the reason of an error
 *
 * May sleep; needs no lock. On success dev->concat_plane must be freed.
 *
 * Return: 0, -EINVAL with a message in @err, or -ENOMEM.
 */
int ssdemu_config_resolve(struct ssdemu *dev, char *err)
{
	int ret;

	ret = resolve_geometry(dev, err);
	if (!ret)
		ret = resolve_program(dev, err);
	if (!ret)
		ret = resolve_cluster(dev, err);
	if (!ret)
		ret = resolve_host_side(dev, err);
	if (!ret)
		ret = resolve_mapping(dev, err);
	if (!ret)
		ret = resolve_slc(dev, err);
	if (!ret)
		ret = resolve_capacity(dev, err);
	if (!ret)
		ret = check_memory(dev, err);
	return ret ?: resolve_concat(dev);
}
