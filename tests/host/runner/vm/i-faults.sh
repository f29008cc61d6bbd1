#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Makes the kernel complain, with flags that no CPU can have, and passes when it is repeated
# kernels: 6.12
[ ! -e build/runner-faults ] || exit 0
touch build/runner-faults
echo "WARNING: made up" >/dev/kmsg
echo "RSP: 0000:fffffe0000010f28 EFLAGS: 0f789002" >/dev/kmsg
