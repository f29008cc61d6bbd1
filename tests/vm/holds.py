#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# What ssdctl advise measures on is held: no file system can be made on it or mounted, no swap area
# used; a partition is refused when its drive is used as a whole; a file has no name, whatever the
# file system, and is overwritten in place
# kernels: 6.12
# timeout: 600

import contextlib
import fcntl
import mmap
import os
import pathlib
import struct
import subprocess
import sys

from checks import check, modprobe, run, wait_for
from ssd import PROJECT, Device

sys.path[:0] = [str(PROJECT / "tools/ssdctl"), str(PROJECT / "tools/common")]

from ssd_ctl import CtlError  # noqa: E402  (in a folder added above)
from ssd_common import ToolError  # noqa: E402
from ssd_common.drive import Drive  # noqa: E402
from ssd_ctl.advice import target  # noqa: E402

MB = 1 << 20
SIZE = 64 * MB
MNT = pathlib.Path("/mnt/held")
# The labels of a pool of ZFS begin with these at this place.
UBERBLOCK, UBERBLOCKS = struct.pack("<Q", 0x00bab10c), 128 << 10
LOST = b"\xa5" * 4096


def table(path, *parts):
    """Write a partition table: the first MB and the MB of each partition."""
    entries = b"".join(struct.pack("<4s4sII", bytes(4), b"\x83\0\0\0", first * 2048, size * 2048)
                       for first, size in parts)
    with open(path, "r+b") as file:
        file.seek(446)
        file.write(entries.ljust(64, b"\0") + b"\x55\xaa")
    # A read-only open claims nothing, and udev is not here.
    run("blockdev", "--rereadpt", path)
    for number in range(len(parts)):
        wait_for(lambda number=number: os.path.exists(f"{path}p{number + 1}"), "the partitions")


def fails(what, *command):
    """Check that a program fails because the device is in use."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    check(done.returncode, f"{what} fails: {done.stderr.strip()}")


def kept_away(path):
    """Check that no other program can take a device."""
    fails("mkfs", "mkfs.ext4", "-q", "-F", path)
    fails("mount", "mount", "-t", "ext4", path, MNT)
    fails("swapon", "swapon", path)


def holding(dev, on):
    """Hold a part of a drive."""
    return target.held(on, Drive(dev.path), SIZE, True)


def refused(dev, on, *because):
    """Check that a part of a drive is refused and not written to."""
    os.sync()
    before = dev.stats()["write_count"]
    try:
        with holding(dev, on):
            check(False, f"{on} is refused: {because}")
    except (CtlError, ToolError) as error:
        check(all(text in str(error) for text in because), f"refused: {error}")
    check(dev.stats()["write_count"] == before, "nothing was written")


@contextlib.contextmanager
def opened(path, *namespace):
    """Have another process that has a path open; @namespace: a command that runs it."""
    with subprocess.Popen([*namespace, "sh", "-c", f"exec 9<{path}; echo; read line"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        yield
        process.stdin.close()


def holds(dev):
    """A partition beside a mounted one, and a whole drive."""
    first, second = f"{dev.path}p1", f"{dev.path}p2"
    run("mkfs.ext4", "-q", first)
    run("mkfs.ext4", "-q", second)
    run("mount", second, MNT)
    refused(dev, second, f"is mounted on {MNT}", "it holds data: ext4")
    refused(dev, first, "it holds data: ext4", "wipefs --all")
    run("wipefs", "-q", "-a", first)
    with holding(dev, first) as where:
        check(where.kind == "partition" and
              where.device_number == os.stat(first).st_rdev and
              os.pwrite(where.descriptor, aligned(LOST), 0) == len(LOST), "it is written to")
        kept_away(first)
        refused(dev, first, "cannot be held: Device or resource busy")
    run("umount", MNT)
    run("wipefs", "-q", "-a", second)


def aligned(data):
    """Return data in memory that direct I/O can use."""
    page = mmap.mmap(-1, len(data))
    page.write(data)
    return page


def whole_drive(dev):
    """A drive as a whole, while it is held and while others have it."""
    with holding(dev, None) as where:
        check(where.kind == "drive" and where.device_number == os.stat(dev.path).st_rdev, "held")
        kept_away(dev.path)
        where.check()
        loop = run("losetup", "--find", "--show", dev.path).strip()
        where.held.next = 0
        try:
            where.check()
            check(False, "a loop device on what is held is not seen")
        except ToolError as error:
            check(f"it is held by {os.path.basename(loop)}" in str(error), f"ended: {error}")
        run("losetup", "--detach", loop)
    with opened(dev.path):
        refused(dev, None, "(sh) has it open")
    with opened(dev.path, "unshare", "--mount", "--fork"):
        refused(dev, None, "(sh) has it open")
    other = "/tmp/other-name"
    os.mknod(other, 0o600 | 0o060000, os.stat(dev.path).st_rdev)
    run("mkswap", dev.path)
    run("swapon", other)
    refused(dev, None, "it is used as swap")
    run("swapoff", other)
    run("wipefs", "-q", "-a", dev.path)
    loop = run("losetup", "--find", "--show", other).strip()
    refused(dev, None, f"it is held by {os.path.basename(loop)}")
    run("losetup", "--detach", loop)
    os.unlink(other)
    run("mkfs.ext4", "-q", dev.path)
    with subprocess.Popen(["unshare", "--mount", "--fork", "sh", "-c",
                           f"mount {dev.path} {MNT}; echo; read line"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        refused(dev, None, f"is mounted on {MNT} for process ")
        process.stdin.close()
    run("wipefs", "-q", "-a", dev.path)


def by_the_drive(dev):
    """A partition of a drive that is used as a whole."""
    part = f"{dev.path}p1"
    of_drive = f"of the whole drive {dev.path}: "
    with opened(dev.path):
        refused(dev, part, f"{of_drive}process ", "(sh) has it open")
    with opened(part):
        refused(dev, part, "process ", "(sh) has it open")
    loop = run("losetup", "--find", "--show", dev.path).strip()
    refused(dev, part, f"{of_drive}it is held by {os.path.basename(loop)}")
    run("losetup", "--detach", loop)
    sectors = int(run("blockdev", "--getsz", dev.path))
    run("dmsetup", "create", "held", "--table", f"0 {sectors} linear {dev.path} 0")
    refused(dev, part, f"{of_drive}it is held by dm-")
    run("dmsetup", "remove", "held")
    with open(dev.path, "r+b") as file:
        for number in range(16):
            file.seek(UBERBLOCKS + (number << 10))
            file.write(UBERBLOCK)
    refused(dev, part, f"{of_drive}it holds data: zfs_member")
    run("wipefs", "-q", "-a", "-f", "-t", "zfs_member", dev.path)
    with holding(dev, part):
        pass


def pools(dev):
    """A device of a mounted btrfs that is not named as what is mounted."""
    modprobe("btrfs")
    first, second = (f"{dev.path}p{number}" for number in (1, 2))
    run("mkfs.btrfs", "-q", "-f", "-m", "raid1", "-d", "raid1", first, second)
    run("btrfs", "device", "scan")
    run("mount", "-t", "btrfs", first, MNT)
    for part in (first, second):
        refused(dev, part, "it belongs to the btrfs ")
    run("umount", MNT)
    for part in (first, second):
        refused(dev, part, "it holds data: btrfs")
        run("wipefs", "-q", "-a", part)


def overlapping(dev):
    """Partitions that overlap."""
    table(dev.path, (1, 128), (100, 100))
    refused(dev, f"{dev.path}p1", f"it overlaps with {dev.name}p2")
    run("partx", "--delete", dev.path)
    run("wipefs", "-q", "-a", dev.path)


def in_a_file(dev):
    """A file on file systems that have unnamed files, and on one that has none."""
    for kind, options in (("ext4", ["-q"]), ("btrfs", ["-q"]), ("vfat", [])):
        modprobe(kind)
        run(f"mkfs.{kind}", *options, dev.path)
        run("mount", "-t", kind, dev.path, MNT)
        names = os.listdir(MNT)
        with target.held(str(MNT / "measured"), Drive(dev.path), SIZE, False) as where:
            target.fill(where, lambda part: None)
            check(os.listdir(MNT) == names and os.path.getsize(where.opened) == SIZE,
                  f"{kind}: the file is written and has no name")
            if kind == "btrfs":
                in_place(where)
        run("umount", MNT)
        run("wipefs", "-q", "-a", dev.path)


def in_place(where):
    """Check that a file is overwritten in place: no other bytes are taken."""
    flags = bytearray(4)
    fcntl.ioctl(where.descriptor, target.GET_FLAGS, flags)
    check(struct.unpack("=i", flags)[0] & target.NOCOW, "it is not copied on write")
    os.sync()
    before = target.free_bytes(where.descriptor)
    target.fill(where, lambda part: None)
    os.sync()
    taken = before - target.free_bytes(where.descriptor)
    check(taken < 8 * MB, f"{taken} bytes are taken when it is overwritten")


def main():
    MNT.mkdir(exist_ok=True)
    modprobe("loop")
    with Device("small", capacity_mb=384, memory_backed=1) as dev:
        whole_drive(dev)
        table(dev.path, (1, 128), (130, 128))
        holds(dev)
        by_the_drive(dev)
        pools(dev)
        overlapping(dev)
        in_a_file(dev)


if __name__ == "__main__":
    main()
