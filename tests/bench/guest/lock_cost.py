#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Inside a guest of a stock kernel with several CPUs: make the runs of a plan. Print a line of
JSON for each: how often an I/O takes one of the scheduler's locks, finds a lock taken, and
wakes a task.

A lock is the scheduler's if one of its functions takes it: kprobes on the functions of spin
locks note their caller. They make an I/O several times as long, so the rest is counted
in a run of its own."""
import contextlib
import os
import pathlib
import re
import sys

from common import fio, make_runs, prepare
from ssd import Device, NullBlk

TRACING = pathlib.Path("/sys/kernel/tracing")
LOCKING = ("_raw_spin_lock", "_raw_spin_lock_irq", "_raw_spin_lock_irqsave", "_raw_spin_lock_bh",
           "_raw_spin_trylock")
# How the names of a scheduler's functions begin if it is no module.
BUILT_IN = {"mq-deadline": "dd_", "kyber": "kyber_", "bfq": "bfq_"}
# Buckets of a histogram, more than there are locks and callers.
SIZE = 8192


class Counter:
    """Counts hits of an event by a key."""

    def __init__(self, event, key):
        self.folder = TRACING / "events" / event
        self.trigger = f"hist:keys={key}:size={SIZE}"

    def __enter__(self):
        (self.folder / "trigger").write_text(self.trigger)
        return self

    def __exit__(self, *_):
        (self.folder / "trigger").write_text(f"!{self.trigger}")

    def rows(self):
        """Yield (text of the key, hits)."""
        for line in (self.folder / "hist").read_text().splitlines():
            if row := re.fullmatch(r"\{ (.*) \} hitcount: *(\d+)\s*", line):
                yield row[1], int(row[2])

    def total(self):
        """Return the number of hits."""
        return sum(hits for _, hits in self.rows())


def probe_locks():
    """Make an event of each function that takes a spin lock, with its caller."""
    with open(TRACING / "kprobe_events", "w", encoding="ascii") as events:
        for name in LOCKING:
            events.write(f"p:locks/{name} {name} caller=$stack0\n")
            events.flush()


def functions(scheduler):
    """Return the names of a scheduler's functions."""
    name = scheduler.replace("-", "_")
    modules = {f"[{name}]", f"[{name}_iosched]"}
    found = set()
    for line in pathlib.Path("/proc/kallsyms").read_text().splitlines():
        _, kind, symbol, *module = line.split()
        built_in = not module and symbol.startswith(BUILT_IN.get(scheduler, ()))
        if kind in "tT" and (built_in or modules.intersection(module)):
            found.add(symbol)
    return found


def ios_of(device, run):
    """Make a run; return the number of its I/Os."""
    job = fio(device, run)["jobs"][0]
    return job["read"]["total_ios"] + job["write"]["total_ios"]


def acquisitions(device, run):
    """Return how often an I/O takes a lock of the scheduler."""
    own, found = functions(run["scheduler"]), 0
    if not own and run["scheduler"] != "none":
        sys.exit(f"no function of {run['scheduler']} is known")
    with contextlib.ExitStack() as stack:
        counters = [stack.enter_context(Counter(f"locks/{function}", "caller.sym"))
                    for function in LOCKING]
        ios = ios_of(device, run)
        for counter in counters:
            found += sum(hits for key, hits in counter.rows() if key.split()[2] in own)
    return found / ios


def measure(run):
    """Run a job twice; return the counts of an I/O."""
    made = Device(run["preset"], **run["keys"]) if run["preset"] else NullBlk(**run["keys"])
    with made as device:
        prepare(device, run)
        taken = acquisitions(device, run)
        with Counter("lock/contention_begin", "flags") as contended, \
                Counter("sched/sched_waking", "common_pid") as woken:
            ios = ios_of(device, run)
            return {"scheduler": run["scheduler"], "cpus": os.cpu_count(), "ios": ios,
                    "acquisitions": taken, "contended": contended.total() / ios,
                    "wakeups": woken.total() / ios}


if __name__ == "__main__":
    # The buffers of cost.fio are in huge pages.
    pathlib.Path("/proc/sys/vm/nr_hugepages").write_text("16")
    probe_locks()
    make_runs(measure)
