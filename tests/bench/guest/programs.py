# SPDX-License-Identifier: GPL-2.0
"""Imported by runs.py: programs on ext4 of the drive, beside others that write or read. Nothing of
their files is in the page cache at first."""
import contextlib
import functools
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

from common import command, counters, kernel_stat, wait_for_second
from file_system import MOUNT, make_ext4, make_tree, mounted, set_dirty
from load import Threads
from window import seconds

# ext4 has the first so many MB of the device; a load of ioload has the second half.
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
# A program is watched for so many seconds at most: the load ends then, whether the program has
# ended or not.
PATIENCE = 60
# A store: in memory, where it is made once, its keys, the bytes of a value, and its readers.
STORE = pathlib.Path("/run/store")
KEYS, VALUE_BYTES, READERS = 16000, 4000, 4
# A package: its files are 24 MB of 1 to 32 KB, which are uncompressed in the archive.
PACKAGE = pathlib.Path("/run/package")
PACKAGE_BYTES, PACKAGE_POWERS = 24 << 20, (10, 15)
CONTROL = """Package: tree
Version: 1
Architecture: all
Maintainer: none <none@localhost>
Description: many small files
"""


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


def loading(device, run):
    """Return the load of the run's job LOAD, for a with statement."""
    return Threads(device, run | {"job": run["variables"]["LOAD"]})


class Watch:
    """What the device reads and writes from now on, and how long it takes."""

    def __init__(self, device):
        self.device = device
        self.before, self.begun = kernel_stat(device), time.monotonic()

    def seconds(self):
        """Return the seconds that have passed."""
        return time.monotonic() - self.begun

    def rate(self, way):
        """Return the MB/s of a direction, "read" or "write", so far."""
        now = kernel_stat(self.device)[f"{way}_bytes"]
        return (now - self.before[f"{way}_bytes"]) / self.seconds() / 1e6


def watched(device, function, *args, patience=PATIENCE):
    """Call a function; return the seconds that it takes, at most @patience, the watch, and the
    thread, which has not ended if it takes longer."""
    thread = threading.Thread(target=function, args=args)
    watch = Watch(device)
    thread.start()
    thread.join(patience)
    return watch.seconds(), watch, thread


def walk():
    """Read the files of the application, one after another."""
    for folder, _, names in os.walk(MOUNT / "tree"):
        for name in names:
            pathlib.Path(folder, name).read_bytes()


def start(device, run):
    """Start an application beside a copy: return the seconds that its files take to be read, and
    the MB/s that the copy writes meanwhile, for WATCHED seconds at least."""
    with copying():
        time.sleep(seconds(run["variables"]["RAMP"]))
        took, watch, walker = watched(device, walk)
        time.sleep(max(0, WATCHED - took))
        written = watch.rate("write")
    walker.join()
    return {"start_s": took, "write_mbps": written}


def db_bench(*options):
    """Run RocksDB's benchmark on a store of KEYS; return its output."""
    return command("db_bench", f"--num={KEYS}", f"--value_size={VALUE_BYTES}",
                   "--compression_type=none", *options)


@functools.cache
def make_store():
    """Make the store in memory."""
    db_bench(f"--db={STORE}", "--benchmarks=fillseq,flush")


def read_store(run, said):
    """Read from the store for RUNTIME; append what db_bench says to @said."""
    said.append(db_bench(
        f"--db={MOUNT}/store", "--benchmarks=readrandom", "--use_existing_db=1", "--readonly=1",
        f"--threads={READERS}", "--use_direct_reads=1", "--cache_size=65536", "--histogram=1",
        "--ops_between_duration_checks=1", f"--seed={run['variables']['SEED']}",
        f"--duration={seconds(run['variables']['RUNTIME']):.0f}"))


def store(device, run):
    """Point reads of a key-value store, past the page cache, beside a backup: return the reads a
    second, their 99th percentile in ms, and the MB/s that the backup writes meanwhile. No reads if
    the store takes longer than PATIENCE to be opened."""
    said = []
    with loading(device, run):
        time.sleep(seconds(run["variables"]["RAMP"]))
        _, watch, reader = watched(device, read_store, run, said,
                                   patience=PATIENCE + seconds(run["variables"]["RUNTIME"]))
        written = watch.rate("write")
        opened = not reader.is_alive()
    reader.join()
    if not opened:
        return {"ops_s": 0.0, "write_mbps": written}
    found = re.search(r"readrandom +:.* ([0-9.]+) seconds ([0-9]+) operations", said[0])
    late = re.search(r"P99: ([0-9.]+)", said[0])
    if not found or not late:
        sys.exit(f"db_bench: {said[0][-500:]}")
    return {"ops_s": int(found[2]) / float(found[1]), "op_p99": float(late[1]) / 1e3,
            "write_mbps": written}


@functools.cache
def make_package(seed):
    """Make the package in memory."""
    command("rm", "-rf", PACKAGE)
    make_tree(PACKAGE / "tree/usr", seed, PACKAGE_BYTES, PACKAGE_POWERS)
    (PACKAGE / "tree/DEBIAN").mkdir()
    (PACKAGE / "tree/DEBIAN/control").write_text(CONTROL)
    command("dpkg-deb", "-Znone", "--build", PACKAGE / "tree", PACKAGE / "tree.deb")


def install_package():
    """Install the package, whose files dpkg writes and syncs."""
    command("dpkg", f"--root={MOUNT}/root", "--force-not-root", "--force-bad-path",
            "--install", PACKAGE / "tree.deb")


def install(device, run):
    """Install a package beside readers: return the seconds that it takes, and the MB/s that the
    readers get meanwhile."""
    with loading(device, run):
        time.sleep(seconds(run["variables"]["RAMP"]))
        took, watch, installer = watched(device, install_package)
        read = watch.rate("read")
    installer.join()
    return {"install_s": took, "read_mbps": read}


def fill(run):
    """Put the files of the run's program on the file system."""
    if run["job"] == "start":
        make_tree(MOUNT / "tree", run["variables"]["SEED"], TREE_BYTES, POWERS)
    elif run["job"] == "store":
        make_store()
        command("cp", "-r", STORE, MOUNT / "store")
    else:
        make_package(run["variables"]["SEED"])
        for name in ("info", "updates", "triggers"):
            (MOUNT / "root/var/lib/dpkg" / name).mkdir(parents=True)
        (MOUNT / "root/var/lib/dpkg/status").touch()


PROGRAMS = {"start": start, "store": store, "install": install}


@contextlib.contextmanager
def files(device, run):
    """Make ext4 with the files of the run's program."""
    set_dirty(*DIRTY_MB)
    make_ext4(device, AREA_MB)
    with mounted(device, "-o", "noinit_itable"):
        fill(run)
    with mounted(device, "-o", "noinit_itable"):
        yield


def measure(device, run):
    """Run a program; return its figures and the device's counters."""
    wait_for_second()
    device.reset()
    figures = PROGRAMS[run["job"]](device, run)
    ssdemu = counters(device)
    return {"figures": {"mbps": figures.get("write_mbps", 0.0)} | figures, "ssdemu": ssdemu}
