#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# While reads are about, writes in flight keep to write_share percent of the
# device's tags; they have them all when there is no read
# virtual-time: yes
# check: 6.12
# timeout: 900
. tests/lib/lib.sh

trace=/tmp/trace

# Most writes in flight in the trace.
most_writes()
{
	awk '$3 == "D" && $4 ~ /^W/ { if (++now > most) most = now }
		$3 == "C" && $4 ~ /^W/ { now-- }
		END { print most + 0 }' $trace
}

# Readers are there before the writer comes and when it goes.
both()
{
	fio --filename=/dev/ssdemu0 --direct=1 --bs=4k --time_based \
		--output-format=terse --name=readers --rw=randread --numjobs=2 \
		--ioengine=psync --runtime=2 --name=writer --rw=randwrite \
		--ioengine=libaio --iodepth=64 --startdelay=500ms --runtime=1 \
		>/dev/null
}

alone()
{
	fio --filename=/dev/ssdemu0 --direct=1 --bs=4k --output-format=terse \
		--name=writer --rw=randwrite --ioengine=libaio --iodepth=64 \
		--number_ios=2000 >/dev/null
}

load_ssdemu small queue_depth=16 >/dev/null
select_scheduler /dev/ssdemu0 pass
for share in 75:12 30:4 1:1 100:16; do
	echo "${share%:*}" >"$(tunable /dev/ssdemu0 write_share)"
	trace_run /dev/ssdemu0 $trace both
	[ "$(most_writes)" = "${share#*:}" ] ||
		fail "write_share ${share%:*}: $(most_writes) writes in flight, not ${share#*:}"
done
echo 1 >"$(tunable /dev/ssdemu0 write_share)"
# Until the last read is forgotten.
sleep 1
trace_run /dev/ssdemu0 $trace alone
[ "$(most_writes)" = 16 ] || fail "$(most_writes) writes in flight without a read"
nothing_left /dev/ssdemu0
