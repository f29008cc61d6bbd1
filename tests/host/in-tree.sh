#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Linked into a kernel tree, the project has all its options in the tree's .config, and the
# tree's build makes its modules
# check: none
# timeout: 1800
set -euo pipefail

fail()
{
	echo "fail: $*"
	exit 1
}

root=$(scripts/debug-kernel --in-tree 7.2)
for source in *-iosched.c tests/kunit/*_test.c; do
	name=${source%.c}.ko
	[ "$root/linux/block/ssd-iosched/$name" -nt "$root/ssd-iosched/$source" ] ||
		fail "$name was not built in the tree"
done
[ -e "$root/linux/block/ssd-iosched/tests/ssdemu/ssdemu.ko" ] || fail "no ssdemu.ko"
grep 'CONFIG_.*\(PASS\|PIQ\|BP\|PAI\|SSD\)' "$root/linux/.config"
