#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Makes the kernel panic, with flags that no CPU can have, each time
# kernels: 6.12
echo "RSP: 0000:fffffe0000010f28 EFLAGS: 00000026" >/dev/kmsg
echo c >/proc/sysrq-trigger
sleep 60
