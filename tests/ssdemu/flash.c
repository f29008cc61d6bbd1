// SPDX-License-Identifier: GPL-2.0
/*
 * Page operations on the flash: the channels and the units.
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
 * come, first served.
 */
#include "ssdemu.h"

static void unit_next(struct ssdemu *dev, struct ssdemu_unit *unit);

/*
 * Events that complete no request soon are handled together, up to this time in
 * ns. It bounds the work when a request arrives.
 */
#define SSDEMU_SILENT_MAX	((u64)250 * NSEC_PER_USEC)

/* Channels */

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

/* How long nothing completes a request, for the timer */

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
