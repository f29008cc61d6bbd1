// SPDX-License-Identifier: GPL-2.0
/*
 * Have a running kernel use this module's copy of the block layer: overwrite the first
 * instruction of each function that the patches change, or that calls one which is not
 * visible, by a jump to the copy. For measurements in the lab's guest only; the module
 * cannot be unloaded. tests/bench/upstream.py builds it.
 */
#include <linux/export.h>
#include <linux/memory.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <asm/text-patching.h>

/* The kernel's function is linked as old_NAME, the copy's as new_NAME. */
#define FUNCTIONS(F)			\
	F(blk_mq_insert_request)	\
	F(blk_mq_dispatch_rq_list)	\
	F(blk_mq_end_request_batch)	\
	F(blk_mq_flush_plug_list)	\
	F(blk_mq_submit_bio)

#define DECLARE(name) extern char old_##name[], new_##name[];
FUNCTIONS(DECLARE)

static void divert(char *from, char *to)
{
	/* jmp */
	u8 code[5] = { 0xe9 };
	s32 distance = to - (from + sizeof(code));

	memcpy(code + 1, &distance, sizeof(distance));
	mutex_lock(&text_mutex);
	smp_text_poke_single(from, code, sizeof(code), NULL);
	mutex_unlock(&text_mutex);
}

static int __init divert_init(void)
{
	__module_get(THIS_MODULE);
#define DIVERT(name) divert(old_##name, new_##name);
	FUNCTIONS(DIVERT)
	return 0;
}
module_init(divert_init);

MODULE_DESCRIPTION("A copy of the block layer in place of the kernel's");
MODULE_LICENSE("GPL");
