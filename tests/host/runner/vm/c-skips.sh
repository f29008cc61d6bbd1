#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Skips
# kernels: 6.12
echo "skip: no reason"
exit 4
