/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PAI's classes of requests (rules 3 and 6).
 */
#ifndef _PAI_CLASSES_H
#define _PAI_CLASSES_H

#include "iosched.h"

/**
 * enum pai_class - what a queued request is, kept in rq->elv.priv[0]
 * @PAI_WELL_SPLIT: it suits the device
 * @PAI_CLOSED: it does not, and no merge can change that
 * @PAI_PENDING: it does not, and waits to be merged
 * @PAI_CLASSES: number of classes
 */
enum pai_class {
	PAI_WELL_SPLIT,
	PAI_CLOSED,
	PAI_PENDING,
	PAI_CLASSES,
};

static inline enum pai_class pai_class_of(struct request *rq)
{
	return (unsigned long)rq->elv.priv[0];
}

static inline void pai_rq_set_class(struct request *rq, enum pai_class class)
{
	rq->elv.priv[0] = (void *)(unsigned long)class;
}

#endif /* _PAI_CLASSES_H */
