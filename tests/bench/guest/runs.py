#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Inside the guest: make the runs of a plan, each a fio job on a new device. Print a line
of JSON for each: what happens in a window of the run, or fio's result of all of it, and the
device's counters."""
import collections
import contextlib
import pathlib
import statistics
import time

import programs
from beside import file_system, repeated
from common import (SIMULATED, counters, end_fio, fio, kernel_since, kernel_stat, make_runs,
                    numbers, prepare, scheduler_file, start_fio, traced)
from load import Replay
from ssd import Device, NullBlk
from window import between, seconds, wait_for_first, whole, window


def scheduler_files(device):
    """Return the debugfs files of one of the project's schedulers, {name: text}."""
    files = [scheduler_file(device, name) for name in ("stats", "piq", "readers")]
    return {file.name: file.read_text() for file in files if file.exists()}


def completed(stat):
    """Return the number of completed I/Os, including merged ones."""
    return stat["read"] + stat["read_merged"] + stat["write"] + stat["write_merged"]


def cost(device, run):
    """Run a job; return fio's result, and the I/Os, the ns of work and the ns in all in the
    middle of the run, without the start and the end of fio."""
    pathlib.Path("/proc/sys/vm/nr_hugepages").write_text("16")
    process = start_fio(device, run)
    wait_for_first(device, lambda: process.poll() is not None)
    time.sleep(0.05)
    begin, end = between(device, seconds(run["variables"]["RUNTIME"]) - 0.1)
    past = {key: end[key] - begin[key] for key in begin}
    return {"fio": end_fio(process, run), "ssdemu": {}, "ios": completed(past),
            "worked_ns": past["at"] - past["idle"], "elapsed_ns": past["at"]}


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
    """Run a job to its end; return fio's result and all counters, and the order of requests if
    the run is traced."""
    device.reset()
    before = kernel_stat(device)
    with traced(device) if "TRACED" in run["variables"] else contextlib.nullcontext() as events:
        result = fio(device, run)
        kernel = kernel_since(device, before)
    return {"fio": result, "kernel": kernel, "ssdemu": counters(device),
            "scheduler": scheduler_files(device),
            **({"order": order(events, run["percentiles"])} if events else {})}


def windowed(device, run):
    """Run a job; return what happens in a window of it."""
    with repeated(run) if "BESIDE" in run["variables"] else contextlib.nullcontext():
        found, stats = window(device, run)
    return {"window": found, "ssdemu": numbers(stats), "scheduler": scheduler_files(device)}


def replayed(device, run):
    """Replay a trace; return what happens in all of it."""
    load = Replay(device, run)
    found, stats = whole(device, run, load)
    return {"window": found, "asked": load.asked, "ssdemu": numbers(stats),
            "scheduler": scheduler_files(device)}


def measurement(run):
    """Return the function that measures a run on an emulated SSD."""
    if run["job"] == "cost":
        return cost
    if "RUNTIME" in run["variables"]:
        return windowed
    return replayed if SIMULATED and "LOG" in run["variables"] else benefit


def measure(run):
    """Make one run on a device made for it."""
    if run["preset"] is None:
        with NullBlk(**run["keys"]) as device:
            prepare(device, run)
            return cost(device, run)
    if run["job"] in programs.PROGRAMS:
        with Device(run["preset"], **run["keys"]) as device, programs.files(device, run):
            prepare(device, run)
            return programs.measure(device, run) | {"scheduler": scheduler_files(device)}
    with Device(run["preset"], **run["keys"]) as device, \
            file_system(device, run) if "BESIDE" in run["variables"] \
            else contextlib.nullcontext():
        prepare(device, run)
        return measurement(run)(device, run)


if __name__ == "__main__":
    make_runs(measure)
