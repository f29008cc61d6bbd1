#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""`make bench`: what each scheduler costs and gains, in virtual time.

Measures the cells of matrix.py, each run in a guest of scripts/lab, and writes to
build/bench/ (build/bench-quick/, build/bench-fleet/)
    report.html     tables and plots in one file that needs no network
    *.png           the plots
    results.json    all figures, and what is needed to repeat them
Results are kept in build/bench-store/ (storage.Store): after an interruption, or a change of
some jobs or presets, only the missing ones are measured. --known reports what there is.
"""
import argparse
import functools
import os
import pathlib
import sys

import fleet
import guests
import locks
import matrix
import model
import page
import results
import storage

# Runs in a guest: many, because a guest takes long to boot; not all, because guests run in
# parallel.
MOST_RUNS = 48
# The quick run does without "lock" and "papers".
KINDS = [*matrix.KINDS, "lock", "papers"]


def by_guest(cells):
    """Yield the list of runs of each guest. It does not depend on the results that are known:
    a figure repeats to the last digit only after the same runs in its guest. The peers and each
    of this project's schedulers have guests of their own, because a changed scheduler makes the
    results of its own runs void; so have programs that need other packages."""
    together = {}
    for cell in cells:
        for run in cell.runs:
            own = run.scheduler if run.scheduler in model.ours() else ""
            together.setdefault((cell.device, own, storage.options_of(run)), []).append(run)
    for runs in together.values():
        for at in range(0, len(runs), MOST_RUNS):
            yield runs[at:at + MOST_RUNS]


def known(cells, store):
    """Return those of @cells of which the store has each result."""
    found = [cell for cell in cells if all([store.recall(run) for run in cell.runs])]
    if not found:
        raise model.Failed("no cell has been measured with these sources and packages")
    return found


def measure(cells, folder, store):
    """Set the results of the runs of @cells from the store, or measure them. If a result of a
    guest is missing, all its runs are made."""
    plans = [runs for runs in by_guest(cells)
             if not all([store.recall(run) for run in runs])]
    total = sum(len(cell.runs) for cell in cells)
    missing = sum(map(len, plans))
    hours = sum(store.estimate(runs, matrix.seconds) for runs in plans) / guests.GUESTS / 3600
    print(f"bench: {total} runs, {total - missing} of them known, {len(plans)} guests, "
          f"{guests.GUESTS} in parallel, about {hours:.1f} hours", file=sys.stderr)
    progress = guests.Progress(missing)
    guests.run_all([functools.partial(guests.run_guest, runs, f"guest-{number}", folder,
                                      progress, store)
                    for number, runs in enumerate(plans)])
    # Derive figures anew: their definition may have changed since the result was stored.
    for run in (run for cell in cells for run in cell.runs):
        run.result["figures"] = model.figures_of(run)


def measure_papers(folder):
    """Run tests/bench/paper_X.py for each scheduler X of this project. It writes the tables of
    X's paper as Markdown to a file of @folder."""
    for name in model.ours():
        script = model.BENCH / f"paper_{name}.py"
        if script.exists():
            print(f"bench: the tables of {name}'s paper", file=sys.stderr, flush=True)
            guests.run_script([script, "--into", folder / f"{name}.md"],
                              folder / f"{name}-paper.log")


def paper_tables(folder):
    """Return the papers' tables that this run has measured, [{name, from, text}]."""
    return [{"name": file.stem, "from": "this run", "text": file.read_text()}
            for file in (folder / f"{name}.md" for name in model.ours()) if file.exists()]


def save(folder, cells, papers, locked, args):
    """Write results.json."""
    runs = [run for cell in cells for run in cell.runs]
    schedulers = {"peers": model.PEERS, "ours": model.ours()}
    measured = [cell.content() for cell in cells]
    matrix_of = results.standings(results.Results({"schedulers": schedulers, "cells": measured}))
    real = {"what": fleet.LABEL, "kernel": "of each machine", "guest": "none"}
    # Counts of locks have no runs by which the sources were known.
    judged = {"sources": storage.sources_digest()} if locked else {}
    storage.save(
        folder / "results.json", runs, **real if args.hosts else judged, quick=args.quick,
        how="QUICK=1" if args.quick else "full", only=args.only,
        where=fleet.LABEL if args.hosts else "emulated device, virtual time",
        matrix=matrix_of, cells=measured, papers=papers, locks=locked, schedulers=schedulers,
        cpu_seconds=round(guests.cpu_seconds(), 1))


def part(text):
    """Return the numbers of a part "N/M"."""
    number, _, parts = text.partition("/")
    number, parts = int(number), int(parts)
    if not 1 <= number <= parts:
        raise ValueError(text)
    return number, parts


def arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, usage="tests/bench/bench.py [options]",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="measure a part of the matrix, in about 10 minutes")
    parser.add_argument("--only", nargs="+", choices=KINDS, metavar="KIND",
                        help=f"kinds to measure: {', '.join(KINDS)} (default: all; with "
                        "--quick, --device, --part or --known without lock and papers)")
    parser.add_argument("--device", nargs="+", metavar="PRESET",
                        help="measure on these devices only")
    parser.add_argument("--part", type=part, default=(1, 1), metavar="N/M",
                        help="measure the Nth of M parts of the cells")
    parser.add_argument("--known", action="store_true",
                        help="measure nothing: report the cells that are known, after an "
                        "interruption")
    parser.add_argument("--hosts", type=pathlib.Path, metavar="FILE",
                        help="measure the drives of other machines in this file instead; all "
                        "their data is lost (tests/bench/fleet.py)")
    parser.add_argument("--folder", type=pathlib.Path,
                        help="folder for the results, below build/")
    args = parser.parse_args()
    unknown = {*(args.device or ())} - {*matrix.presets(), model.NULL_BLK}
    if unknown:
        parser.error(f"no such device: {', '.join(sorted(unknown))}")
    if args.known and (args.hosts or {*(args.only or ())} - {*matrix.KINDS}):
        parser.error(f"--known: only of {', '.join(matrix.KINDS)}")
    if not args.only:
        # Those that are not cells cannot be measured in part.
        whole = not (args.quick or args.device or args.known) and args.part == (1, 1)
        args.only = KINDS if whole else [*matrix.KINDS]
    return args


def main():
    args = arguments()
    name = f"bench{'-fleet' * bool(args.hosts)}{'-quick' * args.quick}"
    folder = (args.folder or model.PROJECT / "build" / name).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    ended = []
    if args.hosts:
        cells, ended = fleet.measure(args.hosts, args.quick)
    else:
        number, parts = args.part
        cells = [cell for kind in args.only if kind in matrix.KINDS
                 for cell in matrix.KINDS[kind](args.quick)
                 if not args.device or cell.device in args.device][number - 1::parts]
        store = storage.Store(model.PROJECT / "build/bench-store")
        if args.known:
            cells = known(cells, store)
        measure(cells, folder, store)
    papers, locked = [], {}
    if "lock" in args.only and not args.hosts:
        locked = locks.measure(folder, args.quick)
    if "papers" in args.only and not args.hosts and not args.quick:
        measure_papers(folder)
        papers = paper_tables(folder)
    save(folder, cells, papers, locked, args)
    page.make(folder)
    print(f"report: {os.path.relpath(folder / 'report.html', model.PROJECT)}")
    if ended:
        raise model.Failed(f"not all was measured: {'; '.join(ended)}")
    return 0


if __name__ == "__main__":
    guests.finish(main)
