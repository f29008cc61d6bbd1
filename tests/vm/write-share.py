#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Writes in flight keep to write_share percent of the device's tags while there are reads,
# and may use all tags when there is none
# virtual-time: yes
# check: 6.12
# timeout: 900

import time

from blktrace import record
from checks import check
from fio_jobs import fio
from iosched import Disk, ours
from ssd import Device

TAGS = 16
# write_share: tags for writes
SHARES = {75: 12, 30: 4, 1: 1, 100: TAGS}
WRITER = {"rw": "randwrite", "iodepth": 64}
# The readers begin before the writer and end after it.
BOTH = {"readers": {"rw": "randread", "numjobs": 2, "ioengine": "psync", "time_based": 1,
                    "runtime": 1},
        "writer": {**WRITER, "time_based": 1, "startdelay": "250ms", "runtime": "500ms"}}
ALONE = {"writer": {**WRITER, "number_ios": 2000}}


def most_writes(disk, jobs):
    """Run these jobs; return the most writes in flight at a time."""
    now = most = 0
    for event in record([disk], lambda: fio(jobs, filename=disk.path, thread=None), "DC")[disk]:
        if event.kind == "W":
            now += 1 if event.action == "D" else -1
            most = max(most, now)
    return most


with Device("small", queue_depth=TAGS) as device:
    for scheduler in ours():
        # PIQ's other schemes bound writes by the units, too.
        disk = Disk(device.name, scheduler, scheme="noop")
        for share, tags in SHARES.items():
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
