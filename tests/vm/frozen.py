#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Data stay right under device-mapper, a file system and loop devices, while these are
# suspended and resumed, frozen and thawed, and CPUs go offline and online, under load
# check: 6.12
# timeout: 900

import fcntl
import os
import pathlib

from checks import amount, modprobe, run
from fio_jobs import load
from iosched import Disk, ours
from linux_calls import FIFREEZE, FITHAW
from ssd import Device

CPU = pathlib.Path("/sys/devices/system/cpu/cpu1/online")
ROUNDS = amount(5)


def checked_load(disks, paths):
    """Write to all @paths, read back and verify, while the body runs."""
    jobs = {disk.name: {"filename": path} for disk, path in zip(disks, paths, strict=True)}
    return load(disks, jobs, rw="randwrite", bs="4k-32k", verify="crc32c", verify_backlog=64,
                size="12m")


def suspended(disks):
    """Suspend dm devices on the disks, with a CPU offline, and change the disks meanwhile; return
    the paths of the dm devices."""
    for disk in disks:
        sectors = (disk.queue.parent / "size").read_text().strip()
        run("dmsetup", "create", f"{disk.scheduler}-up", "--table",
            f"0 {sectors} linear {disk.path} 0")
    run("dmsetup", "mknodes")
    upper = [f"/dev/mapper/{disk.scheduler}-up" for disk in disks]
    with checked_load(disks, upper):
        for _ in range(ROUNDS):
            for disk in disks:
                run("dmsetup", "suspend", f"{disk.scheduler}-up")
            if CPU.exists():
                CPU.write_text("0")
            for disk in disks:
                (disk.queue / "nr_requests").write_text("32")
                run("dmsetup", "resume", f"{disk.scheduler}-up")
            if CPU.exists():
                CPU.write_text("1")
            for disk in disks:
                (disk.queue / "nr_requests").write_text("64")
    return upper


def frozen(disks, upper):
    """Freeze file systems on @upper; loop devices on these, also under the project's schedulers,
    are under load."""
    loops, folders = [], []
    for number, (disk, path) in enumerate(zip(disks, upper, strict=True)):
        folder = pathlib.Path(f"/mnt/{number}")
        folder.mkdir()
        folders.append(folder)
        run("mkfs.ext4", "-q", path)
        run("mount", "-t", "ext4", path, str(folder))
        with open(folder / "file", "wb") as file:
            file.truncate(16 << 20)
        run("losetup", f"/dev/loop{number}", str(folder / "file"))
        loops.append(Disk(f"loop{number}", disk.scheduler))
    with checked_load(loops, [loop.path for loop in loops]):
        for _ in range(ROUNDS):
            for code in (FIFREEZE, FITHAW):
                for folder in folders:
                    fd = os.open(folder, os.O_RDONLY)
                    fcntl.ioctl(fd, code, 0)
                    os.close(fd)
    for loop, folder, path in zip(loops, folders, upper, strict=True):
        loop.nothing_left()
        loop.select("none")
        run("losetup", "-d", loop.path)
        run("umount", str(folder))
        run("e2fsck", "-fn", path)


def main():
    modprobe("-a", "dm-mod", "loop")
    devices = {Device("small", hw_queues=2, memory_backed=1, capacity_mb=64): name
               for name in ours()}
    disks = [Disk(device.name, name, depth=3) for device, name in devices.items()]
    upper = suspended(disks)
    frozen(disks, upper)
    for disk in disks:
        run("dmsetup", "remove", "--retry", f"{disk.scheduler}-up")
        disk.nothing_left()
        disk.select("none")
    for device in devices:
        device.remove()


if __name__ == "__main__":
    main()
