#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""`make bench`: what each scheduler costs and gains, in virtual time.

Measures the cells of matrix.py, each run in a guest of scripts/lab, and leaves
in build/bench/ (build/bench-quick/, build/bench-fleet/)
    report.html     tables and plots in one file that needs no network
    *.png           the plots
    results.json    all figures, and what somebody else needs to get them
Results are kept by what they are the result of (harness.Store): after an
interruption, or when only some sources have changed, `make bench` goes on.
"""
import argparse
import functools
import json
import os
import pathlib
import sys

import fleet
import harness
import matrix
import page

# Runs in a guest: many, for its start takes a while; not all, for two go side by side.
MOST_RUNS = 40
DEBUG_KERNEL = "debug-7.2"
# What is measured: all but the quick run's, which has no hour to build a kernel in.
KINDS = [*matrix.KINDS, "lock", "papers"]


def by_guest(cells):
    """Lists of runs, one for each guest: the same, whatever is known of them, as a
    guest's figures are the same only after the same runs."""
    guest, device = [], None
    for cell in cells:
        if guest and (cell.device != device or len(guest) + len(cell.runs) > MOST_RUNS):
            yield guest
            guest = []
        guest, device = guest + cell.runs, cell.device
    if guest:
        yield guest


def measure(cells, folder, store):
    """Make the runs of the guests of which some are missing from the store."""
    guests = [runs for runs in by_guest(cells)
              if not all([store.recall(run) for run in runs])]
    total = sum(len(cell.runs) for cell in cells)
    missing = sum(map(len, guests))
    print(f"bench: {total} runs, {total - missing} of them known, {len(guests)} guests, "
          f"{harness.GUESTS} side by side", file=sys.stderr)
    progress = harness.Progress(missing)
    # The longest first, so that none is alone at the end.
    harness.run_all([functools.partial(harness.run_guest, runs, f"guest-{number}", folder,
                                       progress, store.keep)
                     for number, runs in enumerate(guests)])
    # A figure is made of what was measured anew each time.
    for run in (run for cell in cells for run in cell.runs):
        run.result["figures"] = harness.figures(run.result["fio"], run.result["ssdemu"])
        if run.job == "cost":
            run.result["figures"]["instructions"] = harness.instructions(run)


def lock_costs(folder, quick):
    """{scheduler: what it does under its lock}: by one CPU in virtual time; how often
    the lock is contended by two in parallel, as a count and nothing more."""
    schedulers = [name for name in (*harness.PEERS, *harness.ours()) if name != "none"]
    found = {}

    def hear(line):
        if line.startswith("{"):
            row = json.loads(line)
            kept = found.setdefault(row["scheduler"], row)
            if row is not kept:
                kept["contended"] = row["contended"]

    # An I/O takes such a kernel a million instructions, and two CPUs real time.
    for name, options, runtime in (("one", ["--virtual-time"], "600ms" if quick else "3s"),
                                   ("two", ["--cpus=2"], "5s" if quick else "20s")):
        harness.lab(["env", f"PYTHONPATH={harness.PROJECT}/tests/lib",
                     harness.BENCH / "lock-cost.py", runtime, *schedulers],
                    folder / f"lock-{name}.log", hear,
                    [*options, f"--kernel={DEBUG_KERNEL}"])
        print(f"bench: lock statistics, {name} CPU: done", file=sys.stderr, flush=True)
    return found


def measure_papers(folder):
    """Have each paper's script measure its tables again: tests/bench/X.py is the script
    of scheduler X, and leaves them as Markdown."""
    for name in harness.ours():
        script = harness.BENCH / f"{name}.py"
        if script.exists():
            print(f"bench: the tables of {name}'s paper", file=sys.stderr, flush=True)
            harness.run_script([script, "--into", folder / f"{name}.md"],
                               folder / f"{name}-paper.log")


def paper_tables(folder):
    """[{name, from, text}]: the papers' tables in Markdown that this run has measured."""
    return [{"name": file.stem, "from": "this run", "text": file.read_text()}
            for file in (folder / f"{name}.md" for name in harness.ours()) if file.exists()]


def save(folder, cells, papers, locks, args):
    """All of it as JSON."""
    runs = [run for cell in cells for run in cell.runs]
    real = {"what": fleet.LABEL, "kernel": "of each machine", "guest": "none"}
    harness.save(
        folder / "results.json", runs, **real if args.hosts else {}, quick=args.quick,
        how="QUICK=1" if args.quick else "full", only=args.only,
        where=fleet.LABEL if args.hosts else "emulated device, virtual time",
        cells=[{"kind": cell.kind, "device": cell.device, "workload": cell.workload,
                "labels": [run.label for run in cell.runs], "results": cell.results()}
               for cell in cells],
        papers=papers, locks=locks, schedulers={"peers": harness.PEERS, "ours": harness.ours()},
        cpu_seconds=round(harness.cpu_seconds(), 1))


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, usage="tests/bench/bench.py [options]",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="a part of the matrix, in about 10 minutes")
    parser.add_argument("--only", nargs="+", choices=KINDS, metavar="KIND",
                        help=f"of {', '.join(KINDS)} (default: all; --quick: not lock)")
    parser.add_argument("--device", nargs="+", metavar="PRESET",
                        help="on these devices only")
    parser.add_argument("--hosts", type=pathlib.Path, metavar="FILE",
                        help="measure these drives of other machines instead; destroys "
                        "what is on them (tests/bench/fleet.py)")
    parser.add_argument("--folder", type=pathlib.Path,
                        help="where to leave results, below build/")
    args = parser.parse_args()
    args.only = args.only or [kind for kind in KINDS if kind != "lock" or not args.quick]
    return args


def main():
    args = arguments()
    name = f"bench{'-fleet' * bool(args.hosts)}{'-quick' * args.quick}"
    folder = args.folder or harness.PROJECT / "build" / name
    folder.mkdir(parents=True, exist_ok=True)
    if args.hosts:
        cells = fleet.measure(args.hosts, args.quick)
    else:
        cells = [cell for kind in args.only if kind in matrix.KINDS
                 for cell in matrix.KINDS[kind](args.quick)
                 if not args.device or cell.device in args.device]
        measure(cells, folder, harness.Store(harness.PROJECT / "build/bench-store"))
    papers, locks = [], {}
    if "lock" in args.only and not args.hosts:
        locks = lock_costs(folder, args.quick)
    if "papers" in args.only and not args.hosts and not args.quick:
        measure_papers(folder)
        papers = paper_tables(folder)
    save(folder, cells, papers, locks, args)
    page.make(folder)
    print(f"report: {os.path.relpath(folder / 'report.html', harness.PROJECT)}")
    return 0


if __name__ == "__main__":
    harness.finish(main)
