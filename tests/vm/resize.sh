#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# PASS divides a device anew when its capacity or region_size_mb changes, also
# under load, and verifies through it
# check: 6.12
# timeout: 900
. tests/lib/lib.sh

# The number of regions must be this; no process for it.
has_regions()
{
	local line

	read -r line </sys/kernel/debug/block/loop0/sched/regions
	[[ $line == "# $1 regions"* ]]
}

modprobe loop
truncate -s 64M /tmp/file
losetup --direct-io=off /dev/loop0 /tmp/file
modprobe pass-iosched region_size_mb=16
select_scheduler /dev/loop0 pass
iosched=$(queue_of /dev/loop0)/iosched
has_regions 4 || fail "not 4 regions of 64 MB"

start_load /dev/loop0 --size=64m
truncate -s 256M /tmp/file
losetup -c /dev/loop0
wait_for has_regions 16
for size in 1 100 7 4096 3 1 16; do
	echo $size >"$iosched/region_size_mb"
	has_regions $(((256 + size - 1) / size)) || fail "other regions of $size MB"
	echo $((RANDOM % 3)) >"$iosched/region_depth"
done
stop_load
nothing_left /dev/loop0

mkfifo /tmp/never
exec 7<>/tmp/never
fio_verify /dev/loop0 --size=16m --output-format=terse >/dev/null &
verify=$!
changes=0
while kill -0 $verify 2>/dev/null; do
	echo $((1 + changes++ % 100)) >"$iosched/region_size_mb"
	read -r -t 0.05 -u 7 || true
done
wait $verify || fail "wrong data"
[ $changes -gt 4 ] || fail "verified before anything changed"
nothing_left /dev/loop0
select_scheduler /dev/loop0 none
losetup -d /dev/loop0
