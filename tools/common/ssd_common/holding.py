# SPDX-License-Identifier: GPL-2.0
"""A drive, or a partition of one, that is written to: what forbids it, and the hold that keeps
others away.

The hold is an exclusive open (O_EXCL), which is there before the checks and until the last I/O has
ended. The kernel lets none of these have the device meanwhile: a file system that is made or
mounted, swap, md, the device mapper, btrfs, ZFS and bcache. Who has it already makes the open
fail. Programs that open a device as a whole and claim nothing (virtual machines, databases) are
looked for among all processes (openers.py), before the first I/O and now and then until the last
one. The number of a device that is open is given to no other one, so what opens it again by number
or through /proc means the same.
"""
import collections.abc
import contextlib
import fcntl
import os
import pathlib
import re
import struct
import subprocess
import time

from ssd_common import ToolError
from ssd_common.drive import BLOCK, SECTOR, Drive, Partition, device_number, place_of, read
from ssd_common.openers import Nodes, mount_tables, openers
from ssd_common.output import plain
from ssd_common.packages import with_sbin

BTRFS, CONFIG = pathlib.Path("/sys/fs/btrfs"), pathlib.Path("/sys/kernel/config")
GENERIC = pathlib.Path("/sys/class/nvme-generic")
# What names a device that the kernel gives to other machines, over NVMe and over SCSI.
EXPORTS = ("nvmet/subsystems/*/namespaces/*/device_path", "target/core/*/*/udev_path")
# The part of the time that looks at other programs may take during a run.
LOOKING = 0.01
# udev opens a device only for a moment.
UDEV_S = 2
HOLD = os.O_RDWR | os.O_EXCL | os.O_DIRECT | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC
# The ioctl that asks for the status of a loop device, and where the struct has the number of the
# block device that it is on.
LOOP_STATUS, LOOP_BYTES, LOOP_ON = 0x4C05, 232, struct.Struct("=16xQ")
TABLE = "partition-table"

Device = Drive | Partition


def is_device(path: str | int, number: str) -> bool:
    """Return true if a path, or what is open, is the block device major:minor."""
    return Nodes(frozenset((number,))).mean(path)


def unescaped(path: str) -> str:
    """Return a path that the kernel has written into a table of /proc."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), path)


def mounts_of(device: Device) -> list[str]:
    """Return where the device is mounted."""
    found = []
    for whose, table in mount_tables():
        for fields in map(str.split, table.splitlines()):
            if device.number == fields[2] or device.path in fields[fields.index("-"):]:
                found.append(f"it is mounted on {plain(unescaped(fields[4]))}{whose}")
    return found


def swaps_of(device: Device) -> list[str]:
    """Return the reason if the device is used as swap space."""
    used = [line.split()[0] for line in read(pathlib.Path("/proc/swaps")).splitlines()[1:]]
    return ["it is used as swap"] if any(is_device(unescaped(path), device.number)
                                         for path in used) else []


def partitions_of(drive: Drive) -> list[str]:
    """Return the reason if the drive has partitions."""
    parts = sorted(path.parent.name for path in drive.sysfs.glob("*/partition"))
    return [f"it is partitioned: {' '.join(parts)}"] if parts else []


def overlaps_of(part: Partition) -> list[str]:
    """Return the reason if another partition has a part of this one, as an extended partition has
    of the logical ones."""
    found = []
    for place in part.drive.sysfs.glob("*/partition"):
        other = place.parent
        first, size = (int(read(other / name) or 0) * SECTOR for name in ("start", "size"))
        if other.name != part.name and (first < part.first + part.size and
                                        part.first < first + size):
            found.append(other.name)
    return [f"it overlaps with {' '.join(sorted(found))}"] if found else []


def below_loop(name: str) -> str:
    """Return the number of the block device that a loop device is on, 0:0 if it is on none; "" if
    that cannot be told, such as without a node in /dev."""
    status = bytearray(LOOP_BYTES)
    try:
        loop = os.open(f"/dev/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        fcntl.ioctl(loop, LOOP_STATUS, status)
    except OSError:
        return ""
    finally:
        os.close(loop)
    return device_number(LOOP_ON.unpack_from(status)[0])


def is_below(loop: pathlib.Path, device: Device) -> bool:
    """Return true if a loop device, by its folder in sysfs, is on the device."""
    below = below_loop(loop.name)
    if below:
        return below == device.number
    return is_device(read(loop / "loop/backing_file"), device.number)


def holders_of(device: Device) -> list[str]:
    """Return the reason if md, dm, bcache, a loop device or a target of NVMe or SCSI uses the
    device."""
    names = [path.name for path in device.sysfs.glob("holders/*")]
    names += [path.parent.name for path in BLOCK.glob("loop*/loop")
              if is_below(path.parent, device)]
    names += [str(path.parent) for pattern in EXPORTS for path in CONFIG.glob(pattern)
              if is_device(read(path), device.number)]
    if not names and (device.sysfs / "bcache").exists():
        names = ["bcache"]
    return [f"it is held by {' '.join(sorted(names))}"] if names else []


def paths_of(drive: Drive) -> list[str]:
    """Return the reason if another drive is a path to the same data, as of a storage network."""
    def kept(place):
        return (read(place / "wwid") or read(place / "device/wwid"), read(place / "size"))
    mine = kept(drive.sysfs)
    others = [place.name for place in sorted(BLOCK.glob("*")) if mine[0] and
              place.name != drive.name and read(place / "hidden") != "1" and kept(place) == mine]
    return [f"it is {' '.join(others)}, too: they have one wwid"] if others else []


def pools_of(device: Device) -> list[str]:
    """Return the reason if the device belongs to a btrfs that is mounted, which names only one of
    its devices as what is mounted."""
    pools = [path.parent.parent.name for path in BTRFS.glob(f"*/devices/{device.sysfs.name}")]
    return [f"it belongs to the btrfs {pool}, which is mounted" for pool in pools]


def stacked_on(drive: Drive) -> list[str]:
    """Return the reason if the device is not a drive but made of others, or of a file."""
    below = sorted(path.name for path in drive.sysfs.glob("slaves/*"))
    if below:
        return [f"it is not a drive, but made of {' '.join(below)}"]
    if (drive.sysfs / "loop").exists():
        return ["it is not a drive, but a file"]
    return []


def replaced(device: Device) -> list[str]:
    """Return the reason if the device is another one than when it was held."""
    return ["it is another drive now, or has another medium"] if device.replaced() else []


def protected(device: Device) -> list[str]:
    """Return the reason if the device cannot be written to at any place."""
    if "1" in (read(device.sysfs / "ro"), read(device.drive.sysfs / "ro")):
        return ["it is read-only"]
    zoned = read(device.queue / "zoned")
    return [f"it is zoned ({zoned})"] if zoned not in ("", "none") else []


def nodes_of(device: Device) -> Nodes:
    """Return the nodes that mean the device; of a drive also those of its commands."""
    found = []
    if isinstance(device, Drive):
        found = [*device.sysfs.glob("device/scsi_generic/*/dev"),
                 *device.sysfs.glob("device/bsg/*/dev"),
                 GENERIC / device.name.replace("nvme", "ng", 1) / "dev"]
    return Nodes(frozenset((device.number,)), frozenset(map(read, found)))


def users_of(device: Device, children: bool = True) -> list[str]:
    """Return the reason if another process has the device open: a virtual machine or a database
    claims no drive that it uses as a whole. udev opens a drive only for a moment. @children: also
    those that this process has started."""
    nodes = nodes_of(device)
    found = openers(nodes, children)
    if found:
        time.sleep(UDEV_S)
        found = [reason for reason in openers(nodes, children) if reason in found]
    return found


def children_aside(device: Device) -> list[str]:
    """As users_of(), without what this process has started."""
    return users_of(device, children=False)


def signatures_on(path: str) -> list[tuple[str, str]]:
    """Return the type and the use of each signature that libblkid finds on a device."""
    command = ["wipefs", "--no-act", "--noheadings", "--output", "TYPE,USAGE", path]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env=with_sbin())
    except FileNotFoundError:
        raise ToolError("wipefs is missing: install util-linux") from None
    if done.returncode:
        raise ToolError(done.stderr.strip() or "wipefs failed")
    lines = filter(None, map(str.split, done.stdout.splitlines()))
    return [(words[0], words[-1]) for words in lines]


def signatures_of(device: Device, but: str = "") -> list[str]:
    """Return what libblkid finds on the device, without what has the use @but."""
    try:
        kinds = sorted({kind for kind, use in signatures_on(device.path) if use != but})
    except ToolError as error:
        return [f"what is on it cannot be told: {error}"]
    return [f"it holds data: {' '.join(kinds)} (see wipefs(8))"] if kinds else []


def whole(part: Partition) -> list[str]:
    """Return why the drive of a partition forbids to write to the partition: who uses the drive as
    a whole uses the partition. Other partitions may be used, which is usual."""
    drive = part.drive
    checks = (mounts_of, swaps_of, holders_of, pools_of, paths_of, users_of)
    found = [reason for check in checks for reason in check(drive)]
    # A RAID of the firmware, LVM or btrfs on a whole drive, beside what may be an old table.
    found += signatures_of(drive, but=TABLE)
    return [f"of the whole drive {drive.path}: {reason}" for reason in found]


def refusals(device: Device) -> list[str]:
    """Return every reason not to write to a device."""
    of_kind = ((stacked_on, paths_of, partitions_of) if isinstance(device, Drive) else
               (overlaps_of, whole))
    checks = (replaced, protected, mounts_of, swaps_of, holders_of, pools_of, *of_kind, users_of,
              signatures_of)
    return [reason for check in checks for reason in check(device)]


def begun(device: Device) -> list[str]:
    """Return what others have begun to do with a device that is held, of which the hold keeps away
    only a part: all that can be told in little time."""
    checks = (mounts_of, swaps_of, holders_of, children_aside)
    found = replaced(device) + [reason for check in checks for reason in check(device)]
    if device is not device.drive:
        found += [f"of the whole drive {device.drive.path}: {reason}" for check in checks
                  for reason in check(device.drive)]
    return found


def refused(device: Device, reasons: list[str]) -> ToolError:
    """Return the error that says why a device is not written to."""
    only = len(reasons) == 1 and reasons[0].startswith("it holds data")
    return ToolError(f"{device.path} is not written to: {'; '.join(reasons)}" +
                     f": if it is not needed, wipefs --all {device.path} clears it" * only)


def above_streams(descriptor: int) -> int:
    """Return a descriptor of the same that is none of the three streams, in place of @descriptor.
    The caller may have closed a stream, and that of a child would replace it there."""
    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)


class Held:
    """A device that is open for direct I/O and exclusively, as @descriptor, and that may be written
    to; until the end of the with block, in which refuse() checks again what may have changed.
    Raises ToolError if the kernel does not give it, or if it must not be written to."""

    def __init__(self, device: Device):
        self.device = device
        # When still() looks again.
        self.next = 0.0
        try:
            self.descriptor = above_streams(os.open(device.path, HOLD))
        except OSError as error:
            raise refused(device, refusals(device) or
                          [f"it cannot be held: {error.strerror}"]) from None
        try:
            if not (is_device(self.descriptor, device.number) and
                    place_of(device.number).is_relative_to(device.drive.sysfs.resolve())):
                raise refused(device, ["its name means another device by now"])
            device.note()
            self.refuse()
        except BaseException:
            os.close(self.descriptor)
            raise

    def refuse(self):
        """Raise ToolError if the device must not be written to."""
        reasons = refusals(self.device)
        if reasons:
            raise refused(self.device, reasons)

    def still(self):
        """Raise ToolError if others have begun to use the device since it was held. Looks now and
        then only, as often as is asked for at most."""
        began = time.monotonic()
        if began < self.next:
            return
        reasons = begun(self.device)
        if reasons:
            raise ToolError(f"{self.device.path} is not written to any more: "
                            f"{'; '.join(reasons)}")
        ended = time.monotonic()
        self.next = ended + (ended - began) / LOOKING

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.descriptor)


@contextlib.contextmanager
def reading(drive: Drive) -> collections.abc.Iterator[int]:
    """Give a descriptor for direct reads of a drive, which others may use."""
    try:
        descriptor = above_streams(os.open(drive.path, READ))
    except OSError as error:
        raise ToolError(f"{drive.path}: {error.strerror}") from None
    try:
        drive.note()
        yield descriptor
    finally:
        os.close(descriptor)
