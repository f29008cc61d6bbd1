#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Inside the guest: make the runs of a plan, each a fio job on a new device. Print a line
of JSON for each: fio's result and the device's counters."""
import collections
import contextlib
import os
import pathlib
import re
import statistics
import time

from common import (counters, end_fio, fio, kernel_since, kernel_stat, make_runs, prepare,
                    scheduler_file, start_fio, traced)
from ssd import Device, NullBlk


def scheduler_files(device):
    """Return the debugfs files of one of the project's schedulers, {name: text}."""
    files = [scheduler_file(device, name) for name in ("stats", "piq")]
    return {file.name: file.read_text() for file in files if file.exists()}


def done(device):
    """Return the number of I/Os that a device has completed, including merged ones."""
    stat = kernel_stat(device)
    return stat["read"] + stat["read_merged"] + stat["write"] + stat["write_merged"]


def work(device):
    """Return the number of I/Os so far, and the ns for which the CPU was not idle. The idle
    time is from the list of timers, which is exact, unlike /proc/stat."""
    ios = done(device)
    idle = re.findall(r"\.(?:idle|iowait)_sleeptime *: (\d+)",
                      pathlib.Path("/proc/timer_list").read_text())
    return ios, time.monotonic_ns() - sum(map(int, idle))


def cost(device, run):
    """Run a job; return fio's result, and the I/Os, the ns of work and the ns in all in the
    middle of the run, without the start and the end of fio."""
    milliseconds = int(run["variables"]["RUNTIME"].removesuffix("ms"))
    pathlib.Path("/proc/sys/vm/nr_hugepages").write_text("16")
    # The search for partitions has completed I/Os already.
    begun = done(device)
    process = start_fio(device, run)
    while done(device) == begun and process.poll() is None:
        time.sleep(0.001)
    # The two numbers of work() must belong together: no preemption between them.
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    time.sleep(0.05)
    begin, before = time.monotonic_ns(), work(device)
    time.sleep(milliseconds / 1000 - 0.1)
    end, after = time.monotonic_ns(), work(device)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return {"fio": end_fio(process, run), "ssdemu": {}, "ios": after[0] - before[0],
            "worked_ns": after[1] - before[1], "elapsed_ns": end - begin}


def quantiles(times, percentiles):
    """Return {percentile: value}, for percentiles with at most one decimal."""
    # 1000 parts: the first border is 0.1 %.
    borders = statistics.quantiles(times, n=1000, method="inclusive")
    return {f"{point:g}": borders[round(10 * point) - 1]
            for point in percentiles if 10 * point == round(10 * point)}


def order(events, percentiles):
    """Evaluate the events of traced() of requests that do not merge: the number of reads,
    the number of reads dispatched ahead of a write inserted earlier, and percentiles of the
    ms from bio to completion."""
    queued, inserted = collections.defaultdict(list), collections.defaultdict(list)
    taken = {"R": [], "W": []}
    reads = ahead = 0
    # Of several requests for the same place the first is dispatched and completed first.
    for when, action, *request in events:
        way, place = request[0], tuple(request)
        if action == "Q":
            queued[place].append(when)
        elif action == "I":
            inserted[place].append(when)
        elif action == "D" and inserted[place]:
            mine = inserted[place].pop(0)
            if way == "R":
                reads += 1
                ahead += any(times and times[0] < mine for (other, *_), times in inserted.items()
                             if other == "W")
        elif action == "C" and queued[place]:
            taken[way].append(1e3 * (when - queued[place].pop(0)))
    return {"reads": reads, "ahead": ahead, "read": quantiles(taken["R"], percentiles),
            "write": quantiles(taken["W"], percentiles)}


def benefit(device, run):
    """Run a job; return fio's result and all counters, and the order of requests if the run
    is traced."""
    device.reset()
    before = kernel_stat(device)
    with traced(device) if "TRACED" in run["variables"] else contextlib.nullcontext() as events:
        result = fio(device, run)
        kernel = kernel_since(device, before)
    return {"fio": result, "kernel": kernel, "ssdemu": counters(device),
            "scheduler": scheduler_files(device),
            **({"order": order(events, run["percentiles"])} if events else {})}


def measure(run):
    """Make one run on a device made for it."""
    on_ssd = run["preset"] is not None
    with Device(run["preset"], **run["keys"]) if on_ssd else NullBlk(**run["keys"]) as device:
        prepare(device, run)
        return cost(device, run) if run["job"] == "cost" else benefit(device, run)


if __name__ == "__main__":
    make_runs(measure)
