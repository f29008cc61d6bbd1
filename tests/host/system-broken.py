#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# If the modules cannot be built for a new kernel, its installation succeeds and it boots with the
# drives' old schedulers. DKMS says why. Once the cause is gone, the modules are built, and the new
# kernel has what the rules keep
# kernels: debian-12 debian-13
# check: none
# timeout: 7200
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from checks import check  # noqa: E402  (in a folder added above)
from systems import (  # noqa: E402
    BUILD_SECONDS, CHOICES, MODULES, System, built, device, has, main, prepared,
    scheduler, show, upgrade, version)

# What reads the kernel's BTF. Without it, nothing says what the layouts of the kernel are.
TOOL = "/usr/sbin/bpftool"


def broken(guest, release):
    """Check what a system has without modules for its newest kernel."""
    running = guest.run("uname -r").out.strip()
    check(running == release, f"the new kernel runs: {running}")
    for drive in CHOICES:
        found = scheduler(guest, device(guest, drive))
        check(found not in MODULES, f"{drive.kind} drive has {found}")
    status = guest.run("dkms status").out
    check(not any(f" {release}" in line and "installed" in line for line in status.splitlines()),
          f"dkms status: {status}")
    log = guest.run(f"cat /var/lib/dkms/ssd-iosched/{version()}/build/make.log").out
    check("bpftool" in log, f"DKMS's log says why: {log[-300:]}")


def test(name):
    """Upgrade the kernel of a system that lacks a tool, boot, and build when the tool is back."""
    with System(name, kept=prepared(name)) as system:
        before = system.newest()
        with system.boot() as guest:
            guest.run(f"mv {TOOL} {TOOL}.away")
            done = upgrade(guest)
            check(not done.status, f"the installation of the kernel succeeds: {done.out[-300:]}")
            check("the build has failed" in done.out and "make.log" in done.out,
                  "it names the log of the modules' build")
        release = system.newest()
        check(release != before, f"{release} follows {before}")
        with system.boot(list(CHOICES)) as guest:
            broken(guest, release)
            guest.run(f"mv {TOOL}.away {TOOL}")
            guest.run(f"dkms autoinstall -k {release}", BUILD_SECONDS, hear=show)
            built(guest, release)
        with system.boot(list(CHOICES)) as guest:
            check(guest.run("uname -r").out.strip() == release, f"{release} runs")
            for drive, choice in CHOICES.items():
                has(guest, drive, choice, "once it is built")


if __name__ == "__main__":
    main(test)
