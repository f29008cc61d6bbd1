#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does not end
# kernels: 6.12
# timeout: 3
sleep 1000
