#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Data survive being split and merged by PAI in every way: verified writes, ext4 and XFS,
# discards
# memory: 2G
# check: 6.12
# timeout: 900

import hashlib
import os
import pathlib
import shutil
import time

from checks import check, modprobe, run
from fio_jobs import verify
from iosched import Disk
from ssd import Device

# SSD-A of the paper, and sizes that no other size is a multiple of.
WAYS = (
    {"split": "pas", "align": "page", "clustered_page_kb": 16, "read_buffer_kb": 256,
     "write_buffer_kb": 255},
    {"split": "pasa", "align": "page", "clustered_page_kb": 16, "read_buffer_kb": 256,
     "write_buffer_kb": 255},
    {"split": "pasa", "align": "block", "clustered_block_kb": 5120, "read_buffer_kb": 3072,
     "write_buffer_kb": 112},
    {"split": "pasa", "align": "page", "clustered_page_kb": 3, "read_buffer_kb": 7,
     "write_buffer_kb": 1},
)
FILES_KB = (3, 70, 256, 1000, 9000)
# mkfs and fsck of each kind of file system.
COMMANDS = {"ext4": (("mkfs.ext4", "-q", "-F"), ("e2fsck", "-f", "-n")),
            "xfs": (("mkfs.xfs", "-q", "-f"), ("xfs_repair", "-n"))}
MOUNTED = pathlib.Path("/mnt/pai")
# Megabytes at the beginning of the disk that have to be zeros after a discard.
DISCARDED_MB = 32


def digest(path):
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def files(disk, kind):
    """Write files, remove one, and check that the others are right after another mount."""
    make, repair = COMMANDS[kind]
    run(*make, disk.path)
    MOUNTED.mkdir(parents=True, exist_ok=True)
    run("mount", "-o", "discard", disk.path, MOUNTED)
    sums = {}
    for size in FILES_KB:
        path = MOUNTED / str(size)
        path.write_bytes(os.urandom(size << 10))
        sums[path] = digest(path)
    gone = MOUNTED / "gone"
    shutil.copy(MOUNTED / str(FILES_KB[-1]), gone)
    os.sync()
    gone.unlink()
    run("umount", MOUNTED)
    run("blockdev", "--flushbufs", disk.path)
    run("mount", disk.path, MOUNTED)
    run("fstrim", MOUNTED)
    changed = [path.name for path in sums if digest(path) != sums[path]]
    check(not changed, f"the files on {kind} are right {changed}")
    run("umount", MOUNTED)
    run(*repair, disk.path)


def discard(disk):
    """Discard the whole disk; it must hold zeros."""
    run("blkdiscard", "-f", disk.path)
    with open(disk.path, "rb") as file:
        for megabyte in range(DISCARDED_MB):
            if file.read(1 << 20) != bytes(1 << 20):
                check(False, f"megabyte {megabyte} is not zero after a discard")


with Device("small", capacity_mb=400, memory_backed=1, max_request_kb=512) as device:
    modprobe("-a", "ext4", "xfs")
    for way in WAYS:
        pai = Disk(device.name, "pai")
        pai.set(**way)
        # A worker applies the limits.
        time.sleep(0.2)
        verify([pai], bs=None, bsrange="4k-1m", size="24m", iodepth=32)
        for system in COMMANDS:
            files(pai, system)
        discard(pai)
        pai.nothing_left()
        pai.select("none")
        print(f"verified: {way}")
