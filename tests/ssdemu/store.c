// SPDX-License-Identifier: GPL-2.0
/*
 * The data of a device with memory_backed=1, in pages of memory that the first
 * write allocates. Data are copied when a request arrives, so writes are stored
 * in the order of their dispatch, independently of the emulated flash. Removing
 * a device drops its data.
 */
#include <linux/bio.h>
#include <linux/highmem.h>
#include "ssdemu.h"

/* Return the memory of @offset, or NULL: no data, or (@create) no memory. */
static struct page *store_page(struct ssdemu *dev, u64 offset, bool create)
{
	unsigned long index = offset >> PAGE_SHIFT;
	struct page *page = xa_load(&dev->store, index), *old;

	if (page || !create)
		return page;
	page = alloc_page(GFP_ATOMIC | __GFP_ZERO | __GFP_NOWARN);
	if (!page)
		return NULL;
	old = xa_cmpxchg(&dev->store, index, NULL, page, GFP_ATOMIC);
	if (!old)
		return page;
	__free_page(page);
	return xa_is_err(old) ? NULL : old;
}

/* Copy within one page of the store. Return false if a write gets no memory. */
static bool copy_piece(struct ssdemu *dev, u64 offset, struct page *mem,
		       u32 mem_offset, u32 len, bool write)
{
	struct page *page = store_page(dev, offset, write);

	if (!page) {
		if (!write)
			memzero_page(mem, mem_offset, len);
		return !write;
	}
	if (write)
		memcpy_page(page, offset_in_page(offset), mem, mem_offset, len);
	else
		memcpy_page(mem, mem_offset, page, offset_in_page(offset), len);
	return true;
}

static blk_status_t copy_data(struct ssdemu *dev, struct request *rq, bool write)
{
	u64 offset = blk_rq_pos(rq) << SECTOR_SHIFT;
	struct req_iterator iter;
	struct bio_vec bv;

	rq_for_each_segment(bv, rq, iter) {
		u32 done, len;

		for (done = 0; done < bv.bv_len; done += len, offset += len) {
			len = min_t(u32, bv.bv_len - done,
				    PAGE_SIZE - offset_in_page(offset));
			if (!copy_piece(dev, offset, bv.bv_page,
					bv.bv_offset + done, len, write))
				return BLK_STS_RESOURCE;
		}
	}
	return BLK_STS_OK;
}

/* Drop the data of [offset, end), in bytes; they read as zeroes from now on. */
static void erase_data(struct ssdemu *dev, u64 offset, u64 end)
{
	while (offset < end) {
		u32 len = min_t(u64, end - offset,
				PAGE_SIZE - offset_in_page(offset));
		struct page *page;

		if (len == PAGE_SIZE) {
			page = xa_erase(&dev->store, offset >> PAGE_SHIFT);
			if (page)
				__free_page(page);
		} else {
			page = store_page(dev, offset, false);
			if (page)
				memzero_page(page, offset_in_page(offset), len);
		}
		offset += len;
	}
}

/**
 * ssdemu_store_request() - copy or discard the data of a request
 * @dev: memory-backed device
 * @rq: any request
 *
 * Takes dev->store_lock; does not need dev->lock.
 *
 * Return: BLK_STS_OK, or BLK_STS_RESOURCE if there is no memory. The caller may
 * then retry the whole request.
 */
blk_status_t ssdemu_store_request(struct ssdemu *dev, struct request *rq)
{
	blk_status_t status = BLK_STS_OK;
	unsigned long flags;

	spin_lock_irqsave(&dev->store_lock, flags);
	switch (req_op(rq)) {
	case REQ_OP_READ:
	case REQ_OP_WRITE:
		status = copy_data(dev, rq, req_op(rq) == REQ_OP_WRITE);
		break;
	case REQ_OP_DISCARD:
	case REQ_OP_WRITE_ZEROES:
		erase_data(dev, blk_rq_pos(rq) << SECTOR_SHIFT,
			   (blk_rq_pos(rq) + blk_rq_sectors(rq)) << SECTOR_SHIFT);
		break;
	default:
		break;
	}
	spin_unlock_irqrestore(&dev->store_lock, flags);
	return status;
}

/**
 * ssdemu_store_exit() - free all data
 * @dev: device without requests
 */
void ssdemu_store_exit(struct ssdemu *dev)
{
	unsigned long index;
	struct page *page;

	xa_for_each(&dev->store, index, page)
		__free_page(page);
	xa_destroy(&dev->store);
}
