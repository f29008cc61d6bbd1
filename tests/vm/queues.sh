#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Devices of all shapes: one tag, many queues, tags shared by two devices, a
# driver that sleeps, polled queues under io_uring: all I/O ends, the data is right
# kernels: 6.1 6.12
# check: 6.12
# timeout: 900
. tests/vm/lib.sh

# shape NAME SCHEDULER [attribute=value...]
shape()
{
	local name=$1 scheduler=$2 device

	shift 2
	device=$(make_null_blk "$name" size=64 memory_backed=1 queue_mode=2 "$@")
	select_scheduler "$device" "$scheduler"
	echo 2 >"$(tunable "$device" depth)"
	fio_verify "$device" --size=4m --output-format=terse >/dev/null
	echo 0 >"$(tunable "$device" depth)"
	fio_verify "$device" --size=4m --numjobs=2 --offset_increment=4m \
		--output-format=terse >/dev/null
	nothing_left "$device"
	select_scheduler "$device" none
	drop_null_blk "$name"
}

# Polled: completions come from the submitter's own polling.
polled()
{
	local device

	device=$(make_null_blk polled size=64 memory_backed=1 queue_mode=2 \
		submit_queues=2 poll_queues=1)
	select_scheduler "$device" "$1"
	fio_verify "$device" --ioengine=io_uring --hipri --size=4m \
		--output-format=terse >/dev/null
	nothing_left "$device"
	select_scheduler "$device" none
	drop_null_blk polled
}

for scheduler in $(our_schedulers); do
	shape onetag "$scheduler" irqmode=2 completion_nsec=50000 submit_queues=1 \
		hw_queue_depth=1
	shape many "$scheduler" irqmode=2 completion_nsec=50000 submit_queues=4 \
		hw_queue_depth=2
	shape sleepy "$scheduler" blocking=1 submit_queues=2 hw_queue_depth=4
	shape soft "$scheduler" irqmode=1 submit_queues=2 hw_queue_depth=64
	polled "$scheduler"
	echo "$scheduler: shapes done"
done

# Two devices that take their tags from one set.
modprobe -r null_blk
modprobe null_blk nr_devices=2 gb=1 shared_tags=1 hw_queue_depth=4 queue_mode=2 \
	irqmode=2 completion_nsec=50000 submit_queues=2
for scheduler in $(our_schedulers); do
	for device in /dev/nullb0 /dev/nullb1; do
		select_scheduler $device "$scheduler"
	done
	start_load /dev/nullb0
	timeout 120 fio --name=shared --filename=/dev/nullb1 --rw=randrw --bs=4k \
		--direct=1 --ioengine=libaio --iodepth=16 --number_ios=3000 \
		--output-format=terse >/dev/null || fail "$scheduler: shared tags starve"
	stop_load
	for device in /dev/nullb0 /dev/nullb1; do
		nothing_left $device
		select_scheduler $device none
	done
done
