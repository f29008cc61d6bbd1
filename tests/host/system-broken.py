#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# If the modules cannot be built for a new kernel, the system boots it, its drives have their old
# schedulers, and DKMS says why; once the cause is gone, one command builds the modules
# kernels: debian-12 debian-13
# check: none
# timeout: 3600
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from checks import check  # noqa: E402  (in a folder added above)
from systems import (  # noqa: E402
    BUILD_SECONDS, CHOICES, MODULES, System, built, device, has, main, prepared, scheduler,
    upgrade, version)

# What reads the kernel's BTF. Without it, nothing says what the layouts of the kernel are.
TOOL = "/usr/sbin/bpftool"


def test(name):
    """Upgrade the kernel of a system that lacks a tool, boot it, and build when the tool is
    back."""
    with System(name, kept=prepared(name)) as system:
        with system.boot() as guest:
            guest.run(f"mv {TOOL} {TOOL}.away")
            done = upgrade(guest, name)
            check("bpftool" in done.out or "make.log" in done.out,
                  "the installation of the kernel says what failed")
        release = system.newest()
        with system.boot(list(CHOICES)) as guest:
            check(guest.run("uname -r").out.strip() == release, f"{release} runs")
            for drive in CHOICES:
                found = scheduler(guest, device(guest, drive))
                check(found not in MODULES, f"{drive.kind} drive has its old scheduler ({found})")
            status = guest.run("dkms status").out
            check(not any(release in line and "installed" in line for line in status.splitlines()),
                  f"dkms status: {status}")
            log = guest.run(f"cat /var/lib/dkms/ssd-iosched/{version()}/build/make.log").out
            check("bpftool" in log, f"DKMS's log says why: {log[-300:]}")
            guest.run(f"mv {TOOL}.away {TOOL}")
            guest.run(f"dkms autoinstall -k {release}", BUILD_SECONDS)
            built(guest, release)
            guest.run("udevadm trigger --settle --action=add --subsystem-match=block")
            for drive, choice in CHOICES.items():
                has(guest, drive, choice, "once it is built")


if __name__ == "__main__":
    main(test)
