#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# While more I/O arrives than a SCSI disk takes: an fsync ends although all reads are overdue, and
# writes leave to reads a part of the commands that the disk takes, which are fewer than its host's
# kernels: 6.12
# cpus: 1
# timeout: 600
"""The kernel inserts a commit of the journal at the head, behind a flush, on kernels from 6.3 on. A
disk with one tag dispatches one request for each completion: it must not always be one that is
overdue."""

import os
import pathlib
import statistics
import threading
import time

from checks import check, run
from fio_jobs import load
from iosched import Disk, ours, scsi_disks

# Seconds that an fsync may take; it writes some ten requests, one after the other.
SECONDS = 60
# Of a read, in ms and ns; all in the queue are more than their deadline and 100 ms.
EXPIRE_MS, TAKES_NS = 50, 5_000_000
READS = 64


def synced(mount, took):
    """Write a file and have it synced; append the seconds that it took."""
    began = time.monotonic()
    fd = os.open(mount / "file", os.O_WRONLY | os.O_CREAT)
    os.write(fd, bytes(4096))
    os.fsync(fd)
    os.close(fd)
    took.append(time.monotonic() - began)


def journal():
    """A file system writes its journal while all reads are overdue."""
    names = ours()
    disks = [Disk(disk, name) for disk, name in zip(
        scsi_disks(len(names), dev_size_mb=32, max_queue=1, ndelay=TAKES_NS), names, strict=True)]
    for disk in disks:
        mount = pathlib.Path(f"/mnt/{disk.name}")
        mount.mkdir()
        run("mkfs.ext4", "-q", disk.path)
        run("mount", disk.path, mount)
        (disk.queue / "nr_requests").write_text(str(2 * READS))
        disk.tune(read_expire=EXPIRE_MS, write_expire=EXPIRE_MS)
        took = []
        with load([disk], {"reads": {"filename": disk.path}}, rw="randread", iodepth=READS):
            before = disk.counters("be read")["expired"]
            writer = threading.Thread(target=synced, args=(mount, took))
            writer.start()
            writer.join(SECONDS)
            late = disk.counters("be read")["expired"] - before
        writer.join()
        check(late > READS, f"{disk.label}: {late} reads were overdue")
        check(took[0] < SECONDS, f"{disk.label}: an fsync took {took[0]:.1f} s")
        run("umount", mount)
        disk.nothing_left()
        disk.select("none")
    run("modprobe", "-r", "scsi_debug")


def mixed(disk):
    """Return the writes in flight at 300 times at which reads are not alone by turns, see
    include/tmpl/readers/phases.h."""
    seen = []
    while len(seen) < 300:
        writes = disk.counters("be write")["in_flight"]
        if "\nalone 0\n" in (disk.debugfs / "readers").read_text():
            seen.append(writes)
    return seen


def share():
    """Of four commands that the disk takes, of 64 that its host does, three are writes."""
    name, = scsi_disks(1, dev_size_mb=32, max_queue=64, ndelay=TAKES_NS)
    (pathlib.Path("/sys/block", name) / "device/queue_depth").write_text("4")
    disk = Disk(name, "pass")
    jobs = {kind: {"filename": disk.path, "rw": kind, "iodepth": depth}
            for kind, depth in (("randread", 1), ("randwrite", 32))}
    with load([disk], jobs):
        seen = mixed(disk)
    # One more is dispatched when none was for 100 ms, as on a busy machine.
    usual = statistics.median(seen)
    check(usual == 3, f"{usual:g} writes are in flight, at most {max(seen)}")
    disk.nothing_left()
    disk.select("none")
    run("modprobe", "-r", "scsi_debug")


if __name__ == "__main__":
    journal()
    share()
