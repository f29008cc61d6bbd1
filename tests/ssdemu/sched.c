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
 */
#include "ssdemu.h"

/* Unbound writes */

/* Return the unit's plane for the next page, or SSDEMU_NONE if none has room. */
static u32 choose_plane(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	u32 plane = unit->next_plane;

	do {
		if (ssdemu_plane_has_room(dev, plane))
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
	return true;
}

/* Bind a write to the next free unit with room; return it, or NULL. */
static struct ssdemu_unit *bind_to_free(struct ssdemu *dev,
					struct ssdemu_txn *txn)
{
	u32 n = dev->next_unit, tries;

	for (tries = 0; tries < dev->nr_units; tries++, n++) {
		struct ssdemu_unit *unit;

		n = find_next_zero_bit(dev->busy_units, dev->nr_units, n);
		if (n >= dev->nr_units)
			n = find_first_zero_bit(dev->busy_units, dev->nr_units);
		if (n >= dev->nr_units)
			return NULL;
		unit = &dev->units[n];
		if (bind_unit(dev, unit, txn)) {
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
	if (list_empty(&dev->fifo) || choose_plane(dev, unit) == SSDEMU_NONE)
		return oldest(&unit->queue[SSDEMU_WRITE]);
	return oldest(&dev->fifo);
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
	if (txn == write)
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

static void aos_unit_free(struct ssdemu *dev, struct ssdemu_unit *unit)
{
	if (!list_empty(&unit->queue[SSDEMU_READ]) ||
	    !list_empty(&unit->queue[SSDEMU_WRITE]))
		aos_set_ready(dev, unit, true);
	aos_offer_unbound(dev);
	aos_run(dev);
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

/* By enum ssdemu_device_sched. */
const struct ssdemu_sched_ops ssdemu_schedulers[] = {
	[SSDEMU_FIFO]	  = { .add = fifo_add, .unit_free = fifo_unit_free },
	[SSDEMU_OOO]	  = { .add = ooo_add, .unit_free = ooo_unit_free },
	[SSDEMU_OOO_READ] = { .add = ooo_add, .unit_free = ooo_unit_free },
	[SSDEMU_AOS]	  = { .add = aos_add, .unit_free = aos_unit_free,
			      .channel_free = aos_channel_free },
};
