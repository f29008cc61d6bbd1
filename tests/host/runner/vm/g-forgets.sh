#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Passes, but leaves a process and a mount behind
# kernels: 6.12
modprobe null_blk nr_devices=1 memory_backed=1 gb=1
mkfs.ext4 -q /dev/nullb0
mount /dev/nullb0 /mnt
sleep 1000 >/mnt/file &
