#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The test runner gives each test its own verdict, whatever other tests do
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
pass i-faults
fail j-faults-again
pass waits
pass waits-too
skip skips
pass z-passes"

rm -f build/runner-faults
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
[ "$(tail -n 1 "$out.out")" = \
	"7 passed, 7 failed, 2 skipped, 2 repeated: QEMU failed" ]
# A fault of QEMU is the only reason to repeat a test, once.
[ "$(awk '$1 == "again" { print $3, $10 }' "$out.out")" = "i-faults 0f789002
j-faults-again 00000026" ]
grep -q 'EFLAGS: 0f789002' "$out/6.12/i-faults.sh.log.fault"
grep -q "QEMU corrupted the CPU's flags: EFLAGS 0f789002 cannot exist" "$out"/6.12/*
# It prints ten lines of a failed test.
[ "$(grep -c '^      | [0-9]*$' "$out.out")" = 10 ]
# The logs have all output and the kernel's complaints.
[ "$(tail -n 1 "$out/6.12/a-passes.sh.log")" = 20000 ]
grep -q 'WARNING: made up' "$out/6.12/b-complains.sh.log"
grep -qx '1 CPUs, possible: 0' "$out/6.12/h-cpus@1cpu.sh.log"
grep -qx '2 CPUs, possible: 0-1' "$out/6.12/h-cpus@2cpu.sh.log"
# Of a file with several numbers of CPUs, only the named test runs, or that of the check line.
list()
{
	tests/run --tests tests/host/runner --list "$@" | awk '{ print $1, $2 }' | grep h-cpus
}
[ "$(list)" = "h-cpus@2cpu 6.12" ]
[ "$(list h-cpus@1cpu)" = "h-cpus@1cpu 6.12" ]
[ "$(list h-cpus)" = "h-cpus@1cpu 6.12
h-cpus@2cpu 6.12" ]
# With --quick those with such a line run, on its kernels.
[ "$(tests/run --tests tests/host/runner --list --quick | awk '{ print $1, $2 }')" = "skips host
h-cpus@2cpu 6.12" ]
# The summary has the ten slowest of sixteen, the time and the logs; summary.json each boot.
[ "$(grep '^slowest: ' "$out.out" | tr , '\n' | wc -l)" = 10 ]
grep -qE "^[0-9]+ s, logs: ${out#"$PWD/"}\$" "$out.out"
/usr/bin/python3 - "$out/summary.json" <<-'EOF'
	import json, sys
	with open(sys.argv[1], encoding="utf-8") as file:
	    found = json.load(file)
	boots = [each for guest in found["guests"] for each in guest["boots"]]
	# Guests of one and of two CPUs, and anew after a crash, complaints and faults.
	assert len(boots) >= 6 and min(boots) > 1, boots
	assert all(test["cpu_seconds"] is not None for test in found["tests"]
	           if test["kernel"] == "host"), found
EOF
# A run with only skips fails, and so does an unknown test.
if tests/run --tests tests/host/runner --results "$out" skips ||
	tests/run --tests tests/host/runner --results "$out" no-such-test; then
	echo "fail: status 0 although nothing passed"
	exit 1
fi
# A run that selects no test for the kernel fails.
said=$(tests/run --tests tests/host/runner --results "$out" --kernel host a-passes 2>&1) && {
	echo "fail: status 0 although nothing ran"
	exit 1
}
[ "$said" = "0 passed, 0 failed, 0 skipped" ]
# When the time is over, what has no result is named, and is neither passed nor failed.
said=$(RUNNER_WAITS=too timeout 60 tests/run --tests tests/host/runner --results "$out-late" \
	--within 10 waits waits-too)
grep -q '^no time for 1 of 2 tests, .*: waits-too host$' <<<"$said"
[ "$(tail -n 1 <<<"$said")" = "1 passed, 0 failed, 0 skipped" ]
# A signal ends it with what it has started.
RUNNER_WAITS=1 tests/run --tests tests/host/runner --results "$out-waits" waits waits-too \
	>"$out.waits" &
runner=$!
trap 'kill -TERM "$runner" 2>/dev/null || true' EXIT
for try in $(seq 100); do
	mapfile -t waiting < <(pgrep -P "$runner" -x sleep || true)
	[ ${#waiting[@]} != 2 ] || break
	sleep 0.2
done
[ ${#waiting[@]} = 2 ] || { echo "fail: the tests do not wait after $try tries"; exit 1; }
kill -TERM "$runner"
status=0
timeout 60 tail --pid="$runner" -f /dev/null || { echo "fail: a signal does not end it"; exit 1; }
wait "$runner" || status=$?
[ "$status" = 130 ]
[ "$(tail -n 1 "$out.waits")" = "interrupted: 0 passed, 0 failed, 0 skipped so far" ]
if ps -o stat= -p "${waiting[0]},${waiting[1]}" | grep -v Z; then
	echo "fail: a test goes on after the run"
	exit 1
fi
