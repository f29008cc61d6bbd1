# SPDX-License-Identifier: GPL-2.0
"""What is measured on: an unnamed file, a free partition, or the whole drive. It is open, a device
exclusively, from before the checks until the last I/O has ended. It is written once before, so that
reads find what was written: random bytes, which no drive compresses.

The file never has a name that another user could put something else in the place of, and nothing is
left of it, however the program ends.
"""
import collections.abc
import contextlib
import errno
import fcntl
import mmap
import os
import pathlib
import secrets
import stat
import struct

from ssd_common.drive import NUMBERS, Drive, Partition, amount, device_number, place_of, read
from ssd_common.holding import Held, above_streams, unescaped
from ssd_ctl import CtlError, UsageError

MOUNTS, BTRFS = pathlib.Path("/proc/self/mountinfo"), pathlib.Path("/sys/fs/btrfs")

# In bytes: the default size, the least size, and the size of a write.
SIZE, LEAST, CHUNK = 4 << 30, 64 << 20, 1 << 20
# The part of the free space that a file may have.
PART = 4
# The longest file on FAT.
LONGEST, FAT = (4 << 30) - CHUNK, "vfat"
# These write what is overwritten to another place, so that a file takes more and more room; the
# first one can be told not to.
BY_FLAG, COPYING = "btrfs", ("bcachefs", "nilfs2", "zfs")
# ioctls, of a long by their name and of an int in fact, and the flags of a file: not copied on
# write, compressed.
FLAGS = struct.Struct("=i")
LONG = struct.calcsize("l")
GET_FLAGS, SET_FLAGS = (way << 30 | LONG << 16 | ord("f") << 8 | number
                        for way, number in ((2, 1), (1, 2)))
NOCOW, COMPRESSED = 0x800000, 0x4
# Errors of a file system that has no unnamed files, or no direct I/O.
UNNAMED = os.O_TMPFILE | os.O_EXCL
NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL, errno.ENOSYS)


class Target:
    """What fio reads and writes @size bytes of. @kind: "file", "partition" or "drive".
    @descriptor: open for reading and writing; a device is held by it. @held: the hold."""

    def __init__(self, path: str, size: int, kind: str, descriptor: int,
                 held: Held | None = None):
        self.path, self.size, self.kind = path, size, kind
        self.descriptor, self.held = descriptor, held
        # st_rdev of the device; 0 of a file.
        self.device_number = os.fstat(descriptor).st_rdev if held else 0

    @property
    def opened(self) -> str:
        """The path for fio, which means what is open, whatever the name means by now."""
        return f"/proc/{os.getpid()}/fd/{self.descriptor}"

    def describe(self) -> str:
        """Return it in a few words."""
        kind = "a file in" if self.kind == "file" else f"the {self.kind}"
        # A name need not be UTF-8.
        return f"{amount(self.size)} of {kind} {os.fsencode(self.path).decode(errors='replace')}"

    def check(self):
        """Raise CtlError if the file system of a file has less room left than the file takes, which
        is a third of what was left at first, or less: others need it; ToolError if others have
        begun to use a device."""
        if self.held:
            self.held.still()
        if self.kind == "file" and free_bytes(self.descriptor) < self.size:
            raise CtlError(f"{self.path}: the measurement has ended because less than "
                           f"{amount(self.size)} are free there by now")


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
        place = unescaped(fields[4])
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


def free_bytes(place: int) -> int:
    """Return the bytes that a user may write to the file system of what is open."""
    found = os.fstatvfs(place)
    return found.f_bavail * found.f_frsize


def folder_of(path: str) -> str:
    """Return the folder that a path means: itself, or the one that a new file would be in."""
    path = os.path.abspath(path)
    if os.path.isdir(path):
        return path
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise CtlError(f"{folder} is no folder")
    if mount_of(folder)[0] == "devtmpfs":
        raise CtlError(f"there is no device {path}")
    if os.path.lexists(path):
        raise CtlError(f"{path} exists: name a folder, or a file that does not exist")
    return folder


def check_place(name: str, opened: str, drive: Drive):
    """Raise CtlError if a folder is not on the drive, or not on it alone. @opened: the path that
    means what is open, whatever its @name means by now."""
    on = {name for number in numbers_below(opened) for name in drives_below(number)}
    if on != {drive.name}:
        where = f"on {' '.join(sorted(on))}" if on else "on no block device"
        raise CtlError(f"{name} is {where}, not on {drive.path}")
    kind = mount_of(opened)[0]
    if kind in COPYING:
        raise CtlError(f"{name} is on {kind}, which writes what is overwritten to another place "
                       "until it is full: use a partition, or another file system")


def size_in(folder: int, name: str, kind: str, wanted: int | None) -> int:
    """Return the bytes of a file in a folder, which is open and has this @name. @kind: of the file
    system."""
    most = free_bytes(folder) // PART
    if kind == FAT:
        most = min(most, LONGEST)
    return chosen_size(most, wanted, name, ", a quarter of what is free")


def chosen_size(most: int, wanted: int | None, where: str, why: str = "") -> int:
    """Return the bytes to measure on, which are SIZE by default. @most: there can be; @why."""
    if most < LEAST:
        raise CtlError(f"{where} has room for {amount(most)}{why}: {amount(LEAST)} are needed")
    size = (wanted or min(SIZE, most)) // CHUNK * CHUNK
    if not LEAST <= size <= most:
        raise CtlError(f"--size: {amount(size)} on {where}: it has to be at least {amount(LEAST)} "
                       f"and at most {amount(most)}{why}")
    return size


def open_direct(path: str, flags: int, folder: int) -> int:
    """Open a path in a folder that is open, without the page cache if the file system can."""
    flags |= os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags | os.O_DIRECT, 0o600, dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.open(path, flags, 0o600, dir_fd=folder)


def unnamed(folder: int) -> int:
    """Return the descriptor of a new file in a folder that is open. It has no name: where the file
    system has no such files, it has one for a moment."""
    try:
        # O_EXCL: it never gets a name.
        return open_direct(".", UNNAMED, folder)
    except OSError as error:
        if error.errno not in NO_UNNAMED:
            raise
    name = f".ssdctl-{secrets.token_hex(8)}"
    file = open_direct(name, os.O_CREAT | os.O_EXCL, folder)
    os.unlink(name, dir_fd=folder)
    if os.fstat(file).st_nlink:
        os.close(file)
        raise CtlError("another user has renamed the file while it was made")
    return file


def write_in_place(file: int, kind: str):
    """Have a new file overwritten in place, and not compressed. @kind: of the file system."""
    try:
        flags, = FLAGS.unpack(fcntl.ioctl(file, GET_FLAGS, bytes(FLAGS.size)))
    except OSError:
        # There are no flags.
        flags = 0
    needed = flags & ~COMPRESSED | (NOCOW if kind == BY_FLAG else 0)
    if needed == flags:
        return
    try:
        fcntl.ioctl(file, SET_FLAGS, FLAGS.pack(needed))
    except OSError as error:
        raise CtlError(f"{kind} does not overwrite a file in place here ({error.strerror}), it "
                       "would take more and more room: use a partition, or another file system"
                       ) from None


@contextlib.contextmanager
def scratch(path: str, drive: Drive, wanted: int | None) -> collections.abc.Iterator[Target]:
    """Give a new file on a file system of the drive. @path: a folder, or a file in it."""
    name = folder_of(path)
    with contextlib.ExitStack() as stack:
        try:
            folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, folder)
            opened = f"/proc/self/fd/{folder}"
            place = os.readlink(opened)
            check_place(place, opened, drive)
            kind = mount_of(opened)[0]
            size = size_in(folder, place, kind, wanted)
            file = above_streams(unnamed(folder))
            stack.callback(os.close, file)
        except OSError as error:
            raise CtlError(f"{name} cannot be written to: {error.strerror}") from None
        write_in_place(file, kind)
        yield Target(name, size, "file", file)


def device_named(on: str | None, drive: Drive) -> Drive | Partition | None:
    """Return the device that --on names, None if it names no device. Without it: the drive."""
    if on is None:
        return drive
    # As an unset variable of a shell does: that means neither the drive nor this folder.
    if not on:
        raise UsageError("--on names nothing")
    try:
        made = os.stat(on)
    except OSError:
        return None
    if not stat.S_ISBLK(made.st_mode):
        return None
    # Held() refuses what the name means if that has another number.
    number = device_number(made.st_rdev)
    place = place_of(number)
    if not (place / "partition").exists() or place.parent.name != drive.name:
        raise CtlError(f"{on} is no partition of {drive.path}: name one, or a folder or a new file "
                       "on the drive")
    return Partition(on, drive, number)


@contextlib.contextmanager
def held(on: str | None, drive: Drive, wanted: int | None,
         destroy: bool) -> collections.abc.Iterator[Target]:
    """Give what to measure on, by the --on and --size of the user, and hold it until the end of the
    block. @destroy: a device may be overwritten."""
    device = device_named(on, drive)
    if not device:
        with scratch(on, drive, wanted) as target:
            yield target
        return
    if not destroy:
        raise UsageError(f"name a file to measure on, --on FILE, which is removed afterwards; or "
                         f"--destroy all data on {device.path}")
    size = chosen_size(device.size, wanted, device.path)
    with Held(device) as hold:
        yield Target(device.path, size, "drive" if device is drive else "partition",
                     hold.descriptor, hold)


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
            target.check()
            progress(offset / target.size)
        os.fsync(target.descriptor)
    except OSError as error:
        raise CtlError(f"{target.path} cannot be written: {error.strerror}") from None
    finally:
        chunk.close()
