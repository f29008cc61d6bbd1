#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The unit tests of the core and of each scheduler pass in User Mode Linux, with at least
# 10,000 random sequences each, 1,000 with --quick (SEED=n repeats them), and execute at least 90 % of the lines;
# a failed case, a missing plan and a truncated report are detected
# timeout: 1800
# quick: host
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/kernel-health.sh
. scripts/kernel-health.sh

sequences=$([ "${TEST_QUICK:-}" ] && echo 1000 || echo 10000)
seed=${SEED:-$((RANDOM * 32768 + RANDOM + 1))}
results=$PWD/build/kunit
names=()
for source in *-iosched.c core-iosched.c; do
	names+=("${source%-iosched.c}")
done

fail()
{
	echo "fail: $*"
	exit 1
}

# Succeed if a report is complete, all suites passed, and the kernel did not complain.
judge()
{
	tests/kunit/check-ktap "$1" "${names[@]/%/-iosched}" || return 1
	if grep -aE -A 20 "$health_patterns" "$1"; then
		echo "fail: the kernel complains"
		return 1
	fi
	/usr/bin/python3 "$root/linux/tools/testing/kunit/kunit.py" parse "$1"
}

# Run the kernel, with its console in a file: boot LOG ARG...
boot()
{
	local log=$1

	shift
	GCOV_PREFIX=$results/gcov timeout -k 10 1200 \
		"$results/linux" mem=512M uml_dir="$results" con=null con0=null,fd:1 \
		kunit.enable=1 kunit_shutdown=halt "$@" </dev/null >"$log" 2>&1
}

rm -rf "$results"
root=$(scripts/kunit-kernel "$results")
echo "seed $seed"
boot "$results/log" "${names[@]/%/_test.seed=$seed}" \
	"${names[@]/%/_test.sequences=$sequences}" ||
	fail "the kernel ended with $?: $(tail -n 20 "$results/log")"
judge "$results/log" || fail "see $results/log; SEED=$seed repeats it"
# Random cases print their number of sequences.
[ "$(grep -c " $sequences sequences, seed=$seed\$" "$results/log")" -ge ${#names[@]} ] ||
	fail "not $sequences sequences of each"
find "$results/gcov" -name '*_test.gcda' -exec mv {} "$results" \;
rm -r "$results/gcov"
tests/kunit/coverage 90 "$results"

# Reports that judge() must reject.
sed '0,/^1\.\.[0-9]/{/^1\.\.[0-9]/d}' "$results/log" >"$results/no-plan"
sed '0,/^    1\.\.[0-9]/{/^    1\.\.[0-9]/d}' "$results/log" >"$results/no-plan-of-a-suite"
sed '/^    ok 3 /,$d' "$results/log" >"$results/broken-off"
sed '0,/^    ok 3 /{s/^    ok 3 /    not ok 3 /}' "$results/log" >"$results/failed"
sed 's/^    ok 3 /BUG: sleeping\n&/' "$results/log" >"$results/complains"
boot "$results/nothing" kunit.filter_glob=none || true
for bad in no-plan no-plan-of-a-suite broken-off failed complains nothing; do
	! cmp -s "$results/log" "$results/$bad" || fail "$bad: the report is unchanged"
	! judge "$results/$bad" >"$results/said" 2>&1 || fail "$bad: the report is accepted"
	echo "$bad: $(tail -n 1 "$results/said")"
done
