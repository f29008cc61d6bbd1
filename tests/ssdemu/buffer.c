// SPDX-License-Identifier: GPL-2.0
/*
 * Between host requests and flash pages: read-modify-write of clustered pages,
 * write buffer or cache, read buffer, prefetch, flush.
 *
 * A write is divided into clusters (clustered pages, by default one page each).
 * A cluster that the host writes in part is completed by reading the rest; then
 * all its pages are programmed. With a write buffer a write completes when the
 * buffer has admitted all its clusters; without one, or with FUA, when they are
 * programmed.
 *
 *	FIFO buffer: clusters are programmed in order of arrival. Only the
 *		youngest waits for its successor, so a write joins an earlier one
 *		only if it directly follows it (PAI paper, 4.3).
 *	cache: when more than three quarters of the cache are dirty, the coldest
 *		clusters are programmed. They stay clean until their room is
 *		needed. A write to a cached cluster replaces its data.
 *
 * A write that finds no room waits, and those behind it keep their data at the
 * host. A flush waits for all clusters admitted before it. A write larger than a
 * FIFO buffer empties it before it transfers its data (PAI paper, 4.2.6), so the
 * flash idles during the transfer.
 *
 * The read buffer keeps the pages read last from flash. A request larger than
 * the read buffer bypasses it (PAI paper, 4.2.5). With prefetch=1 it is filled
 * ahead of streams: reads that have been contiguous for some time.
 */
#include <linux/hash.h>
#include <linux/mm.h>
#include "ssdemu.h"

/* A cache starts to program clusters when more bytes of it are dirty. */
#define CACHE_DIRTY_MAX(dev)	((dev)->buffer_max / 4 * 3)

/* Least number of contiguous reads, and their bytes, that make a stream. */
#define STREAM_REQUESTS		4
#define STREAM_BYTES		SZ_32K

static u64 full_mask(const struct ssdemu *dev)
{
	return GENMASK_ULL(dev->cluster_bytes / dev->granule - 1, 0);
}

/* Return the granules of a cluster that bytes [from, to) cover entirely. */
static u64 mask_of(const struct ssdemu *dev, u32 from, u32 to)
{
	u32 first = DIV_ROUND_UP(from, dev->granule), end = to / dev->granule;

	return first < end ? GENMASK_ULL(end - 1, first) : 0;
}

/* Read buffer */

static struct hlist_head *rpage_slot(struct ssdemu *dev, u32 lpn)
{
	return &dev->rpage_hash[hash_32(lpn, dev->rpage_hash_bits)];
}

static struct ssdemu_rpage *rpage_find(struct ssdemu *dev, u32 lpn)
{
	struct ssdemu_rpage *rpage;

	if (!dev->nr_rpages)
		return NULL;
	hlist_for_each_entry(rpage, rpage_slot(dev, lpn), hash)
		if (rpage->lpn == lpn)
			return rpage;
	return NULL;
}

static void rpage_free(struct ssdemu *dev, struct ssdemu_rpage *rpage)
{
	hlist_del_init(&rpage->hash);
	list_add(&rpage->list, &dev->rpage_free);
}

/* Take a page of the read buffer for @lpn; NULL if all are being filled. */
static struct ssdemu_rpage *rpage_get(struct ssdemu *dev, u32 lpn)
{
	struct list_head *from = &dev->rpage_free;
	struct ssdemu_rpage *rpage;

	if (list_empty(from))
		from = &dev->rpage_lru;
	rpage = list_first_entry_or_null(from, struct ssdemu_rpage, list);
	if (!rpage)
		return NULL;
	list_del(&rpage->list);
	hlist_del_init(&rpage->hash);
	rpage->lpn = lpn;
	rpage->filling = true;
	rpage->stale = false;
	rpage->prefetch = false;
	hlist_add_head(&rpage->hash, rpage_slot(dev, lpn));
	return rpage;
}

/* Drop a page that the host has overwritten or trimmed. */
static void rpage_invalidate(struct ssdemu *dev, u32 lpn)
{
	struct ssdemu_rpage *rpage = rpage_find(dev, lpn);

	if (!rpage)
		return;
	if (rpage->filling) {
		rpage->stale = true;
		hlist_del_init(&rpage->hash);
	} else {
		list_del(&rpage->list);
		rpage_free(dev, rpage);
	}
}

/**
 * ssdemu_buffer_filled() - end the fill of a read buffer page
 * @dev: device
 * @rpage: page read from flash; completes the reads waiting for it
 */
void ssdemu_buffer_filled(struct ssdemu *dev, struct ssdemu_rpage *rpage)
{
	struct ssdemu_txn *txn, *next;

	rpage->filling = false;
	if (rpage->prefetch)
		dev->prefetching--;
	list_for_each_entry_safe(txn, next, &rpage->waiters, list) {
		list_del(&txn->list);
		ssdemu_cmd_put(dev, txn->cmd, txn->bytes);
		ssdemu_txn_put(dev, txn);
	}
	if (rpage->stale)
		rpage_free(dev, rpage);
	else
		list_add_tail(&rpage->list, &dev->rpage_lru);
}

/* Prefetch a page unless it is there. Return false if the read buffer has no room. */
static bool prefetch_page(struct ssdemu *dev, u32 lpn)
{
	struct ssdemu_txn *txn;

	if (rpage_find(dev, lpn))
		return true;
	txn = ssdemu_txn_get(dev, lpn, SSDEMU_READ);
	txn->rpage = rpage_get(dev, lpn);
	if (!txn->rpage) {
		ssdemu_txn_put(dev, txn);
		return false;
	}
	txn->rpage->prefetch = true;
	dev->prefetching++;
	dev->stats.prefetch_reads++;
	ssdemu_txn_queue(dev, txn);
	return true;
}

static void stream_begin(struct ssdemu_stream *stream, u64 offset)
{
	stream->start = offset;
	stream->requests = 0;
	stream->ahead = 0;
}

/*
 * Return the stream that a read continues, or the least recently used one, which
 * the read begins anew. A stream also begins anew at a page that was prefetched
 * and dropped before it was read.
 */
static struct ssdemu_stream *stream_of(struct ssdemu *dev,
				       const struct ssdemu_cmd *cmd)
{
	u32 lpn = cmd->offset >> dev->page_shift;
	struct ssdemu_stream *stream;

	list_for_each_entry(stream, &dev->streams, list)
		if (stream->next == cmd->offset)
			break;
	if (list_entry_is_head(stream, &dev->streams, list)) {
		stream = list_first_entry(&dev->streams, struct ssdemu_stream,
					  list);
		stream_begin(stream, cmd->offset);
	} else if (lpn < stream->ahead && !rpage_find(dev, lpn)) {
		stream_begin(stream, cmd->offset);
	}
	stream->next = cmd->offset + cmd->bytes;
	stream->requests++;
	list_move_tail(&stream->list, &dev->streams);
	return stream;
}

/*
 * Prefetch for a stream from page @lpn on, once it is one. The window grows with
 * the stream: what it leaves behind at its end is at most half of what was read.
 */
static void stream_prefetch(struct ssdemu *dev, struct ssdemu_stream *stream,
			    u32 lpn)
{
	u64 bytes = stream->next - stream->start, window;
	u32 end;

	if (stream->requests < STREAM_REQUESTS || bytes < STREAM_BYTES)
		return;
	window = min3(bytes / 2 >> dev->page_shift, (u64)dev->nr_units,
		      (u64)dev->nr_rpages / 2);
	end = min_t(u64, lpn + window, dev->nr_lpns);
	for (lpn = max(lpn, stream->ahead);
	     lpn < end && dev->prefetching < dev->nr_units; lpn++)
		if (!prefetch_page(dev, lpn))
			break;
	stream->ahead = lpn;
}

/* Clusters */

static struct hlist_head *cluster_slot(struct ssdemu *dev, u32 id)
{
	return &dev->cluster_hash[hash_32(id, dev->cluster_hash_bits)];
}

static struct ssdemu_cluster *cluster_find(struct ssdemu *dev, u32 id)
{
	struct ssdemu_cluster *cluster;

	if (!dev->buffer_max)
		return NULL;
	hlist_for_each_entry(cluster, cluster_slot(dev, id), hash)
		if (cluster->id == id)
			return cluster;
	return NULL;
}

/* Free a cluster that is in no list, and its room in the buffer. */
static void cluster_free(struct ssdemu *dev, struct ssdemu_cluster *cluster)
{
	hlist_del_init(&cluster->hash);
	dev->buffer_bytes -= cluster->bytes;
	list_add(&cluster->list, &dev->cluster_free);
}

/* Finish a part of each request of a list that waits for the cluster. */
static void settle_waiters(struct ssdemu *dev, struct list_head *waiters,
			   struct ssdemu_cluster *cluster)
{
	struct ssdemu_cmd *cmd, *next;

	list_for_each_entry_safe(cmd, next, waiters, list) {
		if (cluster->seq > cmd->flush_seq)
			continue;
		if (cmd->left == 1)
			list_del(&cmd->list);
		ssdemu_cmd_put(dev, cmd, 0);
	}
}

/* The data of a cluster are on flash or trimmed: no request waits for it any more. */
static void cluster_settle(struct ssdemu *dev, struct ssdemu_cluster *cluster)
{
	dev->nr_unwritten--;
	settle_waiters(dev, &dev->flushes, cluster);
	settle_waiters(dev, &dev->emptying, cluster);
}

static void cluster_program(struct ssdemu *dev, struct ssdemu_cluster *cluster)
{
	u32 lpn = cluster->id * dev->cluster_pages, i;

	cluster->state = SSDEMU_CLUSTER_PROGRAM;
	cluster->left = dev->cluster_pages;
	for (i = 0; i < dev->cluster_pages; i++) {
		struct ssdemu_txn *txn;

		txn = ssdemu_txn_get(dev, lpn + i, SSDEMU_WRITE);
		txn->cluster = cluster;
		ssdemu_txn_queue(dev, txn);
	}
}

/* Read the missing pages of a cluster, then program it. */
static void cluster_start(struct ssdemu *dev, struct ssdemu_cluster *cluster)
{
	u32 lpn = cluster->id * dev->cluster_pages, i;

	cluster->state = SSDEMU_CLUSTER_READING;
	cluster->left = 1;
	for (i = 0; i < dev->cluster_pages; i++) {
		u64 page = mask_of(dev, i << dev->page_shift,
				   (i + 1) << dev->page_shift);
		struct ssdemu_txn *txn;

		if (page && (cluster->mask & page) == page)
			continue;
		txn = ssdemu_txn_get(dev, lpn + i, SSDEMU_READ);
		txn->cluster = cluster;
		cluster->left++;
		dev->stats.rmw_reads++;
		ssdemu_txn_queue(dev, txn);
	}
	if (!--cluster->left)
		cluster_program(dev, cluster);
}

/* Destaging */

static bool want_destage(struct ssdemu *dev)
{
	if (list_empty(&dev->dirty) || dev->destaging >= dev->destage_max)
		return false;
	if (!list_empty(&dev->flushes) || !list_empty(&dev->admission))
		return true;
	if (dev->cfg.write_cache)
		return dev->dirty_bytes > CACHE_DIRTY_MAX(dev);
	/* A write may wait for the last dirty cluster, too: see ssdemu_buffer_empty(). */
	return !list_is_singular(&dev->dirty) ||
	       list_first_entry(&dev->dirty, struct ssdemu_cluster, list)->seq <=
	       dev->flush_upto;
}

static void dirty_del(struct ssdemu *dev, struct ssdemu_cluster *cluster)
{
	list_del(&cluster->list);
	dev->dirty_bytes -= cluster->bytes;
}

static void destage(struct ssdemu *dev)
{
	while (want_destage(dev)) {
		struct ssdemu_cluster *cluster;

		cluster = list_first_entry(&dev->dirty, struct ssdemu_cluster,
					   list);
		dirty_del(dev, cluster);
		dev->destaging++;
		cluster_start(dev, cluster);
	}
}

/* Admission of writes */

/* Evict clean clusters until @bytes fit. Return false if they do not. */
static bool make_room(struct ssdemu *dev, u32 bytes)
{
	while (dev->buffer_bytes && dev->buffer_bytes + bytes > dev->buffer_max) {
		struct ssdemu_cluster *cluster;

		cluster = list_first_entry_or_null(&dev->clean,
						   struct ssdemu_cluster, list);
		if (!cluster)
			return false;
		list_del(&cluster->list);
		cluster_free(dev, cluster);
	}
	return true;
}

/* Return true if a write can be added to this cluster of the buffer. */
static bool may_join(struct ssdemu *dev, struct ssdemu_cluster *cluster)
{
	if (!cluster)
		return false;
	if (cluster->state == SSDEMU_CLUSTER_CLEAN)
		return true;
	if (cluster->state != SSDEMU_CLUSTER_DIRTY)
		return false;
	return dev->cfg.write_cache || list_is_last(&cluster->list, &dev->dirty);
}

/* Allocate a cluster; it replaces the older one of @id in the hash. */
static struct ssdemu_cluster *cluster_new(struct ssdemu *dev, u32 id)
{
	struct ssdemu_cluster *old = cluster_find(dev, id), *cluster;

	cluster = list_first_entry(&dev->cluster_free, struct ssdemu_cluster,
				   list);
	list_del(&cluster->list);
	cluster->id = id;
	cluster->cmd = NULL;
	cluster->mask = 0;
	cluster->bytes = 0;
	if (old)
		hlist_del_init(&old->hash);
	if (dev->buffer_max)
		hlist_add_head(&cluster->hash, cluster_slot(dev, id));
	return cluster;
}

/* Admit bytes [from, to) of a cluster to the buffer. Return false without room. */
static bool buffer_add(struct ssdemu *dev, u32 id, u32 from, u32 to)
{
	struct ssdemu_cluster *cluster = cluster_find(dev, id);
	bool join = may_join(dev, cluster);
	u64 mask = mask_of(dev, from, to);
	u32 had = 0, bytes = to - from;

	if (join) {
		had = cluster->bytes;
		bytes = hweight64(cluster->mask | mask) * dev->granule;
		bytes = max(bytes, had);
	}
	if (join && cluster->state == SSDEMU_CLUSTER_CLEAN)
		list_del_init(&cluster->list);
	/* A clean cluster becomes dirty as a whole, for which there may never be room. */
	if (join && cluster->state == SSDEMU_CLUSTER_CLEAN && bytes > dev->buffer_max) {
		cluster_free(dev, cluster);
		join = false;
		had = 0;
		bytes = to - from;
	}
	if (bytes > had && !make_room(dev, bytes - had)) {
		if (join && cluster->state == SSDEMU_CLUSTER_CLEAN)
			list_add_tail(&cluster->list, &dev->clean);
		return false;
	}

	if (!join) {
		cluster = cluster_new(dev, id);
		dev->nr_unwritten++;
		cluster->seq = ++dev->cluster_seq;
	} else if (cluster->state == SSDEMU_CLUSTER_DIRTY) {
		dev->stats.buffer_write_hits++;
		dirty_del(dev, cluster);
	} else {
		dev->stats.buffer_write_hits++;
		dev->nr_unwritten++;
		cluster->seq = ++dev->cluster_seq;
	}
	cluster->state = SSDEMU_CLUSTER_DIRTY;
	cluster->mask |= mask;
	cluster->bytes = bytes;
	dev->buffer_bytes += bytes - had;
	dev->dirty_bytes += bytes;
	list_add_tail(&cluster->list, &dev->dirty);
	return true;
}

/* Program bytes [from, to) of a cluster; @cmd waits for it. */
static void write_through(struct ssdemu *dev, struct ssdemu_cmd *cmd, u32 id,
			  u32 from, u32 to)
{
	struct ssdemu_cluster *cluster = cluster_find(dev, id);

	if (cluster && cluster->state == SSDEMU_CLUSTER_CLEAN) {
		list_del(&cluster->list);
		cluster_free(dev, cluster);
		cluster = NULL;
	}
	if (cluster && cluster->state == SSDEMU_CLUSTER_DIRTY) {
		dirty_del(dev, cluster);
		dev->destaging++;
	} else {
		cluster = cluster_new(dev, id);
	}
	cluster->cmd = cmd;
	cluster->mask |= mask_of(dev, from, to);
	cluster_start(dev, cluster);
}

/* Admit the next cluster of a write. Return false if it has to wait. */
static bool admit_next(struct ssdemu *dev, struct ssdemu_cmd *cmd)
{
	u64 start = (u64)cmd->next * dev->cluster_bytes;
	u64 end = cmd->offset + cmd->bytes;
	u32 from = max(cmd->offset, start) - start;
	u32 to = min(end, start + dev->cluster_bytes) - start;
	u32 id = cmd->next, i;
	bool last = end <= start + dev->cluster_bytes;

	if (cmd->fua || !dev->buffer_max) {
		if (last)
			list_del(&cmd->list);
		cmd->next++;
		write_through(dev, cmd, id, from, to);
	} else {
		if (!buffer_add(dev, id, from, to))
			return false;
		if (last)
			list_del(&cmd->list);
		cmd->next++;
		ssdemu_cmd_put(dev, cmd, 0);
	}
	for (i = 0; dev->nr_rpages && i < dev->cluster_pages; i++)
		rpage_invalidate(dev, id * dev->cluster_pages + i);
	return true;
}

static void admit(struct ssdemu *dev)
{
	struct ssdemu_cmd *cmd;

	while ((cmd = list_first_entry_or_null(&dev->admission,
					       struct ssdemu_cmd, list)))
		if (!admit_next(dev, cmd))
			return;
	ssdemu_fetch(dev);
}

/**
 * ssdemu_cluster_step() - continue a cluster after its last page operation
 * @dev: device
 * @cluster: cluster being read (then program it) or programmed (then finish it)
 */
void ssdemu_cluster_step(struct ssdemu *dev, struct ssdemu_cluster *cluster)
{
	if (cluster->state == SSDEMU_CLUSTER_READING) {
		cluster_program(dev, cluster);
		return;
	}
	if (cluster->cmd)
		ssdemu_cmd_put(dev, cluster->cmd, 0);
	if (cluster->bytes) {
		dev->destaging--;
		cluster_settle(dev, cluster);
	}
	if (dev->cfg.write_cache && cluster->bytes &&
	    !hlist_unhashed(&cluster->hash)) {
		cluster->state = SSDEMU_CLUSTER_CLEAN;
		cluster->mask = full_mask(dev);
		cluster->cmd = NULL;
		list_add_tail(&cluster->list, &dev->clean);
	} else {
		cluster_free(dev, cluster);
	}
	admit(dev);
	destage(dev);
}

/* Host requests */

static bool in_write_buffer(struct ssdemu *dev, u32 lpn, u32 from, u32 to)
{
	struct ssdemu_cluster *cluster;
	u32 base = lpn % dev->cluster_pages << dev->page_shift;
	u64 mask;

	cluster = cluster_find(dev, lpn / dev->cluster_pages);
	if (!cluster)
		return false;
	mask = mask_of(dev, base + from, base + to);
	return mask && (cluster->mask & mask) == mask;
}

static void read_page(struct ssdemu *dev, struct ssdemu_cmd *cmd, u32 lpn,
		      u32 from, u32 to, bool buffered)
{
	struct ssdemu_rpage *rpage = NULL;
	struct ssdemu_txn *txn;

	if (in_write_buffer(dev, lpn, from, to)) {
		dev->stats.buffer_read_hits++;
		ssdemu_cmd_put(dev, cmd, to - from);
		return;
	}
	if (buffered)
		rpage = rpage_find(dev, lpn);
	if (rpage && !rpage->filling) {
		dev->stats.read_buffer_hits++;
		list_move_tail(&rpage->list, &dev->rpage_lru);
		ssdemu_cmd_put(dev, cmd, to - from);
		return;
	}
	txn = ssdemu_txn_get(dev, lpn, SSDEMU_READ);
	txn->cmd = cmd;
	txn->bytes = to - from;
	if (rpage) {
		dev->stats.read_buffer_hits++;
		list_add_tail(&txn->list, &rpage->waiters);
		return;
	}
	if (buffered)
		txn->rpage = rpage_get(dev, lpn);
	ssdemu_txn_queue(dev, txn);
}

/**
 * ssdemu_buffer_read() - serve a decoded read from buffers and flash
 * @dev: device
 * @cmd: read; completed by ssdemu_cmd_put(), possibly before this returns
 */
void ssdemu_buffer_read(struct ssdemu *dev, struct ssdemu_cmd *cmd)
{
	u32 shift = dev->page_shift, size = 1U << shift;
	u64 end = cmd->offset + cmd->bytes;
	u32 first = cmd->offset >> shift;
	u32 last = (end - 1) >> shift;
	struct ssdemu_stream *stream = NULL;
	bool buffered;
	u32 lpn;

	if (dev->cfg.prefetch)
		stream = stream_of(dev, cmd);
	cmd->left = last - first + 1;
	buffered = dev->nr_rpages && cmd->left <= dev->nr_rpages;
	dev->stats.host_pages_read += cmd->left;
	for (lpn = first; lpn <= last; lpn++) {
		u64 start = (u64)lpn << shift;

		read_page(dev, cmd, lpn, max(cmd->offset, start) - start,
			  min(end, start + size) - start, buffered);
	}
	if (stream)
		stream_prefetch(dev, stream, last + 1);
}

/**
 * ssdemu_buffer_write() - admit a write to the buffer, or program it
 * @dev: device
 * @cmd: write whose data are in the drive; completed by ssdemu_cmd_put()
 */
void ssdemu_buffer_write(struct ssdemu *dev, struct ssdemu_cmd *cmd)
{
	u64 end = cmd->offset + cmd->bytes;
	u32 last = div_u64(end - 1, dev->cluster_bytes);

	cmd->next = div_u64(cmd->offset, dev->cluster_bytes);
	cmd->left = last - cmd->next + 1;
	dev->stats.host_pages_written += ((end - 1) >> dev->page_shift) -
					 (cmd->offset >> dev->page_shift) + 1;
	list_add_tail(&cmd->list, &dev->admission);
	admit(dev);
	dev->stats.buffer_waits += !list_empty(&dev->admission);
	destage(dev);
}

/**
 * ssdemu_buffer_exceeded() - return true if the buffer must be empty for a write
 * @dev: device
 * @cmd: decoded write
 */
bool ssdemu_buffer_exceeded(const struct ssdemu *dev, const struct ssdemu_cmd *cmd)
{
	return dev->buffer_max && !dev->cfg.write_cache && !cmd->fua &&
	       cmd->bytes > dev->buffer_max;
}

/* Have @cmd wait on @list for the @unwritten clusters admitted up to @seq. */
static void wait_for_programs(struct ssdemu *dev, struct ssdemu_cmd *cmd,
			      struct list_head *list, u64 seq, u32 unwritten)
{
	cmd->flush_seq = seq;
	dev->flush_upto = max(dev->flush_upto, seq);
	ssdemu_sched_urge(dev);
	cmd->left = unwritten + 1;
	list_add_tail(&cmd->list, list);
	destage(dev);
	if (cmd->left == 1)
		list_del(&cmd->list);
	ssdemu_cmd_put(dev, cmd, 0);
}

/**
 * ssdemu_buffer_empty() - wait until the buffer is empty
 * @dev: device
 * @cmd: write that ssdemu_cmd_put() continues then
 *
 * The youngest cluster stays if it is dirty, since the write may continue it: destage()
 * leaves one dirty cluster, unless a flush, a lack of room or this write forces it out.
 */
void ssdemu_buffer_empty(struct ssdemu *dev, struct ssdemu_cmd *cmd)
{
	u64 seq = dev->cluster_seq;
	/* A write through the buffer takes its clusters off the list. */
	bool stays = !list_empty(&dev->dirty) &&
		     list_last_entry(&dev->dirty, struct ssdemu_cluster,
				     list)->seq == seq;

	if (stays)
		seq--;
	wait_for_programs(dev, cmd, &dev->emptying, seq,
			  dev->nr_unwritten - stays);
}

/**
 * ssdemu_buffer_flush() - program all clusters admitted so far
 * @dev: device
 * @cmd: flush; completed by ssdemu_cmd_put() after the last of these clusters
 */
void ssdemu_buffer_flush(struct ssdemu *dev, struct ssdemu_cmd *cmd)
{
	wait_for_programs(dev, cmd, &dev->flushes, dev->cluster_seq,
			  dev->nr_unwritten);
}

/**
 * ssdemu_buffer_trim() - drop the data of a trimmed cluster
 * @dev: device
 * @id: number of the cluster
 */
void ssdemu_buffer_trim(struct ssdemu *dev, u32 id)
{
	struct ssdemu_cluster *cluster = cluster_find(dev, id);
	u32 i;

	for (i = 0; dev->nr_rpages && i < dev->cluster_pages; i++)
		rpage_invalidate(dev, id * dev->cluster_pages + i);
	if (!cluster)
		return;

	switch (cluster->state) {
	case SSDEMU_CLUSTER_DIRTY:
		dirty_del(dev, cluster);
		cluster_settle(dev, cluster);
		cluster_free(dev, cluster);
		break;
	case SSDEMU_CLUSTER_CLEAN:
		list_del(&cluster->list);
		cluster_free(dev, cluster);
		break;
	default:
		hlist_del_init(&cluster->hash);
		break;
	}
	admit(dev);
	destage(dev);
}

/* Set-up */

static struct hlist_head *hash_alloc(u32 entries, u32 *bits)
{
	struct hlist_head *hash;
	u32 i;

	*bits = max_t(u32, ilog2(entries | 1), 4);
	hash = kvmalloc_array(1UL << *bits, sizeof(*hash), GFP_KERNEL);
	for (i = 0; hash && i < 1U << *bits; i++)
		INIT_HLIST_HEAD(&hash[i]);
	return hash;
}

static int clusters_init(struct ssdemu *dev)
{
	/* All tags written through, plus a full buffer. */
	u32 n = ssdemu_host_clusters(dev) + ssdemu_buffer_clusters(dev) + 1;
	u32 i;

	dev->cluster_pool = kvcalloc(n, sizeof(*dev->cluster_pool), GFP_KERNEL);
	dev->cluster_hash = hash_alloc(n, &dev->cluster_hash_bits);
	if (!dev->cluster_pool || !dev->cluster_hash)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		list_add_tail(&dev->cluster_pool[i].list, &dev->cluster_free);
	return 0;
}

static int rpages_init(struct ssdemu *dev)
{
	u32 n = dev->nr_rpages, i;

	if (!n)
		return 0;
	dev->rpage_pool = kvcalloc(n, sizeof(*dev->rpage_pool), GFP_KERNEL);
	dev->rpage_hash = hash_alloc(n, &dev->rpage_hash_bits);
	if (!dev->rpage_pool || !dev->rpage_hash)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		INIT_LIST_HEAD(&dev->rpage_pool[i].waiters);
		list_add_tail(&dev->rpage_pool[i].list, &dev->rpage_free);
	}
	return 0;
}

static void streams_init(struct ssdemu *dev)
{
	u32 i;

	INIT_LIST_HEAD(&dev->streams);
	for (i = 0; i < ARRAY_SIZE(dev->stream_pool); i++) {
		dev->stream_pool[i].next = U64_MAX;
		list_add(&dev->stream_pool[i].list, &dev->streams);
	}
}

/**
 * ssdemu_buffer_init() - allocate the buffers
 * @dev: device with a resolved configuration
 *
 * May sleep; needs no lock.
 *
 * Return: 0, or -ENOMEM; ssdemu_buffer_exit() is due in either case.
 */
int ssdemu_buffer_init(struct ssdemu *dev)
{
	int err;

	INIT_LIST_HEAD(&dev->cluster_free);
	INIT_LIST_HEAD(&dev->dirty);
	INIT_LIST_HEAD(&dev->clean);
	INIT_LIST_HEAD(&dev->admission);
	INIT_LIST_HEAD(&dev->flushes);
	INIT_LIST_HEAD(&dev->emptying);
	INIT_LIST_HEAD(&dev->rpage_free);
	INIT_LIST_HEAD(&dev->rpage_lru);
	streams_init(dev);

	err = clusters_init(dev);
	return err ?: rpages_init(dev);
}

/**
 * ssdemu_buffer_exit() - free the buffers
 * @dev: device whose engine has stopped
 */
void ssdemu_buffer_exit(struct ssdemu *dev)
{
	kvfree(dev->rpage_hash);
	kvfree(dev->rpage_pool);
	kvfree(dev->cluster_hash);
	kvfree(dev->cluster_pool);
}
