// SPDX-License-Identifier: GPL-2.0
/*
 * The timing engine: events in virtual time, host requests, buses, flash units.
 *
 * A page operation occupies its unit from its command to its end:
 *
 *	read     command | sense .............. | transfer out
 *	program  command, transfer in | program ...............
 *	copy     command | sense ... | (out, command, in) | program ...
 *	erase    command | erase ...
 *
 * With one-shot programs (program_pages) the waiting writes of a write unit are
 * programmed together, after one transfer of all their data. Waiting reads of
 * read_pages that are sensed together share the sensing time, then transfer one
 * after the other. A copy has a whole write unit.
 *
 * A program or an erase may be suspended for reads of its unit, from its time in
 * the cells on:
 *
 *	program  command, transfer in | program . suspend | reads | resume . program
 *
 * Commands and transfers occupy the channel. A command is short and starts the
 * flash, so it is sent before waiting transfers; otherwise the channel is first
 * come, first served. The firmware and the host interface are buses with one
 * queue. Events are handled in the order of their time and book a bus from that
 * time on, so the state of a bus is the time at which it becomes free. The data
 * of writes do not join the queue of the host interface: the drive fetches those
 * of one write at a time, when no data wait for the host and no earlier write
 * waits for room in the buffer.
 */
#include <linux/ktime.h>
#include "ssdemu.h"
#include "compat-hrtimer.h"

static void cmd_admit(struct ssdemu *dev, struct ssdemu_event *ev);
static void unit_next(struct ssdemu *dev, struct ssdemu_unit *unit);

/*
 * Events that complete no request soon are handled together, up to this time in
 * ns. It bounds the work when a request arrives.
 */
#define SSDEMU_SILENT_MAX	((u64)250 * NSEC_PER_USEC)

/* Events */

static bool event_before(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct ssdemu_event, node)->at <
	       rb_entry(b, struct ssdemu_event, node)->at;
}

/**
 * ssdemu_schedule() - add an event
 * @dev: device
 * @ev: event that is not scheduled
 * @at: its time, in ns, not before dev->now
 * @fn: called with the lock held, with dev->now set to @at
 *
 * Events of the same time are handled in the order in which they were added.
 */
void ssdemu_schedule(struct ssdemu *dev, struct ssdemu_event *ev, u64 at,
		     void (*fn)(struct ssdemu *, struct ssdemu_event *))
{
	ev->at = at;
	ev->fn = fn;
	rb_add_cached(&ev->node, &dev->events, event_before);
}

static struct ssdemu_event *next_event(struct ssdemu *dev)
{
	struct rb_node *node = rb_first_cached(&dev->events);

	return node ? rb_entry(node, struct ssdemu_event, node) : NULL;
}

/* Handle all events up to @now, in ns. */
static void run_events(struct ssdemu *dev, u64 now)
{
	struct ssdemu_event *ev;

	dev->until = max(dev->now, now);
	while ((ev = next_event(dev)) && ev->at <= now) {
		rb_erase_cached(&ev->node, &dev->events);
		dev->now = ev->at;
		dev->stats.events++;
		ev->fn(dev, ev);
		if (dev->one_shot)
			ssdemu_sched_kick(dev);
	}
	dev->now = dev->until;
}

/* Buses */

/**
 * ssdemu_bus_use() - use a bus as soon as it is free
 * @dev: device
 * @bus: bus
 * @ns: for so long
 *
 * A bus cannot be booked from a later time on, since it would count as busy until
 * then.
 *
 * Return: the end of the transfer.
 */
u64 ssdemu_bus_use(struct ssdemu *dev, struct ssdemu_bus *bus, u64 ns)
{
	if (!ns)
		return dev->now;
	if (bus->free_at > dev->now)
		bus->conflicts++;
	bus->free_at = max(bus->free_at, dev->now) + ns;
	bus->busy_ns += ns;
	bus->transfers++;
	return bus->free_at;
}

static void transfer_ended(struct ssdemu *dev, struct ssdemu_event *ev);

/* Start the unit's transfer and schedule its event, then_ns after the transfer. */
static void channel_grant(struct ssdemu *dev, struct ssdemu_channel *channel,
			  struct ssdemu_unit *unit)
{
	struct ssdemu_unit *rider;

	unit->bus_end = ssdemu_bus_use(dev, &channel->bus, unit->bus_ns);
	ssdemu_schedule(dev, &unit->ev, unit->bus_end + unit->then_ns,
			unit->ev.fn);
	while ((rider = unit->rider)) {
		unit->rider = rider->rider;
		rider->rider = NULL;
		ssdemu_schedule(dev, &rider->ev, unit->bus_end + rider->then_ns,
				rider->ev.fn);
	}
	if (unit->read_queued)
		ssdemu_unit_suspend(dev, unit);
}

/**
 * ssdemu_channel_watch() - schedule an event at the end of the current transfer
 * @dev: device
 * @channel: busy channel
 *
 * The event grants the channel to the next unit in its lists, then calls the
 * scheduler's channel_free().
 */
void ssdemu_channel_watch(struct ssdemu *dev, struct ssdemu_channel *channel)
{
	if (channel->ev_pending)
		return;
	channel->ev_pending = true;
	ssdemu_schedule(dev, &channel->ev, channel->bus.free_at, transfer_ended);
}

/* End of a watched transfer. */
static void transfer_ended(struct ssdemu *dev, struct ssdemu_event *ev)
{
	struct ssdemu_channel *channel;
	struct list_head *queue;

	channel = container_of(ev, struct ssdemu_channel, ev);
	channel->ev_pending = false;
	queue = list_empty(&channel->commands) ? &channel->data :
						 &channel->commands;
	if (!list_empty(queue)) {
		struct ssdemu_unit *unit;

		unit = list_first_entry(queue, struct ssdemu_unit, wait);
		list_del_init(&unit->wait);
		channel_grant(dev, channel, unit);
	}
	if (dev->sched->channel_free)
		dev->sched->channel_free(dev, channel);
	if (!list_empty(&channel->commands) || !list_empty(&channel->data))
		ssdemu_channel_watch(dev, channel);
}

/* Use the channel for @bus_ns, then work for @then_ns, then call @fn. */
static void channel_use(struct ssdemu *dev, struct ssdemu_unit *unit, u64 bus_ns,
			u64 then_ns, bool command,
			void (*fn)(struct ssdemu *, struct ssdemu_event *))
{
	struct ssdemu_channel *channel = ssdemu_channel_of(dev, unit);

	unit->bus_ns = bus_ns;
	unit->then_ns = then_ns;
	unit->ev.fn = fn;
	if (!bus_ns || (channel->bus.free_at <= dev->now &&
			!channel->ev_pending)) {
		channel_grant(dev, channel, unit);
		return;
	}
	channel->bus.conflicts++;
	list_add_tail(&unit->wait,
		      command ? &channel->commands : &channel->data);
	ssdemu_channel_watch(dev, channel);
}

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

/* Page operations */

/**
 * ssdemu_txn_get() - allocate a page operation
 * @dev: device
 * @lpn: logical page
 * @dir: read or program
 *
 * The pool holds the operations of all tags, of all destaging and of a prefetch
 * for each unit (txn_limit()), so it is never empty.
 *
 * Return: the operation.
 */
struct ssdemu_txn *ssdemu_txn_get(struct ssdemu *dev, u32 lpn,
				  enum ssdemu_dir dir)
{
	struct ssdemu_txn *txn;

	txn = list_first_entry(&dev->txn_free, struct ssdemu_txn, list);
	list_del(&txn->list);
	txn->cmd = NULL;
	txn->cluster = NULL;
	txn->rpage = NULL;
	txn->lpn = lpn;
	txn->bytes = 0;
	txn->dir = dir;
	return txn;
}

/**
 * ssdemu_txn_put() - free a page operation
 * @dev: device
 * @txn: operation in no list
 */
void ssdemu_txn_put(struct ssdemu *dev, struct ssdemu_txn *txn)
{
	list_add(&txn->list, &dev->txn_free);
}

/**
 * ssdemu_home_plane() - plane of a page by static or concatenated allocation
 * @dev: device
 * @lpn: logical page
 * @row: set to the page's number among those of its plane
 *
 * A page that was never written is read from there, too, whatever the
 * allocation, as if the drive came formatted. Needs no lock.
 */
u32 ssdemu_home_plane(const struct ssdemu *dev, u32 lpn, u32 *row)
{
	u32 plane;
	u64 r;

	if (dev->cfg.allocation == SSDEMU_CONCAT) {
		plane = dev->concat_plane[lpn / dev->plane_lpns];
		*row = lpn % dev->plane_lpns;
		return plane;
	}
	plane = lv_plane(&dev->geo, lpn, &r);
	*row = r * dev->lockstep + plane / dev->nr_planes;
	return plane % dev->nr_planes;
}

static void account_conflict(struct ssdemu *dev, struct ssdemu_unit *unit,
			     enum ssdemu_dir dir)
{
	struct ssdemu_stats *stats = &dev->stats;
	bool other_writes;

	if (!unit->busy && !unit->waiting)
		return;
	other_writes = unit->busy ? unit->writing :
				    unit->last_queued_dir == SSDEMU_WRITE;
	if (unit->cleaning)
		stats->conflict_clean++;
	else if (other_writes != (dir == SSDEMU_WRITE))
		stats->conflict_rw++;
	else if (other_writes)
		stats->conflict_ww++;
	else
		stats->conflict_rr++;
}

/**
 * ssdemu_txn_queue() - hand a page operation to the device scheduler
 * @dev: device
 * @txn: operation; it may be complete when this returns
 */
void ssdemu_txn_queue(struct ssdemu *dev, struct ssdemu_txn *txn)
{
	u32 block, page;

	txn->seq = dev->seq++;
	if (txn->dir == SSDEMU_READ)
		txn->plane = dev->ftl->locate(dev, txn->lpn, &block, &page);
	else if (dev->cfg.allocation == SSDEMU_DYNAMIC)
		txn->plane = SSDEMU_NONE;
	else
		txn->plane = ssdemu_home_plane(dev, txn->lpn, &page);

	if (txn->plane != SSDEMU_NONE) {
		struct ssdemu_unit *unit = ssdemu_unit_of(dev, txn->plane);

		account_conflict(dev, unit, txn->dir);
		txn->writes_seen = unit->writes - unit->writing;
		unit->waiting++;
		unit->last_queued_dir = txn->dir;
	}
	if (dev->one_shot) {
		list_add_tail(&txn->list, &dev->arrivals);
		return;
	}
	dev->sched->add(dev, txn);
	if (txn->dir == SSDEMU_READ && dev->cfg.suspend_ns)
		ssdemu_unit_suspend(dev, ssdemu_unit_of(dev, txn->plane));
}

static void txn_done(struct ssdemu *dev, struct ssdemu_txn *txn)
{
	struct ssdemu_cluster *cluster = txn->cluster;
	struct ssdemu_rpage *rpage = txn->rpage;
	struct ssdemu_cmd *cmd = txn->cmd;
	u32 bytes = txn->bytes;

	/* First, since the calls below may allocate an operation. */
	ssdemu_txn_put(dev, txn);
	if (rpage)
		ssdemu_buffer_filled(dev, rpage);
	if (cmd)
		ssdemu_cmd_put(dev, cmd, bytes);
	if (cluster && !--cluster->left)
		ssdemu_cluster_step(dev, cluster);
}

/* Units */

static void unit_set_busy(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	unit->busy = true;
	unit->busy_since = dev->now;
	__set_bit(ssdemu_unit_index(dev, unit), dev->busy_units);
	if (!dev->units_busy++)
		dev->active_since = dev->now;
	dev->stats.max_units_busy = max_t(u64, dev->stats.max_units_busy,
					  dev->units_busy);
}

static void unit_set_free(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	unit->busy = false;
	unit->busy_ns += dev->now - unit->busy_since;
	__clear_bit(ssdemu_unit_index(dev, unit), dev->busy_units);
	if (!--dev->units_busy)
		dev->stats.active_ns += dev->now - dev->active_since;
}

static void unit_op_begin(struct ssdemu *dev, struct ssdemu_unit *unit,
			  bool writing)
{
	unit->op_since = dev->now;
	unit->writing = writing;
	unit->writes += writing;
	if (writing) {
		unit->suspends = 0;
		unit->read_queued = false;
	}
}

static void unit_op_end(struct ssdemu *dev, struct ssdemu_unit *unit, u32 plane)
{
	dev->planes[plane].busy_ns += dev->now - unit->op_since;
	unit->writing = false;
}

static void unit_programmed(struct ssdemu *dev, struct ssdemu_event *ev)
{
	struct ssdemu_unit *unit = container_of(ev, struct ssdemu_unit, ev);
	struct ssdemu_txn *txn, *next;
	LIST_HEAD(batch);

	list_splice_init(&unit->batch, &batch);
	list_add(&unit->txn->list, &batch);
	dev->programs--;
	unit_op_end(dev, unit, unit->txn->plane);
	unit->txn = NULL;
	list_for_each_entry_safe(txn, next, &batch, list) {
		list_del(&txn->list);
		txn_done(dev, txn);
	}
	unit_next(dev, unit);
}

static void unit_sensed(struct ssdemu *dev, struct ssdemu_event *ev);

/* A page is with the controller; transfer the next one that was sensed. */
static void unit_transferred(struct ssdemu *dev, struct ssdemu_event *ev)
{
	struct ssdemu_unit *unit = container_of(ev, struct ssdemu_unit, ev);
	struct ssdemu_txn *txn = unit->txn;

	unit->txn = list_first_entry_or_null(&unit->batch, struct ssdemu_txn,
					     list);
	if (unit->txn) {
		list_del(&unit->txn->list);
		unit_sensed(dev, ev);
		txn_done(dev, txn);
		return;
	}
	unit_op_end(dev, unit, txn->plane);
	txn_done(dev, txn);
	unit_next(dev, unit);
}

static void unit_sensed(struct ssdemu *dev, struct ssdemu_event *ev)
{
	channel_use(dev, container_of(ev, struct ssdemu_unit, ev),
		    dev->page_transfer_ns, 0, false, unit_transferred);
}

/*
 * Account what a request loses to those for other units of its region, and
 * return it as unit time in ns. Requests for one unit wait for each other
 * without contending.
 */
static u64 crowd_ns(struct ssdemu *dev, struct ssdemu_cmd *cmd)
{
	u32 others = dev->region_inside[cmd->region];
	u32 same = dev->units[cmd->unit].inside;
	u64 ns;

	if (others <= same + dev->cfg.crowd_depth)
		return 0;
	ns = (u64)(others - same - dev->cfg.crowd_depth) * dev->cfg.crowd_ns;
	dev->stats.crowd_ns += ns;
	return ns;
}

/* Return the unit time in ns that a page operation takes beyond that of its flash. */
static u64 charge_unit_costs(struct ssdemu *dev, struct ssdemu_txn *txn)
{
	struct ssdemu_cmd *cmd = txn->cmd;
	u64 ns = 0;

	if (!cmd && txn->cluster)
		cmd = txn->cluster->cmd;
	if (!cmd)
		return 0;
	if (cmd->random)
		ns += dev->cfg.random_ns;
	if (dev->cfg.crowd_ns && !cmd->crowded) {
		cmd->crowded = true;
		ns += crowd_ns(dev, cmd);
	}
	return ns;
}

/*
 * Return the unit whose command this operation shares: another plane of the die
 * that starts the same operation at the same time, at the same page of a block.
 * Return NULL if there is none; the operation is then the one to share.
 */
static struct ssdemu_unit *share_command(struct ssdemu *dev,
					 struct ssdemu_unit *unit, u32 page)
{
	struct ssdemu_txn *txn = unit->txn;
	struct ssdemu_die *die = &dev->dies[txn->plane % dev->nr_dies];

	if (die->started == dev->now && die->dir == txn->dir &&
	    die->page == page) {
		dev->stats.multiplane++;
		return die->leader;
	}
	die->started = dev->now;
	die->dir = txn->dir;
	die->page = page;
	die->leader = unit;
	return NULL;
}

static void account_reads(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	struct ssdemu_stats *stats = &dev->stats;
	struct ssdemu_txn *txn;

	stats->flash_reads++;
	stats->interference += unit->writes != unit->txn->writes_seen;
	list_for_each_entry(txn, &unit->batch, list) {
		stats->flash_reads++;
		stats->shared_senses++;
		stats->interference += unit->writes != txn->writes_seen;
	}
}

static void issue_read(struct ssdemu *dev, struct ssdemu_unit *unit, u64 extra)
{
	const struct ssdemu_config *cfg = &dev->cfg;
	struct ssdemu_txn *txn = unit->txn;
	struct ssdemu_unit *leader = NULL;
	u32 block = 0, page = 0;

	account_reads(dev, unit);
	if (dev->slc_blocks || cfg->unit == SSDEMU_UNIT_PLANE)
		dev->ftl->locate(dev, txn->lpn, &block, &page);
	extra += block < cfg->blocks ? cfg->read_ns : cfg->slc_read_ns;
	if (cfg->unit == SSDEMU_UNIT_PLANE)
		leader = share_command(dev, unit, page);
	if (!leader) {
		channel_use(dev, unit, cfg->command_ns, extra, true,
			    unit_sensed);
	} else if (list_empty(&leader->wait)) {
		ssdemu_schedule(dev, &unit->ev, leader->bus_end + extra,
				unit_sensed);
	} else {
		/* The shared command waits for the channel: start with it. */
		unit->then_ns = extra;
		unit->ev.fn = unit_sensed;
		unit->rider = leader->rider;
		leader->rider = unit;
	}
}

static void issue_program(struct ssdemu *dev, struct ssdemu_unit *unit,
			  u64 extra)
{
	const struct ssdemu_config *cfg = &dev->cfg;
	u32 plane = unit->txn->plane, pages = 1;
	bool slc = ssdemu_slc_open(dev, plane);
	u32 page = dev->ftl->program(dev, plane, unit->txn->lpn);
	u32 command = cfg->command_ns;
	struct ssdemu_txn *txn;

	list_for_each_entry(txn, &unit->batch, list) {
		dev->ftl->program(dev, plane, txn->lpn);
		pages++;
	}
	if (dev->ftl->programmed)
		dev->ftl->programmed(dev, plane, pages, slc);
	dev->stats.flash_programs += pages;
	if (slc)
		dev->stats.slc_programs += pages;
	if (cfg->unit == SSDEMU_UNIT_PLANE && share_command(dev, unit, page))
		command = 0;
	channel_use(dev, unit, command + (u64)pages * dev->page_transfer_ns,
		    extra + (slc ? cfg->slc_program_ns : cfg->program_ns),
		    false, unit_programmed);
}

/* Start the operation that the unit has taken. */
static void unit_issue(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	enum ssdemu_dir dir = unit->txn->dir;
	u64 extra = charge_unit_costs(dev, unit->txn);

	if (dev->one_shot)
		ssdemu_sched_gather(dev, unit);
	unit_op_begin(dev, unit, dir == SSDEMU_WRITE);
	if (dir == SSDEMU_WRITE)
		issue_program(dev, unit, extra);
	else
		issue_read(dev, unit, extra);
}

/**
 * ssdemu_unit_start() - give a page operation to a free unit
 * @dev: device
 * @unit: idle unit without planes to clean
 * @txn: operation in no list, with its plane chosen
 */
void ssdemu_unit_start(struct ssdemu *dev, struct ssdemu_unit *unit,
		       struct ssdemu_txn *txn)
{
	unit_set_busy(dev, unit);
	dev->programs += txn->dir == SSDEMU_WRITE;
	unit->held = txn;
	unit_next(dev, unit);
}

/* Cleaning: garbage collection or a merge of blocks, page by page */

static void unit_cleaned(struct ssdemu *dev, struct ssdemu_event *ev)
{
	struct ssdemu_unit *unit = container_of(ev, struct ssdemu_unit, ev);

	unit_op_end(dev, unit, unit->clean_plane);
	unit->clean_ns += dev->now - unit->op_since;
	unit->cleaning = false;
	unit_next(dev, unit);
}

static void unit_copy_sensed(struct ssdemu *dev, struct ssdemu_event *ev)
{
	struct ssdemu_unit *unit = container_of(ev, struct ssdemu_unit, ev);
	u64 ns = dev->cfg.command_ns;

	if (!dev->cfg.gc_copyback)
		ns += 2ULL * unit->copy_pages * dev->page_transfer_ns;
	channel_use(dev, unit, ns, dev->cfg.program_ns, false, unit_cleaned);
}

/* Start the next step of cleaning a plane. Return false if the plane is clean. */
static bool unit_clean_step(struct ssdemu *dev, struct ssdemu_unit *unit, u32 p)
{
	const struct ssdemu_config *cfg = &dev->cfg;
	enum ssdemu_clean_step step;
	struct ssdemu_copy copy;

	step = dev->ftl->clean(dev, p, &copy);
	if (step == SSDEMU_CLEAN_DONE)
		return false;
	unit->clean_plane = p;
	unit_op_begin(dev, unit, true);
	unit->cleaning = true;
	if (step == SSDEMU_CLEAN_COPY) {
		if (copy.slc)
			dev->stats.folded_pages += copy.pages;
		else
			dev->stats.flash_copies += copy.pages;
		dev->stats.copy_senses += copy.senses;
		unit->copy_pages = copy.pages;
		channel_use(dev, unit, copy.senses * cfg->command_ns,
			    (u64)copy.senses * (copy.slc ? cfg->slc_read_ns :
						cfg->read_ns),
			    true, unit_copy_sensed);
	} else {
		dev->stats.flash_erases++;
		dev->planes[p].erases++;
		channel_use(dev, unit, cfg->command_ns, cfg->erase_ns, true,
			    unit_cleaned);
	}
	return true;
}

/* Suspension of a program or an erase */

static void unit_suspended(struct ssdemu *dev, struct ssdemu_event *ev)
{
	struct ssdemu_unit *unit = container_of(ev, struct ssdemu_unit, ev);
	struct ssdemu_txn *txn = unit->txn;

	unit_op_end(dev, unit, txn ? txn->plane : unit->clean_plane);
	if (unit->cleaning)
		unit->clean_ns += dev->now - unit->op_since;
	unit->cleaning = false;
	list_splice_init(&unit->batch, &unit->suspended.batch);
	unit_next(dev, unit);
}

/**
 * ssdemu_unit_suspend() - suspend the program or erase of a unit for a read
 * @dev: device with suspend_ns
 * @unit: unit for which a read has been queued
 *
 * Do nothing if the operation ends before the unit could read. One that still
 * needs the channel is suspended as soon as it is in the cells.
 */
void ssdemu_unit_suspend(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	struct ssdemu_suspended *suspended = &unit->suspended;
	u64 from = max3(dev->now, unit->bus_end, unit->resumed);

	if (!unit->writing || suspended->fn ||
	    unit->suspends >= dev->cfg.suspend_max)
		return;
	unit->read_queued = !list_empty(&unit->wait) ||
			    unit->ev.fn == unit_copy_sensed;
	if (unit->read_queued || from + dev->cfg.suspend_ns >= unit->ev.at)
		return;

	suspended->fn = unit->ev.fn;
	suspended->txn = unit->txn;
	suspended->left_ns = unit->ev.at - from;
	suspended->since = from;
	suspended->reads = 0;
	unit->suspends++;
	dev->stats.suspends++;
	rb_erase_cached(&unit->ev.node, &dev->events);
	ssdemu_schedule(dev, &unit->ev, from + dev->cfg.suspend_ns,
			unit_suspended);
}

/* Serve the next read of a suspension; after the last one resume the operation. */
static void unit_serve_or_resume(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	struct ssdemu_suspended *suspended = &unit->suspended;
	struct ssdemu_txn *read;

	read = list_first_entry_or_null(&unit->queue[SSDEMU_READ],
					struct ssdemu_txn, list);
	if (read && suspended->reads < dev->cfg.read_bound) {
		list_del(&read->list);
		suspended->reads++;
		unit->waiting--;
		unit->txn = read;
		unit_issue(dev, unit);
		return;
	}
	unit->resumed = dev->now + dev->cfg.resume_ns;
	dev->stats.suspended_ns += unit->resumed - suspended->since;
	unit->txn = suspended->txn;
	list_splice_init(&suspended->batch, &unit->batch);
	unit->cleaning = !unit->txn;
	unit->op_since = dev->now;
	unit->writing = true;
	ssdemu_schedule(dev, &unit->ev, unit->resumed + suspended->left_ns,
			suspended->fn);
	suspended->fn = NULL;
}

/* Clean the planes that must be clean. Return false when they are. */
static bool unit_clean(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	u32 p = unit->clean_plane;

	while (!dev->planes[p].to_clean) {
		p += dev->nr_units;
		if (p >= dev->nr_planes)
			p = ssdemu_unit_index(dev, unit);
	}
	if (unit_clean_step(dev, unit, p))
		return true;
	dev->planes[p].to_clean = false;
	unit->planes_to_clean--;
	return false;
}

/*
 * Serve a waiting read before the next step of cleaning. Return false if there is
 * none, or if read_bound of them have passed that step; it is then due.
 */
static bool unit_yield(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	struct ssdemu_txn *read;

	read = list_first_entry_or_null(&unit->queue[SSDEMU_READ],
					struct ssdemu_txn, list);
	if (!read || unit->yielded >= dev->cfg.read_bound) {
		unit->yielded = 0;
		return false;
	}
	list_del(&read->list);
	unit->yielded++;
	unit->waiting--;
	unit->txn = read;
	unit_issue(dev, unit);
	return true;
}

/* Return a plane of the unit for which a background step is due, or SSDEMU_NONE. */
static u32 background_plane(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	u32 p;

	if (!dev->background)
		return SSDEMU_NONE;
	for (p = ssdemu_unit_index(dev, unit); p < dev->nr_planes;
	     p += dev->nr_units)
		if (dev->ftl->due(dev, p))
			return p;
	return SSDEMU_NONE;
}

/*
 * Start a background step if one is due, or a read that may pass it. Writes wait
 * for it, so the collector keeps up with them. Return false if none is due.
 */
static bool unit_background(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	u64 copies = dev->stats.flash_copies, erases = dev->stats.flash_erases;
	u32 p = background_plane(dev, unit);

	if (p == SSDEMU_NONE)
		return false;
	if (unit_yield(dev, unit))
		return true;
	if (!unit_clean_step(dev, unit, p))
		return false;
	dev->stats.background_copies += dev->stats.flash_copies - copies;
	dev->stats.background_erases += dev->stats.flash_erases - erases;
	return true;
}

/* Start the next step or operation of a busy unit, or make the unit free. */
static void unit_next(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	if (unit->suspended.fn) {
		unit_serve_or_resume(dev, unit);
		return;
	}
	while (unit->planes_to_clean) {
		if (dev->cfg.gc_yield && unit_yield(dev, unit))
			return;
		if (unit_clean(dev, unit))
			return;
	}
	if (unit->held) {
		struct ssdemu_txn *txn = unit->held;

		if (txn->dir == SSDEMU_WRITE &&
		    dev->ftl->prepare(dev, txn->plane, txn->lpn)) {
			dev->stats.foreground_waits++;
			unit_next(dev, unit);
			return;
		}
		unit->held = NULL;
		unit->txn = txn;
		unit->waiting--;
		unit_issue(dev, unit);
		return;
	}
	if (unit_background(dev, unit))
		return;
	unit_set_free(dev, unit);
	dev->sched->unit_free(dev, unit);
}

/**
 * ssdemu_clean_plane() - have a plane cleaned
 * @dev: device
 * @plane: plane for which the FTL's clean() has a step to take
 *
 * A free unit starts at once, a busy one after its current operation.
 */
void ssdemu_clean_plane(struct ssdemu *dev, u32 plane)
{
	struct ssdemu_unit *unit = ssdemu_unit_of(dev, plane);

	if (dev->planes[plane].to_clean)
		return;
	dev->planes[plane].to_clean = true;
	unit->planes_to_clean++;
	if (!unit->busy) {
		unit_set_busy(dev, unit);
		unit_next(dev, unit);
	}
}

/* Idle time */

static void idle_start(struct ssdemu *dev, struct ssdemu_event *ev)
{
	u64 at = dev->last_end + dev->cfg.idle_us * (u64)NSEC_PER_USEC;
	u32 i;

	dev->idle_pending = false;
	if (dev->inside)
		return;
	if (at > dev->now) {
		ssdemu_idle_expect(dev);
		return;
	}
	dev->idle = true;
	for (i = 0; i < dev->nr_units; i++) {
		struct ssdemu_unit *unit = &dev->units[i];

		if (unit->busy || background_plane(dev, unit) == SSDEMU_NONE)
			continue;
		unit_set_busy(dev, unit);
		unit_next(dev, unit);
	}
}

/**
 * ssdemu_idle_expect() - schedule the work that waits for an idle drive
 * @dev: device, which the last request has left
 */
void ssdemu_idle_expect(struct ssdemu *dev)
{
	if (!dev->background || dev->idle_pending)
		return;
	dev->idle_pending = true;
	ssdemu_schedule(dev, &dev->idle_ev, dev->last_end +
			dev->cfg.idle_us * (u64)NSEC_PER_USEC, idle_start);
}

/* The host's time */

/*
 * Return the device's time in ns. Only this function and arm_timer() know the
 * host's time, so everything in the device is slower by the same factor.
 */
static u64 device_clock(const struct ssdemu *dev)
{
	return div_u64(ktime_get_ns(), dev->cfg.time_scale);
}

/* Return the least time in ns from the start of a page operation to its end. */
static u64 shortest_operation(const struct ssdemu *dev)
{
	const struct ssdemu_config *cfg = &dev->cfg;
	u32 read_ns = cfg->read_ns, program_ns = cfg->program_ns;

	if (dev->slc_blocks) {
		read_ns = min(read_ns, cfg->slc_read_ns);
		program_ns = min(program_ns, cfg->slc_program_ns);
	}
	return min(read_ns, program_ns) + dev->page_transfer_ns;
}

/* Return the least time in ns for which the unit's cleaning goes on after a step. */
static u64 cleaning_left_ns(const struct ssdemu *dev,
			    const struct ssdemu_unit *unit)
{
	const struct ssdemu_config *cfg = &dev->cfg;

	if ((cfg->gc_yield || cfg->suspend_ns) &&
	    !list_empty(&unit->queue[SSDEMU_READ]))
		return 0;
	return (u64)dev->planes[unit->clean_plane].copies_due *
	       (cfg->read_ns + cfg->program_ns);
}

/*
 * Return for how long nothing that follows from a unit's event can complete a
 * request, in ns. Requests are completed by the ends of transfers to the
 * controller, by the ends of programs and by their own events. The events named
 * here only start an operation or a transfer. No other one has a bound above 0.
 *
 * The bounds are those of the present state. They hold until the timer expires,
 * since operations for the host are queued by arrivals and by events without a
 * bound only, after which it is set again.
 */
static u64 unit_silent_ns(const struct ssdemu *dev,
			  const struct ssdemu_event *ev)
{
	if (ev->fn == unit_sensed)
		return dev->page_transfer_ns;
	if (ev->fn == unit_copy_sensed || ev->fn == unit_cleaned)
		return dev->shortest_ns +
		       cleaning_left_ns(dev, container_of(ev, struct ssdemu_unit,
							  ev));
	return 0;
}

/* The same, of a unit that waits for its channel, from the grant on. */
static u64 waiting_silent_ns(const struct ssdemu *dev,
			     const struct ssdemu_unit *unit)
{
	/*
	 * A program may be suspended at the end of its transfer. Units that share
	 * the command may sense for a shorter time.
	 */
	if (unit->read_queued || unit->rider)
		return dev->shortest_ns;
	return unit->bus_ns + unit->then_ns + unit_silent_ns(dev, &unit->ev);
}

/* The same, of the end of a transfer, which starts what waits for the channel. */
static u64 channel_silent_ns(const struct ssdemu *dev,
			     const struct ssdemu_channel *channel)
{
	u64 ns = channel->nr_ready ? dev->shortest_ns : SSDEMU_SILENT_MAX;
	const struct ssdemu_unit *unit;

	list_for_each_entry(unit, &channel->commands, wait)
		ns = min(ns, waiting_silent_ns(dev, unit));
	list_for_each_entry(unit, &channel->data, wait)
		ns = min(ns, waiting_silent_ns(dev, unit));
	return ns;
}

/**
 * ssdemu_silent_ns() - time for which nothing that follows from an event completes a request
 * @dev: device
 * @ev: event
 *
 * Return: a lower bound of it, in ns, as of unit_silent_ns().
 */
u64 ssdemu_silent_ns(const struct ssdemu *dev, const struct ssdemu_event *ev)
{
	u64 ns;

	if (ev->fn == transfer_ended)
		ns = channel_silent_ns(dev, container_of(ev, struct ssdemu_channel,
							 ev));
	else
		ns = unit_silent_ns(dev, ev);
	return min(ns, SSDEMU_SILENT_MAX);
}

/*
 * Program the hrtimer for the first time at which a request may be completed.
 * Events before that are handled then, or when a request arrives: the device is
 * in the same state as if they had been handled on time.
 */
static void arm_timer(struct ssdemu *dev)
{
	u64 at = U64_MAX;
	struct rb_node *node;

	for (node = rb_first_cached(&dev->events); node; node = rb_next(node)) {
		struct ssdemu_event *ev;

		ev = rb_entry(node, struct ssdemu_event, node);
		if (ev->at >= at)
			break;
		at = min(at, ev->at + ssdemu_silent_ns(dev, ev));
	}
	if (at >= dev->armed)
		return;
	dev->armed = at;
	hrtimer_start(&dev->timer, ns_to_ktime(at * dev->cfg.time_scale),
		      HRTIMER_MODE_ABS);
}

/**
 * ssdemu_run() - advance the device to the present time
 * @dev: device; its lock must not be held
 * @cmd: request that arrives now, or NULL
 *
 * Completes the requests that are done, after dropping the lock. May be called
 * in interrupt context.
 */
void ssdemu_run(struct ssdemu *dev, struct ssdemu_cmd *cmd)
{
	struct ssdemu_cmd *next;
	unsigned long flags;
	LIST_HEAD(done);

	spin_lock_irqsave(&dev->lock, flags);
	run_events(dev, device_clock(dev));
	if (cmd)
		ssdemu_cmd_arrive(dev, cmd);
	if (dev->one_shot)
		ssdemu_sched_kick(dev);
	arm_timer(dev);
	list_splice_init(&dev->done, &done);
	spin_unlock_irqrestore(&dev->lock, flags);

	list_for_each_entry_safe(cmd, next, &done, list)
		blk_mq_complete_request(blk_mq_rq_from_pdu(cmd));
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct ssdemu *dev = container_of(timer, struct ssdemu, timer);
	unsigned long flags;

	spin_lock_irqsave(&dev->lock, flags);
	dev->armed = U64_MAX;
	dev->stats.timers++;
	spin_unlock_irqrestore(&dev->lock, flags);
	ssdemu_run(dev, NULL);
	return HRTIMER_NORESTART;
}

/* Set-up */

/* Return the most page operations that can be in the device at once. */
static u32 txn_limit(const struct ssdemu *dev)
{
	return (ssdemu_host_clusters(dev) + dev->destage_max) *
	       dev->cluster_pages + (dev->cfg.prefetch ? dev->nr_units : 0);
}

static void init_units(struct ssdemu *dev)
{
	u32 i;

	for (i = 0; i < dev->nr_units; i++) {
		INIT_LIST_HEAD(&dev->units[i].queue[SSDEMU_READ]);
		INIT_LIST_HEAD(&dev->units[i].queue[SSDEMU_WRITE]);
		INIT_LIST_HEAD(&dev->units[i].wait);
		INIT_LIST_HEAD(&dev->units[i].batch);
		INIT_LIST_HEAD(&dev->units[i].suspended.batch);
		INIT_LIST_HEAD(&dev->units[i].kicked);
		dev->units[i].clean_plane = i;
		dev->units[i].next_plane = i;
	}
	for (i = 0; i < dev->nr_dies; i++)
		dev->dies[i].started = U64_MAX;
	for (i = 0; i < dev->cfg.channels; i++) {
		INIT_LIST_HEAD(&dev->channels[i].commands);
		INIT_LIST_HEAD(&dev->channels[i].data);
	}
}

/**
 * ssdemu_engine_init() - allocate units, channels and page operations
 * @dev: device with a resolved configuration
 *
 * May sleep; needs no lock.
 *
 * Return: 0, or -ENOMEM; ssdemu_engine_exit() is due in either case.
 */
int ssdemu_engine_init(struct ssdemu *dev)
{
	u32 txns = txn_limit(dev), i;

	INIT_LIST_HEAD(&dev->done);
	INIT_LIST_HEAD(&dev->fetches);
	INIT_LIST_HEAD(&dev->fifo);
	INIT_LIST_HEAD(&dev->arrivals);
	INIT_LIST_HEAD(&dev->txn_free);
	dev->events = RB_ROOT_CACHED;
	dev->armed = U64_MAX;
	dev->shortest_ns = shortest_operation(dev);
	dev->now = device_clock(dev);
	memset(dev->stream_ends, 0xff, sizeof(dev->stream_ends));
	compat_hrtimer_setup(&dev->timer, timer_fired, CLOCK_MONOTONIC,
			     HRTIMER_MODE_ABS);

	dev->channels = kvcalloc(dev->cfg.channels, sizeof(*dev->channels),
				 GFP_KERNEL);
	dev->units = kvcalloc(dev->nr_units, sizeof(*dev->units), GFP_KERNEL);
	dev->planes = kvcalloc(dev->nr_planes, sizeof(*dev->planes), GFP_KERNEL);
	dev->dies = kvcalloc(dev->nr_dies, sizeof(*dev->dies), GFP_KERNEL);
	dev->busy_units = bitmap_zalloc(dev->nr_units, GFP_KERNEL);
	dev->txn_pool = kvcalloc(txns, sizeof(*dev->txn_pool), GFP_KERNEL);
	if (!dev->channels || !dev->units || !dev->planes || !dev->dies ||
	    !dev->busy_units || !dev->txn_pool)
		return -ENOMEM;
	if (dev->cfg.crowd_ns) {
		u64 regions = div_u64(dev->capacity >> 20, dev->cfg.region_mb);

		dev->region_inside = kvcalloc(regions + 1, sizeof(u32),
					      GFP_KERNEL);
		if (!dev->region_inside)
			return -ENOMEM;
	}

	init_units(dev);
	for (i = 0; i < txns; i++)
		list_add_tail(&dev->txn_pool[i].list, &dev->txn_free);
	return 0;
}

/**
 * ssdemu_engine_exit() - stop the timer and free the engine
 * @dev: device without requests; its lock must not be held
 */
void ssdemu_engine_exit(struct ssdemu *dev)
{
	hrtimer_cancel(&dev->timer);
	kvfree(dev->region_inside);
	kvfree(dev->txn_pool);
	bitmap_free(dev->busy_units);
	kvfree(dev->dies);
	kvfree(dev->planes);
	kvfree(dev->units);
	kvfree(dev->channels);
}
