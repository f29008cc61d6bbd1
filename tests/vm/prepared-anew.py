#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Discards and write-zeroes that a SCSI drive answers with "in transition" end, and data are
# right: sd, whose data share memory with the elevator's tree node, prepares them again
# check: 6.1
# timeout: 300

import mmap
import os
import threading

from checks import check
from iosched import Disk, ours
from linux_calls import BLKDISCARD, BLKZEROOUT, range_ioctl
from scsi_target import MB, NON_OPTIMIZED, OPTIMIZED, SIZE_MB, units


def clear(disk, code, megabyte, ready):
    """Discard or zero one megabyte once all threads are @ready, a barrier."""
    fd = os.open(disk.path, os.O_RDWR | os.O_DIRECT)
    ready.wait()
    range_ioctl(fd, code, megabyte * MB, MB)
    os.close(fd)


def prepared_anew(unit, disk):
    """Discard and zero several megabytes at a time while the unit is in transition."""
    pattern = os.urandom(4096) * (MB // 4096)
    fd = os.open(disk.path, os.O_RDWR | os.O_DIRECT)
    with mmap.mmap(-1, MB) as buffer:
        buffer.write(pattern)
        for at in range(SIZE_MB):
            os.pwritev(fd, [buffer], at * MB)
        for state, code in ((NON_OPTIMIZED, BLKDISCARD), (OPTIMIZED, BLKZEROOUT)):
            before = disk.counters()["requeued"]
            gone = range(2, 12, 2) if code == BLKDISCARD else range(3, 13, 2)
            # To start a thread may take longer than the transition.
            ready = threading.Barrier(len(gone) + 1)
            threads = [threading.Thread(target=clear, args=(disk, code, at, ready))
                       for at in gone]
            for thread in threads:
                thread.start()
            with unit.in_transition(state):
                ready.wait()
                for thread in threads:
                    thread.join()
            requeued = disk.counters()["requeued"] - before
            check(requeued >= len(gone), f"{disk.label}: {requeued} requeues")
        for at in range(SIZE_MB):
            os.preadv(fd, [buffer], at * MB)
            wanted = bytes(MB) if 2 <= at <= 11 else pattern
            if buffer[:] != wanted:
                check(False, f"{disk.label}: megabyte {at} holds wrong data")
    os.close(fd)
    disk.nothing_left()
    disk.select("none")


def main():
    with units(len(ours())) as found:
        for unit, name in zip(found, ours(), strict=True):
            prepared_anew(unit, Disk(unit.name, name))


if __name__ == "__main__":
    main()
