#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Inside the guest: make the runs of a plan of calibrate.py. Runs with the same preset and keys
share a device, so that a run finds the drive in the state in which the last one left it. Print a
line of JSON for each: fio's result and the device's counters."""
import itertools
import json
import pathlib
import sys

from common import counters, fio, prepare
from ssd import Device


def measure(device, run):
    """Run a job on a device; return fio's result, and the device's counters of it."""
    device.reset()
    result = fio(device, run)
    return {"fio": result, "ssdemu": counters(device)}


def main():
    """Make a device for each preset, and its runs one after another."""
    plan = json.loads(pathlib.Path(sys.argv[1]).read_text())
    for _, group in itertools.groupby(
            plan, lambda run: (run["preset"], sorted(run["keys"].items()))):
        runs = list(group)
        with Device(runs[0]["preset"], **runs[0]["keys"]) as device:
            prepare(device, runs[0])
            for run in runs:
                print(json.dumps(measure(device, run)), flush=True)


if __name__ == "__main__":
    main()
