#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Under BP a lone far write is served by its deadline, though an endless stream
# of writes in one erase block (or of other processes' slices) goes before it
# virtual-time: yes
# check: 6.12
# timeout: 900
. tests/lib/lib.sh

# Prints how many ms the far write took: far_write BASE WRITE_EXPIRE
far_write()
{
	echo "$1" >"$(tunable /dev/ssdemu0 base)"
	echo "$2" >"$(tunable /dev/ssdemu0 write_expire)"
	fio --output-format=json --filename=/dev/ssdemu0 --direct=1 --bs=4k \
		--thread \
		--name=stream --numjobs=3 --rw=randwrite --size=1m --norandommap \
		--ioengine=libaio --iodepth=8 --time_based --runtime=2 \
		--name=far --numjobs=1 --rw=write --offset=256m --size=4k \
		--ioengine=psync --number_ios=1 --startdelay=500ms |
		python3 -c 'import json, sys
print(int(json.load(sys.stdin)["jobs"][-1]["write"]["lat_ns"]["max"] / 1e6))'
}

load_ssdemu small queue_depth=1 >/dev/null
select_scheduler /dev/ssdemu0 bp
echo 64 >"$(queue_of /dev/ssdemu0)/nr_requests"
echo 2 >"$(queue_of /dev/ssdemu0)/nomerges"
echo 1000 >"$(tunable /dev/ssdemu0 slice_sync_ms)"
for base in anticipatory fair; do
	late=$(far_write $base 3600000)
	in_time=$(far_write $base 200)
	echo "$base: $in_time ms with a deadline of 200 ms, $late ms without"
	# Else the stream would be no test of the deadline.
	[ "$late" -gt 800 ] || fail "the stream did not go before the far write"
	# A jiffy, and the stream's own writes that are older, 1 ms each.
	[ "$in_time" -le 250 ] || fail "the deadline was missed"
	nothing_left /dev/ssdemu0
done
