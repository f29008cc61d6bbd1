#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Inside a guest of a debug kernel: what schedulers do under their lock, from the
kernel's lock statistics. Prints a line of JSON for each scheduler named.

In virtual time a microsecond of the statistics is 1000 instructions, those of the
debug kernel: of use to compare, not as what a stock kernel takes. Contention is
counted on several CPUs only."""
import json
import os
import pathlib
import re
import subprocess
import sys

from harness import JOBS
from matrix import TIMED, cost_workload
from ssd import NullBlk

STATISTICS = pathlib.Path("/proc/lock_stat")
SWITCH = pathlib.Path("/proc/sys/kernel/lock_stat")
# The name that lockdep gives a lock is the expression it was initialised by.
LOCKS = {"mq-deadline": r"&dd->lock", "kyber": r"&kcq->lock|&khd->lock",
         "bfq": r"&bfqd->lock"}
OURS = r"&io->lock"


def statistics(pattern):
    """Sums over the locks of that name."""
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


def measure(scheduler, runtime):
    """What a mixed load costs under the lock, for each I/O."""
    variables = cost_workload("randrw", "4k", 32, os.cpu_count()) | {"RUNTIME": runtime}
    with NullBlk(**TIMED) as device:
        device.scheduler(scheduler)
        STATISTICS.write_text("0")
        SWITCH.write_text("1")
        done = subprocess.run(["fio", "--output-format=json", JOBS / "cost.fio"],
                              env={**os.environ, **variables, "DEVICE": device.path},
                              capture_output=True, text=True, check=True)
        SWITCH.write_text("0")
        found = statistics(LOCKS.get(scheduler, OURS))
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    ios = job["read"]["total_ios"] + job["write"]["total_ios"]
    if not found["acquisitions"]:
        sys.exit(f"no lock of {scheduler} in {STATISTICS}")
    return {"scheduler": scheduler, "cpus": os.cpu_count(), "ios": ios,
            "acquisitions": found["acquisitions"] / ios,
            "held": found["held"] * 1000 / ios, "longest": found["longest"] * 1000,
            "contended": found["contended"] / ios}


def main():
    runtime, *schedulers = sys.argv[1:]
    # Where the memory of cost.fio's I/Os lies.
    pathlib.Path("/proc/sys/vm/nr_hugepages").write_text("16")
    for scheduler in schedulers:
        print(json.dumps(measure(scheduler, runtime)), flush=True)


if __name__ == "__main__":
    main()
