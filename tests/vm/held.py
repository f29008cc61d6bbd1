#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# A request that a bound holds back is always woken: with every bound at 1, on many
# regions and several hardware queues, and when the bounds change
# check: 6.12
# timeout: 900

from checks import amount
from fio_jobs import fio, random_load
from iosched import Disk, finish, ours
from ssd import Device, NullBlk

SHAPES = {"one": {"submit_queues": 1, "hw_queue_depth": 1},
          "many": {"submit_queues": 4, "hw_queue_depth": 4}}
BOUND = {"depth": 1, "async_depth": 1, "region_depth": 1, "write_share": 1, "window": 1,
         "open_blocks": 1}
FREE = {"depth": 0, "async_depth": 65535, "region_depth": 0, "write_share": 100, "window": 1024,
        "open_blocks": 64}


def main():
    devices, disks = [], []
    for name in ours():
        made = [Device("small", hw_queues=4, queue_depth=16)]
        made += [NullBlk(f"{name}-{shape}", size=1024, queue_mode=2, irqmode=2,
                         completion_nsec=100000, **attributes)
                 for shape, attributes in SHAPES.items()]
        devices += made
        disks += [Disk(device.name, name, region_size_mb=1, **BOUND) for device in made]

    # No insertion wakes the last requests of each job.
    fio({disk.name: {"filename": disk.path} for disk in disks}, rw="randrw", numjobs=4,
        number_ios=amount(200))
    for disk in disks:
        disk.nothing_left()

    # The bounds are set and lifted under load.
    with random_load(disks):
        for _ in range(amount(20)):
            for disk in disks:
                disk.tune(**BOUND)
            for disk in disks:
                disk.tune(**FREE)
    finish(disks, devices)


if __name__ == "__main__":
    main()
