/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ssdemu: an emulated SSD that judges I/O schedulers.
 *
 * A request that the block layer dispatches waits inside the device until the
 * flash unit it needs takes it (late binding), so that the device's own
 * scheduling is real. All times are virtual: every step of the device is an
 * event with an exact time in nanoseconds, handled in order, and an hrtimer
 * tells the host no earlier than that time. Late timer interrupts delay what the
 * host sees, never what the device does next.
 *
 *	main.c       module, devices, blk-mq driver
 *	config.c     the keys a device is made from, their limits
 *	engine.c     events, host requests, channels, flash units: the timing
 *	sched.c      which page operation a free unit takes: device_sched=
 *	ftl.c        page mapping, allocation of pages, greedy garbage collection
 *	ftl-block.c  block mapping with open (log) blocks
 *	buffer.c     write buffer or cache, read buffer, prefetch
 *	store.c      the data, when memory_backed=1
 *	debugfs.c    the truth, readable
 *
 * Locking: one spinlock a device (ssdemu.lock, taken with interrupts off) guards
 * everything below that does not say otherwise. Functions of engine.c, sched.c,
 * ftl*.c and buffer.c expect it to be held.
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

#define SSDEMU_NONE		U32_MAX

struct ssdemu;
struct ssdemu_event;

/* How a logical page finds its plane. */
enum ssdemu_allocation {
	SSDEMU_STATIC,		/* one of the 24 orders */
	SSDEMU_DYNAMIC,		/* the next free unit takes the next write */
	SSDEMU_CONCAT,		/* a contiguous region on each unit */
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

/*
 * What a device is made from. Written once, before the device exists. The keys
 * are the names of the fields; config.c has defaults and limits.
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
	u32 capacity_mb;	/* MiB seen by the host; 0: what the geometry gives */
	u32 spare;		/* percent of the flash that the host does not see */
	u32 advanced;		/* 1: planes work in parallel, 0: a chip is one unit */

	/* times */
	u32 read_ns;		/* cell to page register */
	u32 program_ns;		/* page register to cell */
	u32 erase_ns;		/* one block */
	u32 command_ns;		/* channel time of a flash command's cycles */
	u32 channel_mbps;	/* 10^6 B/s */
	u32 host_mbps;		/* 10^6 B/s; 0: no limit */
	u32 host_duplex;	/* 1: reads and writes do not share host_mbps */
	u32 firmware_ns;	/* per request, one request after another */

	/* flash translation */
	u32 allocation;		/* enum ssdemu_allocation */
	u8 order[LV_DIGITS];	/* of a static allocation */
	u32 mapping;		/* enum ssdemu_mapping */
	u32 open_blocks;	/* log blocks of mapping=block */
	u32 clustered_page_kb;	/* KiB; unit of read-modify-write; 0: a page */
	u32 gc_free_blocks;	/* per plane, kept free by garbage collection */
	u32 gc_copyback;	/* 1: copies stay in the plane, off the channel */
	u32 gc_yield;		/* 1: waiting reads go between two copies */
	u32 fill;		/* percent of the pages written before the start */

	/* buffers */
	u32 read_buffer_kb;	/* KiB */
	u32 prefetch;		/* 1: sequential reads fill the read buffer ahead */
	u32 write_buffer_kb;	/* KiB; 0: a write is done when it is programmed */
	u32 write_cache;	/* 1: cache with replacement, 0: FIFO buffer */

	/* inside scheduling */
	u32 device_sched;	/* enum ssdemu_device_sched */
	u32 read_bound;		/* reads of a unit that may pass a waiting write */

	/* observations of papers, off by default */
	u32 region_mb;		/* MiB; region in which crowding counts */
	u32 crowd_depth;	/* requests in a region before crowding */
	u32 crowd_ns;		/* unit time per request and excess request */
	u32 rw_switch_ns;	/* unit time when it turns between read and program */
	u32 random_ns;		/* unit time of a page that does not follow its last */

	/* host side */
	u32 queue_depth;	/* tags of a hardware queue */
	u32 hw_queues;
	u32 block_size;		/* bytes; logical block */
	u32 max_request_kb;	/* KiB */
	u32 memory_backed;	/* 1: keeps the data */
};

/* A moment at which the device does something. */
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
	struct ssdemu_event ev;	/* decoded, transferred, ended */
	struct list_head list;	/* waits for the write buffer or for a flush, or done */
	u64 arrived;		/* ns */
	u64 offset;		/* bytes from the device's start */
	u32 bytes;
	u32 left;		/* pages or clusters that it waits for */
	u32 next;		/* write: next cluster for the buffer */
	u32 region;
	u64 flush_seq;		/* flush: youngest cluster that it waits for */
	enum req_op op;
	bool fua;
	bool crowded;		/* has paid for a crowded region */
};

/* An operation on one flash page, wanted by a host request or by the device. */
struct ssdemu_txn {
	struct list_head list;
	struct ssdemu_cmd *cmd;		/* read by the host, or NULL */
	struct ssdemu_cluster *cluster;	/* part of this cluster's write, or NULL */
	struct ssdemu_rpage *rpage;	/* read buffer page to fill, or NULL */
	u64 seq;			/* order of arrival */
	u64 writes_seen;		/* programs and erases begun on the unit before */
	u32 lpn;			/* logical page */
	u32 bytes;			/* that go to the host */
	u32 plane;			/* SSDEMU_NONE: not chosen yet (dynamic) */
	u8 dir;				/* enum ssdemu_dir */
};

enum ssdemu_cluster_state {
	SSDEMU_CLUSTER_DIRTY,	/* waits to be programmed */
	SSDEMU_CLUSTER_READING,	/* reads what the host did not write */
	SSDEMU_CLUSTER_PROGRAM,
	SSDEMU_CLUSTER_CLEAN,	/* still in the cache */
};

/*
 * A clustered page on its way to flash: the unit of read-modify-write, and of
 * the write buffer.
 */
struct ssdemu_cluster {
	struct list_head list;	/* free, dirty or clean list */
	struct hlist_node hash;	/* by id; only the newest of an id */
	struct ssdemu_cmd *cmd;	/* done when this is programmed, or NULL */
	u64 seq;		/* order of admission */
	u64 mask;		/* granules with new data */
	u32 id;
	u32 bytes;		/* of the write buffer */
	u32 left;		/* page operations that it waits for */
	u8 state;		/* enum ssdemu_cluster_state */
};

/* A page of the read buffer. */
struct ssdemu_rpage {
	struct list_head list;	/* LRU or free */
	struct list_head waiters; /* txns that came while it was being filled */
	struct hlist_node hash;	/* by lpn */
	u32 lpn;
	bool filling;
	bool stale;		/* overwritten while being filled */
	bool prefetch;		/* nobody asked for it yet */
};

/* A bus that serves first come, first served: a point in time is enough. */
struct ssdemu_bus {
	u64 free_at;		/* ns */
	u64 busy_ns;
	u64 transfers;
	u64 conflicts;		/* found it busy */
};

struct ssdemu_channel {
	struct ssdemu_bus bus;
	struct ssdemu_event ev;	/* end of a transfer that something waits for */
	bool ev_pending;
	struct list_head commands; /* units that wait to send one */
	struct list_head data;	/* units that wait to move data */
	u32 ready;		/* aos: free units with work */
	u32 next_chip;		/* aos: where the search goes on */
};

/* What cannot work on two things at once: a chip, or a plane (advanced=1). */
struct ssdemu_unit {
	struct ssdemu_event ev;
	struct list_head wait;	/* for the channel */
	u32 bus_ns;		/* time wanted on the channel */
	u64 then_ns;		/* time after it until the event */
	u64 bus_end;		/* ns, of the last use of the channel */
	struct ssdemu_unit *rider; /* next plane that shares this one's command */
	struct ssdemu_txn *txn;	/* served */
	struct ssdemu_txn *held; /* write that waits for its plane's cleaning */
	struct list_head queue[SSDEMU_DIRS];
	u32 waiting;		/* page operations in the device for this unit */
	u32 passed;		/* reads that went before a waiting write */
	u32 cleaning;		/* planes that have cleaning to do */
	u32 clean_plane;	/* plane that is cleaned at the moment */
	u32 next_plane;		/* dynamic: plane for the next write */
	u32 next_row;		/* home row that follows the last operation's */
	u8 last;		/* enum ssdemu_dir of the last page operation */
	u8 last_queued;		/* the same, of the last that came to wait */
	bool busy;
	bool writing;		/* busy with a program or an erase */
	bool is_cleaning;	/* busy with garbage collection or a merge */
	bool ready;		/* aos: in the re-ordering set */
	u64 writes;		/* programs and erases begun */
	u64 busy_since;		/* ns */
	u64 op_since;		/* ns, the operation under way */
	u64 busy_ns;
	u64 clean_ns;
};

struct ssdemu_plane {
	/* page mapping */
	u32 active;		/* block being written */
	u32 active_page;	/* next page in it */
	u32 free_first;		/* free blocks, oldest first */
	u32 free_last;
	u32 free;
	u32 valid;		/* valid pages */
	u32 victim;		/* block being cleaned, or SSDEMU_NONE */
	u32 victim_page;	/* next page to look at */
	/* block mapping */
	u32 copies_due;
	u32 erases_due;
	/* truth */
	bool cleaning;
	u64 busy_ns;
	u64 erases;
};

/* Two planes of a die that start the same operation together share a command. */
struct ssdemu_die {
	u64 started;		/* ns */
	struct ssdemu_unit *leader; /* whose command others may share */
	u32 page;		/* offset in the block */
	u8 dir;
};

enum ssdemu_clean_step {
	SSDEMU_CLEAN_DONE,
	SSDEMU_CLEAN_COPY,
	SSDEMU_CLEAN_ERASE,
};

/* A mapping of logical pages to flash. */
struct ssdemu_ftl_ops {
	int (*init)(struct ssdemu *dev);
	void (*exit)(struct ssdemu *dev);
	/* plane that holds the page, *page: its offset in the block */
	u32 (*locate)(struct ssdemu *dev, u32 lpn, u32 *block, u32 *page);
	/* true: the plane must be cleaned before the page can be written there */
	bool (*prepare)(struct ssdemu *dev, u32 plane, u32 lpn);
	/* give the page a place; returns its offset in the block */
	u32 (*program)(struct ssdemu *dev, u32 plane, u32 lpn);
	/* do and return the next step of cleaning */
	enum ssdemu_clean_step (*clean)(struct ssdemu *dev, u32 plane);
	void (*trim)(struct ssdemu *dev, u32 lpn);
};

struct ssdemu_sched_ops {
	/* a page operation is new in the device */
	void (*add)(struct ssdemu *dev, struct ssdemu_txn *txn);
	/* a unit has nothing to do */
	void (*unit_free)(struct ssdemu *dev, struct ssdemu_unit *unit);
	/* a transfer has ended; optional, asked for by ssdemu_channel_watch() */
	void (*channel_free)(struct ssdemu *dev, struct ssdemu_channel *channel);
};

#define SSDEMU_DEPTH_BUCKETS	12

/* Latency of one kind of host request, from arrival to its exact end. */
struct ssdemu_latency {
	u64 count;
	u64 sum_ns;
	u64 min_ns;
	u64 max_ns;
};

struct ssdemu_stats {
	u64 since;		/* ns, start or last reset */
	struct ssdemu_latency read, write, flush, discard;
	u64 host_read_bytes;
	u64 host_write_bytes;
	u64 host_pages_read;	/* pages that host reads touched */
	u64 host_pages_written;
	u64 flash_reads;	/* for the host, for read-modify-write, prefetch */
	u64 flash_programs;
	u64 flash_copies;	/* pages moved by cleaning */
	u64 flash_erases;
	u64 rmw_reads;		/* of flash_reads */
	u64 prefetch_reads;	/* of flash_reads */
	u64 trimmed_pages;
	u64 merges;		/* block mapping */
	u64 multiplane;		/* operations that shared a command */
	u64 conflict_rr;	/* entered while its unit had: read, read */
	u64 conflict_rw;	/* a read and a write */
	u64 conflict_ww;
	u64 conflict_clean;	/* cleaning */
	u64 interference;	/* reads that waited for a program or an erase */
	u64 head_blocked;	/* fifo: the head waited for its unit */
	u64 head_blocked_ns;
	u64 buffer_write_hits;	/* cache: cluster was there already */
	u64 buffer_read_hits;	/* pages served from the write buffer */
	u64 read_buffer_hits;	/* pages served from the read buffer */
	u64 buffer_waits;	/* writes that found the write buffer full */
	u64 crowd_ns;		/* paid */
	u64 rw_switches;
	u64 active_ns;		/* at least one unit busy */
	u64 max_units_busy;
	u64 events;
	u64 timers;
	u64 depth[SSDEMU_DEPTH_BUCKETS]; /* arrivals by requests inside, log2 */
};

struct ssdemu {
	/* settings, constant once the device exists */
	struct ssdemu_config cfg;
	struct lv_geometry geo;		/* at plane level, also when advanced=0 */
	const struct ssdemu_ftl_ops *ftl;
	const struct ssdemu_sched_ops *sched;
	u64 capacity;			/* bytes */
	u32 nr_planes, nr_units, nr_chips, nr_dies;
	u32 nr_lpns;			/* logical pages */
	u32 page_shift;			/* log2 of cfg.page_size */
	u32 plane_lpns;			/* logical pages a plane holds (not dynamic) */
	u32 plane_pages;		/* flash pages of a plane */
	u32 cluster_pages;
	u32 cluster_bytes;
	u32 granule;			/* bytes a bit of ssdemu_cluster.mask covers */
	u32 page_transfer_ns;		/* one page over a channel */
	u32 *concat_plane;		/* concat: plane of the n-th region */

	/* blk-mq */
	struct list_head list;		/* of all devices, under ssdemu_mutex */
	int id;
	struct gendisk *disk;
	struct blk_mq_tag_set tag_set;
	struct dentry *debugfs;
	struct xarray store;		/* data, by PAGE_SIZE; own lock */
	spinlock_t store_lock;		/* contents of the store's pages */

	spinlock_t lock;		/* all that follows */
	bool dead;			/* being removed: new requests fail */

	/* timing */
	u64 now;			/* ns, virtual time the device has reached */
	struct rb_root_cached events;
	struct hrtimer timer;
	u64 armed;			/* ns the timer is set to, U64_MAX: not set */
	struct list_head done;		/* requests to complete outside the lock */
	struct ssdemu_bus firmware;
	struct ssdemu_bus host[SSDEMU_DIRS];
	struct ssdemu_channel *channels;
	struct ssdemu_unit *units;
	struct ssdemu_plane *planes;
	struct ssdemu_die *dies;
	u32 inside;			/* host requests */
	u32 units_busy;
	u64 active_since;		/* ns, units_busy left 0 */
	u32 *region_inside;		/* host requests, by region */

	/* scheduling */
	u64 seq;
	struct list_head fifo;		/* fifo: all; else: writes without a unit */
	u64 head_blocked_since;		/* ns, 0: head is not blocked */
	unsigned long *busy_units;	/* bitmap, for dynamic allocation */
	u32 next_unit;			/* dynamic: where the search starts */
	u32 next_channel;		/* aos */
	struct ssdemu_txn *txn_pool;
	struct list_head txn_free;

	/* page mapping */
	u32 *l2p;
	u32 *p2l;
	struct ssdemu_block *blocks;
	u32 *buckets;			/* per plane: full blocks by valid pages */

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
	u32 buffer_bytes;		/* used */
	u32 buffer_max;			/* bytes; 0: no write buffer */
	u32 dirty_bytes;		/* of buffer_bytes, on the dirty list */
	u32 nr_unwritten;		/* clusters of the buffer not yet programmed */
	u32 destaging;			/* of these, under way */
	u32 destage_max;
	u64 cluster_seq;
	struct ssdemu_rpage *rpage_pool;
	struct list_head rpage_free;
	struct list_head rpage_lru;	/* coldest first */
	struct hlist_head *rpage_hash;
	u32 rpage_hash_bits;
	u32 streams[8];			/* next page of recent sequential reads */
	u32 next_stream;
	u32 nr_rpages;
	u32 prefetching;		/* page operations under way */

	u64 where_sector;		/* debugfs: the span to locate */
	u64 where_sectors;
	struct ssdemu_stats stats;
};

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
void ssdemu_cmd_put(struct ssdemu *dev, struct ssdemu_cmd *cmd, u32 bytes);
void ssdemu_unit_start(struct ssdemu *dev, struct ssdemu_unit *unit,
		       struct ssdemu_txn *txn);
void ssdemu_channel_watch(struct ssdemu *dev, struct ssdemu_channel *channel);
void ssdemu_unit_clean(struct ssdemu *dev, u32 plane);
struct ssdemu_txn *ssdemu_txn_get(struct ssdemu *dev, u32 lpn,
				  enum ssdemu_dir dir);
void ssdemu_txn_put(struct ssdemu *dev, struct ssdemu_txn *txn);
void ssdemu_txn_queue(struct ssdemu *dev, struct ssdemu_txn *txn);
u32 ssdemu_home_plane(const struct ssdemu *dev, u32 lpn, u32 *row);

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
extern const struct ssdemu_sched_ops ssdemu_sched_ops[];

/* ftl.c, ftl-block.c */
extern const struct ssdemu_ftl_ops ssdemu_ftl_page;
extern const struct ssdemu_ftl_ops ssdemu_ftl_block;
bool ssdemu_plane_has_room(const struct ssdemu *dev, u32 plane);
u64 ssdemu_ftl_page_memory(const struct ssdemu *dev);
u64 ssdemu_ftl_block_memory(const struct ssdemu *dev);

/* buffer.c */
int ssdemu_buffer_init(struct ssdemu *dev);
void ssdemu_buffer_exit(struct ssdemu *dev);
void ssdemu_buffer_read(struct ssdemu *dev, struct ssdemu_cmd *cmd);
void ssdemu_buffer_filled(struct ssdemu *dev, struct ssdemu_rpage *rpage);
void ssdemu_buffer_write(struct ssdemu *dev, struct ssdemu_cmd *cmd);
void ssdemu_buffer_flush(struct ssdemu *dev, struct ssdemu_cmd *cmd);
void ssdemu_buffer_trim(struct ssdemu *dev, u32 cluster);
void ssdemu_cluster_step(struct ssdemu *dev, struct ssdemu_cluster *cluster);

/* store.c */
blk_status_t ssdemu_store_request(struct ssdemu *dev, struct request *rq);
void ssdemu_store_exit(struct ssdemu *dev);

/* debugfs.c */
void ssdemu_debugfs_init(void);
void ssdemu_debugfs_exit(void);
void ssdemu_debugfs_add(struct ssdemu *dev);
void ssdemu_stats_reset(struct ssdemu *dev);

#endif /* _SSDEMU_H */
