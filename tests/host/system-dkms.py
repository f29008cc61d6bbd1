#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# In a whole Debian system without the packages: make dkms builds and installs the modules, a newer
# version replaces the older one, a kernel that is not supported is no error, and make dkms-remove
# leaves nothing
# kernels: debian-12 debian-13
# check: none
# timeout: 7200
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from checks import check  # noqa: E402  (in a folder added above)
from systems import (  # noqa: E402
    BUILD_SECONDS, System, built, differences, files, made, main, show, version)

NEWER = "99.1"
OTHER = "5.10.0-1-amd64"


def test(name):
    """Install two versions, one after the other, and remove them."""
    source = f"ssd-iosched-{version()}"
    archive, folder = (made("sources") / f"{source}.tar.xz").read_bytes(), f"/root/{source}"
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
