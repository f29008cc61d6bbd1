#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# I/O errors, lost commands that time out and commands that come back unserved:
# each I/O ends, once, as success or as error, and none stays in the scheduler
# kernels: 6.1 6.12
# check: 6.12
# timeout: 900
. tests/vm/lib.sh

driver=/sys/bus/pseudo/drivers/scsi_debug

# inject OPTS EVERY_NTH: from now on so; a sum of
# 0x4 lost, 0x8 recovered error, 0x10 transport error, 0x80 short transfer,
# 0x8000 host busy
inject()
{
	echo "$2" >$driver/every_nth
	echo "$1" >$driver/opts
}

# A number of I/Os, all of which have to end; prints how many had an error.
load()
{
	timeout 120 fio --name=errors --filename="$device" --rw=randrw --bs=4k-32k \
		--direct=1 --ioengine=libaio --iodepth=16 --numjobs=2 \
		--number_ios="$1" --continue_on_error=all --output-format=json \
		--group_reporting >/tmp/load.json 2>/tmp/load.log ||
		[ $? != 124 ] || fail "I/O does not end"
	sed -n 's/.*"total_err" : \([0-9]*\).*/\1/p' /tmp/load.json | head -n 1
}

device=$(make_scsi_debug dev_size_mb=64 ndelay=50000 max_queue=16)
echo 2 >"/sys/block/${device#/dev/}/device/timeout"
faults=0
for scheduler in $(our_schedulers); do
	select_scheduler "$device" "$scheduler"
	echo 4 >"$(tunable "$device" depth)"
	for opts in 0x8 0x10 0x80 0x8000; do
		inject $opts 7
		errors=$(load 200)
		inject 0 0
		echo "$scheduler, opts $opts: ${errors:-0} errors"
		faults=$((faults + 400 / 7))
		nothing_left "$device"
	done
	# Lost ones are waited for: few.
	inject 0x4 100
	load 60 >/dev/null
	inject 0 0
	faults=$((faults + 1))
	nothing_left "$device"
	fio_verify "$device" --size=8m --output-format=terse >/dev/null
	select_scheduler "$device" none
done
modprobe -r scsi_debug
echo "counted: faults=$faults"
