#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# PAI keeps no request pending beyond its bound, neither under load nor when the
# device is idle, lets nothing younger go before one whose time is over, however
# busy the drive is, and delays a lone request not at all
# virtual-time: yes
# check: 6.12
# timeout: 900
. tests/lib/lib.sh

device=/dev/ssdemu0
scripts/ssdemu load small queue_depth=64 max_request_kb=256 >/dev/null

# Mean latency in ns of lone reads of 4 KB.
lone()
{
	fio --name=lone --filename=$device --rw=randread --bs=4k --direct=1 \
		--ioengine=psync --number_ios=200 --output-format=json |
		python3 -c 'import json, sys
print(int(json.load(sys.stdin)["jobs"][0]["read"]["clat_ns"]["mean"]))'
}

# A figure of PAI's: figure read|write COLUMN
figure()
{
	awk -v dir="$1" -v name="$2" '
		NR == 1 {
			for (i = 1; i <= NF; i++)
				if ($i == name)
					column = i
		}
		$1 == dir { print $column }' \
		/sys/kernel/debug/block/ssdemu0/sched/classes
}

# Load that keeps the device busy, and small unaligned requests beside it. It leaves
# the only CPU to whoever else wants it: a worker runs the queue when one is due.
busy()
{
	chrt --idle 0 fio --name=large --filename="$device" --rw=write --bs=256k --direct=1 \
		--ioengine=libaio --iodepth=4 --number_ios=300 --size=128m \
		--name=small --filename="$device" --rw=randrw --bs=4k --direct=1 \
		--ioengine=libaio --iodepth=8 --number_ios=1500 \
		--offset=128m --size=256m --output-format=terse >/dev/null
}

# Of each small request: how long after its time was over it went (US after its
# insertion), and how many younger ones went in between, but for what it takes to wake
# up the queue: SLACK. A drive that is full keeps one request that was chosen before
# in the block layer's hands: MOST. Sets what all that is: overdue TRACE US MOST
overdue()
{
	awk -v us="$2" -v most="$3" -v slack="$slack" '
		$3 == "I" { came[$5] = $1 }
		$3 == "I" && $5 >= 262144 && $6 == 8 { waits[$5] = $1 }
		$3 == "D" && $5 in came {
			for (at in waits) {
				late = ($1 - waits[at]) * 1e6 - us
				if (late > slack && came[$5] > waits[at])
					passed[at]++
			}
			if ($5 in waits) {
				seen++
				late = ($1 - waits[$5]) * 1e6 - us
				due += late > 0
				if (late > longest)
					longest = late
				if (passed[$5] > worst)
					worst = passed[$5]
				delete waits[$5]
				delete passed[$5]
			}
			delete came[$5]
		}
		END { printf "%d %d %d %d\n", seen, due, longest, worst
			exit seen < 1000 || due < 50 || worst > most }' \
		"$1" >/tmp/overdue || failed=1
	read -r seen due longest worst </tmp/overdue
	echo "$2 us: $due of $seen small requests due, they went up to $longest us later," \
		"up to $worst younger ones in between"
	[ ! "${failed-}" ] || fail "at most $3 may"
}

# What any scheduler takes, mq-deadline takes as well.
select_scheduler $device mq-deadline
other=$(lone)
# In us: five lone reads, so that it fits kernels that debug, too.
slack=$((other / 200))
select_scheduler $device pai
for name in read write; do
	echo 1000000 >"$(tunable $device ${name}_pending_us)"
	echo 256 >"$(tunable $device ${name}_buffer_kb)"
done
idle=$(lone)
echo "a lone read takes $other ns under mq-deadline, $idle ns under pai"
[ $((idle - other)) -lt $((other / 32)) ] || fail "a lone read is delayed"
[ "$(figure read pending)" = 200 ] ||
	fail "of 200 small reads $(figure read pending) were pending"
[ "$(figure read expired)" = 0 ] ||
	fail "$(figure read expired) lone reads were pending to their bound"

# A second by the bound, but the device is idle long before.
fio --name=pair --filename=$device --rw=randwrite --bs=4k --direct=1 \
	--ioengine=libaio --iodepth=2 --iodepth_batch=2 --number_ios=100 \
	--output-format=terse >/dev/null
[ "$(figure write pending)" -gt 0 ] || fail "no write was pending"
[ "$(figure write longest_us)" -lt 100000 ] ||
	fail "a write was pending for $(figure write longest_us) us while the device was idle"

set_bounds()
{
	local name

	for name in read write; do
		echo "$1" >"$(tunable "$device" ${name}_pending_us)"
	done
}

# The device has room at any time.
for us in 2000 10000 50000; do
	set_bounds $us
	trace_run $device /tmp/trace busy
	nothing_left $device
	overdue /tmp/trace $us 0
	[ "$longest" -lt "$slack" ] || fail "one went $longest us after its time was over"
done
for dir in read write; do
	[ "$(figure $dir expired)" -gt 0 ] ||
		fail "no $dir was pending to its bound"
done

# A bound that is made shorter holds for those who wait, too.
waiting_reads()
{
	scheduler_stats $device "be read" | cut -d' ' -f7
}

waits()
{
	[ "$(waiting_reads)" = "$1" ]
}

set_bounds 10000000
start_load $device --rw=write --bs=256k --iodepth=16 --size=128m
fio --name=one --filename=$device --rw=randread --bs=4k --direct=1 \
	--offset=128m --size=256m --number_ios=1 --output-format=terse \
	>/dev/null &
one=$!
wait_for waits 1
sleep 0.2
waits 1 || fail "nothing keeps the read waiting: the load proves nothing"
echo 1000 >"$(tunable $device read_pending_us)"
sleep 0.1
waits 0 || fail "a shorter bound has no effect on a waiting read"
wait $one
stop_load

# A drive that takes one request at a time is what the requests wait for then. All
# have the same deadline, or reads would go before older writes after theirs.
device=/dev/$(scripts/ssdemu load small queue_depth=1 max_request_kb=256)
wait_for test -b "$device"
select_scheduler "$device" pai
echo 128 >"$(queue_of "$device")/nr_requests"
for name in read write; do
	echo 256 >"$(tunable "$device" ${name}_buffer_kb)"
	echo 5000 >"$(tunable "$device" ${name}_expire)"
done
for us in 2000 10000; do
	set_bounds $us
	trace_run "$device" /tmp/trace busy
	nothing_left "$device"
	overdue /tmp/trace $us 1
done
