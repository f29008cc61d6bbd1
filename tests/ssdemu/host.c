// SPDX-License-Identifier: GPL-2.0
/*
 * Requests of the host, from their arrival to their end, and the host interface.
 *
 * The data of writes do not join the queue of the host interface: the drive fetches
 * those of one write at a time, when no data wait for the host and no earlier write
 * waits for room in the buffer.
 */
#include "ssdemu.h"

static void cmd_admit(struct ssdemu *dev, struct ssdemu_event *ev);

/* Host interface */

/* Transfer data as soon as the interface is free; return the end. */
static u64 host_transfer(struct ssdemu *dev, enum ssdemu_dir dir, u32 bytes)
{
	const struct ssdemu_config *cfg = &dev->cfg;

	if (!cfg->host_mbps)
		return dev->now;
	return ssdemu_bus_use(dev, &dev->host[cfg->host_duplex ? dir : 0],
			      ssdemu_transfer_ns(bytes, cfg->host_mbps));
}

/* Transfer data of a read; return the end. */
static u64 host_send(struct ssdemu *dev, u32 bytes)
{
	if (!dev->cfg.host_duplex && !list_empty(&dev->fetches))
		dev->fetches_passed++;
	return host_transfer(dev, SSDEMU_READ, bytes);
}

static void fetched(struct ssdemu *dev, struct ssdemu_event *ev)
{
	dev->fetching = false;
	ssdemu_buffer_write(dev, container_of(ev, struct ssdemu_cmd, ev));
}

/* The data that waited for the host have been transferred. */
static void host_idle(struct ssdemu *dev, struct ssdemu_event *ev)
{
	dev->fetch_pending = false;
	ssdemu_fetch(dev);
}

/**
 * ssdemu_fetch() - fetch the data of the oldest write that waits for it
 * @dev: device
 *
 * Do nothing while the data of another one are transferred or wait for room in
 * the write buffer. Data for the host come first, up to read_bound transfers.
 */
void ssdemu_fetch(struct ssdemu *dev)
{
	struct ssdemu_bus *bus = &dev->host[dev->cfg.host_duplex];
	struct ssdemu_cmd *cmd;

	cmd = list_first_entry_or_null(&dev->fetches, struct ssdemu_cmd, list);
	if (!cmd || dev->fetching || dev->fetch_pending ||
	    !list_empty(&dev->admission))
		return;
	if (bus->free_at > dev->now &&
	    dev->fetches_passed < dev->cfg.read_bound) {
		dev->fetch_pending = true;
		ssdemu_schedule(dev, &dev->fetch_ev, bus->free_at, host_idle);
		return;
	}
	list_del(&cmd->list);
	dev->fetching = true;
	dev->fetches_passed = 0;
	ssdemu_schedule(dev, &cmd->ev,
			host_transfer(dev, SSDEMU_WRITE, cmd->bytes), fetched);
}

/* Host requests */

static void account_latency(struct ssdemu_latency *lat, u64 ns)
{
	lat->count++;
	lat->sum_ns += ns;
	lat->min_ns = min(lat->min_ns, ns);
	lat->max_ns = max(lat->max_ns, ns);
}

static void cmd_finish(struct ssdemu *dev, struct ssdemu_cmd *cmd)
{
	struct ssdemu_stats *stats = &dev->stats;
	u64 ns = dev->now - cmd->arrived;

	switch (cmd->op) {
	case REQ_OP_READ:
		account_latency(&stats->read, ns);
		break;
	case REQ_OP_WRITE:
		account_latency(&stats->write, ns);
		break;
	case REQ_OP_FLUSH:
		account_latency(&stats->flush, ns);
		break;
	default:
		account_latency(&stats->discard, ns);
		break;
	}
	stats->late_max_ns = max(stats->late_max_ns, dev->until - dev->now);
	if (!--dev->inside) {
		dev->last_end = dev->now;
		ssdemu_idle_expect(dev);
	}
	if (cmd->region != SSDEMU_NONE) {
		dev->region_inside[cmd->region]--;
		dev->units[cmd->unit].inside--;
	}
	list_add_tail(&cmd->list, &dev->done);
}

static void cmd_ended(struct ssdemu *dev, struct ssdemu_event *ev)
{
	cmd_finish(dev, container_of(ev, struct ssdemu_cmd, ev));
}

/**
 * ssdemu_cmd_put() - finish one part of a host request
 * @dev: device
 * @cmd: request; it may be complete when this returns
 * @bytes: data of this part to transfer to the host
 *
 * The last part (cmd->left) schedules the end of the request behind the
 * transfer, or the transfer of a write for which the buffer was emptied.
 */
void ssdemu_cmd_put(struct ssdemu *dev, struct ssdemu_cmd *cmd, u32 bytes)
{
	u64 end = dev->now;

	if (bytes)
		end = host_send(dev, bytes);
	if (--cmd->left)
		return;
	if (cmd->emptying)
		ssdemu_schedule(dev, &cmd->ev, dev->now, cmd_admit);
	else if (end > dev->now)
		ssdemu_schedule(dev, &cmd->ev, end, cmd_ended);
	else
		cmd_finish(dev, cmd);
}

static void cmd_trim(struct ssdemu *dev, struct ssdemu_cmd *cmd)
{
	u64 end = div_u64(cmd->offset + cmd->bytes, dev->cluster_bytes);
	u64 cluster = div_u64(cmd->offset + dev->cluster_bytes - 1,
			      dev->cluster_bytes);

	for (; cluster < end; cluster++) {
		u32 lpn = cluster * dev->cluster_pages, i;

		ssdemu_buffer_trim(dev, cluster);
		for (i = 0; i < dev->cluster_pages; i++)
			dev->ftl->trim(dev, lpn + i);
		dev->stats.trimmed_pages += dev->cluster_pages;
	}
	cmd_finish(dev, cmd);
}

/* The firmware has decoded a request other than a write. */
static void cmd_decoded(struct ssdemu *dev, struct ssdemu_event *ev)
{
	struct ssdemu_cmd *cmd = container_of(ev, struct ssdemu_cmd, ev);

	switch (cmd->op) {
	case REQ_OP_READ:
		ssdemu_buffer_read(dev, cmd);
		break;
	case REQ_OP_FLUSH:
		ssdemu_buffer_flush(dev, cmd);
		break;
	default:
		cmd_trim(dev, cmd);
		break;
	}
}

/* Call @fn for @cmd at the time @at, in ns; directly if that is now. */
static void cmd_at(struct ssdemu *dev, struct ssdemu_cmd *cmd, u64 at,
		   void (*fn)(struct ssdemu *, struct ssdemu_event *))
{
	if (at > dev->now)
		ssdemu_schedule(dev, &cmd->ev, at, fn);
	else
		fn(dev, &cmd->ev);
}

/* The drive may fetch the data of a write. */
static void cmd_admit(struct ssdemu *dev, struct ssdemu_event *ev)
{
	struct ssdemu_cmd *cmd = container_of(ev, struct ssdemu_cmd, ev);

	cmd->emptying = false;
	if (!dev->cfg.host_mbps) {
		ssdemu_buffer_write(dev, cmd);
		return;
	}
	list_add_tail(&cmd->list, &dev->fetches);
	ssdemu_fetch(dev);
}

/* Count a request in its region and in the unit of its first page. */
static void region_enter(struct ssdemu *dev, struct ssdemu_cmd *cmd)
{
	u32 unused;

	cmd->crowded = false;
	cmd->region = SSDEMU_NONE;
	if (!dev->cfg.crowd_ns || !cmd->bytes)
		return;
	cmd->region = div_u64(cmd->offset >> 20, dev->cfg.region_mb);
	cmd->unit = ssdemu_home_plane(dev, cmd->offset >> dev->page_shift,
				      &unused) % dev->nr_units;
	dev->region_inside[cmd->region]++;
	dev->units[cmd->unit].inside++;
}

/* The firmware has decoded a write. */
static void write_decoded(struct ssdemu *dev, struct ssdemu_event *ev)
{
	struct ssdemu_cmd *cmd = container_of(ev, struct ssdemu_cmd, ev);

	cmd->emptying = ssdemu_buffer_exceeded(dev, cmd);
	if (cmd->emptying)
		ssdemu_buffer_empty(dev, cmd);
	else
		cmd_admit(dev, ev);
}

static void account_arrival(struct ssdemu *dev, struct ssdemu_cmd *cmd)
{
	struct ssdemu_stats *stats = &dev->stats;

	stats->depth[min_t(u32, fls(dev->inside), SSDEMU_DEPTH_BUCKETS - 1)]++;
	dev->inside++;
	if (cmd->op == REQ_OP_READ)
		stats->host_read_bytes += cmd->bytes;
	else if (cmd->op == REQ_OP_WRITE)
		stats->host_write_bytes += cmd->bytes;
	region_enter(dev, cmd);
}

/* Return true if the request begins where a recent one of its direction ended. */
static bool continues_stream(struct ssdemu *dev, struct ssdemu_cmd *cmd,
			     enum ssdemu_dir dir)
{
	u64 *ends = dev->stream_ends[dir];
	bool found;
	u32 i;

	for (i = 0; i < SSDEMU_STREAMS - 1 && ends[i] != cmd->offset; i++)
		;
	found = ends[i] == cmd->offset;
	memmove(ends + 1, ends, i * sizeof(*ends));
	ends[0] = cmd->offset + cmd->bytes;
	return found;
}

/* Return the firmware time in ns that a read or write takes beyond firmware_ns. */
static u64 charge_controller_costs(struct ssdemu *dev, struct ssdemu_cmd *cmd)
{
	enum ssdemu_dir dir = cmd->op == REQ_OP_WRITE ? SSDEMU_WRITE :
							SSDEMU_READ;
	const struct ssdemu_config *cfg = &dev->cfg;
	u64 ns = 0;

	if (cfg->rw_switch_ns && dev->last_dir != dir) {
		dev->stats.rw_switches++;
		ns += cfg->rw_switch_ns;
	}
	dev->last_dir = dir;
	if ((cfg->lookup_ns || cfg->random_ns) &&
	    !continues_stream(dev, cmd, dir)) {
		u64 first = cmd->offset >> dev->page_shift;
		u64 last = (cmd->offset + cmd->bytes - 1) >> dev->page_shift;

		cmd->random = true;
		ns += (last - first + 1) * cfg->lookup_ns;
	}
	return ns;
}

/**
 * ssdemu_cmd_arrive() - accept a request from the host at dev->now
 * @dev: device
 * @cmd: request
 */
void ssdemu_cmd_arrive(struct ssdemu *dev, struct ssdemu_cmd *cmd)
{
	u64 ns = dev->cfg.firmware_ns;
	u64 decoded;

	cmd->arrived = dev->now;
	dev->idle = false;
	cmd->random = false;
	cmd->emptying = false;
	account_arrival(dev, cmd);

	if (cmd->op == REQ_OP_READ || cmd->op == REQ_OP_WRITE)
		ns += charge_controller_costs(dev, cmd);
	decoded = ssdemu_bus_use(dev, &dev->firmware, ns);
	cmd_at(dev, cmd, decoded,
	       cmd->op == REQ_OP_WRITE ? write_decoded : cmd_decoded);
}
