/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A block device for a unit test, in the test's hands: the first thing that a
 * test includes, the policy's source file being the second. So each test is a
 * module of its own with the whole elevator in it, nothing of which is visible
 * to others, and all of whose static functions are visible to the test.
 *
 * Real: the request queue, the hardware queue, the elevator's hash and trees,
 * all of merging. Fake: the requests (not from the tag set), the clock, running
 * the hardware queues (counted, not done), timers and work (done when the test
 * lets time pass or says so). Nothing happens but by a call of the test; nothing runs beside it.
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

/* Seed 0 stands for a random one, which is printed. */
static unsigned int seed;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "of the first random sequence, 0: a random one");
static unsigned int sequences = 10000;
module_param(sequences, uint, 0444);
MODULE_PARM_DESC(sequences, "number of random sequences, each with the next seed");

/*
 * The clock: nanoseconds. Jiffies begin close to their overflow, as the
 * kernel's do; there are a thousand a second, whatever HZ is.
 */
static u64 fake_ns;

static inline unsigned long fake_jiffies(void)
{
	return (unsigned long)-5000 + fake_ns / NSEC_PER_MSEC;
}

static inline ktime_t fake_ktime_get(void)
{
	return ns_to_ktime(fake_ns);
}

static inline u64 fake_ktime_get_ns(void)
{
	return fake_ns;
}

/* Running the hardware queues: how often it was asked for. */
static unsigned int fake_runs;

static inline void fake_run_hw_queues(struct request_queue *q, bool async)
{
	fake_runs++;
}

static inline void fake_run_hw_queue(struct blk_mq_hw_ctx *hctx, bool async)
{
	fake_runs++;
}

/* Marked to be run when the tag is freed, which is at once here. */
static inline void fake_mark_restart_hctx(struct blk_mq_hw_ctx *hctx)
{
	fake_runs++;
}

/* The core's timer, if it is armed; it runs out when jiffies reach its time. */
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

/*
 * One timer of a policy's that is set is enough. Works are in the order they were
 * asked for.
 */
static struct hrtimer *fake_timer;
static u64 fake_timer_ns;
static LIST_HEAD(fake_works);

static inline void fake_hrtimer_start(struct hrtimer *timer, ktime_t time,
				      const enum hrtimer_mode mode)
{
	WARN_ON(fake_timer && fake_timer != timer);
	fake_timer = timer;
	fake_timer_ns = ktime_to_ns(time);
	if (mode & HRTIMER_MODE_REL)
		fake_timer_ns += fake_ns;
}

static inline int fake_hrtimer_cancel(struct hrtimer *timer)
{
	bool was = fake_timer == timer;

	if (was)
		fake_timer = NULL;
	return was;
}

static inline bool fake_hrtimer_is_set(struct hrtimer *timer)
{
	return fake_timer == timer;
}

static inline ktime_t fake_hrtimer_expires(struct hrtimer *timer)
{
	return ns_to_ktime(fake_timer_ns);
}

static inline bool fake_schedule_work(struct work_struct *work)
{
	bool was = !list_empty(&work->entry);

	if (!was)
		list_add_tail(&work->entry, &fake_works);
	return !was;
}

static inline bool fake_queue_work(struct workqueue_struct *wq,
				   struct work_struct *work)
{
	return fake_schedule_work(work);
}

static inline bool fake_cancel_work(struct work_struct *work)
{
	bool was = !list_empty(&work->entry);

	list_del_init(&work->entry);
	return was;
}

static void fake_free_request(struct request *rq);

#undef schedule_work
#undef queue_work
#undef msecs_to_jiffies
#undef jiffies_to_usecs
#define jiffies				fake_jiffies()
#define msecs_to_jiffies(ms)		((unsigned long)(ms))
#define jiffies_to_usecs(j)		((unsigned int)((j) * USEC_PER_MSEC))
#define ktime_get			fake_ktime_get
#define ktime_get_ns			fake_ktime_get_ns
#define mod_timer			fake_mod_timer
#define timer_pending			fake_timer_pending
#define timer_delete_sync		fake_timer_delete
#define hrtimer_start			fake_hrtimer_start
#define hrtimer_cancel			fake_hrtimer_cancel
#define hrtimer_try_to_cancel		fake_hrtimer_cancel
#define hrtimer_is_queued		fake_hrtimer_is_set
#define hrtimer_active			fake_hrtimer_is_set
#define hrtimer_get_expires		fake_hrtimer_expires
#define schedule_work			fake_schedule_work
#define queue_work			fake_queue_work
#define cancel_work_sync		fake_cancel_work
#define blk_mq_run_hw_queues		fake_run_hw_queues
#define blk_mq_run_hw_queue		fake_run_hw_queue
#define blk_mq_sched_mark_restart_hctx	fake_mark_restart_hctx
#define blk_mq_free_request		fake_free_request
/* The scheduler's name may be taken by the scheduler itself. */
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
	struct fake_bio *bios;
	struct request *freed[8];	/* merged into others by the last call */
	unsigned int nr_freed;
	struct rnd_state rnd;
	u32 seed;			/* of the sequence under way */
} fake;

static blk_status_t fake_queue_rq(struct blk_mq_hw_ctx *hctx,
				  const struct blk_mq_queue_data *bd)
{
	return BLK_STS_IOERR;	/* nobody submits anything */
}

static const struct blk_mq_ops fake_mq_ops = {
	.queue_rq = fake_queue_rq,
};

static const struct block_device_operations fake_fops = {
	.owner = THIS_MODULE,
};

/* A suite's suite_init() and suite_exit(). */
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
	/* Nor does the block layer run the queue by itself, as when it freezes. */
	blk_mq_quiesce_queue(fake.q);
	return 0;
}

static void fake_suite_exit(struct kunit_suite *suite)
{
	if (!IS_ERR_OR_NULL(fake.disk)) {
		put_disk(fake.disk);
		blk_mq_free_tag_set(&fake.set);
	}
	kfree(fake.bios);
	kfree(fake.requests);
	memset(&fake, 0, sizeof(fake));
}

/*
 * Random sequences. The seed of the first, which is printed; each next one has
 * the next. A failure has to tell fake.seed.
 */
static inline u32 fake_first_seed(struct kunit *test)
{
	u32 first = seed ? seed : get_random_u32() | 1;

	kunit_info(test, "%u sequences, seed=%u", sequences, first);
	return first;
}

static inline void fake_sequence(u32 of_seed)
{
	fake.seed = of_seed;
	prandom_seed_state(&fake.rnd, of_seed);
}

#define FAKE_ASSERT(test, condition, fmt, ...)				\
	KUNIT_ASSERT_TRUE_MSG(test, condition, "seed %u (sequences=1): " fmt, \
			      fake.seed, ##__VA_ARGS__)

/* Random numbers of the sequence: 0 .. below - 1; true once in @of. */
static inline u32 fake_random(u32 below)
{
	return prandom_u32_state(&fake.rnd) % below;
}

static inline bool fake_once_in(u32 of)
{
	return !fake_random(of);
}

/* Put the scheduler on the device, of that capacity in sectors. */
static int fake_start(struct elevator_type *type, sector_t capacity)
{
	set_capacity(fake.disk, capacity);
	fake_ns = 0;
	fake_runs = 0;
	fake.nr_freed = 0;
	return compat_elevator_start(fake.q, type);
}

/* Take it off again: nothing may be queued or in flight. */
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

/* The block layer tells the elevator of requests that it has prepared only. */
static void fake_rq_finish(struct request *rq)
{
	if (rq->rq_flags & RQF_USE_SCHED)
		fake_ops()->finish_request(rq);
	rq->rq_flags &= ~RQF_USE_SCHED;
}

/* What the scheduler frees: a request that has become part of another. */
static void fake_free_request(struct request *rq)
{
	fake_rq_finish(rq);
	fake.freed[fake.nr_freed++] = rq;
	fake_rq_free(rq);
}

/*
 * A new request as a plug may have it that was filled for passthrough: the
 * elevator has not prepared it, and its fields are what another I/O left there.
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
	memset(&rq->hash, 0x5a, sizeof(rq->hash));
	memset(&rq->special_vec, 0x5a, sizeof(rq->special_vec));
	memset(&rq->elv, 0x5a, sizeof(rq->elv));
	return rq;
}

/* A new request as the block layer makes it, not yet inserted. */
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

/* Hand a request to the scheduler; fake.freed tells if it was merged. */
static void fake_insert_request(struct request *rq, bool at_head)
{
	LIST_HEAD(list);

	fake.nr_freed = 0;
	list_add_tail(&rq->queuelist, &list);
	fake_ops()->insert_requests(fake.hctx, &list,
				    compat_insert_flags(at_head));
}

static inline struct request *fake_insert(blk_opf_t opf, sector_t sector,
					  unsigned int sectors)
{
	struct request *rq = fake_alloc(opf, sector, sectors, 0);

	fake_insert_request(rq, false);
	return rq;
}

/* Offer a bio for merging; true if it was taken. */
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

/* The device has finished a request. */
static void fake_complete(struct request *rq)
{
	fake_rq_finish(rq);
	fake_rq_free(rq);
}

/* All that the device has is done. */
static inline void fake_complete_all(void)
{
	struct fake_request *fr;

	for (fr = fake.requests; fr < fake.requests + FAKE_REQUESTS; fr++)
		if (fr->used && fr->in_flight)
			fake_complete(&fr->rq);
}

/* Complete what is in flight, and all the rest, and take the scheduler off. */
static inline void fake_finish(void)
{
	do {
		fake_complete_all();
	} while (fake_dispatch());
	fake_stop();
}

/* The driver returns a request; insert it anew with fake_insert_request(). */
static inline void fake_requeue(struct request *rq)
{
	container_of(rq, struct fake_request, rq)->in_flight = false;
	if (rq->rq_flags & RQF_USE_SCHED)
		fake_ops()->requeue_request(rq);
}

/* When jiffies will be @when, in ns; not before now. */
static inline u64 fake_when(unsigned long when)
{
	long left = when - jiffies;

	if (left <= 0)
		return fake_ns;
	return (fake_ns / NSEC_PER_MSEC + left) * NSEC_PER_MSEC;
}

/* Let time pass; timers that are set go off in their time. */
static void fake_advance_ns(u64 ns)
{
	u64 until = fake_ns + ns, core, other;

	while (true) {
		core = fake_core_timer ? fake_when(fake_core_timer->expires) :
					 U64_MAX;
		other = fake_timer ? max(fake_ns, fake_timer_ns) : U64_MAX;
		if (min(core, other) > until)
			break;
		fake_ns = min(core, other);
		if (core <= other) {
			struct timer_list *timer = fake_core_timer;

			fake_core_timer = NULL;
			timer->function(timer);
		} else {
			struct hrtimer *timer = fake_timer;

			fake_timer = NULL;
			ACCESS_PRIVATE(timer, function)(timer);
		}
	}
	fake_ns = until;
}

static inline void fake_advance_ms(unsigned int ms)
{
	fake_advance_ns((u64)ms * NSEC_PER_MSEC);
}

static inline bool fake_has_works(void)
{
	return !list_empty(&fake_works);
}

/* Do all work that was asked for. */
static inline void fake_run_works(void)
{
	while (fake_has_works()) {
		struct work_struct *work;

		work = list_first_entry(&fake_works, struct work_struct, entry);
		list_del_init(&work->entry);
		work->func(work);
	}
}

/* What one of the scheduler's debugfs files says has to be @want. */
static inline void fake_expect_file(struct kunit *test,
				    int (*show)(void *, struct seq_file *),
				    const char *want)
{
	struct seq_file m = {
		.buf = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL),
		.size = PAGE_SIZE - 1,
	};

	KUNIT_ASSERT_NOT_NULL(test, m.buf);
	KUNIT_EXPECT_EQ(test, show(fake.q, &m), 0);
	KUNIT_EXPECT_STREQ(test, m.buf, want);
}

/* Write a tunable's file as a user would; what the write returns. */
static inline ssize_t fake_set(const struct elv_fs_entry *attrs,
			       const char *name, const char *value)
{
	for (; attrs->attr.name; attrs++)
		if (!strcmp(attrs->attr.name, name))
			return attrs->store(fake.q->elevator, value,
					    strlen(value));
	return -ENOENT;
}

#endif /* _FAKE_BLK_H */
