#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# In virtual time the same run gives the same figure, to 0.1 %
# timeout: 600
set -euo pipefail

# I/Os per second of fio on a null_blk whose timer takes 100 us.
measure()
{
	# shellcheck disable=SC2016  # for the guest's shell
	scripts/lab --no-modules --virtual-time -- bash -c '
		. tests/vm/lib.sh
		device=$(make_null_blk n0 irqmode=2 completion_nsec=100000)
		fio --name=rate --filename=$device --rw=randread --direct=1 \
			--ioengine=libaio --iodepth=32 --runtime=1 --time_based \
			--minimal | cut -d";" -f8'
}

first=$(measure)
second=$(measure)
echo "first $first, second $second I/Os per second"
awk -v a="$first" -v b="$second" 'BEGIN { d = a > b ? a - b : b - a; exit !(a > 0 && d <= a / 1000) }'
