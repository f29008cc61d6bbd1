#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A zoned device: before 6.10 the kernel refuses a scheduler that does not lock
# zones, and the device stays as it was; later ones plug writes by zone, and any
# scheduler keeps their order
# kernels: 6.1 6.12
# timeout: 900
. tests/lib/lib.sh

device=$(make_null_blk zoned size=256 zoned=1 zone_size=16 memory_backed=1 \
	queue_mode=2 irqmode=2 completion_nsec=50000 submit_queues=2)
for scheduler in $(our_schedulers); do
	modprobe "$scheduler-iosched"
	before=$(scheduler_of "$device")
	if ! series_at_least 6.10; then
		! echo "$scheduler" >"$(queue_of "$device")/scheduler" 2>/tmp/why ||
			fail "$scheduler taken without zone locking"
		grep -q 'Invalid argument' /tmp/why || fail "why: $(</tmp/why)"
		[ "$(scheduler_of "$device")" = "$before" ] || fail "the old scheduler is gone"
		! grep -qw "$scheduler" "$(queue_of "$device")/scheduler" ||
			fail "$scheduler is offered for a zoned device"
		continue
	fi
	select_scheduler "$device" "$scheduler"
	fio --name=zoned --filename="$device" --zonemode=zbd --rw=write --bs=16k \
		--ioengine=libaio --iodepth=8 --direct=1 --size=64m --verify=crc32c \
		--verify_fatal=1 --do_verify=1 --verify_state_save=0 \
		>/tmp/zoned.log 2>&1 || { cat /tmp/zoned.log; fail "$scheduler: zoned"; }
	nothing_left "$device"
	select_scheduler "$device" none
done
