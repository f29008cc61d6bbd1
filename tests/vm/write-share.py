#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Writes in flight keep to write_share percent of the device's tags while there are reads,
# and may use all tags when there is none; with one tag they keep to that part of the time
# virtual-time: yes
# check: 6.12
# timeout: 900

import time

from blktrace import most_in_flight, record
from checks import check
from fio_jobs import fio
from iosched import Disk, ours
from ssd import Device

TAGS = 16
# write_share: tags for writes. The core computes them for all: only pass has more than one value.
SHARES = {75: 12, 30: 4, 1: 1, 100: TAGS}
WRITER = {"rw": "randwrite", "iodepth": 64}
# The readers begin before the writer and end after it.
BOTH = {"readers": {"rw": "randread", "numjobs": 2, "ioengine": "psync", "time_based": 1,
                    "runtime": "400ms"},
        "writer": {**WRITER, "time_based": 1, "startdelay": "100ms", "runtime": "200ms"}}
# The readers have requests queued at nearly any time.
DEEP = {"readers": {"rw": "randread", "iodepth": 16, "time_based": 1, "runtime": "600ms"},
        "writer": {**WRITER, "time_based": 1, "runtime": "600ms"}}
ALONE = {"writer": {**WRITER, "number_ios": 2000}}


def most_writes(disk, jobs):
    """Run these jobs; return the most writes in flight at a time."""
    return most_in_flight(disk, lambda: fio(jobs, filename=disk.path, thread=None), "W")


def writes_time(disk):
    """Run DEEP on a disk with one tag; return the part of the time that writes take."""
    took = {"R": 0, "W": 0}
    for event in record([disk], lambda: fio(DEEP, filename=disk.path, thread=None), "DC")[disk]:
        if event.action == "D":
            since = event.time
        else:
            took[event.kind] += event.time - since
    return took["W"] / sum(took.values())


with Device("small", queue_depth=1) as device:
    for scheduler in ours():
        disk = Disk(device.name, scheduler)
        (disk.queue / "nr_requests").write_text("128")
        for share in (75, 50) if scheduler == "pass" else (75,):
            disk.set(write_share=share)
            part = writes_time(disk)
            check(part < share / 100 + 0.05,
                  f"{scheduler}, write_share {share}: writes take {part:.0%} of the time")
        disk.nothing_left()
    disk = Disk(device.name, "pai", write_share=100)
    (disk.queue / "nr_requests").write_text("128")
    part = writes_time(disk)
    check(part > 0.8, f"without a share, writes take only {part:.0%} of the time")

with Device("small", queue_depth=TAGS) as device:
    for scheduler in ours():
        # PIQ's other schemes bound writes by the units, too.
        disk = Disk(device.name, scheduler, scheme="noop")
        for share, tags in list(SHARES.items())[:None if scheduler == "pass" else 1]:
            disk.set(write_share=share)
            found = most_writes(disk, BOTH)
            check(found == tags, f"{scheduler}, write_share {share}: {found} writes in flight, "
                                 f"expected {tags}")
        disk.set(write_share=1)
        # Reads are recent for 100 ms.
        time.sleep(1)
        found = most_writes(disk, ALONE)
        check(found == TAGS, f"{scheduler}: without reads {found} writes in flight")
        disk.nothing_left()
