#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# Without the packages a system boots and its drives have their old schedulers, rules or not; after
# a purge it has the files that it had before the installation
# kernels: debian-12 debian-13
# check: none
# timeout: 7200
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from checks import check  # noqa: E402  (in a folder added above)
from systems import (  # noqa: E402
    CHOICES, MODULES, NAMES, System, device, differences, files, main, prepared, scheduler)

# Parts of paths that the comparison has to see.
INSTALLED = ("/etc/udev/rules.d/70-ssd-iosched", "/usr/sbin/ssdctl", "/updates/dkms/bp-iosched.ko",
             "/var/lib/dkms/ssd-iosched", "/usr/src/ssd-iosched-")


def old_schedulers(guest):
    """Check that no drive has a scheduler of the project."""
    for drive in CHOICES:
        found = scheduler(guest, device(guest, drive))
        check(found not in MODULES, f"{drive.kind} drive has its old scheduler ({found})")


def test(name):
    """Remove the packages, boot, purge them, compare the files, and boot again."""
    kept = prepared(name)
    before = json.loads((kept / "before.json").read_text())
    with System(name, kept=kept) as system:
        with system.boot() as guest:
            added = " ".join(differences(before, files(guest)))
            for part in INSTALLED:
                check(part in added, f"the packages have brought {part}")
            print(guest.run(f"apt-get -q -y remove {' '.join(NAMES)}").out)
            there = guest.run("find /lib/modules -name '*-iosched.ko*' -path '*updates*'").out
            check(not there, f"no module is left {there}")
            check("70-ssd-iosched" in guest.run("ls /etc/udev/rules.d").out, "the rules stay")
        with system.boot(list(CHOICES)) as guest:
            old_schedulers(guest)
            print(guest.run(f"apt-get -q -y purge {' '.join(NAMES)}").out)
            left = differences(before, files(guest))
            check(not left, "a purge leaves nothing" + "".join(f"\n    {line}" for line in left))
        with system.boot(list(CHOICES)) as guest:
            old_schedulers(guest)


if __name__ == "__main__":
    main(test)
