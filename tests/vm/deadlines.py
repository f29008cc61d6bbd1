#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# A request is dispatched soon after its deadline, although a polled request that is never
# reaped, or a command that the drive has lost, uses up every bound, or more polled requests are
# queued than their hardware queue has tags
# nvme: 64M
# append: nvme.poll_queues=1
# check: 6.12
# timeout: 300
"""Deadlines are in the kernel's real time. An emulated CPU may be slow, so a read may take
SECONDS; the request that uses up the bound stays for several times as long."""

import mmap
import os
import pathlib
import threading
import time

from checks import check, modprobe, wait_for
from iosched import SCSI_DEBUG, Disk, ours, scsi_disks
from linux_calls import RT, set_priority
from ssd import NullBlk
from uring import SETUP_IOPOLL, Ring, address

BLOCK = 4096
READ_EXPIRE_MS, AGING_MS = 200, 400
# Seconds that a read may take, and that the other request stays.
SECONDS, STUCK = 8, 30
# Bounds of a scheduler that one request can use up, beside the depth, which all have.
BOUNDS = {"pass": ("region_depth",), "piq": ("units",)}
# scsi_debug: lose commands.
OPT_LOST = 4


def read(path, offset=0):
    """Read a block from the device; return the seconds that it took."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    started = time.monotonic()
    with mmap.mmap(-1, BLOCK) as buffer:
        os.preadv(fd, [buffer], offset)
    os.close(fd)
    return time.monotonic() - started


def squeeze(disk, bound):
    """Set the bound so that one request uses it up. A request uses up PIQ's units in any
    case."""
    disk.tune(read_expire=READ_EXPIRE_MS, prio_aging_expire=AGING_MS)
    if bound in ("depth", "region_depth"):
        disk.tune(**{bound: 1})


def polled(disk, bound):
    """A polled read that is reaped after STUCK seconds does not hold back another."""
    squeeze(disk, bound)
    # The other read must not be dispatched because of its deadline.
    disk.tune(read_expire=3600000, prio_aging_expire=3600000)
    ring = Ring(4, SETUP_IOPOLL)
    buffer = mmap.mmap(-1, BLOCK)
    fd = os.open(disk.path, os.O_RDONLY | os.O_DIRECT)
    ring.read(fd, address(buffer), BLOCK, 0, 1)
    ring.submit_only()
    done = threading.Event()

    def poll():
        done.wait(STUCK)
        ring.submit(1)
    poller = threading.Thread(target=poll)
    poller.start()
    try:
        check(disk.counters()["polled"] == 1, f"{disk.label}: a polled read is in the device")
        took = read(disk.path)
        check(took < SECONDS, f"{disk.label}, {bound}: another read takes {took:.2f} s")
    finally:
        done.set()
        poller.join()
    check(ring.reap() == [(1, BLOCK)], f"{disk.label}: the polled read ended")
    ring.close()
    os.close(fd)
    disk.nothing_left()


def flooded(name):
    """Polled reads, twice as many as the hardware queue for polling has tags, do not hold back
    another read until they are reaped."""
    tags = 8
    with NullBlk("flooded", queue_mode=2, submit_queues=1, poll_queues=1, hw_queue_depth=tags,
                 size=64) as device:
        disk = Disk(device.name, name, read_expire=READ_EXPIRE_MS)
        ring = Ring(2 * tags, SETUP_IOPOLL)
        buffer = mmap.mmap(-1, 2 * tags * BLOCK)
        fd = os.open(disk.path, os.O_RDONLY | os.O_DIRECT)
        for number in range(2 * tags):
            ring.read(fd, address(buffer) + number * BLOCK, BLOCK, number * 16 * BLOCK, number)
        ring.submit_only()
        check(disk.counters()["queued"] > 0, f"{disk.label}: polled reads are queued")
        took = []
        reader = threading.Thread(target=lambda: took.append(read(disk.path)))
        reader.start()
        reader.join(SECONDS)
        in_time = bool(took)
        left = 2 * tags
        while left:
            ring.submit(1)
            left -= len(ring.reap())
        reader.join()
        check(in_time, f"{disk.label}: a read beside polled ones takes {took[0]:.2f} s")
        ring.close()
        os.close(fd)
        disk.nothing_left()
        disk.select("none")


def lost(disks):
    """A command that the drive has lost does not hold back others. @disks: [(disk, bound)]."""
    def stuck(disk, bound):
        if bound == "class":
            set_priority(RT, 0)
        read(disk.path)

    took = {}

    def beside(disk):
        took[disk] = read(disk.path)

    for disk, bound in disks:
        squeeze(disk, bound)
        (disk.queue.parent / "device/timeout").write_text(str(STUCK))
    (SCSI_DEBUG / "opts").write_text(str(OPT_LOST))
    (SCSI_DEBUG / "every_nth").write_text("1")
    holders = [threading.Thread(target=stuck, args=pair) for pair in disks]
    for thread in holders:
        thread.start()
    for disk, _ in disks:
        wait_for(lambda disk=disk: disk.counters()["in_flight"] == 1, "the first reads")
    (SCSI_DEBUG / "every_nth").write_text("0")
    (SCSI_DEBUG / "opts").write_text("0")
    readers = [threading.Thread(target=beside, args=(disk,)) for disk, _ in disks]
    for thread in readers:
        thread.start()
    for thread in readers:
        thread.join()
    left = {disk: disk.counters()["in_flight"] for disk, _ in disks}
    for disk, bound in disks:
        check(took[disk] < SECONDS and left[disk] == 1, f"{disk.label}, {bound}: "
              f"a read takes {took[disk]:.2f} s, {left[disk]} lost commands in flight")
    for thread in holders:
        thread.join()
    for disk, _ in disks:
        disk.nothing_left()


def main():
    modprobe("nvme")
    wait_for(pathlib.Path("/dev/nvme0n1").exists, "the NVMe disk")
    bounds = {name: ("depth", *BOUNDS.get(name, ())) for name in ours()}
    for name, own in bounds.items():
        for bound in own:
            polled(Disk("nvme0n1", name), bound)
    Disk("nvme0n1", ours()[0]).select("none")
    for name in ours():
        flooded(name)

    pairs = [(name, bound) for name, own in bounds.items() for bound in (*own, "class")]
    disks = [(Disk(disk, name), bound) for disk, (name, bound) in
             zip(scsi_disks(len(pairs), dev_size_mb=8, max_queue=16), pairs, strict=True)]
    lost(disks)
    for disk, _ in disks:
        disk.select("none")
    modprobe("-r", "scsi_debug")


if __name__ == "__main__":
    main()
