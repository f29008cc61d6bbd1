// SPDX-License-Identifier: GPL-2.0
/*
 * The timing engine: events in virtual time, and the timer of the host.
 *
 * Events are handled in the order of their time and book a bus from that time on,
 * so the state of a bus is the time at which it becomes free. The firmware and the
 * host interface are buses with one queue.
 */
#include <linux/ktime.h>
#include "ssdemu.h"
#include "compat-hrtimer.h"

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
