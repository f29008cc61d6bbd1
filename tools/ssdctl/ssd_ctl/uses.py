# SPDX-License-Identifier: GPL-2.0
"""What a drive is used for: where file systems on it are mounted, and whether it has swap."""
import contextlib
import os
import pathlib
import stat

from ssd_common.drive import Drive, device_number, read
from ssd_common.holding import unescaped

MOUNTS, SWAPS = pathlib.Path("/proc/self/mountinfo"), pathlib.Path("/proc/swaps")
SWAP = "swap"


def above(place: pathlib.Path) -> set[str]:
    """Return the numbers of a block device with this folder in sysfs, of its partitions, and of
    what is made of them."""
    found = {read(place / "dev")}
    for part in place.glob("*/partition"):
        found |= above(part.parent)
    for holder in place.glob("holders/*"):
        found |= above(holder.resolve())
    return found - {""}


def number_of(path: str) -> str:
    """Return the number of a block device's node, "" if it is none."""
    with contextlib.suppress(OSError, ValueError):
        made = os.stat(path)
        if stat.S_ISBLK(made.st_mode):
            return device_number(made.st_rdev)
    return ""


def mounted() -> list[tuple[set[str], str]]:
    """Return (numbers of its device, place) of each mount. btrfs has a number of its own, and
    names one of its devices."""
    found = []
    for line in read(MOUNTS).splitlines():
        fields = line.split()
        if "-" in fields[:-2]:
            source = unescaped(fields[fields.index("-") + 2])
            numbers = {fields[2]} | ({number_of(source)} if source.startswith("/") else set())
            found.append((numbers, unescaped(fields[4])))
    return found


def swaps() -> list[tuple[set[str], str]]:
    """Return (numbers of its device, "swap") of each device with swap."""
    lines = read(SWAPS).splitlines()[1:]
    return [({number_of(unescaped(line.split()[0]))}, SWAP) for line in lines if line.split()]


def of(drive: Drive) -> list[str]:
    """Return where the file systems of a drive are mounted, and "swap"."""
    numbers = above(drive.sysfs)
    return sorted({place for its, place in (*mounted(), *swaps()) if its & numbers})
