#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Publish results: a summary for Documentation/results/, the whole matrix for a release.

    tests/bench/publish.py FOLDER NAME          publish FOLDER/results.json as NAME
    tests/bench/publish.py FOLDER NAME --add    add another part of the same matrix to NAME, or
                                                replace its cells; same sources required

Writes Documentation/results/NAME.md (the summary), and into build/published/ NAME.json.xz
(all figures without fio's raw output) and NAME.md (a table for each cell).
"""
import json
import lzma
import pathlib
import sys

import harness
from report import number
from results import COLUMNS, Results, cost_rows, gain

FOLDER = harness.PROJECT / "Documentation/results"
PUBLISHED = harness.PROJECT / "build/published"
# What parts of one matrix have in common.
SAME = ("where", "quick", "sources", "kernel", "guest", "qemu", "fio")
GROUPS = ("the drive of its paper", "other papers' drives", "drives of today")


def markdown(head, rows):
    """A table, and an empty line after it."""
    return [*harness.markdown(head, rows), ""]


def group_of(scheduler, device):
    """Which kind of drive a preset is to a scheduler."""
    if device.partition("-")[0] == scheduler:
        return GROUPS[0]
    return GROUPS[2] if harness.is_neutral(device) else GROUPS[1]


def gained(results):
    """Rows: each of ours on each kind of drive, against the best of the peers."""
    for scheduler in results.ours:
        for group in GROUPS:
            cells = [cell for kind in ("benefit", "depth", "trace")
                     for cell in results.cells(kind) if scheduler in cell["results"]
                     and group_of(scheduler, cell["device"]) == group]
            gains = sorted((gain(results, cell, scheduler, COLUMNS[0]),
                            f"{cell['device']}, {cell['workload']}") for cell in cells)
            if not gains:
                continue
            values = [value for value, _ in gains]
            yield [f"{scheduler}, {group}", len(values),
                   f"{sum(value > 2 for value in values)} / "
                   f"{sum(-2 <= value <= 2 for value in values)} / "
                   f"{sum(value < -2 for value in values)}",
                   f"{sum(values) / len(values):+.1f} %",
                   f"{values[-1]:+.1f} % ({gains[-1][1]})",
                   f"{values[0]:+.1f} % ({gains[0][1]})"]


def costs(results):
    """Rows: instructions an I/O."""
    for workload, row in cost_rows(results):
        yield [workload, f"{row['none']:,.0f}",
               *(f"{row[label] - row['none']:+,.0f}" for label in row if label != "none")]


def locked(results):
    """Rows: what is done under a lock."""
    for name, row in results.saved["locks"].items():
        yield [name, f"{row['acquisitions']:.2f}", f"{row['held']:,.0f}",
               f"{row['longest']:,.0f}", f"{row['contended']:.4f}"]


def verdict(value, target, more=True):
    """Whether a number does what it should, in words."""
    return "met" if (value >= target if more else value <= target) else "missed"


def cost_targets(results):
    """At most half of what mq-deadline adds to none."""
    for scheduler in results.ours:
        shares = sorted((100 * (row[scheduler] - row["none"]) /
                         (row["mq-deadline"] - row["none"]), workload)
                        for workload, row in cost_rows(results))
        (least, best), (most, worst) = shares[0], shares[-1]
        yield [scheduler, "instructions it adds to an I/O, of those that mq-deadline adds",
               "at most 50 %", f"{least:.0f} % ({best}) to {most:.0f} % ({worst})",
               verdict(most, 50, more=False)]


def benefit_targets(results):
    """On drives of today never more than 2 % behind; on the paper's drive the claim."""
    kinds = ("benefit", "depth", "trace")
    cells = [cell for kind in kinds for cell in results.cells(kind)]
    for scheduler in results.ours:
        groups = {group: [cell for cell in cells if scheduler in cell["results"] and
                          group_of(scheduler, cell["device"]) == group] for group in GROUPS}
        if groups[GROUPS[2]]:
            worst = min(gain(results, cell, scheduler, COLUMNS[0])
                        for cell in groups[GROUPS[2]])
            yield [scheduler, "throughput on drives of today, worst cell, against the best "
                   "peer", "at least -2 %", f"{worst:+.1f} %", verdict(worst, -2)]
        if scheduler == "pass" and groups[GROUPS[0]]:
            gains = [gain(results, cell, scheduler, COLUMNS[0])
                     for cell in groups[GROUPS[0]]]
            mean = sum(gains) / len(gains)
            yield [scheduler, "throughput on its paper's drive, mean, against the best peer",
                   "+25 %", f"{mean:+.1f} %", verdict(mean, 25)]
        if scheduler == "piq":
            for way, claim in (("read", -41), ("write", -40)):
                key = f"{way}_mean"
                changes = [100 * (cell["results"]["piq"][key] /
                                  cell["results"]["none"][key] - 1)
                           for cell in groups[GROUPS[0]]
                           if cell["kind"] != "depth" and key in cell["results"]["piq"]]
                if changes:
                    mean = sum(changes) / len(changes)
                    yield [scheduler, f"{way} latency on its paper's drive, mean, against none",
                           f"{claim} %", f"{mean:+.1f} %", verdict(mean, claim, more=False)]


def source(results):
    """Where the figures are from."""
    saved = results.saved
    made = ", ".join(f"commit {part['commit']}; `{' '.join(part['command'])}`"
                     for part in saved.get("parts", [saved]))
    return f"Emulated device, virtual time; Linux {saved['kernel']}, {made}."


def overview(results):
    """The tables of the summary."""
    lines = []
    if any(map(results.cells, ("benefit", "depth", "trace"))):
        lines += ["Throughput against the best of none, mq-deadline, kyber and bfq, with "
                  "defaults or tuned, whichever is best in the cell; ours with the tunables "
                  "that fit the device:", "",
                  *markdown(["", "cells", "ahead / within 2 % / behind", "mean", "best",
                             "worst"], gained(results))]
    if results.cells("cpu"):
        head = [label for label in cost_rows(results)[0][1] if label != "none"]
        lines += ["Instructions an I/O on null_blk, fio's own included, under none, and what "
                  "each scheduler adds:", "",
                  *markdown(["", "none", *head], costs(results))]
    if results.saved.get("locks"):
        lines += ["Under the scheduler's lock, on a debug kernel, whose instructions are many "
                  "more than a stock kernel's:", "",
                  *markdown(["lock of", "acquisitions an I/O", "instructions held an I/O",
                             "longest", "contended an I/O, 2 CPUs"], locked(results))]
    rows = [*(cost_targets(results) if results.cells("cpu") else []),
            *benefit_targets(results)]
    lines += ["Beside the numbers to beat:", "",
              *markdown(["", "what", "target", "measured", ""], rows)]
    return lines


def every_cell(results):
    """A table for each cell."""
    for kind in ("benefit", "depth", "trace"):
        for cell in results.cells(kind):
            columns = [column for column in COLUMNS
                       if any(column.key in row for row in cell["results"].values())]
            yield from [f"### {cell['device']}: {cell['workload']}", ""]
            yield from markdown(
                ["", *(f"{column.head} {column.unit}".strip() for column in columns)],
                [[f"**{label}**" if results.is_ours(label) else label, *(
                    number(row[column.key]) if column.key in row else "" for column in columns)]
                 for label, row in cell["results"].items()])


def summary(results, name):
    """The text of Documentation/results/NAME.md."""
    return "\n".join([f"# Results: {name}", "", source(results), "", *overview(results)])


def cells(results, name):
    """The text of build/published/NAME.md."""
    return "\n".join([
        f"# Results: {name}, each cell", "", source(results), "",
        "Schedulers of this project in bold. Latencies from submission to completion; WA: write "
        "amplification; units busy: share of the time for which the flash units worked; of "
        "bound: throughput divided by that of the device's busiest part, always at work; seeds "
        "apart: spread of the means of several seeds.", "", *every_cell(results)])


def slim(saved):
    """What is worth keeping: figures of five digits, no raw output."""
    saved = dict(saved)
    for paper in saved["papers"]:
        del paper["text"]
    for cell in saved["cells"]:
        for row in cell["results"].values():
            row.update({key: float(f"{value:.5g}") for key, value in row.items()})
    saved["runs"] = [{key: run[key] for key in ("preset", "job", "label", "scheduler",
                                                "tunables", "keys", "variables")}
                     for run in saved["runs"]]
    return saved


def once(key, *lists):
    """The items of all @lists, of those with the same @key the last."""
    return list({key(item): item for each in lists for item in each}.values())


def added(kept, more):
    """@kept results and @more of the same matrix."""
    for key in SAME:
        if kept.get(key) != more[key]:
            raise harness.Failed(f"not the same {key}: {kept.get(key)}, {more[key]}")
    parts = [{key: saved[key] for key in ("command", "commit", "host", "cpu_seconds")}
             for saved in (*kept.get("parts", [kept]), more)]
    parts = once(json.dumps, parts)
    return {
        **kept, "parts": parts,
        "cells": once(lambda cell: (cell["kind"], cell["device"], cell["workload"]),
                      kept["cells"], more["cells"]),
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
    kept = PUBLISHED / f"{name}.json.xz"
    if add and not kept.exists():
        raise harness.Failed(f"no {kept.relative_to(harness.PROJECT)} to add to")
    if add:
        saved = added(json.loads(lzma.decompress(kept.read_bytes())), saved)
    results = Results(saved)
    for place in (FOLDER, PUBLISHED):
        place.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(lzma.compress(json.dumps(saved).encode()))
    for path, text in ((FOLDER / f"{name}.md", summary(results, name)),
                       (PUBLISHED / f"{name}.md", cells(results, name))):
        path.write_text(text.rstrip() + "\n", encoding="utf-8")
        print(path.relative_to(harness.PROJECT))


if __name__ == "__main__":
    harness.finish(main)
