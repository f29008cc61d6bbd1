// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU: count how often each instruction of the guest's kernel is executed.
 *
 *	-plugin file=count-instructions.so,out=FILE
 *
 * FILE is a table of SLOTS addresses, 0 where there is none, and one of their counts, both of
 * 64 bits in the host's order. It is mapped, so that it is complete however QEMU ends.
 *
 * Debian has no package with qemu-plugin.h: what is used of version 1 of the interface is
 * declared here.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS_BITS	20
#define SLOTS		(1u << SLOTS_BITS)
/* The kernel and its modules, of x86-64. */
#define KERNEL		0xffffffff80000000ull

typedef uint64_t qemu_plugin_id_t;
struct qemu_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*cb)(qemu_plugin_id_t id,
						      struct qemu_plugin_tb *tb));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t idx);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
						enum qemu_plugin_op op,
						void *ptr, uint64_t imm);

int qemu_plugin_version = 1;

static uint64_t *addresses, *counts;

/* The slot of an address; there are far more slots than instructions. */
static unsigned int slot_of(uint64_t address)
{
	unsigned int slot = (address * 0x9e3779b97f4a7c15ull) >>
			    (64 - SLOTS_BITS);

	while (addresses[slot] && addresses[slot] != address)
		slot = (slot + 1) % SLOTS;
	addresses[slot] = address;
	return slot;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i, nr = qemu_plugin_tb_n_insns(tb);

	for (i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);

		if (address >= KERNEL)
			qemu_plugin_register_vcpu_insn_exec_inline(insn,
				QEMU_PLUGIN_INLINE_ADD_U64,
				&counts[slot_of(address)], 1);
	}
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
			int argc, char **argv)
{
	size_t size = 2 * SLOTS * sizeof(uint64_t);
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
