/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The elevator as a template, in the form of net/netfilter/ipset/ip_set_hash_gen.h.
 * Each scheduler includes it last, after it has defined the template's parameters:
 *
 * IOSCHED_NAME			name of the scheduler, a string
 * IOSCHED_POLICY		its struct iosched_policy
 * IOSCHED_POLICY_TUNABLES	list of its tunables, see tmpl/tunables.h
 * IOSCHED_POLICY_DEBUGFS	(opt) its debugfs files, struct blk_mq_debugfs_attr
 *
 * The compiler turns each hook into a direct call, or omits it. The template
 * defines the elevator_type and the module's entry points.
 */
#if !defined(IOSCHED_NAME) || !defined(IOSCHED_POLICY) || !defined(IOSCHED_POLICY_TUNABLES)
#error "a parameter of the template is missing"
#endif

#include "iosched.h"
#include "iosched-debugfs.h"

#include "tmpl/layout.h"
#include "tmpl/seal.h"
#include "tmpl/in-flight.h"
#include "tmpl/queue.h"
#include "tmpl/driver.h"
#include "tmpl/bounds.h"
#include "tmpl/readers/share.h"
#include "tmpl/bypass.h"
#include "tmpl/merge.h"
#include "tmpl/calm.h"
#include "tmpl/deadlines.h"
#include "tmpl/insert.h"
#include "tmpl/replace.h"
#include "tmpl/dispatch.h"
#include "tmpl/complete.h"
#include "tmpl/tags.h"
#include "tmpl/tunables.h"
#include "tmpl/lifecycle.h"

#ifdef CONFIG_BLK_DEBUG_FS
static const struct blk_mq_debugfs_attr iosched_debugfs_attrs[] = {
	IOSCHED_CORE_DEBUGFS,
#ifdef IOSCHED_POLICY_DEBUGFS
	IOSCHED_POLICY_DEBUGFS,
#endif
	{},
};
#endif

static struct elevator_type iosched_type = {
	.ops = {
		IOSCHED_DATA_OPS(iosched_new_data, iosched_free)
		.init_sched		= iosched_init_sched,
		.exit_sched		= iosched_exit_sched,
		.init_hctx		= iosched_init_hctx,
		.exit_hctx		= iosched_exit_hctx,
		.depth_updated		= iosched_depth_updated,
		.limit_depth		= iosched_limit_depth,
		.allow_merge		= iosched_allow_merge,
		.bio_merge		= iosched_bio_merge,
		.request_merge		= iosched_request_merge,
		.request_merged		= iosched_request_merged,
		.requests_merged	= iosched_requests_merged,
		.former_request		= iosched_former_request,
		.next_request		= iosched_latter_request,
		.prepare_request	= iosched_prepare_request,
		.insert_requests	= iosched_insert_requests,
		.dispatch_request	= iosched_dispatch_request,
		.has_work		= iosched_has_work,
		.finish_request		= iosched_finish_request,
		.requeue_request	= iosched_requeue_request,
	},
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs = iosched_debugfs_attrs,
#endif
	.elevator_attrs = iosched_attrs,
	.elevator_name = IOSCHED_NAME,
	.elevator_owner = THIS_MODULE,
};

static int __init iosched_module_init(void)
{
	int ret = iosched_check_layouts();

	if (!ret && IOSCHED_POLICY.load)
		ret = IOSCHED_POLICY.load();
	if (ret)
		return ret;
	ret = elv_register(&iosched_type);
	if (ret && IOSCHED_POLICY.unload)
		IOSCHED_POLICY.unload();
	return ret;
}
module_init(iosched_module_init);

static void __exit iosched_module_exit(void)
{
	elv_unregister(&iosched_type);
	if (IOSCHED_POLICY.unload)
		IOSCHED_POLICY.unload();
}
module_exit(iosched_module_exit);
