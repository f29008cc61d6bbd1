#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# I/O without a plug is issued by the task that sends it: no worker runs the queue for it
# check: 6.1 6.12 newest
# timeout: 300

import mmap
import os
import pathlib

from checks import check
from iosched import Disk, finish, ours
from ssd import NullBlk

TRACE = pathlib.Path("/sys/kernel/tracing")
QUEUED = TRACE / "events/workqueue/workqueue_queue_work"
READS = 200


def queued_while_reading(disk):
    """Read some blocks, one after the other; return how often the block layer's workers got work
    meanwhile."""
    fd = os.open(disk.path, os.O_RDONLY | os.O_DIRECT)
    with mmap.mmap(-1, 4096) as buffer:
        (TRACE / "trace").write_text("")
        (QUEUED / "enable").write_text("1")
        for at in range(READS):
            os.preadv(fd, [buffer], at * 4096)
        (QUEUED / "enable").write_text("0")
    os.close(fd)
    lines = (TRACE / "trace").read_text().splitlines()
    return sum("workqueue=kblockd" in line for line in lines)


def main():
    devices = {NullBlk(f"{name}-direct", size=64, queue_mode=2, irqmode=2, completion_nsec=50000,
                       submit_queues=1): name for name in ours()}
    disks = [Disk(device.name, name) for device, name in devices.items()]
    (QUEUED / "filter").write_text('workqueue == "kblockd"')
    for disk in disks:
        found = queued_while_reading(disk)
        check(found < READS / 10, f"{disk.label}: {found} runs by a worker, {READS} reads")
    finish(disks, devices)


if __name__ == "__main__":
    main()
