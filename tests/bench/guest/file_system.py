# SPDX-License-Identifier: GPL-2.0
"""Imported by the guest's programs: benchmarks on a file system of the device."""
import contextlib
import ctypes
import os
import pathlib
import random
import sys
import time

from common import command

MOUNT = pathlib.Path("/mnt/bench")
# Of the file system: random ones would place the files elsewhere in each run.
UUID = "00000000-0000-4000-8000-000000000001"


def make_ext4(device, size_mb):
    """Make ext4 in the first @size_mb MB of a device, which writes nothing by itself later if it is
    mounted with noinit_itable."""
    command("mkfs.ext4", "-q", "-F", "-U", UUID, "-E",
            f"lazy_itable_init=1,lazy_journal_init=1,nodiscard,hash_seed={UUID}",
            device.path, f"{size_mb}m")


def make_tree(folder, seed, size, powers):
    """Make files of @size bytes in all in folders below a @folder; @powers: of 2, the smallest and
    the largest file."""
    chance, total = random.Random(seed), 0
    while total < size:
        path = folder / f"{chance.randrange(8)}/{chance.randrange(8)}/{total}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(int(2 ** chance.uniform(*powers))))
        total += path.stat().st_size


@contextlib.contextmanager
def mounted(device, *options):
    """Mount a device with these options of mount. Nothing of it is in the page cache."""
    MOUNT.mkdir(parents=True, exist_ok=True)
    command("mount", *options, device.path, MOUNT)
    try:
        yield
    finally:
        command("umount", MOUNT)


def sync():
    """Wait until the whole file system has reached the drive; return the seconds it took."""
    begun = time.monotonic()
    folder = os.open(MOUNT, os.O_RDONLY)
    if ctypes.CDLL(None).syncfs(folder):
        sys.exit("syncfs failed")
    os.close(folder)
    return time.monotonic() - begun


def set_dirty(background, limit):
    """Limit dirty pages to @limit MB; writeback starts at @background MB. A machine of the
    papers' time had as little, so the drive works during the benchmark, not after it."""
    for name, value in (("dirty_background_bytes", background), ("dirty_bytes", limit)):
        pathlib.Path(f"/proc/sys/vm/{name}").write_text(str(value << 20))


def postmark(*settings):
    """Run Postmark on the file system with these settings, as "number 500"; return its
    output."""
    lines = [f"set {setting}\n" for setting in (f"location {MOUNT}", *settings)]
    return command("postmark", cwd=MOUNT, input="".join([*lines, "run\nquit\n"]))
