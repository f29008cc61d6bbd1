#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Under PIQ+ a flood of reads does not starve small or large writes, as it does under PIQ,
# which does not bound their wait; nor does a stream of writes starve a read, on a drive on
# which a write takes longer than that bound
# check: 6.12
# virtual-time: yes
# timeout: 300
"""First: readers keep more requests queued than the drive has units, so that nearly always a
read waits for each unit; a writer has one write at a time. A write batch that has waited for
write_wait_us is dispatched next. So a write takes at most that time, the operations that hold
its units, and its own.

Second: a writer keeps the queue full of writes that need all units; a reader reads one page at
a time. A read waits for the write in flight when it is inserted, and for one more."""
import json
import subprocess

from checks import check
from ssd import Device

WAIT_US = 1000
# Time of a page read: so slow that the drive bounds the flood, at 16 reads per millisecond, and
# not the CPU.
READ_US = 1000
# Bound of an operation: a read, or a program with the transfers of the four chips of a channel.
OPERATION_US = READ_US + 50


def jobs_of(command):
    """Run fio by this @command; return the results of its jobs."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout[done.stdout.index("{"):])["jobs"]


def use_piq(device, **more):
    """Select PIQ and set the geometry of the drive, and these tunables."""
    device.scheduler("piq")
    for name, value in {"channels": 4, "chips": 4, "dies": 1, "planes": 1,
                        "write_wait_us": WAIT_US, "trials": 0, **more}.items():
        device.queue(f"iosched/{name}", value)


def flood(device, scheme, size):
    """Number of writes of @size KB under a flood of reads, and the longest latency in us."""
    device.queue("iosched/scheme", scheme)
    command = device.fio_command(name="reads", rw="randread", iodepth=256, thread=1,
                                 time_based=1, runtime="900ms")
    command += ["--name=writes", f"--filename={device.path}", "--rw=randwrite", f"--bs={size}k",
                f"--blockalign={size}k", "--ioengine=psync", "--direct=1", "--thread=1",
                "--startdelay=200ms", "--time_based=1", "--runtime=500ms"]
    jobs = jobs_of(command)
    reads, writes = jobs[0]["read"], jobs[1]["write"]
    longest = writes["lat_ns"]["max"] / 1e3
    print(f"{scheme:5} {size:3} KB: {writes['total_ios']} writes, mean "
          f"{writes['lat_ns']['mean'] / 1e3:.0f} us, longest {longest:.0f} us, "
          f"beside {reads['total_ios']} reads", flush=True)
    return writes["total_ios"], longest


def stream(device):
    """Longest latencies of a read and of a write, in us, under both loads."""
    command = device.fio_command(name="writes", rw="write", bs="64k", iodepth=16, thread=1,
                                 time_based=1, runtime="900ms")
    command += ["--name=reads", f"--filename={device.path}", "--rw=randread", "--bs=4k",
                "--ioengine=psync", "--direct=1", "--thread=1", "--startdelay=100ms",
                "--time_based=1", "--runtime=700ms"]
    device.reset()
    jobs = jobs_of(command)
    read = jobs[1]["read"]
    longest = read["lat_ns"]["max"] / 1e3
    write = device.stats()["write_max_ns"] / 1e3
    print(f"piq+: {read['total_ios']} reads, longest {longest:.0f} us, beside "
          f"{jobs[0]['write']['total_ios']} writes, of which one takes {write:.0f} us", flush=True)
    return longest, write


with Device("small", read_ns=READ_US * 1000, queue_depth=64) as device:
    use_piq(device, window=256)
    device.queue("nr_requests", 512)
    for size in (4, 64):
        starved, _ = flood(device, "piq", size)
        served, longest = flood(device, "piq+", size)
        # The wait, a read that holds the unit, one dispatched meanwhile, and the write itself.
        bound = WAIT_US + 3 * OPERATION_US
        check(longest < bound, f"piq+: no write of {size} KB took {bound} us")
        check(served > 2 * starved, f"piq+ serves {served} writes of {size} KB, piq {starved}")

with Device("small", program_ns=5_000_000, queue_depth=64) as device:
    use_piq(device)
    longest, write = stream(device)
    check(write > 5 * WAIT_US, "a write takes longer than the bound on their wait")
    check(longest < 2 * write + 1000, f"no read took {2 * write + 1000:.0f} us")
