/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A block device under the control of a unit test. A test includes this file
 * first and the policy's source second. So each test is a module that contains
 * the whole elevator and can call all its static functions.
 *
 * Real: the request queue, the hardware queue, the elevator's hash and trees,
 * all of merging. Fake: the requests (not from the tag set), the clock, runs of
 * the hardware queues (only counted), timers and work (executed when the test
 * advances the clock or asks for it). Everything happens in calls of the test,
 * and nothing runs concurrently, so no function here needs a lock.
 *
 * The functions are static inline where not all tests use them.
 */
#ifndef _FAKE_BLK_H
#define _FAKE_BLK_H

#include <kunit/test.h>
#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/blktrace_api.h>
#include <linux/hrtimer.h>
#include <linux/ioprio.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <trace/events/block.h>

#include "compat-kunit.h"

static unsigned int seed;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "seed of the first random sequence (0: random, printed)");
static unsigned int sequences = 10000;
module_param(sequences, uint, 0444);
MODULE_PARM_DESC(sequences, "number of random sequences; each uses the next seed");

/*
 * The clock, in ns. Jiffies start shortly before their overflow, as the
 * kernel's do; one is a millisecond, independent of HZ.
 */
#define FAKE_FIRST_JIFFIES	((unsigned long)-5000)

static u64 fake_ns;

static inline unsigned long fake_jiffies(void)
{
	return FAKE_FIRST_JIFFIES + fake_ns / NSEC_PER_MSEC;
}

static inline u64 fake_ktime_get_ns(void)
{
	return fake_ns;
}

/* The work that executes the test, or NULL. */
static struct work_struct *fake_worker;

/* Number of times that a run of the hardware queues was requested. */
static unsigned int fake_runs;

static inline void fake_run_hw_queues(struct request_queue *q, bool async)
{
	fake_runs++;
}

/* A run that is not asynchronous follows an insertion: the test dispatches instead. */
static inline void fake_run_hw_queue(struct blk_mq_hw_ctx *hctx, bool async)
{
	fake_runs += async;
}

/* The block layer runs a marked queue when a tag is freed: here, at once. */
static inline void fake_mark_restart_hctx(struct blk_mq_hw_ctx *hctx)
{
	fake_runs++;
}

/* The core's timer if it is armed; it expires when jiffies reach its time. */
static struct timer_list *fake_core_timer;

static inline int fake_mod_timer(struct timer_list *timer, unsigned long expires)
{
	bool was = fake_core_timer == timer;

	WARN_ON(fake_core_timer && !was);
	fake_core_timer = timer;
	timer->expires = expires;
	return was;
}

static inline int fake_timer_pending(const struct timer_list *timer)
{
	return fake_core_timer == timer;
}

static inline int fake_timer_delete(struct timer_list *timer)
{
	bool was = fake_core_timer == timer;

	fake_core_timer = NULL;
	return was;
}

/* The hrtimers that are armed, the core's and one of the policy, and their expiry in ns. */
static struct {
	struct hrtimer *timer;
	u64 ns;
} fake_timers[2];

/* Scheduled work, in order, and what is due at the next call of fake_run_works(). */
static LIST_HEAD(fake_works);
static LIST_HEAD(fake_delayed_works);

/* Index of an hrtimer that is armed, -1 if it is not; NULL: of a free place. */
static inline int fake_timer_index(const struct hrtimer *timer)
{
	int i = ARRAY_SIZE(fake_timers);

	while (i-- && fake_timers[i].timer != timer)
		;
	return i;
}

static inline void fake_hrtimer_start(struct hrtimer *timer, ktime_t time,
				      const enum hrtimer_mode mode)
{
	int i = fake_timer_index(timer);

	if (i < 0)
		i = fake_timer_index(NULL);
	if (WARN_ON(i < 0))
		return;
	fake_timers[i].timer = timer;
	fake_timers[i].ns = ktime_to_ns(time) +
			    (mode & HRTIMER_MODE_REL ? fake_ns : 0);
}

static inline bool fake_hrtimer_is_set(const struct hrtimer *timer)
{
	return fake_timer_index(timer) >= 0;
}

static inline int fake_hrtimer_cancel(struct hrtimer *timer)
{
	int i = fake_timer_index(timer);

	if (i >= 0)
		fake_timers[i].timer = NULL;
	return i >= 0;
}

static inline ktime_t fake_hrtimer_expires(const struct hrtimer *timer)
{
	return ns_to_ktime(fake_timers[fake_timer_index(timer)].ns);
}

/* Return true if any hrtimer is armed. */
static inline bool fake_timer_set(void)
{
	return fake_timers[0].timer || fake_timers[1].timer;
}

/* The hrtimer that expires first, or NULL; @ns: its expiry, at least the present. */
static inline struct hrtimer *fake_first_timer(u64 *ns)
{
	struct hrtimer *first = NULL;
	unsigned int i;

	*ns = U64_MAX;
	for (i = 0; i < ARRAY_SIZE(fake_timers); i++)
		if (fake_timers[i].timer && fake_timers[i].ns < *ns) {
			first = fake_timers[i].timer;
			*ns = fake_timers[i].ns;
		}
	if (first)
		*ns = max(*ns, fake_ns);
	return first;
}

static inline bool fake_schedule_work(struct work_struct *work)
{
	bool was = !list_empty(&work->entry);

	if (!was)
		list_add_tail(&work->entry, &fake_works);
	return !was;
}

static inline bool fake_queue_delayed_work(struct workqueue_struct *wq,
					   struct delayed_work *work,
					   unsigned long delay)
{
	if (!delay)
		return fake_schedule_work(&work->work);
	if (!list_empty(&work->work.entry))
		return false;
	list_add_tail(&work->work.entry, &fake_delayed_works);
	return true;
}

static inline bool fake_cancel_work(struct work_struct *work)
{
	bool was = !list_empty(&work->entry);

	list_del_init(&work->entry);
	return was;
}

static inline bool fake_cancel_delayed_work(struct delayed_work *work)
{
	return fake_cancel_work(&work->work);
}

/* Call @fn for each request in use, whose tag is its index. */
static void fake_each_tag(sb_for_each_fn fn, void *data);

static void fake_free_request(struct request *rq);

/* What happens while the scheduler lets others have its lock, or NULL. */
static void (*fake_meanwhile)(void);

static inline void fake_cpu_relax(void)
{
	if (fake_meanwhile)
		fake_meanwhile();
}

#undef cpu_relax
#undef schedule_work
#undef msecs_to_jiffies
#undef jiffies_to_usecs
#define jiffies				fake_jiffies()
#define msecs_to_jiffies(ms)		((unsigned long)(ms))
#define jiffies_to_usecs(j)		((unsigned int)((j) * USEC_PER_MSEC))
#define ktime_get_ns			fake_ktime_get_ns
#define mod_timer			fake_mod_timer
#define timer_pending			fake_timer_pending
#define timer_delete_sync		fake_timer_delete
#define hrtimer_start			fake_hrtimer_start
#define hrtimer_cancel			fake_hrtimer_cancel
#define hrtimer_is_queued		fake_hrtimer_is_set
#define hrtimer_get_expires		fake_hrtimer_expires
#define cpu_relax			fake_cpu_relax
#define schedule_work			fake_schedule_work
#define queue_delayed_work		fake_queue_delayed_work
#define cancel_delayed_work		fake_cancel_delayed_work
#define cancel_work_sync		fake_cancel_work
#define current_work()			fake_worker
#define blk_mq_run_hw_queues		fake_run_hw_queues
#define blk_mq_run_hw_queue		fake_run_hw_queue
#define blk_mq_sched_mark_restart_hctx	fake_mark_restart_hctx
#define blk_mq_free_request		fake_free_request
#define sbitmap_for_each_set(bitmap, fn, data)	fake_each_tag(fn, data)
/* The name would be taken if the scheduler itself is in this kernel, too. */
#define elv_register(type)		0
#define elv_unregister(type)

#define FAKE_REQUESTS	64
#define FAKE_BIOS	512

struct fake_bio {
	struct bio bio;
	struct bio_vec vec;
	bool used;
};

struct fake_request {
	struct request rq;
	bool used;
	bool in_flight;
};

/* The only device; @hctx is its only hardware queue. */
static struct fake {
	struct blk_mq_tag_set set;
	struct gendisk *disk;
	struct request_queue *q;
	struct blk_mq_hw_ctx *hctx;
	struct fake_request *requests;
	struct blk_mq_tags tags;	/* the elevator's; only static_rqs */
	struct request *static_rqs[FAKE_REQUESTS];
	struct fake_bio *bios;
	struct request *freed[8];	/* freed by merging in the last call */
	unsigned int nr_freed;
	struct rnd_state rnd;
	u32 seed;			/* of the current sequence */
} fake;

static blk_status_t fake_queue_rq(struct blk_mq_hw_ctx *hctx,
				  const struct blk_mq_queue_data *bd)
{
	return BLK_STS_IOERR;	/* not called: no test submits I/O */
}

/* As those of SCSI; not called either. */
static int fake_get_budget(struct request_queue *q)
{
	return 0;
}

static void fake_put_budget(struct request_queue *q, int token)
{
}

static const struct blk_mq_ops fake_mq_ops = {
	.queue_rq = fake_queue_rq,
	.get_budget = fake_get_budget,
	.put_budget = fake_put_budget,
};

static const struct block_device_operations fake_fops = {
	.owner = THIS_MODULE,
};

/* Fill byte for fields that another user of the memory may have left behind. */
#define FAKE_POISON	0x5a

/* For the suite_init and suite_exit of a suite. */
static int fake_suite_init(struct kunit_suite *suite)
{
	struct queue_limits lim = {
		.max_hw_sectors = 2048,
		.max_segments = 64,
	};
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;
	int ret;

	fake.requests = kcalloc(FAKE_REQUESTS, sizeof(*fake.requests),
				GFP_KERNEL);
	fake.bios = kcalloc(FAKE_BIOS, sizeof(*fake.bios), GFP_KERNEL);
	if (!fake.requests || !fake.bios)
		return -ENOMEM;
	ret = blk_mq_alloc_sq_tag_set(&fake.set, &fake_mq_ops, FAKE_REQUESTS,
				      0);
	if (ret)
		return ret;
	fake.disk = blk_mq_alloc_disk(&fake.set, &lim, NULL);
	if (IS_ERR(fake.disk))
		return PTR_ERR(fake.disk);
	fake.disk->fops = &fake_fops;
	strscpy(fake.disk->disk_name, "fake", sizeof(fake.disk->disk_name));
	fake.q = fake.disk->queue;
	queue_for_each_hw_ctx(fake.q, hctx, i)
		fake.hctx = hctx;
	for (i = 0; i < FAKE_REQUESTS; i++)
		fake.static_rqs[i] = &fake.requests[i].rq;
	fake.tags.static_rqs = fake.static_rqs;
	fake.hctx->sched_tags = &fake.tags;
	/* Otherwise the block layer runs the queue when it freezes. */
	blk_mq_quiesce_queue(fake.q);
	return 0;
}

static void fake_suite_exit(struct kunit_suite *suite)
{
	if (!IS_ERR_OR_NULL(fake.disk)) {
		fake.hctx->sched_tags = NULL;
		put_disk(fake.disk);
		blk_mq_free_tag_set(&fake.set);
	}
	kfree(fake.bios);
	kfree(fake.requests);
	memset(&fake, 0, sizeof(fake));
}

/* Print and return the seed of the first random sequence. */
static inline u32 fake_first_seed(struct kunit *test)
{
	u32 first = seed ? seed : get_random_u32() | 1;

	kunit_info(test, "%u sequences, seed=%u", sequences, first);
	return first;
}

/* Start the random sequence of a seed. Failures must print fake.seed. */
static inline void fake_sequence(u32 of_seed)
{
	fake.seed = of_seed;
	prandom_seed_state(&fake.rnd, of_seed);
}

#define FAKE_ASSERT(test, condition, fmt, ...)				\
	KUNIT_ASSERT_TRUE_MSG(test, condition, "seed %u (sequences=1): " fmt, \
			      fake.seed, ##__VA_ARGS__)

/* Return a random number from 0 to @below - 1. */
static inline u32 fake_random(u32 below)
{
	return prandom_u32_state(&fake.rnd) % below;
}

/* Return true with probability 1 / @of. */
static inline bool fake_once_in(u32 of)
{
	return !fake_random(of);
}

/* Allocate zeroed memory until the end of the test case. */
static inline void *fake_zalloc(struct kunit *test, size_t size)
{
	void *memory = kunit_kzalloc(test, size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, memory);
	return memory;
}

/* Write to a tunable's file. Return what the write returns, or -ENOENT. */
static inline ssize_t fake_try_set(const char *name, const char *value)
{
	const struct elv_fs_entry *attr;

	for (attr = fake.q->elevator->type->elevator_attrs; attr->attr.name; attr++)
		if (!strcmp(attr->attr.name, name))
			return attr->store(fake.q->elevator, value,
					   strlen(value));
	return -ENOENT;
}

/**
 * fake_start() - start a scheduler on the device
 * @type: scheduler
 * @capacity: of the device, in sectors
 *
 * Sets the clock and fake_runs to zero, and the setting bypass: all requests are ordered.
 *
 * Return: 0, or what the elevator's init_sched() returned.
 */
static int fake_start(struct elevator_type *type, sector_t capacity)
{
	int ret;

	set_capacity(fake.disk, capacity);
	fake_ns = 0;
	fake_runs = 0;
	fake.nr_freed = 0;
	ret = compat_elevator_start(fake.q, type);
	if (ret)
		return ret;
	fake.hctx->sched_data = fake.q->elevator->elevator_data;
	fake_try_set("bypass", "0");
	return 0;
}

/* Stop the scheduler. No request may be queued or in flight. */
static void fake_stop(void)
{
	compat_elevator_stop(fake.q);
}

static inline struct elevator_mq_ops *fake_ops(void)
{
	return &fake.q->elevator->type->ops;
}

static struct bio *fake_bio_alloc(blk_opf_t opf, sector_t sector,
				  unsigned int sectors, unsigned short prio)
{
	struct fake_bio *fb = fake.bios;

	while (fb->used)
		fb++;
	fb->used = true;
	bvec_set_page(&fb->vec, ZERO_PAGE(0), sectors << SECTOR_SHIFT, 0);
	bio_init(&fb->bio, NULL, &fb->vec, 1, opf);
	fb->bio.bi_vcnt = 1;
	fb->bio.bi_iter.bi_sector = sector;
	fb->bio.bi_iter.bi_size = sectors << SECTOR_SHIFT;
	fb->bio.bi_ioprio = prio;
	return &fb->bio;
}

static void fake_each_tag(sb_for_each_fn fn, void *data)
{
	unsigned int tag;

	for (tag = 0; tag < FAKE_REQUESTS; tag++)
		if (fake.requests[tag].used && !fn(NULL, tag, data))
			break;
}

static void fake_bio_free(struct bio *bio)
{
	container_of(bio, struct fake_bio, bio)->used = false;
}

static void fake_rq_free(struct request *rq)
{
	struct bio *bio, *next;

	for (bio = rq->bio; bio; bio = next) {
		next = bio->bi_next;
		fake_bio_free(bio);
	}
	container_of(rq, struct fake_request, rq)->used = false;
}

/* Like the block layer, tell the elevator only of requests that it has prepared. */
static void fake_rq_finish(struct request *rq)
{
	if (rq->rq_flags & RQF_USE_SCHED)
		fake_ops()->finish_request(rq);
	rq->rq_flags &= ~RQF_USE_SCHED;
}

/* The scheduler frees a request that was merged into another one. */
static void fake_free_request(struct request *rq)
{
	fake_rq_finish(rq);
	fake.freed[fake.nr_freed++] = rq;
	fake_rq_free(rq);
}

/**
 * fake_alloc_unprepared() - allocate a request without preparing it
 * @opf: operation and flags
 * @sector: start
 * @sectors: size
 * @prio: I/O priority
 *
 * A plug filled for passthrough can have such requests. Their fields are
 * poisoned, as if another I/O had left something there.
 *
 * Return: a request that is not inserted, and has a driver tag: set that to
 * IOSCHED_NO_TAG if it matters. Tests never run out of requests.
 */
static struct request *fake_alloc_unprepared(blk_opf_t opf, sector_t sector,
					     unsigned int sectors,
					     unsigned short prio)
{
	struct fake_request *fr = fake.requests;
	struct request *rq;

	while (fr->used)
		fr++;
	memset(fr, 0, sizeof(*fr));
	fr->used = true;
	rq = &fr->rq;
	rq->q = fake.q;
	rq->mq_hctx = fake.hctx;
	rq->start_time_ns = fake_ns;
	rq->cmd_flags = opf;
	rq->rq_flags = RQF_SCHED_TAGS;
	rq->__sector = sector;
	rq->__data_len = sectors << SECTOR_SHIFT;
	rq->nr_phys_segments = 1;
	rq->bio = fake_bio_alloc(opf, sector, sectors, prio);
	rq->biotail = rq->bio;
	INIT_LIST_HEAD(&rq->queuelist);
	memset(&rq->hash, FAKE_POISON, sizeof(rq->hash));
	memset(&rq->special_vec, FAKE_POISON, sizeof(rq->special_vec));
	memset(&rq->elv, FAKE_POISON, sizeof(rq->elv));
	return rq;
}

/* Allocate a prepared request, as the block layer does; it is not inserted. */
static struct request *fake_alloc(blk_opf_t opf, sector_t sector,
				  unsigned int sectors, unsigned short prio)
{
	struct request *rq = fake_alloc_unprepared(opf, sector, sectors, prio);

	rq->rq_flags |= RQF_USE_SCHED;
	INIT_HLIST_NODE(&rq->hash);
	RB_CLEAR_NODE(&rq->rb_node);
	fake_ops()->prepare_request(rq);
	return rq;
}

/* Insert a request. It is in fake.freed if it was merged into another one. */
static void fake_insert_request(struct request *rq, bool at_head)
{
	LIST_HEAD(list);

	fake.nr_freed = 0;
	list_add_tail(&rq->queuelist, &list);
	fake_ops()->insert_requests(fake.hctx, &list,
				    compat_insert_flags(at_head));
}

/* Insert a new request of a priority, an IOPRIO_CLASS_* and a level. */
static inline struct request *fake_insert_prio(blk_opf_t opf, sector_t sector,
					       unsigned int sectors,
					       unsigned int class,
					       unsigned int level)
{
	struct request *rq = fake_alloc(opf, sector, sectors,
					IOPRIO_PRIO_VALUE(class, level));

	fake_insert_request(rq, false);
	return rq;
}

static inline struct request *fake_insert(blk_opf_t opf, sector_t sector,
					  unsigned int sectors)
{
	return fake_insert_prio(opf, sector, sectors, IOPRIO_CLASS_NONE, 0);
}

static inline struct request *fake_insert_head(blk_opf_t opf, sector_t sector,
					       unsigned int sectors)
{
	struct request *rq = fake_alloc(opf, sector, sectors, 0);

	fake_insert_request(rq, true);
	return rq;
}

/* Offer a bio for merging. Return true if the elevator merged it. */
static bool fake_merge_bio(blk_opf_t opf, sector_t sector,
			   unsigned int sectors, unsigned short prio)
{
	struct bio *bio = fake_bio_alloc(opf, sector, sectors, prio);
	bool taken;

	fake.nr_freed = 0;
	taken = fake_ops()->bio_merge(fake.q, bio, 1);
	if (!taken)
		fake_bio_free(bio);
	return taken;
}

static struct request *fake_dispatch(void)
{
	struct request *rq = fake_ops()->dispatch_request(fake.hctx);

	if (rq)
		container_of(rq, struct fake_request, rq)->in_flight = true;
	return rq;
}

static inline bool fake_has_work(void)
{
	return fake_ops()->has_work(fake.hctx);
}

/* Dispatch the next request and expect it at @sector. It stays in flight. */
static inline struct request *fake_expect(struct kunit *test, sector_t sector)
{
	struct request *rq = fake_dispatch();

	KUNIT_ASSERT_NOT_NULL_MSG(test, rq, "no request, expected sector %llu",
				  (u64)sector);
	KUNIT_EXPECT_EQ(test, (u64)blk_rq_pos(rq), (u64)sector);
	return rq;
}

/* Expect that the elevator dispatches nothing now, and knows it. */
static inline void fake_expect_none(struct kunit *test)
{
	KUNIT_EXPECT_NULL(test, fake_dispatch());
	KUNIT_EXPECT_FALSE(test, fake_has_work());
}

static void fake_complete(struct request *rq)
{
	fake_rq_finish(rq);
	if (rq->end_io)
		compat_end_io(rq);
	fake_rq_free(rq);
}

/* Complete all requests in flight. */
static inline void fake_complete_all(void)
{
	struct fake_request *fr;

	for (fr = fake.requests; fr < fake.requests + FAKE_REQUESTS; fr++)
		if (fr->used && fr->in_flight)
			fake_complete(&fr->rq);
}

/* Dispatch and complete all requests, then stop the scheduler. */
static inline void fake_finish(void)
{
	do {
		fake_complete_all();
	} while (fake_dispatch());
	fake_stop();
}

/* The driver returns a request. Insert it again with fake_insert_request(). */
static inline void fake_requeue(struct request *rq)
{
	container_of(rq, struct fake_request, rq)->in_flight = false;
	if (rq->rq_flags & RQF_USE_SCHED)
		fake_ops()->requeue_request(rq);
}

/* Return the time, in ns, at which jiffies reach @when; at least the present. */
static inline u64 fake_when(unsigned long when)
{
	long left = when - jiffies;

	if (left <= 0)
		return fake_ns;
	return (fake_ns / NSEC_PER_MSEC + left) * NSEC_PER_MSEC;
}

/* Advance the clock; armed timers expire at their time. */
static void fake_advance_ns(u64 ns)
{
	u64 until = fake_ns + ns, core, other;

	while (true) {
		struct hrtimer *hrtimer = fake_first_timer(&other);

		core = fake_core_timer ? fake_when(fake_core_timer->expires) :
					 U64_MAX;
		if (min(core, other) > until)
			break;
		fake_ns = min(core, other);
		if (core <= other) {
			struct timer_list *timer = fake_core_timer;

			fake_core_timer = NULL;
			timer->function(timer);
		} else {
			fake_hrtimer_cancel(hrtimer);
			ACCESS_PRIVATE(hrtimer, function)(hrtimer);
		}
	}
	fake_ns = until;
}

static inline void fake_advance_us(unsigned int us)
{
	fake_advance_ns((u64)us * NSEC_PER_USEC);
}

static inline void fake_advance_ms(unsigned int ms)
{
	fake_advance_ns((u64)ms * NSEC_PER_MSEC);
}

static inline bool fake_has_works(void)
{
	return !list_empty(&fake_works);
}

/* Execute all scheduled work; what that delays is left for the next call. */
static inline void fake_run_works(void)
{
	list_splice_tail_init(&fake_delayed_works, &fake_works);
	while (fake_has_works()) {
		struct work_struct *work;

		work = list_first_entry(&fake_works, struct work_struct, entry);
		list_del_init(&work->entry);
		work->func(work);
	}
}

/* Return the text of one of the scheduler's debugfs files. */
static inline const char *fake_read_file(struct kunit *test,
					 int (*show)(void *, struct seq_file *))
{
	struct seq_file m = {
		.buf = fake_zalloc(test, PAGE_SIZE),
		.size = PAGE_SIZE - 1,
	};

	KUNIT_EXPECT_EQ(test, show(fake.q, &m), 0);
	return m.buf;
}

/* The same of one that is read row by row. */
static inline const char *fake_read_rows(struct kunit *test,
					 const struct seq_operations *ops)
{
	struct seq_file m = {
		.buf = fake_zalloc(test, PAGE_SIZE),
		.size = PAGE_SIZE - 1,
		.private = fake.q,
	};
	loff_t pos = 0;
	void *row = ops->start(&m, &pos);

	while (row) {
		loff_t again = pos;

		KUNIT_EXPECT_EQ(test, ops->show(&m, row), 0);
		/* The lock is released where a page ends. */
		ops->stop(&m, row);
		KUNIT_EXPECT_PTR_EQ(test, ops->start(&m, &again), row);
		row = ops->next(&m, row, &pos);
	}
	ops->stop(&m, row);
	return m.buf;
}

static inline void fake_expect_file(struct kunit *test,
				    int (*show)(void *, struct seq_file *),
				    const char *want)
{
	KUNIT_EXPECT_STREQ(test, fake_read_file(test, show), want);
}

/* Write a valid value to a tunable's file. */
static inline void fake_set(struct kunit *test, const char *name,
			    const char *value)
{
	KUNIT_ASSERT_EQ(test, fake_try_set(name, value), (ssize_t)strlen(value));
}

#endif /* _FAKE_BLK_H */
