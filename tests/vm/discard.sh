#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Discards and write-zeroes go through each scheduler and do what they say
# timeout: 900
. tests/vm/lib.sh

device=$(make_scsi_debug dev_size_mb=64 lbpu=1 lbpws=1 lbprz=1 \
	max_queue=16 ndelay=20000)

zero()
{
	cmp -s -n $(($2 << 20)) -i $(($1 << 20)):0 "$device" /dev/zero
}

for scheduler in $(our_schedulers); do
	select_scheduler "$device" "$scheduler"
	dd if=/dev/urandom of="$device" bs=1M count=64 oflag=direct status=none
	! zero 8 4 || fail "nothing was written"
	blkdiscard -o $((8 << 20)) -l $((4 << 20)) "$device"
	fallocate -z -o $((20 << 20)) -l $((4 << 20)) "$device" 2>/dev/null ||
		blkdiscard -z -o $((20 << 20)) -l $((4 << 20)) "$device"
	sync
	echo 3 >/proc/sys/vm/drop_caches
	zero 8 4 || fail "$scheduler: discarded blocks are not zero"
	zero 20 4 || fail "$scheduler: zeroed blocks are not zero"
	! zero 12 4 || fail "$scheduler: too much was discarded"

	# Many small discards beside writes.
	fio --name=trim --filename="$device" --rw=randtrim --bs=64k --direct=1 \
		--ioengine=libaio --iodepth=8 --number_ios=400 \
		--name=write --filename="$device" --rw=randwrite --bs=4k \
		--direct=1 --ioengine=libaio --iodepth=8 --number_ios=400 \
		--output-format=terse >/dev/null || fail "fio's trims failed"
	nothing_left "$device"
	select_scheduler "$device" none
done
modprobe -r scsi_debug
