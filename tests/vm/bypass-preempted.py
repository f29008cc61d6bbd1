#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Reads do not wait for requests that bypass PASS and that three preempted tasks do not issue: no
# longer than under mq-deadline plus some ms
# virtual-time: yes
# kernels: 6.12
"""Three tasks read batches. A batch is in a task's plug until it is issued. This task takes the CPU
from each of them in the midst of a batch, for a task that does not give it back. So the requests in
the plugs, often as many as may be in flight, but fewer than the elevator has tags, are not issued
while this task reads. Without iosched_overlook() a read takes 600 ms here."""

import contextlib
import ctypes
import mmap
import os
import pathlib
import random
import struct
import subprocess
import sys
import time

from checks import SEED, check
from iosched import Disk
from linux_calls import syscall
from ssd import Device

TAGS, SUBMITTERS, BATCH, NR_REQUESTS = 32, 3, 32, 128
TIMES, READS, BLOCK = 12, 20, 4096
# Two periods of the timer in which a request ought to be issued, and two ticks of the task that
# runs the queue, at 250 Hz.
LATER_MS = 16
SYS_IO_SETUP, SYS_IO_GETEVENTS, SYS_IO_SUBMIT, SYS_IOPRIO_SET = 206, 208, 209, 251
IOCB = struct.Struct("<QIIHhIQQqQII")
PREAD = 0
# Best-effort. The class would follow from the policy by which a task gets the CPU.
USUAL_IOPRIO = 2 << 13 | 4
PROCESS = 1
# Real-time priorities: the kernel's worker that runs queues precedes this task, a submitter that is
# to run, and a task that only uses the CPU. A task without a priority does not run.
WORKER, READER, SUBMITTER, SPINNER = 4, 3, 2, 1


def submit(path):
    """Read batches of blocks for ever."""
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


def schedule(pid, priority):
    """Give a task a real-time priority, or none: 0."""
    os.sched_setscheduler(pid, (os.SCHED_FIFO if priority else os.SCHED_OTHER) |
                          os.SCHED_RESET_ON_FORK, os.sched_param(priority))


def stop_in_a_batch(pid, dice):
    """Let a task run until it is in the midst of a batch."""
    schedule(pid, SUBMITTER)
    while True:
        time.sleep(dice.uniform(20e-6, 2e-3))
        if "io_submit" in pathlib.Path(f"/proc/{pid}/stack").read_text():
            schedule(pid, 0)
            return


def longest_read(fd, buffer):
    """Return the longest of some reads, one after the other, in ms."""
    took = []
    for _ in range(READS):
        began = time.monotonic()
        os.preadv(fd, [buffer], 1 << 20)
        took.append(time.monotonic() - began)
        time.sleep(0.0005)
    return max(took) * 1000


def beside_preempted(disk):
    """Return the longest read beside the preempted tasks, each of the times, in ms; and under pass
    how many requests were in flight before."""
    dice, in_flight = random.Random(SEED), []
    spinner, *submitters = (subprocess.Popen([sys.executable, __file__, *arguments])
                            for arguments in [["spin"]] + [["submit", disk.path]] * SUBMITTERS)
    fd, found = os.open(disk.path, os.O_RDONLY | os.O_DIRECT), []
    try:
        time.sleep(1)
        schedule(spinner.pid, SPINNER)
        with mmap.mmap(-1, BLOCK) as buffer:
            for _ in range(TIMES):
                for submitter in submitters:
                    stop_in_a_batch(submitter.pid, dice)
                if disk.selected() == "pass":
                    in_flight.append(disk.counters()["in_flight"])
                found.append(longest_read(fd, buffer))
    finally:
        os.close(fd)
        for process in (spinner, *submitters):
            process.kill()
            process.wait()
    return found, in_flight


@contextlib.contextmanager
def ranked():
    """Let this task and the workers that run queues have the CPU before all others, also for long.
    The guest is other tests', too."""
    bound = pathlib.Path("/proc/sys/kernel/sched_rt_runtime_us")
    before = bound.read_text()
    workers = [int(pid) for pid in subprocess.run(["pgrep", "^kworker/.*H"], check=True,
                                                  stdout=subprocess.PIPE).stdout.split()]
    try:
        bound.write_text("-1")
        for pid in workers:
            schedule(pid, WORKER)
        schedule(0, READER)
        yield
    finally:
        schedule(0, 0)
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                schedule(pid, 0)
        bound.write_text(before)


def main():
    syscall("ioprio_set", SYS_IOPRIO_SET, PROCESS, 0, USUAL_IOPRIO)
    longest = {}
    with Device("small", queue_depth=TAGS) as device:
        disk = Disk(device.name, "none")
        for scheduler in ("mq-deadline", "pass"):
            disk.select(scheduler)
            (disk.queue / "nr_requests").write_text(str(NR_REQUESTS))
            with ranked():
                longest[scheduler], in_flight = beside_preempted(disk)
            print(f"{scheduler}:", " ".join(f"{ms:.1f}" for ms in longest[scheduler]), "ms",
                  flush=True)
        print("in flight:", *in_flight, flush=True)
        check(max(in_flight) >= TAGS, f"{max(in_flight)} requests use up the limit of {TAGS}")
        disk.nothing_left(bypassed=1)
    ours, theirs = max(longest["pass"]), max(longest["mq-deadline"])
    check(ours <= theirs + LATER_MS, f"longest read beside preempted tasks: {ours:.1f} ms, under "
          f"mq-deadline {theirs:.1f} ms")


if __name__ == "__main__":
    if sys.argv[1:2] == ["submit"]:
        submit(sys.argv[2])
    elif sys.argv[1:2] == ["spin"]:
        spin()
    else:
        main()
