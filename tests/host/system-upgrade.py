#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# After an upgrade to the newest kernel of a Debian system's suites DKMS has built the modules anew,
# and the drives' rules still hold
# kernels: debian-12 debian-13
# check: none
# timeout: 7200
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from checks import check  # noqa: E402  (in a folder added above)
from systems import (  # noqa: E402
    CHOICES, System, built, has, main, prepared, replug, show, upgrade)


def test(name):
    """Upgrade the kernel, boot it, and plug the drives in again."""
    with System(name, kept=prepared(name)) as system:
        before = system.newest()
        with system.boot() as guest:
            done = upgrade(guest)
            check(not done.status, "the kernel is installed")
        release = system.newest()
        check(release != before, f"{release} follows {before}")
        with system.boot(list(CHOICES)) as guest:
            built(guest, release)
            check(guest.run("uname -r").out.strip() == release, f"{release} runs")
            for drive, choice in CHOICES.items():
                has(guest, drive, choice, "at boot")
            for drive, choice in CHOICES.items():
                replug(guest, drive)
                has(guest, drive, choice, "plugged in again")
            guest.run(f"apt-get -q -y purge linux-image-{release} linux-headers-{release}",
                      hear=show)
            status = guest.run("dkms status").out
            check(release not in status, f"DKMS has no modules for {release} any more: {status}")
            # Those of newer series are in a package of their own, which stays.
            left = guest.run(f"find /lib/modules/{release}/updates -type f 2>/dev/null || true").out
            check(not left, f"the modules for {release} are removed with it: {left}")


if __name__ == "__main__":
    main(test)
