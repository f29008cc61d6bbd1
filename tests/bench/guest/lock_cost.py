#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Inside a guest of a debug kernel: make the runs of a plan on null_blk. Print a line of
JSON for each: the kernel's statistics of the scheduler's lock.

In virtual time a microsecond of the statistics is 1000 instructions of the debug kernel.
They serve to compare schedulers; a stock kernel takes fewer. Contention is counted with
several CPUs only."""
import os
import pathlib
import re
import sys

from common import fio, make_runs, prepare
from ssd import NullBlk

STATISTICS = pathlib.Path("/proc/lock_stat")
SWITCH = pathlib.Path("/proc/sys/kernel/lock_stat")
# The name that lockdep gives a lock is the expression it was initialised by.
LOCKS = {"mq-deadline": r"&dd->lock", "kyber": r"&kcq->lock|&khd->lock",
         "bfq": r"&bfqd->lock"}
OURS = r"&io->lock"


def statistics(pattern):
    """Return sums over the locks whose name matches @pattern; times in us."""
    found = {"contended": 0, "acquisitions": 0, "longest": 0.0, "held": 0.0}
    for line in STATISTICS.read_text().splitlines():
        name, colon, rest = line.rpartition(":")
        if not colon or not re.fullmatch(rf"({pattern})(#\d+)?(-[RW])?", name.strip()):
            continue
        values = rest.split()
        if len(values) < 10:
            continue
        found["contended"] += int(values[1])
        found["acquisitions"] += int(values[7])
        found["longest"] = max(found["longest"], float(values[9]))
        found["held"] += float(values[10])
    return found


def measure(run):
    """Run a job; return acquisitions, instructions held and contentions of each I/O."""
    scheduler = run["scheduler"]
    with NullBlk(**run["keys"]) as device:
        prepare(device, run)
        STATISTICS.write_text("0")
        SWITCH.write_text("1")
        job = fio(device, run)["jobs"][0]
        SWITCH.write_text("0")
        found = statistics(LOCKS.get(scheduler, OURS))
    ios = job["read"]["total_ios"] + job["write"]["total_ios"]
    if not found["acquisitions"]:
        sys.exit(f"no lock of {scheduler} in {STATISTICS}")
    return {"scheduler": scheduler, "cpus": os.cpu_count(), "ios": ios,
            "acquisitions": found["acquisitions"] / ios,
            "held": found["held"] * 1000 / ios, "longest": found["longest"] * 1000,
            "contended": found["contended"] / ios}


if __name__ == "__main__":
    # The buffers of cost.fio are in huge pages.
    pathlib.Path("/proc/sys/vm/nr_hugepages").write_text("16")
    make_runs(measure)
