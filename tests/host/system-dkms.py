#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# In a whole Debian system without the packages: make dkms builds and installs the modules, a newer
# version replaces the older one, a kernel that is not supported is no error, and make dkms-remove
# leaves nothing
# kernels: debian-12 debian-13
# check: none
# timeout: 7200
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from checks import check, fail  # noqa: E402  (in a folder added above)
from systems import (  # noqa: E402
    BUILD_SECONDS, KEPT, PROJECT, System, built, differences, files, main, show, version)

NEWER = "99.1"
OTHER = "5.10.0-1-amd64"


def sources():
    """Return the bytes of the tarball of the sources."""
    folder = KEPT / "sources"
    done = subprocess.run([PROJECT / "packaging/build", "sources", folder], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        fail(f"there is no tarball: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return (folder / f"ssd-iosched-{version()}.tar.xz").read_bytes()


def test(name):
    """Install two versions, one after the other, and remove them."""
    archive, folder = sources(), f"/root/ssd-iosched-{version()}"
    with System(name) as system, system.boot() as guest:
        before = files(guest)
        release = guest.run("uname -r").out.strip()
        guest.put("/root/sources.tar.xz", archive)
        guest.run("tar -xJ -C /root -f /root/sources.tar.xz")
        guest.run(f"make -C {folder} dkms", BUILD_SECONDS, hear=show)
        built(guest, release)
        guest.run(f"mkdir -p /lib/modules/{OTHER}/build")
        done = guest.run(f"dkms autoinstall -k {OTHER} 2>&1", check=False)
        check(not done.status and f"no modules for {OTHER}" in done.out,
              f"another kernel: {done.out}")
        guest.run(f"sed -i '1s/(.*)/({NEWER})/' {folder}/debian/changelog")
        guest.run(f"make -j -C {folder} dkms", BUILD_SECONDS, hear=show)
        status = guest.run("dkms status 2>/dev/null").out
        check(f"ssd-iosched/{NEWER}, {release}" in status and version() not in status,
              f"the newer version only: {status}")
        guest.run(f"make -C {folder} dkms-remove")
        guest.run(f"rm -r /lib/modules/{OTHER}")
        left = differences(before, files(guest))
        check(not left, "nothing is left" + "".join(f"\n    {line}" for line in left))


if __name__ == "__main__":
    main(test)
