#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# In virtual time the same run gives the same, to the nanosecond, wherever the project is
# timeout: 600
set -euo pipefail

# Run in the folder of a project: I/Os per second of fio on a null_blk whose timer takes
# 100 us, and all that the guest's clock, interrupts and modules can tell.
measure()
{
	# shellcheck disable=SC2016  # for the guest's shell
	scripts/lab --virtual-time -- bash -c '
		. tests/lib/lib.sh
		device=$(make_null_blk n0 irqmode=2 completion_nsec=100000)
		fio --name=rate --filename=$device --rw=randread --direct=1 \
			--ioengine=libaio --iodepth=32 --runtime=1 --time_based \
			--minimal | cut -d";" -f8
		cat /proc/uptime /proc/interrupts
		sha256sum /lib/modules/*/updates/*
		date +%s.%N'
}

first=$(measure)
elsewhere=$RESULTS/virtual-time/in-another-folder
rm -rf "${elsewhere%/*}"
mkdir -p "$elsewhere"
tar -c --exclude=./build --exclude=./.git . | tar -x -C "$elsewhere"
second=$(cd "$elsewhere" && measure)
echo "$first"
[ "${first%%$'\n'*}" -gt 1000 ] || { echo "fail: fewer than 1000 I/Os a second"; exit 1; }
[ "$first" = "$second" ] || { echo "fail: other figures the second time:"; echo "$second"; exit 1; }
