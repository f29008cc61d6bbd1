#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two tests in one file; passes with two CPUs
# kernels: 6.12
# cpus: 1 2
# check: 6.12@2
# quick: 6.12@2
echo "$(nproc) CPUs, possible: $(cat /sys/devices/system/cpu/possible)"
[ "$(nproc)" = 2 ]
