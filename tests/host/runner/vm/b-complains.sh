#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Makes the kernel complain
# kernels: 6.12
echo "WARNING: made up" >/dev/kmsg
