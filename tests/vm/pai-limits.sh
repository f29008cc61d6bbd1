#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# PAI sets the queue's limits for its parameters, never looser than they were,
# and each way of leaving gives back exactly what was there
# timeout: 900
. tests/vm/lib.sh

# All that a queue tells of itself, but what a scheduler may have of its own.
state()
{
	{ grep -s -d skip . "$(queue_of "$1")"/* || true; } |
		grep -vE '/(scheduler|nr_requests|async_depth):'
}

is_state()
{
	[ "$(state "$1")" = "$2" ]
}

# What stands in a queue's limits: max_sectors_kb and chunk_sectors.
limits()
{
	echo "$(<"$(queue_of "$1")/max_sectors_kb") $(<"$(queue_of "$1")/chunk_sectors")"
}

become()
{
	local device=$1 want=$2 why=$3

	for _ in {1..100}; do
		[ "$(limits "$device")" != "$want" ] || return 0
		sleep 0.02
	done
	fail "$why: max_sectors_kb and chunk_sectors are $(limits "$device"), not $want"
}

restored()
{
	local device=$1 before=$2 why=$3

	for _ in {1..100}; do
		! is_state "$device" "$before" || return 0
		sleep 0.02
	done
	diff <(echo "$before") <(state "$device") || true
	fail "$why: the queue is not as it was"
}

pai()
{
	local device=$1 setting

	shift
	select_scheduler "$device" pai
	for setting in "$@"; do
		echo "${setting#*=}" >"$(tunable "$device" "${setting%%=*}")"
	done
}

# SSD-A of the paper; cuts are at 240 KB, which is 480 sectors.
ssd_a=(clustered_page_kb=16 read_buffer_kb=256 write_buffer_kb=255 split=pasa)

scripts/ssdemu load small max_request_kb=512 >/dev/null
device=/dev/ssdemu0
echo 64 >"$(queue_of $device)/read_ahead_kb"
before=$(state $device)

pai $device
sleep 0.2
is_state $device "$before" || fail "without split the limits change"
pai $device "${ssd_a[@]}"
become $device "240 480" "pasa"
pai $device split=pas
become $device "255 0" "pas: the tighter buffer"
pai $device split=pasa align=block clustered_block_kb=5120
become $device "240 10240" "pasa, aligned to blocks of 5120 KB"
pai $device align=page clustered_page_kb=128 read_buffer_kb=64 write_buffer_kb=0
become $device "128 256" "never less than a clustered page"
pai $device clustered_page_kb=4 read_buffer_kb=3072 write_buffer_kb=112
become $device "112 224" "buffers of 3072 and 112 KB"
pai $device clustered_page_kb=48 read_buffer_kb=0 write_buffer_kb=0
become $device "480 960" "no buffers: the whole pages in the driver's limit"
pai $device clustered_page_kb=16 read_buffer_kb=1024 write_buffer_kb=1024 split=pas
become $device "512 0" "buffers larger than the driver's limit"
pai $device split=none
restored $device "$before" "split=none"

# Ways to leave.
for next in none mq-deadline; do
	pai $device "${ssd_a[@]}"
	become $device "240 480" "pasa again"
	select_scheduler $device $next
	restored $device "$before" "the scheduler became $next"
done
start_load $device --bs=4k-512k --iodepth=4
for _ in {1..6}; do
	pai $device "${ssd_a[@]}"
	select_scheduler $device none
done
stop_load
restored $device "$before" "several times under load"
for _ in {1..3}; do
	pai $device "${ssd_a[@]}"
	become $device "240 480" "before the module goes"
	select_scheduler $device none
	modprobe -r pai-iosched || fail "pai does not unload"
	is_state $device "$before" || fail "limits left behind by the module"
done

# What the user sets meanwhile is the user's, and stays.
pai $device "${ssd_a[@]}"
become $device "240 480" "pasa"
echo 100 >"$(queue_of $device)/max_sectors_kb"
become $device "100 480" "the user's limit"
select_scheduler $device none
become $device "100 0" "the user's limit, after PAI"
pai $device "${ssd_a[@]}"
become $device "96 192" "the whole pages in the user's limit"
select_scheduler $device none
become $device "100 0" "the user's limit, after PAI again"

# The device goes under load.
for _ in {1..3}; do
	pai $device "${ssd_a[@]}"
	start_load $device --bs=4k-512k --iodepth=4
	scripts/ssdemu unload
	! wait "$load_pid" || fail "fio saw no error on a removed device"
	scripts/ssdemu load small max_request_kb=512 >/dev/null
	wait_for test -b $device
	[ "$(limits $device)" = "512 0" ] ||
		fail "a new device begins with limits of PAI's"
done
scripts/ssdemu unload

# A SCSI disk goes and comes back: its queue has been there all the time.
device=$(make_scsi_debug dev_size_mb=64 max_queue=16)
address=$(basename "$(readlink -f "/sys/block/${device#/dev/}/device")")
before=$(state "$device")
for _ in {1..2}; do
	pai "$device" "${ssd_a[@]}"
	become "$device" "240 480" "pasa on $device"
	echo "$address" >/sys/bus/scsi/drivers/sd/unbind
	sleep 0.2
	echo "$address" >/sys/bus/scsi/drivers/sd/bind
	wait_for scsi_debug_disk >/dev/null
	device=$(scsi_debug_disk)
	select_scheduler "$device" none
	restored "$device" "$before" "the disk went"
done
modprobe -r scsi_debug

# A boundary that means zones is not PAI's to change.
if series_at_least 6.12; then
	device=$(make_null_blk zones size=256 zoned=1 zone_size=64 \
		max_sectors=1024)
	before=$(state "$device")
	pai "$device" "${ssd_a[@]}"
	become "$device" "240 131072" "zones of 64 MB"
	select_scheduler "$device" none
	restored "$device" "$before" "a zoned device"
fi
