#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Faults that only a debug kernel injects: when an allocation fails at any step of selecting
# a scheduler, the device still works, under the old scheduler if the new one can keep it;
# requests that are requeued or time out all end
# kernels: debug-6.12 debug-7.2
# check: none
# timeout: 900
"""Before 7.2 the block layer removes the old scheduler first, and falls back to none if the
new one fails. 7.2 calls the new scheduler's allocations first, but still allocates after it
removed the old one. Kyber shows how often that loses the old scheduler. The block layer then
leaves the old one's files in sysfs, so selecting any scheduler fails with EEXIST, and the
test continues with a new device. Not on 6.1: in 13 of these cases it keeps a reference of the
scheduler's module, also of kyber's, and its null_blk injects faults into all devices only."""

import itertools
import os
import pathlib

from checks import check, modprobe
from fio_jobs import fio
from iosched import Disk, ours, remove_all
from ssd import NullBlk

OLD = "mq-deadline"
TIMER = {"size": 64, "queue_mode": 2, "submit_queues": 2, "irqmode": 2, "completion_nsec": 50000}
SMALL = {"size": 64, "queue_mode": 2, "hw_queue_depth": 4}
# Faults of null_blk: (percent of the requests, most faults).
INJECTED = {"requeue_inject": (30, 200), "timeout_inject": (100, 3)}


def select_failing(disk, name, nth):
    """Select a scheduler while the nth allocation fails; return (the error, true if an allocation
    failed)."""
    fault = os.open("/proc/self/fail-nth", os.O_RDWR)
    file = os.open(disk.queue / "scheduler", os.O_WRONLY)
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
    return failure, not left


def allocation_failures(name):
    """Fail the first allocation, the second, and so on; return the number of them, and how often
    the old scheduler was lost."""
    device = NullBlk("plain", **SMALL)
    lost, refused = 0, 0
    for nth in itertools.count(1):
        try:
            disk = Disk(device.name, OLD)
        except FileExistsError:
            device.remove()
            device = NullBlk("plain", **SMALL)
            disk = Disk(device.name, OLD)
        failure, injected = select_failing(disk, name, nth)
        selected = (disk.queue / "scheduler").read_text().split("[")[1].split("]")[0]
        if not injected:
            break
        refused += failure is not None
        if selected not in ((OLD, "none") if failure else (name,)):
            check(False, f"{name}, allocation {nth}: {failure}, the scheduler is {selected}")
        # The device works under either scheduler.
        with open(disk.path, "r+b", buffering=0) as file:
            file.write(os.urandom(4096))
            os.fsync(file)
        lost += selected == "none"
    check(refused > 1, f"{name}: {nth - 1} allocations failed, {refused} selections failed, "
          f"{lost} lost the old scheduler")
    check(selected == name, f"{name} is selected when no allocation fails")
    fio({disk.name: {"filename": disk.path}}, rw="randrw", number_ios=50)
    device.remove()
    return nth - 1, lost


def injected(kind, percent, times):
    """Requests that are requeued, or time out, under all schedulers at once."""
    faults = {f"{kind}/probability": percent, f"{kind}/times": times, f"{kind}/verbose": 0}
    devices = {NullBlk(f"{name}-faulty", **TIMER, **faults): name for name in ours()}
    disks = [Disk(device.name, name, depth=4) for device, name in devices.items()]
    for disk in disks:
        (disk.queue / "io_timeout").write_text("1000")
    fio({disk.name: {"filename": disk.path} for disk in disks}, rw="randrw", number_ios=300,
        numjobs=2, good=False, continue_on_error="all")
    # Every second one of each hardware queue is requeued; the block layer retries the others.
    requeued = (times - TIMER["submit_queues"]) // 2 if kind == "requeue_inject" else 0
    for disk in disks:
        disk.nothing_left(requeued=requeued)
        disk.select("none")
    for device in devices:
        device.remove()
    return times * len(disks)


def main():
    pathlib.Path("/sys/kernel/debug/failslab/ignore-gfp-wait").write_text("N")
    # There are a hundred selections, each of which waits for several grace periods.
    pathlib.Path("/sys/kernel/rcu_expedited").write_text("1")
    modprobe("kyber-iosched")
    faults, at_best = allocation_failures("kyber")
    for name in ours():
        modprobe(f"{name}-iosched")
        made, lost = allocation_failures(name)
        check(lost <= at_best, f"{name} loses the old scheduler no more often than kyber")
        faults += made
    for kind, (percent, times) in INJECTED.items():
        faults += injected(kind, percent, times)
    remove_all()
    print(f"counted: faults={faults}")


if __name__ == "__main__":
    main()
