#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# In virtual time the same run gives the same figures, to the nanosecond, in any folder
# timeout: 600
set -euo pipefail

# Print the I/Os per second of fio on a null_blk whose timer takes 100 us, and the guest's
# clock, interrupts and modules. Runs in the current folder's project.
measure()
{
	# shellcheck disable=SC2016  # for the guest's shell
	scripts/lab --virtual-time -- bash -c '
		set -e
		modprobe null_blk nr_devices=1 irqmode=2 completion_nsec=100000
		fio --name=rate --filename=/dev/nullb0 --rw=randread --direct=1 \
			--ioengine=libaio --iodepth=32 --runtime=1 --time_based \
			--minimal | cut -d";" -f8
		cat /proc/uptime /proc/interrupts
		sha256sum /lib/modules/*/updates/*
		date +%s.%N'
}

# Print a digest of the guest's files, kernel and options.
digest()
{
	scripts/lab --virtual-time --digest -- true
}

before=$(digest)
first=$(measure)
elsewhere=$RESULTS/virtual-time/in-another-folder
rm -rf "${elsewhere%/*}"
mkdir -p "$elsewhere"
tar -c --exclude=./build --exclude=./.git . | tar -x -C "$elsewhere"
second=$(cd "$elsewhere" && measure)
after=$(cd "$elsewhere" && digest)
[ "$before" = "$after" ] || {
	echo "fail: the guests have other files, perhaps from packages installed meanwhile"
	exit 1
}
echo "$first"
[ "${first%%$'\n'*}" -gt 1000 ] || { echo "fail: fewer than 1000 I/Os per second"; exit 1; }
[ "$first" = "$second" ] || { echo "fail: the second run has other figures:"; echo "$second"; exit 1; }
