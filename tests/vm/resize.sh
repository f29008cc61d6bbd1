#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# PASS divides a device anew when its capacity or region_size_mb changes, also
# under load, and verifies through it
# check: 6.12
# timeout: 900
. tests/vm/lib.sh

regions()
{
	sed -n 's/^# \([0-9]*\) regions.*/\1/p' /sys/kernel/debug/block/loop0/sched/regions
}

modprobe loop
truncate -s 64M /tmp/file
losetup --direct-io=off /dev/loop0 /tmp/file
modprobe pass-iosched region_size_mb=16
select_scheduler /dev/loop0 pass
[ "$(regions)" = 4 ] || fail "$(regions) regions of 64 MB"

start_load /dev/loop0 --size=64m
truncate -s 256M /tmp/file
losetup -c /dev/loop0
wait_for sh -c 'grep -q "^# 16 regions" /sys/kernel/debug/block/loop0/sched/regions'
for size in 1 100 7 4096 3 1 16; do
	echo $size >"$(tunable /dev/loop0 region_size_mb)"
	[ "$(regions)" = $(((256 + size - 1) / size)) ] ||
		fail "$(regions) regions of $size MB"
	echo $((RANDOM % 3)) >"$(tunable /dev/loop0 region_depth)"
done
stop_load
nothing_left /dev/loop0

(
	for size in 1 100 7 64 {2..20}; do
		echo "$size" >"$(tunable /dev/loop0 region_size_mb)"
		sleep 0.05
	done
) &
fio_verify /dev/loop0 --output-format=terse >/dev/null
wait
nothing_left /dev/loop0
select_scheduler /dev/loop0 none
losetup -d /dev/loop0
