#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Each of the project's modules loads by name; each scheduler loads itself when it is
# selected, and does not unload before it is deselected
# kernels: 6.1 6.12 newest 6.1-arm64 6.12-arm64-16k newest-arm64
# timeout: 900
# quick: 6.1 6.12 newest newest-arm64

import pathlib
import subprocess

from checks import check, modprobe
from iosched import MODULES, Disk, ours
from ssd import NullBlk


def loaded(module):
    """Return true if the module is loaded."""
    return pathlib.Path("/sys/module", module.replace("-", "_")).exists()


names = sorted(path.stem for path in MODULES.iterdir())
check(bool(names), f"the guest has the modules {' '.join(names)}")
for name in names:
    # A debug kernel has the unit tests, which run when they are loaded: a short run is enough.
    modprobe(name, *["sequences=10"] * name.endswith("_test"))
    check(loaded(name), f"{name} is loaded after modprobe")
    modprobe("-r", name)
    check(not loaded(name), f"{name} is not loaded after modprobe -r")

with NullBlk("disk0") as device:
    for scheduler in ours():
        name = f"{scheduler}-iosched"
        disk = Disk(device.name, scheduler)
        check(loaded(name), f"{name} loads itself")
        check(subprocess.run(["modprobe", "-q", "-r", name], check=False).returncode != 0,
              f"{name} does not unload while it is in use")
        disk.select("none")
        modprobe("-r", name)
