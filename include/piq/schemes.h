/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The paper's six schemes (section V), each of which adds to another:
 *
 *	noop	all requests in order of arrival; none is held
 *	rws	reads before writes, each in order of arrival
 *	piq-r	rws, reads in batches
 *	piq-w	rws, writes in batches
 *	piq	both in batches
 *	piq+	piq, and rule 5 of piq-iosched.c
 */
#ifndef _PIQ_SCHEMES_H
#define _PIQ_SCHEMES_H

#include "iosched.h"

/**
 * struct piq_scheme - what a scheme does
 * @batches: by direction: requests are in batches; otherwise only the oldest may be
 *	dispatched
 * @reads_first: reads before writes, and requests that conflict are held
 * @write_wait: rule 5
 */
struct piq_scheme {
	bool batches[IOSCHED_DIRS];
	bool reads_first;
	bool write_wait;
};

enum {
	PIQ_NOOP,
	PIQ_RWS,
	PIQ_READS,
	PIQ_WRITES,
	PIQ_BOTH,
	PIQ_PLUS,
};

static const struct piq_scheme piq_schemes[] = {
	[PIQ_NOOP]	= { },
	[PIQ_RWS]	= { { false, false }, .reads_first = true },
	[PIQ_READS]	= { { true, false }, .reads_first = true },
	[PIQ_WRITES]	= { { false, true }, .reads_first = true },
	[PIQ_BOTH]	= { { true, true }, .reads_first = true },
	[PIQ_PLUS]	= { { true, true }, .reads_first = true,
			    .write_wait = true },
};

static const char * const piq_scheme_names[] = {
	[PIQ_NOOP]	= "noop",
	[PIQ_RWS]	= "rws",
	[PIQ_READS]	= "piq-r",
	[PIQ_WRITES]	= "piq-w",
	[PIQ_BOTH]	= "piq",
	[PIQ_PLUS]	= "piq+",
};

#endif /* _PIQ_SCHEMES_H */
