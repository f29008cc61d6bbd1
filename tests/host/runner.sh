#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The test runner gives each test its own verdict, whatever the others do
# timeout: 900
set -euo pipefail
out=$RESULTS/runner

want="fail fails
pass a-passes
fail b-complains
skip c-skips
fail d-crashes
fail e-hangs
fail f-leaves
pass g-forgets
fail h-cpus@1cpu
pass h-cpus@2cpu
pass z-passes"

if tests/run --all --tests tests/host/runner --results "$out" >"$out.out"; then
	echo "fail: status 0 although tests failed"
	exit 1
fi
cat "$out.out"
got=$(awk '$1 ~ /^(pass|FAIL|skip)$/ { print tolower($1), $3 }' "$out.out")
[ "$(sort <<<"$got")" = "$(sort <<<"$want")" ] || {
	echo "fail: other verdicts than:"
	echo "$want"
	exit 1
}
[ "$(tail -n 1 "$out.out")" = "4 passed, 6 failed, 1 skipped" ]
# No more than ten lines of a failed test.
[ "$(grep -c '^      | [0-9]*$' "$out.out")" = 10 ]
# All that was said is in the log, and what the kernel complained of.
[ "$(tail -n 1 "$out/6.12/a-passes.sh.log")" = 20000 ]
grep -q 'WARNING: made up' "$out/6.12/b-complains.sh.log"
grep -qx '1 CPUs' "$out/6.12/h-cpus@1cpu.sh.log"
grep -qx '2 CPUs' "$out/6.12/h-cpus@2cpu.sh.log"
# Of a file that makes several tests one runs if it alone is named, or make check asks for it.
list()
{
	tests/run --tests tests/host/runner --list "$@" | awk '{ print $1, $2 }' | grep h-cpus
}
[ "$(list)" = "h-cpus@2cpu 6.12" ]
[ "$(list h-cpus@1cpu)" = "h-cpus@1cpu 6.12" ]
[ "$(list h-cpus)" = "h-cpus@1cpu 6.12
h-cpus@2cpu 6.12" ]
# Nothing but skips is no success, nor is a test that isn't there.
if tests/run --tests tests/host/runner --results "$out" c-skips ||
	tests/run --tests tests/host/runner --results "$out" no-such-test; then
	echo "fail: status 0 although nothing passed"
	exit 1
fi
# Nor are tests that don't run on the kernel; that is no failure of any of them.
said=$(tests/run --tests tests/host/runner --results "$out" --kernel host a-passes 2>&1) && {
	echo "fail: status 0 although nothing ran"
	exit 1
}
[ "$said" = "0 passed, 0 failed, 0 skipped" ]
