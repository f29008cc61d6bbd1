# SPDX-License-Identifier: GPL-2.0
"""Imported by runs.py: what a device and the applications do between two points in the middle
of a run.

fio cannot say so. Its runtime ends when the last request has completed, so it contains the
draining of what an elevator holds, which there is none of without an elevator; and it ends its
ramp time for each thread apart.
"""
import os
import pathlib
import re
import time

from common import SIMULATED, kernel_stat
from load import DIRECTIONS, Fio, Threads

UNITS = {"ms": 1e-3, "s": 1.0}


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


def wait_for_first(device, ended):
    """Wait for the first I/O on a device that is unused until a load uses it, or until
    @ended() says that there will be none."""
    begun = kernel_stat(device)
    while kernel_stat(device) == begun and not ended():
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


def window(device, run, make=Threads if SIMULATED else Fio):
    """Run a job until a window of RUNTIME has passed, which begins RAMP after the first I/O.
    @make: returns the load of a device and a run.
    Return two dictionaries: its seconds, and of each direction the bytes by the kernel's count and
    the latencies; the device's counters in it."""
    ramp, pause = (seconds(run["variables"][name]) for name in ("RAMP", "RUNTIME"))
    with make(device, run) as load:
        wait_for_first(device, load.ended)
        time.sleep(ramp)
        device.reset()
        with load.measured():
            begin, end = between(device, pause)
        stats = device.stats()
    return evaluated(load, run, begin, end), stats


def whole(device, run, load):
    """Run a @load that ends by itself; return the same of all of it."""
    device.reset()
    with load, load.measured():
        begin = point(device)
        while not load.ended():
            time.sleep(0.1)
        end = point(device)
    return evaluated(load, run, begin, end), device.stats()


def evaluated(load, run, begin, end):
    """Return what happened between two points of a @load that has ended."""
    times = load.latencies(begin["at"], end["at"])
    past = {key: end[key] - begin[key] for key in begin}
    return {"seconds": past["at"] / 1e9,
            **{way: {"bytes": past[f"{way}_bytes"],
                     "latency": quantiles(times[way], run["percentiles"])}
               for way in DIRECTIONS}}
