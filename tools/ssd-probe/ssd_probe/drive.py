# SPDX-License-Identifier: GPL-2.0
"""The drive that is probed: what it is, what forbids to write to it, and the settings of its
queue, which are changed for the measurements and restored afterwards."""
import contextlib
import fcntl
import mmap
import os
import pathlib
import random
import re
import stat
import struct
import subprocess
import time

from ssd_probe import DriveFailed, ProbeError

BLOCK, NUMBERS = pathlib.Path("/sys/block"), pathlib.Path("/sys/dev/block")
BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")
# Other settings wait until the scheduler's own changes of them, which some make a moment later,
# are over.
SETTLE_S = 0.5
UDEV_S = 2
# The longest wait for the lock of a drive: udev holds it while it processes an event.
LOCK_S = 5
# What is measured with; each if the kernel has it. The scheduler comes first, because a change
# of it changes others.
SCHEDULER = "scheduler"
MEASURING = {"nomerges": "2", "wbt_lat_usec": "0", "iostats": "1", "rq_affinity": "2"}
# Changed by a change of the scheduler.
SIDE_EFFECTS = ("nr_requests", "async_depth")
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
            raise ProbeError(f"{path} has no medium or no size")
        # What note() has noted.
        self.noted = ""

    def block_name(self, path: str) -> str:
        """Return the kernel's name of the device."""
        try:
            made = os.stat(path)
        except OSError as error:
            raise ProbeError(f"{path}: {error.strerror}") from None
        if not stat.S_ISBLK(made.st_mode):
            raise ProbeError(f"{path} is not a block device")
        self.number = device_number(made.st_rdev)
        place = place_of(self.number)
        if (place / "partition").exists():
            raise ProbeError(f"{path} is a partition: name the drive, /dev/{place.parent.name}")
        # A name with a slash has an exclamation mark in sysfs.
        return place.name

    def exists(self) -> bool:
        """Return true if the kernel still has the drive."""
        return read(self.sysfs / "dev") == self.number

    def explained(self, error: ProbeError) -> ProbeError:
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
                 "serial": ("serial", "../serial", UNIT_SERIAL),
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
        self.noted = self.instance()

    def describe(self) -> str:
        """Return the drive in a few words."""
        found = self.identity()
        words = " ".join(filter(None, (found["vendor"], found["model"])))
        return ", ".join(filter(None, (
            self.name, words, found["firmware"] and f"firmware {found['firmware']}",
            found["serial"] and f"serial number {found['serial']}", amount(self.size))))

    def has_zeros(self, size: int, seed: int) -> bool:
        """Return true if blocks of zeros are among the first @size bytes, as after a discard. Reads
        a few blocks; raises DriveFailed."""
        blocks = range(0, size, PAGE)
        places = random.Random(seed).sample(blocks, min(LOOKS, len(blocks)))
        page = mmap.mmap(-1, PAGE)
        try:
            device = os.open(self.path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
            try:
                return any(self.is_zero(device, page, place) for place in places)
            finally:
                os.close(device)
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
        """Hold the lock by which programs, udev among them, leave a drive alone."""
        try:
            device = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise ProbeError(f"{self.path}: {error.strerror}") from None
        end = time.monotonic() + LOCK_S
        try:
            while True:
                try:
                    fcntl.flock(device, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise ProbeError(f"{self.path} is locked by another program") from None
                time.sleep(0.1)
            yield
        finally:
            os.close(device)


def amount(size: float) -> str:
    """Return bytes for eyes."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} bytes"


def mounts_of(drive: Drive) -> list[str]:
    """Return why the drive's own mounts forbid to write."""
    found = []
    for line in read(pathlib.Path("/proc/self/mountinfo")).splitlines():
        fields = line.split()
        if drive.number == fields[2] or drive.path in fields[fields.index("-"):]:
            found.append(f"it is mounted on {fields[4]}")
    return found


def swaps_of(drive: Drive) -> list[str]:
    """Return the reason if the drive is used as swap space."""
    used = [line.split()[0] for line in read(pathlib.Path("/proc/swaps")).splitlines()[1:]]
    return ["it is used as swap"] if drive.path in used else []


def partitions_of(drive: Drive) -> list[str]:
    """Return the reason if the drive has partitions."""
    parts = sorted(path.parent.name for path in drive.sysfs.glob("*/partition"))
    return [f"it is partitioned: {' '.join(parts)}"] if parts else []


def holders_of(drive: Drive) -> list[str]:
    """Return the reason if md, dm, bcache or a loop device uses the drive."""
    names = [path.name for path in drive.sysfs.glob("holders/*")]
    for file in BLOCK.glob("loop*/loop/backing_file"):
        if read(file) and os.path.realpath(read(file)) == drive.path:
            names.append(file.parent.parent.name)
    return [f"it is held by {' '.join(sorted(names))}"] if names else []


def stacked_on(drive: Drive) -> list[str]:
    """Return the reason if the device is not a drive but made of others, or of a file."""
    below = sorted(path.name for path in drive.sysfs.glob("slaves/*"))
    if below:
        return [f"it is not a drive, but made of {' '.join(below)}"]
    if (drive.sysfs / "loop").exists():
        return ["it is not a drive, but a file"]
    return []


def replaced(drive: Drive) -> list[str]:
    """Return the reason if its name has come to mean another drive, or another medium is in it,
    since Drive.note(): the user was asked about the first one."""
    if drive.noted in ("", drive.instance()):
        return []
    return ["it is another drive now, or has another medium"]


def protected(drive: Drive) -> list[str]:
    """Return the reason if the drive cannot be written to at any place."""
    if read(drive.sysfs / "ro") == "1":
        return ["it is read-only"]
    zoned = read(drive.queue / "zoned")
    return [f"it is zoned ({zoned})"] if zoned not in ("", "none") else []


def users_of(drive: Drive) -> list[str]:
    """Return the reason if another process has the drive open: a virtual machine or a database
    claims no drive that it uses as a whole. udev opens a drive only for a moment."""
    found = openers_of(drive)
    if found:
        time.sleep(UDEV_S)
        found = [reason for reason in openers_of(drive) if reason in found]
    return found


def openers_of(drive: Drive) -> list[str]:
    """Return which other processes have the drive open now."""
    found = []
    number = os.stat(drive.path).st_rdev
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        if process.name != str(os.getpid()) and number in devices_of(process):
            found.append(f"process {process.name} ({read(process / 'comm')}) has it open")
    return sorted(found)


def devices_of(process: pathlib.Path) -> set[int]:
    """Return st_rdev of the block devices that a process, a folder in /proc, has open; none if it
    has ended."""
    found = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(process / "fd"):
            with contextlib.suppress(OSError):
                made = os.stat(process / "fd" / name)
                if stat.S_ISBLK(made.st_mode):
                    found.add(made.st_rdev)
    return found


def signatures_of(drive: Drive) -> list[str]:
    """Return what libblkid finds on the drive."""
    command = ["wipefs", "--no-act", "--noheadings", "--output", "TYPE", drive.path]
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": path, "LC_ALL": "C"})
    except FileNotFoundError:
        raise ProbeError("wipefs is missing: install util-linux") from None
    if done.returncode:
        return [f"what is on it cannot be told: {done.stderr.strip() or 'wipefs failed'}"]
    kinds = sorted(set(done.stdout.split()))
    return [f"it holds data: {' '.join(kinds)} (see wipefs(8))"] if kinds else []


def claimed(drive: Drive) -> list[str]:
    """Return the reason if the kernel does not give the drive to a writer exclusively."""
    try:
        os.close(os.open(drive.path, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        return [f"it cannot be opened exclusively: {error.strerror}"]
    return []


def refusals(drive: Drive) -> list[str]:
    """Return every reason not to write to the drive."""
    checks = (replaced, protected, stacked_on, mounts_of, swaps_of, partitions_of, holders_of,
              users_of, signatures_of)
    found = [reason for check in checks for reason in check(drive)]
    return found or claimed(drive)


def refuse(drive: Drive):
    """Raise ProbeError if the drive must not be written to."""
    reasons = refusals(drive)
    if reasons:
        raise ProbeError(f"{drive.path} is not written to: {'; '.join(reasons)}")


class QueueSettings:
    """The settings of a drive's queue: changed for the measurements, then restored.

    A change of the scheduler changes other settings, and loses the scheduler's tunables. So
    two sets are saved: @under, with the user's scheduler, and @bare, without one. restore()
    undoes the steps of change() in the opposite order."""

    def __init__(self, drive: Drive, saved: dict | None = None):
        """@saved: of a run that did not restore them."""
        self.drive = drive
        self.saved = saved or {"under": self.present(), "bare": None}

    def present(self) -> dict[str, str]:
        """Return the values of all settings that matter, and of the scheduler's tunables."""
        names = [SCHEDULER, *MEASURING, *SIDE_EFFECTS, "max_sectors_kb"]
        tunables = sorted(path.name for path in self.drive.queue.glob("iosched/*"))
        names += [f"iosched/{name}" for name in tunables]
        return {name: self.value(name) for name in names if self.value(name)}

    def value(self, name: str) -> str:
        """Return the value of a setting as it is written."""
        text = read(self.drive.queue / name)
        return chosen(text) if name == SCHEDULER or name.startswith("iosched/") else text

    def write(self, name: str, value: str, needed: bool = False):
        """Change a setting unless it has this value. An error is raised only if the value is
        @needed."""
        if self.value(name) == value:
            return
        try:
            (self.drive.queue / name).write_text(value)
        except OSError as error:
            if not self.drive.exists():
                raise DriveFailed(f"{name} cannot be set") from None
            if needed:
                raise ProbeError(f"{self.drive.queue / name} does not take {value}: "
                                 f"{error.strerror}") from None

    def change(self, keep):
        """Make the settings those that are measured with. @keep: a function that is called with
        the saved settings before each step that changes any."""
        keep(self.saved)
        if self.saved["under"].get(SCHEDULER, "none") != "none":
            self.write(SCHEDULER, "none", needed=True)
            time.sleep(SETTLE_S)
        if not self.saved["bare"]:
            self.saved["bare"] = self.present()
            keep(self.saved)
        for name, value in MEASURING.items():
            if self.value(name):
                self.write(name, value)
        most = self.drive.number_of("max_hw_sectors_kb")
        if most:
            self.write("max_sectors_kb", str(min(most, 4096)))

    def restore(self) -> list[str]:
        """Restore all settings; return the names of those that differ nevertheless."""
        for name, value in (self.saved["bare"] or {}).items():
            if name != SCHEDULER and name not in SIDE_EFFECTS:
                self.write(name, value)
        under = self.saved["under"]
        if SCHEDULER in under:
            self.write(SCHEDULER, under[SCHEDULER])
        tunables = {name: value for name, value in under.items() if name.startswith("iosched/")}
        for name, value in tunables.items():
            self.write(name, value)
        if under.get(SCHEDULER, "none") != "none":
            time.sleep(SETTLE_S)
        for name, value in under.items():
            self.write(name, value)
        return [name for name, value in under.items() if self.value(name) != value]


@contextlib.contextmanager
def awake_cpus():
    """Keep the CPUs out of sleep states from which they take long to wake up."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            # pylint: disable=consider-using-with
            file = stack.enter_context(open("/dev/cpu_dma_latency", "wb", buffering=0))
            file.write(struct.pack("i", 0))
        yield
