#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssdctl persist --recommended --all and revert, by made-up files of the kernel: what is no drive is
# of no kind; a rule of a drive's own comes first, and the rules by kind leave the drive to it
# quick: host

import pathlib
import sys
import tempfile
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/ssd-probe")]

from checks import check  # noqa: E402  (in a folder added above)
from ssd_ctl import by_kind, kinds, persist, rules, udev  # noqa: E402
from ssd_ctl.choice import Choice  # noqa: E402
from ssd_ctl.rule_lines import KEPT  # noqa: E402
from ssd_ctl.setters import rules as events  # noqa: E402

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


def own_rule(name, **match):
    """A rule for a drive."""
    return rules.Rule(Choice("kyber"), "mmcblk[0-9]", match or {"ID_SERIAL": name}, "CARD",
                      "ID_NAME" in match, "")


def first(folder):
    """A rule of a drive's own, as one of a former version that gets the line for it, comes before
    the rules by kind, and tells them to select nothing."""
    drive, file = Drive(folder, "mmcblk0"), by_kind.File.recommended("")
    rules.kinds_path().write_text(file.text())
    device = events.Device(drive.sysfs, drive)
    lines = events.lines_of(rules.kinds_path(), file.text())
    lines = [line for line in lines if not line.value("IMPORT")]
    for own in (own_rule("mmcblk0"), own_rule("", ID_NAME="CARD"), own_rule("", ID_PATH="at")):
        text = own.text()
        line = f'{own.condition()}, ENV{{{KEPT}}}="1"\n'
        check(text.count(line) == 1 and own.path.name < rules.kinds_path().name,
              f"{own.path.name} comes first")
        for former, meant in ((text, text), (text.replace(line, ""), text.replace(line, "") + line),
                              (text.replace(line, "")[:-1], text.replace(line, "") + line)):
            own.path.write_text(former)
            check(own.as_kept() == meant and not own.edited(), "the line is there once")
        own.path.write_text(text + "# Mine\n")
        check(own.edited() and own.as_kept() == text + "# Mine\n", "what was edited stays")
        own.path.unlink()
    for value, meant in (("", ["pass"]), ("1", [])):
        device.properties = {"DEVTYPE": "disk", KEPT: value}
        found = [term[3] for line, _ in events.reached(device, "change", lines)
                 for term in line.terms if term[:3] == ("ATTR", "queue/scheduler", "=")]
        check(found == meant, f"with {KEPT}={value} the rules by kind select {found}")
    # udev remembers the property until the next event.
    drive.known[KEPT] = "1"
    check([rule.model for rule in rules.of(drive)] == ["emmc"], "without the rule its kind decides")
    by_place = own_rule("", ID_PATH="at")
    check(persist.replaced_by_place(drive, by_place) == [], "a rule by the place leaves the kinds")
    own = own_rule("mmcblk0")
    own.path.write_text(own.text())
    check(persist.replaced_by_place(drive, by_place) == [own], "and not the drive's own")
    check(rules.of(drive)[-1] == own, "its own rule decides")
    own.path.unlink()
    rules.kinds_path().unlink()


def main():
    udev.properties = lambda drive: drive.known
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        rules.FOLDER = folder / "rules.d"
        rules.FOLDER.mkdir()
        parts(folder / "parts")
        first(folder / "first")


if __name__ == "__main__":
    main()
