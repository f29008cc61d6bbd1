#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Traces are converted to replays that fio accepts, with the same requests at the same times,
# compressed, folded and aligned on request; malformed lines are reported by number and fail; a
# reader that ends early is no error worth a word
# timeout: 300
# quick: host
set -euo pipefail
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
convert=tools/trace-to-fio/trace-to-fio

fail()
{
	echo "fail: $*"
	exit 1
}

# The conversion of a file must equal another file: becomes FILE EXPECTED [OPTION...]
becomes()
{
	local from=$1 to=$2

	shift 2
	$convert "$@" "$work/$from" >"$work/out" || fail "$from $*"
	diff "$work/$to" "$work/out" || fail "$from $*: not as expected"
	echo "$from $*: as expected"
}

cat >"$work/csv" <<END
ts_us,dev,op,offset,size
1000.000,0,W,8192,4096
1250.000,0,R,0,512
4000.500,0,R,1048576,1024
END
cat >"$work/expected" <<END
fio version 3 iolog
0 /dev/replay add
0 /dev/replay open
1 /dev/replay write 8192 4096
251 /dev/replay read 0 512
3001 /dev/replay read 1048576 1024
3001 /dev/replay close
END
# The same requests in every format. Times of msr are in units of 100 ns, here not ascending.
cat >"$work/msr" <<END
128166372000010000,hm,1,Write,8192,4096,50
128166372000040005,hm,1,Read,1048576,1024,50
128166372000012500,hm,1,Read,0,512,50
END
cat >"$work/spc" <<END
0,16,4096,W,0.001
0,0,512,r,0.00125
0,2048,1024,R,0.0040005,more
END
cat >"$work/blkparse" <<END
  8,0    1        1     0.001000000   697  Q   W 16 + 8 [fio]
  8,0    1        2     0.001000100   697  G   W 16 + 8 [fio]
  8,0    1        0     0.001100000     0  m   N cfq697 slice expired
  8,0    1        3     0.001250000   697  Q  RS 0 + 1 [fio]
  8,0    1        4     0.001260000   697  Q  DS 64 + 8 [fio]
  8,0    1        5     0.001270000   697  Q FWS [fio]
  8,0    0        6     0.004000500   697  Q   R 2048 + 2 [fio]
CPU0 (8,0):
 Reads Queued:           2,        1KiB	 Writes Queued:           1,        4KiB
END
becomes csv expected
becomes msr expected
becomes spc expected
becomes blkparse expected
gzip -k "$work/csv"
becomes csv.gz expected
$convert - <"$work/csv" | diff "$work/expected" - || fail "from standard input"

cat >"$work/folded" <<END
fio version 3 iolog
0 /dev/replay add
0 /dev/replay open
1 /dev/replay write 0 4096
26 /dev/replay read 0 4096
301 /dev/replay read 0 4096
301 /dev/replay close
END
becomes csv folded --compress 10 --capacity 8k --align 4k
cat >"$work/version2" <<END
fio version 2 iolog
/dev/replay add
/dev/replay open
/dev/replay write 8192 4096
/dev/replay read 0 512
/dev/replay wait 3 0
/dev/replay read 1048576 1024
/dev/replay close
END
becomes csv version2 --iolog 2

# Devices are concatenated; a request across the folded capacity is moved.
printf 'ts_us,dev,op,offset,size\n0,b,R,0,1024\n0,a,R,512,512\n1,b,W,512,1024\n' >"$work/two"
$convert --capacity 2k "$work/two" | awk '{ print $3, $4, $5 }' | tail -n 4 |
	diff - <(printf 'read 1024 1024\nread 512 512\nwrite 1024 1024\nclose  \n') ||
	fail "two devices"
$convert --device b "$work/two" | grep -c 'read\|write' | grep -qx 2 || fail "--device"

# A malformed line must be reported by its number, and the conversion fail:
# refused FORMAT LINE REASON
refused()
{
	{
		sed -n 1,2p "$work/$1"
		echo "$2"
		sed 1d "$work/$1"
	} >"$work/bad"
	! $convert --format "$1" "$work/bad" >"$work/out" 2>"$work/err" || fail "took '$2'"
	[ ! -s "$work/out" ] || fail "wrote a part in spite of '$2'"
	grep -q "^$work/bad:3: $3" "$work/err" || fail "'$2' gives $(<"$work/err")"
	grep -q '^trace-to-fio: .* 1 line was malformed' "$work/err" || fail "'$2' gives $(<"$work/err")"
	! $convert --skip-malformed --format "$1" "$work/bad" >"$work/out" 2>/dev/null ||
		fail "no failure with --skip-malformed"
	grep -q ' read ' "$work/out" || fail "--skip-malformed wrote nothing"
}
refused csv '5,0,R,0' '4 fields instead of 5'
refused csv '5,0,X,0,512' 'neither read nor write'
refused csv '5,0,R,-1,512' 'offset is no whole number'
refused csv '5,0,R,0,0' 'a size of 0'
refused csv 'nan,0,R,0,512' 'ts_us is no time'
refused csv '5' '1 fields instead of 5'
refused msr '1,hm,1,Read,0,512' '6 fields instead of 7'
refused msr '1,hm,1,Read,0x1g,512,0' 'Offset is no whole number'
refused spc '0,16,4096,W' '4 fields instead of 5'
refused spc '0,16,4096,W,soon' 'Timestamp is no time'
refused blkparse 'lost 5 events' 'no event of blkparse'
refused blkparse '  8,0 1 9 0.002000000 697 Q W 16 [fio]' "no 'sector"
echo "malformed lines: all reported"
for bad in --capacity=1000 --compress=0 --align=100 --iolog=1; do
	! $convert "$bad" "$work/csv" >/dev/null 2>&1 || fail "took $bad"
done
! $convert "$work/none" 2>"$work/err" >/dev/null || fail "a file that is not there"
grep -q '^trace-to-fio: .*none: No such file' "$work/err" || fail "no error: $(<"$work/err")"
seq 0 100000 | awk 'BEGIN { print "ts_us,dev,op,offset,size" } { print $1 ",0,R,0,512" }' >"$work/long"
$convert "$work/long" 2>"$work/err" | head -n 1 >"$work/out" || true
[ "$(<"$work/out")" = "fio version 3 iolog" ] || fail "no output: $(<"$work/err")"
[ ! -s "$work/err" ] || fail "a reader that ends: $(<"$work/err")"

# fio replays it: 3 requests, 3 s apart when 1000 times slower; both versions.
for version in 2 3; do
	$convert --iolog $version --compress 0.001 "$work/csv" >"$work/replay.log"
	truncate -s 2m "$work/disk"
	timeout 60 fio --name=replay --read_iolog="$work/replay.log" \
		--replay_redirect="$work/disk" --ioengine=psync --output-format=json \
		>"$work/fio.json" || fail "fio does not take version $version"
	python3 - "$work/fio.json" <<-'END' || fail "version $version: $(<"$work/fio.json")"
	import json, sys
	job = json.load(open(sys.argv[1]))["jobs"][0]
	assert job["read"]["total_ios"] == 2 and job["read"]["io_kbytes"] == 1, job["read"]
	assert job["write"]["total_ios"] == 1 and job["write"]["io_kbytes"] == 4
	assert job["job_runtime"] > 2500, job["job_runtime"]
	END
	echo "fio replays version $version"
done

# Real traces, if there are any.
traces=../shared/traces
if [ -d "$traces" ]; then
	for trace in "$traces"/*.csv.gz; do
		count=$(($(zcat "$trace" | wc -l) - 1))
		made=$($convert --capacity 4g --align 4k "$trace" | grep -c ' \(read\|write\) ')
		[ "$made" = $count ] || fail "$trace: $made of $count requests"
		echo "${trace##*/}: $count requests"
	done
fi
