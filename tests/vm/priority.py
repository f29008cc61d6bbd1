#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# The real-time class is dispatched before best-effort, and that before idle, but no request
# waits longer than prio_aging_expire
# virtual-time: yes
# kernels: 6.1 6.12 debug-6.1 debug-6.12 debug-7.2
# check: 6.12
# timeout: 900

from checks import DEBUG_KERNEL, check
from fio_jobs import at_once, fio
from iosched import Disk, finish, ours
from ssd import NullBlk

CLASSES = {"rt": 1, "be": 2, "idle": 3}
# 4 requests at a time, 2 ms each: 2000 per second, on one CPU for all devices. A debug kernel
# has four times the time for as many, and one device at a time.
TIMES = 4 if DEBUG_KERNEL else 1


def readers(disks):
    """Run a reader of each class on each disk: {disk: I/Os of each reader}."""
    results = {}
    for some in at_once(disks):
        jobs = {f"{disk.name} {name}": {"filename": disk.path, "prioclass": number}
                for disk in some for name, number in CLASSES.items()}
        results |= fio(jobs, rw="randread", time_based=1, runtime=TIMES)
    return {disk: [results[f"{disk.name} {name}"][0]["read"]["total_ios"] for name in CLASSES]
            for disk in disks}


def main():
    devices = {NullBlk(f"{name}-few", size=1024, queue_mode=2, irqmode=2, submit_queues=1,
                       completion_nsec=TIMES * 2000000, hw_queue_depth=4): name for name in ours()}
    disks = [Disk(device.name, name, depth=0) for device, name in devices.items()]
    for disk in disks:
        # Enough tags: the scheduler does not order tasks that wait for one.
        (disk.queue / "nr_requests").write_text("256")
    for disk, (rt, be, idle) in readers(disks).items():
        # Unordered, each class would have a third.
        check(rt > 10 * (be + idle) + 100, f"{disk.label}: rt {rt}, be {be}, idle {idle} I/Os")
    for disk in disks:
        disk.tune(prio_aging_expire=100)
    for disk, (rt, be, idle) in readers(disks).items():
        check(be > 50 and idle > 50,
              f"{disk.label}, aging after 100 ms: rt {rt}, be {be}, idle {idle} I/Os")
    finish(disks, devices)


if __name__ == "__main__":
    main()
