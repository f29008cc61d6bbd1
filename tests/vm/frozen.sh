#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Under device-mapper, a loop device and a file system: suspended and resumed,
# frozen and thawed, CPUs going and coming, all under load, and the data is right
# kernels: 6.1 6.12
# check: 6.12
# timeout: 900
. tests/vm/lib.sh

cpu=/sys/devices/system/cpu/cpu1/online
scripts/ssdemu load small hw_queues=2 memory_backed=1 >/dev/null
modprobe -a dm-mod loop
sectors=$(blockdev --getsz /dev/ssdemu0)

for scheduler in $(our_schedulers); do
	select_scheduler /dev/ssdemu0 "$scheduler"
	echo 3 >"$(tunable /dev/ssdemu0 depth)"
	dmsetup create upper --table "0 $sectors linear /dev/ssdemu0 0"
	dmsetup mknodes
	fio --name=dm --filename=/dev/mapper/upper --rw=randwrite --bs=4k-32k \
		--ioengine=libaio --iodepth=16 --direct=1 --size=16m --loops=4 \
		--verify=crc32c --verify_fatal=1 --do_verify=1 \
		--verify_state_save=0 >/tmp/dm.log 2>&1 &
	job=$!
	for _ in {1..8}; do
		dmsetup suspend upper
		sleep 0.05
		dmsetup resume upper
		[ ! -e $cpu ] || echo 0 >$cpu
		echo 32 >/sys/block/ssdemu0/queue/nr_requests
		[ ! -e $cpu ] || echo 1 >$cpu
		echo 64 >/sys/block/ssdemu0/queue/nr_requests
	done
	wait $job || { cat /tmp/dm.log; fail "$scheduler: wrong data below dm"; }

	mkfs.ext4 -q /dev/mapper/upper
	mount /dev/mapper/upper /mnt
	truncate -s 24M /mnt/file
	losetup /dev/loop0 /mnt/file
	select_scheduler /dev/loop0 "$scheduler"
	fio --name=loop --filename=/dev/loop0 --rw=randwrite --bs=4k-32k \
		--ioengine=libaio --iodepth=8 --direct=1 --size=16m \
		--verify=crc32c --verify_fatal=1 --do_verify=1 \
		--verify_state_save=0 >/tmp/loop.log 2>&1 &
	job=$!
	for _ in {1..5}; do
		fsfreeze -f /mnt
		sleep 0.05
		fsfreeze -u /mnt
	done
	wait $job || { cat /tmp/loop.log; fail "$scheduler: wrong data on loop"; }
	nothing_left /dev/loop0
	select_scheduler /dev/loop0 none
	losetup -d /dev/loop0
	umount /mnt
	e2fsck -fn /dev/mapper/upper >/tmp/fsck.log || { cat /tmp/fsck.log; fail "$scheduler: ext4"; }
	dmsetup remove --retry upper
	nothing_left /dev/ssdemu0
	select_scheduler /dev/ssdemu0 none
done
