#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Makes the kernel complain, with flags that a CPU can have, and with those of a kernel thread
# kernels: 6.12
echo "WARNING: made up" >/dev/kmsg
echo "RSP: 0018:ffffc90000013f28 EFLAGS: 003f7fd7" >/dev/kmsg
echo "RSP: 0000:0000000000000000 EFLAGS: 00000000" >/dev/kmsg
