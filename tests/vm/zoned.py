#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# A zoned device: before 6.10 the kernel refuses a scheduler that does not lock zones, and
# keeps the old one; later kernels plug writes by zone, and any scheduler keeps their order, also
# beside requests that open and close the same zones
# kernels: 6.1 6.12
# timeout: 900

import errno
import mmap
import os
import threading

from checks import RELEASE, amount, check, modprobe
from fio_jobs import fio
from iosched import Disk, ours
from linux_calls import BLKCLOSEZONE, BLKOPENZONE, range_ioctl
from ssd import NullBlk

# Bytes.
ZONE = 16 << 20
MANAGED = 7 * ZONE
MANAGERS, REPEATS = 8, amount(500)


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


def manage(disk, number, errors):
    """Open and close a zone that others open and close, too."""
    fd = os.open(disk.path, os.O_RDWR)
    try:
        for nth in range(REPEATS):
            range_ioctl(fd, (BLKOPENZONE, BLKCLOSEZONE)[(number + nth) % 2], MANAGED >> 9,
                        ZONE >> 9)
    except OSError as error:
        errors.append(error)
    finally:
        os.close(fd)


def write_first(path):
    """Write the first block of the zone that is opened and closed: an empty one has no such
    state."""
    fd = os.open(path, os.O_RDWR | os.O_DIRECT)
    with mmap.mmap(-1, 4096) as block:
        os.pwritev(fd, [block], MANAGED)
    os.close(fd)


def works(disk):
    """Write zones in order, and verify them, while another zone is opened and closed with
    several requests for it queued at a time."""
    disk.tune(depth=1)
    errors = []
    managers = [threading.Thread(target=manage, args=(disk, number, errors))
                for number in range(MANAGERS)]
    for each in managers:
        each.start()
    fio({"zoned": {"filename": disk.path}}, zonemode="zbd", rw="write", bs="16k", iodepth=8,
        size="64m", verify="crc32c", do_verify=1)
    for each in managers:
        each.join()
    check(not errors, f"{disk.label}: a zone is opened and closed {MANAGERS * REPEATS} times: "
          f"{errors}")
    disk.nothing_left()
    disk.select("none")


with NullBlk("zoned", size=256, zoned=1, zone_size=16, memory_backed=1, queue_mode=2, irqmode=2,
             completion_nsec=50000, submit_queues=2) as device:
    write_first(f"/dev/{device.name}")
    for name in ours():
        modprobe(f"{name}-iosched")
        if RELEASE < (6, 10):
            refused(Disk(device.name, "mq-deadline"), name)
        else:
            works(Disk(device.name, name))
