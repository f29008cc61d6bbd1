#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# In a whole Debian 13 for arm64, as boards have: the two packages install, DKMS builds the modules,
# and a card and a USB stick have what ssdctl persist keeps after a reboot
# kernels: debian-13-arm64
# check: none
# timeout: 7200
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from checks import check  # noqa: E402  (in a folder added above)
from systems import (  # noqa: E402
    Drive, System, built, debian, device, has, install, main, packages, replug)
from labvm.whole import CARD  # noqa: E402

CHOICES = {Drive("card", CARD, kind="card"): "bp block_size_kb=4096",
           Drive("stick", "STICK1", kind="usb"): "pass depth=4"}
CARD_DRIVE, STICK = CHOICES


def test(name):
    """Install, keep a choice for each drive, boot again."""
    check(name in debian.RELEASES, name)
    with System(name) as system:
        with system.boot([CARD_DRIVE]) as guest:
            install(guest, packages(debian.RELEASES[name].arch))
            built(guest, guest.run("uname -r").out.strip())
            guest.plug(STICK)
            for drive, choice in CHOICES.items():
                found = device(guest, drive)
                print(guest.run(f"ssdctl persist /dev/{found} {choice}").out, end="")
                has(guest, drive, choice, "persisted")
            check(device(guest, CARD_DRIVE).startswith("mmcblk"), "the card is behind mmc")
        with system.boot(list(CHOICES)) as guest:
            check(guest.run("uname -m").out.strip() == "aarch64", "on arm64")
            for drive, choice in CHOICES.items():
                has(guest, drive, choice, "at boot")
            replug(guest, STICK)
            has(guest, STICK, CHOICES[STICK], "plugged in again")
            print(guest.run("ssdctl").out)


if __name__ == "__main__":
    main(test)
