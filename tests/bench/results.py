# SPDX-License-Identifier: GPL-2.0
"""Results of the benchmark, and how schedulers compare in them.

A cell is what matrix.Cell.content() returns: kind, device, workload, ..., and results, {label:
{key: [figure of each seed, None without an I/O in the window]}}, and bounds, {label: keys of which
a figure is only known to be at least so large}.
"""
import dataclasses
import math
import statistics

from intervals import Interval, interval, logarithms, percent
from tables import Column, number

LABEL = "emulated device, virtual time"
RATES = (Column("read", "read_mbps", "MB/s", more=True),
         Column("write", "write_mbps", "MB/s", more=True))
TIMES = {(way, key): Column(f"{way} {key}", f"{way}_{key}", "ms")
         for way in ("read", "write") for key in ("mean", "p50", "p99", "p99.9", "max")}
# Of programs: the start of an application, a store's reads and how late they are, an installation.
PROGRAMS = (Column("start", "start_s", "s"), Column("store", "ops_s", "1/s", more=True),
            Column("store p99", "op_p99", "ms"), Column("installation", "install_s", "s"))
COLUMNS = (
    *PROGRAMS, *RATES, *TIMES.values(),
    Column("WA", "write_amplification", "x"), Column("erases", "erases"),
    Column("units busy", "utilisation", "of 1", more=True),
    Column("of bound", "of_bound", "of 1", more=True),
)
# What the matrix compares.
METRICS = (*RATES, TIMES["read", "mean"], TIMES["read", "p99"], TIMES["read", "p99.9"],
           TIMES["write", "p99"])
# The kinds of cells that are shown, and those that count in the matrix: a depth is a point of a
# curve, not a workload.
KINDS = ("selected", "programs", "front", "benefit", "depth", "trace")
COUNTED = ("benefit", "trace", "fleet")
# A difference decides a cell if it is so large, a ratio: where nothing is random any repeats.
LEAST = 0.005
# {name: value of a cell's "ordering", or None for all cells}
GROUPS = {"all": None, "backlog": True, "no backlog": False}

MEANING = """How to read the matrix: the figure of the row's scheduler against that of the
column's, as the geometric mean of their ratios over the cells, with its 95 % interval over the
seeds; then the number of cells in which the row is better : worse, which means that the 95 %
interval of the ratio, paired by seed, lies on one side of 1 and the ratio differs by 0.5 %, or
that only the better one has such I/O in each window. Reads and writes are not added up.
Peers with tuned values and ours with defaults are rows of their own, over the cells in which they
ran; otherwise ours have the tunables that fit the drive. Backlog: more requests are outstanding
than the drive takes, so there is something to order."""


def spread(cell, label: str, column) -> str:
    """Return the mean of a scheduler's figure with its interval as text."""
    values = cell["results"].get(label, {}).get(column.get, [])
    none = values.count(None)
    if none or not values:
        return f"no I/O, {none} of {len(values)} seeds" if none else ""
    found = interval(values)
    return ("≥ " if column.get in cell["bounds"][label] else "") + number(found.mean) + (
        f" ±{number(found.half)}" if found.half is not None else "")


@dataclasses.dataclass
class Standing:
    """How a scheduler compares with another one over @cells cells: in @ahead and @behind of
    them the interval of the ratio lies on this side of 1, or only one of them has I/O in the
    window. @ratio: percent of the geometric mean of the ratios, None without any."""
    ratio: Interval | None
    ahead: int
    behind: int
    cells: int

    def text(self, joint: str = " ") -> str:
        """Return it as one table cell; @joint: between the ratio and the counts."""
        counts = f"{self.ahead}:{self.behind} of {self.cells}"
        return f"{size_text(self.ratio)}{joint}{counts}"


def size_text(size: Interval | None) -> str:
    """Return a difference in percent as text."""
    if size is None:
        return "no I/O"
    half = f" ±{size.half:.1f}" if size.half is not None else ""
    return f"{size.mean:+.1f}{half} %"


class Results:
    """The content of results.json, @saved."""

    def __init__(self, saved: dict):
        self.saved = saved
        self.ours = saved["schedulers"]["ours"]
        self.peers = saved["schedulers"]["peers"]

    def cells(self, *kinds: str) -> list:
        """Return the cells of these kinds."""
        return [cell for kind in kinds for cell in self.saved["cells"] if cell["kind"] == kind]

    def is_ours(self, label: str) -> bool:
        """Return True if a label names a scheduler of this project."""
        return label.partition(" ")[0] in self.ours

    def classes(self) -> dict[str, list]:
        """Return {class of drives: cells}, without empty ones: drives of today, and those of
        each paper."""
        made = {}
        for cell in sorted(self.cells(*COUNTED), key=lambda cell: cell["paper"]):
            name = (f"the drives of the {cell['paper'].upper()} paper" if cell["paper"] else
                    "other machines' drives" if cell["kind"] == "fleet" else "drives of today")
            made.setdefault(name, []).append(cell)
        return made


def labels_of(cells: list) -> list[str]:
    """Return the labels of @cells: each peer with its defaults, then tuned; then ours."""
    return list({label: None for cell in cells for label in cell["results"]})


def better(logs: list[float], column) -> int:
    """Return 1 or -1 if a scheduler is ahead or behind: if the interval of its @logs does not
    contain 0, and their mean is large enough; otherwise 0."""
    found = interval(logs)
    if abs(found.mean) < math.log1p(LEAST):
        return 0
    return found.sign() * (1 if column.more else -1)


def compared(cell, label: str, peer: str, column) -> tuple[list[float], int] | None:
    """Return how a scheduler's figure compares with that of @peer: the logarithms of their ratios
    for each seed, [] if one has no I/O in a window, and 1, 0 or -1 as better() does. None if one
    was not measured, or both have windows without I/O."""
    ours, theirs = (cell["results"].get(name, {}).get(column.get) for name in (label, peer))
    if not ours or not theirs or not (all(ours) or all(theirs)):
        return None
    if not (all(ours) and all(theirs)):
        return [], all(ours) - all(theirs)
    logs = logarithms(ours, theirs)
    sign = better(logs, column)
    # A lower bound does not show that a scheduler is ahead.
    first = label if sign > 0 else peer
    return logs, 0 if column.get in cell["bounds"][first] else sign


def front_columns(cell) -> tuple[Column, Column]:
    """Return what readers get in a cell of a front, and what writers get."""
    reads = next(column for column in (*PROGRAMS, RATES[0])
                 if any(column.get in row for row in cell["results"].values()))
    return reads, RATES[1]


def reaches(front, cell, peer: str) -> list[str]:
    """Return the labels of the points of a @front that are behind a @peer of @cell neither in what
    readers get nor in what writers get."""
    both = cell | {"results": cell["results"] | front["results"],
                   "bounds": cell["bounds"] | front["bounds"]}
    signs = {label: [(compared(both, label, peer, column) or ([], 0))[1]
                     for column in front_columns(front)] for label in front["results"]}
    return [label for label, found in signs.items() if min(found) >= 0]


def standing(cells: list, label: str, peer: str, column) -> Standing | None:
    """Return how a scheduler compares with @peer over @cells; None without a cell that has
    both."""
    found = [pair for cell in cells if (pair := compared(cell, label, peer, column))]
    if not found:
        return None
    signs = [sign for _, sign in found]
    # The geometric mean over the cells with each seed, so its interval is over seeds, too.
    means = [statistics.fmean(seeds)
             for seeds in zip(*(logs for logs, _ in found if logs), strict=False)]
    return Standing(percent(interval(means)) if means else None, signs.count(1),
                    signs.count(-1), len(found))


def in_group(cells: list, ordering: bool | None) -> list:
    """Return the cells of one of GROUPS."""
    return [cell for cell in cells if ordering is None or cell["ordering"] is ordering]


def matrix(results: Results, cells: list, column) -> tuple[list[str], list[list]]:
    """Return the head and the rows of the table of a @column: how each scheduler compares with
    each peer, in each of GROUPS. An entry is a Standing or None."""
    groups = {name: chosen for name, value in GROUPS.items() if (chosen := in_group(cells, value))}
    # A group that has all cells says nothing new.
    groups = {name: chosen for name, chosen in groups.items()
              if name == "all" or len(chosen) < len(cells)}
    head = [f"{peer}, {name}" for name in groups for peer in results.peers]
    rows = [[label, *(standing(chosen, label, peer, column) if label != peer else None
                      for chosen in groups.values() for peer in results.peers)]
            for label in labels_of(cells)]
    return head, [row for row in rows if any(row[1:])]


def standings(results: Results) -> list[dict]:
    """Return the matrix of all classes, metrics and groups for results.json."""
    return [{"class": title, "figure": column.get, "group": group, "label": label, "peer": peer,
             "percent": found.ratio and found.ratio.mean,
             "plus_minus": found.ratio and found.ratio.half, "better": found.ahead,
             "worse": found.behind, "cells": found.cells}
            for title, cells in results.classes().items() for column in METRICS
            for group, value in GROUPS.items() for label in labels_of(cells)
            for peer in results.peers if peer != label
            if (found := standing(in_group(cells, value), label, peer, column))]


def differences(results: Results, cells: list) -> list[tuple]:
    """Return (percent, scheduler, peer, column, cell, better) for each figure of METRICS in which
    a scheduler of this project is ahead of a peer's defaults or behind them, the largest first.
    Percent is None, and largest, if one of them has no I/O in a window."""
    found = []
    for cell in cells:
        for label in cell["results"]:
            for peer in results.peers if label in results.ours else ():
                for column in METRICS:
                    logs, sign = compared(cell, label, peer, column) or ([], 0)
                    if sign:
                        mean = interval(logs) if logs else None
                        found.append((abs(mean.mean) if mean else math.inf, mean and percent(mean),
                                      label, peer, column, cell, sign))
    return [item[1:] for item in sorted(found, key=lambda item: -item[0])]


def cost_rows(results: Results) -> list:
    """Return [(workload, {scheduler: interval})]: the instructions of an I/O under none, and those
    that another scheduler adds with the same seed."""
    found = []
    for cell in results.cells("cpu"):
        counts = {label: row["instructions"] for label, row in cell["results"].items()}
        none = counts.pop("none")
        found.append((cell["workload"], {"none": interval(none)} | {
            label: interval([more - less for more, less in zip(count, none, strict=True)])
            for label, count in counts.items()}))
    return found


def facts(cell) -> str:
    """Return how a cell was measured: what there is to order, the window, and the time scale."""
    order = {True: "something to order", False: "nothing to order",
             None: "outstanding requests depend on the load"}[cell["ordering"]]
    window = f"window of {cell['window']}" if cell["window"] else "the whole run"
    keys = " ".join(f"{name}={value}" for name, value in cell["keys"].items()
                    if name != "time_scale")
    return f"{order}; {window}; {len(next(iter(cell['results'].values()))['mbps'])} seeds" + (
        f"; with {keys}" if keys else "") + (
        f"; emulated with all times x {cell['time_scale']}" if cell["time_scale"] != 1 else "")
