#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# In a whole Debian 12, udev selects what ssdctl persist keeps, on a drive that is there at boot
# and on one that is plugged in
# kernels: debian-12
# precedence: yes
# timeout: 1800
"""The modules are those that this machine builds for the system's kernel, which an emulated
processor needs minutes for: system-install has DKMS build them."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from checks import check  # noqa: E402  (in a folder added above)
from systems import (  # noqa: E402
    CHOICES, System, debian, device, has, main, packages, put_modules, replug, show)

DISK, STICK, *_ = CHOICES


def test(name):
    """Keep a choice for two drives; boot with one of them, then plug the other one in."""
    check(name in debian.RELEASES, name)
    with System(name) as system:
        utils = next(path for path in packages() if "utils" in path.name)
        with system.boot([DISK]) as guest:
            guest.put(f"/root/{utils.name}", utils.read_bytes())
            guest.run(f"dpkg -i /root/{utils.name}", hear=show)
            put_modules(guest, system)
            guest.plug(STICK)
            for drive in (DISK, STICK):
                found = device(guest, drive)
                guest.run(f"ssdctl persist /dev/{found} {CHOICES[drive]}", hear=show)
                has(guest, drive, CHOICES[drive], "persisted")
            replug(guest, STICK)
            has(guest, STICK, CHOICES[STICK], "plugged in again")
        with system.boot([DISK]) as guest:
            has(guest, DISK, CHOICES[DISK], "at boot")
            guest.plug(STICK)
            has(guest, STICK, CHOICES[STICK], "plugged in")


if __name__ == "__main__":
    main(test)
