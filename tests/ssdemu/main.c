// SPDX-License-Identifier: GPL-2.0
/*
 * ssdemu: module, devices, blk-mq driver.
 *
 * Writing key=value pairs to the module parameter "add" makes a device; reading
 * "add" returns the name of the last device or the reason of the last error.
 * Writing a device's name to "remove" removes it. scripts/ssdemu does both.
 *
 * A device being removed fails new requests, completes those inside at their
 * time, and drops its data.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/idr.h>
#include <linux/mm.h>
#include <linux/module.h>
#include "compat-blkdev.h"
#include "ssdemu.h"

/* Bounds the time that one discard keeps interrupts disabled. */
#define MAX_DISCARD_BYTES	(32 << 20)

/* Protects the list of devices and add_result; serialises add and remove. */
static DEFINE_MUTEX(ssdemu_mutex);
static LIST_HEAD(ssdemu_devices);
static DEFINE_IDA(ssdemu_ida);
static char add_result[SSDEMU_ERR_LEN];
static bool module_ready;
static int ssdemu_major;

/* Driver */

static void complete_request(struct request *rq)
{
	struct ssdemu *dev = rq->q->queuedata;

	if (dev->cfg.announced_depth) {
		atomic_dec(&dev->served);
		wake_up(&dev->turn);
	}
	blk_mq_end_request(rq, BLK_STS_OK);
}

/*
 * With announced_depth, as in the mmc driver, the next request waits in queue_rq() until the
 * device takes it, and any other one is refused meanwhile. Return false if it is.
 */
static bool may_wait(struct ssdemu *dev)
{
	return !dev->cfg.announced_depth || !test_and_set_bit(0, &dev->waiting);
}

/* Wait until the device takes another request. May sleep. */
static void wait_for_turn(struct ssdemu *dev)
{
	if (!dev->cfg.announced_depth)
		return;
	wait_event(dev->turn,
		   atomic_read(&dev->served) < dev->cfg.queue_depth);
	atomic_inc(&dev->served);
	clear_bit_unlock(0, &dev->waiting);
}

static blk_status_t queue_request(struct blk_mq_hw_ctx *hctx,
				  const struct blk_mq_queue_data *bd)
{
	struct ssdemu *dev = hctx->queue->queuedata;
	struct request *rq = bd->rq;
	struct ssdemu_cmd *cmd = blk_mq_rq_to_pdu(rq);

	if (READ_ONCE(dev->dead))
		return BLK_STS_IOERR;
	if (dev->cfg.memory_backed) {
		blk_status_t status = ssdemu_store_request(dev, rq);

		if (status != BLK_STS_OK)
			return status;
	}

	cmd->op = req_op(rq);
	cmd->offset = blk_rq_pos(rq) << SECTOR_SHIFT;
	cmd->bytes = blk_rq_bytes(rq);
	cmd->fua = rq->cmd_flags & REQ_FUA;
	if (!may_wait(dev))
		return BLK_STS_RESOURCE;
	blk_mq_start_request(rq);
	wait_for_turn(dev);
	ssdemu_run(dev, cmd);
	return BLK_STS_OK;
}

static const struct blk_mq_ops ssdemu_mq_ops = {
	.queue_rq = queue_request,
	.complete = complete_request,
};

static const struct block_device_operations ssdemu_fops = {
	.owner = THIS_MODULE,
};

/* Devices */

static int make_disk(struct ssdemu *dev)
{
	const struct ssdemu_config *cfg = &dev->cfg;
	const struct compat_disk_limits limits = {
		.logical_block = cfg->block_size,
		.physical_block = max(cfg->block_size,
				      min_t(u32, cfg->page_size, SZ_4K)),
		.io_min = cfg->page_size,
		.io_opt = dev->cluster_bytes,
		.max_sectors = cfg->max_request_kb * 2,
		.max_segments = cfg->max_request_kb / 4 + 1,
		.discard_granularity = max(dev->cluster_bytes, cfg->block_size),
		.max_discard_sectors = MAX_DISCARD_BYTES >> SECTOR_SHIFT,
		.write_cache = cfg->write_buffer_kb && !cfg->protected,
	};
	struct gendisk *disk;
	int err;

	dev->tag_set.ops = &ssdemu_mq_ops;
	dev->tag_set.nr_hw_queues = cfg->hw_queues;
	dev->tag_set.queue_depth = cfg->announced_depth ?: cfg->queue_depth;
	dev->tag_set.numa_node = NUMA_NO_NODE;
	dev->tag_set.cmd_size = sizeof(struct ssdemu_cmd);
	dev->tag_set.flags = compat_tag_set_flags();
	if (cfg->announced_depth)
		dev->tag_set.flags |= BLK_MQ_F_BLOCKING;
	err = blk_mq_alloc_tag_set(&dev->tag_set);
	if (err)
		return err;
	/* The block layer makes no more of them than there are CPUs. */
	dev->cfg.hw_queues = dev->tag_set.nr_hw_queues;

	disk = compat_alloc_disk(&dev->tag_set, &limits, dev);
	if (IS_ERR(disk)) {
		err = PTR_ERR(disk);
		goto free_tags;
	}
	disk->major = ssdemu_major;
	disk->first_minor = dev->id * DISK_MAX_PARTS;
	disk->minors = DISK_MAX_PARTS;
	disk->fops = &ssdemu_fops;
	disk->private_data = dev;
	snprintf(disk->disk_name, DISK_NAME_LEN, "ssdemu%d", dev->id);
	set_capacity(disk, dev->capacity >> SECTOR_SHIFT);
	dev->disk = disk;
	err = add_disk(disk);
	if (!err)
		return 0;
	put_disk(disk);
free_tags:
	blk_mq_free_tag_set(&dev->tag_set);
	return err;
}

static void free_device(struct ssdemu *dev)
{
	/* First, since an idle device may still be programming its buffer. */
	ssdemu_engine_exit(dev);
	ssdemu_store_exit(dev);
	ssdemu_buffer_exit(dev);
	dev->ftl->exit(dev);
	kvfree(dev->concat_plane);
	if (dev->id >= 0)
		ida_free(&ssdemu_ida, dev->id);
	kfree(dev);
}

/* Initialise a device with a resolved configuration, except for its disk. */
static int init_device(struct ssdemu *dev)
{
	int err;

	spin_lock_init(&dev->lock);
	spin_lock_init(&dev->store_lock);
	init_waitqueue_head(&dev->turn);
	xa_init_flags(&dev->store, XA_FLAGS_LOCK_IRQ);
	err = ssdemu_engine_init(dev);
	if (!err)
		err = dev->ftl->init(dev);
	if (!err)
		err = ssdemu_buffer_init(dev);
	if (err)
		return err;
	ssdemu_stats_reset(dev);

	dev->id = ida_alloc_max(&ssdemu_ida, (1 << MINORBITS) / DISK_MAX_PARTS - 1,
				GFP_KERNEL);
	return min(dev->id, 0);
}

/* Make a device from @text; set @result to its name or to an error message. */
static int add_device(char *text, char *result)
{
	struct ssdemu *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	int ret;

	if (!dev)
		return -ENOMEM;
	dev->id = -1;
	ret = ssdemu_config_parse(&dev->cfg, text, result);
	if (!ret)
		ret = ssdemu_config_resolve(dev, result);
	if (ret) {
		kfree(dev);
		return ret;
	}
	ret = init_device(dev);
	if (!ret)
		ret = make_disk(dev);
	if (ret) {
		free_device(dev);
		return ret;
	}
	ssdemu_debugfs_add(dev);
	list_add_tail(&dev->list, &ssdemu_devices);
	scnprintf(result, SSDEMU_ERR_LEN, "%s", dev->disk->disk_name);
	return 0;
}

static void remove_device(struct ssdemu *dev)
{
	list_del(&dev->list);
	debugfs_remove(dev->debugfs);
	WRITE_ONCE(dev->dead, true);
	blk_mark_disk_dead(dev->disk);
	del_gendisk(dev->disk);
	put_disk(dev->disk);
	blk_mq_free_tag_set(&dev->tag_set);
	WARN_ON(dev->inside);
	free_device(dev);
}

/* Module parameters */

static int add_set(const char *val, const struct kernel_param *kp)
{
	char *text;
	int err;

	if (!module_ready) {
		pr_err("load the module first, then add devices with scripts/ssdemu\n");
		return -EINVAL;
	}
	text = kstrdup(val, GFP_KERNEL);
	if (!text)
		return -ENOMEM;

	mutex_lock(&ssdemu_mutex);
	scnprintf(add_result, sizeof(add_result), "out of memory");
	err = add_device(text, add_result);
	if (err)
		pr_err("%s\n", add_result);
	mutex_unlock(&ssdemu_mutex);
	kfree(text);
	return err;
}

static int add_get(char *buffer, const struct kernel_param *kp)
{
	int len;

	mutex_lock(&ssdemu_mutex);
	len = sysfs_emit(buffer, "%s\n", add_result);
	mutex_unlock(&ssdemu_mutex);
	return len;
}

static int remove_set(const char *val, const struct kernel_param *kp)
{
	struct ssdemu *dev;
	int err = -ENODEV;

	mutex_lock(&ssdemu_mutex);
	list_for_each_entry(dev, &ssdemu_devices, list) {
		if (sysfs_streq(val, dev->disk->disk_name)) {
			remove_device(dev);
			err = 0;
			break;
		}
	}
	mutex_unlock(&ssdemu_mutex);
	return err;
}

static const struct kernel_param_ops add_ops = { .set = add_set, .get = add_get };
static const struct kernel_param_ops remove_ops = { .set = remove_set };

module_param_cb(add, &add_ops, NULL, 0600);
MODULE_PARM_DESC(add, "write key=value pairs to make a device; read its name or the error");
module_param_cb(remove, &remove_ops, NULL, 0200);
MODULE_PARM_DESC(remove, "write the name of a device to remove it");

static int __init ssdemu_init(void)
{
	ssdemu_major = register_blkdev(0, "ssdemu");
	if (ssdemu_major < 0)
		return ssdemu_major;
	ssdemu_debugfs_init();
	module_ready = true;
	return 0;
}

static void __exit ssdemu_exit(void)
{
	struct ssdemu *dev, *next;

	mutex_lock(&ssdemu_mutex);
	list_for_each_entry_safe(dev, next, &ssdemu_devices, list)
		remove_device(dev);
	mutex_unlock(&ssdemu_mutex);
	ssdemu_debugfs_exit();
	unregister_blkdev(ssdemu_major, "ssdemu");
}

module_init(ssdemu_init);
module_exit(ssdemu_exit);

MODULE_DESCRIPTION("Emulated SSD in virtual time");
MODULE_LICENSE("GPL");
