#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# A zoned device: before 6.10 the kernel refuses a scheduler that does not lock zones, and
# keeps the old one; later kernels plug writes by zone, and any scheduler keeps their order
# kernels: 6.1 6.12
# timeout: 900

import errno

from checks import RELEASE, check, modprobe
from fio_jobs import fio
from iosched import Disk, ours
from ssd import NullBlk


def refused(disk, scheduler):
    """Check that the device does not take the scheduler."""
    before, error = disk.selected(), 0
    try:
        (disk.queue / "scheduler").write_text(scheduler)
    except OSError as failure:
        error = failure.errno
    check(error == errno.EINVAL, f"{scheduler} is refused without zone locking: {error}")
    check(disk.selected() == before, f"{before} stays")
    offered = (disk.queue / "scheduler").read_text().split()
    check(scheduler not in offered, f"{scheduler} is not offered")


def works(disk):
    """Write all zones in order, and verify them."""
    fio({"zoned": {"filename": disk.path}}, zonemode="zbd", rw="write", bs="16k", iodepth=8,
        size="64m", verify="crc32c", do_verify=1)
    disk.nothing_left()
    disk.select("none")


with NullBlk("zoned", size=256, zoned=1, zone_size=16, memory_backed=1, queue_mode=2, irqmode=2,
             completion_nsec=50000, submit_queues=2) as device:
    for name in ours():
        modprobe(f"{name}-iosched")
        if RELEASE < (6, 10):
            refused(Disk(device.name, "mq-deadline"), name)
        else:
            works(Disk(device.name, name))
