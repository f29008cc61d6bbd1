# SPDX-License-Identifier: GPL-2.0
"""What drives do at present, by the kernel's counters over an interval."""
import dataclasses
import os
import time

from ssd_common.drive import (BUSY_MS, REQUESTS, SECTOR, SECTORS, TICKS, WAYS, Drive, counters,
                             in_flight, read)
from ssd_ctl import CtlError, schedulers
from ssd_ctl.debugfs import debugfs

Stat = tuple[float, list[int]]


@dataclasses.dataclass
class Way:
    """A direction: MB/s, requests/s, mean latency in ms, requests in flight now."""
    mb_s: float
    iops: float
    latency_ms: float | None
    in_flight: int


@dataclasses.dataclass
class Activity:
    """What a drive does. @busy: part of the time with a request in flight, percent; @queued:
    requests that its scheduler holds, None if that is not known."""
    read: Way
    write: Way
    busy: float
    queued: int | None
    counted: bool

    def idle(self) -> bool:
        """Return true if the drive did nothing."""
        return not any((self.read.iops, self.write.iops, self.busy, self.read.in_flight,
                        self.write.in_flight, self.queued))


def stat(drive: Drive) -> Stat:
    """Return the time, and the drive's counters."""
    return time.monotonic(), counters(drive.sysfs)


def watch(drives: list[Drive], seconds: float) -> dict[str, Activity]:
    """Watch drives for some time; return {name: what it does}. A drive that disappears meanwhile
    is left out."""
    before = {drive.name: stat(drive) for drive in drives}
    time.sleep(seconds)
    after = {drive.name: stat(drive) for drive in drives}
    return {drive.name: between(drive, before[drive.name], after[drive.name])
            for drive in drives if before[drive.name][1] and after[drive.name][1]}


def between(drive: Drive, before: Stat, after: Stat) -> Activity:
    """Return what a drive did between two readings of its counters."""
    seconds = after[0] - before[0]
    counts = [new - old for old, new in zip(before[1], after[1], strict=True)]
    ways = [way(counts[WAYS[name]:WAYS[name] + 4], seconds, number)
            for name, number in in_flight(drive.sysfs).items()]
    return Activity(*ways, busy=round(min(100, counts[BUSY_MS] / seconds / 10), 1),
                    queued=queued(drive), counted=read(drive.queue / "iostats") != "0")


def way(counts: list[int], seconds: float, number: int) -> Way:
    """Return what was done in a direction by the differences of its counters. @number: of requests
    in flight."""
    ended = counts[REQUESTS]
    return Way(round(counts[SECTORS] * SECTOR / seconds / 1e6, 3), round(ended / seconds, 1),
               round(counts[TICKS] / ended, 3) if ended else None, number)


def queued(drive: Drive) -> int | None:
    """Return how many requests one of our schedulers holds; None if only root may know."""
    if schedulers.present(drive) not in schedulers.OURS or os.geteuid():
        return None
    try:
        head, *rows = read(debugfs() / "block" / drive.name / "sched/stats").splitlines() or [""]
    except CtlError:
        return None
    column = head.split().index("queued") if "queued" in head.split() else None
    return None if column is None else sum(int(row.split()[column]) for row in rows)
