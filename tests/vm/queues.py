#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# All I/O ends and data are right on devices with one tag, many queues, a driver that sleeps,
# polled queues under io_uring, and tags shared by the devices of all schedulers
# check: 6.12
# timeout: 900

from checks import modprobe
from fio_jobs import fio, random_load, verify
from iosched import Disk, finish, ours
from ssd import NullBlk

TIMER = {"irqmode": 2, "completion_nsec": 50000}
SHAPES = {"onetag": {**TIMER, "submit_queues": 1, "hw_queue_depth": 1},
          "many": {**TIMER, "submit_queues": 4, "hw_queue_depth": 2},
          "sleepy": {"blocking": 1, "submit_queues": 2, "hw_queue_depth": 4},
          "soft": {"irqmode": 1, "submit_queues": 2, "hw_queue_depth": 64}}
POLLED = {"submit_queues": 2, "poll_queues": 1}


def make(shape, attributes):
    """A device of this shape for each scheduler."""
    return {NullBlk(f"{name}-{shape}", size=64, memory_backed=1, queue_mode=2, **attributes): name
            for name in ours()}


def shapes():
    """Verify data on a device of each shape for each scheduler."""
    devices = {}
    for shape, attributes in SHAPES.items():
        devices |= make(shape, attributes)
    disks = [Disk(device.name, name, depth=2) for device, name in devices.items()]
    verify(disks, size="2m")
    for disk in disks:
        disk.tune(depth=0)
    verify(disks, size="2m", numjobs=2, offset_increment="4m")
    polled = make("polled", POLLED)
    devices |= polled
    pollers = [Disk(device.name, name) for device, name in polled.items()]
    for disk in pollers:
        # null_blk allocates memory for the first write to a block, which it must not when
        # polled, under rcu_read_lock().
        with open(disk.path, "r+b") as file:
            file.write(bytes(4 << 20))
        # Only the submitter polls; on a debug kernel that may take half a minute.
        (disk.queue / "io_timeout").write_text("300000")
    verify(pollers, ioengine="io_uring", hipri=1, size="4m")
    finish(disks + pollers, devices)


def shared():
    """Two devices for each scheduler, one set of tags for all: an endless load on the first of
    each must not starve the second."""
    names = ours()
    modprobe("-r", "null_blk")
    modprobe("null_blk", f"nr_devices={2 * len(names)}", "gb=1", "shared_tags=1",
             "hw_queue_depth=8", "queue_mode=2", "irqmode=2", "completion_nsec=50000",
             "submit_queues=2")
    first = [Disk(f"nullb{2 * i}", name) for i, name in enumerate(names)]
    second = [Disk(f"nullb{2 * i + 1}", name) for i, name in enumerate(names)]
    with random_load(first, thinktime=0):
        fio({disk.name: {"filename": disk.path} for disk in second}, rw="randrw",
            number_ios=500)
    finish(first + second)


def main():
    shapes()
    shared()


if __name__ == "__main__":
    main()
