#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# On an NVMe disk of several queues: right data, also through flushes and FUA,
# and the disk may go while it is busy
# kernels: 6.1 6.12
# nvme: 128M
# check: 6.12
# timeout: 900
. tests/vm/lib.sh

modprobe nvme
wait_for test -b /dev/nvme0n1
pci=$(readlink -f /sys/class/nvme/nvme0/device)
[ "$(find /sys/block/nvme0n1/mq -mindepth 1 -maxdepth 1 -type d | wc -l)" -gt 1 ] ||
	fail "one queue only"
for scheduler in $(our_schedulers); do
	select_scheduler /dev/nvme0n1 "$scheduler"
	fio_verify /dev/nvme0n1 --size=16m --numjobs=2 --offset_increment=16m \
		--fsync=50 --output-format=terse >/dev/null
	fio_verify /dev/nvme0n1 --size=4m --sync=dsync --output-format=terse >/dev/null
	nothing_left /dev/nvme0n1
	echo 4 >"$(tunable /dev/nvme0n1 depth)"
	start_load /dev/nvme0n1 --numjobs=2
	echo 1 >"$pci/remove"
	! wait "$load_pid" || fail "fio saw no error on a removed disk"
	modprobe -r "$scheduler-iosched" || fail "$scheduler is still in use"
	echo 1 >/sys/bus/pci/rescan
	wait_for test -b /dev/nvme0n1
done
