# SPDX-License-Identifier: GPL-2.0
"""The drives of the machine: which there are, and what they are."""
import contextlib
import hashlib
import os
import pathlib
import re

from ssd_common import ToolError
from ssd_common.drive import BLOCK, Drive, device_number, place_of, read
from ssd_ctl import CtlError, udev

# What is no drive, by its name: made of files (loop), of memory (ram, zram, pmem, nullb), of other
# drives (dm-, md, bcache, zvols), by a program (ublkb, nbd), of bare flash (mtdblock, ubiblock) or
# of a machine elsewhere (rbd, rnbd, drbd), where another scheduler decides; without a medium of its
# own (fd, sr); or a part of an eMMC for a boot loader or a device maker, which udev's rules for the
# drive do not match. ssdctl lists none of these, but takes each that a user names.
NO_DRIVE = re.compile(r"(loop|zloop|ram|zram|pmem|nullb|dm-|md|md_|bcache|zd|ublkb|nbd|mtdblock|"
                      r"ubiblock|rbd|rnbd|drbd|fd|sr)(\d|(?<=md_)\w)|mmcblk\d+(boot|rpmb|gp)")
# {name of a part of the path in sysfs: kind}, the first that fits.
KINDS = (("nvme", "NVMe"), ("nvme-subsystem", "NVMe"), ("usb", "USB"),
         ("mmc_host", "SD/eMMC"), ("ata", "SATA"),
         ("virtio", "virtio"), ("end_device", "SAS"), ("host", "SCSI"))


def schedules(place: pathlib.Path) -> bool:
    """Return true if the device with this folder in sysfs has a scheduler: not one that is made of
    others, as a multipath drive. Before 6.8 that one has the file, too."""
    return (place / "queue/scheduler").exists() and (place / "mq").exists()


def names(others: bool = False, bare: bool = False) -> list[str]:
    """Return the names of all drives, as in /sys/block. @others: also of what is no drive, but has
    a scheduler; @bare: also of drives that have none."""
    found = [path for path in sorted(BLOCK.glob("*"))
             if read(path / "size") not in ("", "0") and
             # A path of a multipath drive.
             read(path / "hidden") != "1"]
    drives = [path for path in found if not NO_DRIVE.match(path.name)]
    wanted = drives if bare else [path for path in (found if others else drives)
                                  if schedules(path)]
    return [path.name for path in wanted]


def every(others: bool = False, bare: bool = False) -> list[Drive]:
    """Return all drives, as names() does, without those that are removed meanwhile."""
    found = []
    for name in names(others, bare):
        with contextlib.suppress(ToolError):
            found.append(Drive(device_path(name)))
    return found


def device_path(name: str) -> str:
    """Return the path of a device of this name in /sys/block."""
    return "/dev/" + name.replace("!", "/")


def find(path: str, bare: bool = False) -> Drive:
    """Return the drive that a user means: by a path, a name, or one of its partitions. @bare: it
    need not have a scheduler."""
    if "/" not in path:
        path = f"/dev/{path}"
    try:
        place = place_of(device_number(os.stat(path).st_rdev))
        if (place / "partition").exists():
            path = device_path(place.parent.name)
    except OSError as error:
        raise CtlError(f"{path}: {error.strerror}: ssdctl lists the drives") from None
    try:
        found = Drive(path)
    except ToolError as error:
        raise CtlError(f"{error}: ssdctl lists the drives") from None
    if not (bare or schedules(found.sysfs)):
        raise CtlError(f"{path} {without(found)}")
    return found


def without(of: Drive) -> str:
    """Return why a drive has no scheduler."""
    return "has no scheduler of its own: " + (
        "the kernel may use several paths to it (with nvme_core.multipath=N each path is a drive)"
        if of.name.startswith("nvme") else "what it consists of may have one")


def kind(of: Drive) -> str:
    """Return how a drive is attached."""
    device = of.sysfs / "device"
    parts = device.resolve().parts if device.exists() else ()
    for name, text in KINDS:
        if any(re.fullmatch(rf"{name}(-?\d.*)?", part) for part in parts):
            return text
    return of.driver() or ("virtual" if "virtual" in of.sysfs.resolve().parts else "other")


def serial(of: Drive) -> str:
    """Return the serial number of a drive, "" if it is not known."""
    found = of.identity()
    return known_serial(str(found["serial"]) or read(of.sysfs / "serial") or
                        ("" if found["wwid"] else udev_serial(of)))


def known_serial(text: str) -> str:
    """Return a serial number, "" if it has only zeros, as those of some cards and sticks."""
    return "" if re.fullmatch(r"(0x)?0*", text) else text


def udev_serial(of: Drive) -> str:
    """Return the serial number that udev knows of a drive, "" if none: of USB drives the kernel
    knows none."""
    with contextlib.suppress(CtlError):
        return udev.properties(of).get("ID_SERIAL_SHORT", "")
    return ""


def place(of: Drive) -> str:
    """Return where a drive is attached, by udev or by the kernel's numbers of its bus, "" if
    neither knows: it tells apart drives with one serial number, as those of a dock."""
    found = ""
    with contextlib.suppress(CtlError):
        found = udev.properties(of).get("ID_PATH", "")
    device = of.sysfs / "device"
    return found or (device.resolve().name if device.exists() else "")


def key(of: Drive) -> str:
    """Return the name of a drive in the files of /var/lib/ssd-iosched: the same as long as the
    drive has its model and serial number, otherwise its name."""
    found = of.identity()
    number = serial(of) or str(found["wwid"])
    if not number:
        return slug(of.name)
    return slug(str(found["model"]), number, part(of))


def part(of: Drive) -> str:
    """Return what tells apart the drives that have one serial number: the namespaces of a
    controller, the cards in a reader, the partitions of an eMMC for a boot loader; "" of most."""
    space = read(of.sysfs / "nsid")
    # The target's number changes where a SAS drive appears again.
    unit = re.fullmatch(r"\d+:\d+:\d+:(\d+)", (of.sysfs / "device").resolve().name)
    boot = re.fullmatch(r"mmcblk\d+(.+)", of.name)
    return next((text for text, usual in ((space, "1"), (unit and unit[1], "0"),
                                          (boot and boot[1], ""))
                 if text and text != usual), "")


def slug(*words: str) -> str:
    """Return words as a part of a file's name, different for different words."""
    spaced = "-".join(word.strip().replace(" ", "_") for word in words if word)
    clean = re.sub(r"[^A-Za-z0-9_.-]+", "-", spaced).strip("-.")[:100]
    if clean == spaced:
        return clean
    return f"{clean}-{hashlib.sha256(spaced.encode()).hexdigest()[:8]}"
