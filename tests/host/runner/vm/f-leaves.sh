#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Leaves a module behind, in use
# kernels: 6.12
modprobe null_blk
exec 3</dev/nullb0
setsid sleep 1000 <&3 &
# In the session of the test it would be killed.
until pgrep -s $! >/dev/null; do
	sleep 0.1
done
