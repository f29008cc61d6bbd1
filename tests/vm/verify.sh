#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What fio writes through each scheduler of ours it reads back, on the emulated
# SSD, null_blk (one and several queues) and virtio-blk: 256 MB for each scheduler,
# 1 GB in a soak
# disk: 128M
# timeout: 900
. tests/vm/lib.sh

modprobe virtio_blk
scripts/ssdemu load small memory_backed=1 >/dev/null
one=$(make_null_blk one memory_backed=1 size=128 queue_mode=2 irqmode=1)
many=$(make_null_blk many memory_backed=1 size=128 queue_mode=2 irqmode=2 \
	completion_nsec=20000 submit_queues=4 hw_queue_depth=16)

loops=$((${SOAK:-0} ? 4 : 1))
bytes=0
for scheduler in $(our_schedulers); do
	for device in /dev/ssdemu0 "$one" "$many" /dev/vda; do
		select_scheduler "$device" "$scheduler"
		fio_verify "$device" --loops=$loops --output-format=terse >/dev/null
		bytes=$((bytes + loops * (64 << 20)))
		nothing_left "$device"
		select_scheduler "$device" none
		echo "$scheduler on $device: verified"
	done
done
echo "counted: verified_bytes=$bytes"
