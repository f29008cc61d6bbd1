/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ssdemu: an emulated SSD for measuring I/O schedulers.
 *
 * A dispatched request waits inside the device until the flash unit that it
 * needs takes it (late binding), so the device has a scheduler of its own. All
 * times are virtual. Every step of the device is an event with an exact time in
 * nanoseconds, and events are handled in order. An hrtimer expires when a
 * request may be complete. Events before that are handled then, or when a
 * request arrives, at their own times. A late timer interrupt delays what the
 * host sees, but does not change what the device does next. With time_scale=k
 * the device's clock is k times slower than the host's.
 *
 *	main.c       module, devices, blk-mq driver
 *	config.c     the configuration keys and their limits
 *	engine.c     timing: events, buses, the timer of the host
 *	host.c       requests of the host, the host interface
 *	flash.c      page operations, channels, flash units
 *	sched.c      device_sched=: which page operation a free unit takes
 *	ftl.c        page mapping with greedy garbage collection
 *	ftl-block.c  block mapping with open (log) blocks
 *	buffer.c     write buffer or cache, read buffer, prefetch
 *	store.c      the data of a device with memory_backed=1
 *	debugfs.c    statistics and state for user space
 *
 * Locking: each device has one spinlock, ssdemu.lock, taken with interrupts
 * disabled. It protects every field below that does not name another rule. The
 * caller of a function of engine.c, host.c, flash.c, sched.c, ftl*.c or buffer.c holds
 * it unless the function's comment says otherwise.
 */
#ifndef _SSDEMU_H
#define _SSDEMU_H

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>
#include "location-vector.h"

#define SSDEMU_NONE		U32_MAX		/* no plane, block or page */
#define SSDEMU_MAX_BLOCKS	0x100000	/* per plane */
#define SSDEMU_MASK_BITS	64		/* of ssdemu_cluster.mask */
#define SSDEMU_STREAMS		8		/* sequences of requests tracked at once */

struct ssdemu;
struct ssdemu_event;

/* How the plane of a logical page is chosen. */
enum ssdemu_allocation {
	SSDEMU_STATIC,		/* striped, in one of the 24 orders */
	SSDEMU_DYNAMIC,		/* the next free unit takes the next write */
	SSDEMU_CONCAT,		/* each unit holds one contiguous region */
};

enum ssdemu_device_sched {
	SSDEMU_FIFO,
	SSDEMU_OOO,
	SSDEMU_OOO_READ,
	SSDEMU_AOS,
};

enum ssdemu_mapping {
	SSDEMU_MAP_PAGE,
	SSDEMU_MAP_BLOCK,
};

/* The smallest part of the drive that works on its own. */
enum ssdemu_unit_level {
	SSDEMU_UNIT_CHIP,
	SSDEMU_UNIT_DIE,
	SSDEMU_UNIT_PLANE,
};

/*
 * The configuration of a device, constant once the device exists. Each field
 * has the name of its key. config.c has the defaults and the limits.
 */
struct ssdemu_config {
	/* geometry */
	u32 channels;		/* in the drive */
	u32 chips;		/* per channel */
	u32 dies;		/* per chip */
	u32 planes;		/* per die */
	u32 blocks;		/* per plane */
	u32 pages;		/* per block */
	u32 page_size;		/* bytes */
	u32 capacity_mb;	/* MiB seen by the host; 0: derived from the geometry */
	u32 spare;		/* percent of the flash hidden from the host */
	u32 unit;		/* enum ssdemu_unit_level */

	/* times */
	u32 read_ns;		/* cell to page register */
	u32 program_ns;		/* page register to cell */
	u32 erase_ns;		/* one block */
	u32 program_pages;	/* a write unit: pages that a unit programs at once */
	u32 read_pages;		/* pages of a write unit that are sensed at once */
	u32 command_ns;		/* channel time of a flash command */
	u32 channel_mbps;	/* 10^6 B/s */
	u32 host_mbps;		/* 10^6 B/s; 0: no limit */
	u32 host_duplex;	/* 1: host_mbps in each direction */
	u32 firmware_ns;	/* per request; requests are decoded one by one */
	u32 time_scale;		/* ns of the host per ns of the device */

	/* flash translation */
	u32 allocation;		/* enum ssdemu_allocation */
	u8 order[LV_DIGITS];	/* of a static allocation */
	u32 mapping;		/* enum ssdemu_mapping */
	u32 open_blocks;	/* log blocks of mapping=block */
	u32 clustered_page_kb;	/* KiB; unit of read-modify-write; 0: a page */
	u32 gc_free_blocks;	/* per plane, kept free by garbage collection */
	u32 gc_start_blocks;	/* per plane, at which it starts in the background */
	u32 gc_copyback;	/* 1: copies stay in the plane, off the channel */
	u32 gc_yield;		/* 1: waiting reads are served between two copies */
	u32 idle_us;		/* us without requests after which the drive is idle */
	u32 slc_mb;		/* MiB of an SLC cache, beside the blocks above; 0: off */
	u32 slc_bits;		/* bits per cell of the other blocks */
	u32 slc_read_ns;
	u32 slc_program_ns;	/* of read_pages pages */
	u32 slc_fold_percent;	/* pages folded per 100 written, beside host I/O */
	u32 fill;		/* percent of the pages written at creation */

	/* buffers */
	u32 read_buffer_kb;	/* KiB */
	u32 prefetch;		/* 1: streams of reads fill the read buffer ahead */
	u32 write_buffer_kb;	/* KiB; 0: a write completes when it is programmed */
	u32 write_cache;	/* 1: cache with replacement, 0: FIFO buffer */
	u32 protected;		/* 1: the buffer survives a power failure */

	/* device scheduling */
	u32 device_sched;	/* enum ssdemu_device_sched */
	u32 read_bound;		/* reads of a unit that may pass a waiting write */
	u32 suspend_ns;		/* to suspend a program or an erase; 0: never */
	u32 resume_ns;		/* to resume it */
	u32 suspend_max;	/* suspensions of one program or erase */

	/* costs observed by the papers, off by default */
	u32 region_mb;		/* MiB; region in which crowding is counted */
	u32 crowd_depth;	/* requests for its other units before crowding */
	u32 crowd_ns;		/* unit time per request and excess request */
	u32 rw_switch_ns;	/* firmware time to turn between reads and writes */
	u32 lookup_ns;		/* firmware time per page of a random request */
	u32 random_ns;		/* unit time per page of a random request */

	/* host side */
	u32 queue_depth;	/* requests that a hardware queue takes */
	u32 announced_depth;	/* tags of it; 0: queue_depth */
	u32 hw_queues;
	u32 block_size;		/* bytes; logical block */
	u32 max_request_kb;	/* KiB */
	u32 memory_backed;	/* 1: the device stores the data */
};

/* A point in virtual time at which the device takes a step. */
struct ssdemu_event {
	struct rb_node node;
	u64 at;			/* ns */
	void (*fn)(struct ssdemu *dev, struct ssdemu_event *ev);
};

enum ssdemu_dir {
	SSDEMU_READ,
	SSDEMU_WRITE,
	SSDEMU_DIRS,
};

/* A host request inside the device; lives in the request. */
struct ssdemu_cmd {
	struct ssdemu_event ev;	/* end of decoding, of the transfer, of the request */
	struct list_head list;	/* of the device, such as fetches, admission, done */
	u64 arrived;		/* ns */
	u64 offset;		/* bytes from the start of the device */
	u32 bytes;
	u32 left;		/* pages or clusters still to complete */
	u32 next;		/* write: next cluster to admit */
	u32 region;		/* SSDEMU_NONE: not counted */
	u32 unit;		/* of the first page, if counted in a region */
	/* flush, or write that empties the buffer: youngest cluster to wait for */
	u64 flush_seq;
	enum req_op op;
	bool fua;
	bool emptying;		/* write: waits until the write buffer is empty */
	bool random;		/* does not continue another request */
	bool crowded;		/* the cost of a crowded region was charged */
};

/* An operation on one flash page, for a host request or for the device itself. */
struct ssdemu_txn {
	struct list_head list;
	struct ssdemu_cmd *cmd;		/* host request of a read, or NULL */
	struct ssdemu_cluster *cluster;	/* cluster being written, or NULL */
	struct ssdemu_rpage *rpage;	/* read buffer page to fill, or NULL */
	u64 seq;			/* order of arrival */
	u64 writes_seen;		/* unit->writes when this was queued */
	u32 lpn;			/* logical page */
	u32 bytes;			/* to transfer to the host */
	u32 plane;			/* SSDEMU_NONE: not chosen yet (dynamic) */
	u8 dir;				/* enum ssdemu_dir */
};

enum ssdemu_cluster_state {
	SSDEMU_CLUSTER_DIRTY,	/* not programmed yet */
	SSDEMU_CLUSTER_READING,	/* reading the pages that the host did not write */
	SSDEMU_CLUSTER_PROGRAM,	/* being programmed */
	SSDEMU_CLUSTER_CLEAN,	/* programmed and kept in the cache */
};

/* A clustered page to be written: the unit of read-modify-write and buffering. */
struct ssdemu_cluster {
	struct list_head list;	/* free, dirty or clean list */
	struct hlist_node hash;	/* by id; only the newest cluster of an id */
	struct ssdemu_cmd *cmd;	/* host request waiting for this write, or NULL */
	u64 seq;		/* order of admission */
	u64 mask;		/* granules with new data */
	u32 id;
	u32 bytes;		/* used in the write buffer */
	u32 left;		/* page operations still to complete */
	u8 state;		/* enum ssdemu_cluster_state */
};

/* A page of the read buffer. */
struct ssdemu_rpage {
	struct list_head list;	/* LRU or free list */
	struct list_head waiters; /* txns queued while the page is being filled */
	struct hlist_node hash;	/* by lpn */
	u32 lpn;
	bool filling;
	bool stale;		/* overwritten while being filled */
	bool prefetch;		/* filled by a prefetch */
};

/* Contiguous reads. */
struct ssdemu_stream {
	struct list_head list;
	u64 start;		/* bytes from the start of the device */
	u64 next;		/* bytes; where the next read begins */
	u32 requests;		/* since the start */
	u32 ahead;		/* page up to which it was prefetched; 0: none */
};

/* A first come, first served bus. The time at which it is free is its queue. */
struct ssdemu_bus {
	u64 free_at;		/* ns */
	u64 busy_ns;
	u64 transfers;
	u64 conflicts;		/* transfers that found the bus busy */
};

struct ssdemu_channel {
	struct ssdemu_bus bus;
	struct ssdemu_event ev;	/* end of the current transfer, if watched */
	bool ev_pending;
	struct list_head commands; /* units waiting to send a command */
	struct list_head data;	/* units waiting to transfer data */
	u32 nr_ready;		/* aos: units in the re-ordering set */
	u32 next_chip;		/* aos: chip at which the next search starts */
};

/* A program or an erase that gives way to reads. */
struct ssdemu_suspended {
	void (*fn)(struct ssdemu *dev, struct ssdemu_event *ev); /* its end, or NULL */
	struct ssdemu_txn *txn;	/* unit->txn, or NULL of an operation of cleaning */
	struct list_head batch;	/* unit->batch */
	u64 left_ns;		/* of its time in the cells */
	u64 since;		/* ns, when it stopped */
	u32 reads;		/* served during this suspension */
};

/* Writes that wait for a unit. The oldest ones may not wait for a full write unit. */
struct ssdemu_backlog {
	u32 writes;
	u32 urgent;		/* of these, oldest first */
};

/* The smallest part that works on its own: a chip, a die or a plane. */
struct ssdemu_unit {
	struct ssdemu_event ev;
	struct list_head wait;	/* entry in a list of the channel */
	u64 bus_ns;		/* channel time of the next transfer */
	u64 then_ns;		/* from the end of that transfer to the event */
	u64 bus_end;		/* ns, end of the last transfer */
	u64 resumed;		/* ns, end of the last resumption */
	struct ssdemu_suspended suspended;
	u32 suspends;		/* of the current operation */
	bool read_queued;	/* before the current operation was in the cells */
	struct ssdemu_unit *rider; /* next plane that shares this command */
	struct ssdemu_txn *txn;	/* being served */
	struct list_head batch;	/* operations served together with txn */
	struct ssdemu_txn *held; /* accepted, waiting for cleaning */
	struct list_head queue[SSDEMU_DIRS];
	struct ssdemu_backlog backlog; /* one-shot programs: queue[SSDEMU_WRITE] */
	struct list_head kicked; /* entry in a list of ssdemu_sched_kick() */
	u32 waiting;		/* page operations queued for this unit */
	u32 passed;		/* reads that passed the oldest write */
	u32 planes_to_clean;
	u32 clean_plane;	/* plane being cleaned */
	u32 copy_pages;		/* pages of the current copy */
	u32 yielded;		/* reads that passed the next step of cleaning */
	u32 next_plane;		/* dynamic: plane for the next write */
	u32 inside;		/* host requests that begin here, if regions count */
	u8 last_queued_dir;	/* enum ssdemu_dir of the last one queued */
	bool busy;
	bool writing;		/* busy with a program or an erase */
	bool cleaning;		/* busy with garbage collection or a merge */
	bool ready;		/* aos: in the re-ordering set */
	u64 writes;		/* programs and erases begun */
	u64 busy_since;		/* ns */
	u64 op_since;		/* ns, start of the current operation */
	u64 busy_ns;
	u64 clean_ns;
};

/* A plane, or all planes of a unit, which one-shot programs use in lockstep. */
struct ssdemu_plane {
	/* page mapping */
	u32 active;		/* block being written */
	u32 active_page;	/* next page of the active block */
	u32 free_first;		/* free blocks, oldest first */
	u32 free_last;
	u32 nr_free;		/* free blocks */
	u32 valid;		/* valid pages */
	u32 victim;		/* block being cleaned, or SSDEMU_NONE */
	u32 victim_page;	/* next page of the victim to copy */
	u32 victim_valid;	/* its valid pages when it was chosen */
	u32 drained;		/* copied blocks, to be erased */
	u32 nr_drained;
	u64 debt;		/* copies due, in 1/256 pages */
	/* SLC cache: a ring of blocks to erase, full ones, the active one, free ones */
	u32 slc_first;		/* first of them */
	u32 slc_drained;
	u32 slc_full;
	u32 slc_page;		/* next page of the active block */
	u32 fold_page;		/* next page of the oldest full block to fold */
	u64 fold_due;		/* in 1/100 pages */
	bool folding;		/* the next step folds */
	bool collecting;	/* until the next erase */
	bool must_collect;	/* free blocks are out: nothing else is done before */
	/* block mapping */
	u32 copies_due;
	u32 erases_due;
	/* both */
	bool to_clean;		/* counted in planes_to_clean of the unit */
	u64 busy_ns;
	u64 erases;
};

/* Planes of a die that start the same operation together share a command. */
struct ssdemu_die {
	u64 started;		/* ns, start of the last operation */
	struct ssdemu_unit *leader; /* unit that sends the shared command */
	u32 page;		/* offset in the block */
	u8 dir;
};

enum ssdemu_clean_step {
	SSDEMU_CLEAN_DONE,
	SSDEMU_CLEAN_COPY,
	SSDEMU_CLEAN_ERASE,
};

/* A copy by cleaning. */
struct ssdemu_copy {
	u32 pages;
	u32 senses;		/* groups of read_pages that they come from */
	bool slc;		/* from the SLC cache */
};

/**
 * struct ssdemu_ftl_ops - a mapping of logical pages to flash
 * @init: allocate and fill the tables; may sleep, the lock is not held
 * @exit: free the tables; called after a failed @init, too
 * @locate: return the plane of a page and set its block and page in the block
 * @prepare: return true if the plane must be cleaned before the page can be
 *	programmed there, and start the cleaning
 * @program: map the page to the plane's next free flash page; return its offset
 *	in the block
 * @programmed: (optional) account for a program of so many of the plane's pages
 *	in the SLC cache or in other blocks: leave the rest of its write unit
 *	unused, and make work in the background due
 * @due: (optional) return true if a step of cleaning in the background is due
 * @clean: take and return the next step of cleaning; describe a copy
 * @trim: unmap the page
 */
struct ssdemu_ftl_ops {
	int (*init)(struct ssdemu *dev);
	void (*exit)(struct ssdemu *dev);
	u32 (*locate)(struct ssdemu *dev, u32 lpn, u32 *block, u32 *page);
	bool (*prepare)(struct ssdemu *dev, u32 plane, u32 lpn);
	u32 (*program)(struct ssdemu *dev, u32 plane, u32 lpn);
	void (*programmed)(struct ssdemu *dev, u32 plane, u32 pages, bool slc);
	bool (*due)(struct ssdemu *dev, u32 plane);
	enum ssdemu_clean_step (*clean)(struct ssdemu *dev, u32 plane,
					struct ssdemu_copy *copy);
	void (*trim)(struct ssdemu *dev, u32 lpn);
};

/**
 * struct ssdemu_sched_ops - a device scheduler
 * @add: queue a new page operation and start it if its unit is free
 * @run_unbound: start unbound writes on free units
 * @unit_free: the unit became idle; start the next operation, if any
 * @channel_free: (optional) a transfer that ssdemu_channel_watch() was called
 *	for has ended
 */
struct ssdemu_sched_ops {
	void (*add)(struct ssdemu *dev, struct ssdemu_txn *txn);
	void (*run_unbound)(struct ssdemu *dev);
	void (*unit_free)(struct ssdemu *dev, struct ssdemu_unit *unit);
	void (*channel_free)(struct ssdemu *dev, struct ssdemu_channel *channel);
};

#define SSDEMU_DEPTH_BUCKETS	12

/* Latency of one kind of host request, from arrival to its exact completion. */
struct ssdemu_latency {
	u64 count;
	u64 sum_ns;
	u64 min_ns;
	u64 max_ns;
};

struct ssdemu_stats {
	u64 since;		/* ns, creation or last reset */
	struct ssdemu_latency read, write, flush, discard;
	u64 host_read_bytes;
	u64 host_write_bytes;
	u64 host_pages_read;	/* pages that host reads touched */
	u64 host_pages_written;
	u64 flash_reads;	/* for the host, read-modify-write or prefetch */
	u64 flash_programs;
	u64 flash_copies;	/* pages moved by cleaning */
	u64 background_copies;	/* part of flash_copies */
	u64 background_erases;	/* part of flash_erases */
	u64 foreground_waits;	/* programs that waited for garbage collection */
	u64 folded_pages;	/* moved from the SLC cache */
	u64 slc_programs;	/* part of flash_programs */
	u64 copy_senses;	/* groups of pages sensed for copies and folding */
	u64 padded_pages;	/* flash pages left unused by partial write units */
	u64 shared_senses;	/* of flash_reads: sensed together with another */
	u64 flash_erases;
	u64 rmw_reads;		/* part of flash_reads */
	u64 prefetch_reads;	/* part of flash_reads */
	u64 trimmed_pages;
	u64 merges;		/* block mapping */
	u64 multiplane;		/* operations that shared a command */
	u64 conflict_rr;	/* reads that found a read on or queued for the unit */
	u64 conflict_rw;	/* the same, a read and a write */
	u64 conflict_ww;	/* the same, two writes */
	u64 conflict_clean;	/* operations that found the unit cleaning */
	u64 interference;	/* reads that waited for a program or an erase */
	u64 head_blocked;	/* fifo: times the oldest operation waited */
	u64 head_blocked_ns;
	u64 buffer_write_hits;	/* writes that replaced buffered data */
	u64 buffer_read_hits;	/* pages served from the write buffer */
	u64 read_buffer_hits;	/* pages served from the read buffer */
	u64 buffer_waits;	/* writes that found the write buffer full */
	u64 crowd_ns;		/* unit time charged for crowded regions */
	u64 rw_switches;	/* of the controller, if they cost time */
	u64 suspends;		/* of programs and erases */
	u64 suspended_ns;	/* their delay, with the costs */
	u64 active_ns;		/* time with at least one unit busy */
	u64 max_units_busy;
	u64 events;
	u64 timers;		/* timer interrupts */
	u64 late_max_ns;	/* from the end of a request until the host ran the model */
	u64 depth[SSDEMU_DEPTH_BUCKETS]; /* arrivals by log2 of requests inside */
};

struct ssdemu {
	/* constant once the device exists */
	struct ssdemu_config cfg;
	struct lv_geometry geo;		/* always at plane level */
	bool one_shot;			/* program_pages > 1 */
	bool background;		/* cleaning in the background */
	u32 lockstep;			/* planes of the geometry in an ssdemu_plane */
	const struct ssdemu_ftl_ops *ftl;
	const struct ssdemu_sched_ops *sched;
	u64 capacity;			/* bytes */
	u32 nr_planes, nr_units, nr_chips, nr_dies;
	u32 nr_lpns;			/* logical pages */
	u32 page_shift;			/* log2 of cfg.page_size */
	u32 plane_lpns;			/* logical pages of a plane (not dynamic) */
	u32 plane_pages;		/* flash pages of a plane without the SLC cache */
	u32 block_pages;		/* pages of a block, in all planes in lockstep */
	u32 plane_blocks;		/* blocks of a plane: cfg.blocks, then the SLC cache */
	u32 slc_blocks;			/* of plane_blocks */
	u32 slc_pages;			/* of an SLC block */
	u32 cluster_pages;
	u32 cluster_bytes;
	u32 granule;			/* bytes per bit of ssdemu_cluster.mask */
	u32 page_transfer_ns;		/* channel time of a page */
	u64 shortest_ns;		/* least time of a page operation */
	u32 *concat_plane;		/* concat: plane of the n-th region */

	/* announced_depth */
	wait_queue_head_t turn;
	atomic_t served;		/* requests of the driver's that the device has */
	unsigned long waiting;		/* bit 0: a request waits for its turn */

	/* blk-mq */
	struct list_head list;		/* all devices; ssdemu_mutex */
	int id;
	struct gendisk *disk;
	struct blk_mq_tag_set tag_set;
	struct dentry *debugfs;
	struct xarray store;		/* data, by PAGE_SIZE; has its own lock */
	spinlock_t store_lock;		/* contents of the store's pages */

	spinlock_t lock;		/* protects all that follows */
	bool dead;			/* being removed: new requests fail */

	/* timing */
	u64 now;			/* ns, virtual time of the device */
	u64 until;			/* ns, time up to which events are handled */
	struct rb_root_cached events;
	struct hrtimer timer;
	u64 armed;			/* ns, expiry of the timer; U64_MAX: not armed */
	struct list_head done;		/* requests to complete without the lock */
	struct ssdemu_bus firmware;
	struct ssdemu_bus host[SSDEMU_DIRS];	/* one for both without host_duplex */
	struct list_head fetches;	/* writes whose data are with the host */
	struct ssdemu_event fetch_ev;	/* the host interface is free for one */
	bool fetch_pending;		/* fetch_ev is scheduled */
	bool fetching;			/* data of a write are transferred */
	u32 fetches_passed;		/* transfers of reads since the last one */
	struct ssdemu_channel *channels;
	struct ssdemu_unit *units;
	struct ssdemu_plane *planes;
	struct ssdemu_die *dies;
	u32 inside;			/* host requests */
	u32 units_busy;
	u64 active_since;		/* ns, when units_busy left 0 */
	struct ssdemu_event idle_ev;
	bool idle_pending;		/* idle_ev is scheduled */
	bool idle;			/* no request inside for idle_us */
	u64 last_end;			/* ns, when the last request left */
	u32 *region_inside;		/* host requests, by region */
	u64 stream_ends[SSDEMU_DIRS][SSDEMU_STREAMS]; /* bytes, latest first */
	u8 last_dir;			/* enum ssdemu_dir of the last request */

	/* scheduling */
	u64 seq;
	struct list_head fifo;		/* fifo: all; otherwise: unbound writes */
	u64 head_blocked_since;		/* ns; 0: the head is not blocked */
	unsigned long *busy_units;	/* bitmap, for dynamic allocation */
	struct list_head arrivals;	/* one-shot: queued during the current event */
	struct ssdemu_backlog backlog;	/* one-shot: unbound writes */
	u32 programs;			/* units with a program for the host */
	u32 slc_open;			/* planes with a free SLC block */
	u32 next_unit;			/* dynamic: unit at which the search starts */
	u32 next_channel;		/* aos: channel at which the search starts */
	struct ssdemu_txn *txn_pool;
	struct list_head txn_free;

	/* page mapping */
	u32 *l2p;
	u32 *p2l;
	struct ssdemu_block *blocks;
	u32 *buckets;			/* by plane and valid pages: full blocks */

	/* block mapping */
	unsigned long *written;		/* bitmap of logical pages */
	unsigned long *lbn_mapped;	/* bitmap of logical blocks with a block */
	u16 *written_count;		/* pages, by logical block and plane */
	struct ssdemu_log *logs;
	struct list_head logs_open;	/* oldest first */
	struct list_head logs_free;

	/* buffers */
	struct ssdemu_cluster *cluster_pool;
	struct list_head cluster_free;
	struct hlist_head *cluster_hash;
	u32 cluster_hash_bits;
	struct list_head dirty;		/* oldest (buffer) or coldest (cache) first */
	struct list_head clean;		/* cache: coldest first */
	struct list_head admission;	/* writes that wait for room */
	struct list_head flushes;	/* flush requests under way */
	struct list_head emptying;	/* writes that wait for the buffer to empty */
	u32 buffer_bytes;		/* used */
	u32 buffer_max;			/* bytes; 0: no write buffer */
	u32 dirty_bytes;		/* of buffer_bytes, on the dirty list */
	u32 nr_unwritten;		/* buffered clusters not yet programmed */
	u32 destaging;			/* of nr_unwritten, being written to flash */
	u32 destage_max;		/* limit of destaging */
	u64 cluster_seq;
	u64 flush_upto;			/* cluster_seq at the last flush */
	struct ssdemu_rpage *rpage_pool;
	struct list_head rpage_free;
	struct list_head rpage_lru;	/* coldest first */
	struct hlist_head *rpage_hash;
	u32 rpage_hash_bits;
	struct ssdemu_stream stream_pool[SSDEMU_STREAMS];
	struct list_head streams;	/* least recently used first */
	u32 nr_rpages;
	u32 prefetching;		/* prefetch operations in the device */

	u64 where_sector;		/* debugfs: the span that was asked for */
	u64 where_sectors;
	struct ssdemu_stats stats;
};

/* Return the blocks of a plane that garbage collection keeps free. */
static inline u32 ssdemu_free_target(const struct ssdemu_config *cfg)
{
	return max(cfg->gc_free_blocks, cfg->gc_start_blocks);
}

/* config.c */
int ssdemu_config_parse(struct ssdemu_config *cfg, char *text, char *err);
int ssdemu_config_resolve(struct ssdemu *dev, char *err);
void ssdemu_config_show(const struct ssdemu_config *cfg, struct seq_file *m);
#define SSDEMU_ERR_LEN	160

/* engine.c */
int ssdemu_engine_init(struct ssdemu *dev);
void ssdemu_engine_exit(struct ssdemu *dev);
void ssdemu_run(struct ssdemu *dev, struct ssdemu_cmd *cmd);
void ssdemu_schedule(struct ssdemu *dev, struct ssdemu_event *ev, u64 at,
		     void (*fn)(struct ssdemu *, struct ssdemu_event *));
u64 ssdemu_bus_use(struct ssdemu *dev, struct ssdemu_bus *bus, u64 ns);

/* host.c */
void ssdemu_cmd_arrive(struct ssdemu *dev, struct ssdemu_cmd *cmd);
void ssdemu_cmd_put(struct ssdemu *dev, struct ssdemu_cmd *cmd, u32 bytes);
void ssdemu_fetch(struct ssdemu *dev);

/* flash.c */
void ssdemu_unit_suspend(struct ssdemu *dev, struct ssdemu_unit *unit);
void ssdemu_unit_start(struct ssdemu *dev, struct ssdemu_unit *unit,
		       struct ssdemu_txn *txn);
void ssdemu_channel_watch(struct ssdemu *dev, struct ssdemu_channel *channel);
void ssdemu_clean_plane(struct ssdemu *dev, u32 plane);
struct ssdemu_txn *ssdemu_txn_get(struct ssdemu *dev, u32 lpn,
				  enum ssdemu_dir dir);
void ssdemu_txn_put(struct ssdemu *dev, struct ssdemu_txn *txn);
void ssdemu_txn_queue(struct ssdemu *dev, struct ssdemu_txn *txn);
u32 ssdemu_home_plane(const struct ssdemu *dev, u32 lpn, u32 *row);
u64 ssdemu_silent_ns(const struct ssdemu *dev, const struct ssdemu_event *ev);
void ssdemu_idle_expect(struct ssdemu *dev);

static inline struct ssdemu_unit *ssdemu_unit_of(struct ssdemu *dev, u32 plane)
{
	return &dev->units[plane % dev->nr_units];
}

static inline u32 ssdemu_unit_index(const struct ssdemu *dev,
				    const struct ssdemu_unit *unit)
{
	return unit - dev->units;
}

static inline struct ssdemu_channel *
ssdemu_channel_of(struct ssdemu *dev, const struct ssdemu_unit *unit)
{
	return &dev->channels[ssdemu_unit_index(dev, unit) % dev->cfg.channels];
}

/* sched.c */
extern const struct ssdemu_sched_ops ssdemu_schedulers[];
void ssdemu_sched_gather(struct ssdemu *dev, struct ssdemu_unit *unit);
void ssdemu_sched_kick(struct ssdemu *dev);
void ssdemu_sched_urge(struct ssdemu *dev);

/* ftl.c, ftl-block.c */
extern const struct ssdemu_ftl_ops ssdemu_ftl_page;
extern const struct ssdemu_ftl_ops ssdemu_ftl_block;
bool ssdemu_plane_has_room(const struct ssdemu *dev, u32 plane);
bool ssdemu_slc_open(const struct ssdemu *dev, u32 plane);
u32 ssdemu_write_unit(const struct ssdemu *dev, u32 plane);
u64 ssdemu_ftl_page_memory(const struct ssdemu *dev);
u64 ssdemu_ftl_block_memory(const struct ssdemu *dev);

/* buffer.c */
int ssdemu_buffer_init(struct ssdemu *dev);
void ssdemu_buffer_exit(struct ssdemu *dev);
void ssdemu_buffer_read(struct ssdemu *dev, struct ssdemu_cmd *cmd);
void ssdemu_buffer_filled(struct ssdemu *dev, struct ssdemu_rpage *rpage);
void ssdemu_buffer_write(struct ssdemu *dev, struct ssdemu_cmd *cmd);
void ssdemu_buffer_flush(struct ssdemu *dev, struct ssdemu_cmd *cmd);
void ssdemu_buffer_empty(struct ssdemu *dev, struct ssdemu_cmd *cmd);
bool ssdemu_buffer_exceeded(const struct ssdemu *dev, const struct ssdemu_cmd *cmd);
void ssdemu_buffer_trim(struct ssdemu *dev, u32 cluster);
void ssdemu_cluster_step(struct ssdemu *dev, struct ssdemu_cluster *cluster);

/**
 * ssdemu_transfer_ns() - duration of a transfer
 * @bytes: size
 * @mbps: speed in 10^6 bytes per second, not 0
 *
 * Return: time in ns, rounded down.
 */
static inline u32 ssdemu_transfer_ns(u32 bytes, u32 mbps)
{
	return div_u64((u64)bytes * (NSEC_PER_SEC / 1000000), mbps);
}

/**
 * ssdemu_host_clusters() - bound of the clusters that host requests touch
 * @dev: device with a resolved cluster size
 *
 * Return: the most clusters that requests on all tags can touch together.
 */
static inline u64 ssdemu_host_clusters(const struct ssdemu *dev)
{
	const struct ssdemu_config *cfg = &dev->cfg;
	u64 tags = (u64)cfg->queue_depth * cfg->hw_queues;

	return tags * (cfg->max_request_kb * 1024 / dev->cluster_bytes + 2);
}

/**
 * ssdemu_buffer_clusters() - bound of the clusters in the write buffer
 * @dev: device with a resolved buffer and cluster size
 *
 * A cluster has at least a logical block, or all of its bytes if they are fewer.
 *
 * Return: the most clusters that a full buffer has.
 */
static inline u32 ssdemu_buffer_clusters(const struct ssdemu *dev)
{
	return dev->buffer_max / min(dev->cfg.block_size, dev->cluster_bytes);
}

/* store.c */
blk_status_t ssdemu_store_request(struct ssdemu *dev, struct request *rq);
void ssdemu_store_exit(struct ssdemu *dev);

/* debugfs.c */
void ssdemu_debugfs_init(void);
void ssdemu_debugfs_exit(void);
void ssdemu_debugfs_add(struct ssdemu *dev);
void ssdemu_stats_reset(struct ssdemu *dev);

#endif /* _SSDEMU_H */
