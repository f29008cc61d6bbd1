#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# BP under thousands of processes, some of which are killed during I/O and some of which
# share an I/O context, while its base is switched all the time
# check: 6.12
# timeout: 900

import contextlib
import ctypes
import mmap
import os
import signal
import threading
import time

from checks import DEBUG_KERNEL, fail, modprobe
from fio_jobs import verify
from iosched import Disk
from linux_calls import CALLS, BE, set_priority, syscall
from ssd import Device

CLONE_IO = 0x80000000
# BP_PROCESSES in include/bp/process.h.
MOST = 512
NUMBER = 600 if DEBUG_KERNEL else 2000


def known(disk):
    """{pid: (tier, level, slices)} of the processes that BP knows."""
    lines = (disk.debugfs / "processes").read_text().splitlines()[2:]
    fields = [line.split() for line in lines]
    return {int(f[0]): (f[1], int(f[2]), int(f[3])) for f in fields}


def read_blocks(disk, count, forever=False):
    """Read @count blocks, or read until the process is killed."""
    fd = os.open(disk.path, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, 4096)
    while count or forever:
        os.preadv(fd, [buffer], (os.getpid() * 7919 + count) % 100000 * 4096)
        count -= not forever


def fork(flags, *args, stop=False):
    """Start a process that reads; return its pid. @flags: CLONE_IO to share the caller's I/O
    context, or 0; @args: of read_blocks(); @stop: stop after the reads instead of exiting."""
    if flags:
        pid = syscall("clone", CALLS["clone"], ctypes.c_ulong(flags | signal.SIGCHLD), 0, 0, 0, 0)
    else:
        pid = os.fork()
    if pid == 0:
        read_blocks(*args)
        if stop:
            os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    return pid


def reap(pids):
    """Wait for the end of these processes."""
    for pid in pids:
        os.waitpid(pid, 0)


def thousands(disk):
    """Run many short processes; BP must not know more of them than it has room for."""
    number = 0
    while number < NUMBER:
        disk.set(base=("anticipatory", "fair")[number // 100 % 2])
        reap([fork(0, disk, 1 + n % 3) for n in range(100)])
        number += 100
    if not 100 <= len(known(disk)) <= MOST:
        fail(f"{len(known(disk))} processes known after {number}")


def killed(disk):
    """Kill processes during their I/O."""
    for base in "fair", "anticipatory":
        disk.set(base=base)
        pids = [fork(0, disk, 0, True) for _ in range(40)]
        tries = 0
        while not set(pids) <= set(known(disk)):
            tries += 1
            if tries > 600:
                fail("a process that reads is not known")
            time.sleep(0.1)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        reap(pids)


def shared(disk):
    """Two processes with one I/O context must be one to BP, two with their own must be two."""
    # The call also creates the I/O context.
    set_priority(BE, 2)
    disk.set(base="fair")
    seen = {}
    for flags in CLONE_IO, 0:
        pids = []
        # A process that exits may leave its I/O context to the next one, so both stay.
        for _ in range(2):
            pids.append(fork(flags, disk, 20, stop=True))
            os.waitpid(pids[-1], os.WUNTRACED)
        seen[flags] = [known(disk).get(pid) for pid in pids]
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        reap(pids)
    print("shared, apart:", seen)
    if seen[CLONE_IO][0] or not seen[CLONE_IO][1]:
        fail("two that share an I/O context are not one process")
    if not all(seen[0]):
        fail("two that share nothing are one process")
    if {entry[1] for entry in seen[0]} != {2}:
        fail("the priority level is not 2")


@contextlib.contextmanager
def switching(disk):
    """Switch the base all the time while the body runs."""
    ended = threading.Event()

    def switch():
        while not ended.is_set():
            for base in "fair", "anticipatory":
                disk.set(base=base)
                time.sleep(0.02)
    switcher = threading.Thread(target=switch)
    switcher.start()
    try:
        yield
    finally:
        ended.set()
        switcher.join()


def verify_switched(disk):
    """Verify data on the disk while the base is switched; in a process of its own."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            with switching(disk):
                verify([disk], size="24m", iodepth=32)
            status = 0
        finally:
            os._exit(status)
    return pid


def main():
    modprobe("bp-iosched")
    with Device("small", queue_depth=4, memory_backed=1) as device:
        disk = Disk(device.name, "bp", antic_us=2000)
        pid = verify_switched(disk)
        thousands(disk)
        if os.waitpid(pid, 0)[1]:
            fail("the data are wrong")
        killed(disk)
        shared(disk)
        disk.nothing_left()
        print((disk.debugfs / "anticipation").read_text())


if __name__ == "__main__":
    main()
