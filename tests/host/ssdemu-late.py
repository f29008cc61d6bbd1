#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The emulated SSD completes each request when it ends, though it handles other events together:
# on random drives, never more than some ticks of the clock later
# timeout: 900
"""The host starts a simulated guest, whose instructions take no time, to run this program again."""

import os
import pathlib
import subprocess
import sys
import time

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests" / folder) for folder in ("lib", "bench", "bench/guest")]

import load  # noqa: E402  (in a folder added above)
import probe_draw  # noqa: E402
import ssd  # noqa: E402
from checks import check  # noqa: E402

# Of all kinds, and some on which reads suspend the merges of blocks.
SEEDS = (*range(9201, 9221), 9240, 9243, 9253)
# Of a thread each, as fio calls it.
JOBS = ({"rw": "randrw", "bs": "4k", "ioengine": "libaio", "iodepth": "12"},
        {"rw": "randread", "bs": "64k", "ioengine": "psync"},
        {"rw": "randwrite", "bs": "16k", "ioengine": "psync", "fsync": "8"})
SECONDS = 1
# Of the guest's clock, in ns. A timer is set to a whole tick and read at another one.
TICK = 256


def apply_load(device):
    """Load a drive for some time."""
    size = int(pathlib.Path(f"/sys/block/{device.name}/size").read_text()) * 512
    for number, options in enumerate(JOBS):
        load.add(load.settings(dict(options), 0, size) | {"seed": number + 1})
    load.put("device", device.path)
    load.put("run", 1)
    time.sleep(SECONDS)
    load.put("run", 0)


def measured(seed):
    """Load the drive of a seed; return its mapping and counters."""
    drive = probe_draw.draw(seed)
    with ssd.Device(drive.preset, **drive.keys | {"fill": 100}) as device:
        # The scan for partitions does not count: a guest's first timer may be late.
        device.reset()
        apply_load(device)
        stats = device.stats()
    mapping = drive.keys["mapping"]
    check(stats["read_count"] and stats["late_max_ns"] <= 3 * TICK,
          f"{drive.name} ({mapping}, {drive.keys['device_sched']}): {stats['late_max_ns']} ns late "
          f"at most; {stats['timers']} interrupts for {stats['events']} events")
    return mapping, stats


def guest():
    """Check all drives, and that on either mapping events were handled together."""
    subprocess.run(["modprobe", "ioload"], check=True)
    events, timers = {}, {}
    for mapping, stats in map(measured, SEEDS):
        events[mapping] = events.get(mapping, 0) + stats["events"]
        timers[mapping] = timers.get(mapping, 0) + stats["timers"]
    check(timers["page"] < 0.8 * events["page"] and timers["block"] < 0.1 * events["block"],
          f"interrupts {timers} for events {events}")


def main():
    """Run this program in a guest, in place of this process."""
    if os.environ.get("LAB_SIMULATED") == "1":
        guest()
        return
    os.chdir(PROJECT)
    lab = PROJECT / "scripts/lab"
    os.execv(lab, [str(lab), "--quiet", "--simulate", "--memory=2G", "--", "python3",
                   "tests/host/ssdemu-late.py"])


if __name__ == "__main__":
    main()
