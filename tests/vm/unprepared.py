#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Reads in one submission with an NVMe passthrough command, for which 6.12 allocates requests
# that no elevator has prepared: each is accounted for, none stays in flight
# nvme: 64M per scheduler
# check: 6.12
# timeout: 300

import mmap
import os
import pathlib

from checks import check, modprobe, wait_for
from iosched import Disk, ours
from uring import SETUP_CQE32, SETUP_SQE128, Ring, address

BLOCK = 4096
# Reads after the passthrough command of a submission. If they leaked, fewer submissions would
# use up the 1023 tags of the device.
READS, SUBMISSIONS = 7, 160
# debugfs file in which a policy counts its requests in flight, of those that do.
COUNTS_IN_FLIGHT = {"bp": "processes", "pass": "regions", "piq": "units"}


def submissions(disk, count):
    """Do @count submissions, one after the other; return the number of reads."""
    number = disk.name.removeprefix("nvme").removesuffix("n1")
    ring = Ring(READS + 1, SETUP_SQE128 | SETUP_CQE32)
    buffer = mmap.mmap(-1, BLOCK * (READS + 1))
    fd = os.open(disk.path, os.O_RDONLY | os.O_DIRECT)
    character = os.open(f"/dev/ng{number}n1", os.O_RDONLY)
    for nth in range(count):
        ring.nvme_read(character, address(buffer), BLOCK, 0, 0)
        for read in range(1, READS + 1):
            # Not contiguous, so that none merges.
            at = (nth * READS + read) % 1000 * 16 * BLOCK % (32 << 20)
            ring.read(fd, address(buffer) + read * BLOCK, BLOCK, at, read)
        ring.submit(READS + 1)
        ended = dict(ring.reap())
        wanted = {0: 0, **{read: BLOCK for read in range(1, READS + 1)}}
        if ended != wanted:
            check(False, f"{disk.label}: submission {nth} ended with {ended}")
    os.close(character)
    os.close(fd)
    ring.close()
    return count * READS


def held_by_policy(disk):
    """Lines of the policy's file that count a request as in flight."""
    name = COUNTS_IN_FLIGHT.get(disk.scheduler)
    if not name:
        return []
    file = pathlib.Path("/sys/kernel/debug/block", disk.name, "sched", name)
    rows = [line.split() for line in file.read_text().splitlines() if line[0] != "#"]
    column = rows[0].index("in_flight")
    return [f"{name}: {' '.join(row)}" for row in rows[1:] if row[column] != "0"]


def main():
    modprobe("nvme")
    disks = []
    for number, name in enumerate(ours()):
        wait_for(pathlib.Path(f"/dev/ng{number}n1").exists, "the character devices")
        wait_for(pathlib.Path(f"/dev/nvme{number}n1").exists, "the disks")
        disks.append(Disk(f"nvme{number}n1", name))
    for disk in disks:
        for depth, count in ((0, SUBMISSIONS), (2, 5)):
            disk.tune(depth=depth)
            before = disk.counters()["completed"]
            reads = submissions(disk, count)
            disk.nothing_left()
            # The block layer may issue a read directly, but inserts most into the elevator, on
            # 6.1 also passthrough commands.
            seen = disk.counters()["completed"] - before
            check(reads // 2 < seen <= reads + count,
                  f"{disk.label}, depth {depth}: {reads} reads, "
                  f"the elevator saw {seen}")
            held = held_by_policy(disk)
            check(not held, f"{disk.label}: the policy has nothing in flight {held}")
        disk.select("none")


if __name__ == "__main__":
    main()
