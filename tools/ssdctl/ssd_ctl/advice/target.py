# SPDX-License-Identifier: GPL-2.0
"""What is measured on: a file that is made for it, a free partition, or the whole drive. It is
written once before, so that reads find what was written: random bytes, which no drive compresses.
"""
import contextlib
import errno
import mmap
import os
import pathlib
import re
import stat

from ssd_ctl import CtlError, apply
from ssd_probe.drive import (NUMBERS, SECTOR, Drive, amount, claimed, device_number, holders_of,
                             mounts_of, place_of, protected, read, refuse, replaced, signatures_of,
                             swaps_of, users_of)
from ssd_probe.signals import uninterrupted

MOUNTS, BTRFS = pathlib.Path("/proc/self/mountinfo"), pathlib.Path("/sys/fs/btrfs")

# In bytes: the default size, the least size, and the size of a write.
SIZE, LEAST, CHUNK = 4 << 30, 64 << 20, 1 << 20
# The mark by which a file that an interrupted run has left is known.
MARK = "user.ssdctl.advise"
# The longest file on FAT.
LONGEST, FAT = (4 << 30) - CHUNK, "vfat"
# fio takes these for syntax: it would use another file than the one named. The last range is what
# Python makes of bytes that are not UTF-8, which no report can have.
SPECIAL = re.compile(r"[:;#$\\\x00-\x1f\x7f\udc80-\udcff]|^\s|\s$")


class Partition:
    """A partition, as far as the checks of ssd_probe.drive look at it."""

    def __init__(self, path: str, drive: Drive):
        self.path = os.path.realpath(path)
        self.number = device_number(os.stat(path).st_rdev)
        self.sysfs = place_of(self.number)
        self.queue = drive.queue
        self.drive = drive
        self.size = int(read(self.sysfs / "size") or 0) * SECTOR

    def refuse(self):
        """Raise CtlError if it must not be written to."""
        checks = (protected, mounts_of, swaps_of, holders_of, users_of, signatures_of)
        reasons = replaced(self.drive) + [reason for check in checks for reason in check(self)]
        reasons = reasons or claimed(self)
        if reasons:
            raise CtlError(f"{self.path} is not written to: {'; '.join(reasons)}")


class Target:
    """What fio reads and writes @size bytes of. @kind: "file", "partition" or "drive"."""

    def __init__(self, path: str, size: int, kind: str):
        self.path, self.size, self.kind = path, size, kind
        # Open for reading and writing inside held(): the device, which it holds exclusively, or the
        # file. st_rdev of the device; 0 of a file.
        self.descriptor, self.device_number = -1, 0

    @property
    def opened(self) -> str:
        """The path for fio, which means what is open, whatever the name means by now."""
        return f"/proc/{os.getpid()}/fd/{self.descriptor}"

    def describe(self) -> str:
        """Return it in a few words."""
        return f"{amount(self.size)} of the {self.kind} {self.path}"


def drives_below(number: str) -> set[str]:
    """Return the names of the drives that a block device is on; empty if it is none."""
    place = place_of(number)
    if not place.exists():
        return set()
    below = {name for path in place.glob("slaves/*") for name in drives_below(read(path / "dev"))}
    return below or {place.parent.name if (place / "partition").exists() else place.name}


def mount_of(folder: str) -> tuple[str, str]:
    """Return the type of the file system that holds a folder, and what is mounted there."""
    folder, best, found = os.path.realpath(folder), "", ("", "")
    for line in read(MOUNTS).splitlines():
        fields = line.split()
        place = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        # A later one covers an earlier one.
        if os.path.commonpath((place, folder)) == place and len(place) >= len(best):
            at = fields.index("-")
            best, found = place, (fields[at + 1], fields[at + 2])
    return found


def numbers_below(folder: str) -> list[str]:
    """Return the numbers of the block devices that hold a folder. btrfs has numbers of its own, and
    names one of its devices as what is mounted."""
    number = device_number(os.stat(folder).st_dev)
    if (NUMBERS / number).exists():
        return [number]
    _, source = mount_of(folder)
    if not os.path.exists(source) or not stat.S_ISBLK(os.stat(source).st_mode):
        return [number]
    number = device_number(os.stat(source).st_rdev)
    name = place_of(number).name
    pools = [path.parent for path in BTRFS.glob(f"*/devices/{name}")]
    return [read(path / "dev") for pool in pools for path in pool.glob("*")] or [number]


def free_bytes(folder: str) -> int:
    """Return the bytes that a user may write to a file system."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def marked(path: str) -> bool:
    """Return true if a file was made here."""
    try:
        return os.getxattr(path, MARK) == b"1"
    except OSError:
        return False


def file_target(path: str, drive: Drive, wanted: int | None) -> Target:
    """Return a new file on a file system of the drive, or what an interrupted run has left."""
    path = os.path.abspath(path)
    if SPECIAL.search(path):
        raise CtlError(f"{path!r}: a name with : ; # $ \\ or a control character, with a blank at "
                       "its end, or that is not UTF-8 cannot be used: choose another one")
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise CtlError(f"{folder} is no folder")
    on = {name for number in numbers_below(folder) for name in drives_below(number)}
    if os.path.isdir(path):
        raise CtlError(f"{path} is a folder: name a file in it, which is made and removed")
    if mount_of(folder)[0] == "devtmpfs":
        raise CtlError(f"there is no device {path}")
    if on != {drive.name}:
        where = f"on {' '.join(sorted(on))}" if on else "on no block device"
        raise CtlError(f"{folder} is {where}, not on {drive.path}")
    free = free_bytes(folder)
    if os.path.lexists(path):
        if not is_left(path):
            raise CtlError(f"{path} exists: name a file that does not, it is removed afterwards")
        # It is removed once no other command has the drive's lock.
        free += os.lstat(path).st_blocks * SECTOR
    most, possible = free // 2, free - LEAST
    if mount_of(folder)[0] == FAT:
        most, possible = min(most, LONGEST), min(possible, LONGEST)
    return Target(path, chosen_size(most, wanted, possible, folder), "file")


def is_left(path: str) -> bool:
    """Return true if an interrupted run has left a file."""
    return stat.S_ISREG(os.lstat(path).st_mode) and marked(path)


def chosen_size(most: int, wanted: int | None, possible: int, where: str) -> int:
    """Return the bytes to measure on: @most or SIZE by default, @possible if asked for."""
    size = (wanted or min(SIZE, most)) // CHUNK * CHUNK
    if size > possible or size < LEAST:
        raise CtlError(f"{amount(size)} on {where}: there must be room for it, and at least "
                       f"{amount(LEAST)} (--size)")
    return size


def find(on: str | None, drive: Drive, wanted: int | None) -> Target:
    """Return what to measure on, by the --on of the user; none: the whole drive."""
    if not on:
        refuse(drive)
        return Target(drive.path, chosen_size(drive.size, wanted, drive.size, drive.path), "drive")
    if not os.path.exists(on) or not stat.S_ISBLK(os.stat(on).st_mode):
        return file_target(on, drive, wanted)
    place = place_of(device_number(os.stat(on).st_rdev))
    if not (place / "partition").exists() or place.parent.name != drive.name:
        raise CtlError(f"{on} is no partition of {drive.path}: name one, or a file on it that does "
                       "not exist; without --on the whole drive is written to")
    partition = Partition(on, drive)
    partition.refuse()
    return Target(partition.path, chosen_size(partition.size, wanted, partition.size, on),
                  "partition")


def open_direct(path: str, flags: int) -> int:
    """Open without the page cache, if the file system can."""
    try:
        return os.open(path, flags | os.O_DIRECT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.open(path, flags | os.O_CLOEXEC, 0o600)


def fill(target: Target, progress):
    """Write it once in ascending order. @progress: is called with the part that is done."""
    chunk = mmap.mmap(-1, CHUNK)
    try:
        for offset in range(0, target.size, CHUNK):
            chunk.seek(0)
            chunk.write(os.urandom(CHUNK))
            written = os.pwritev(target.descriptor, [chunk], offset)
            if written != CHUNK:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            progress(offset / target.size)
        os.fsync(target.descriptor)
    except OSError as error:
        raise CtlError(f"{target.path} cannot be written: {error.strerror}") from None
    finally:
        chunk.close()


def take(target: Target):
    """Open it: a device exclusively, a file as a new one."""
    flags = os.O_RDWR | os.O_EXCL | (os.O_CREAT if target.kind == "file" else 0)
    try:
        target.descriptor = open_direct(target.path, flags)
    except OSError as error:
        raise CtlError(f"{target.path} cannot be held: {error.strerror}") from None
    target.device_number = os.fstat(target.descriptor).st_rdev
    if target.kind == "file":
        with contextlib.suppress(OSError):
            os.setxattr(target.path, MARK, b"1")


@contextlib.contextmanager
def held(target: Target, drive: Drive):
    """Keep udev, other commands and other programs away from what is measured on, and remove the
    file at the end."""
    with apply.locked(drive):
        if target.kind == "file" and os.path.lexists(target.path) and is_left(target.path):
            os.unlink(target.path)
        take(target)
        try:
            yield
        finally:
            with uninterrupted(), contextlib.suppress(OSError):
                os.close(target.descriptor)
                if target.kind == "file":
                    os.unlink(target.path)
