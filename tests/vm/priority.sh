#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The real-time class goes before the best-effort one, and that before idle;
# but nobody waits longer than prio_aging_expire for the device
# virtual-time: yes
# timeout: 900
. tests/vm/lib.sh

device=$(make_null_blk disk0 size=1024 queue_mode=2 irqmode=2 \
	completion_nsec=500000 submit_queues=1 hw_queue_depth=4)

# Three readers, one a class; prints the I/Os of each in a second.
readers()
{
	fio --output-format=json --filename="$device" --direct=1 --rw=randread \
		--bs=4k --ioengine=libaio --iodepth=16 --time_based --runtime=1 \
		--name=rt --prioclass=1 --name=be --prioclass=2 \
		--name=idle --prioclass=3 |
		python3 -c 'import json, sys
print(*(job["read"]["total_ios"] for job in json.load(sys.stdin)["jobs"]))'
}

for scheduler in $(our_schedulers); do
	select_scheduler "$device" "$scheduler"
	# The scheduler orders what it holds, not those who wait for its tags.
	echo 256 >"$(queue_of "$device")/nr_requests"
	echo 0 >"$(tunable "$device" depth)"
	read -r rt be idle < <(readers)
	echo "$scheduler: rt $rt, be $be, idle $idle I/Os"
	# Without order each had a third: 8000 / 3.
	[ "$rt" -gt $((10 * (be + idle) + 100)) ] || fail "rt had no precedence"

	echo 100 >"$(tunable "$device" prio_aging_expire)"
	read -r rt be idle < <(readers)
	echo "$scheduler: rt $rt, be $be, idle $idle I/Os when aging after 100 ms"
	[ "$be" -gt 100 ] || fail "a waiting be request did not age"
	[ "$idle" -gt 100 ] || fail "a waiting idle request did not age"
	nothing_left "$device"
	select_scheduler "$device" none
done
