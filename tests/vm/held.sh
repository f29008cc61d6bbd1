#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A request that a bound holds back is always woken: with every bound at 1, on
# many regions and several hardware queues, and when the bounds change
# check: 6.12
# timeout: 900
. tests/vm/lib.sh

# All jobs of a fixed number of I/Os come to their end.
flood()
{
	timeout 120 fio --name=flood --filename="$1" --rw=randrw --bs=4k \
		--direct=1 --ioengine=libaio --iodepth=16 --numjobs=4 \
		--number_ios=400 --output-format=terse >/dev/null ||
		fail "I/O on $1 does not end: $2"
	nothing_left "$1"
}

bounds()
{
	local device=$1 name

	for name in depth region_depth; do
		[ ! -e "$(tunable "$device" $name)" ] ||
			echo "$2" >"$(tunable "$device" $name)"
	done
	# The same in percent; 100 is none.
	[ ! -e "$(tunable "$device" write_share)" ] ||
		echo $((100 - 99 * $2)) >"$(tunable "$device" write_share)"
}

scripts/ssdemu load small hw_queues=4 queue_depth=16 >/dev/null
one=$(make_null_blk one size=1024 queue_mode=2 irqmode=2 \
	completion_nsec=100000 submit_queues=1 hw_queue_depth=1)
many=$(make_null_blk many size=1024 queue_mode=2 irqmode=2 \
	completion_nsec=100000 submit_queues=4 hw_queue_depth=4)

for scheduler in $(our_schedulers); do
	for device in /dev/ssdemu0 "$one" "$many"; do
		select_scheduler "$device" "$scheduler"
		[ ! -e "$(tunable "$device" region_size_mb)" ] ||
			echo 1 >"$(tunable "$device" region_size_mb)"
		bounds "$device" 1
		flood "$device" "$scheduler, bounds of 1"

		# And while the bounds come and go.
		start_load "$device"
		for _ in {1..20}; do
			bounds "$device" 1
			bounds "$device" 0
		done
		stop_load
		nothing_left "$device"
		select_scheduler "$device" none
	done
done
