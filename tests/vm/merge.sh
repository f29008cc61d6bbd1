#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Neighbouring requests merge at their back and at their front, but a request
# never crosses a region border of PASS by merging
# timeout: 900
. tests/lib/lib.sh

# A debug kernel submits so slowly that nothing would be queued for 2 ms.
delay=2000000
[ ! -e /sys/kernel/debug/kmemleak ] || delay=20000000
device=$(make_null_blk disk0 size=1024 queue_mode=2 irqmode=2 \
	completion_nsec=$delay submit_queues=1 hw_queue_depth=2)

# Writers beside each other, so that requests meet in the scheduler and not in
# one task's plug. Prints how many merged.
merges()
{
	select_scheduler "$device" none
	select_scheduler "$device" "$1"
	echo 256 >"$(queue_of "$device")/nr_requests"
	fio --name=neighbours --filename="$device" --rw="$2" --bs=4k --direct=1 \
		--ioengine=libaio --iodepth=8 --numjobs=8 --offset=4m \
		--offset_increment=4k --size=2m --number_ios=64 \
		--output-format=terse >/dev/null
	nothing_left "$device"
	scheduler_stats "$device" | cut -d' ' -f2
}

for scheduler in $(our_schedulers); do
	[ "$(merges "$scheduler" write:28k)" -gt 0 ] ||
		fail "$scheduler: no back merge of neighbouring writers"
	[ "$(merges "$scheduler" read:28k)" -gt 0 ] ||
		fail "$scheduler: no merge of neighbouring readers"
done

# 1 MB regions and a stream over eight borders, from two tasks in turn.
select_scheduler "$device" none
modprobe -r pass-iosched
modprobe pass-iosched region_size_mb=1
select_scheduler "$device" pass
echo 256 >"$(queue_of "$device")/nr_requests"
trace_run "$device" /tmp/trace \
	fio --name=stream --filename="$device" --rw=write:4k --bs=4k \
	--direct=1 --ioengine=libaio --iodepth=16 --numjobs=2 \
	--offset_increment=4k --size=8m --output-format=terse >/dev/null
nothing_left "$device"
merged=$(scheduler_stats "$device" | cut -d' ' -f2)
[ "$merged" -gt 0 ] || fail "nothing merged in the stream"
awk '$3 == "D" && int($5 / 2048) != int(($5 + $6 - 1) / 2048) {
		print "crosses a border:", $0
		bad = 1
	}
	$3 == "D" { seen++ }
	END { exit bad || seen < 100 }' /tmp/trace || fail "see above"
