# SPDX-License-Identifier: GPL-2.0
"""The question before a drive or a partition is overwritten: what it is, what was found on it, what
is lost, and what has to be typed in, which is not what was typed in to name it."""
import os
import re
import subprocess
import sys

from ssd_common import output
from ssd_common.drive import Drive, Partition, amount
from ssd_common.holding import Device, mounts_of, swaps_of
from ssd_common.output import plain
from ssd_common.packages import with_sbin

# So many characters of a serial number or a model's name have to be typed in; so many partitions
# are shown.
TAIL, SHOWN = 4, 16
# What blkid prints of a partition, and how it is told.
LABELS = (("LABEL", "label"), ("PART_ENTRY_NAME", "partition name"))


def found_on(path: str) -> dict[str, str]:
    """Return what libblkid finds on a device: its type, labels and the table of partitions; {} if
    that cannot be told."""
    try:
        done = subprocess.run(["blkid", "--probe", "--output", "export", path], text=True,
                              capture_output=True, check=False, errors="replace",
                              env=with_sbin())
    except FileNotFoundError:
        return {}
    pairs = (line.partition("=") for line in done.stdout.splitlines())
    return {key: plain(re.sub(r"\\(.)", r"\1", value)) for key, _, value in pairs}


def contents(device: Device) -> str:
    """Return what was found on a drive or a partition, and how it is used, in a few words."""
    found = found_on(device.path)
    words = [found.get("TYPE") or "no file system was found"]
    words += [f"{name} \"{found[key]}\"" for key, name in LABELS if found.get(key)]
    return ", ".join(words + [reason.removeprefix("it is ")
                              for reason in mounts_of(device) + swaps_of(device)])


def partitions(drive: Drive) -> list[Partition]:
    """Return the partitions of a drive in the order of their places."""
    paths = [f"/dev/{place.parent.name.replace('!', '/')}"
             for place in drive.sysfs.glob("*/partition")]
    made = [Partition(path, drive) for path in paths if os.path.exists(path)]
    return sorted(made, key=lambda part: part.first)


def facts(device: Device) -> list[str]:
    """Return lines that say what a drive or a partition is, what was found on it, and what is
    lost."""
    drive = device.drive
    table = found_on(drive.path).get("PTTYPE") or "none"
    lines = [drive.describe(), f"    partition table: {table}"]
    if device is drive:
        return [*lines, f"    on it: {contents(drive)}",
                f"    lost: all data on {drive.path}, {amount(drive.size)}"]
    parts = partitions(drive)
    lines += [f"    {part.name}, {amount(part.size)}: {contents(part)}" for part in parts[:SHOWN]]
    lines += [f"    and {len(parts) - SHOWN} more"] * (len(parts) > SHOWN)
    return [*lines, f"    lost: all data on {device.path}, {amount(device.size)}; nothing else"]


def answer(device: Device) -> tuple[str, str]:
    """Return what has to be typed in, and its name: what can be read on the label of the drive, and
    the name before that of a partition, and of a drive without serial number, since another one may
    be of the same model; the name of what has no such label."""
    found = device.drive.identity()
    for kind, key in (("serial number", "serial"), ("model", "model")):
        text = str(found[key]).replace(" ", "")
        if text.strip("0x"):
            tail = text[-TAIL:]
            what = f"the last {len(tail)} characters of the {kind} on its label"
            if device is device.drive and key == "serial":
                return tail, what
            return f"{device.name} {tail}", f"{device.name} and {what}"
    return device.name, f"the name {device.name}, since it has no serial number"


def meant(typed: str, device: Device) -> bool:
    """Return true if what was @typed in is the answer."""
    return " ".join(typed.split()).lower() == answer(device)[0].lower()


def read_line() -> str:
    """Return a line of the standard input, "" if it is no text, or if there is none."""
    try:
        return sys.stdin.readline() if sys.stdin else ""
    except UnicodeError:
        return ""


def confirmed(device: Device, program: str, hint: str = "") -> bool:
    """Ask whether a device may be overwritten. @hint: how to do without."""
    lines = facts(device)
    output.say("\n".join([f"{program}: {lines[0]}", *lines[1:]]))
    output.say(f"{program}: type {answer(device)[1]}, to destroy all data on {device.path}{hint}: ",
               "")
    typed = read_line()
    if not output.is_terminal(sys.stdin):
        output.say("")
    return meant(typed, device)
