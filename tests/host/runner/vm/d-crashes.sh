#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Makes the guest's kernel panic
# kernels: 6.12
echo c >/proc/sysrq-trigger
sleep 60
