#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Discards and write-zeroes through each scheduler clear exactly their range, also many small
# ones beside writes
# check: 6.12
# timeout: 900

import mmap
import os

from checks import check, modprobe
from fio_jobs import fio
from iosched import Disk, finish, ours, scsi_disks
from linux_calls import BLKDISCARD, BLKZEROOUT, range_ioctl

MB, SIZE_MB = 1 << 20, 24
# (first megabyte, number of megabytes)
DISCARDED, ZEROED = (8, 4), (16, 4)
PATTERN = b"elevator" * (MB // 8)


def zeroes(disk):
    """Fill the disk, discard and zero parts of it; return the megabytes that are zeros then."""
    found = []
    fd = os.open(disk.path, os.O_RDWR | os.O_DIRECT)
    with mmap.mmap(-1, MB) as buffer:
        buffer.write(PATTERN)
        for at in range(SIZE_MB):
            os.pwritev(fd, [buffer], at * MB)
        for code, (first, count) in ((BLKDISCARD, DISCARDED), (BLKZEROOUT, ZEROED)):
            range_ioctl(fd, code, first * MB, count * MB)
        for at in range(SIZE_MB):
            os.preadv(fd, [buffer], at * MB)
            data = buffer[:]
            if data == bytes(MB):
                found.append(at)
            elif data != PATTERN:
                check(False, f"{disk.label}: megabyte {at} holds neither the pattern nor zeros")
    os.close(fd)
    return found


def main():
    names = ours()
    disks = [Disk(scsi, name) for name, scsi in
             zip(names, scsi_disks(len(names), dev_size_mb=32, lbpu=1, lbpws=1, lbprz=1,
                                   max_queue=16, ndelay=20000), strict=True)]
    wanted = [at for first, count in (DISCARDED, ZEROED) for at in range(first, first + count)]
    for disk in disks:
        found = zeroes(disk)
        check(found == wanted, f"{disk.label}: megabytes {found} are zeros, expected {wanted}")
    jobs = {}
    for disk in disks:
        jobs[f"{disk.name} trim"] = {"filename": disk.path, "rw": "randtrim", "bs": "64k"}
        jobs[f"{disk.name} write"] = {"filename": disk.path, "rw": "randwrite"}
    fio(jobs, iodepth=8, number_ios=200)
    finish(disks)
    modprobe("-r", "scsi_debug")


if __name__ == "__main__":
    main()
