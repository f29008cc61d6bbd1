// SPDX-License-Identifier: GPL-2.0
/*
 * The device's own scheduling (device_sched=): which waiting page operation a
 * free unit takes.
 *
 *	fifo      in order of arrival. While the unit of the oldest operation is
 *		  busy, all others wait: the baseline of the PIQ and AOS papers.
 *	ooo       a queue per unit, oldest first.
 *	ooo-read  a queue per unit, reads first; at most read_bound reads pass a
 *		  waiting write of their unit.
 *	aos       adaptive out-of-order scheduling (the AOS paper, page 1).
 *		  Operations are scheduled after mapping, so an operation
 *		  conflicts if its physical unit is busy. The re-ordering set
 *		  has one operation without conflict for each free unit: the
 *		  oldest read, or the oldest write if there is no read or
 *		  read_bound reads have passed that write. So writes do not
 *		  block reads and do not starve. The set is dispatched
 *		  round-robin over the channels: a read at once, since its
 *		  command is short; a write when its channel is free, one at
 *		  each end of a transfer. Data of several channels overlap, and
 *		  no write occupies a unit while it waits for the channel.
 *
 * With dynamic allocation a write has no unit until a free one takes it. These
 * unbound writes wait in one queue, in order.
 *
 * With one-shot programs the operations of an event are queued together when the
 * event is over, so that a unit can take several of them. A write then waits
 * until a whole write unit waits for its unit (or for no unit yet), except:
 *
 *	- a flush covers it or a request waits for its program
 *	- the write buffer is full, and no program under way will make room in it
 */
#include "ssdemu.h"

/* Unbound writes */

/* Return true if the buffer can admit writes only after a partial write unit. */
static bool buffer_stuck(const struct ssdemu *dev)
{
	return !dev->programs && !list_empty(&dev->admission);
}

/* Return true if the waiting writes may be programmed in a write unit of @pages. */
static bool may_program(const struct ssdemu *dev, u32 pages,
			const struct ssdemu_backlog *backlog)
{
	return !dev->one_shot || backlog->urgent || backlog->writes >= pages ||
	       (backlog->writes && buffer_stuck(dev));
}

static void backlog_add(struct ssdemu *dev, struct ssdemu_backlog *backlog,
			const struct ssdemu_cluster *cluster)
{
	backlog->writes++;
	if (cluster->cmd || cluster->seq <= dev->flush_upto)
		backlog->urgent = backlog->writes;
}

static void backlog_take(struct ssdemu_backlog *backlog, u32 writes)
{
	backlog->writes -= writes;
	backlog->urgent -= min(backlog->urgent, writes);
}

/* Return the unit's plane for the next write, or SSDEMU_NONE if none can take it. */
static u32 choose_plane(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	u32 plane = unit->next_plane;

	do {
		if (ssdemu_plane_has_room(dev, plane) &&
		    may_program(dev, ssdemu_write_unit(dev, plane),
				&dev->backlog))
			return plane;
		plane += dev->nr_units;
		if (plane >= dev->nr_planes)
			plane = ssdemu_unit_index(dev, unit);
	} while (plane != unit->next_plane);
	return SSDEMU_NONE;
}

/* Choose a plane of @unit for a write. Return false if none has room. */
static bool bind_unit(struct ssdemu *dev, struct ssdemu_unit *unit,
		      struct ssdemu_txn *txn)
{
	txn->plane = choose_plane(dev, unit);
	if (txn->plane == SSDEMU_NONE)
		return false;
	unit->next_plane = txn->plane + dev->nr_units;
	if (unit->next_plane >= dev->nr_planes)
		unit->next_plane = ssdemu_unit_index(dev, unit);
	txn->writes_seen = unit->writes;
	unit->waiting++;
	if (dev->one_shot)
		backlog_take(&dev->backlog, 1);
	return true;
}

/*
 * Bind a write to the next free unit with room; return it, or NULL. A unit that has
 * got an operation in the current event chooses for itself.
 */
static struct ssdemu_unit *bind_to_free(struct ssdemu *dev,
					struct ssdemu_txn *txn)
{
	u32 smallest = dev->slc_open ? dev->cfg.read_pages :
				       dev->cfg.program_pages;
	u32 n = dev->next_unit, tries;

	if (!may_program(dev, smallest, &dev->backlog))
		return NULL;
	for (tries = 0; tries < dev->nr_units; tries++, n++) {
		struct ssdemu_unit *unit;

		n = find_next_zero_bit(dev->busy_units, dev->nr_units, n);
		if (n >= dev->nr_units)
			n = find_first_zero_bit(dev->busy_units, dev->nr_units);
		if (n >= dev->nr_units)
			return NULL;
		unit = &dev->units[n];
		if (list_empty(&unit->kicked) && bind_unit(dev, unit, txn)) {
			dev->next_unit = n + 1 < dev->nr_units ? n + 1 : 0;
			return unit;
		}
	}
	return NULL;
}

/* fifo */

static void fifo_account_blocked(struct ssdemu *dev, bool blocked)
{
	if (blocked && !dev->head_blocked_since) {
		dev->stats.head_blocked++;
		dev->head_blocked_since = dev->now;
	} else if (!blocked && dev->head_blocked_since) {
		dev->stats.head_blocked_ns += dev->now - dev->head_blocked_since;
		dev->head_blocked_since = 0;
	}
}

static void fifo_run(struct ssdemu *dev)
{
	struct ssdemu_txn *txn;

	while ((txn = list_first_entry_or_null(&dev->fifo, struct ssdemu_txn,
					       list))) {
		struct ssdemu_unit *unit;

		if (txn->plane == SSDEMU_NONE)
			unit = bind_to_free(dev, txn);
		else
			unit = ssdemu_unit_of(dev, txn->plane);
		if (!unit || unit->busy) {
			fifo_account_blocked(dev, true);
			return;
		}
		fifo_account_blocked(dev, false);
		list_del(&txn->list);
		ssdemu_unit_start(dev, unit, txn);
	}
}

static void fifo_add(struct ssdemu *dev, struct ssdemu_txn *txn)
{
	list_add_tail(&txn->list, &dev->fifo);
	fifo_run(dev);
}

static void fifo_unit_free(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	fifo_run(dev);
}

/* ooo, ooo-read: a queue per unit */

static struct ssdemu_txn *oldest(struct list_head *queue)
{
	return list_first_entry_or_null(queue, struct ssdemu_txn, list);
}

/* Return the oldest write that the unit can take: an unbound one, or its own. */
static struct ssdemu_txn *oldest_write(struct ssdemu *dev,
				       struct ssdemu_unit *unit)
{
	struct ssdemu_txn *txn;

	if (!list_empty(&dev->fifo) && choose_plane(dev, unit) != SSDEMU_NONE)
		return oldest(&dev->fifo);
	txn = oldest(&unit->queue[SSDEMU_WRITE]);
	if (!txn || !may_program(dev, ssdemu_write_unit(dev, txn->plane),
				 &unit->backlog))
		return NULL;
	return txn;
}

/* Let @read pass @write if the scheduler allows it; return true if it does. */
static bool let_read_pass(struct ssdemu *dev, struct ssdemu_unit *unit,
			  const struct ssdemu_txn *read,
			  const struct ssdemu_txn *write)
{
	if (dev->cfg.device_sched == SSDEMU_OOO)
		return read->seq < write->seq;
	if (unit->passed >= dev->cfg.read_bound)
		return false;
	unit->passed++;
	return true;
}

/* Dequeue the unit's next operation; NULL if there is none. */
static struct ssdemu_txn *unit_pick(struct ssdemu *dev,
				    struct ssdemu_unit *unit)
{
	struct ssdemu_txn *read = oldest(&unit->queue[SSDEMU_READ]);
	struct ssdemu_txn *write = oldest_write(dev, unit);
	struct ssdemu_txn *txn;

	if (read && write)
		txn = let_read_pass(dev, unit, read, write) ? read : write;
	else
		txn = read ?: write;
	if (!txn)
		return NULL;
	if (txn->plane == SSDEMU_NONE)
		bind_unit(dev, unit, txn);
	else if (dev->one_shot && txn == write)
		backlog_take(&unit->backlog, 1);
	if (!write || txn == write)
		unit->passed = 0;
	list_del(&txn->list);
	return txn;
}

/* Start unbound writes: a plane of a unit that is free already may have room now. */
static void ooo_run_unbound(struct ssdemu *dev)
{
	struct ssdemu_txn *txn;
	struct ssdemu_unit *unit;

	while ((txn = oldest(&dev->fifo)) && (unit = bind_to_free(dev, txn))) {
		list_del(&txn->list);
		ssdemu_unit_start(dev, unit, txn);
	}
}

static void ooo_unit_free(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	struct ssdemu_txn *txn = unit_pick(dev, unit);

	if (txn)
		ssdemu_unit_start(dev, unit, txn);
	ooo_run_unbound(dev);
}

static void ooo_add(struct ssdemu *dev, struct ssdemu_txn *txn)
{
	struct ssdemu_unit *unit;

	if (txn->plane == SSDEMU_NONE) {
		list_add_tail(&txn->list, &dev->fifo);
		ooo_run_unbound(dev);
		return;
	}
	unit = ssdemu_unit_of(dev, txn->plane);
	if (unit->busy)
		list_add_tail(&txn->list, &unit->queue[txn->dir]);
	else
		ssdemu_unit_start(dev, unit, txn);
}

/* aos */

static void aos_set_ready(struct ssdemu *dev, struct ssdemu_unit *unit,
			  bool ready)
{
	struct ssdemu_channel *channel = ssdemu_channel_of(dev, unit);

	if (unit->ready == ready)
		return;
	unit->ready = ready;
	if (ready)
		channel->nr_ready++;
	else
		channel->nr_ready--;
}

/*
 * Pick the channel's next unit of the re-ordering set, behind the last one
 * picked; only one with a read if the channel is @busy. Units that became busy
 * leave the set.
 */
static struct ssdemu_unit *aos_pick_unit(struct ssdemu *dev,
					 struct ssdemu_channel *channel,
					 bool busy)
{
	u32 units = dev->nr_units / dev->cfg.channels, i;

	for (i = 0; channel->nr_ready && i < units; i++) {
		u32 n = (channel->next_chip + i) % units;
		struct ssdemu_unit *unit;

		unit = &dev->units[channel - dev->channels +
				   n * dev->cfg.channels];
		if (unit->busy)
			aos_set_ready(dev, unit, false);
		if (unit->ready &&
		    !(busy && list_empty(&unit->queue[SSDEMU_READ]))) {
			channel->next_chip = (n + 1) % units;
			return unit;
		}
	}
	return NULL;
}

/* Dispatch one operation of the re-ordering set; return false if there is none. */
static bool aos_dispatch(struct ssdemu *dev, struct ssdemu_channel *channel,
			 bool busy)
{
	struct ssdemu_unit *unit;

	while ((unit = aos_pick_unit(dev, channel, busy))) {
		struct ssdemu_txn *txn;

		aos_set_ready(dev, unit, false);
		txn = unit_pick(dev, unit);
		if (txn) {
			ssdemu_unit_start(dev, unit, txn);
			return true;
		}
	}
	return false;
}

/* Dispatch round-robin over the channels until none takes another operation. */
static void aos_run(struct ssdemu *dev)
{
	u32 idle = 0;

	while (idle < dev->cfg.channels) {
		struct ssdemu_channel *channel;
		bool busy;

		channel = &dev->channels[dev->next_channel];
		dev->next_channel = (dev->next_channel + 1) % dev->cfg.channels;
		busy = channel->bus.free_at > dev->now;
		idle = aos_dispatch(dev, channel, busy) ? 0 : idle + 1;
		if (busy && channel->nr_ready)
			ssdemu_channel_watch(dev, channel);
	}
}

static void aos_channel_free(struct ssdemu *dev, struct ssdemu_channel *channel)
{
	aos_dispatch(dev, channel, false);
	if (channel->nr_ready && channel->bus.free_at > dev->now)
		ssdemu_channel_watch(dev, channel);
}

/* Add all free units to the re-ordering set: each can take an unbound write. */
static void aos_offer_unbound(struct ssdemu *dev)
{
	u32 n;

	if (list_empty(&dev->fifo))
		return;
	for_each_clear_bit(n, dev->busy_units, dev->nr_units)
		aos_set_ready(dev, &dev->units[n], true);
}

static void aos_run_unbound(struct ssdemu *dev)
{
	aos_offer_unbound(dev);
	aos_run(dev);
}

static void aos_unit_free(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	if (!list_empty(&unit->queue[SSDEMU_READ]) ||
	    !list_empty(&unit->queue[SSDEMU_WRITE]))
		aos_set_ready(dev, unit, true);
	aos_run_unbound(dev);
}

static void aos_add(struct ssdemu *dev, struct ssdemu_txn *txn)
{
	if (txn->plane == SSDEMU_NONE) {
		list_add_tail(&txn->list, &dev->fifo);
		aos_offer_unbound(dev);
	} else {
		struct ssdemu_unit *unit = ssdemu_unit_of(dev, txn->plane);

		list_add_tail(&txn->list, &unit->queue[txn->dir]);
		if (unit->busy)
			return;
		aos_set_ready(dev, unit, true);
	}
	aos_run(dev);
}

/* One-shot programs */

/* Move waiting writes to the batch of @unit. */
static u32 gather_writes(struct ssdemu_unit *unit, struct list_head *queue,
			 u32 limit)
{
	struct ssdemu_txn *txn, *next;
	u32 taken = 0;

	list_for_each_entry_safe(txn, next, queue, list) {
		if (taken == limit)
			break;
		list_move_tail(&txn->list, &unit->batch);
		taken++;
	}
	return taken;
}

/* Return the number, in the drive, of the group of pages sensed with @lpn. */
static u32 sensed_group(struct ssdemu *dev, u32 lpn)
{
	u32 block, page, plane = dev->ftl->locate(dev, lpn, &block, &page);

	block += plane * dev->plane_blocks;
	return (block * dev->block_pages + page) / dev->cfg.read_pages;
}

/* Move reads that one sense serves to the batch, wherever their pages are by now. */
static void gather_reads(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	u32 group = sensed_group(dev, unit->txn->lpn);
	struct ssdemu_txn *txn, *next;

	list_for_each_entry_safe(txn, next, &unit->queue[SSDEMU_READ], list) {
		if (sensed_group(dev, txn->lpn) != group)
			continue;
		list_move_tail(&txn->list, &unit->batch);
		unit->waiting--;
	}
}

/**
 * ssdemu_sched_gather() - fill the batch of an operation that starts
 * @dev: device with one-shot programs
 * @unit: its txn has just been chosen
 *
 * A write is joined by the writes that wait, up to a write unit; a read by the
 * waiting reads of pages that are sensed with it.
 */
void ssdemu_sched_gather(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	u32 room = ssdemu_write_unit(dev, unit->txn->plane) - 1, taken;

	if (unit->txn->dir == SSDEMU_READ) {
		gather_reads(dev, unit);
		return;
	}
	if (dev->cfg.allocation == SSDEMU_DYNAMIC) {
		backlog_take(&dev->backlog, gather_writes(unit, &dev->fifo, room));
		return;
	}
	taken = gather_writes(unit, &unit->queue[SSDEMU_WRITE], room);
	backlog_take(&unit->backlog, taken);
	unit->waiting -= taken;
}

/* Queue the operations of the current event; list the free units that got one. */
static void queue_arrivals(struct ssdemu *dev, struct list_head *kicked)
{
	struct ssdemu_txn *txn, *next;

	list_for_each_entry_safe(txn, next, &dev->arrivals, list) {
		struct ssdemu_unit *unit;

		if (txn->plane == SSDEMU_NONE) {
			list_move_tail(&txn->list, &dev->fifo);
			backlog_add(dev, &dev->backlog, txn->cluster);
			continue;
		}
		unit = ssdemu_unit_of(dev, txn->plane);
		list_move_tail(&txn->list, &unit->queue[txn->dir]);
		if (txn->dir == SSDEMU_WRITE)
			backlog_add(dev, &unit->backlog, txn->cluster);
		if (!unit->busy)
			list_move_tail(&unit->kicked, kicked);
		else if (txn->dir == SSDEMU_READ && dev->cfg.suspend_ns)
			ssdemu_unit_suspend(dev, unit);
	}
}

/* Return the unit for which most writes wait, or NULL; all units are free. */
static struct ssdemu_unit *fullest_unit(struct ssdemu *dev)
{
	struct ssdemu_unit *fullest = &dev->units[0];
	u32 i;

	for (i = 1; i < dev->nr_units; i++)
		if (dev->units[i].backlog.writes > fullest->backlog.writes)
			fullest = &dev->units[i];
	return fullest->backlog.writes && !fullest->busy ? fullest : NULL;
}

/**
 * ssdemu_sched_kick() - start what the current event has queued
 * @dev: device with one-shot programs; the event is over
 */
void ssdemu_sched_kick(struct ssdemu *dev)
{
	struct ssdemu_unit *unit;
	LIST_HEAD(kicked);

	queue_arrivals(dev, &kicked);
	while ((unit = list_first_entry_or_null(&kicked, struct ssdemu_unit,
						kicked))) {
		list_del_init(&unit->kicked);
		if (!unit->busy)
			dev->sched->unit_free(dev, unit);
	}
	if (dev->backlog.writes)
		dev->sched->run_unbound(dev);
	if (buffer_stuck(dev)) {
		unit = fullest_unit(dev);
		if (unit)
			dev->sched->unit_free(dev, unit);
	}
}

/**
 * ssdemu_sched_urge() - program all waiting writes without delay
 * @dev: device; ssdemu_sched_kick() follows at the end of the event
 */
void ssdemu_sched_urge(struct ssdemu *dev)
{
	u32 i;

	if (!dev->one_shot)
		return;
	dev->backlog.urgent = dev->backlog.writes;
	for (i = 0; i < dev->nr_units; i++) {
		struct ssdemu_unit *unit = &dev->units[i];

		unit->backlog.urgent = unit->backlog.writes;
		if (unit->backlog.urgent && !unit->busy)
			dev->sched->unit_free(dev, unit);
	}
}

/* By enum ssdemu_device_sched. */
const struct ssdemu_sched_ops ssdemu_schedulers[] = {
	[SSDEMU_FIFO]	  = { .add = fifo_add, .unit_free = fifo_unit_free },
	[SSDEMU_OOO]	  = { .add = ooo_add, .run_unbound = ooo_run_unbound,
			      .unit_free = ooo_unit_free },
	[SSDEMU_OOO_READ] = { .add = ooo_add, .run_unbound = ooo_run_unbound,
			      .unit_free = ooo_unit_free },
	[SSDEMU_AOS]	  = { .add = aos_add, .run_unbound = aos_run_unbound,
			      .unit_free = aos_unit_free,
			      .channel_free = aos_channel_free },
};
