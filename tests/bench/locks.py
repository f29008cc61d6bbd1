# SPDX-License-Identifier: GPL-2.0
"""What schedulers do with several CPUs: locks taken, found taken, and tasks woken, by
guest/lock_cost.py in guests of the stock kernel."""
import itertools
import json
import pathlib
import sys

import guests
import matrix
import model
import storage

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


def plan(cpus: int, name: str, quick: bool) -> list[tuple[str, model.Run]]:
    """Return the runs on device @name for a guest, (name of its row, run), with as many submitters
    as it has CPUs."""
    preset, keys, depth = DEVICES[name]
    runtime = {"RUNTIME": "2s" if quick else "10s"}
    return [(f"{scheduler}, {cpus} CPUs, {name}",
             model.Run(preset, "cost", scheduler, keys=keys, variables=runtime |
                       matrix.cost_workload("randrw", "4k", depth, cpus)))
            for scheduler in (*model.PEERS, *model.ours())]


def measure(folder: pathlib.Path, quick: bool) -> dict[str, dict]:
    """Return {name of a row: counts of an I/O}, measured in real time. Plans, logs and counts go to
    @folder; what it has of an interrupted run with the same sources is not counted again."""
    path, sources = folder / "locks.json", storage.sources_digest()
    known = json.loads(path.read_text()) if path.exists() else {}
    found = known["rows"] if known.get("run") == [sources, quick] else {}
    for number, (cpus, device) in enumerate(itertools.product(CPUS, DEVICES)):
        named = [(name, run) for name, run in plan(cpus, device, quick) if name not in found]
        if not named:
            continue
        names, listed = iter([name for name, _ in named]), folder / f"locks-{number}.plan.json"
        guests.write_plan(listed, [run for _, run in named])

        def handle(line, names=names):
            if line.startswith("{"):
                found[next(names)] = json.loads(line)
                path.write_text(json.dumps({"run": [sources, quick], "rows": found}))

        guests.lab(guests.program_command("lock_cost.py", listed), folder / f"locks-{number}.log",
                   handle, (f"--cpus={cpus}", f"--kernel={model.KERNEL}"))
        print(f"bench: locks, {cpus} CPUs, {device}: done", file=sys.stderr, flush=True)
    return {name: found[name] for cpus, device in itertools.product(CPUS, DEVICES)
            for name, _ in plan(cpus, device, quick)}


def rows(found: dict[str, dict]) -> list[list[str]]:
    """Return the rows of a table, with a name and COLUMNS."""
    return [[name, *(format(row[key], form) if key in row else ""
                     for key, form in COLUMNS.values())]
            for name, row in found.items()]
