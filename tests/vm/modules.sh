#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Each module of ours loads by name; each scheduler loads itself when selected
# timeout: 900
. tests/lib/lib.sh

loaded()
{
	[ -d "/sys/module/${1//-/_}" ]
}

ours=$(cd "/lib/modules/$(uname -r)/updates" && ls)
[ -n "$ours" ] || fail "the guest has no module of ours"
for file in $ours; do
	name=${file%.ko}
	options=()
	# A debug kernel has the unit tests, which run when they are loaded: for this, briefly.
	[[ $name != *_test ]] || options=(sequences=10)
	modprobe "$name" "${options[@]}"
	loaded "$name" || fail "$name is not loaded after modprobe"
	modprobe -r "$name"
	! loaded "$name" || fail "$name is still loaded after modprobe -r"
done

device=$(make_null_blk disk0)
for file in $ours; do
	name=${file%.ko}
	[[ $name == *-iosched ]] || continue
	select_scheduler "$device" "${name%-iosched}"
	loaded "$name" || fail "$name did not load itself"
	! modprobe -q -r "$name" || fail "$name went away while in use"
	select_scheduler "$device" none
	modprobe -r "$name" || fail "$name is still in use under none"
done
drop_null_blk disk0
