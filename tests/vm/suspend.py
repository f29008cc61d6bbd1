#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Under each scheduler the system is suspended to idle and to RAM, and resumed, while a card, a USB
# stick, a USB drive, an NVMe and a virtio drive are busy: requests are held meanwhile, all I/O goes
# on, all data are right, and each drive keeps its scheduler
# kernels: 6.1 6.12 newest 6.1-arm64 newest-arm64
# check: 6.12
# in-memory: yes
# disk: 64M
# nvme: 64M
# sd: 64M,iops=800
# usb: 64M,iops=100
# uas: 64M,iops=100
# timeout: 600
"""The kernel's own test of suspension, /sys/power/pm_test, ends each one after a stated step: the
processes are frozen, the drivers suspend their devices, of "core" all CPUs but one are off and the
last one has its interrupts off; then all of that is undone. What is missing is the last step, in
which the CPU or the firmware sleeps: this kernel code is not the block layer's or a driver's."""

import collections
import pathlib
import re
import time

from checks import amount, check, is_added, modprobe, wait_for
from fio_jobs import load
from iosched import Disk, ours, remove_all

POWER = pathlib.Path("/sys/power")
DELAY = pathlib.Path("/sys/module/suspend/parameters/pm_test_delay")
TRACE = pathlib.Path("/sys/kernel/tracing")
EVENTS = ("block/block_rq_issue", "power/suspend_resume")
DRIVES = {"card": r"mmcblk\d+", "USB": r"sd[a-z]", "NVMe": r"nvme\d+n\d+", "virtio": r"vd[a-z]"}
COUNT = 5
# Not libaio: after a suspension fio 3.33 was seen to wait although all its requests had completed.
CHECKED = {"ioengine": "io_uring", "rw": "randrw", "bs": "4k-32k", "size": "4m",
           "verify": "crc32c", "verify_backlog": 32, "iodepth_batch": 16}
# How often each way is taken: at least, and until a driver had requests held, at most.
TIMES, MOST = 2, 12
# I/Os that a drive has to end after it was resumed, more than were there before.
GOES_ON = 30


def drives():
    """Wait for all drives; return their names."""
    def found():
        return [path.name for path in pathlib.Path("/sys/block").iterdir()
                if any(re.fullmatch(form, path.name) for form in DRIVES.values()) and
                is_added(path.name)]
    wait_for(lambda: len(found()) == COUNT, f"{COUNT} drives")
    return sorted(found())


def kinds():
    """Return how to suspend: (word for /sys/power/state, last step)."""
    deep = "deep" in (POWER / "mem_sleep").read_text()
    return [("freeze", "platform"), *([("mem", "core")] if deep else [])]


def prepare():
    """Have the kernel resume at once, and trace when it suspends and when requests are issued."""
    DELAY.write_text("0")
    for event in EVENTS:
        (TRACE / "events" / event / "enable").write_text("1")


def held_requests():
    """Return {major,minor: reads and writes issued} from the time when the first driver was about
    to suspend its device until the processes were thawed: no process sent them meanwhile."""
    counts, suspended = {}, False
    for line in (TRACE / "trace").read_text().splitlines():
        if re.search(r"suspend_resume: dpm_suspend\[\d+\] begin", line):
            suspended = True
        elif "suspend_resume: thaw_processes" in line:
            suspended = False
        issue = re.search(r"block_rq_issue: (\d+,\d+) [RW]", line)
        if issue and suspended:
            counts[issue[1]] = counts.get(issue[1], 0) + 1
    return counts


def job(disk):
    """Return a job that verifies what it writes. It sends many requests at once: a card's driver
    has the sender of a single one wait for it, and none would be held. It has fewer in flight than
    there are: a process that waits for one is frozen when another has ended."""
    requests = int((disk.queue / "nr_requests").read_text())
    return {"filename": disk.path, "iodepth": max(2, min(64, requests // 2)), **CHECKED}


def suspend(state, step):
    """Suspend and resume; return how long it took, in seconds, and held_requests()."""
    (TRACE / "trace").write_text("")
    (POWER / "pm_test").write_text(step)
    began = time.monotonic()
    (POWER / "state").write_text(state)
    took = time.monotonic() - began
    return took, held_requests()


def round_of(disks, name):
    """Suspend and resume in each way, and check that all drives go on; return the requests held,
    {major,minor: number}."""
    held = collections.Counter()
    for state, step in kinds():
        took, found = suspend(state, step)
        held.update(found)
        before = {disk: disk.ended() for disk in disks}
        for disk in disks:
            wait_for(lambda disk=disk, least=before[disk] + GOES_ON: disk.ended() > least,
                     f"I/O goes on after {state}: {disk.label}")
        check(all(disk.selected() == name for disk in disks),
              f"{name}: after {state}, {took:.1f} s, all drives go on and keep it")
    return held


def under(name, names):
    """Suspend and resume while all drives are busy under a scheduler, until it has held requests
    meanwhile."""
    disks = [Disk(drive, name) for drive in names]
    held, rounds = collections.Counter(), 0
    with load(disks, {disk.name: job(disk) for disk in disks}):
        while rounds < amount(TIMES) or not held and rounds < MOST:
            held += round_of(disks, name)
            rounds += 1
    check(held, f"{name}: requests were held while the drivers suspended, of devices {dict(held)}")
    for disk in disks:
        disk.nothing_left()
        disk.select("none")


def main():
    modprobe("-a", "nvme", *(f"{name}-iosched" for name in ours()))
    names = drives()
    prepare()
    for name in ours():
        under(name, names)
    remove_all()


if __name__ == "__main__":
    main()
