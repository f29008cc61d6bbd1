/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels for a high-resolution timer: for the schedulers
 * and the emulated SSD.
 */
#ifndef _COMPAT_HRTIMER_H
#define _COMPAT_HRTIMER_H

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>

#include "iosched-kernel.h"

/* 6.13: hrtimer_setup() sets the callback too; 6.15 removed hrtimer_init(). */
static inline void
compat_hrtimer_setup(struct hrtimer *timer,
		     enum hrtimer_restart (*function)(struct hrtimer *),
		     clockid_t clock, enum hrtimer_mode mode)
{
#ifdef IOSCHED_HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, function, clock, mode);
#else
	hrtimer_init(timer, clock, mode);
	timer->function = function;
#endif
}

#endif /* _COMPAT_HRTIMER_H */
