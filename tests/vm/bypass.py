#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# While nothing is queued, requests bypass PASS, but neither its bounds nor a priority class
# virtual-time: yes
# kernels: 6.1 6.12 7.2 7.3 debug-6.1 debug-6.12 debug-7.2
# check: 6.12 6.1
# timeout: 900

import time

from blktrace import most_in_flight
from checks import check
from fio_jobs import fio
from iosched import Disk
from ssd import Device, NullBlk

TAGS = 16
READS = 500


def bypassed(disk, **job):
    """Run a job of READS reads; return how many of its requests have bypassed the queue."""
    before = disk.counters()["bypassed"]
    fio({"job": {"rw": "randread", "number_ios": READS, **job}}, filename=disk.path)
    return disk.counters()["bypassed"] - before


def bypass(disk):
    """Which requests bypass the queue."""
    found = bypassed(disk)
    check(found == READS, f"{found} of {READS} reads bypass the queue")
    found = bypassed(disk, iodepth=TAGS, rw="randwrite")
    check(found == READS, f"{found} of {READS} writes while the device has tags for all")
    found = bypassed(disk, iodepth=2 * TAGS, rw="randwrite")
    check(0 < found < READS, f"{found} of {READS} writes with more than it has tags")
    found = bypassed(disk, rw="randwrite", sync="dsync", number_ios=100)
    check(found == 100, f"{found} of 100 synced writes, which this drive has no cache for")
    (disk.queue / "nomerges").write_text("2")
    check(bypassed(disk) == 0, "none without merging, which shows the priority class")
    (disk.queue / "nomerges").write_text("0")
    disk.set(bypass=0)
    check(bypassed(disk) == 0, "none with bypass=0")
    disk.set(bypass=1, region_depth=4)
    check(bypassed(disk) == 0, "none with region_depth=4")
    disk.set(region_depth=0)
    check(bypassed(disk, prioclass=3) == 0, "none of the idle class")
    check(bypassed(disk, number_ios=1) == 0, "none shortly after one of the idle class")
    time.sleep(1.1)
    found = bypassed(disk)
    check(found == READS, f"{found} of {READS} a second later")


def bounds(disk):
    """The dispatch limit holds for requests that bypass the queue and others together."""
    jobs = {"one": {"rw": "randwrite", "iodepth": 32, "number_ios": 1000},
            "many": {"rw": "randread", "numjobs": 4, "ioengine": "psync", "number_ios": 300}}
    for depth in (1, 2, 5, 0):
        disk.set(depth=depth)
        found = most_in_flight(disk, lambda: fio(jobs, filename=disk.path, thread=None))
        check(found == (depth or TAGS), f"depth {depth}: {found} in flight")


def classes(disk):
    """An idle reader waits for a best-effort one, whose requests would bypass the queue."""
    jobs = {"be": {"rw": "randwrite", "iodepth": TAGS, "time_based": 1, "runtime": 1},
            "idle": {"rw": "randread", "prioclass": 3, "time_based": 1, "runtime": 1}}
    results = fio(jobs, filename=disk.path)
    be, idle = results["be"][0]["write"]["total_ios"], results["idle"][0]["read"]["total_ios"]
    check(be > 20 * idle, f"{be} writes of best effort, {idle} reads of the idle class")


def main():
    with Device("small", queue_depth=TAGS) as device:
        disk = Disk(device.name, "pass")
        bypass(disk)
        bounds(disk)
        classes(disk)
        disk.nothing_left()
    with NullBlk("several", queue_mode=2, irqmode=2, submit_queues=2) as device:
        disk = Disk(device.name, "pass")
        check(bypassed(disk) == 0, "none to a driver with queue_rqs()")
        disk.nothing_left()


if __name__ == "__main__":
    main()
