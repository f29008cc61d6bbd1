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
DELAY = 20


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
    # A request would be dispatched at its deadline in spite of the bound.
    disk.set(read_expire=3600000, **{bound: 1})
    few = threading.Thread(target=fio, args=({"few": {"filename": disk.path}},),
                           kwargs={"rw": "randread", "iodepth": 4, "number_ios": 4})
    few.start()
    become(disk, completed=0, queued=3, in_flight=1)
    disk.set(**{bound: 3})
    become(disk, completed=0, queued=1, in_flight=3)
    disk.set(**{bound: 0})
    become(disk, completed=0, queued=0, in_flight=4)
    few.join()
    disk.nothing_left()
    disk.select("none")
    check(True, f"{disk.scheduler}: {bound}")


name, = scsi_disks(1, dev_size_mb=64, max_queue=16)
pathlib.Path("/sys/block", name, "device/timeout").write_text("600")
(SCSI_DEBUG / "delay").write_text(str(DELAY * jiffies_per_second()))
for scheduler in ours():
    widen(Disk(name, scheduler), "depth")
widen(Disk(name, "pass"), "region_depth")
modprobe("-r", "scsi_debug")
