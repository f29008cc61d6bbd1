#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# PAI sets the queue's limits for its parameters, never looser than they were,
# and each way of leaving gives back exactly what was there
# timeout: 900
. tests/lib/lib.sh

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

# Write values to read_ahead_kb, each of which has to stay until the next one. All
# are below 128, to which the kernel raises them when the limits change; 128 may
# be seen for a moment.
write_read_ahead()
{
	local file i kb is

	file=$(queue_of "$1")/read_ahead_kb
	for ((i = 0; i < $2; i++)); do
		kb=$((32 + i % 23 * 4))
		echo $kb >"$file"
		for _ in {1..100}; do
			is=$(<"$file")
			[ "$is" != $kb ] || continue 2
			sleep 0.02
		done
		fail "$kb was written to read_ahead_kb while split changed, and it is $is"
	done
}

# The same while split changes all the time.
keep_read_ahead()
{
	local device=$1 changes=0 writer

	pai "$device" "${ssd_a[@]}"
	write_read_ahead "$device" "$2" &
	writer=$!
	while kill -0 $writer 2>/dev/null; do
		if [ $((changes++ % 2)) = 0 ]; then
			pai "$device" split=none
		else
			pai "$device" split=pasa
		fi
	done
	wait $writer || exit 1
	echo "split changed $changes times during $2 writes to read_ahead_kb"
	select_scheduler "$device" none
	become "$device" "512 0" "none"
}

# Change the limits while blk-throttle's timer runs. On 6.1 both take the queue's
# lock, the timer in a softirq: lockdep tells of a lock that does not go with it.
throttle()
{
	local device=$1 cgroup=/sys/fs/cgroup/throttled load

	echo +io >/sys/fs/cgroup/cgroup.subtree_control
	mkdir $cgroup
	echo "$(<"/sys/block/${device#/dev/}/dev") wiops=50" >$cgroup/io.max
	pai "$device" "${ssd_a[@]}"
	(
		echo "$BASHPID" >$cgroup/cgroup.procs
		exec dd if=/dev/zero of="$device" bs=4k count=100 oflag=direct \
			status=none
	) &
	load=$!
	while kill -0 $load 2>/dev/null; do
		pai "$device" split=none
		pai "$device" split=pasa
		sleep 0.05
	done
	wait $load
	grep -q "wios=100 " $cgroup/io.stat ||
		fail "not 100 writes in the cgroup: $(<$cgroup/io.stat)"
	select_scheduler "$device" none
	wait_for rmdir $cgroup 2>/dev/null
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

# The read-ahead is the user's as well.
echo 512 >"$(queue_of $device)/max_sectors_kb"
keep_read_ahead $device 300

throttle $device

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
# Its driver's module goes as well: the disk cannot be kept, the queue stays.
pai "$device" "${ssd_a[@]}"
become "$device" "240 480" "pasa on $device"
modprobe -r sd_mod
modprobe sd_mod
wait_for scsi_debug_disk >/dev/null
device=$(scsi_debug_disk)
select_scheduler "$device" none
restored "$device" "$before" "sd_mod went"
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
