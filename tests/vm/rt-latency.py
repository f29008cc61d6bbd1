#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# On a kernel with PREEMPT_RT, a task of real-time priority wakes up beside I/O under each scheduler
# as soon as under mq-deadline, to 10 % and a microsecond, of the longest of three loads
# kernels: 6.12-rt-amd64 newest-rt-amd64
# check: none
# virtual-time: yes
# package: rt-tests
# timeout: 2400
"""cyclictest sleeps for an interval and measures how late it wakes up: so long has an interrupt, a
section that disables preemption, or a task with a higher priority kept the CPU. The load queues
more requests than the drive takes, so the scheduler sorts, merges and holds them. In virtual
time an instruction is a nanosecond."""
import json
import pathlib
import subprocess

from checks import SEED, check
from iosched import Disk, ours
from ssd import NullBlk

SECONDS = 1
# One load's longest latency is that of one wake-up of some 4,700, so it varies.
LOADS = 3
# Interval in us: no divisor of the drive's times.
INTERVAL = 211
TIMER = {"queue_mode": 2, "irqmode": 2, "completion_nsec": 40000, "submit_queues": 1,
         "hw_queue_depth": 16, "size": 1024}
BUCKETS = 2000
LOAD = ["fio", "--name=load", "--direct=1", "--ioengine=libaio", "--iodepth=64", "--rw=randrw",
        "--bs=4k", "--numjobs=2", "--thread=1", "--time_based=1", f"--runtime={SECONDS + 1}s",
        "--output-format=json"]
CYCLIC = ["cyclictest", "--quiet", "--priority=90", "--policy=fifo", f"--interval={INTERVAL}",
          "--mlockall", f"--duration={SECONDS}", f"--histogram={BUCKETS}"]


def latencies(disk, seed):
    """Beside I/O on a disk: (number of I/Os, of wake-ups, the longest latency in us, that of 99.9
    %, or the histogram's end if it is beyond)."""
    result = pathlib.Path("/tmp/cyclictest.json")
    command = [*LOAD, f"--randseed={seed}", f"--filename={disk.path}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
        subprocess.run([*CYCLIC, f"--json={result}"], check=True, stdout=subprocess.DEVNULL)
        jobs = json.loads(load.communicate()[0])["jobs"]
    check(load.returncode == 0, "the load ends")
    ios = sum(job[way]["total_ios"] for job in jobs for way in ("read", "write"))
    thread = json.loads(result.read_text())["thread"]["0"]
    late, left = 0, 0.999 * thread["cycles"]
    for late in range(BUCKETS):
        left -= thread["histogram"].get(str(late), 0)
        if left <= 0:
            break
    check(ios > 1000 and thread["cycles"] > 1000, "I/Os and wake-ups")
    return ios, thread["cycles"], thread["max"], late


def main():
    found = {}
    with NullBlk("rt", **TIMER) as device:
        for name in ("none", "mq-deadline", *ours()):
            disk = Disk(device.name, name)
            found[name] = (0, 0)
            for seed in range(SEED, SEED + LOADS):
                ios, cycles, longest, late = latencies(disk, seed)
                found[name] = tuple(map(max, found[name], (longest, late)))
                print(f"{name:12} {ios} I/Os, {cycles} wake-ups, 99.9 % within {late} us, longest "
                      f"{longest} us", flush=True)
            disk.select("none")
    most = found["mq-deadline"]
    for name in ours():
        check(all(us <= 1.1 * bound + 1 for us, bound in zip(found[name], most, strict=True)),
              f"{name}: {found[name]} us, mq-deadline {most}, allowed 10 % and 1 us more")


if __name__ == "__main__":
    main()
