#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Neighbouring requests merge at their back and at their front, but under PASS never
# across a region border
# timeout: 900
# quick: 6.1 newest

from blktrace import record
from checks import DEBUG_KERNEL, check, modprobe
from fio_jobs import fio
from iosched import Disk, ours
from ssd import NullBlk

# The device must be slower than submission on a busy machine: otherwise no queue forms.
DELAY_NS = 20000000 if DEBUG_KERNEL else 10000000
REGION_SECTORS = 2048


def merges(device, scheduler, pattern):
    """Requests that merge when several writers or readers have every eighth block each: such
    requests meet in the scheduler and not in the plug of one task."""
    disk = Disk(device.name, "none")
    disk = Disk(device.name, scheduler)
    (disk.queue / "nr_requests").write_text("256")
    fio({"neighbours": {"filename": disk.path}}, rw=pattern, iodepth=8, numjobs=8, thread=None,
        offset="4m", offset_increment="4k", size="2m", number_ios=32)
    disk.nothing_left()
    return disk.counters()["merged"]


def borders(device):
    """Regions of 1 MB, and a stream across eight borders from two tasks in turn."""
    Disk(device.name, "none")
    modprobe("-r", "pass-iosched")
    modprobe("pass-iosched", "region_size_mb=1")
    disk = Disk(device.name, "pass")
    (disk.queue / "nr_requests").write_text("256")
    events = record([disk], lambda: fio(
        {"stream": {"filename": disk.path}}, rw="write:4k", iodepth=16, numjobs=2, thread=None,
        offset_increment="4k", size="8m"), "D")[disk]
    disk.nothing_left()
    check(disk.counters()["merged"] > 0, "requests of the stream merge")
    dispatched = list(events)
    crossing = [event for event in dispatched if event.sector // REGION_SECTORS !=
                (event.sector + event.sectors - 1) // REGION_SECTORS]
    check(not crossing and len(dispatched) >= 100,
          f"of {len(dispatched)} requests none crosses a border {crossing[:5]}")
    disk.select("none")


with NullBlk("disk0", size=1024, queue_mode=2, irqmode=2, completion_nsec=DELAY_NS,
             submit_queues=1, hw_queue_depth=2) as null:
    for name in ours():
        check(merges(null, name, "write:28k") > 0, f"{name}: writes merge")
        check(merges(null, name, "read:28k") > 0, f"{name}: reads merge")
    borders(null)
