#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Switching among all schedulers at random under load loses no request
# timeout: 900
. tests/vm/lib.sh

modprobe -a bfq kyber-iosched
scripts/ssdemu load small hw_queues=2 memory_backed=1 >/dev/null
device=$(make_null_blk many size=1024 queue_mode=2 irqmode=2 \
	completion_nsec=50000 submit_queues=4 hw_queue_depth=8)
mapfile -t schedulers < <(our_schedulers; printf '%s\n' none mq-deadline kyber bfq)

RANDOM=${SEED:-1}
for target in "$device" /dev/ssdemu0; do
	start_load "$target" --numjobs=2
	for _ in {1..60}; do
		select_scheduler "$target" \
			"${schedulers[RANDOM % ${#schedulers[@]}]}"
	done
	stop_load
	select_scheduler "$target" none
done
for scheduler in $(our_schedulers); do
	modprobe -r "$scheduler-iosched" || fail "$scheduler does not unload"
done
