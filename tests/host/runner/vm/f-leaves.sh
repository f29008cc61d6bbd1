#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Leaves a module behind that is in use
# kernels: 6.12
modprobe null_blk
exec 3</dev/nullb0
setsid sleep 1000 <&3 &
# In this test's session it would be ended with it.
until pgrep -s $! >/dev/null; do
	sleep 0.1
done
