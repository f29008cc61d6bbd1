/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tunables: one line in a list makes a module parameter (the default of
 * devices to come), a file in queue/iosched/ (this device) and a range that
 * both enforce with -EINVAL.
 *
 * A list is a macro that applies its argument to each tunable:
 *
 *	T(struct, name, default, min, max, setter, "description")
 *
 * where struct has an unsigned int called name, and setter is the function that
 * gives it a new value: iosched_set(), or the policy's own when more has to
 * be done. A tunable that is chosen by name has a list of its own, with
 *
 *	T(struct, name, default, names, setter, "description")
 *
 * where names is the array of the names of the values from 0 on.
 */
#ifndef _IOSCHED_TUNABLES_H
#define _IOSCHED_TUNABLES_H

#include <linux/stringify.h>
#include "iosched.h"

static inline int iosched_set(struct iosched *io, unsigned int *field,
			      unsigned int value)
{
	WRITE_ONCE(*field, value);
	return 0;
}

/* The bound on what is in flight: what room there is was found by the old one. */
static inline int iosched_set_depth(struct iosched *io, unsigned int *field,
				    unsigned int value)
{
	spin_lock(&io->lock);
	WRITE_ONCE(*field, value);
	io->room = 0;
	spin_unlock(&io->lock);
	return 0;
}

/* Queued requests follow, so that each FIFO stays sorted by deadline. */
static inline int iosched_set_expire(struct iosched *io, unsigned int *field,
				     unsigned int value)
{
	unsigned int dir = field == &io->read_expire ? READ : WRITE;
	struct request *rq;
	unsigned int tier;

	spin_lock(&io->lock);
	iosched_sort_alone(io);
	for (tier = 0; tier < IOSCHED_TIERS; tier++)
		list_for_each_entry(rq, &io->fifo[tier][dir], queuelist)
			rq->fifo_time += msecs_to_jiffies(value) -
					 msecs_to_jiffies(*field);
	WRITE_ONCE(*field, value);
	spin_unlock(&io->lock);
	return 0;
}

/*
 * A bound must be expected by the tag bitmaps before it is used; they go on
 * expecting one until the depth of the queue changes.
 */
static inline int iosched_set_async_depth(struct iosched *io,
					  unsigned int *field,
					  unsigned int value)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	if (value)
		queue_for_each_hw_ctx(io->q, hctx, i)
			iosched_min_shallow_depth(hctx, true);
	WRITE_ONCE(*field, value);
	return 0;
}

static inline ssize_t
iosched_store(struct iosched *io, size_t count, unsigned int *field,
	      unsigned int value,
	      int (*set)(struct iosched *, unsigned int *, unsigned int))
{
	int ret = set(io, field, value);

	if (ret)
		return ret;
	/* What waited for the old value may go with the new one. */
	iosched_wake(io);
	return count;
}

/* The module parameter of a tunable. */
#define IOSCHED_TUNABLE_PARAM(type, name, def, min, max, setter, desc)	\
static unsigned int name##_param = (def);				\
static int name##_param_set(const char *val,				\
			    const struct kernel_param *kp)		\
{									\
	/* Which says ERANGE of what no unsigned int can hold. */	\
	return param_set_uint_minmax(val, kp, min, max) ? -EINVAL : 0;	\
}									\
static const struct kernel_param_ops name##_param_ops = {		\
	.set = name##_param_set,					\
	.get = param_get_uint,						\
};									\
module_param_cb(name, &name##_param_ops, &name##_param, 0644);		\
MODULE_PARM_DESC(name, desc " (" __stringify(min) ".." __stringify(max)	\
		 ", default " #def ")");

/* The two functions of its file in sysfs. */
#define IOSCHED_TUNABLE_FILE(type, name, def, min, max, setter, desc)	\
static ssize_t name##_show(struct elevator_queue *eq, char *page)	\
{									\
	struct type *data = eq->elevator_data;				\
									\
	return sysfs_emit(page, "%u\n", READ_ONCE(data->name));		\
}									\
static ssize_t name##_store(struct elevator_queue *eq,			\
			    const char *page, size_t count)		\
{									\
	struct type *data = eq->elevator_data;				\
	unsigned int value;						\
									\
	if (kstrtouint(page, 0, &value) || value < (min) || value > (max)) \
		return -EINVAL;						\
	return iosched_store(eq->elevator_data, count, &data->name,	\
			     value, setter);				\
}

#define IOSCHED_TUNABLE_DEFINE(...)					\
	IOSCHED_TUNABLE_PARAM(__VA_ARGS__)				\
	IOSCHED_TUNABLE_FILE(__VA_ARGS__)

/* Both for a tunable that is chosen by name. */
#define IOSCHED_CHOICE_DEFINE(type, name, def, names, setter, desc)	\
static unsigned int name##_param = (def);				\
static int name##_param_set(const char *val,				\
			    const struct kernel_param *kp)		\
{									\
	int value = sysfs_match_string(names, val);			\
									\
	if (value < 0)							\
		return value;						\
	WRITE_ONCE(name##_param, value);				\
	return 0;							\
}									\
static int name##_param_get(char *buffer, const struct kernel_param *kp) \
{									\
	return sprintf(buffer, "%s\n", names[READ_ONCE(name##_param)]);	\
}									\
static const struct kernel_param_ops name##_param_ops = {		\
	.set = name##_param_set,					\
	.get = name##_param_get,					\
};									\
module_param_cb(name, &name##_param_ops, &name##_param, 0644);		\
MODULE_PARM_DESC(name, desc);						\
static ssize_t name##_show(struct elevator_queue *eq, char *page)	\
{									\
	struct type *data = eq->elevator_data;				\
									\
	return sysfs_emit(page, "%s\n", names[READ_ONCE(data->name)]);	\
}									\
static ssize_t name##_store(struct elevator_queue *eq,			\
			    const char *page, size_t count)		\
{									\
	struct type *data = eq->elevator_data;				\
	int value = sysfs_match_string(names, page);			\
									\
	if (value < 0)							\
		return value;						\
	return iosched_store(eq->elevator_data, count, &data->name,	\
			     value, setter);				\
}

/* Give a new device its settings; @data has to be in scope. */
#define IOSCHED_TUNABLE_INIT(type, name, ...)				\
	((struct type *)data)->name = READ_ONCE(name##_param);

#define IOSCHED_TUNABLE_ATTR(type, name, ...)				\
	__ATTR(name, 0644, name##_show, name##_store),

/* An hour bounds the times: longer than any device takes for a request. */
#define IOSCHED_CORE_TUNABLES(T)					\
	T(iosched, read_expire, 500, 0, 3600000, iosched_set_expire,	\
	  "ms until a read's deadline")					\
	T(iosched, write_expire, 5000, 0, 3600000, iosched_set_expire,	\
	  "ms until a write's deadline")				\
	T(iosched, prio_aging_expire, 10000, 0, 3600000, iosched_set,	\
	  "ms until a request of a lower priority class goes first")	\
	T(iosched, front_merges, 1, 0, 1, iosched_set,			\
	  "look for front merges")					\
	T(iosched, depth, 0, 0, 65535, iosched_set_depth,		\
	  "most requests in flight on the device, 0: as many as it has tags")

/* The async depth has a file here only where the queue has none of its own. */
#define IOSCHED_ASYNC_DEPTH_TUNABLE(T)					\
	T(iosched, async_depth, 0, 0, 65535, iosched_set_async_depth,	\
	  "requests other than synchronous reads per hardware queue, 0: no bound")

IOSCHED_CORE_TUNABLES(IOSCHED_TUNABLE_DEFINE)
IOSCHED_ASYNC_DEPTH_TUNABLE(IOSCHED_TUNABLE_PARAM)
IOSCHED_OWN_ASYNC_DEPTH(IOSCHED_ASYNC_DEPTH_TUNABLE(IOSCHED_TUNABLE_FILE))

#define IOSCHED_CORE_ATTRS						\
	IOSCHED_CORE_TUNABLES(IOSCHED_TUNABLE_ATTR)			\
	IOSCHED_OWN_ASYNC_DEPTH(					\
		IOSCHED_ASYNC_DEPTH_TUNABLE(IOSCHED_TUNABLE_ATTR))

static inline void iosched_tunables_init(struct iosched *data)
{
	IOSCHED_CORE_TUNABLES(IOSCHED_TUNABLE_INIT)
	IOSCHED_ASYNC_DEPTH_TUNABLE(IOSCHED_TUNABLE_INIT)
}

#endif /* _IOSCHED_TUNABLES_H */
