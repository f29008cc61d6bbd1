#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# While nothing is queued, requests bypass PASS, but neither its bounds nor a priority class
# virtual-time: yes
# kernels: 6.1 6.12 7.2 7.3 debug-6.1 debug-6.12 debug-7.2
# check: 6.12 6.1
# timeout: 900

import time

from blktrace import most_in_flight
from checks import check, wait_for
from fio_jobs import fio
from iosched import SCSI_DEBUG, Disk, scsi_disks
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


def set_delay(jiffies):
    """Have scsi_debug take this long for a read or write."""
    def idle():
        try:
            (SCSI_DEBUG / "delay").write_text(str(jiffies))
        except OSError:
            return False
        return True
    wait_for(idle, "the end of all commands")


def slow_class():
    """Reads of the idle class that are in the device for seconds count for the limit."""
    (name,) = scsi_disks(1, dev_size_mb=16, max_queue=TAGS)
    disk = Disk(name, "pass", depth=2)
    set_delay(1000)
    jobs = {"idle": {"prioclass": 3}, "be": {"startdelay": 2}}
    found = most_in_flight(disk, lambda: fio(jobs, filename=disk.path, rw="randread", iodepth=2,
                                             number_ios=2))
    check(found == 2, f"depth 2, two reads of the idle class are slow: {found} in flight")
    set_delay(1)
    disk.nothing_left()
    disk.select("none")


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
    slow_class()


if __name__ == "__main__":
    main()
