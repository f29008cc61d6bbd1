#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Takes the guest down
# kernels: 6.12
echo c >/proc/sysrq-trigger
sleep 60
