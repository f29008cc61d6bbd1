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

# Random drives of all kinds.
SEEDS = range(9201, 9217)
# Block mapping, on which reads suspend the merges.
SUSPENDED = (9240, 9243, 9253)
# One-shot programs.
PRESETS = ("sata", "nvme", "qlc")
# Planes that share a command, for two reads of which only the first takes random_ns.
RIDERS = {"unit": "plane", "channels": 1, "planes": 4, "allocation": "pcwd", "channel_mbps": 40,
          "random_ns": 200_000, "firmware_ns": 0, "max_request_kb": 4, "device_sched": "fifo",
          "capacity_mb": 256, "fill": 0}
# Of a thread each, as fio calls it.
JOBS = ({"rw": "randrw", "bs": "4k", "ioengine": "libaio", "iodepth": "10"},
        {"rw": "read", "bs": "4k", "ioengine": "libaio", "iodepth": "4"},
        {"rw": "randread", "bs": "64k", "ioengine": "psync"},
        {"rw": "randwrite", "bs": "16k", "ioengine": "psync", "fsync": "8"})
RIDERS_JOBS = ({"rw": "randread", "bs": "8k", "ioengine": "psync"},
               {"rw": "randwrite", "bs": "4k", "ioengine": "libaio", "iodepth": "3"})
SECONDS = 1
# Of the guest's clock, in ns. A timer is set to a whole tick and read at another one.
TICK = 256


def apply_load(device, jobs):
    """Load a drive with @jobs for some time."""
    size = int(pathlib.Path(f"/sys/block/{device.name}/size").read_text()) * 512
    for number, options in enumerate(jobs):
        load.add(load.settings(dict(options), 0, size) | {"seed": number + 1})
    load.put("device", device.path)
    load.put("run", 1)
    time.sleep(SECONDS)
    load.put("run", 0)


def measured(name, preset, keys, jobs=JOBS):
    """Load a drive; return its counters."""
    with ssd.Device(preset, **keys) as device:
        # The scan for partitions does not count: a guest's first timer may be late.
        device.reset()
        apply_load(device, jobs)
        stats = device.stats()
    served = stats["read_count"] and stats["write_count"] and not stats["inside"]
    check(served and stats["late_max_ns"] <= 3 * TICK,
          f"{name}: {stats['late_max_ns']} ns late at most; {stats['timers']} interrupts for "
          f"{stats['events']} events")
    return stats


def drawn(seed):
    """Load the drive of a seed; return its mapping and counters."""
    drive = probe_draw.draw(seed)
    keys = drive.keys | {"fill": 100}
    mapping = keys["mapping"]
    return mapping, measured(f"{drive.name}, {mapping}, {keys['device_sched']}", drive.preset, keys)


def guest():
    """Check all drives, and that events were handled together."""
    subprocess.run(["modprobe", "ioload"], check=True)
    events, timers = {}, {}
    for mapping, stats in map(drawn, SEEDS):
        events[mapping] = events.get(mapping, 0) + stats["events"]
        timers[mapping] = timers.get(mapping, 0) + stats["timers"]
    check(timers["page"] < 0.8 * events["page"] and timers["block"] < 0.2 * events["block"],
          f"interrupts {timers} for events {events}")
    for mapping, stats in map(drawn, SUSPENDED):
        check(mapping == "block" and stats["merges"] and stats["suspends"],
              f"{stats['merges']} merges, {stats['suspends']} suspensions")
    for preset in PRESETS:
        stats = measured(preset, preset, {"capacity_mb": 1024, "time_scale": 1})
        check(stats["shared_senses"], f"{stats['shared_senses']} pages sensed with another")
    stats = measured("shared commands", "small", RIDERS, RIDERS_JOBS)
    check(stats["multiplane"] > 100, f"{stats['multiplane']} operations shared a command")


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
