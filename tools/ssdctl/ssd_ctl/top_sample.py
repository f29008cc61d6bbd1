# SPDX-License-Identifier: GPL-2.0
"""The figures that `ssdctl top` shows: snapshots of a drive's counters, and what changed between
two of them, as the object that --json prints."""
import dataclasses
import datetime
import os
import time

from ssd_common.drive import (BUSY_MS, MERGES, REQUESTS, SECTOR, SECTORS, TICKS, WAYS, Drive,
                             counters)
from ssd_ctl import CtlError, drives, latencies, schedulers
from ssd_ctl.debugfs import PLACE, debugfs
from ssd_ctl.latencies import Key, Latencies, Unavailable, difference, merged, summary
from ssd_ctl.sched_files import Parsed, Queue, SchedulerFiles


@dataclasses.dataclass
class Snapshot:
    """A drive's counters at a time."""
    time: float
    stat: list[int]
    scheduler: str
    tunables: dict[str, str]
    defaults: dict[str, str]
    queue: Queue
    files: dict[str, Parsed]
    histograms: dict[Key, list[int]]


class Watch:
    """Takes snapshots of a drive from now on."""

    def __init__(self, drive: Drive):
        self.drive = drive
        self.instance = drive.instance()
        self.identity = drive.identity()
        # A drive that is made of others has no scheduler.
        self.bare = not drives.schedules(drive.sysfs)
        # Why something is not shown, {what: reason}.
        self.missing: dict[str, str] = {}
        self.latencies = self.start_latencies()
        self.files = self.open_files()
        self.began = datetime.datetime.now()
        try:
            self.first = self.snapshot()
        except CtlError:
            self.close()
            raise

    def start_latencies(self) -> Latencies | None:
        """Count latencies if the kernel can."""
        try:
            return Latencies(self.drive.number)
        except Unavailable as error:
            self.missing["latencies"] = str(error)
            return None

    def open_files(self) -> SchedulerFiles:
        """Return the scheduler's files; none of them can be read without debugfs."""
        place = PLACE
        try:
            place = debugfs()
            if not os.access(place, os.R_OK | os.X_OK):
                self.missing["scheduler"] = f"{place} cannot be read: run as root"
            elif not (place / "block").exists():
                self.missing["scheduler"] = f"there is no {place}/block (CONFIG_BLK_DEBUG_FS)"
        except (CtlError, OSError) as error:
            self.missing["scheduler"] = str(error)
        return SchedulerFiles(self.drive.name, place, self.drive.sysfs)

    def close(self):
        """Stop counting."""
        if self.latencies:
            self.latencies.close()

    def snapshot(self) -> Snapshot:
        """Return the counters now."""
        if self.drive.instance() != self.instance or not self.drive.exists():
            raise CtlError(f"{self.drive.path} has disappeared")
        name = schedulers.NONE if self.bare else schedulers.present(self.drive)
        stat = counters(self.drive.sysfs)
        if not name or len(stat) <= BUSY_MS:
            raise CtlError(f"{self.drive.path} has disappeared")
        return Snapshot(time.monotonic(), stat, name, schedulers.tunables(self.drive),
                        schedulers.defaults(name), self.files.queue(name),
                        self.files.statistics(name),
                        self.latencies.read() if self.latencies else {})

    def figures(self, before: Snapshot, after: Snapshot) -> dict:
        """Return what happened between two snapshots, and the state at the second."""
        now = datetime.datetime.now()
        seconds = after.time - before.time
        same = before.scheduler == after.scheduler
        return {
            "time": now.isoformat(timespec="seconds"),
            "since": self.began.isoformat(timespec="seconds"), "seconds": seconds,
            "drive": {"path": self.drive.path, **self.identity},
            "scheduler": after.scheduler, "former_scheduler": None if same else before.scheduler,
            "tunables": changed_tunables(after), "busy_percent": busy(before, after, seconds),
            "rates": rates(before, after, seconds),
            "in_flight": after.queue.in_flight, "queued": after.queue.queued or None,
            "classes": after.queue.classes or None,
            "latencies_ns": self.latency_figures(before, after),
            "statistics": after.files, "missing": dict(self.missing)}

    def latency_figures(self, before: Snapshot, after: Snapshot) -> dict | None:
        """Return the percentiles of the interval and since the start."""
        if not self.latencies:
            return None
        spans = {"interval": difference(after.histograms, before.histograms),
                 "since_start": difference(after.histograms, self.first.histograms)}
        found = {name: by_way(merged(span)) for name, span in spans.items()}
        used = {tier for tier, _, _ in after.histograms}
        classes = {tier: {name: by_way(merged(span, tier)) for name, span in spans.items()}
                   for tier in latencies.CLASSES if tier in used}
        return {"resolution": latencies.RESOLUTION, **found, "classes": classes}


def by_way(found: dict[tuple[str, str], list[int]]) -> dict:
    """Return {direction: {kind: figures}}."""
    nothing = [0] * (latencies.LAST + 1)
    return {way: {kind: summary(found.get((way, kind), nothing)) for kind in latencies.KINDS}
            for way in latencies.DIRECTIONS}


def changed_tunables(snapshot: Snapshot) -> dict[str, dict[str, str]]:
    """Return the tunables that differ from their defaults."""
    return {name: {"value": value, "default": snapshot.defaults[name]}
            for name, value in snapshot.tunables.items()
            if snapshot.defaults.get(name, value) != value}


def busy(before: Snapshot, after: Snapshot, seconds: float) -> float:
    """Return the percentage of the time in which the drive had a request. The kernel counts in
    its ticks, so the quotient may exceed 100."""
    return min(100.0, (after.stat[BUSY_MS] - before.stat[BUSY_MS]) / seconds / 10)


def rates(before: Snapshot, after: Snapshot, seconds: float) -> dict:
    """Return the figures of each direction; of discards only if the drive has done any."""
    found = {}
    for way, start in WAYS.items():
        if start + TICKS >= len(after.stat) or way == "discard" and not after.stat[start]:
            continue
        made = [after.stat[start + i] - before.stat[start + i] for i in range(4)]
        found[way] = {
            "requests": made[REQUESTS], "iops": made[REQUESTS] / seconds,
            "mb_per_s": made[SECTORS] * SECTOR / 1e6 / seconds,
            "merges_per_s": made[MERGES] / seconds,
            "mean_kb": made[SECTORS] * SECTOR / 1024 / made[REQUESTS] if made[REQUESTS] else None,
            "mean_ms": made[TICKS] / made[REQUESTS] if made[REQUESTS] else None}
    return found
