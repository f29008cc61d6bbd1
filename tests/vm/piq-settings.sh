#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# PIQ's scheme, geometry and window change under load without a request lost and
# with right data; each combination that makes no sense is refused
# timeout: 900
. tests/lib/lib.sh

set_tunable()
{
	echo "$2" >"$(tunable "$device" "$1")" || fail "$1 refused $2"
	[ "$(<"$(tunable "$device" "$1")")" = "$2" ] ||
		fail "$1 is $(<"$(tunable "$device" "$1")") after $2"
}

refused()
{
	local before

	before=$(<"$(tunable "$device" "$1")")
	! echo "$2" >"$(tunable "$device" "$1")" 2>/tmp/why || fail "$1 took $2"
	grep -q 'Invalid argument' /tmp/why || fail "$1=$2: $(</tmp/why)"
	[ "$(<"$(tunable "$device" "$1")")" = "$before" ] || fail "$1 changed"
	[ "$(units)" = "$3" ] || fail "$(units) units after a refused $1=$2"
}

units()
{
	sed -n 's/^# \([0-9]*\) units.*/\1/p' \
		"/sys/kernel/debug/block/${device#/dev/}/sched/units"
}

# Every setting once, in an order that differs from round to round; all of them
# go with each other (at most 1024 planes).
turn_all()
{
	local setting

	for setting in scheme={noop,rws,piq-r,piq-w,piq,piq+} level={plane,chip} \
		allocation={pdwc,wcdp,cwdp} window={1,3,1024,64} \
		channels={1,16,8} chips={1,3,8} planes={3,2} dies={1,2} \
		page_size_kb={1,64,4} write_wait_us={0,1000} claim_us={0,4000} \
		buffered_writes={1,0}; do
		echo "$setting"
	done | shuf --random-source=<(yes "$1") |
		while IFS='=' read -r name value; do
			set_tunable "$name" "$value"
		done
	for setting in scheme=piq+ level=chip allocation=cwdp window=64 channels=8 \
		chips=8 planes=2 dies=2 page_size_kb=4 claim_us=4000 \
		buffered_writes=0; do
		set_tunable "${setting%%=*}" "${setting#*=}"
	done
}

load_ssdemu small memory_backed=1 >/dev/null
device=/dev/ssdemu0
select_scheduler $device piq
echo 256 >"$(queue_of $device)/nr_requests"

[ "$(units)" = 64 ] || fail "$(units) units by default"
refused channels 33 64
refused page_size_kb 3 64
refused allocation cwdd 64
refused level die 64
refused scheme piq++ 64
# Each of the 24 orders, and nothing else of these letters.
orders=0
for order in {c,w,d,p}{c,w,d,p}{c,w,d,p}{c,w,d,p}; do
	! echo "$order" 2>/dev/null >"$(tunable $device allocation)" ||
		orders=$((orders + 1))
done
[ $orders = 24 ] || fail "$orders allocation orders"
set_tunable allocation cwdp
set_tunable level plane
[ "$(units)" = 256 ] || fail "$(units) planes by default"
refused planes 9 256
set_tunable chips 32
[ "$(units)" = 1024 ] || fail "$(units) planes of 8 x 32 x 2 x 2"
refused dies 3 1024
set_tunable chips 8
set_tunable level chip

start_load $device --bssplit=4k/70:64k/30 --numjobs=2
for round in 1 2; do
	turn_all $round
done
stop_load
nothing_left $device
[ "$(units)" = 64 ] || fail "$(units) units in the end"
! awk 'NR > 2 && $3 != 0' /sys/kernel/debug/block/ssdemu0/sched/units | grep . ||
	fail "units are held while nothing is in flight"

turn_all 3 &
fio_verify $device --size=32m --output-format=terse >/dev/null
wait $!
nothing_left $device
