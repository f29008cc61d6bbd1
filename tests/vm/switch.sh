#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Switching among all schedulers at random under load loses no request: 500 times
# on each stock kernel, ten times that in a soak
# kernels: 6.1 6.12
# timeout: 600
. tests/vm/lib.sh

modprobe -a bfq kyber-iosched
scripts/ssdemu load small hw_queues=2 memory_backed=1 >/dev/null
device=$(make_null_blk many size=1024 queue_mode=2 irqmode=2 \
	completion_nsec=50000 submit_queues=4 hw_queue_depth=8)
mapfile -t schedulers < <(our_schedulers; printf '%s\n' none mq-deadline kyber bfq)
switches=$((${SOAK:-0} ? 2500 : 250))

# Without a process for each: that would be most of the time.
RANDOM=${SEED:-1}
for target in "$device" /dev/ssdemu0; do
	file=$(queue_of "$target")/scheduler
	# Not all that the CPUs can do: they are to switch, too.
	start_load "$target" --numjobs=2 --rate_iops=400
	for ((i = 0; i < switches; i++)); do
		name=${schedulers[RANDOM % ${#schedulers[@]}]}
		echo "$name" >"$file" || fail "$name was refused on $target"
		read -r now <"$file"
		[[ $now == *"[$name]"* ]] || fail "$target runs $now, not $name"
	done
	stop_load
	select_scheduler "$target" none
done
for scheduler in $(our_schedulers); do
	modprobe -r "$scheduler-iosched" || fail "$scheduler does not unload"
done
echo "counted: switches=$((2 * switches))"
