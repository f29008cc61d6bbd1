#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# When devices are removed under load (emulated SSD, null_blk, SCSI), all I/O ends and the
# modules unload. Without scsi_debug, as on arm64, the SCSI disks are those of real-drives.
# kernels: 6.1 6.12 6.1-arm64 newest-arm64
# check: 6.12 6.1-arm64 newest-arm64
# timeout: 900
# quick: 6.1 newest

import pathlib

from checks import amount, modprobe
from fio_jobs import removed_under_load
from iosched import Disk, have_scsi_debug, ours, remove_all, scsi_disks
from ssd import Device, NullBlk


def one_round(turn):
    """Remove a device of each kind for each scheduler, under load; return their number."""
    names, disks = ours(), {}
    depth = 4 * (turn % 2)
    scsi = scsi_disks(len(names), ndelay=100000) if have_scsi_debug() else []
    for name in names:
        for device in (Device("small", hw_queues=2),
                       NullBlk(f"{name}-gone", size=1024, queue_mode=2, irqmode=2,
                               completion_nsec=100000, submit_queues=2)):
            disks[Disk(device.name, name, depth=depth)] = device.remove
    for name, disk in zip(names, scsi, strict=have_scsi_debug()):
        delete = pathlib.Path("/sys/block", disk, "device/delete")
        disks[Disk(disk, name, depth=depth)] = lambda delete=delete: delete.write_text("1")
    removed_under_load(disks, lambda disk: disks[disk]())
    if scsi:
        modprobe("-r", "scsi_debug")
    remove_all()
    return len(disks)


def main():
    removed = sum(one_round(number) for number in range(max(2, amount(3))))
    print(f"counted: removed={removed}")


if __name__ == "__main__":
    main()
