// SPDX-License-Identifier: GPL-2.0
/*
 * What include/tmpl/layout.h needs of the kernel, over a file with a
 * kernel's BTF: "check FILE" says whether the module would load there.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define pr_err(...) printf(__VA_ARGS__)
typedef __u32 u32;
typedef __s32 s32;

#define MAX_TYPES 1000000

struct btf {
	const struct btf_type *types[MAX_TYPES];
	const char *strings;
	u32 count;
};

static struct btf vmlinux;

static u32 btf_kind(const struct btf_type *t)
{
	return BTF_INFO_KIND(t->info);
}

static u32 btf_type_vlen(const struct btf_type *t)
{
	return BTF_INFO_VLEN(t->info);
}

static const struct btf_member *btf_type_member(const struct btf_type *t)
{
	return (const struct btf_member *)(t + 1);
}

static u32 __btf_member_bit_offset(const struct btf_type *t,
				   const struct btf_member *m)
{
	return BTF_INFO_KFLAG(t->info) ? BTF_MEMBER_BIT_OFFSET(m->offset) :
					 m->offset;
}

static u32 __btf_member_bitfield_size(const struct btf_type *t,
				      const struct btf_member *m)
{
	return BTF_INFO_KFLAG(t->info) ? BTF_MEMBER_BITFIELD_SIZE(m->offset) : 0;
}

#define for_each_member(i, t, member)					\
	for (i = 0, member = btf_type_member(t); i < btf_type_vlen(t);	\
	     i++, member++)

static const struct btf_type *btf_type_by_id(const struct btf *btf, u32 id)
{
	return id < btf->count ? btf->types[id] : NULL;
}

static s32 bpf_find_btf_id(const char *name, u32 kind, struct btf **btf)
{
	u32 id;

	*btf = &vmlinux;
	for (id = 1; id < vmlinux.count; id++)
		if (btf_kind(vmlinux.types[id]) == kind &&
		    !strcmp(vmlinux.strings + vmlinux.types[id]->name_off, name))
			return id;
	return -ENOENT;
}

/* Bytes that follow a type. */
static size_t tail_of(const struct btf_type *t)
{
	u32 vlen = btf_type_vlen(t);

	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		return sizeof(u32);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return vlen * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return vlen * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return vlen * 3 * sizeof(u32);
	case BTF_KIND_FUNC_PROTO:
		return vlen * sizeof(struct btf_param);
	case BTF_KIND_VAR:
		return sizeof(struct btf_var);
	case BTF_KIND_DATASEC:
		return vlen * sizeof(struct btf_var_secinfo);
	case BTF_KIND_DECL_TAG:
		return sizeof(struct btf_decl_tag);
	}
	return 0;
}

static int load(const char *path)
{
	static const struct btf_type type_void;
	const struct btf_header *head;
	const char *at, *end;
	struct stat st;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st))
		return -1;
	head = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (head == MAP_FAILED || head->magic != BTF_MAGIC)
		return -1;
	at = (const char *)head + head->hdr_len + head->type_off;
	end = at + head->type_len;
	vmlinux.strings = (const char *)head + head->hdr_len + head->str_off;
	vmlinux.types[vmlinux.count++] = &type_void;
	while (at < end && vmlinux.count < MAX_TYPES) {
		const struct btf_type *t = (const struct btf_type *)at;

		vmlinux.types[vmlinux.count++] = t;
		at += sizeof(*t) + tail_of(t);
	}
	return at == end ? 0 : -1;
}

#include "tmpl/layout.h"

int main(int argc, char **argv)
{
	if (argc != 2 || load(argv[1])) {
		printf("no BTF in %s\n", argv[1]);
		return 2;
	}
	return iosched_check_layouts() ? 1 : 0;
}
