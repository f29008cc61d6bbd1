#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Requests that a bound holds back are dispatched as soon as the bound is widened, not at
# the next completion
# check: 6.12
# timeout: 900

import pathlib
import re
import threading
import time

from checks import check, modprobe, wait_for
from fio_jobs import fio
from iosched import SCSI_DEBUG, Disk, ours, scsi_disks

# Seconds that a command takes.
DELAY = 40


def clocks():
    """(nanoseconds, jiffies): the kernel's clocks."""
    text = pathlib.Path("/proc/timer_list").read_text()
    return (int(re.search(r"^now at (\d+)", text, re.M)[1]),
            int(re.search(r"^jiffies: (\d+)", text, re.M)[1]))


def jiffies_per_second():
    """HZ, about."""
    ns, jiffies = clocks()
    time.sleep(1)
    later_ns, later = clocks()
    return (later - jiffies) * 10**9 // (later_ns - ns)


def become(disk, **wanted):
    """Wait until these counters have these values. With completed=0 among them, a request that is
    dispatched at the next completion is too late."""
    def reached():
        now = disk.counters()
        return all(now[key] == value for key, value in wanted.items())
    wait_for(reached, f"{disk.label}: {wanted}")


def widen(disk, bound):
    """Widen a bound while it holds requests back."""
    become(disk, completed=0, queued=3, in_flight=1)
    disk.set(**{bound: 3})
    become(disk, completed=0, queued=1, in_flight=3)
    disk.set(**{bound: 0})
    become(disk, completed=0, queued=0, in_flight=4)
    check(True, f"{disk.scheduler}: {bound}")


bounds = [*((scheduler, "depth") for scheduler in ours()), ("pass", "region_depth")]
names = scsi_disks(len(bounds), dev_size_mb=8, max_queue=16)
for name in names:
    pathlib.Path("/sys/block", name, "device/timeout").write_text("600")
(SCSI_DEBUG / "delay").write_text(str(DELAY * jiffies_per_second()))
disks = [Disk(name, scheduler) for name, (scheduler, _) in zip(names, bounds, strict=True)]
for each, (_, tunable) in zip(disks, bounds, strict=True):
    # A request would be dispatched at its deadline in spite of the bound.
    each.set(read_expire=3600000, **{tunable: 1})
few = threading.Thread(target=fio, args=({each.name: {"filename": each.path} for each in disks},),
                       kwargs={"rw": "randread", "iodepth": 4, "number_ios": 4})
few.start()
for each, (_, tunable) in zip(disks, bounds, strict=True):
    widen(each, tunable)
few.join()
for each in disks:
    each.nothing_left()
    each.select("none")
modprobe("-r", "scsi_debug")
