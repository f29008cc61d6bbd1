#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Inside a guest of a stock kernel with several CPUs: make the runs of a plan. Print a line of
JSON for each: how often an I/O takes one of the scheduler's locks, finds one of them or any other
spin lock taken, and wakes a task.

A lock is the scheduler's if one of its functions takes it: kprobes on the functions of spin
locks note their caller and the lock. They make an I/O several times as long, so the rest is counted
in a run of its own, in which a kprobe on the slow path of a spin lock sees each CPU that has found
one taken. The tracepoint lock:contention_begin does not: it is behind the part for the first CPU
that waits, and the part for guests of a hypervisor, which has no queue."""
import contextlib
import os
import pathlib
import re

from common import fio, make_runs, prepare
from lock_holds import functions
from ssd import Device, NullBlk

TRACING = pathlib.Path("/sys/kernel/tracing")
LOCKING = ("_raw_spin_lock", "_raw_spin_lock_irq", "_raw_spin_lock_irqsave", "_raw_spin_lock_bh",
           "_raw_spin_trylock")
SLOW = "native_queued_spin_lock_slowpath"
# Buckets of a histogram, more than there are locks and callers.
SIZE = 8192


class Counter:
    """Counts hits of an event by a key, those for which @condition holds."""

    def __init__(self, event, key, condition=""):
        self.folder = TRACING / "events" / event
        self.trigger = f"hist:keys={key}:size={SIZE}{condition and ' if '}{condition}"

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
    """Make an event of each function that takes a spin lock, with its caller and the lock, and one
    of their slow path."""
    with open(TRACING / "kprobe_events", "w", encoding="ascii") as events:
        for name in LOCKING:
            events.write(f"p:locks/{name} {name} caller=$stack0 lock=%di:x64\n")
            events.flush()
        events.write(f"p:locks/slow {SLOW} lock=%di:x64\n")


def ios_of(device, run):
    """Make a run; return the number of its I/Os."""
    job = fio(device, run)["jobs"][0]
    return job["read"]["total_ios"] + job["write"]["total_ios"]


def acquisitions(device, run):
    """Return how often an I/O takes a lock of the scheduler, and these locks."""
    own = functions(run["scheduler"]) if run["scheduler"] != "none" else {"none": 0}
    where = f"caller >= {min(own.values())} && caller < {max(own.values()) + 4096}"
    taken, locks = 0, set()
    with contextlib.ExitStack() as stack:
        counters = [stack.enter_context(Counter(f"locks/{function}", "caller.sym,lock.hex", where))
                    for function in LOCKING]
        ios = ios_of(device, run)
        for counter in counters:
            for key, hits in counter.rows():
                if (words := key.replace(",", " ").split())[2] in own:
                    taken += hits
                    locks.add(int(words[-1], 16))
    return taken / ios, locks


def measure(run):
    """Run a job twice; return the counts of an I/O."""
    made = Device(run["preset"], **run["keys"]) if run["preset"] else NullBlk(**run["keys"])
    with made as device:
        prepare(device, run)
        taken, locks = acquisitions(device, run)
        with Counter("locks/slow", "lock.hex") as slow, \
                Counter("sched/sched_waking", "common_pid") as woken:
            ios = ios_of(device, run)
            waits = [(int(key.split()[-1], 16), hits) for key, hits in slow.rows()]
            return {"scheduler": run["scheduler"], "cpus": os.cpu_count(), "ios": ios,
                    "locks": len(locks), "acquisitions": taken,
                    "contended_own": sum(hits for lock, hits in waits if lock in locks) / ios,
                    "contended": sum(hits for _, hits in waits) / ios,
                    "wakeups": woken.total() / ios}


if __name__ == "__main__":
    # The buffers of cost.fio are in huge pages.
    pathlib.Path("/proc/sys/vm/nr_hugepages").write_text("16")
    probe_locks()
    make_runs(measure)
