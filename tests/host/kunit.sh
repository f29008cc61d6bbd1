#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The unit tests of the core and of each scheduler pass on the debug kernel 7.2,
# say so completely, and execute at least 90 % of the lines; a test that fails
# or breaks off is noticed
# timeout: 1800
set -euo pipefail

fail()
{
	echo "fail: $*"
	exit 1
}

results=$PWD/build/kunit
root=$(scripts/debug-kernel 7.2)
kunit=$root/linux/tools/testing/kunit/kunit.py

# A complete plan of tests, all of which passed.
judge()
{
	if ! grep -qE '^ *KTAP version' "$1" || ! grep -qE '^1\.\.[1-9]' "$1"; then
		echo "no KTAP plan in $1"
		return 1
	fi
	/usr/bin/python3 "$kunit" parse "$1"
}

rm -rf "$results"
mkdir -p "$results"
scripts/lab -q --kernel debug-7.2 --timeout 1500 -- tests/kunit/load "$results" ||
	fail "the guest ended with $?"
for source in *-iosched.c core; do
	name=$(basename "$source" -iosched.c)_test
	judge "$results/$name.ktap" || fail "$name"
	cp "build/$(basename "$(echo "$root"/lib/modules/*)")/tests/kunit/$name.gcno" "$results"
done
tests/kunit/coverage 90 "$results"

# What must not pass: the plan gone, the end gone, one case failed.
name=$results/core_test.ktap
sed '/^ *1\.\.[0-9]/d' "$name" >"$results/no-plan"
sed '/ok [2-9][0-9]* core_/,$d' "$name" >"$results/broken-off"
sed 's/^\( *\)ok 2 core_/\1not ok 2 core_/' "$name" >"$results/failed"
for bad in no-plan broken-off failed; do
	! judge "$results/$bad" >/dev/null 2>&1 || fail "$bad is taken for a pass"
done
