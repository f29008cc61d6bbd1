#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Inside the guest: unpack a tar file into an ext4 on an emulated SSD that keeps
# its data, under PASS; mount it again, check every file, check the file system.
#   tests/bench/ext4-tree.sh TAR SHA256SUMS
# shellcheck source=tests/lib/lib.sh
. tests/lib/lib.sh
tar=$1
sums=$2
device=/dev/ssdemu0
root=/mnt/ext4-tree

# A gigabyte is enough, and mkfs is soon done with it.
load_ssdemu sata capacity_mb=1024 memory_backed=1 >/dev/null
select_scheduler $device pass
mkfs.ext4 -q -F $device
mkdir -p $root
mount $device $root
tar -x -f "$tar" -C $root
umount $root
blockdev --flushbufs $device
mount $device $root
files=$(find $root -type f -not -path '*/lost+found/*' | wc -l)
[ "$files" = "$(wc -l <"$sums")" ] || fail "$files files are back"
(cd $root && sha256sum -c --quiet) <"$sums" || fail "a file has changed"
umount $root
e2fsck -f -n $device >/tmp/e2fsck.log 2>&1 || {
	cat /tmp/e2fsck.log
	fail "the file system is damaged"
}
nothing_left $device
read -r inserted merged dispatched _ < <(scheduler_stats $device)
echo "{\"files\": $files, \"inserted\": $inserted, \"merged\": $merged, \"dispatched\": $dispatched}"
