#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# In a whole Debian system: the two packages install, DKMS builds the modules, and drives of each
# kind have what ssdctl persist keeps, when they are plugged in, there at boot, and plugged in again
# kernels: debian-12 debian-13
# check: none
# timeout: 7200
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from checks import check  # noqa: E402  (in a folder added above)
from systems import (  # noqa: E402
    CHOICES, MODULES, System, device, has, main, prepared, replug, scheduler)


def test(name):
    """The drives are there at boot, then plugged in again. Without the rules they have none of the
    schedulers, nor when they are plugged in again."""
    with System(name, kept=prepared(name)) as system:
        with system.boot(list(CHOICES)) as guest:
            for drive, choice in CHOICES.items():
                has(guest, drive, choice, "at boot")
            for drive, choice in CHOICES.items():
                replug(guest, drive)
                has(guest, drive, choice, "plugged in again")
            print(guest.run("ssdctl").out)
            print(guest.run("ssdctl undo-all").out)
            check(not guest.run("ls /etc/udev/rules.d | grep ssd || true").out, "no rule is left")
            for drive in CHOICES:
                before = scheduler(guest, device(guest, drive))
                replug(guest, drive)
                now = scheduler(guest, device(guest, drive))
                check(now == before and now not in MODULES, f"{drive.kind} drive has {now}")


if __name__ == "__main__":
    main(test)
