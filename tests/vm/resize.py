#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# PASS divides a device anew when its capacity or region_size_mb changes, also under
# load, and data written through it meanwhile are right
# check: 6.12
# timeout: 900

import os
import pathlib
import random
import threading
import time

from checks import SEED, check, modprobe, run, wait_for
from fio_jobs import load, verify
from iosched import Disk

FILE = pathlib.Path("/tmp/file")
MB = 1 << 20


def has_regions(disk, count):
    """Return true if PASS divides the disk into so many regions."""
    text = (disk.debugfs / "regions").read_text()
    return text.startswith(f"# {count} regions")


def resize(disk):
    """Change the capacity and the size of the regions under load."""
    rng = random.Random(SEED)
    with load([disk], {"load": {"filename": disk.path}}, rw="randrw", iodepth=32, size="64m"):
        os.truncate(FILE, 256 * MB)
        run("losetup", "-c", disk.path)
        wait_for(lambda: has_regions(disk, 16), "16 regions of 256 MB", 30)
        for size in (1, 100, 7, 4096, 3, 1, 16):
            disk.set(region_size_mb=size)
            check(has_regions(disk, (256 + size - 1) // size), f"regions of {size} MB")
            disk.set(region_depth=rng.randrange(3))
    disk.nothing_left()


def verify_meanwhile(disk):
    """Verify data while the size of the regions changes."""
    errors = []

    def verifier():
        try:
            verify([disk], size="16m", iodepth=32)
        except Exception as error:  # noqa: BLE001
            errors.append(error)
    thread = threading.Thread(target=verifier)
    thread.start()
    changes = 0
    while thread.is_alive():
        disk.set(region_size_mb=1 + changes % 100)
        changes += 1
        time.sleep(0.05)
    thread.join()
    check(not errors and changes > 4, f"the data are right after {changes} changes {errors}")
    disk.nothing_left()


modprobe("loop")
with open(FILE, "wb") as file:
    file.truncate(64 * MB)
run("losetup", "--direct-io=off", "/dev/loop0", FILE)
modprobe("pass-iosched", "region_size_mb=16")
loop = Disk("loop0", "pass")
check(has_regions(loop, 4), "4 regions of 64 MB")
resize(loop)
verify_meanwhile(loop)
loop.select("none")
run("losetup", "-d", loop.path)
