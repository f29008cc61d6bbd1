# SPDX-License-Identifier: GPL-2.0
"""Imported by runs.py: programs on ext4 of the drive, beside others that write or read. Nothing of
their files is in the page cache at first."""
import contextlib
import os
import pathlib
import subprocess
import threading
import time

from common import counters, kernel_stat, wait_for_second
from file_system import MOUNT, make_ext4, make_tree, mounted, set_dirty
from window import seconds

AREA_MB = 1024
# MB of dirty pages at which writeback begins, and at which writers wait. The kernel's defaults are
# parts of the memory, of which a guest has as much as it was given.
DIRTY_MB = 32, 64
# The copy writes so many MB, again and again.
COPY_MB = 256
# An application: bytes of its files, the smallest and the largest of them as powers of 2.
TREE_BYTES, POWERS = 24 << 20, (12, 18)
# The copy is watched for so many seconds at least.
WATCHED = 4
# The copy ends after so many seconds, whether the application has started or not.
PATIENCE = 60


@contextlib.contextmanager
def copying():
    """Copy to a file through the page cache, again and again."""
    copy = (f"while true; do dd if=/dev/zero of={MOUNT}/copy bs=1M count={COPY_MB} "
            "conv=notrunc 2>/dev/null; done")
    with subprocess.Popen(["sh", "-c", copy], start_new_session=True) as process:
        try:
            yield
        finally:
            os.killpg(process.pid, 9)


def walk():
    """Read the files of the application, one after another."""
    for folder, _, names in os.walk(MOUNT / "tree"):
        for name in names:
            pathlib.Path(folder, name).read_bytes()


def start(device, run):
    """Start an application beside a copy: return the seconds that its files take to be read, at
    most PATIENCE, and the MB/s that the copy writes meanwhile, for WATCHED seconds at least."""
    walker = threading.Thread(target=walk)
    with copying():
        time.sleep(seconds(run["variables"]["RAMP"]))
        before, begun = kernel_stat(device), time.monotonic()
        walker.start()
        walker.join(PATIENCE)
        took = time.monotonic() - begun
        time.sleep(max(0, WATCHED - took))
        watched = time.monotonic() - begun
        written = kernel_stat(device)["write_bytes"] - before["write_bytes"]
    walker.join()
    return {"start_s": took, "write_mbps": written / watched / 1e6}


PROGRAMS = {"start": start}


@contextlib.contextmanager
def files(device, run):
    """Make ext4 with the files of the run's program."""
    set_dirty(*DIRTY_MB)
    make_ext4(device, AREA_MB)
    with mounted(device, "-o", "noinit_itable"):
        make_tree(MOUNT / "tree", run["variables"]["SEED"], TREE_BYTES, POWERS)
    with mounted(device, "-o", "noinit_itable"):
        yield


def measure(device, run):
    """Run a program; return its figures and the device's counters."""
    wait_for_second()
    device.reset()
    figures = PROGRAMS[run["job"]](device, run)
    ssdemu = counters(device)
    return {"figures": {"mbps": figures.get("write_mbps", 0.0)} | figures, "ssdemu": ssdemu}
