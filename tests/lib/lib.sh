# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the tests in this folder, which run inside the lab's guest, as
# root, in the project's folder. A test ends with 0 (pass), 4 (skip) or else
# (fail); tests/guest-runner tidies up after it and looks at the kernel's log.
set -euo pipefail

fail()
{
	echo "fail: $*"
	exit 1
}

# A test that cannot run here says why.
skip()
{
	echo "skip: $*"
	exit 4
}

# The stock kernel's series, for what only some of them have: series_at_least 6.2
series_at_least()
{
	[ "$(printf '%s\n' "$1" "$(uname -r)" | sort -V | sed -n 1p)" = "$1" ]
}

# Path of a device's queue directory: queue_of /dev/nullb0
queue_of()
{
	echo "/sys/block/${1#/dev/}/queue"
}

# The scheduler that a device runs under: scheduler_of /dev/nullb0
scheduler_of()
{
	sed 's/.*\[\(.*\)\].*/\1/' "$(queue_of "$1")/scheduler"
}

# Select a scheduler as a user would, and see that it took.
select_scheduler()
{
	local device=$1 name=$2

	echo "$name" >"$(queue_of "$device")/scheduler" ||
		fail "$name was refused on $device"
	[ "$(scheduler_of "$device")" = "$name" ] ||
		fail "$device runs $(scheduler_of "$device") after selecting $name"
}

# Path of a tunable: tunable /dev/nullb0 read_expire
tunable()
{
	echo "$(queue_of "$1")/iosched/$2"
}

# The emulated SSD: load_ssdemu PRESET [key=value...]; it is /dev/ssdemu0.
load_ssdemu()
{
	scripts/ssdemu load "$@"
	wait_for test -b /dev/ssdemu0
}

# A null_blk device made to measure: make_null_blk NAME [attribute=value...];
# prints its path.
make_null_blk()
{
	local name=$1 dir=/sys/kernel/config/nullb/$1 setting

	shift
	modprobe null_blk nr_devices=0
	mkdir "$dir"
	for setting in "$@"; do
		echo "${setting#*=}" >"$dir/${setting%%=*}" ||
			fail "null_blk refused $setting"
	done
	echo 1 >"$dir/power"
	if [ -b "/dev/$name" ]; then
		echo "/dev/$name"
	else
		# Older ones have names of their own choosing.
		echo "/dev/nullb$(<"$dir/index")"
	fi
}

drop_null_blk()
{
	rmdir "/sys/kernel/config/nullb/$1"
}

# A SCSI disk in memory: make_scsi_debug [parameter=value...]; prints its path.
make_scsi_debug()
{
	modprobe sd_mod
	modprobe scsi_debug "$@"
	wait_for test -d /sys/bus/pseudo/drivers/scsi_debug/adapter0
	wait_for scsi_debug_disk >/dev/null
	scsi_debug_disk
}

scsi_debug_disk()
{
	local path

	for path in /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*/block/*; do
		[ ! -e "$path" ] || echo "/dev/${path##*/}"
	done | grep .
}

# Wait until a command succeeds, half a minute at most.
wait_for()
{
	local tries=0

	until "$@"; do
		[ $((tries++)) -lt 300 ] || fail "no end of waiting for: $*"
		sleep 0.1
	done
}

# Write all of the device at random and read it back, checking each block:
# fio_verify /dev/x [fio option...]
fio_verify()
{
	local device=$1

	shift
	fio --name=verify --filename="$device" --rw=randwrite --bs=4k-64k \
		--ioengine=libaio --iodepth=32 --direct=1 --verify=crc32c \
		--verify_fatal=1 --verify_state_save=0 --end_fsync=1 \
		--size=64m "$@" || fail "fio found wrong data on $device"
}

# Number of requests that a device has ended: requests_done /dev/x
requests_done()
{
	awk '{ print $1 + $5 }' "/sys/block/${1#/dev/}/stat"
}

has_done_more()
{
	[ "$(requests_done "$1")" -gt "$2" ]
}

# Mixed load in the background until stop_load: start_load /dev/x [option...].
# Returns when it is under way: what follows is to happen under it, and fio
# forgets a signal that comes before it has started its jobs.
load_pid=
start_load()
{
	local device=$1 before

	shift
	before=$(requests_done "$device")
	fio --name=load --filename="$device" --rw=randrw --bs=4k --direct=1 \
		--ioengine=libaio --iodepth=32 --time_based --runtime=3600 \
		--size=100% "$@" >/tmp/load.log 2>&1 &
	load_pid=$!
	wait_for has_done_more "$device" $((before + 100))
}

# End the load; fails if it had failed by itself.
stop_load()
{
	kill -0 "$load_pid" 2>/dev/null || {
		cat /tmp/load.log
		fail "the load ended by itself"
	}
	# Again: a job of several that starts late misses the first one. Not soon: what
	# fio does on a signal, it may not do while it prints or frees.
	while kill -INT "$load_pid" 2>/dev/null; do
		timeout 20 tail --pid="$load_pid" -f /dev/null || true
	done
	wait "$load_pid" || [ $? = 128 ] || {
		cat /tmp/load.log
		fail "the load failed"
	}
}

# Trace a device while a command runs, and leave the events in a file, one a
# line as scripts/read-trace says: trace_run /dev/x FILE COMMAND...
trace_run()
{
	local device=$1 file=$2 dir tracer

	shift 2
	dir=$(mktemp -d)
	blktrace -d "$device" -D "$dir" -b 1024 -n 16 -o trace >"$dir/log" 2>&1 &
	tracer=$!
	wait_for test -e "/sys/kernel/debug/block/${device#/dev/}/trace0"
	"$@"
	kill -INT $tracer
	wait $tracer || true
	grep -q 'Total:.*(dropped 0)' "$dir/log" ||
		fail "blktrace lost events: $(tail -n 1 "$dir/log")"
	scripts/read-trace "$dir/trace" >"$file"
	rm -r "$dir"
}

# Names of this project's schedulers, as far as they are built.
our_schedulers()
{
	local file

	for file in "/lib/modules/$(uname -r)/updates/"*-iosched.ko; do
		basename "$file" -iosched.ko
	done
}

# A line of a scheduler's debugfs statistics as numbers:
# inserted merged dispatched completed expired requeued queued in_flight,
# summed over the lines that match, e.g. "be read" or "" for all.
scheduler_stats()
{
	local device=$1 lines=${2:-}

	awk -v want="$lines" 'NR > 1 && index($1 " " $2, want) {
			for (i = 3; i <= NF; i++)
				sum[i] += $i
		}
		END {
			for (i = 3; i <= 10; i++)
				printf "%d%s", sum[i], i < 10 ? " " : "\n"
		}' "/sys/kernel/debug/block/${device#/dev/}/sched/stats"
}

# After the load every request has to have left the scheduler; prints nothing.
nothing_left()
{
	local device=$1 inserted merged completed queued in_flight

	read -r inserted merged _ completed _ _ queued in_flight \
		< <(scheduler_stats "$device")
	[ "$inserted" -gt 0 ] || fail "no request went through the scheduler"
	if [ $((merged + completed)) != "$inserted" ] ||
		[ "$queued$in_flight" != 00 ]; then
		fail "inserted $inserted, merged $merged, completed $completed, queued $queued, in flight $in_flight"
	fi
}
