#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Files that the guest writes stay in the guest, except in build/
set -euo pipefail

mark=$RESULTS/from-guest
rm -f "$mark"
scripts/lab --no-modules -- sh -c "
	set -e
	echo guest >/etc/hostname.lab
	echo guest >README.lab
	rm scripts/lab
	echo guest >$mark"
for file in /etc/hostname.lab README.lab; do
	[ ! -e "$file" ] || { echo "fail: the guest wrote $file"; exit 1; }
done
[ -x scripts/lab ] || { echo "fail: the guest removed a file"; exit 1; }
grep -qx guest "$mark"
