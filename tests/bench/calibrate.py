#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Compare the presets of drives of today with published figures of the drives that they model.

    tests/bench/calibrate.py [PRESET...]        # all presets in published.toml
    tests/bench/calibrate.py --again [PRESET...] # evaluate the results in build/calibrate/
    tests/bench/calibrate.py --again --publish  # and write Documentation/results/calibration.md

Each preset is one drive in a guest in virtual time. It is written once in order, measured, written
at random until it has collected as much as a full drive does, and measured again, as data sheets
prescribe. Prints a table; the results are left in build/calibrate/calibrate.json. Exit status 1:
a figure is off by more than 20 %, and published.toml does not say what the drive lacks for it.
"""
import argparse
import dataclasses
import functools
import json
import tomllib

import guests
import model
import storage
from tables import align, markdown, number

FOLDER = model.PROJECT / "build/calibrate"
PROGRAM = "calibrate_runs.py"
PUBLISHED = model.PRESETS / "published.toml"
# A figure may be off by this much, a ratio.
ALLOWED = 0.2
HEAD = ["figure", "unit", "published", "", "measured", "deviation", ""]
PAGE = model.PROJECT / "Documentation/results/calibration.md"
# What is asked of every drive, whether it was found or not. On a slow drive the whole time of
# "at random" is the measurement.
ASKED = (("read 1", "us"), ("read 32", "IOPS"), ("random write", "IOPS"),
         ("sequential read", "MB/s"), ("sequential write", "MB/s"),
         ("reads beside writes", "p99 us"), ("reads beside writes", "p99.9 us"))


@dataclasses.dataclass(frozen=True)
class Step:
    """A job on the drive, in the state in which the steps before have left it.

    way         whose latencies are meant: read or write
    job         calibrate, or precondition: leaves the drive in another state
    variables   of the job
    says        what is done
    """
    way: str
    job: str
    variables: dict[str, str]
    says: str = ""


def measured(rw: str, bs: str, depth: int, ms: int, says: str, ramp: int = 200) -> Step:
    """Return a step that measures for @ms ms after @ramp ms, in the time of the device."""
    return Step("write" if "write" in rw else "read", "calibrate",
                {"RW": rw, "BS": bs, "DEPTH": str(depth), "READS": "70", "RAMP": f"{ramp}ms",
                 "RUNTIME": f"{ms}ms"}, says)


def written(rw: str, bs: str, says: str) -> Step:
    """Return a step that writes as much as the drive has."""
    return Step("write", "precondition", {"RW": rw, "BS": bs, "AMOUNT": "100%"}, says)


# In this order: a new drive; written once in order; written at random.
STEPS = {
    "cached write": measured("write", "128k", 32, 200, "128k write, new drive", ramp=0),
    "in order": written("write", "128k", "128k write, once"),
    "sequential write": measured("write", "128k", 32, 5000, "128k write, depth 32, sustained",
                                 ramp=1000),
    "sequential read": measured("read", "128k", 32, 2000, "128k read, depth 32"),
    "read 1": measured("randread", "4k", 1, 2000, "4k read, depth 1"),
    "read 32": measured("randread", "4k", 32, 2000, "4k read, depth 32"),
    "read 256": measured("randread", "4k", 256, 1000, "4k read, depth 256"),
    # Before the drive is written at random: then it takes longer for each write on average than
    # data sheets say of one at depth 1.
    "write 1": measured("randwrite", "4k", 1, 1000, "4k write, depth 1, written in order"),
    "at random": written("randwrite", "4k", "4k write, once at random"),
    # The ramp uses up what the drive has collected in advance while it was idle.
    "random write": measured("randwrite", "4k", 32, 10000, "4k write, depth 32, sustained",
                             ramp=15000),
    "reads beside writes": dataclasses.replace(
        measured("randrw", "4k", 32, 5000, "4k read beside 30 % writes, depth 32"), way="read"),
    "fragmented write": measured("write", "128k", 32, 10000, "128k write, written at random",
                                 ramp=15000),
}


def published(presets: list[str]) -> dict[str, dict]:
    """Return what published.toml says of @presets, of all if there are none."""
    found = tomllib.loads(PUBLISHED.read_text())
    unknown = set(presets) - set(found)
    if unknown:
        raise model.Failed(f"no published figures of {', '.join(sorted(unknown))}")
    return {preset: found[preset] for preset in presets or found}


def figures_of(drive: dict) -> list[dict]:
    """Return the figures of a drive in the order of STEPS: those published, and those asked for
    but not found."""
    steps = {figure["step"] for figure in drive["figures"]}
    if "at random" in steps:
        steps.add("random write")
    return sorted([*drive["figures"], *({"step": step, "what": what} for step, what in ASKED
                                        if step not in steps)],
                  key=lambda figure: list(STEPS).index(figure["step"]))


def runs_of(preset: str, drive: dict) -> dict[str, model.Run]:
    """Return the runs on a preset, {step: run}, without the steps that nothing is asked of."""
    wanted = {figure["step"] for figure in figures_of(drive)}
    return {name: model.Run(preset, step.job, "none", keys={"fill": 0}, label=name,
                            variables={**step.variables, "SPAN": span(name, drive),
                                       **longer(name, drive)})
            for name, step in STEPS.items() if step.job == "precondition" or name in wanted}


def longer(step: str, drive: dict) -> dict[str, str]:
    """Return the RUNTIME of a step that this drive needs for its percentiles, if it has one."""
    return {"RUNTIME": drive["runtime"][step]} if step in drive.get("runtime", {}) else {}


def span(step: str, drive: dict) -> str:
    """Return the part of the drive that a step uses: all of it but for random I/O on a drive
    whose source used less."""
    return "100%" if STEPS[step].variables["BS"] != "4k" else drive.get("span", "100%")


def measure(presets: dict[str, dict], runs: dict[str, dict]):
    """Make the @runs of @presets, each preset in a guest of its own, and save them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    progress = guests.Progress(sum(map(len, runs.values())))
    guests.run_all([functools.partial(guests.run_guest, list(runs[preset].values()), preset,
                                      FOLDER, progress, program=PROGRAM) for preset in presets])
    for preset in presets:
        storage.save(FOLDER / f"{preset}.json", list(runs[preset].values()), PROGRAM)


def value_of(run: model.Run, step: str, what: str) -> float:
    """Return a figure of a run in the unit in which it is published."""
    figures, way = run.result["figures"], STEPS[step].way
    if what == "IOPS":
        return figures["iops"]
    if what == "MB/s":
        return figures["mbps"]
    percentile = what.removesuffix("us").strip() or "mean"
    return 1e3 * figures[f"{way}_{percentile}"]


def rows_of(preset: str, drive: dict, runs: dict[str, model.Run]) -> list[dict]:
    """Return the figures of a preset as published and as measured."""
    rows = []
    for figure in figures_of(drive):
        step, what = figure["step"], figure["what"]
        row = {"preset": preset, "figure": STEPS[step].says, "unit": what,
               "measured": value_of(runs[step], step, what)}
        if "value" in figure:
            off = row["measured"] / figure["value"] - 1
            row.update(published=figure["value"], how=figure["how"],
                       source=drive["sources"][figure["source"]], deviation=off,
                       within=abs(off) <= ALLOWED, lacks=figure.get("lacks"))
        rows.append(row)
    return rows


def verdict(row: dict) -> str:
    """Return whether a figure is as published, as text."""
    if "published" not in row:
        return ""
    return "within 20 %" if row["within"] else "OUT, not modelled" if row["lacks"] else "OUT"


def cells(row: dict) -> list[str]:
    """Return a figure as cells of a table."""
    known = "published" in row
    return [row["figure"], row["unit"], f"{row['published']:g}" if known else "",
            row["how"] if known else "not found", number(row["measured"]),
            f"{100 * row['deviation']:+.1f} %" if known else "", verdict(row)]


def notes(rows: list[dict]) -> list[str]:
    """Return what the drive lacks for the figures that it does not meet."""
    return [f"{row['figure']}, {row['unit']}: the emulated drive lacks {row['lacks']}"
            for row in rows if row.get("lacks") and not row["within"]]


def print_table(drive: str, rows: list[dict]):
    """Print the figures of a drive."""
    print(f"\n{rows[0]['preset']}: {drive}")
    print("\n".join(align([HEAD, *map(cells, rows)])))
    print(*notes(rows), sep="\n")


def page(presets: dict[str, dict], rows: dict[str, list[dict]], saved: dict[str, dict]) -> str:
    """Return the text of Documentation/results/calibration.md; @saved: the files of results."""
    lines = ["# Results: calibration", "",
             "The presets of drives of today, measured as data sheets prescribe, beside the "
             "figures that are published of the named drives (`tests/bench/calibrate.py`; the "
             "meaning of the fourth column: `tests/ssdemu/presets/published.toml`).", ""]
    for preset, drive in presets.items():
        made = saved[preset]
        lines += [f"## {preset}: {drive['drive']}", "",
                  f"Commit {made['commit']}, Linux {made['kernel']}.", "",
                  *markdown(HEAD, map(cells, rows[preset])), "",
                  *(f"- {line}." for line in notes(rows[preset])),
                  *(f"- Source {name}: {text}" for name, text in drive["sources"].items()), ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Measure or evaluate, and print the tables; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="evaluate the last results")
    parser.add_argument("--publish", action="store_true", help="write the tables to "
                        "Documentation/results/calibration.md, of all presets")
    parser.add_argument("presets", nargs="*", metavar="PRESET")
    args = parser.parse_args()
    if args.publish and args.presets:
        parser.error("--publish is of all presets")
    drives = published(args.presets)
    runs = {preset: runs_of(preset, drive) for preset, drive in drives.items()}
    if not args.again:
        measure(drives, runs)
    saved = {preset: storage.read_back(FOLDER / f"{preset}.json", list(runs[preset].values()))
             for preset in drives}
    rows = {preset: rows_of(preset, drive, runs[preset]) for preset, drive in drives.items()}
    for preset, drive in drives.items():
        print_table(drive["drive"], rows[preset])
    (FOLDER / "calibrate.json").write_text(json.dumps(rows, indent="\t"))
    if args.publish:
        PAGE.write_text(page(drives, rows, saved), encoding="utf-8")
        print(f"\n{PAGE.relative_to(model.PROJECT)}")
    return int(not all(row.get("within", True) or row["lacks"]
                       for part in rows.values() for row in part))


if __name__ == "__main__":
    guests.finish(main)
