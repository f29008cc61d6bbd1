#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Requests that the driver hands back (host busy, every other one) come back
# and complete, each once, with right data
# timeout: 900
. tests/vm/lib.sh

# 0x8000: scsi_debug answers every_nth command with SCSI_MLQUEUE_HOST_BUSY.
device=$(make_scsi_debug dev_size_mb=64 every_nth=2 opts=0x8000 \
	ndelay=50000 max_queue=32)
for scheduler in $(our_schedulers); do
	select_scheduler "$device" "$scheduler"
	fio_verify "$device" --size=16m --output-format=terse >/dev/null
	nothing_left "$device"
	select_scheduler "$device" none
done
modprobe -r scsi_debug
