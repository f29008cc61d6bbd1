#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# A flood of reads does not starve writes under PIQ+, small or large, while
# under PIQ without the bound on their wait it does; nor does a stream of writes
# starve a read, on a drive that takes longer for one than they wait at most
# virtual-time: yes
# timeout: 300
"""First: readers keep more requests queued than the drive has units, so that at nearly
every moment a read waits for each; a writer sends one write at a time. A write
batch that has waited for write_wait_us goes next, so a write takes that long,
then the operations that hold its units, then its own: a bound, not an average.

Second: a writer keeps the queue full of writes that need all units; a reader reads one
page at a time, which waits for the write that goes when it comes, and for one more."""
import json
import subprocess

from checks import check
from ssd import Device

WAIT_US = 1000
# What the drive takes for a page: read (so slow that the flood is bound by the
# drive and not by the CPU, 16 a millisecond), or program with the transfers of
# the four chips of a channel.
READ_US = 1000
OPERATION_US = READ_US + 50


def jobs_of(command):
    """What fio says of the jobs of a @command."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout[done.stdout.index("{"):])["jobs"]


def tell(device, **more):
    """Tell PIQ of the drive, and of @more."""
    device.scheduler("piq")
    for name, value in {"channels": 4, "chips": 4, "dies": 1, "planes": 1,
                        "write_wait_us": WAIT_US, **more}.items():
        device.queue(f"iosched/{name}", value)


def flood(device, scheme, size):
    """Latencies in us of writes of @size under a flood of reads, and their number."""
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
    """Longest read and write in us beside each other."""
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
    tell(device, window=256)
    device.queue("nr_requests", 512)
    for size in (4, 64):
        starved, _ = flood(device, "piq", size)
        served, longest = flood(device, "piq+", size)
        # The wait, a read that holds the unit, one that went meanwhile, its own.
        bound = WAIT_US + 3 * OPERATION_US
        check(longest < bound, f"piq+: no write of {size} KB took {bound} us")
        check(served > 2 * starved, f"piq+ serves {served} writes of {size} KB, piq {starved}")

with Device("small", program_ns=5_000_000, queue_depth=64) as device:
    tell(device)
    longest, write = stream(device)
    check(write > 5 * WAIT_US, "a write takes longer than the writes' wait")
    check(longest < 2 * write + 1000, f"no read took {2 * write + 1000:.0f} us")
