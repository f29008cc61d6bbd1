#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# ext4 and xfs under each scheduler pass their fsck after a reset under load, and have every
# file that fsync() had made durable
# kernels: 6.1 6.12 debug-6.1 debug-6.12 debug-7.2
# check: 6.12
# timeout: 900
set -euo pipefail

fail()
{
	echo "fail: $*"
	exit 1
}

work=$RESULTS/crash
limit=300
[[ $KERNEL != debug-* ]] || limit=1500
rm -rf "$work"
mkdir -p "$work"
trap 'rm -f "$work"/*.img' EXIT

disks=()
for scheduler in *-iosched.c; do
	for kind in ext4 xfs; do
		file=$work/${scheduler%.c}.$kind.img
		truncate -s 320M "$file"
		disks+=("--disk-image=$file")
	done
done
status=0
scripts/lab -q --kernel "$KERNEL" --timeout $limit "${disks[@]}" -- \
	tests/crash-guest write "$work" >"$work/out" 2>&1 || status=$?
# 255: the guest ended without a verdict.
if [ $status != 255 ] || ! grep -qx writing "$work/out"; then
	fail "the guest did not reset while writing (status $status): $(tail -n 5 "$work/out")"
fi
scripts/lab -q --kernel "$KERNEL" --timeout $limit "${disks[@]}" -- \
	tests/crash-guest check "$work"
