#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# A reader does not wait for requests that bypass PASS but that preempted tasks do not issue: no
# longer than under mq-deadline plus some ms
# virtual-time: yes
# kernels: 6.1 6.12
# check: 6.12
# timeout: 900
"""Three tasks of SCHED_IDLE submit batches of reads while another one uses the CPU. A batch is in a
plug of the task until it is issued, and the task is preempted in between. All batches together
have more requests than the drive has tags, but fewer than the elevator has."""

import ctypes
import mmap
import os
import struct
import subprocess
import sys
import time

from checks import check
from iosched import Disk, scsi_disks
from linux_calls import syscall

TAGS, SUBMITTERS, BATCH = 32, 3, 16
SECONDS, BLOCK = 1.5, 4096
# Two periods of the timer in which a request ought to be issued, and two ticks of the task that
# runs the queue, at 250 Hz.
LATER_MS = 16
SYS_IO_SETUP, SYS_IO_GETEVENTS, SYS_IO_SUBMIT = 206, 208, 209
IOCB = struct.Struct("<QIIHhIQQqQII")
PREAD = 0


def submit(path):
    """Read batches of blocks for ever."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    memory = mmap.mmap(-1, BATCH * BLOCK)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    context = ctypes.c_ulong(0)
    syscall("io_setup", SYS_IO_SETUP, BATCH, ctypes.byref(context))
    iocbs = ctypes.create_string_buffer(b"".join(
        IOCB.pack(index, 0, 0, PREAD, 0, fd, address + index * BLOCK, BLOCK,
                  index * 8 * BLOCK, 0, 0, 0) for index in range(BATCH)))
    pointers = (ctypes.c_void_p * BATCH)(*(ctypes.addressof(iocbs) + index * IOCB.size
                                           for index in range(BATCH)))
    events = ctypes.create_string_buffer(32 * BATCH)
    while True:
        syscall("io_submit", SYS_IO_SUBMIT, context, ctypes.c_long(BATCH), pointers)
        syscall("io_getevents", SYS_IO_GETEVENTS, context, ctypes.c_long(BATCH),
                ctypes.c_long(BATCH), events, None)


def spin():
    """Use the CPU for ever."""
    while True:
        pass


def longest_read(path):
    """The longest of the reads of SECONDS, one after the other, in ms."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    with mmap.mmap(-1, BLOCK) as buffer:
        longest, end = 0, time.monotonic() + SECONDS
        while (begun := time.monotonic()) < end:
            os.preadv(fd, [buffer], 32 << 20)
            longest = max(longest, time.monotonic() - begun)
            time.sleep(0.002)
    os.close(fd)
    return longest * 1000


def beside_preempted(disk):
    """The longest read beside the submitters, in ms."""
    others = [subprocess.Popen([sys.executable, __file__, *arguments])
              for arguments in [["submit", disk.path]] * SUBMITTERS + [["spin"]]]
    try:
        time.sleep(1)
        return longest_read(disk.path)
    finally:
        for other in others:
            other.kill()
            other.wait()


def main():
    (name,) = scsi_disks(1, ndelay=200000, dev_size_mb=64, max_queue=TAGS)
    disk = Disk(name, "none")
    longest = {}
    for scheduler in ("mq-deadline", "pass"):
        disk.select(scheduler)
        longest[scheduler] = beside_preempted(disk)
    print(longest, disk.counters())
    check(longest["pass"] <= longest["mq-deadline"] + LATER_MS,
          f"longest read beside preempted tasks: {longest['pass']:.1f} ms, under mq-deadline "
          f"{longest['mq-deadline']:.1f} ms")
    disk.nothing_left()
    disk.select("none")


if __name__ == "__main__":
    if sys.argv[1:2] == ["submit"]:
        submit(sys.argv[2])
    elif sys.argv[1:2] == ["spin"]:
        spin()
    else:
        main()
