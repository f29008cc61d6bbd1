// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU: count how often each instruction of the guest's kernel is executed.
 *
 *	-plugin file=count-instructions.so,out=FILE
 *
 * FILE is a table of SLOTS addresses, 0 where there is none, and one of their counts, both of
 * 64 bits in the host's order. It is mapped, so that it is complete however QEMU ends.
 */
#include <fcntl.h>
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qemu-plugin.h"

#define SLOTS_BITS	20
#define SLOTS		1048576U
/* The kernel and its modules, of x86-64. */
#define KERNEL		0xffffffff80000000ull

int qemu_plugin_version = 1;

static __u64 *addresses, *counts;

/* The slot of an address; there are far more slots than instructions. */
static unsigned int slot_of(__u64 address)
{
	unsigned int slot = (address * 0x9e3779b97f4a7c15ull) >>
			    (64 - SLOTS_BITS);

	while (addresses[slot] && addresses[slot] != address)
		slot = (slot + 1) % SLOTS;
	addresses[slot] = address;
	return slot;
}

#define count	qemu_plugin_register_vcpu_insn_exec_inline

static void translated(__u64 id, struct qemu_plugin_tb *tb)
{
	size_t i, nr = qemu_plugin_tb_n_insns(tb);

	for (i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		__u64 address = qemu_plugin_insn_vaddr(insn);

		if (address >= KERNEL)
			count(insn, QEMU_PLUGIN_INLINE_ADD_U64,
			      &counts[slot_of(address)], 1);
	}
}

int qemu_plugin_install(__u64 id, const struct qemu_info *info,
			int argc, char **argv)
{
	size_t size = 2 * SLOTS * sizeof(__u64);
	int fd;

	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "count-instructions: out=FILE is missing\n");
		return -1;
	}
	fd = open(argv[0] + 4, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || ftruncate(fd, size)) {
		perror(argv[0] + 4);
		return -1;
	}
	addresses = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (addresses == MAP_FAILED) {
		perror("count-instructions");
		return -1;
	}
	counts = addresses + SLOTS;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
