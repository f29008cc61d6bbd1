# SPDX-License-Identifier: GPL-2.0
"""A drive, and a partition of one: what the kernel says of it."""
import contextlib
import fcntl
import mmap
import os
import pathlib
import random
import re
import stat
import time

from ssd_common import DriveFailed, ToolError

BLOCK, NUMBERS = pathlib.Path("/sys/block"), pathlib.Path("/sys/dev/block")
BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")
# The longest wait for the lock of a drive: udev holds it while it processes an event.
LOCK_S = 5
SECTOR = 512
# Bytes, and number, of the blocks that are looked at for what is on the drive.
PAGE, LOOKS = 4096, 64
# The page of a SCSI drive's serial number.
UNIT_SERIAL = "vpd_pg80"
# Fields of /sys/block/X/stat (Documentation/block/stat.rst): the first of a direction's four, and
# the ms in which the drive had a request.
WAYS = {"read": 0, "write": 4, "discard": 11}
REQUESTS, MERGES, SECTORS, TICKS = range(4)
BUSY_MS = 9


def read(path: pathlib.Path) -> str:
    """Return the text of a file of sysfs or procfs, "" if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip("\0\n ")
    except OSError:
        return ""


def page_text(path: pathlib.Path) -> str:
    """Return the text of a page of SCSI's vital product data, "" if there is none. The third and
    fourth of its bytes are the length, the others follow."""
    try:
        data = path.read_bytes()
    except OSError:
        return ""
    return data[4:4 + int.from_bytes(data[2:4], "big")].decode("ascii", "replace")


def counters(sysfs: pathlib.Path) -> list[int]:
    """Return the fields of stat of the drive with this folder, [] if it has disappeared."""
    return [int(word) for word in read(sysfs / "stat").split()]


def in_flight(sysfs: pathlib.Path) -> dict[str, int]:
    """Return how many requests of each direction are in flight on a drive."""
    words = read(sysfs / "inflight").split() or ["0", "0"]
    return dict(zip(WAYS, map(int, words), strict=False))


def device_number(device: int) -> str:
    """Return a device's number, of st_rdev or st_dev, as the kernel writes it: major:minor."""
    return f"{os.major(device)}:{os.minor(device)}"


def place_of(number: str) -> pathlib.Path:
    """Return the folder in sysfs of the block device major:minor."""
    return (NUMBERS / number).resolve()


def chosen(text: str) -> str:
    """Return the selected one of a setting that shows its alternatives: b of "a [b] c"."""
    match = re.search(r"\[(.+?)\]", text)
    return match[1] if match else text


class Drive:
    """A whole block device that the user names with a @path."""

    def __init__(self, path: str):
        self.path = os.path.realpath(path)
        self.name = self.block_name(path)
        self.sysfs = BLOCK / self.name
        self.queue = self.sysfs / "queue"
        self.size = int(read(self.sysfs / "size") or 0) * SECTOR
        if not self.size:
            raise ToolError(f"{path} has no medium or no size")
        # What note() has noted.
        self.noted: tuple[str, int] | None = None

    def block_name(self, path: str) -> str:
        """Return the kernel's name of the device."""
        try:
            made = os.stat(path)
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror}") from None
        if not stat.S_ISBLK(made.st_mode):
            raise ToolError(f"{path} is not a block device")
        self.number = device_number(made.st_rdev)
        place = place_of(self.number)
        if (place / "partition").exists():
            raise ToolError(f"{path} is a partition: name the drive, /dev/{place.parent.name}")
        # A name with a slash has an exclamation mark in sysfs.
        return place.name

    def exists(self) -> bool:
        """Return true if the kernel still has the drive."""
        return read(self.sysfs / "dev") == self.number

    def explained(self, error: ToolError) -> ToolError:
        """Return the error to report instead of @error, which ended the run."""
        if not self.exists():
            return DriveFailed(f"{self.path} has disappeared: {error}")
        return DriveFailed(f"{self.path}: {error}") if isinstance(error, DriveFailed) else error

    def number_of(self, attribute: str) -> int:
        """Return a number of the queue; 0 if the kernel has none."""
        text = read(self.queue / attribute)
        return int(text) if text.isdigit() else 0

    @property
    def block(self) -> int:
        """Bytes of a logical block."""
        return self.number_of("logical_block_size") or SECTOR

    @property
    def max_bytes(self) -> int:
        """Bytes of the largest request under the current settings."""
        return self.number_of("max_sectors_kb") * 1024

    @property
    def tags(self) -> int:
        """Requests that the drive takes at once. Counts only without a scheduler."""
        queues = len([path for path in self.sysfs.glob("mq/*") if path.is_dir()]) or 1
        found = (self.number_of("nr_requests") or 1) * queues
        own = read(self.sysfs / "device/queue_depth")
        return min(found, int(own)) if own.isdigit() and int(own) else found

    def identity(self) -> dict[str, str | int | bool]:
        """Return what tells this drive from others."""
        device = self.sysfs / "device"
        # A namespace of NVMe has its wwid in its own folder.
        names = {"vendor": ("vendor",), "model": ("model", "name"),
                 "firmware": ("firmware_rev", "rev", "fwrev"),
                 "serial": ("serial", "../serial", UNIT_SERIAL, self.sysfs / "serial"),
                 "wwid": (self.sysfs / "wwid", "wwid", "../wwid")}
        found: dict[str, str | int | bool] = {"name": self.name, "bytes": self.size}
        for key, files in names.items():
            texts = (re.sub(r"[^ -~]+", " ", (page_text if file == UNIT_SERIAL else read)(
                device / file)).strip() for file in files)
            found[key] = next((" ".join(text.split()) for text in texts if text), "")
        found["driver"] = self.driver()
        found["logical_block"] = self.block
        found["rotational"] = bool(self.number_of("rotational"))
        return found

    def driver(self) -> str:
        """Return the name of the nearest driver on the drive's bus, "" if unknown."""
        for place in (self.sysfs / "device").resolve().parents:
            if (place / "driver").exists():
                return (place / "driver").resolve().name
        return ""

    def key(self) -> dict[str, str | int | bool]:
        """Return what a later run recognizes this drive by: without a serial number, only while
        the kernel has it."""
        found = self.identity()
        if not (found["serial"] or found["wwid"]):
            return {**found, "instance": self.instance()}
        # The name depends on the order in which drives are found.
        return {key: value for key, value in found.items() if key != "name"}

    def instance(self) -> str:
        """Return what no other drive has, of this boot or another."""
        return f"{read(BOOT_ID)} {read(self.sysfs / 'diskseq') or self.number}"

    def note(self):
        """Note which drive and medium the name means, for replaced(). Has to follow an open of the
        drive, which notices a medium that was put in before."""
        self.noted = (self.instance(), self.size)

    def replaced(self) -> bool:
        """Return true if the name has come to mean another drive, or another medium is in it, since
        note(): the user was asked about the first one."""
        now = (self.instance(), int(read(self.sysfs / "size") or 0) * SECTOR)
        return self.noted not in (None, now) or not self.exists()

    @property
    def drive(self) -> "Drive":
        """The drive, as of a partition."""
        return self

    def describe(self) -> str:
        """Return the drive in a few words."""
        found = self.identity()
        words = " ".join(filter(None, (found["vendor"], found["model"])))
        return ", ".join(filter(None, (
            self.name, words, found["firmware"] and f"firmware {found['firmware']}",
            found["serial"] and f"serial number {found['serial']}", amount(self.size))))

    @staticmethod
    def has_zeros(device: int, size: int, seed: int) -> bool:
        """Return true if blocks of zeros are among the first @size bytes, as after a discard. Reads
        a few blocks of @device, which is open for direct I/O; raises DriveFailed."""
        blocks = range(0, size, PAGE)
        places = random.Random(seed).sample(blocks, min(LOOKS, len(blocks)))
        page = mmap.mmap(-1, PAGE)
        try:
            return any(Drive.is_zero(device, page, place) for place in places)
        except OSError as error:
            raise DriveFailed(f"it cannot be read: {error.strerror}") from None

    @staticmethod
    def is_zero(device: int, page: mmap.mmap, place: int) -> bool:
        """Return true if a drive gives a @page of zeros for the bytes from @place on."""
        # What stores no data leaves the memory as it is.
        page[:] = b"\xff" * PAGE
        os.preadv(device, [page], place)
        return page[:] == bytes(PAGE)

    @contextlib.contextmanager
    def locked(self):
        """Hold the lock by which programs, udev among them, leave a drive alone. Gives the lock's
        descriptor."""
        try:
            device = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise ToolError(f"{self.path}: {error.strerror}") from None
        end = time.monotonic() + LOCK_S
        try:
            while True:
                try:
                    fcntl.flock(device, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise ToolError(f"{self.path} is locked by another program: wait until "
                                        "it ends") from None
                time.sleep(0.1)
            yield device
        finally:
            os.close(device)


class Partition:
    """A partition of a @drive, which the user names with a @path. @number: major:minor."""

    def __init__(self, path: str, drive: Drive, number: str = ""):
        self.path, self.drive, self.queue = os.path.realpath(path), drive, drive.queue
        self.number = number or device_number(os.stat(path).st_rdev)
        self.sysfs = place_of(self.number)
        self.name = self.sysfs.name
        self.first, self.size = self.extent()

    def extent(self) -> tuple[int, int]:
        """Return its first byte on the drive, and its bytes."""
        return tuple(int(read(self.sysfs / name) or 0) * SECTOR for name in ("start", "size"))

    def note(self):
        """As Drive.note()."""
        self.drive.note()

    def replaced(self) -> bool:
        """Return true if its name means another part of a drive by now, or of another drive."""
        return (self.drive.replaced() or (self.first, self.size) != self.extent() or
                read(self.sysfs / "dev") != self.number)


def amount(size: float) -> str:
    """Return bytes for eyes."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} bytes"
