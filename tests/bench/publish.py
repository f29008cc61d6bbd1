#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Publish results: a summary and all figures in Documentation/results/.

    tests/bench/publish.py FOLDER NAME          publish FOLDER/results.json as NAME
    tests/bench/publish.py FOLDER NAME --add    add another part of the same matrix to NAME, or
                                                replace its cells; same sources required,
                                                presets and jobs, too, unless all of their
                                                cells are replaced. Packages may differ: all
                                                runs of a cell are of one machine

Writes into Documentation/results/ NAME.md (the summary) and NAME.json.xz (all figures without
fio's raw output, to which --add adds), and into build/published/ NAME.md (a table for each cell).
Documentation/pictures/draw then draws the picture of README.md from NAME "selected".
"""
import json
import lzma
import pathlib
import sys

import guests
import locks
import model
from results import (COLUMNS, COUNTED, KINDS, MEANING, METRICS, PROGRAMS, RATES, Results, cost_rows,
                     differences, facts, labels_of, matrix, reaches, size_text, spread, standing,
                     standings)
from tables import markdown

FOLDER = model.PROJECT / "Documentation/results"
PUBLISHED = model.PROJECT / "build/published"
# Keys that are equal in all parts of one matrix.
SAME = ("where", "quick", "sources", "kernel", "guest", "qemu", "fio")
# Differences that are listed for each class of drives.
LARGEST = 15
# What the table of single drives shows.
BY_DRIVE = tuple(column for column in METRICS if column.head in ("read", "write", "read p99"))


def compared(results):
    """Yield the lines of the matrix of each class of drives."""
    for title, cells in results.classes().items():
        yield from [f"## {title[0].upper()}{title[1:]}", ""]
        for column in METRICS:
            head, rows = matrix(results, cells, column)
            if rows:
                yield from [f"**{column.head}, {column.unit}**", "", *markdown(["", *head], [
                    [label, *("" if found is None else found.text() for found in entries)]
                    for label, *entries in rows]), ""]
        yield from largest(results, cells)


def by_drive_head(results):
    """Return the head of the rows of by_drive()."""
    return ["scheduler", "drive", "figure", "workloads", *results.peers]


def by_drive(results):
    """Yield rows: how each of ours compares with the peers on a drive, with the tunables that
    fit."""
    drives = {}
    for cell in results.cells(*COUNTED):
        drives.setdefault(cell["device"], []).append(cell)
    for drive, cells in sorted(drives.items()):
        for label in results.ours:
            for column in BY_DRIVE:
                found = [standing(cells, label, peer, column) for peer in results.peers]
                if any(found):
                    yield [label, f"`{drive}`", column.head, str(max(
                        each.cells for each in found if each)), *(
                        f"{size_text(each.ratio)} ({each.ahead}:{each.behind})" if each else ""
                        for each in found)]


def largest(results, cells):
    """Yield the lines of the largest differences between ours and a peer's defaults."""
    found = differences(results, cells)
    if found:
        yield from [f"The largest of {len(found)} differences between ours and a peer's "
                    "defaults:", "", *markdown(
                        ["", "against", "drive", "workload", "figure", "difference", ""],
                        [[label, peer, cell["device"], cell["workload"], column.head,
                          size_text(size),
                          "better" if sign > 0 else "worse"]
                         for size, label, peer, column, cell, sign in found[:LARGEST]]), ""]


def costs(results):
    """Yield rows: instructions an I/O under none, and those that each scheduler adds."""
    for workload, row in cost_rows(results):
        yield [workload, *(f"{found.mean:{',' if label == 'none' else '+,'}.0f}" + (
            f" ±{found.half:,.0f}" if found.half is not None and label != "none" else "")
            for label, found in row.items())]


def source(results):
    """Return a sentence on the origin of the figures."""
    saved = results.saved
    made = ", ".join(f"commit {part['commit']}; `{' '.join(part['command'])}`"
                     for part in saved.get("parts", [saved]))
    return f"Emulated device, virtual time; Linux {saved['kernel']}, {made}."


def as_selected(results):
    """Yield the lines of the tables of what a scheduler gives with nothing else set."""
    yield from by_cell(results, results.cells("selected"), BY_DRIVE)
    yield from by_cell(results, results.cells("programs"), (*PROGRAMS, *RATES))


def by_cell(results, cells, columns):
    """Yield the lines of a table for each of the columns, with a row for each cell that has it."""
    labels = sorted(labels_of(cells), key=lambda label: label.partition(" ")[0] in results.ours)
    for column in columns:
        shown = [cell for cell in cells
                 if any(column.get in row for row in cell["results"].values())]
        if not shown:
            continue
        yield from ["", f"**{column.title()}**", "", *markdown(["drive", "workload", *labels], [
            [f"`{cell['device']}`", cell["workload"],
             *(spread(cell, label, column) for label in labels)] for cell in shown])]


def front(results):
    """Yield the lines of the tables of the front, and of the peers that it does not reach."""
    beside = {(cell["device"], cell["workload"]): cell
              for cell in results.cells("selected", "programs")}
    cells = results.cells("front")
    yield from by_cell(results, cells, (*PROGRAMS[:2], *RATES))
    rows = []
    for cell in cells:
        peers = beside.get((cell["device"], cell["workload"]))
        if peers:
            found = {peer: reaches(cell, peers, peer) for peer in results.peers}
            rows.append([f"`{cell['device']}`", cell["workload"], *(
                ", ".join(label.partition(" ")[2] for label in found[peer]) or "none"
                for peer in results.peers)])
    if rows:
        yield from ["", "Values of `write_share` with which neither readers nor writers get less "
                    "than under the peer, outside the interval:", "",
                    *markdown(["drive", "workload", *results.peers], rows)]


def overview(results):
    """Return the lines of the summary's tables."""
    selected, points = [*as_selected(results)], [*front(results)]
    lines = [*compared(results)]
    if lines:
        lines = [MEANING, "", *lines, "## Drive by drive", "",
                 "Ours against each peer, over the workloads of a drive; in brackets the number of "
                 "workloads in which ours is better : worse.", "",
                 *markdown(by_drive_head(results), by_drive(results)), ""]
    if points:
        lines = ["## The front", "", "These rows are of the recommended scheduler. Only "
                 "`write_share` is set, of which 75 is the default.", *points, "", *lines]
    if selected:
        lines = ["## As selected", "", "Nothing is set but the scheduler. Means of the seeds, with "
                 "the 95 % interval of the mean. `tide` is the core alone. As probed: with the "
                 "tunables that `ssd-probe` prints for the drive and `ssdctl persist` keeps; where "
                 "there is no such row or entry it prints none.", *selected, "", *lines]
    if results.cells("cpu"):
        head = [label for label in cost_rows(results)[0][1] if label != "none"]
        lines += ["## What an elevator costs", "",
                  "Instructions an I/O on null_blk, fio's own included, under none, and what "
                  "each scheduler adds: mean of the seeds, with the 95 % interval of the mean. "
                  "The guest runs the schedulers in another order with each seed, which moves a "
                  "count by up to 100.", "",
                  *markdown(["", "none", *head], costs(results)), ""]
    if results.saved.get("locks"):
        lines += ["## With several CPUs", "", locks.MEANING, "",
                  *markdown(["an I/O under", *locks.COLUMNS],
                            locks.rows(results.saved["locks"])), ""]
    return lines


def every_cell(results):
    """Yield the lines of a table for each cell."""
    for cell in results.cells(*KINDS):
        columns = [column for column in COLUMNS
                   if any(any(row.get(column.get, ())) for row in cell["results"].values())]
        rows = [[f"**{label}**" if results.is_ours(label) else label, *(
            spread(cell, label, column) for column in columns)] for label in cell["results"]]
        yield from [f"### {cell['device']}: {cell['workload']}", "", f"{facts(cell)}.", "",
                    *markdown(["", *(column.title() for column in columns)], rows), ""]


def summary(results, name):
    """Return the text of Documentation/results/NAME.md."""
    return "\n".join([f"# Results: {name}", "", source(results), "", *overview(results)])


def cells(results, name):
    """Return the text of build/published/NAME.md."""
    return "\n".join([
        f"# Results: {name}, each cell", "", source(results), "",
        "Schedulers of this project in bold. Figures are means of the seeds, with the 95 % "
        "interval of the mean. ≥: a percentile beyond the I/Os, so the maximum. Latencies from "
        "submission to completion; WA: write amplification; units busy: share of the time for "
        "which the flash units worked; of bound: throughput divided by that of the device's "
        "busiest part, always at work.", "",
        *every_cell(results)])


def slim(saved):
    """Return results with figures of five digits and without raw output."""
    saved = dict(saved)
    for paper in saved["papers"]:
        del paper["text"]
    for cell in saved["cells"]:
        for row in cell["results"].values():
            row.update({key: [value and float(f"{value:.5g}") for value in values]
                        for key, values in row.items()})
    saved["runs"] = [{key: run[key] for key in ("preset", "job", "label", "scheduler",
                                                "tunables", "keys", "variables")}
                     for run in saved["runs"]]
    return saved


def once(key, *lists):
    """Return the items of all @lists; of those with the same @key the last."""
    return list({key(item): item for each in lists for item in each}.values())


def check_texts(kept, more, cells_of_both):
    """Raise Failed if a preset or a job of @more has another text than in @kept, and a cell that
    was made with it stays."""
    stay = [cell for cell in cells_of_both if any(cell is old for old in kept["cells"])]
    for kind, used in (("presets", "device"), ("jobs", "job")):
        for cell in stay:
            name = cell[used]
            if name in more[kind] and more[kind][name] != kept[kind].get(name):
                raise model.Failed(f"{kind} differ: {cell['device']}, {cell['workload']} was "
                                   f"measured with another {name}; measure it again, too")


def added(kept, more):
    """Return @kept results with @more of the same matrix."""
    for key in SAME:
        if kept.get(key) != more[key]:
            raise model.Failed(f"not the same {key}: {kept.get(key)}, {more[key]}")
    cells_of_both = once(lambda cell: (cell["kind"], cell["device"], cell["workload"]),
                         kept["cells"], more["cells"])
    check_texts(kept, more, cells_of_both)
    parts = [{key: saved[key] for key in ("command", "commit", "host", "image", "cpu_seconds")}
             for saved in (*kept.get("parts", [kept]), more)]
    parts = once(json.dumps, parts)
    return {
        **kept, "parts": parts, "cells": cells_of_both,
        "matrix": standings(Results(kept | {"cells": cells_of_both})),
        "runs": once(json.dumps, kept["runs"], more["runs"]),
        "only": once(str, kept["only"], more["only"]),
        "presets": kept["presets"] | more["presets"], "jobs": kept["jobs"] | more["jobs"],
        "locks": kept["locks"] | more["locks"], "papers": more["papers"] or kept["papers"],
        "cpu_seconds": sum(part["cpu_seconds"] for part in parts)}


def main():
    add = sys.argv[3:] == ["--add"]
    if len(sys.argv) != 3 and not add:
        sys.exit(__doc__)
    folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
    saved = slim(json.loads((folder / "results.json").read_text()))
    kept = FOLDER / f"{name}.json.xz"
    if add and not kept.exists():
        raise model.Failed(f"no {kept.relative_to(model.PROJECT)} to add to")
    if add:
        saved = added(json.loads(lzma.decompress(kept.read_bytes())), saved)
    results = Results(saved)
    for place in (FOLDER, PUBLISHED):
        place.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(lzma.compress(json.dumps(saved).encode()))
    for path, text in ((FOLDER / f"{name}.md", summary(results, name)),
                       (PUBLISHED / f"{name}.md", cells(results, name))):
        path.write_text(text.rstrip() + "\n", encoding="utf-8")
        print(path.relative_to(model.PROJECT))


if __name__ == "__main__":
    guests.finish(main)
