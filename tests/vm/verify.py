#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Data written through each scheduler are read back right, on the emulated SSD, null_blk (one
# and several queues), SCSI and virtio-blk: 520 MB for each scheduler
# kernels: 6.1 6.12 newest 6.1-arm64 newest-arm64
# check: 6.12 newest 6.1-arm64 newest-arm64
# disk: 64M per scheduler
# memory: 2G
# timeout: 900
# quick: 6.1 newest

from checks import amount, modprobe
from fio_jobs import verify
from iosched import Disk, finish, ours, remove_scsi_disks, scsi_disks
from ssd import Device, NullBlk

MEGABYTES = amount(26)
LOOPS = 2
JOBS = 2


def main():
    modprobe("virtio_blk")
    names = ours()
    disks, devices = [], []
    scsi = scsi_disks(len(names), dev_size_mb=64, ndelay=20000, max_queue=16)
    for number, name in enumerate(names):
        devices += [Device("small", memory_backed=1, capacity_mb=64),
                    NullBlk(f"{name}-one", size=64, memory_backed=1, queue_mode=2, irqmode=1),
                    NullBlk(f"{name}-many", size=64, memory_backed=1, queue_mode=2, irqmode=2,
                            completion_nsec=20000, submit_queues=4, hw_queue_depth=16)]
        disks += [Disk(device.name, name) for device in devices[-3:]]
        disks += [Disk(scsi[number], name), Disk(f"vd{'abcdefgh'[number]}", name)]
    verify(disks, size=f"{MEGABYTES}m", numjobs=JOBS, offset_increment="32m", loops=LOOPS)
    finish(disks, devices)
    remove_scsi_disks()
    print(f"counted: verified_bytes={len(disks) * JOBS * LOOPS * MEGABYTES << 20}")


if __name__ == "__main__":
    main()
