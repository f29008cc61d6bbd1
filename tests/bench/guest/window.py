# SPDX-License-Identifier: GPL-2.0
"""Imported by runs.py: what a device and the applications do between two points in the middle
of a run.

fio cannot say so. Its runtime ends when the last request has completed, so it contains the
draining of what an elevator holds, which there is none of without an elevator; and it ends its
ramp time for each thread apart.
"""
import array
import os
import pathlib
import re
import signal
import tempfile
import time

from common import end_fio, kernel_stat, start_fio

UNITS = {"ms": 1e-3, "s": 1.0}
DIRECTIONS = ("read", "write")
# fio writes a line for each I/O: the ms of its completion by the monotonic clock, and the ns
# from submission to completion. fio measures no other latencies.
LOGGED = ("--log_alternate_epoch=1", f"--log_alternate_epoch_clock_id={time.CLOCK_MONOTONIC}",
          "--disable_slat=1", "--disable_clat=1")
COLUMNS = 5
# Bytes of a log that are evaluated at a time.
PART = 1 << 20


def seconds(text):
    """Return the seconds of a time such as "250ms"."""
    number, unit = re.fullmatch(r"([0-9.]+)(m?s)", text).groups()
    return float(number) * UNITS[unit]


def idle_ns():
    """Return the ns for which the CPU has been idle. They are from the list of timers, which is
    exact, unlike /proc/stat."""
    return sum(map(int, re.findall(r"\.(?:idle|iowait)_sleeptime *: (\d+)",
                                   pathlib.Path("/proc/timer_list").read_text())))


def point(device):
    """Return the kernel's counters of a device, the ns of the monotonic clock, and those of
    idle time."""
    stat = kernel_stat(device)
    return {**stat, "at": time.monotonic_ns(), "idle": idle_ns()}


def wait_for_first(device, process):
    """Wait for the first I/O on a device that is unused until @process uses it."""
    begun = kernel_stat(device)
    while kernel_stat(device) == begun and process.poll() is None:
        time.sleep(0.001)


def between(device, pause):
    """Return the points before and after @pause seconds."""
    # What belongs together is read without preemption.
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    begin = point(device)
    time.sleep(pause)
    end = point(device)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return begin, end


def parts(path):
    """Yield the lists of columns of a log of fio, part by part."""
    with open(path, "rb") as file:
        while part := file.read(PART):
            words = (part + file.readline()).replace(b",", b"").split()
            yield [words[at::COLUMNS] for at in range(COLUMNS)]


def latencies(logs, begin, end):
    """Return {direction: the sorted ns of the I/Os that completed between @begin and @end}, both
    ns of the monotonic clock."""
    first, last = begin // 1_000_000, end // 1_000_000
    found = {way: array.array("q") for way in DIRECTIONS}
    for log in logs:
        for when, taken, ways, *_ in parts(log):
            for at, value, way in zip(map(int, when), map(int, taken), ways, strict=True):
                if first <= at < last:
                    found[DIRECTIONS[way == b"1"]].append(value)
    return {way: sorted(values) for way, values in found.items()}


def quantiles(values, percentiles):
    """Return the number, the mean, the maximum and the @percentiles of sorted ns, in ms; of the
    percentiles those which are not the maximum."""
    count = len(values)
    made = {"count": count}
    if not count:
        return made
    made |= {"mean": sum(values) / count / 1e6, "max": values[-1] / 1e6}
    for percentile in percentiles:
        place = -int(-count * percentile // 100)
        if place < count:
            made[f"p{percentile:g}"] = values[max(place, 1) - 1] / 1e6
    return made


def window(device, run):
    """Run a job until a window of RUNTIME has passed, which begins RAMP after the first I/O.
    Return two dictionaries of it: its seconds, the seconds for which the CPU was busy, and of
    each direction the bytes by the kernel's count and the latencies; the device's counters."""
    ramp, pause = (seconds(run["variables"][name]) for name in ("RAMP", "RUNTIME"))
    endless = {**run, "variables": run["variables"] | {"RAMP": "0", "RUNTIME": "1000000s"}}
    with tempfile.TemporaryDirectory() as folder:
        process = start_fio(device, endless, (*LOGGED, f"--write_lat_log={folder}/io"))
        wait_for_first(device, process)
        time.sleep(ramp)
        device.reset()
        begin, end = between(device, pause)
        stats = device.stats()
        process.send_signal(signal.SIGINT)
        end_fio(process, run)
        logs = sorted(pathlib.Path(folder).glob("io_lat.*.log"))
        times = latencies(logs, begin["at"], end["at"])
    past = {key: end[key] - begin[key] for key in begin}
    return {"seconds": past["at"] / 1e9, "busy_seconds": (past["at"] - past["idle"]) / 1e9,
            **{way: {"bytes": past[f"{way}_bytes"],
                     "latency": quantiles(times[way], run["percentiles"])}
               for way in DIRECTIONS}}, stats
