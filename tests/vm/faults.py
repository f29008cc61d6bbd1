#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Faults that only a debug kernel injects: an allocation fails at each step of
# selecting a scheduler, and the device works on, under the old one or under none;
# requests are requeued and time out, and each of them ends
# kernels: debug-7.2
# timeout: 300
"""See above.

When a scheduler's own init fails, the old one is gone already: the block layer then
falls back to none, which is not in the scheduler's hands.
"""

import glob
import itertools
import os
import pathlib
import subprocess
import sys

from ssd import check

CONFIG = pathlib.Path("/sys/kernel/config/nullb")
OLD = "mq-deadline"


def schedulers():
    modules = f"/lib/modules/{os.uname().release}/updates/*-iosched.ko"
    return sorted(os.path.basename(path)[:-len("-iosched.ko")] for path in glob.glob(modules))


def make_device(name, **attributes):
    """A null_blk device; its name."""
    folder = CONFIG / name
    folder.mkdir()
    defaults = {"size": 256, "memory_backed": 1, "queue_mode": 2, "submit_queues": 2}
    for key, value in {**defaults, **attributes}.items():
        (folder / key).write_text(str(value))
    return folder


def selected(queue):
    return (queue / "scheduler").read_text().split("[")[1].split("]")[0]


def select(queue, name, nth=0):
    """Select a scheduler, the nth allocation failing; (error, was one made to fail?)"""
    fault = os.open("/proc/self/fail-nth", os.O_RDWR)
    file = os.open(queue / "scheduler", os.O_WRONLY)
    failure = None
    try:
        os.write(fault, str(nth).encode())
        try:
            os.write(file, name.encode())
        except OSError as error:
            failure = error
        left = int(os.pread(fault, 20, 0))
        os.write(fault, b"0")
    finally:
        os.close(file)
        os.close(fault)
    return failure, bool(nth) and not left


def fio(device, **options):
    settings = {"name": "job", "filename": f"/dev/{device}", "rw": "randrw", "bs": "4k",
                "direct": 1, "ioengine": "libaio", "iodepth": 16, "number_ios": 300,
                "size": "16m", "continue_on_error": "all", **options}
    subprocess.run(["fio", *(f"--{key}={value}" for key, value in settings.items())],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=250,
                   check=False)


def nothing_left(device):
    """inserted = merged + completed, none queued, none in flight."""
    text = pathlib.Path(f"/sys/kernel/debug/block/{device}/sched/stats").read_text()
    rows = [line.split() for line in text.splitlines()]
    total = {key: sum(int(row[i]) for row in rows[1:]) for i, key in enumerate(rows[0]) if i > 1}
    check(total["inserted"] == total["merged"] + total["completed"] and total["inserted"] > 0 and
          not total["queued"] and not total["in_flight"],
          f"{device}: {total['inserted']} inserted, all ended, {total['requeued']} requeued")
    return total["requeued"]


def allocation_failures(queue, name):
    """Fail the first allocation, the second, ... until none is left to fail."""
    failed = 0
    for nth in itertools.count(1):
        select(queue, OLD)
        before = selected(queue)
        failure, injected = select(queue, name, nth)
        if not injected:
            break
        failed += failure is not None
        now = selected(queue)
        if failure and now not in (before, "none") or not failure and now != name:
            check(False, f"{name}, allocation {nth}: {failure}, the scheduler is {now}")
        fio(queue.parent.name, number_ios=20)
    check(failed > 2, f"{name}: {nth - 1} allocations made to fail, {failed} refused it")
    check(selected(queue) == name, f"{name}: works when none fails")
    return nth - 1


def main():
    subprocess.run(["modprobe", "null_blk", "nr_devices=0"], check=True)
    debug = pathlib.Path("/sys/kernel/debug/failslab")
    (debug / "ignore-gfp-wait").write_text("N")
    faults = 0
    for name in schedulers():
        subprocess.run(["modprobe", f"{name}-iosched"], check=True)
        folder = make_device("plain")
        (folder / "power").write_text("1")
        faults += allocation_failures(pathlib.Path("/sys/block/plain/queue"), name)
        select(pathlib.Path("/sys/block/plain/queue"), "none")
        folder.rmdir()

        for kind, times in (("requeue_inject", 200), ("timeout_inject", 3)):
            folder = make_device("faulty", irqmode=2, completion_nsec=50000, memory_backed=0)
            (folder / kind / "probability").write_text("100" if times < 10 else "30")
            (folder / kind / "times").write_text(str(times))
            (folder / kind / "verbose").write_text("0")
            (folder / "power").write_text("1")
            queue = pathlib.Path("/sys/block/faulty/queue")
            (queue / "io_timeout").write_text("1000")
            select(queue, name)
            (queue / "iosched/depth").write_text("4")
            fio("faulty")
            check(nothing_left("faulty") > 50 or kind != "requeue_inject", f"{name}: {kind}")
            faults += times
            select(queue, "none")
            folder.rmdir()
        subprocess.run(["modprobe", "-r", f"{name}-iosched"], check=True)
    print(f"counted: faults={faults}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
