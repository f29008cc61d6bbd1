# SPDX-License-Identifier: GPL-2.0
"""Shared by the scripts of the papers' tables: command line, measuring, and Markdown."""
import argparse
import functools
import pathlib
import textwrap

import guests
import model
import storage

# What the papers' schedulers lack, as far as a tunable turns it off (Documentation/papers.md):
# requests that bypass the scheduler or are not sorted, and shares of the device for reads; then
# what a policy adds, and values that a paper names.
CORE_MODE = {"bypass": 0, "write_share": 100, "depth": 0}
MODES = {"bp": {"lookahead": 2}, "pai": {"well_split": "paper"},
         "pass": {"laps": 0, "region_size_mb": 4096, "read_batch": 16, "write_batch": 16,
                  "region_depth": 0},
         # Batches claim units after the longest time that can be set.
         "piq": {"trials": 0, "claim_us": 60_000_000}}


def mode(scheduler: str, **settings: int | str) -> dict[str, int | str]:
    """Return the attributes of a queue with which one of our @scheduler's is its paper's;
    @settings are further tunables, or other values of these."""
    tunables = CORE_MODE | MODES[scheduler] | settings
    return {f"iosched/{name}": value for name, value in tunables.items()}


def group_arguments(name: str, text: str, groups: dict) -> argparse.Namespace:
    """Parse the command line of tests/bench/@name, which measures all of @groups or those
    that it names. The help text is @text and the docstrings of @groups, {name: function}."""
    width = max(map(len, groups)) + 1
    listed = "\n".join(textwrap.fill(" ".join(function.__doc__.split()), 88,
                                     initial_indent=f"    {group:{width}}",
                                     subsequent_indent=" " * (4 + width))
                       for group, function in groups.items())
    parser = argparse.ArgumentParser(
        usage=f"tests/bench/{name} [--again] [--into FILE.md] [GROUP...]",
        description=f"{text}{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="make tables from the last results")
    parser.add_argument("--into", type=pathlib.Path,
                        help="Markdown file; its text above the figures is kept")
    parser.add_argument("groups", nargs="*", metavar="GROUP", default=[])
    args = parser.parse_args()
    unknown = set(args.groups) - set(groups)
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    args.groups = args.groups or list(groups)
    return args


def put_figures(into: pathlib.Path | None, heading: str, text: str):
    """Replace the text below the @heading of a Markdown file, or print @text."""
    if not into:
        print(text)
        return
    kept = into.read_text().partition(heading)[0] if into.exists() else ""
    into.write_text(f"{kept}{heading}\n{text.rstrip()}\n")


def undilated(run: model.Run):
    """Give a run time_scale=1. File systems and programs have times of their own
    (writeback, commits, think times), which no time_scale makes longer."""
    if model.time_scale(run) > 1:
        run.keys = {**run.keys, "time_scale": 1}


def measure_groups(groups: dict, folder: pathlib.Path, program: str, **more):
    """Make the runs of @groups, {name: runs}, that are not in the store yet, with a @program
    of the guest. Save each group's runs with @more in a file of @folder; after an interruption
    those that are finished."""
    store = storage.Store(model.PROJECT / "build/bench-store", program)
    # Groups may share runs.
    runs = list({store.path(run): run for each in groups.values() for run in each
                 if not store.recall(run)}.values())
    progress = guests.Progress(len(runs))
    part = max(1, (len(runs) + guests.GUESTS - 1) // guests.GUESTS)
    try:
        guests.run_all([functools.partial(guests.run_guest, runs[at:at + part], f"runs-{at}",
                                          folder, progress, store, program=program)
                        for at in range(0, len(runs), part)])
    finally:
        for name, each in groups.items():
            for run in each:
                store.recall(run)
            storage.save(folder / f"{name}.json", each, program, **more)


def tables_of_paper(name: str, text: str, groups: dict, heading: str,
                    program: str | None = None, **more) -> int:
    """Main function of tests/bench/paper_@name.py. Measures @groups, {name: function that
    returns tables.Tables}, with a @program of the guest, and puts the tables below the
    @heading of a document. @more is saved with the results. Returns the exit status."""
    args = group_arguments(f"paper_{name}.py", text, groups)
    folder = model.PROJECT / "build" / name
    folder.mkdir(parents=True, exist_ok=True)
    chosen = {group: groups[group]() for group in args.groups}
    # Tables of a group may share runs.
    runs = {group: list({id(run): run for table in tables for run in table.runs()}.values())
            for group, tables in chosen.items()}
    program = program or f"{name}_runs.py"
    # The keys decide in which file of the store a result is, so they come first.
    if program != storage.PROGRAM:
        for run in (run for each in runs.values() for run in each):
            undilated(run)
    if not args.again:
        measure_groups(runs, folder, program, **more)
    lines = []
    for group, tables in chosen.items():
        saved = storage.read_back(folder / f"{group}.json", runs[group])
        made = [line for table in tables for line in table.lines()]
        if not made:
            continue
        what = " ".join(groups[group].__doc__.split())
        lines += [f"### {what[0].upper()}{what[1:]}", "",
                  f"`tests/bench/paper_{name}.py {group}`, commit {saved['commit']}, "
                  f"kernel {saved['kernel']}.", "", *made]
    put_figures(args.into, heading, "\n".join(lines))
    return 0
