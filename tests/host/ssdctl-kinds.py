#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssdctl persist --recommended --all and revert, by made-up files of the kernel: what is no drive is
# of no kind
# quick: host

import pathlib
import sys
import tempfile
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/ssd-probe")]

from checks import check  # noqa: E402  (in a folder added above)
from ssd_ctl import by_kind, kinds, rules, udev  # noqa: E402

FILES = {"uevent": "", "size": "8", "queue/rotational": "0", "queue/zoned": "none",
         "queue/scheduler": "[none] pass", "mq/0/nr_tags": "64"}


class Drive(types.SimpleNamespace):
    """A card, or a part of it, with files of the kernel in a folder."""

    def __init__(self, folder, name):
        card = folder / "devices" / name
        sysfs = card / "block" / name
        for path, text in ((card / "uevent", ""), (card / "type", "MMC"),
                           *((sysfs / name, text) for name, text in FILES.items())):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        (card / "subsystem").symlink_to(folder / "bus/mmc")
        super().__init__(name=name, path=f"/dev/{name}", number="8:0", sysfs=sysfs,
                         queue=sysfs / "queue", known={"ID_NAME": "CARD", "ID_SERIAL": name})

    def identity(self):
        """What the kernel knows."""
        return {"model": "CARD", "serial": self.name, "wwid": ""}

    def instance(self):
        """Which of those that had the name it is."""
        return self.name

    def driver(self):
        """The driver's name."""
        return "mmcblk"

    def exists(self):
        """It is there."""
        return True


def parts(folder):
    """A part of an eMMC for a boot loader is no eMMC, also by the file, and also if the hardware
    database knows the model; the eMMC is."""
    file = by_kind.File.recommended("/usr/sbin/ssdctl")
    rules.kinds_path().write_text(file.text())
    for name, kind, kept in (("mmcblk0", "emmc", ["pass"]), ("mmcblk0boot0", "other", []),
                             ("mmcblk0gp1", "other", []), ("mmcblk0rpmb", "other", [])):
        drive = Drive(folder / name, name)
        check(kinds.of(drive, drive.known).name == kind, f"{name} is of the kind {kind}")
        check([str(rule.choice) for rule in rules.of(drive)] == kept, f"{name} keeps {kept}")
        known = drive.known | {"SSD_IOSCHED": "kyber"}
        found = by_kind.chosen(file, drive, known)[0]
        check(bool(found) == bool(kept), f"{name} of a known model keeps {found}")
    rules.kinds_path().unlink()


def main():
    udev.properties = lambda drive: drive.known
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        rules.FOLDER = folder / "rules.d"
        rules.FOLDER.mkdir()
        parts(folder / "parts")


if __name__ == "__main__":
    main()
