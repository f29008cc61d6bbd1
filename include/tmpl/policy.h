/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The template's parameters for a part of iosched-tmpl.h that is parsed on its own, by
 * clangd or cscope: a policy without hooks. A scheduler defines its own before it
 * includes iosched-tmpl.h, which fails the build otherwise.
 */
#ifndef _IOSCHED_TMPL_POLICY_H
#define _IOSCHED_TMPL_POLICY_H

#include "iosched.h"

#ifndef IOSCHED_POLICY
static const struct iosched_policy iosched_no_policy;
#define IOSCHED_NAME			"none"
#define IOSCHED_POLICY			iosched_no_policy
#define IOSCHED_POLICY_TUNABLES(T, C)
#endif

#endif /* _IOSCHED_TMPL_POLICY_H */
