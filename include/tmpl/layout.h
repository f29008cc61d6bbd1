/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Compares the layouts in the running kernel with those that the module was
 * compiled for. A kernel that is rebuilt under the same release name keeps its
 * vermagic, whatever its structs look like. With CONFIG_MODVERSIONS the module
 * loader notices, because a symbol's version covers the types behind it.
 * Without, the kernel's BTF tells, if a module may look types up in it (7.2).
 *
 * iosched-kernel.h lists the structs and the digests of their layouts
 * (IOSCHED_LAYOUTS), which scripts/kbuild/gen-kernel-header has from the BTF of the
 * kernel that is built for.
 */
#ifndef _IOSCHED_TMPL_LAYOUT_H
#define _IOSCHED_TMPL_LAYOUT_H

#include "iosched-kernel.h"

#if defined(IOSCHED_LAYOUTS) && defined(IOSCHED_HAVE_FIND_BTF_ID)
#include <linux/btf.h>
#include <linux/init.h>
#include <linux/printk.h>

/* FNV-1a of the bytes of @number, the lowest first. */
static u32 __init iosched_layout_mix(u32 digest, u32 number)
{
	unsigned int i;

	for (i = 0; i < 4; i++, number >>= 8)
		digest = (digest ^ (number & 0xff)) * 0x01000193;
	return digest;
}

/* The type behind typedefs, qualifiers and tags. */
static const struct btf_type * __init
iosched_layout_strip(const struct btf *btf, u32 id)
{
	const struct btf_type *t = btf_type_by_id(btf, id);

	while (t)
		switch (btf_kind(t)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_CONST:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG:
			t = btf_type_by_id(btf, t->type);
			break;
		default:
			return t;
		}
	return NULL;
}

/*
 * Add the layout of the struct or union @t at bit @base to @digest, all that it
 * embeds included. Structs embed each other a few levels deep only. The same as
 * Btf.digest() in scripts/kbuild/kernel_btf.py.
 */
static u32 __init
iosched_layout_digest(const struct btf *btf, const struct btf_type *t,
		      u32 base, u32 digest)
{
	const struct btf_member *member;
	u32 i;

	digest = iosched_layout_mix(digest, t->size);
	for_each_member(i, t, member) {
		const struct btf_type *inner;
		u32 offset = base + __btf_member_bit_offset(t, member);

		digest = iosched_layout_mix(digest, offset);
		digest = iosched_layout_mix(digest,
					    __btf_member_bitfield_size(t, member));
		inner = iosched_layout_strip(btf, member->type);
		switch (inner ? btf_kind(inner) : BTF_KIND_UNKN) {
		case BTF_KIND_STRUCT:
		case BTF_KIND_UNION:
			digest = iosched_layout_digest(btf, inner, offset,
						       digest);
			break;
		case BTF_KIND_INT:
		case BTF_KIND_ENUM:
		case BTF_KIND_ENUM64:
		case BTF_KIND_FLOAT:
			digest = iosched_layout_mix(digest, inner->size);
			break;
		}
	}
	return digest;
}

struct iosched_layout {
	const char *name;
	u32 digest;
};

#define IOSCHED_LAYOUT(type, digest) { #type, digest },

/*
 * Return -ENOEXEC if a struct of the running kernel differs from that of the kernel
 * for which the module was compiled. A kernel without BTF is another kernel: the
 * digests are from BTF.
 */
static int __init iosched_check_layouts(void)
{
	static const struct iosched_layout layouts[] __initconst = {
		IOSCHED_LAYOUTS
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(layouts); i++) {
		const struct btf_type *t = NULL;
		struct btf *btf;
		s32 id;

		/*
		 * This takes a reference that a module cannot put. It stays, on
		 * the kernel's own BTF, which is never freed.
		 */
		id = bpf_find_btf_id(layouts[i].name, BTF_KIND_STRUCT, &btf);
		if (id > 0)
			t = btf_type_by_id(btf, id);
		if (!t || iosched_layout_digest(btf, t, 0, 0x811c9dc5) !=
			  layouts[i].digest) {
			pr_err("%s: struct %s differs from that of the kernel for which the module was built: build the module again\n",
			       KBUILD_MODNAME, layouts[i].name);
			return -ENOEXEC;
		}
	}
	return 0;
}
#else
static inline int iosched_check_layouts(void)
{
	return 0;
}
#endif

#endif /* _IOSCHED_TMPL_LAYOUT_H */
