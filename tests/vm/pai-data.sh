#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Data survive being cut and merged by PAI in every way: fio's verify, ext4 and
# XFS on top, discards
# memory: 2G
# check: 6.12
# timeout: 900
. tests/lib/lib.sh

device=/dev/ssdemu0
scripts/ssdemu load small capacity_mb=400 memory_backed=1 max_request_kb=512 >/dev/null
modprobe -a ext4 xfs

# SSD-A of the paper, and sizes that are whole numbers of nothing.
ways=("split=pas align=page clustered_page_kb=16 read_buffer_kb=256 write_buffer_kb=255"
	"split=pasa align=page clustered_page_kb=16 read_buffer_kb=256 write_buffer_kb=255"
	"split=pasa align=block clustered_block_kb=5120 read_buffer_kb=3072 write_buffer_kb=112"
	"split=pasa align=page clustered_page_kb=3 read_buffer_kb=7 write_buffer_kb=1")

files()
{
	local root=/mnt/pai kind=$1

	case $kind in
	ext4) mkfs.ext4 -q -F $device ;;
	xfs) mkfs.xfs -q -f $device ;;
	esac
	mkdir -p $root
	mount -o discard $device $root
	for size in 3 70 256 1000 9000; do
		head -c "${size}k" /dev/urandom >$root/$size
	done
	(cd $root && sha256sum -- * >/tmp/sums 2>/dev/null) || [ -s /tmp/sums ]
	cp $root/9000 $root/gone
	sync
	rm $root/gone
	umount $root
	blockdev --flushbufs $device
	mount $device $root
	fstrim $root
	(cd $root && sha256sum -c --quiet /tmp/sums) || fail "a file on $kind has changed"
	umount $root
	case $kind in
	ext4) e2fsck -f -n $device >/tmp/fsck.log 2>&1 ;;
	xfs) xfs_repair -n $device >/tmp/fsck.log 2>&1 ;;
	esac || {
		cat /tmp/fsck.log
		fail "the $kind is damaged"
	}
}

for way in "${ways[@]}"; do
	select_scheduler $device pai
	for setting in $way; do
		echo "${setting#*=}" >"$(tunable $device "${setting%%=*}")"
	done
	sleep 0.2
	fio_verify $device --bsrange=4k-1m --size=24m \
		--output-format=terse >/dev/null
	files ext4
	files xfs
	blkdiscard -f $device
	cmp -n $((32 << 20)) $device /dev/zero || fail "discarded blocks are not zero"
	nothing_left $device
	select_scheduler $device none
	echo "verified: $way"
done
