#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Every tunable of ours, nr_requests, read_ahead_kb and max_sectors_kb may be
# rewritten at random under load: a write takes or is refused, no request is lost
# kernels: 6.1 6.12
# check: 6.12
# timeout: 900
. tests/vm/lib.sh

RANDOM=${SEED:-1}
values=(0 1 2 3 5 8 16 31 64 100 512 4096 65535)
scripts/ssdemu load small hw_queues=2 >/dev/null
many=$(make_null_blk many size=1024 queue_mode=2 irqmode=2 \
	completion_nsec=50000 submit_queues=4 hw_queue_depth=8)
taken=0

rewrite()
{
	local file=$1 value=$2

	if echo "$value" >"$file" 2>/tmp/why; then
		taken=$((taken + 1))
	else
		grep -qE 'Invalid argument|busy' /tmp/why ||
			fail "$file refuses $value with: $(</tmp/why)"
	fi
}

for scheduler in $(our_schedulers); do
	for device in /dev/ssdemu0 "$many"; do
		select_scheduler "$device" "$scheduler"
		queue=$(queue_of "$device")
		files=("$queue"/iosched/* "$queue"/{nr_requests,read_ahead_kb,max_sectors_kb})
		# Where it isn't among the scheduler's own.
		[ ! -e "$queue/async_depth" ] || files+=("$queue/async_depth")
		start_load "$device" --bs=4k-64k
		for ((i = 0; i < 10 * ${#files[@]}; i++)); do
			rewrite "${files[i % ${#files[@]}]}" \
				"${values[RANDOM % ${#values[@]}]}"
		done
		stop_load
		nothing_left "$device"
		select_scheduler "$device" none
	done
done
[ "$taken" -gt 100 ] || fail "only $taken writes were taken"
echo "counted: rewrites=$taken"
