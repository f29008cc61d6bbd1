#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What a cgroup's io.max allows is what it gets, under each scheduler too
# virtual-time: yes
# kernels: 6.1 6.12
# check: 6.12
# timeout: 900
. tests/vm/lib.sh

limit=$((4 << 20))	# bytes per second
cgroup=/sys/fs/cgroup/limited
device=$(make_null_blk disk0 size=1024 queue_mode=2 irqmode=2 completion_nsec=50000)
echo +io >/sys/fs/cgroup/cgroup.subtree_control
mkdir $cgroup
number=$(<"/sys/block/${device#/dev/}/dev")
for scheduler in $(our_schedulers); do
	select_scheduler "$device" "$scheduler"
	echo "$number rbps=$limit wbps=$limit" >$cgroup/io.max
	for rw in randread randwrite; do
		done=$(bash -c "echo \$\$ >$cgroup/cgroup.procs; exec fio --name=limited \
			--filename=$device --rw=$rw --bs=16k --direct=1 --ioengine=libaio \
			--iodepth=8 --time_based --runtime=4 --output-format=json" |
			sed -n 's/.*"bw_bytes" : \([1-9][0-9]*\).*/\1/p' | head -n 1)
		echo "$scheduler $rw: $done bytes per second, limit $limit"
		# Throttling works in slices of time: a tenth either way.
		[ "$done" -le $((limit + limit / 10)) ] || fail "above the limit"
		[ "$done" -ge $((limit - limit / 10)) ] || fail "below the limit"
	done
	nothing_left "$device"
	select_scheduler "$device" none
done
rmdir $cgroup
