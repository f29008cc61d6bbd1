#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# scripts/system returns a command's status and output, keeps what a boot leaves for the next one,
# and reports a panic, a complaint of the kernel and a service that fails
# kernels: debian-12
# check: none
# timeout: 7200
set -euo pipefail

# scripts/system's status must be STATUS: expect STATUS OPTION...
expect()
{
	local want=$1 got=0

	shift
	scripts/system "$KERNEL" "$@" || got=$?
	if [ "$got" != "$want" ]; then
		echo "fail: status $got, not $want, of: $*"
		exit 1
	fi
}

expect 42 --boot 'echo left >/root/left; sync' --boot 'cat /root/left; exit 42' >"$RESULTS"/out
grep -qx left "$RESULTS"/out
expect 255 --boot 'echo c >/proc/sysrq-trigger' 2>"$RESULTS"/err
grep -q 'the guest was lost' "$RESULTS"/err
expect 255 --boot 'echo "WARNING: a complaint" >/dev/kmsg' 2>"$RESULTS"/err
grep -q 'WARNING: a complaint' "$RESULTS"/err
expect 255 --boot 'printf "[Service]\nExecStart=/bin/false\n[Install]\nWantedBy=multi-user.target\n" \
		>/etc/systemd/system/fails.service
	systemctl enable fails.service' --boot true 2>"$RESULTS"/err
grep -q 'the system is degraded' "$RESULTS"/err
expect 125 --frobnicate
