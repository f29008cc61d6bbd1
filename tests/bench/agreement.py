#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Compare two publications of the same matrix: do they give the kernel's schedulers the same
figures and the same verdicts?

    tests/bench/agreement.py [ONE OTHER]    (default: virtual-time full)

Both are names in Documentation/results/. Writes Documentation/results/agreement.md. The default
shows how far simulated guests, in which ioload makes the I/O and instructions take no time, agree
with fio under the stock kernel in virtual time (virtual-time.json.xz: `make bench` of 1c4bee5).
Only peers are compared: the schedulers of this project have changed in between.
"""
import collections
import json
import lzma
import math
import statistics
import sys

import guests
import model
from results import METRICS, Results, compared
from tables import markdown, number

FOLDER = model.PROJECT / "Documentation/results"
# Rates below so many MB/s are a handful of I/Os in a window.
LEAST_MBPS = 0.05
LARGEST = 12
# Parts of the differences that the table shows.
SHARES = (0.5, 0.9)
# Schedulers whose figures depend on the host's CPU.
SENSITIVE = ("none", "bfq")
WHY = """Most differences, and nearly all opposite verdicts, are of `none` and `bfq`. Under none the
jobs compete for the device's tags where all are taken. A thread that has to run first loses to one
that waits already, so a reader's share depends on how long the host's CPU takes for an I/O: no time
here (and 2 us to wake up), some 20 us there, divided by the time scale. bfq waits for a process
that is expected to submit soon, which depends on the same time. For these figures no emulation
speaks for another host; compare with mq-deadline and kyber. Percentiles of a few I/Os differ most:
those of writes under a scheduler that serves hardly any."""


def read(name: str) -> Results:
    """Return the results published under a name."""
    path = FOLDER / f"{name}.json.xz"
    if not path.exists():
        raise model.Failed(f"no {path.relative_to(model.PROJECT)}")
    return Results(json.loads(lzma.decompress(path.read_bytes())))


def name_of(cell: dict) -> tuple[str, str, str]:
    """Return what identifies a cell in its matrix."""
    return cell["kind"], cell["device"], cell["workload"]


def pairs(one: Results, other: Results) -> list[tuple[dict, dict]]:
    """Return the cells that both have, but for the cost in instructions."""
    theirs = {name_of(cell): cell for cell in other.saved["cells"]}
    return [(cell, theirs[name_of(cell)]) for cell in one.saved["cells"]
            if cell["kind"] != "cpu" and name_of(cell) in theirs]


def peers(results: Results, cell: dict) -> list[str]:
    """Return the labels of the kernel's own schedulers in a cell, with defaults and tuned."""
    return [label for label in cell["results"] if not results.is_ours(label)]


def differences(results: Results, both: list) -> list[tuple]:
    """Return (logarithm of the ratio, column, cell, label, means) of each figure of a peer."""
    found = []
    for cell, other in both:
        for label in peers(results, cell):
            for column in METRICS:
                values = [each["results"].get(label, {}).get(column.get) for each in (cell, other)]
                if not all(values) or not all(map(all, values)):
                    continue
                means = [statistics.fmean(value) for value in values]
                if column.more and min(means) < LEAST_MBPS:
                    continue
                found.append((math.log(means[1] / means[0]), column, cell, label, means))
    return found


def share(sizes: list[float], part: float) -> str:
    """Return the difference that this part of them does not exceed, in percent."""
    at = sorted(sizes)[min(int(part * len(sizes)), len(sizes) - 1)]
    return f"{100 * (math.exp(at) - 1):.1f}"


def figures_table(found: list[tuple]) -> list[str]:
    """Return the lines of the table of differences by drive."""
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for size, column, cell, label, _ in found:
        kind = "rate" if column.more else "mean" if "mean" in column.get else "percentile"
        for name in (cell["device"], f"any, under {label.partition(' ')[0]}", "all"):
            groups[name][kind].append(abs(size))
    head = ["drive", *(f"{kind}s{'' if part == SHARES[0] else ', 90 %'}" for kind in
                       ("rate", "mean", "percentile") for part in SHARES), "figures"]
    rows = [[name, *(share(kinds[kind], part) if kinds[kind] else ""
                       for kind in ("rate", "mean", "percentile") for part in SHARES),
             str(sum(map(len, kinds.values())))]
            for name, kinds in sorted(groups.items(), key=lambda item: (
                item[0] == "all", item[0].startswith("any"), item[0]))]
    return markdown(head, rows)


def verdicts(results: Results, both: list) -> collections.Counter:
    """Count the comparisons of two peers: same (both say the same), open (one of them sees no
    difference), opposite; of the last those with neither of SENSITIVE as "steady"."""
    counted = collections.Counter()
    for cell, other in both:
        for label in peers(results, cell):
            for peer in results.peers:
                for column in METRICS if peer != label else ():
                    found = [compared(each, label, peer, column) for each in (cell, other)]
                    if all(found):
                        one, two = (sign for _, sign in found)
                        counted["same" if one == two else "open" if one * two == 0 else
                                "opposite"] += 1
                        counted["steady"] += one * two < 0 and not {
                            label.partition(" ")[0], peer} & {*SENSITIVE}
    return counted


def largest(found: list[tuple]) -> list[str]:
    """Return the lines of the table of the largest differences."""
    rows = [[cell["device"], cell["workload"], label, column.title(), *map(number, means),
             f"{100 * (math.exp(size) - 1):+.0f} %"]
            for size, column, cell, label, means in
            sorted(found, key=lambda item: -abs(item[0]))[:LARGEST]]
    return markdown(["drive", "workload", "scheduler", "figure", "first", "second", ""], rows)


def page(names: list[str]) -> str:
    """Return the text of agreement.md."""
    one, other = map(read, names)
    both = pairs(one, other)
    if not both:
        raise model.Failed(f"{names[0]} and {names[1]} have no cell in common")
    found, counted = differences(one, both), verdicts(one, both)
    steady = counted.pop("steady")
    total = sum(counted.values())
    guest = [results.saved["guest"] for results in (one, other)]
    return "\n".join([
        "# Two ways to measure the same cells", "",
        f"`tests/bench/agreement.py {' '.join(names)}`: {len(both)} cells, the kernel's "
        "schedulers.", "", f"- First, {names[0]}: commit {one.saved['commit']}; {guest[0]}, fio.",
        f"- Second, {names[1]}: commit {other.saved['commit']}; {guest[1]}.", "",
        f"Of {total:,} comparisons of two schedulers (a figure of a cell), {counted['same']:,} "
        f"have the same verdict, {counted['open']:,} are ahead or behind in one of them only, and "
        f"{counted['opposite']:,} are opposite, {steady} of these without none and bfq.", "",
        WHY, "",
        "Differences of the figures in percent: half of them are at most the first number, 90 % "
        "at most the second. Rates in MB/s, means and percentiles of latencies.", "",
        *figures_table(found), "", "The largest:", "", *largest(found), ""])


def main() -> int:
    """Write the page; return the exit status."""
    names = sys.argv[1:] or ["virtual-time", "full"]
    if len(names) != 2:
        sys.exit(__doc__)
    path = FOLDER / "agreement.md"
    path.write_text(page(names))
    print(path.relative_to(model.PROJECT))
    return 0


if __name__ == "__main__":
    guests.finish(main)
