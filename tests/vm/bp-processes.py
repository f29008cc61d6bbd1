#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# BP under thousands of processes, some killed in the middle, some that share an
# I/O context, while its base is switched again and again
# check: 6.12
# timeout: 900
"""Processes that come and go while both bases are in use."""
import ctypes
import mmap
import os
import signal
import subprocess
import time

from shell import fail, guest
from ssd import DEBUG_KERNEL

DEVICE = "/dev/ssdemu0"
DEBUGFS = "/sys/kernel/debug/block/ssdemu0/sched"
ANTICIPATION = f"{DEBUGFS}/anticipation"
CLONE_IO = 0x80000000
SYS_CLONE, SYS_IOPRIO_SET = 56, 251  # x86-64
# BP_PROCESSES in include/bp/process.h.
MOST = 512
NUMBER = 600 if DEBUG_KERNEL else 2000
LIBC = ctypes.CDLL(None, use_errno=True)


def known():
    """{pid: (tier, level, slices)} of the processes that BP knows."""
    with open(f"{DEBUGFS}/processes", encoding="ascii") as file:
        lines = [line.split() for line in file][2:]
    return {int(f[0]): (f[1], int(f[2]), int(f[3])) for f in lines}


def set_base(base):
    with open("/sys/block/ssdemu0/queue/iosched/base", "w", encoding="ascii") as file:
        file.write(base)


def reader(count, forever=False):
    """Read here and there; in a process of its own."""
    fd = os.open(DEVICE, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, 4096)
    while count or forever:
        os.preadv(fd, [buffer], (os.getpid() * 7919 + count) % 100000 * 4096)
        count -= not forever


def fork(flags, *args, stay=False):
    """A process that shares its parent's I/O context if @flags say so. It exits after
    its reads, or stays until it is told to go on."""
    if flags:
        pid = LIBC.syscall(SYS_CLONE, ctypes.c_ulong(flags | signal.SIGCHLD),
                           0, 0, 0, 0)
    else:
        pid = os.fork()
    if pid == 0:
        reader(*args)
        if stay:
            os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    return pid


def reap(pids):
    for pid in pids:
        os.waitpid(pid, 0)


def thousands():
    """Many short-lived processes; not more are known than there is room for."""
    number = 0
    while number < NUMBER:
        set_base(("anticipatory", "fair")[number // 100 % 2])
        reap([fork(0, 1 + n % 3) for n in range(100)])
        number += 100
    if not 100 <= len(known()) <= MOST:
        fail(f"{len(known())} processes known after {number}")


def killed():
    """Processes that are killed while they have a request under way."""
    for base in "fair", "anticipatory":
        set_base(base)
        pids = [fork(0, 0, True) for _ in range(40)]
        tries = 0
        while not set(pids) <= set(known()):
            tries += 1
            if tries > 600:
                fail("a process that reads is not known")
            time.sleep(0.1)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        reap(pids)


def shared():
    """Two that share an I/O context are one to BP; two that don't are two."""
    # Best-effort class, level 2: also makes sure there is an I/O context.
    if LIBC.syscall(SYS_IOPRIO_SET, 1, 0, 2 << 13 | 2):
        fail("ioprio_set")
    set_base("fair")
    seen = {}
    for flags in CLONE_IO, 0:
        pids = []
        # Who has gone leaves its I/O context to the next one, at times.
        for _ in range(2):
            pids.append(fork(flags, 20, stay=True))
            os.waitpid(pids[-1], os.WUNTRACED)
        seen[flags] = [known().get(pid) for pid in pids]
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


def main():
    guest(f"""
        scripts/ssdemu load small queue_depth=4 memory_backed=1 >/dev/null
        modprobe bp-iosched
        select_scheduler {DEVICE} bp
        echo 2000 >"$(tunable {DEVICE} antic_us)"
        """)
    verify = subprocess.Popen(["bash", "-c", f""". tests/vm/lib.sh
        while :; do
            for base in fair anticipatory; do
                echo $base >"$(tunable {DEVICE} base)"
                sleep 0.02
            done
        done &
        switch=$!
        fio_verify {DEVICE} --size=24m --output-format=terse >/dev/null
        kill $switch
        """])
    thousands()
    if verify.wait():
        fail("data are wrong")
    killed()
    shared()
    guest(f"nothing_left {DEVICE}; cat {ANTICIPATION}")


if __name__ == "__main__":
    main()
