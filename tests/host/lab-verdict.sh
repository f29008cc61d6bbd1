#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The lab returns a command's status and output, and reports every crash; files that the guest
# writes stay in the guest, except in build/
# timeout: 600
set -euo pipefail

# The lab's status must be STATUS: expect STATUS OPTION... -- COMMAND...
expect()
{
	local want=$1 got=0

	shift
	scripts/lab --no-modules "$@" || got=$?
	if [ "$got" != "$want" ]; then
		echo "fail: status $got, not $want, of: $*"
		exit 1
	fi
}

# Each guest shows several things, because a boot takes long. The kernel must not use cmpxchg16b,
# with which QEMU 7.2 corrupts the flags.
mark=$RESULTS/from-guest
rm -f "$mark"
expect 42 -- sh -c "
	set -e
	echo seen
	echo heard >&2
	if grep -qw cx16 /proc/cpuinfo; then exit 1; fi
	echo guest >/etc/hostname.lab
	echo guest >README.lab
	rm scripts/lab
	echo guest >$mark
	exit 42" >"$RESULTS"/out 2>"$RESULTS"/err
grep -qx seen "$RESULTS"/out
grep -qx heard "$RESULTS"/err
for file in /etc/hostname.lab README.lab; do
	[ ! -e "$file" ] || { echo "fail: the guest wrote $file"; exit 1; }
done
[ -x scripts/lab ] || { echo "fail: the guest removed a file"; exit 1; }
grep -qx guest "$mark"
# sysrq c makes the kernel panic; QEMU itself exits with 0.
expect 255 -- sh -c 'echo c >/proc/sysrq-trigger'
expect 124 --timeout 20 -- sleep 3600 2>"$RESULTS"/err
# The kernel of a guest that hangs has printed its tasks and CPUs.
grep -q 'sysrq: Show Blocked State' "$RESULTS"/err
grep -q 'sysrq: Show backtrace of all active CPUs' "$RESULTS"/err
# A skip does not hide a complaint, and a complaint does not hide a failure. Flags that cannot exist
# have a status of their own: see runner.sh.
expect 1 -- sh -c 'echo "BUG: a complaint" >/dev/kmsg; exit 4'
expect 3 -- sh -c 'echo "WARNING: a complaint, EFLAGS: 00000246" >/dev/kmsg; exit 3' \
	2>"$RESULTS"/err
grep -q 'WARNING: a complaint' "$RESULTS"/err
expect 125 --kernel no-such-kernel -- true
expect 125 --cpus none -- true
expect 125 --frobnicate -- true
