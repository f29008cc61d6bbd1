#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A device that is removed under load takes nothing down with it
# timeout: 900
. tests/vm/lib.sh

for scheduler in $(our_schedulers); do
	for _ in {1..5}; do
		scripts/ssdemu load small hw_queues=2 >/dev/null
		select_scheduler /dev/ssdemu0 "$scheduler"
		echo 4 >"$(tunable /dev/ssdemu0 depth)"
		start_load /dev/ssdemu0 --numjobs=2
		wait_for grep -qE '^be read [1-9]' \
			/sys/kernel/debug/block/ssdemu0/sched/stats
		scripts/ssdemu unload
		# fio ends by the errors that it must get.
		! wait "$load_pid" || fail "fio saw no error on a removed device"
		[ ! -e /sys/block/ssdemu0 ] || fail "ssdemu0 is still there"
	done
	modprobe -r "$scheduler-iosched" || fail "$scheduler is still in use"
done
