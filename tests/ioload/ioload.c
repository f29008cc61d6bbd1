// SPDX-License-Identifier: GPL-2.0
/*
 * ioload: direct I/O on a block device from kernel threads.
 *
 * In a simulated guest (scripts/lab --simulate) a system call costs a hundred
 * times as much of the host's time as what it does in the kernel. This module
 * does there what fio does elsewhere: the same jobs (tests/bench/guest/load.py
 * reads fio's files), through the same functions of the block device's file as
 * libaio (depth above 1, or not sync) and pread() or pwrite() (sync).
 *
 * In /sys/kernel/debug/ioload/:
 *
 *	device		path of the block device
 *	thread		a write adds a thread, key=value; see ioload_tokens
 *	steps		a write appends struct ioload_step to the last thread, which
 *			then replays its steps, one I/O at a time, and nothing else
 *	run		1 starts all threads together, 0 ends and removes them
 *	working		number of threads that have not replayed all of their steps
 *	measure		1 clears the log and starts logging, 0 stops it
 *	log		struct ioload_record of each I/O that completed meanwhile
 *
 * The latency of an I/O counts from the moment at which its thread has a place
 * for it: also if the thread first has to wait for a tag of the device, in the
 * submission of this I/O or of another one. So the mean of a thread without
 * pauses, rate or flushes is its depth divided by its throughput, wherever the
 * requests wait. The latency of a step counts from its submission.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/bvec.h>
#include <linux/debugfs.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/parser.h>
#include <linux/prandom.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

/* I/Os that the log holds; 64 MB. What is measured ought to have fewer. */
#define LOG_RECORDS	BIT(22)
#define MAX_BLOCK	SZ_1M
#define MAX_DEPTH	65536
#define MAX_PAUSE_US	(3600ULL * USEC_PER_SEC)
#define MAX_STEPS	BIT(24)
#define MAX_LINE	512

/* In ioload_record.ns: the I/O is a write; the number of its thread. */
#define RECORD_WRITE	BIT_ULL(63)
#define RECORD_THREAD	48
#define MAX_THREADS	BIT(15)

/**
 * struct ioload_record - an entry of the log, in the byte order of the CPU
 * @at: completion, ns of the monotonic clock
 * @ns: latency, with RECORD_WRITE and, from bit RECORD_THREAD on, the number of
 *	the thread: 0 for the first that was added
 */
struct ioload_record {
	u64 at;
	u64 ns;
};

/**
 * struct ioload_step - an I/O of a recorded trace
 * @at_us: time after the start of the threads
 * @offset: first byte on the device
 * @bytes: at most ioload_settings.block
 * @write: direction
 */
struct ioload_step {
	u64 at_us;
	u64 offset;
	u32 bytes;
	u32 write;
};

enum ioload_order { ORDER_SEQUENTIAL, ORDER_RANDOM };

/**
 * struct ioload_settings - what a thread does
 * @order: sequential for each direction, or uniformly random blocks
 * @reads: percent of the I/Os that are reads, each drawn independently
 * @block: bytes of an I/O
 * @depth: I/Os outstanding
 * @batch: I/Os that are submitted in one plug, once as many fit the depth
 * @offset: first byte of the thread's part of the device
 * @size: bytes of that part, a multiple of @block
 * @think_us: pause after each batch; begins when the batch has completed
 * @delay_us: before the first I/O
 * @rate: of the I/Os of each direction, in 1/s, if @sync; 0: no limit. A thread
 *	  that has fallen behind catches up, as fio does.
 * @flush: the device's cache is flushed after so many writes, if @sync; 0: never
 * @wake_ns: time from the end of a wait for completions to the next submission,
 *	     which does not count as latency
 * @sync: the thread waits in each I/O (depth 1)
 * @dsync: the file is open with O_DSYNC
 * @logged: the thread's I/Os enter the log
 * @seed: of the random numbers
 */
struct ioload_settings {
	enum ioload_order order;
	u32 reads;
	u32 block;
	u32 depth;
	u32 batch;
	u64 offset;
	u64 size;
	u64 think_us;
	u64 delay_us;
	u32 rate;
	u32 flush;
	u64 wake_ns;
	u32 sync;
	u32 dsync;
	u32 logged;
	u64 seed;
};

struct ioload_thread;

/**
 * struct ioload_io - a place for an outstanding I/O
 * @iocb: of the file
 * @free: entry of the thread's list of free places
 * @thread: its owner
 * @vecs: pages of the I/O
 * @begun: since when the thread has the place for an I/O, ns of the monotonic
 *	   clock
 * @bytes: of the I/O
 * @write: direction
 */
struct ioload_io {
	struct kiocb iocb;
	struct list_head free;
	struct ioload_thread *thread;
	struct bio_vec *vecs;
	u64 begun;
	u32 bytes;
	bool write;
};

/**
 * struct ioload_thread - a thread and its I/Os
 * @entry: in ioload_threads
 * @number: in the order of their addition
 * @set: settings
 * @task: the thread, %NULL before the start
 * @file: the device
 * @random: state of the random numbers
 * @next: offset of the next sequential I/O within the part, by direction
 * @made: number of I/Os, by direction
 * @steps: I/Os to replay, @nr_steps of them
 * @nr_steps: 0: the thread makes I/Os by its settings
 * @ios: @set.depth places
 * @completed: woken by completions; its lock protects the members below
 * @free: places without an outstanding I/O, the longest free first
 * @in_flight: I/Os that have not completed
 */
struct ioload_thread {
	struct list_head entry;
	unsigned int number;
	struct ioload_settings set;
	struct task_struct *task;
	struct file *file;
	struct rnd_state random;
	u64 next[2];
	u64 made[2];
	struct ioload_step *steps;
	unsigned int nr_steps;
	struct ioload_io *ios;
	wait_queue_head_t completed;
	struct list_head free;
	unsigned int in_flight;
};

/* Protects all below but the log's entries, and serialises the files. */
static DEFINE_MUTEX(ioload_mutex);
static LIST_HEAD(ioload_threads);
static char ioload_device[MAX_LINE];
static bool ioload_running;
static bool ioload_stopping;
static u64 ioload_started_ns;
static atomic_t ioload_working;
static struct dentry *ioload_root;

/* Completions append to the log in any context. */
static struct ioload_record *ioload_log;
static atomic_t ioload_logged;
static bool ioload_measuring;
static atomic_t ioload_errors;

/* I/O */

static void ioload_record(struct ioload_io *io, u64 now)
{
	/* An I/O may complete before the time that a process would need for it. */
	u64 taken = now > io->begun ? now - io->begun : 0;
	u64 number = io->thread->number;
	unsigned int place;

	if (!READ_ONCE(ioload_measuring) || !io->thread->set.logged)
		return;
	place = atomic_fetch_inc(&ioload_logged);
	if (place < LOG_RECORDS)
		ioload_log[place] = (struct ioload_record){
			.at = now,
			.ns = min(taken, BIT_ULL(RECORD_THREAD) - 1) |
			      number << RECORD_THREAD |
			      (io->write ? RECORD_WRITE : 0),
		};
}

static bool ioload_may_submit(const struct ioload_thread *thread)
{
	const struct ioload_settings *set = &thread->set;
	unsigned int in_flight = READ_ONCE(thread->in_flight);

	return set->think_us ? !in_flight : in_flight + set->batch <= set->depth;
}

static void ioload_end(struct ioload_io *io, long result)
{
	struct ioload_thread *thread = io->thread;
	u64 now = ktime_get_ns();
	unsigned long flags;

	if (result != io->bytes && !atomic_fetch_inc(&ioload_errors))
		pr_err("I/O at %lld returns %ld\n", io->iocb.ki_pos, result);
	ioload_record(io, now);
	io->begun = now + thread->set.wake_ns;
	spin_lock_irqsave(&thread->completed.lock, flags);
	list_add_tail(&io->free, &thread->free);
	WRITE_ONCE(thread->in_flight, thread->in_flight - 1);
	if (!thread->in_flight || ioload_may_submit(thread))
		wake_up_locked(&thread->completed);
	spin_unlock_irqrestore(&thread->completed.lock, flags);
}

static void ioload_complete(struct kiocb *iocb, long result)
{
	ioload_end(container_of(iocb, struct ioload_io, iocb), result);
}

/* Return a random number below @below. */
static u32 ioload_draw(struct ioload_thread *thread, u32 below)
{
	return mul_u32_u32(prandom_u32_state(&thread->random), below) >> 32;
}

/* Return the offset of the next I/O on the device. */
static loff_t ioload_place(struct ioload_thread *thread, bool write)
{
	const struct ioload_settings *set = &thread->set;
	u64 at;

	if (set->order == ORDER_RANDOM) {
		u32 blocks = div_u64(set->size, set->block);

		return set->offset + (u64)ioload_draw(thread, blocks) * set->block;
	}
	at = thread->next[write];
	thread->next[write] = at + set->block < set->size ? at + set->block : 0;
	return set->offset + at;
}

static void ioload_submit(struct ioload_io *io, bool write, loff_t offset,
			  u32 bytes)
{
	struct ioload_thread *thread = io->thread;
	struct iov_iter iter;
	ssize_t result;

	io->write = write;
	io->bytes = bytes;
	init_sync_kiocb(&io->iocb, thread->file);
	io->iocb.ki_pos = offset;
	if (!thread->set.sync)
		io->iocb.ki_complete = ioload_complete;
	iov_iter_bvec(&iter, write ? ITER_SOURCE : ITER_DEST, io->vecs,
		      DIV_ROUND_UP(bytes, PAGE_SIZE), bytes);
	if (write)
		result = vfs_iocb_iter_write(thread->file, &io->iocb, &iter);
	else
		result = vfs_iocb_iter_read(thread->file, &io->iocb, &iter);
	if (result != -EIOCBQUEUED)
		ioload_end(io, result);
}

/* Take a place for one more I/O; the caller knows that there is one. */
static struct ioload_io *ioload_take(struct ioload_thread *thread)
{
	struct ioload_io *io;

	spin_lock_irq(&thread->completed.lock);
	io = list_first_entry(&thread->free, struct ioload_io, free);
	list_del(&io->free);
	WRITE_ONCE(thread->in_flight, thread->in_flight + 1);
	spin_unlock_irq(&thread->completed.lock);
	return io;
}

/* No I/O is in flight, and the thread has something to do from now on. */
static void ioload_begin(struct ioload_thread *thread)
{
	u64 now = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < thread->set.depth; i++)
		thread->ios[i].begun = now;
}

static void ioload_sleep(u64 ns)
{
	ktime_t pause = ns_to_ktime(ns);

	if (!ns)
		return;
	set_current_state(TASK_IDLE);
	if (READ_ONCE(ioload_stopping))
		__set_current_state(TASK_RUNNING);
	else
		schedule_hrtimeout(&pause, HRTIMER_MODE_REL);
}

/* Wait until the thread may submit, or all are to stop. */
static void ioload_wait(struct ioload_thread *thread)
{
	const struct ioload_settings *set = &thread->set;

	if (!set->sync && ioload_may_submit(thread))
		return;
	wait_event_idle(thread->completed, ioload_may_submit(thread) ||
			READ_ONCE(ioload_stopping));
	if (READ_ONCE(ioload_stopping))
		return;
	ioload_sleep(set->think_us * NSEC_PER_USEC + set->wake_ns);
	if (set->think_us || set->flush)
		ioload_begin(thread);
}

/* Return when a thread with a rate may make its next I/O of a direction. */
static u64 ioload_due(const struct ioload_thread *thread, bool write)
{
	return ioload_started_ns + thread->set.delay_us * NSEC_PER_USEC +
	       div_u64(thread->made[write] * NSEC_PER_SEC, thread->set.rate);
}

/*
 * Wait until a thread with a rate may make an I/O. If that of the @wanted
 * direction is not due, it is of the other one if that is due earlier and the
 * thread has both. Return the direction.
 */
static bool ioload_pace(struct ioload_thread *thread, bool wanted)
{
	const struct ioload_settings *set = &thread->set;
	u64 now = ktime_get_ns(), due = ioload_due(thread, wanted);

	if (due > now && set->reads && set->reads < 100 &&
	    ioload_due(thread, !wanted) < due) {
		wanted = !wanted;
		due = ioload_due(thread, wanted);
	}
	if (due > now) {
		ioload_sleep(due - now);
		ioload_begin(thread);
	}
	return wanted;
}

/* Flush the device's cache if this is due after a write. */
static void ioload_flush(struct ioload_thread *thread)
{
	u32 rest;

	div_u64_rem(thread->made[1], thread->set.flush, &rest);
	if (rest)
		return;
	if (vfs_fsync(thread->file, 0) && !atomic_fetch_inc(&ioload_errors))
		pr_err("a flush fails\n");
}

/* Make I/Os by the settings until all are to stop. */
static void ioload_generate(struct ioload_thread *thread)
{
	const struct ioload_settings *set = &thread->set;
	struct blk_plug plug;
	unsigned int i;

	while (!READ_ONCE(ioload_stopping)) {
		if (set->batch > 1)
			blk_start_plug(&plug);
		for (i = 0; i < set->batch; i++) {
			bool write = ioload_draw(thread, 100) >= set->reads;

			if (set->rate)
				write = ioload_pace(thread, write);
			if (READ_ONCE(ioload_stopping))
				break;
			thread->made[write]++;
			ioload_submit(ioload_take(thread), write,
				      ioload_place(thread, write), set->block);
			if (write && set->flush)
				ioload_flush(thread);
		}
		if (set->batch > 1)
			blk_finish_plug(&plug);
		ioload_wait(thread);
		cond_resched();
	}
}

/* Make each I/O of the steps at its time, or after the one before. */
static void ioload_replay(struct ioload_thread *thread)
{
	unsigned int i;

	for (i = 0; i < thread->nr_steps && !READ_ONCE(ioload_stopping); i++) {
		const struct ioload_step *step = &thread->steps[i];
		u64 at = ioload_started_ns + step->at_us * NSEC_PER_USEC;
		u64 ready = ktime_get_ns() + thread->set.wake_ns;

		ioload_sleep(thread->set.wake_ns + (at > ready ? at - ready : 0));
		ioload_begin(thread);
		ioload_submit(ioload_take(thread), step->write, step->offset,
			      step->bytes);
	}
	atomic_dec(&ioload_working);
}

static int ioload_work(void *data)
{
	struct ioload_thread *thread = data;

	ioload_sleep(thread->set.delay_us * NSEC_PER_USEC);
	ioload_begin(thread);
	if (thread->nr_steps)
		ioload_replay(thread);
	else
		ioload_generate(thread);
	wait_event_idle(thread->completed, kthread_should_stop() &&
			!READ_ONCE(thread->in_flight));
	/* The last completion may still hold the lock; the thread is freed next. */
	spin_lock_irq(&thread->completed.lock);
	spin_unlock_irq(&thread->completed.lock);
	return 0;
}

/* Threads */

static void ioload_free_ios(struct ioload_thread *thread)
{
	unsigned int pages = DIV_ROUND_UP(thread->set.block, PAGE_SIZE), i, page;

	for (i = 0; thread->ios && i < thread->set.depth; i++) {
		struct bio_vec *vecs = thread->ios[i].vecs;

		for (page = 0; vecs && page < pages && vecs[page].bv_page; page++)
			__free_page(vecs[page].bv_page);
		kfree(vecs);
	}
	kvfree(thread->ios);
}

/* As in a program's buffers, pages that follow each other need not be adjacent. */
static int ioload_make_vecs(struct ioload_io *io, u32 block)
{
	unsigned int pages = DIV_ROUND_UP(block, PAGE_SIZE), i;

	io->vecs = kcalloc(pages, sizeof(*io->vecs), GFP_KERNEL);
	if (!io->vecs)
		return -ENOMEM;
	for (i = 0; i < pages; i++) {
		struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);

		if (!page)
			return -ENOMEM;
		io->vecs[i] = (struct bio_vec){
			.bv_page = page,
			.bv_len = min_t(u32, block - i * PAGE_SIZE, PAGE_SIZE),
		};
	}
	return 0;
}

static int ioload_make_ios(struct ioload_thread *thread)
{
	u32 i = thread->set.depth;
	int ret = 0;

	thread->ios = kvcalloc(i, sizeof(*thread->ios), GFP_KERNEL);
	if (!thread->ios)
		return -ENOMEM;
	while (!ret && i--) {
		thread->ios[i].thread = thread;
		ret = ioload_make_vecs(&thread->ios[i], thread->set.block);
		list_add(&thread->ios[i].free, &thread->free);
	}
	return ret;
}

/* End a thread that may have been started, and free it. */
static void ioload_remove(struct ioload_thread *thread)
{
	if (thread->task)
		kthread_stop(thread->task);
	if (!IS_ERR_OR_NULL(thread->file))
		fput(thread->file);
	list_del(&thread->entry);
	ioload_free_ios(thread);
	kvfree(thread->steps);
	kfree(thread);
}

static int ioload_prepare(struct ioload_thread *thread)
{
	int flags = O_RDWR | O_DIRECT | O_LARGEFILE |
		    (thread->set.dsync ? O_DSYNC : 0);
	struct task_struct *task;

	thread->file = filp_open(ioload_device, flags, 0);
	if (IS_ERR(thread->file))
		return PTR_ERR(thread->file);
	if (!S_ISBLK(file_inode(thread->file)->i_mode))
		return -ENOTBLK;
	task = kthread_create(ioload_work, thread, "ioload");
	if (IS_ERR(task))
		return PTR_ERR(task);
	thread->task = task;
	if (thread->nr_steps)
		atomic_inc(&ioload_working);
	return 0;
}

static void ioload_stop(void)
{
	struct ioload_thread *thread, *next;

	lockdep_assert_held(&ioload_mutex);
	/*
	 * All threads stop submitting before one is waited for: the I/O of that
	 * one may complete only after those of the others.
	 */
	WRITE_ONCE(ioload_stopping, true);
	list_for_each_entry(thread, &ioload_threads, entry)
		wake_up(&thread->completed);
	list_for_each_entry_safe(thread, next, &ioload_threads, entry)
		ioload_remove(thread);
	WRITE_ONCE(ioload_stopping, false);
	ioload_running = false;
}

static int ioload_start(void)
{
	struct ioload_thread *thread;
	int ret = 0;

	lockdep_assert_held(&ioload_mutex);
	if (ioload_running || list_empty(&ioload_threads))
		return -EINVAL;
	atomic_set(&ioload_errors, 0);
	atomic_set(&ioload_working, 0);
	list_for_each_entry(thread, &ioload_threads, entry) {
		ret = ioload_prepare(thread);
		if (ret) {
			ioload_stop();
			return ret;
		}
	}
	ioload_running = true;
	ioload_started_ns = ktime_get_ns();
	list_for_each_entry(thread, &ioload_threads, entry)
		wake_up_process(thread->task);
	return 0;
}

/* Settings */

enum {
	TOKEN_ORDER, TOKEN_READS, TOKEN_BLOCK, TOKEN_DEPTH, TOKEN_BATCH,
	TOKEN_OFFSET, TOKEN_SIZE, TOKEN_THINK_US, TOKEN_DELAY_US, TOKEN_RATE,
	TOKEN_FLUSH, TOKEN_WAKE_NS, TOKEN_SYNC, TOKEN_DSYNC, TOKEN_LOGGED, TOKEN_SEED,
	TOKEN_UNKNOWN
};

static const match_table_t ioload_tokens = {
	{ TOKEN_ORDER, "random=%u" },
	{ TOKEN_READS, "reads=%u" },
	{ TOKEN_BLOCK, "block=%u" },
	{ TOKEN_DEPTH, "depth=%u" },
	{ TOKEN_BATCH, "batch=%u" },
	{ TOKEN_OFFSET, "offset=%u" },
	{ TOKEN_SIZE, "size=%u" },
	{ TOKEN_THINK_US, "think_us=%u" },
	{ TOKEN_DELAY_US, "delay_us=%u" },
	{ TOKEN_RATE, "rate=%u" },
	{ TOKEN_FLUSH, "flush=%u" },
	{ TOKEN_WAKE_NS, "wake_ns=%u" },
	{ TOKEN_SYNC, "sync=%u" },
	{ TOKEN_DSYNC, "dsync=%u" },
	{ TOKEN_LOGGED, "logged=%u" },
	{ TOKEN_SEED, "seed=%u" },
	{ TOKEN_UNKNOWN, NULL }
};

static int ioload_set(struct ioload_settings *set, int token, u64 value)
{
	switch (token) {
	case TOKEN_ORDER:
		set->order = value ? ORDER_RANDOM : ORDER_SEQUENTIAL;
		return 0;
	case TOKEN_OFFSET:
		set->offset = value;
		return 0;
	case TOKEN_SIZE:
		set->size = value;
		return 0;
	case TOKEN_THINK_US:
		set->think_us = value;
		return 0;
	case TOKEN_DELAY_US:
		set->delay_us = value;
		return 0;
	case TOKEN_WAKE_NS:
		set->wake_ns = value;
		return 0;
	case TOKEN_SEED:
		set->seed = value;
		return 0;
	}
	if (value > U32_MAX)
		return -EINVAL;
	switch (token) {
	case TOKEN_READS:
		set->reads = value;
		return 0;
	case TOKEN_BLOCK:
		set->block = value;
		return 0;
	case TOKEN_DEPTH:
		set->depth = value;
		return 0;
	case TOKEN_BATCH:
		set->batch = value;
		return 0;
	case TOKEN_RATE:
		set->rate = value;
		return 0;
	case TOKEN_FLUSH:
		set->flush = value;
		return 0;
	case TOKEN_SYNC:
		set->sync = value;
		return 0;
	case TOKEN_DSYNC:
		set->dsync = value;
		return 0;
	case TOKEN_LOGGED:
		set->logged = value;
		return 0;
	default:
		return -EINVAL;
	}
}

static bool ioload_valid(const struct ioload_settings *set)
{
	return set->block && set->block <= MAX_BLOCK && !(set->block & 511) &&
	       set->depth && set->depth <= MAX_DEPTH &&
	       set->batch && set->batch <= set->depth &&
	       (set->sync ? set->depth == 1 : !set->rate && !set->flush) &&
	       set->reads <= 100 && !(set->offset & 511) &&
	       set->think_us <= MAX_PAUSE_US &&
	       set->delay_us <= MAX_PAUSE_US &&
	       set->wake_ns <= MAX_PAUSE_US * NSEC_PER_USEC &&
	       set->size >= set->block &&
	       div_u64(set->size, set->block) <= U32_MAX;
}

static int ioload_parse(struct ioload_settings *set, char *line)
{
	substring_t args[MAX_OPT_ARGS];
	char *word;

	while ((word = strsep(&line, "\n "))) {
		int token, ret;
		u64 value;

		if (!*word)
			continue;
		token = match_token(word, ioload_tokens, args);
		if (token == TOKEN_UNKNOWN || match_u64(&args[0], &value))
			return -EINVAL;
		ret = ioload_set(set, token, value);
		if (ret)
			return ret;
	}
	if (!ioload_valid(set))
		return -EINVAL;
	set->size = (u64)set->block * div_u64(set->size, set->block);
	return 0;
}

static int ioload_add(char *line)
{
	struct ioload_thread *thread;
	size_t number = 0;
	int ret;

	lockdep_assert_held(&ioload_mutex);
	if (ioload_running)
		return -EBUSY;
	list_for_each_entry(thread, &ioload_threads, entry)
		number++;
	if (number >= MAX_THREADS)
		return -ENOSPC;
	thread = kzalloc(sizeof(*thread), GFP_KERNEL);
	if (!thread)
		return -ENOMEM;
	thread->set = (struct ioload_settings){
		.reads = 100, .depth = 1, .batch = 1, .logged = 1,
	};
	thread->number = number;
	INIT_LIST_HEAD(&thread->free);
	init_waitqueue_head(&thread->completed);
	list_add_tail(&thread->entry, &ioload_threads);

	ret = ioload_parse(&thread->set, line);
	if (!ret)
		ret = ioload_make_ios(thread);
	if (ret)
		ioload_remove(thread);
	else
		prandom_seed_state(&thread->random, thread->set.seed);
	return ret;
}

/* Files */

static int ioload_choose(char *line)
{
	lockdep_assert_held(&ioload_mutex);
	strscpy(ioload_device, strim(line), sizeof(ioload_device));
	return 0;
}

static int ioload_switch(char *line)
{
	bool on;
	int ret = kstrtobool(strim(line), &on);

	lockdep_assert_held(&ioload_mutex);
	if (ret)
		return ret;
	if (on)
		return ioload_start();
	ioload_stop();
	return atomic_read(&ioload_errors) ? -EIO : 0;
}

static int ioload_measure(char *line)
{
	bool on;
	int ret = kstrtobool(strim(line), &on);

	lockdep_assert_held(&ioload_mutex);
	if (ret)
		return ret;
	if (on && !ioload_measuring)
		atomic_set(&ioload_logged, 0);
	WRITE_ONCE(ioload_measuring, on);
	return on || atomic_read(&ioload_logged) <= LOG_RECORDS ? 0 : -ENOSPC;
}

static const struct ioload_file {
	const char *name;
	int (*store)(char *line);
} ioload_files[] = {
	{ "device", ioload_choose },
	{ "thread", ioload_add },
	{ "run", ioload_switch },
	{ "measure", ioload_measure },
};

static ssize_t ioload_write(struct file *file, const char __user *buf,
			    size_t count, loff_t *ppos)
{
	const struct ioload_file *what = file->private_data;
	char line[MAX_LINE];
	int ret;

	if (count >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, buf, count))
		return -EFAULT;
	line[count] = '\0';
	mutex_lock(&ioload_mutex);
	ret = what->store(line);
	mutex_unlock(&ioload_mutex);
	return ret ?: count;
}

static const struct file_operations ioload_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = ioload_write,
};

static bool ioload_valid_step(const struct ioload_thread *thread,
			      const struct ioload_step *step)
{
	return step->bytes && step->bytes <= thread->set.block &&
	       !(step->bytes & 511) && !(step->offset & 511) &&
	       step->at_us <= U64_MAX / NSEC_PER_USEC / 2;
}

/* Append @nr steps to the last thread. */
static int ioload_append(const struct ioload_step *steps, unsigned int nr)
{
	struct ioload_thread *thread;
	struct ioload_step *all;
	unsigned int i, had;

	lockdep_assert_held(&ioload_mutex);
	if (ioload_running || list_empty(&ioload_threads))
		return -EINVAL;
	thread = list_last_entry(&ioload_threads, struct ioload_thread, entry);
	had = thread->nr_steps;
	if (!nr || !thread->set.sync || had + nr > MAX_STEPS)
		return -EINVAL;
	for (i = 0; i < nr; i++)
		if (!ioload_valid_step(thread, &steps[i]))
			return -EINVAL;
	all = kvcalloc(had + nr, sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	if (had)
		memcpy(all, thread->steps, had * sizeof(*all));
	memcpy(all + had, steps, nr * sizeof(*all));
	kvfree(thread->steps);
	thread->steps = all;
	thread->nr_steps = had + nr;
	return 0;
}

static ssize_t ioload_steps_write(struct file *file, const char __user *buf,
				  size_t count, loff_t *ppos)
{
	struct ioload_step *steps;
	int ret;

	if (count % sizeof(*steps) || count / sizeof(*steps) > MAX_STEPS)
		return -EINVAL;
	steps = vmemdup_user(buf, count);
	if (IS_ERR(steps))
		return PTR_ERR(steps);
	mutex_lock(&ioload_mutex);
	ret = ioload_append(steps, count / sizeof(*steps));
	mutex_unlock(&ioload_mutex);
	kvfree(steps);
	return ret ?: count;
}

static const struct file_operations ioload_steps_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = ioload_steps_write,
};

static ssize_t ioload_log_read(struct file *file, char __user *buf,
			       size_t count, loff_t *ppos)
{
	u32 records = min_t(u32, atomic_read(&ioload_logged), LOG_RECORDS);

	if (READ_ONCE(ioload_measuring))
		return -EBUSY;
	return simple_read_from_buffer(buf, count, ppos, ioload_log,
				       records * sizeof(*ioload_log));
}

static const struct file_operations ioload_log_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = ioload_log_read,
	.llseek = default_llseek,
};

/* Module */

static int __init ioload_init(void)
{
	int i;

	ioload_log = vzalloc(LOG_RECORDS * sizeof(*ioload_log));
	if (!ioload_log)
		return -ENOMEM;
	ioload_root = debugfs_create_dir(KBUILD_MODNAME, NULL);
	for (i = 0; i < ARRAY_SIZE(ioload_files); i++)
		debugfs_create_file(ioload_files[i].name, 0200, ioload_root,
				    (void *)&ioload_files[i], &ioload_fops);
	debugfs_create_file("steps", 0200, ioload_root, NULL, &ioload_steps_fops);
	debugfs_create_atomic_t("working", 0400, ioload_root, &ioload_working);
	debugfs_create_file("log", 0400, ioload_root, NULL, &ioload_log_fops);
	return 0;
}

static void __exit ioload_exit(void)
{
	debugfs_remove(ioload_root);
	mutex_lock(&ioload_mutex);
	ioload_stop();
	mutex_unlock(&ioload_mutex);
	vfree(ioload_log);
}

module_init(ioload_init);
module_exit(ioload_exit);
MODULE_DESCRIPTION("Direct I/O on a block device from kernel threads, for tests");
MODULE_LICENSE("GPL");
