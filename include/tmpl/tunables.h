/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tunables. A part of iosched-tmpl.h. Each line in a list makes a module parameter
 * (what a device starts with), a file in queue/iosched/ (the value of this
 * device) and a range, beyond which both return -EINVAL.
 *
 * A list is a macro with two arguments, which it applies to its tunables:
 *
 *	T(struct, name, default, min, max, setter, "description")
 *	C(struct, name, default, names, setter, "description")
 *
 * struct has an unsigned int called name; setter stores a new value in it:
 * iosched_set(), or the policy's own function if more has to be done. C is for a
 * tunable with named values: names is the array of their names, from 0.
 */
#ifndef _IOSCHED_TMPL_TUNABLES_H
#define _IOSCHED_TMPL_TUNABLES_H

#include <linux/stringify.h>

#include "tmpl/bounds.h"
#include "tmpl/calm.h"
#include "tmpl/policy.h"
#include "tmpl/queue.h"

/**
 * struct iosched_tunable - a setting of a scheduler
 * @value: the module parameter: what a device starts with
 * @min: least value
 * @max: greatest value
 * @names: names of the values from 0 to @max; NULL for a number
 * @offset: of the device's value in the policy's struct, in bytes
 * @set: store a new value, which is in the range, for a device. May sleep, no
 *	lock. Negative errno on failure.
 */
struct iosched_tunable {
	unsigned int value;
	unsigned int min;
	unsigned int max;
	const char * const *names;
	size_t offset;
	int (*set)(struct iosched *io, unsigned int *field,
		   unsigned int value);
};

static int iosched_set(struct iosched *io, unsigned int *field,
		       unsigned int value)
{
	WRITE_ONCE(*field, value);
	return 0;
}

/* Count the dispatch limit and @room anew. */
static int iosched_set_depth(struct iosched *io, unsigned int *field,
			     unsigned int value)
{
	spin_lock(&io->lock);
	WRITE_ONCE(*field, value);
	iosched_count_limit(io);
	io->room = 0;
	spin_unlock(&io->lock);
	return 0;
}

/* Move the deadlines of queued requests, so that each FIFO stays sorted. */
static int iosched_set_expire(struct iosched *io, unsigned int *field,
			      unsigned int value)
{
	unsigned int dir = field == &io->read_expire ? READ : WRITE;
	unsigned long expire = msecs_to_jiffies(value);
	struct request *rq;
	unsigned int tier;

	spin_lock(&io->lock);
	iosched_sort_fresh(io);
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		list_for_each_entry(rq, &io->fifo[tier][dir], queuelist)
			rq->fifo_time += expire - io->expire[dir];
	list_for_each_entry(rq, &io->moving, queuelist)
		if (rq_data_dir(rq) == dir)
			rq->fifo_time += expire - io->expire[dir];
	io->expire[dir] = expire;
	WRITE_ONCE(*field, value);
	spin_unlock(&io->lock);
	return 0;
}

/*
 * The tag bitmaps must expect a bound before it is used. They expect one until
 * the number of scheduler tags changes. That happens with the queue frozen, which
 * the reference prevents; to wait for the end of it here could deadlock with the
 * elevator's removal, which waits for this file.
 */
static int iosched_set_async_depth(struct iosched *io, unsigned int *field,
				   unsigned int value)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	if (!percpu_ref_tryget_live(&io->q->q_usage_counter))
		return -EBUSY;
	if (value)
		queue_for_each_hw_ctx(io->q, hctx, i)
			iosched_expect_shallow_depth(hctx, value);
	WRITE_ONCE(*field, value);
	percpu_ref_put(&io->q->q_usage_counter);
	return 0;
}

/* Parse @text, a value of the tunable @t. */
static int iosched_tunable_parse(const struct iosched_tunable *t,
				 const char *text, unsigned int *value)
{
	if (t->names) {
		int found = __sysfs_match_string(t->names, t->max + 1, text);

		if (found < 0)
			return found;
		*value = found;
		return 0;
	}
	/* kstrtouint() returns -ERANGE for a number that is too large. */
	if (kstrtouint(text, 0, value) || *value < t->min || *value > t->max)
		return -EINVAL;
	return 0;
}

static int iosched_tunable_print(const struct iosched_tunable *t, char *page,
				 unsigned int value)
{
	if (t->names)
		return sysfs_emit(page, "%s\n", t->names[value]);
	return sysfs_emit(page, "%u\n", value);
}

/* Module parameters */

static int iosched_param_set(const char *text, const struct kernel_param *kp)
{
	struct iosched_tunable *t = kp->arg;
	unsigned int value;
	int ret = iosched_tunable_parse(t, text, &value);

	if (!ret)
		WRITE_ONCE(t->value, value);
	return ret;
}

static int iosched_param_get(char *page, const struct kernel_param *kp)
{
	struct iosched_tunable *t = kp->arg;

	return iosched_tunable_print(t, page, READ_ONCE(t->value));
}

static const struct kernel_param_ops iosched_param_ops = {
	.set = iosched_param_set,
	.get = iosched_param_get,
};

/* The device's value. */
static unsigned int *iosched_tunable_field(struct iosched *io,
					   const struct iosched_tunable *t)
{
	return (void *)io + t->offset;
}

/* Files in sysfs */

static ssize_t iosched_tunable_show(struct elevator_queue *eq,
				    const struct iosched_tunable *t, char *page)
{
	struct iosched *io = eq->elevator_data;

	return iosched_tunable_print(t, page,
				     READ_ONCE(*iosched_tunable_field(io, t)));
}

static ssize_t iosched_tunable_store(struct elevator_queue *eq,
				     const struct iosched_tunable *t,
				     const char *page, size_t count)
{
	struct iosched *io = eq->elevator_data;
	unsigned int value;
	int ret = iosched_tunable_parse(t, page, &value);

	if (!ret)
		ret = t->set(io, iosched_tunable_field(io, t), value);
	if (ret)
		return ret;
	spin_lock(&io->lock);
	iosched_end_calm(io);
	spin_unlock(&io->lock);
	/* The new value may allow a dispatch that the old one did not. */
	iosched_wake(io);
	return count;
}

#define IOSCHED_TUNABLE_PARAM(type, tunable_name, text, ...)		\
static struct iosched_tunable type##_##tunable_name##_tunable = {	\
	__VA_ARGS__							\
};									\
module_param_cb(tunable_name, &iosched_param_ops,			\
		&type##_##tunable_name##_tunable, 0644);		\
MODULE_PARM_DESC(tunable_name, text);

#define IOSCHED_NUMBER_PARAM(type, name, def, lowest, highest, setter, desc) \
	IOSCHED_TUNABLE_PARAM(type, name,				\
		desc " (" __stringify(lowest) ".." __stringify(highest)	\
		", default " #def ")",					\
		.value = def, .min = lowest, .max = highest,		\
		.offset = offsetof(struct type, name), .set = setter)

#define IOSCHED_CHOICE_PARAM(type, name, def, choices, setter, desc)	\
	IOSCHED_TUNABLE_PARAM(type, name, desc, .value = def,		\
		.max = ARRAY_SIZE(choices) - 1, .names = choices,	\
		.offset = offsetof(struct type, name), .set = setter)

#define IOSCHED_TUNABLE_FILE(type, name, ...)				\
static ssize_t type##_##name##_show(struct elevator_queue *eq, char *page) \
{									\
	return iosched_tunable_show(eq, &type##_##name##_tunable, page); \
}									\
static ssize_t type##_##name##_store(struct elevator_queue *eq,		\
				     const char *page, size_t count)	\
{									\
	return iosched_tunable_store(eq, &type##_##name##_tunable, page, \
				     count);				\
}

#define IOSCHED_TUNABLE_ATTR(type, name, ...)				\
	__ATTR(name, 0644, type##_##name##_show, type##_##name##_store),

#define IOSCHED_TUNABLE_ENTRY(type, name, ...)				\
	&type##_##name##_tunable,

/* Most ms of a time: an hour, longer than any device takes for a request. */
#define IOSCHED_MS_MAX		3600000
/* Most requests of a bound or a batch. */
#define IOSCHED_REQUESTS_MAX	65535

#define IOSCHED_CORE_TUNABLES(T, C)					\
	T(iosched, read_expire, 500, 0, IOSCHED_MS_MAX, iosched_set_expire, \
	  "ms until a read's deadline")					\
	T(iosched, write_expire, 5000, 0, IOSCHED_MS_MAX, iosched_set_expire, \
	  "ms until a write's deadline")				\
	T(iosched, prio_aging_expire, 10000, 0, IOSCHED_MS_MAX, iosched_set, \
	  "ms until the deadline of a request while a higher priority class is in use")	\
	T(iosched, front_merges, 1, 0, 1, iosched_set,			\
	  "try front merges")					\
	T(iosched, depth, 0, 0, IOSCHED_REQUESTS_MAX, iosched_set_depth, \
	  "most requests in flight on the device, 0: as many as it has tags") \
	T(iosched, write_share, 75, 1, 100, iosched_set,		\
	  "most of the device for writes while there are reads, percent, 100: any") \
	T(iosched, bypass, 1, 0, 1, iosched_set,			\
	  "do not order requests while the device has room for all")

/* async_depth has a file here only if the kernel has no queue/async_depth. */
#define IOSCHED_ASYNC_DEPTH_TUNABLE(T)					\
	T(iosched, async_depth, 0, 0, IOSCHED_REQUESTS_MAX, iosched_set_async_depth, \
	  "requests but synchronous reads per hardware queue, 0: 3/4 of nr_requests")

#define IOSCHED_ASYNC_DEPTH_FILE(T)					\
	IOSCHED_OWN_ASYNC_DEPTH(IOSCHED_ASYNC_DEPTH_TUNABLE(T))

IOSCHED_CORE_TUNABLES(IOSCHED_NUMBER_PARAM, IOSCHED_CHOICE_PARAM)
IOSCHED_CORE_TUNABLES(IOSCHED_TUNABLE_FILE, IOSCHED_TUNABLE_FILE)
IOSCHED_ASYNC_DEPTH_TUNABLE(IOSCHED_NUMBER_PARAM)
IOSCHED_ASYNC_DEPTH_FILE(IOSCHED_TUNABLE_FILE)
IOSCHED_POLICY_TUNABLES(IOSCHED_NUMBER_PARAM, IOSCHED_CHOICE_PARAM)
IOSCHED_POLICY_TUNABLES(IOSCHED_TUNABLE_FILE, IOSCHED_TUNABLE_FILE)

IOSCHED_ATTRS iosched_attrs[] = {
	IOSCHED_CORE_TUNABLES(IOSCHED_TUNABLE_ATTR, IOSCHED_TUNABLE_ATTR)
	IOSCHED_ASYNC_DEPTH_FILE(IOSCHED_TUNABLE_ATTR)
	IOSCHED_POLICY_TUNABLES(IOSCHED_TUNABLE_ATTR, IOSCHED_TUNABLE_ATTR)
	__ATTR_NULL
};

static const struct iosched_tunable * const iosched_tunables[] = {
	IOSCHED_CORE_TUNABLES(IOSCHED_TUNABLE_ENTRY, IOSCHED_TUNABLE_ENTRY)
	IOSCHED_ASYNC_DEPTH_TUNABLE(IOSCHED_TUNABLE_ENTRY)
	IOSCHED_POLICY_TUNABLES(IOSCHED_TUNABLE_ENTRY, IOSCHED_TUNABLE_ENTRY)
};

/* Give a device the values of the module parameters. */
static void iosched_tunables_init(struct iosched *io)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(iosched_tunables); i++)
		*iosched_tunable_field(io, iosched_tunables[i]) =
			READ_ONCE(iosched_tunables[i]->value);
	io->expire[READ] = msecs_to_jiffies(io->read_expire);
	io->expire[WRITE] = msecs_to_jiffies(io->write_expire);
}

#endif /* _IOSCHED_TMPL_TUNABLES_H */
