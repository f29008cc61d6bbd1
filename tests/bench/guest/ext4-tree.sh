#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Inside the guest: unpack a tar file on ext4 under PASS, on an emulated SSD that stores
# its data. Mount it again, check every file, check the file system.
#   tests/bench/guest/ext4-tree.sh TAR SHA256SUMS
set -euo pipefail
tar=$1
sums=$2
device=/dev/ssdemu0
root=/mnt/ext4-tree

fail()
{
	echo "fail: $*"
	exit 1
}

# One gigabyte is enough and keeps mkfs short.
scripts/ssdemu load sata capacity_mb=1024 memory_backed=1 >/dev/null
until [ -b $device ]; do
	sleep 0.1
done
echo pass >/sys/block/ssdemu0/queue/scheduler
mkfs.ext4 -q -F $device
mkdir -p $root
mount $device $root
tar -x -f "$tar" -C $root
umount $root
blockdev --flushbufs $device
mount $device $root
files=$(find $root -type f -not -path '*/lost+found/*' | wc -l)
[ "$files" = "$(wc -l <"$sums")" ] || fail "only $files files were found"
(cd $root && sha256sum -c --quiet) <"$sums" || fail "a file has changed"
umount $root
e2fsck -f -n $device >/tmp/e2fsck.log 2>&1 || {
	cat /tmp/e2fsck.log
	fail "the file system is damaged"
}
# Sum over classes and directions.
read -r inserted merged dispatched completed _ _ queued in_flight < <(
	awk 'NR > 1 { for (i = 3; i <= 10; i++) sum[i] += $i }
	     END { for (i = 3; i <= 10; i++) printf "%d ", sum[i]; print "" }' \
		/sys/kernel/debug/block/ssdemu0/sched/stats)
if [ "$inserted" = 0 ] || [ $((merged + completed)) != "$inserted" ] ||
	[ "$queued$in_flight" != 00 ]; then
	fail "inserted $inserted, merged $merged, completed $completed, queued $queued, in flight $in_flight"
fi
echo "{\"files\": $files, \"inserted\": $inserted, \"merged\": $merged, \"dispatched\": $dispatched}"
