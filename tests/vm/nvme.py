#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# NVMe disks with several queues: data are right, also with flushes and FUA writes, and the
# disks can be removed under load
# nvme: 64M per scheduler
# check: 6.12
# timeout: 900

import pathlib

from checks import check, modprobe, wait_for
from fio_jobs import removed_under_load, verify
from iosched import Disk, ours, remove_all


def main():
    modprobe("nvme")
    names = {name: f"nvme{number}n1" for number, name in enumerate(ours())}
    for name in names.values():
        wait_for(pathlib.Path("/dev", name).exists, name)
        queues = len(list(pathlib.Path("/sys/block", name, "mq").iterdir()))
        check(queues > 1, f"{name} has {queues} queues")
    disks = [Disk(name, scheduler) for scheduler, name in names.items()]
    verify(disks, size="8m", numjobs=2, offset_increment="16m", fsync=50)
    verify(disks, size="2m", sync="dsync")
    for disk in disks:
        disk.nothing_left()
        disk.tune(depth=4)

    ports = {disk: pathlib.Path("/sys/block", disk.name, "device/device").resolve()
             for disk in disks}
    removed_under_load(disks, lambda disk: (ports[disk] / "remove").write_text("1"))
    remove_all()
    pathlib.Path("/sys/bus/pci/rescan").write_text("1")
    for name in names.values():
        wait_for(pathlib.Path("/dev", name).exists, f"{name} again")
    print(f"counted: removed={len(disks)}")


if __name__ == "__main__":
    main()
