# SPDX-License-Identifier: GPL-2.0
"""The kinds of drives, what tells them, and what is recommended for each. ssdctl recommend, the
rules of ssdctl persist --recommended and, by scripts/doc-kinds, the advice in the documents are all
made from this table.

What a kind gains and what it costs is not written here: evidence.json has the figures that are
published of the emulated drive that stands for it.
"""
import contextlib
import dataclasses
import pathlib

from ssd_common.drive import Drive, read
from ssd_ctl import CtlError, drives, udev
from ssd_ctl.choice import Choice, parse
from ssd_ctl.setters import rules as events

# How sure a recommendation is: by ssdctl advise on the drive, by a measurement of the model in the
# hardware database, by an emulated drive of the kind, by one that is like it, or nothing is known.
MEASURED, MODEL, EMULATED, ALIKE, NOTHING = "measured", "model", "emulated", "alike", "none"
# What the kernel selects by itself where a drive has one hardware queue, or several.
ONE_QUEUE, MANY_QUEUES = "mq-deadline", "none"
# The size of an erase block, in bytes, that a card tells, and bp's tunable for it, in KB.
ERASE_SIZE, ERASE_KB = "device/preferred_erase_size", "block_size_kb"
MOST_ERASE_KB = 1 << 20
# The property of udev by which the hardware database tells a kind that the drive does not show.
KIND = "SSD_IOSCHED_KIND"


@dataclasses.dataclass(frozen=True)
class Instead:
    """Another @scheduler than the recommended one, for a @trouble. @drive: the emulated drive that
    shows it; @by_register: set its blocks to the size that the card tells."""
    trouble: str
    scheduler: str
    drive: str
    by_register: bool = False


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of drives. @matches: terms of a rule of udev; it has one of these sets, and none of
    the kinds before it; @scheduler: the recommended one, "": keep what is there; @drive: the
    emulated drive that stands for it, "" if none does; @usual: what the kernel selects by itself.
    """
    name: str
    title: str
    matches: tuple[str, ...]
    why: str
    scheduler: str = ""
    strength: str = NOTHING
    drive: str = ""
    usual: str = ONE_QUEUE
    instead: tuple[Instead, ...] = ()


WRITER = "reads wait beside a constant writer"
NO_QUEUE = 'SUBSYSTEMS=="mmc", ATTR{mq/0/nr_tags}=="64"'
FLASH = 'ATTR{queue/rotational}=="0"'
# Of several hardware queues, the second one has this folder.
SINGLE = 'TEST!="mq/1"'
ATA = 'KERNELS=="ata[0-9]*"'
# What hosts call the disks of their guests.
OF_HOSTS = "QEMU*|VBOX*|VMware*|Virtual*|Amazon*|Google*|PersistentDisk*|BlockVolume*|nvme_card*"
QLC = f'ENV{{{KIND}}}=="qlc", {FLASH}'
ONE_AT_A_TIME = ("it serves one request at a time; its driver takes up to 64, and a read waits "
                 "behind them")
AS_NONE = "under none programs get as much as under pass, except beside a constant writer"
BEHIND_CACHE = ("once its SLC cache is full, a write takes so long that reads wait for it; "
                "measured without the cache")

KINDS = (
    Kind("zoned", "zoned drive", ('ATTR{queue/zoned}=="host-managed|host-aware"',),
         "no scheduler of this project was measured on one"),
    Kind("sd", "SD card without a command queue", (f'{NO_QUEUE}, ATTRS{{type}}=="SD"',),
         ONE_AT_A_TIME, "pass", EMULATED, "sd",
         instead=(Instead("reads matter more than writes", "bp", "sd", by_register=True),)),
    Kind("emmc", "eMMC or MMC card without a command queue", (f'{NO_QUEUE}, ATTRS{{type}}=="MMC"',),
         f"{ONE_AT_A_TIME}; measured on an emulated SD card, whose flash is slower",
         "pass", ALIKE, "sd"),
    Kind("virtual", "virtual disk", ('KERNEL=="vd*|xvd*"', f'ATTR{{device/model}}=="{OF_HOSTS}"'),
         "the host below it decides which request is next"),
    Kind("stick", "USB stick or card reader",
         ('KERNEL=="sd*", SUBSYSTEMS=="usb", DRIVERS=="usb-storage", ATTR{removable}=="1"',),
         "it serves one request at a time; measured on an emulated SD card, not on a stick",
         "pass", ALIKE, "sd",
         instead=(Instead("several streams of writes are slow", "bp", "bp-transcend"),)),
    Kind("disk", "hard disk", ('ATTR{queue/rotational}=="1"',),
         "these schedulers know flash, no heads that move"),
    Kind("qlc", "QLC SSD by SATA", (f'{ATA}, {QLC}, {SINGLE}',),
         BEHIND_CACHE, "pass", ALIKE, "qlc"),
    Kind("qlc-other", "QLC SSD by NVMe or USB", (QLC,),
         f"{BEHIND_CACHE}, on an emulated SATA drive",
         usual=MANY_QUEUES, instead=(Instead(WRITER, "pass", "qlc"),)),
    Kind("sata", "SATA SSD", (f"{ATA}, {FLASH}, {SINGLE}",),
         AS_NONE, instead=(Instead(WRITER, "pass", "sata"),)),
    Kind("uas", "SSD by USB (UAS)", (f'SUBSYSTEMS=="usb", DRIVERS=="uas", {FLASH}',),
         f"{AS_NONE}; measured on an emulated SATA drive, without a bridge",
         instead=(Instead(WRITER, "pass", "sata"),)),
    Kind("nvme", "NVMe SSD", (f'KERNEL=="nvme*n*", {FLASH}',),
         "it has room for reads beside writes in most cases, and an elevator costs CPU time, which "
         "these figures leave out", usual=MANY_QUEUES, instead=(Instead(WRITER, "pass", "nvme"),)),
)
OTHER = Kind("other", "another drive", (), "nothing was measured on a drive like it")


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table "Do I need it?" in README.md. @kinds: the names of kinds that it is
    about."""
    machine: str
    trouble: str
    use: str
    kinds: tuple[str, ...]


README = (
    Row("PC or server, NVMe or SATA SSD", "none of those below",
        "no: keep `none`, an elevator costs CPU time", ("nvme", "sata")),
    Row("SATA or NVMe SSD", "reads wait beside a writer that never stops",
        "`pass`, or `bfq`, which takes more CPU time", ("sata", "uas", "nvme")),
    Row("SATA or NVMe SSD", "programs start slowly beside a copy",
        "no, if writeback throttling is on (`queue/wbt_lat_usec` above 0)", ("nvme", "sata")),
    Row("QLC SSD", "reads wait beside a constant writer", "`pass`", ("qlc", "qlc-other")),
    Row("QLC SSD, slow SSD", "programs start slowly beside a copy", "`pass` or `bfq`",
        ("qlc", "qlc-other")),
    Row("SD or MMC card, USB stick", "programs on it start slowly beside a copy",
        "`pass` or `bfq`: the copy takes twice as long meanwhile; no stick was measured",
        ("sd", "emmc", "stick")),
    Row("USB stick, CF card, early SSD", "several streams of writes are slow",
        "`bp`: [set it up](Documentation/bp.md#set-it-up)", ("stick",)),
    Row("Raspberry Pi", "any",
        "[step by step](Documentation/raspberry-pi.md), untried", ()),
    Row("hard disk, RAID, ZFS, virtual disk", "any", "no", ("disk", "virtual", "other")),
)


def properties(drive: Drive, found: dict[str, str] | None = None) -> dict[str, str]:
    """Return what udev knows of a drive, or what is @found, with what the hardware database says of
    its model; without udev, the model."""
    known = dict(found or {})
    with contextlib.suppress(CtlError):
        if found is None:
            known = udev.properties(drive)
    if not udev.model(known):
        known["ID_MODEL"] = str(drive.identity()["model"]).replace(" ", "_")
    with contextlib.suppress(CtlError):
        known |= udev.database(known)
    return known


def has(drive: Drive, matches: tuple[str, ...], known: dict[str, str]) -> bool:
    """Return true if a drive has all terms of one of these sets. @known: its properties of
    udev."""
    device = events.Device(drive.sysfs, drive)
    device.properties = known
    lines = (events.Line(pathlib.Path("/"), 0, events.TERM.findall(match)) for match in matches)
    return any(events.matches(device, "add", line) is True for line in lines)


def of(drive: Drive, known: dict[str, str]) -> Kind:
    """Return the kind of a drive, OTHER of what is no drive or has no scheduler. @known: what
    properties() returns."""
    if drives.NO_DRIVE.match(drive.name) or not drives.schedules(drive.sysfs):
        return OTHER
    return next((kind for kind in KINDS if has(drive, kind.matches, known)), OTHER)


def erase_kb(drive: Drive) -> int | None:
    """Return the KB of an erase block by the card's register, None if it tells none."""
    text = read(drive.sysfs / ERASE_SIZE)
    size = int(text) // 1024 if text.isdecimal() else 0
    return size if 4 <= size <= MOST_ERASE_KB else None


def instead_for(other: Instead, drive: Drive) -> Choice:
    """Return another choice for a drive."""
    size = erase_kb(drive) if other.by_register else None
    return parse([other.scheduler, *([f"{ERASE_KB}={size}"] if size else [])])


def choice_of(kind: Kind) -> Choice | None:
    """Return what is recommended for a kind, None: keep what is there."""
    return parse([kind.scheduler]) if kind.scheduler else None
