#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tunables and module parameters outside their range are refused with EINVAL
# and leave everything as it was
# check: 6.1
# timeout: 1200
. tests/vm/lib.sh

bad_values=("" " " -1 abc 1x 0x 99999999999999999999 4294967296 1.5 "1 2")

refused()
{
	local file=$1 value=$2 before

	before=$(<"$file")
	! printf '%s' "$value" >"$file" 2>/tmp/why || fail "$file took '$value'"
	# An empty write never reaches the kernel's store function.
	[[ -z $value || $(</tmp/why) == *'Invalid argument'* ]] ||
		fail "$file refused '$value' with: $(</tmp/why)"
	[ "$(<"$file")" = "$before" ] || fail "$file changed by '$value'"
}

# The range of a parameter stands in its description: (min..max, default x).
# Nothing for one that takes names.
range_of()
{
	modinfo -p "$1-iosched" | sed -n "s/^$2:.*(\([0-9]*\)\.\.\([0-9]*\),.*/\1 \2/p"
}

device=$(make_null_blk disk0 size=1024)
for scheduler in $(our_schedulers); do
	select_scheduler "$device" "$scheduler"
	for file in "$(queue_of "$device")"/iosched/*; do
		name=$(basename "$file")
		modinfo -p "$scheduler-iosched" | grep -c "^$name:" >/dev/null ||
			fail "$scheduler has no parameter for its tunable $name"
		for value in "${bad_values[@]:1}"; do
			refused "$file" "$value"
		done
		before=$(<"$file")
		if read -r min max < <(range_of "$scheduler" "$name"); then
			refused "$file" $((max + 1))
			[ "$min" = 0 ] || refused "$file" $((min - 1))
			# Within its range, but it may not go with the others.
			echo "$max" >"$file" 2>/tmp/why || refused "$file" "$max"
		fi
		echo "$before" >"$file" || fail "$name refused $before"
		[ "$(stat -c %A "$file")" = -rw-r--r-- ] ||
			fail "not only root can write $name"
	done
	select_scheduler "$device" none
	modprobe -r "$scheduler-iosched"

	modinfo -p "$scheduler-iosched" | while IFS=: read -r name _; do
		max=
		read -r _ max < <(range_of "$scheduler" "$name") || true
		for value in -1 abc ${max:+$((max + 1))}; do
			! modprobe "$scheduler-iosched" "$name=$value" 2>/tmp/why ||
				fail "$scheduler loads with $name=$value"
			grep -qi 'invalid' /tmp/why || fail "$name=$value: $(</tmp/why)"
		done
		[ -n "$max" ] || continue
		modprobe "$scheduler-iosched" "$name=$max" ||
			fail "$scheduler refuses $name=$max"
		modprobe -r "$scheduler-iosched"
	done
	echo "$scheduler: done"
done

# A device of its own starts from the module's parameters.
modprobe pass-iosched region_size_mb=64 read_expire=123
select_scheduler "$device" pass
[ "$(<"$(tunable "$device" region_size_mb)")" = 64 ] || fail "region_size_mb ignored"
[ "$(<"$(tunable "$device" read_expire)")" = 123 ] || fail "read_expire ignored"
select_scheduler "$device" none
modprobe -r pass-iosched

# More regions than PASS keeps: the old scheduler stays, and dmesg says why.
modprobe pass-iosched region_size_mb=1
large=$(make_null_blk large size=100000)
before=$(scheduler_of "$large")
! echo pass >"$(queue_of "$large")/scheduler" 2>/dev/null ||
	fail "pass takes 100000 regions"
[ "$(scheduler_of "$large")" = "$before" ] || fail "the old scheduler is gone"
dmesg | grep -q 'pass: region_size_mb=1 makes 100000 regions' ||
	fail "no word of why"
