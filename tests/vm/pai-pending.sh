#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# PAI keeps no request pending beyond its bound, neither under load nor when the
# device is idle, and delays a lone request not at all
# virtual-time: yes
# check: 6.12
# timeout: 900
. tests/vm/lib.sh

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

# Load that keeps the device busy, and small unaligned requests beside it.
busy()
{
	fio --name=large --filename=$device --rw=write --bs=256k --direct=1 \
		--ioengine=libaio --iodepth=4 --number_ios=300 --size=128m \
		--name=small --filename=$device --rw=randrw --bs=4k --direct=1 \
		--ioengine=libaio --iodepth=8 --number_ios=1500 \
		--offset=128m --size=256m --output-format=terse >/dev/null
}

# Each small request goes within US of its insertion. The device has room at any
# time, but who runs the queue then is a worker, which waits for its turn on the
# only CPU: that takes a few milliseconds at most.
within()
{
	awk -v us="$2" '$5 >= 262144 && $6 == 8 && $3 == "I" { at[$5] = $1 }
		$5 >= 262144 && $6 == 8 && $3 == "D" && $5 in at {
			seen++
			waited = ($1 - at[$5]) * 1e6
			if (waited > longest)
				longest = waited
			if (waited > us / 2)
				late++
			delete at[$5]
		}
		END {
			printf "%d small requests, %d waited for more than half of %d us, at most %d us\n",
				seen, late, us, longest
			if (seen < 1000 || !late || longest > us + 4000)
				exit 1
		}' "$1" || fail "a bound of $2 us"
}

select_scheduler $device none
none=$(lone)
select_scheduler $device pai
for name in read write; do
	echo 1000000 >"$(tunable $device ${name}_pending_us)"
	echo 256 >"$(tunable $device ${name}_buffer_kb)"
done
idle=$(lone)
echo "a lone read takes $none ns under none, $idle ns under pai"
[ $((idle - none)) -lt 5000 ] || fail "a lone read is delayed"
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

for us in 10000 50000; do
	for name in read write; do
		echo $us >"$(tunable $device ${name}_pending_us)"
	done
	trace_run $device /tmp/trace busy
	nothing_left $device
	within /tmp/trace $us
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

for name in read write; do
	echo 10000000 >"$(tunable $device ${name}_pending_us)"
done
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
