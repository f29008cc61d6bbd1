# SPDX-License-Identifier: GPL-2.0
"""What schedulers do with several CPUs: locks taken, found taken, and tasks woken, by
guest/lock_cost.py in guests of the stock kernel."""
import json
import pathlib
import sys

import guests
import matrix
import model

CPUS = (2, 4)
# {name: (preset, keys, depth)}: tags to spare, more requests than tags, and a driver without
# queue_rqs(), whose requests may bypass a scheduler.
DEVICES = {"null_blk, depth 32": (model.NULL_BLK, matrix.TIMED, 32),
           "null_blk, all 16 tags in use": (model.NULL_BLK, matrix.BUSY, 64),
           "sata, depth 4": ("sata", {}, 4)}
# What tables show, their columns and how these are shown.
MEANING = ("4k random mixed, as many submitters of this depth as CPUs, in real time: how often an "
           "I/O takes a lock of the scheduler, finds one of these taken, or any spin lock of the "
           "kernel, and wakes a task.")
COLUMNS = {"locks taken": ("acquisitions", ".2f"), "found taken": ("contended_own", ".4f"),
           "any lock found taken": ("contended", ".4f"), "wake-ups": ("wakeups", ".2f")}


def plan(cpus: int, quick: bool) -> list[tuple[str, model.Run]]:
    """Return the runs for a guest, (name of its row, run), with as many submitters as it has
    CPUs."""
    runtime = {"RUNTIME": "2s" if quick else "10s"}
    return [(f"{scheduler}, {cpus} CPUs, {name}",
             model.Run(preset, "cost", scheduler, keys=keys, variables=runtime |
                       matrix.cost_workload("randrw", "4k", depth, cpus)))
            for name, (preset, keys, depth) in DEVICES.items()
            for scheduler in (*model.PEERS, *model.ours())]


def measure(folder: pathlib.Path, quick: bool) -> dict[str, dict]:
    """Return {name of a row: counts of an I/O}, measured in real time. Plans and logs go to
    @folder."""
    found = {}
    for cpus in CPUS:
        named = plan(cpus, quick)
        names = iter([name for name, _ in named])
        path = folder / f"locks-{cpus}.plan.json"
        guests.write_plan(path, [run for _, run in named])

        def handle(line, names=names):
            if line.startswith("{"):
                found[next(names)] = json.loads(line)

        guests.lab(guests.program_command("lock_cost.py", path), folder / f"locks-{cpus}.log",
                   handle, (f"--cpus={cpus}", f"--kernel={model.KERNEL}"))
        print(f"bench: locks, {cpus} CPUs: done", file=sys.stderr, flush=True)
    return found


def rows(found: dict[str, dict]) -> list[list[str]]:
    """Return the rows of a table, with a name and COLUMNS."""
    return [[name, *(format(row[key], form) if key in row else ""
                     for key, form in COLUMNS.values())]
            for name, row in found.items()]
