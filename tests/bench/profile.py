#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Print the kernel's instructions of an I/O by function, as tables in Markdown: for each
workload of the benchmark's costs, what schedulers execute more than without one.

    tests/bench/profile.py [--scheduler NAME]... [--workload NAME]... [--rows N]

Every instruction is counted, of two runs of different length, so that their difference has
neither the boot nor the start of the load. Two minutes for each scheduler and workload.
"""
import argparse
import array
import bisect
import collections
import json
import pathlib
import sys
import tempfile

import guests
import matrix
import model
import storage

WORKLOADS = {"depth 32": matrix.cost_workload("randrw", "4k", 32),
             "batches of 32": matrix.cost_workload("randrw", "4k", 128, 1, 32)}
RUNTIMES = ("140ms", "340ms")
SYMBOL = "symbol "
# What the guest prints after its runs: the kernel's functions.
SYMBOLS = ("echo 0 >/proc/sys/kernel/kptr_restrict; grep -v __pfx_ /proc/kallsyms | "
           f"grep -i ' t ' | sed 's/^/{SYMBOL}/'")
# Of what is executed at random beside the load, less than this an I/O is left out.
LEAST = 0.3


def count(run: model.Run, folder: pathlib.Path) -> tuple[collections.Counter, int]:
    """Make a run in a guest of its own; return the instructions that each function of the kernel
    has executed since the boot, and the I/Os."""
    plan, counted = folder / "plan.json", folder / "counted"
    guests.write_plan(plan, [run])
    functions, results = [], []

    def handle(line):
        if line.startswith("{"):
            results.append(json.loads(line))
        elif line.startswith(SYMBOL):
            address, _, name = line.removeprefix(SYMBOL).split()[:3]
            functions.append((int(address, 16), name))

    command = " ".join(map(str, guests.program_command(storage.PROGRAM, "plan.json")))
    guests.lab(["sh", "-c", f"{command}; {SYMBOLS}"], folder / "log", handle,
               (*storage.options_of(run), f"--count-instructions={counted}"),
               [("plan.json", plan), *((path.relative_to(model.PROJECT), path)
                                       for path in storage.run_files(run))])
    if not results:
        raise model.Failed(f"no result, log: {folder}/log")
    load = results[0]["fio"]["jobs"][0]
    return by_function(counted, sorted(functions)), sum(load[way]["total_ios"]
                                                        for way in ("read", "write"))


def by_function(counted: pathlib.Path, functions: list[tuple[int, str]]) -> collections.Counter:
    """Return the counts of scripts/labvm/count-instructions.c by function."""
    table = array.array("Q")
    table.frombytes(counted.read_bytes())
    half, begins = len(table) // 2, [begin for begin, _ in functions]
    found = collections.Counter()
    for address, times in zip(table[:half], table[half:], strict=True):
        at = bisect.bisect(begins, address) - 1
        if address and at >= 0:
            found[functions[at][1]] += times
    return found


def profile(scheduler: str, workload: str, folder: pathlib.Path) -> dict[str, float]:
    """Return {function: instructions an I/O}."""
    runs = [model.Run(model.NULL_BLK, "cost", scheduler, {}, matrix.TIMED,
                      WORKLOADS[workload] | {"RUNTIME": runtime}) for runtime in RUNTIMES]
    (short, few), (long, many) = (count(run, folder) for run in runs)
    print(f"profile: {workload}, {scheduler}: {many - few} I/Os", file=sys.stderr, flush=True)
    return {name: found for name in long
            if abs(found := (long[name] - short[name]) / (many - few)) > LEAST}


def table(workload: str, found: dict[str, dict[str, float]], rows: int) -> str:
    """Return a table of the functions in which a scheduler executes most more than "none"."""
    base, others = found["none"], [name for name in found if name != "none"]
    more = {name: {function: found[name].get(function, 0) - base.get(function, 0)
                   for function in found[name].keys() | base.keys()} for name in others}
    functions = {function for name in others for function in more[name]}
    first = sorted(functions, key=lambda function: -max(more[name].get(function, 0)
                                                        for name in others))[:rows]
    lines = [f"4k random mixed, {workload}: instructions of the kernel an I/O, over none", "",
             "| function | " + " | ".join(others) + " |", "|---" * (len(others) + 1) + "|"]
    for function in first:
        lines.append(f"| `{function}` | " + " | ".join(
            f"{more[name].get(function, 0):.0f}" for name in others) + " |")
    rest = {name: sum(value for function, value in more[name].items() if function not in first)
            for name in others}
    lines.append("| all others | " + " | ".join(f"{rest[name]:.0f}" for name in others) + " |")
    lines.append("| sum | " + " | ".join(f"{sum(more[name].values()):.0f}"
                                         for name in others) + " |")
    return "\n".join(lines)


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip(),
                                     description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--scheduler", action="append", metavar="NAME")
    parser.add_argument("--workload", action="append", choices=WORKLOADS, metavar="NAME")
    parser.add_argument("--rows", type=int, default=40, metavar="N")
    args = parser.parse_args()
    schedulers = args.scheduler or ["mq-deadline", *model.ours()]
    for workload in args.workload or WORKLOADS:
        with tempfile.TemporaryDirectory() as folder:
            found = {name: profile(name, workload, pathlib.Path(folder))
                     for name in ("none", *schedulers)}
        print(table(workload, found, args.rows) + "\n", flush=True)
    return 0


if __name__ == "__main__":
    guests.finish(main)
