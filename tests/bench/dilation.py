#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Find the time_scale that a preset needs: the emulated CPU is less than half busy while the
drive works at its bound.

    tests/bench/dilation.py [PRESET...]         (default: drives of today, piq, aos)

Each preset runs first with a large time_scale, where the drive is at its bound, then with the
power of two that follows from it: the CPU is idle for at least half of the time under each
load. IOPS are in the time of the device: as long as the CPU is not the limit they are equal, but
for what a write buffer takes in at the start. Results are left in build/dilation/dilation.json.
"""
import argparse
import functools
import math

import guests
import matrix
import model
import storage
import tables

FOLDER = model.PROJECT / "build/dilation"
# With all tags in use and as many requests waiting, the drive is at its bound.
LOADS = {"4k random read": "randread", "4k random mixed": "randrw"}
# Least ms of a run, of the device and of the guest.
RUNTIME, GUEST_RUNTIME = 50, 400
FIRST = 64
# Percent of the time in which the CPU may be busy.
BUSY = 50
MOST = 1000


def plan(preset: str, scale: int) -> list[model.Run]:
    """Return the runs of a preset with a time_scale, one for each load."""
    depth = 2 * matrix.queue_depth(preset)
    runtime = max(RUNTIME, GUEST_RUNTIME // scale)
    keys = matrix.ADAPTED.get(preset, {}) | {"time_scale": scale}
    return [model.Run(preset, "cost", "none", keys=keys, label=load,
                      variables=matrix.cost_workload(rw, "4k", depth) |
                      {"RUNTIME": f"{runtime}ms"}) for load, rw in LOADS.items()]


def busy(run: model.Run) -> float:
    """Return the percent of the time in which the CPU was not idle."""
    return 100 * run.result["worked_ns"] / run.result["elapsed_ns"]


def iops(run: model.Run) -> float:
    """Return I/Os in a second of the device."""
    return run.result["ios"] * 1e9 * model.time_scale(run) / run.result["elapsed_ns"]


def search(preset: str, progress: guests.Progress, runs: list[model.Run]):
    """Add runs of a preset to @runs; the last are those with the time_scale that suffices. At
    the drive's bound the CPU is busy in proportion to 1 / time_scale."""
    scale = FIRST
    while True:
        made = plan(preset, scale)
        guests.run_guest(made, f"{preset}-{scale}", FOLDER, progress)
        runs += made
        needed = scale * max(map(busy, made)) / BUSY
        if needed < scale and (len(runs) > len(made) or needed >= scale / 2):
            return
        if 2 * scale > MOST:
            raise model.Failed(f"{preset}: a time_scale of {scale} does not suffice")
        # The smallest power of two that is enough; more if the CPU was the limit so far.
        scale = max(1, 2 ** math.floor(math.log2(needed) + 1), 2 * scale * (needed >= scale))


def table(runs: list[model.Run]) -> list[str]:
    """Return the lines of the table, a row for each run."""
    head = ["preset, load", "time_scale", "CPU busy %", "IOPS", "instructions an I/O"]
    return tables.markdown(head, [
        [f"{run.preset}, {run.label}", model.time_scale(run), f"{busy(run):.0f}",
         f"{iops(run):,.0f}", f"{model.instructions(run):,.0f}"] for run in runs])


def main() -> int:
    """Print the table; return the exit status."""
    fast = [preset for preset in matrix.presets() if model.paper_of(preset) in ("", "piq")]
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", metavar="PRESET", default=fast)
    presets = parser.parse_args().presets
    FOLDER.mkdir(parents=True, exist_ok=True)
    found = {preset: [] for preset in presets}
    progress = guests.Progress(2 * len(presets) * len(LOADS))
    guests.run_all([functools.partial(search, preset, progress, runs)
                    for preset, runs in found.items()])
    runs = [run for each in found.values() for run in each]
    storage.save(FOLDER / "dilation.json", runs, needed={
        preset: model.time_scale(each[-1]) for preset, each in found.items()})
    print(*table(runs), sep="\n")
    return 0


if __name__ == "__main__":
    guests.finish(main)
