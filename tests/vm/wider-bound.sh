#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Requests that a bound holds back go as soon as the bound is widened, not at
# the next completion
# check: 6.12
# timeout: 900
. tests/lib/lib.sh

# "nanoseconds jiffies": the kernel's clocks now.
clocks()
{
	awk '/^now at/ { now = $3 } /^jiffies:/ { print now, $2; exit }' /proc/timer_list
}

# How many jiffies a second has.
hz()
{
	local begun ended

	read -ra begun < <(clocks)
	sleep 1
	read -ra ended < <(clocks)
	echo $(((ended[1] - begun[1]) * 1000000000 / (ended[0] - begun[0])))
}

# Nothing completes for 20 seconds.
device=$(make_scsi_debug dev_size_mb=64 max_queue=16)
echo 600 >"/sys/block/${device#/dev/}/device/timeout"
echo $((20 * $(hz))) >/sys/bus/pseudo/drivers/scsi_debug/delay

# The scheduler's counters must become: completed queued in_flight.
state()
{
	local want="$1" completed queued in_flight

	for _ in {1..100}; do
		read -r _ _ _ completed _ _ queued in_flight \
			< <(scheduler_stats "$device")
		[ "$completed $queued $in_flight" != "$want" ] || return 0
		sleep 0.05
	done
	fail "completed, queued, in flight: $completed $queued $in_flight, not $want"
}

try()
{
	local scheduler=$1 bound=$2 load

	select_scheduler "$device" "$scheduler"
	# A deadline ends what a bound does.
	echo 3600000 >"$(tunable "$device" read_expire)"
	echo 1 >"$(tunable "$device" "$bound")"
	fio --name=few --filename="$device" --rw=randread --bs=4k --direct=1 \
		--ioengine=libaio --iodepth=4 --number_ios=4 \
		--output-format=terse >/dev/null &
	load=$!
	state "0 3 1"
	echo 3 >"$(tunable "$device" "$bound")"
	state "0 1 3"
	echo 0 >"$(tunable "$device" "$bound")"
	state "0 0 4"
	wait $load
	nothing_left "$device"
	select_scheduler "$device" none
	echo "$scheduler: $bound"
}

for scheduler in $(our_schedulers); do
	try "$scheduler" depth
done
try pass region_depth
modprobe -r scsi_debug
