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

import guests
import model
from results import COLUMNS, Results, cost_rows, ranked, standing
from tables import Table, markdown

FOLDER = model.PROJECT / "Documentation/results"
PUBLISHED = model.PROJECT / "build/published"
# Keys that are equal in all parts of one matrix.
SAME = ("where", "quick", "sources", "kernel", "guest", "qemu", "fio")
KINDS = ("benefit", "depth", "trace")
GROUPS = ("the drive of its paper", "other papers' drives", "drives of today")


def group_of(scheduler, device):
    """Return the group of drives of a preset for a scheduler."""
    if device.partition("-")[0] == scheduler:
        return GROUPS[0]
    return GROUPS[2] if model.is_neutral(device) else GROUPS[1]


def by_group(results, scheduler):
    """Return {group of drives: ranked() on them}, without empty ones."""
    cells = results.cells(*KINDS)
    made = {group: ranked(results, scheduler, [
        cell for cell in cells if group_of(scheduler, cell["device"]) == group])
        for group in GROUPS}
    return {group: ranks for group, ranks in made.items() if ranks}


def gained(results):
    """Yield rows: the gains of each of ours on each group of drives."""
    for scheduler in results.ours:
        for group, ranks in by_group(results, scheduler).items():
            *counts, mean = standing([value for value, _ in ranks])
            yield [f"{scheduler}, {group}", len(ranks), " / ".join(map(str, counts)),
                   f"{mean:+.1f} %", *(
                       f"{value:+.1f} % ({cell['device']}, {cell['workload']})"
                       for value, cell in (ranks[-1], ranks[0]))]


def costs(results):
    """Yield rows: instructions an I/O under none, and those that each scheduler adds."""
    for workload, row in cost_rows(results):
        yield [workload, f"{row['none']:,.0f}",
               *(f"{row[label] - row['none']:+,.0f}" for label in row if label != "none")]


def locked(results):
    """Yield rows: use of each scheduler's lock."""
    for name, row in results.saved["locks"].items():
        yield [name, f"{row['acquisitions']:.2f}", f"{row['held']:,.0f}",
               f"{row['longest']:,.0f}", f"{row['contended']:.4f}"]


def verdict(value, target, more=True):
    """Return "met" or "missed"."""
    return "met" if (value >= target if more else value <= target) else "missed"


def cost_targets(results):
    """Yield rows: at most half of the instructions that mq-deadline adds to none."""
    for scheduler in results.ours:
        shares = sorted((100 * (row[scheduler] - row["none"]) /
                         (row["mq-deadline"] - row["none"]), workload)
                        for workload, row in cost_rows(results))
        (least, best), (most, worst) = shares[0], shares[-1]
        yield [scheduler, "instructions it adds to an I/O, of those that mq-deadline adds",
               "at most 50 %", f"{least:.0f} % ({best}) to {most:.0f} % ({worst})",
               verdict(most, 50, more=False)]


def paper_targets(results, cells):
    """Yield rows: the claims of the PIQ paper, means over @cells on its drive."""
    for way, claim in (("read", -41), ("write", -40)):
        key = f"{way}_mean"
        changes = [100 * (cell["results"]["piq"][key] / cell["results"]["none"][key] - 1)
                   for cell in cells
                   if cell["kind"] != "depth" and key in cell["results"]["piq"]]
        if changes:
            mean = sum(changes) / len(changes)
            yield ["piq", f"{way} latency on its paper's drive, mean, against none",
                   f"{claim} %", f"{mean:+.1f} %", verdict(mean, claim, more=False)]


def benefit_targets(results):
    """Yield rows: on drives of today at most 2 % behind; on the paper's drive the claim."""
    for scheduler in results.ours:
        ranks = by_group(results, scheduler)
        if GROUPS[2] in ranks:
            worst = ranks[GROUPS[2]][0][0]
            yield [scheduler, "throughput on drives of today, worst cell, against the best "
                   "peer", "at least -2 %", f"{worst:+.1f} %", verdict(worst, -2)]
        if scheduler == "pass" and GROUPS[0] in ranks:
            mean = standing([value for value, _ in ranks[GROUPS[0]]])[-1]
            yield [scheduler, "throughput on its paper's drive, mean, against the best peer",
                   "+25 %", f"{mean:+.1f} %", verdict(mean, 25)]
        if scheduler == "piq":
            yield from paper_targets(results, [cell for _, cell in ranks.get(GROUPS[0], ())])


def source(results):
    """Return a sentence on the origin of the figures."""
    saved = results.saved
    made = ", ".join(f"commit {part['commit']}; `{' '.join(part['command'])}`"
                     for part in saved.get("parts", [saved]))
    return f"Emulated device, virtual time; Linux {saved['kernel']}, {made}."


def overview(results):
    """Return the lines of the summary's tables."""
    lines = []
    if results.cells(*KINDS):
        lines += ["Throughput against the best of none, mq-deadline, kyber and bfq, with "
                  "defaults or tuned, whichever is best in the cell; ours with the tunables "
                  "that fit the device:", "",
                  *markdown(["", "cells", "ahead / within 2 % / behind", "mean", "best",
                             "worst"], gained(results)), ""]
    if results.cells("cpu"):
        head = [label for label in cost_rows(results)[0][1] if label != "none"]
        lines += ["Instructions an I/O on null_blk, fio's own included, under none, and what "
                  "each scheduler adds:", "",
                  *markdown(["", "none", *head], costs(results)), ""]
    if results.saved.get("locks"):
        lines += ["Under the scheduler's lock, on a debug kernel, whose instructions are many "
                  "more than a stock kernel's:", "",
                  *markdown(["lock of", "acquisitions an I/O", "instructions held an I/O",
                             "longest", "contended an I/O, 2 CPUs"], locked(results)), ""]
    rows = [*(cost_targets(results) if results.cells("cpu") else []),
            *benefit_targets(results)]
    return [*lines, "Beside the numbers to beat:", "",
            *markdown(["", "what", "target", "measured", ""], rows)]


def every_cell(results):
    """Yield the lines of a table for each cell."""
    for cell in results.cells(*KINDS):
        head, rows = Table("", [(f"**{label}**" if results.is_ours(label) else label, row)
                                for label, row in cell["results"].items()], COLUMNS).cells()
        yield from [f"### {cell['device']}: {cell['workload']}", "", *markdown(head, rows), ""]


def summary(results, name):
    """Return the text of Documentation/results/NAME.md."""
    return "\n".join([f"# Results: {name}", "", source(results), "", *overview(results)])


def cells(results, name):
    """Return the text of build/published/NAME.md."""
    return "\n".join([
        f"# Results: {name}, each cell", "", source(results), "",
        "Schedulers of this project in bold. Latencies from submission to completion; WA: write "
        "amplification; units busy: share of the time for which the flash units worked; of "
        "bound: throughput divided by that of the device's busiest part, always at work; seeds "
        "apart: spread of the means of several seeds.", "", *every_cell(results)])


def slim(saved):
    """Return results with figures of five digits and without raw output."""
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
    """Return the items of all @lists; of those with the same @key the last."""
    return list({key(item): item for each in lists for item in each}.values())


def added(kept, more):
    """Return @kept results with @more of the same matrix."""
    for key in SAME:
        if kept.get(key) != more[key]:
            raise model.Failed(f"not the same {key}: {kept.get(key)}, {more[key]}")
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
