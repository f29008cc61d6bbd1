#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Write Documentation/results/cost.md: how long a scheduler holds its lock, what it takes of
memory, and what its module is made of.

    tests/run lock-holds scale; tests/bench/cost.py build/RELEASE LOG...

LOG: the logs of these tests, which print a line of JSON for each result. build/RELEASE: the
modules.
"""
import argparse
import json
import math
import pathlib
import re
import sys

import guests
import model
import sizes
from tables import markdown

PAGE = model.PROJECT / "Documentation/results/cost.md"
NAMES = ["tide", *model.ours()]
# {column: names of the functions that take the lock}
PATHS = {"insert": r".*insert_requests$", "dispatch": r".*dispatch_request$",
         "merge": r".*(bio|try)_merge$", "debugfs": r".*(_show|_show_rows|_start|_row)$",
         "setting, other": r".*"}
HEAD = """# What a scheduler costs beside instructions

By `tests/bench/cost.py`, from the tests `lock-holds` and `scale`: stock kernel 6.12, virtual time,
an instruction is a nanosecond. The same commit gives the same figures.
"""
HOLDS = """## How long the lock is held

ns, the longest hold, with so many 4k requests queued on a drive of 64 TB. Insertions are of up to
32 requests, as a plug has them. pass has 16,384 regions, piq 1,024 units, bp (base fair) 64
processes. A hold in which an interrupt is served does not count, unless all are such (settings,
files of debugfs). "merge" is the search for a queued request that a bio extends.
"""
GROWTH = """## What grows with the number of requests

ns, the mean hold of a path. The exponent is that of the growth between the first and the last
column: 0 is constant, 1 is proportional.
"""
MEMORY = """## Memory

Bytes of a device (null_blk, 1 TB, 256 scheduler tags) and of one more tag, free memory before and
after {devices} devices are switched at once, and how long this takes. Most is the block layer's
tags and their requests, which any scheduler has.
"""
SIZES = """## What the modules are made of

Bytes of machine code by the source file in which it is written, also if it is inlined. tide is the
core alone (`tests/tide/`). What a policy has no hook for is compiled out: see `tmpl/seal.h` and
`tmpl/bypass.h`.
"""


def lines(logs: list[pathlib.Path]) -> list[dict]:
    """Return the results in logs; of two of the same, the last."""
    found = {}
    for log in logs:
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith("{"):
                row = json.loads(line)
                what = row.get("queued", row.get("large"))
                found[row.get("scale") or row["scheduler"], what] = row
    return list(found.values())


def by_path(holds: dict[str, list[int]], at: int) -> dict[str, int]:
    """Return {column: the largest number at an index of a function's row}."""
    found = dict.fromkeys(PATHS, 0)
    for name, row in holds.items():
        path = next(path for path, names in PATHS.items() if re.fullmatch(names, name))
        found[path] = max(found[path], row[at])
    return found


def held(results: list[dict]) -> list[str]:
    """Return the lines about holds of the lock."""
    rows = sorted((row for row in results if "holds" in row), key=lambda row: row["queued"])
    longest = [[f"{row['scheduler']}, {row['queued']} queued",
                *(f"{ns:,}" if ns else "" for ns in by_path(row["holds"], 2).values())]
               for row in rows]
    levels = sorted({row["queued"] for row in rows})
    grown = []
    for name in dict.fromkeys(row["scheduler"] for row in rows):
        of_name = {row["queued"]: by_path(row["holds"], 1) for row in rows
                   if row["scheduler"] == name}
        for path in PATHS:
            means = [of_name.get(level, {}).get(path, 0) for level in levels]
            known = [(level, mean) for level, mean in zip(levels, means, strict=True) if mean]
            if len(known) > 1:
                grown.append([f"{name}, {path}", *(f"{mean:,}" if mean else "" for mean in means),
                              f"{exponent(known):.2f}"])
    return [HOLDS, *markdown(["", *PATHS], longest), "", GROWTH,
            *markdown(["", *(f"{level:,}" for level in levels), "exponent"], grown), ""]


def exponent(known: list[tuple[int, int]]) -> float:
    """Return the exponent of the growth of pairs (requests, ns)."""
    (few, short), (many, long) = known[0], known[-1]
    return math.log(long / short) / math.log(many / few)


def remembered(results: list[dict]) -> list[str]:
    """Return the lines about memory."""
    rows = [row for row in results if "scale" in row]
    if not rows:
        return []
    return [MEMORY.format(devices=rows[0]["devices"]), *markdown(
        ["", "bytes of a device", "of a tag more", "switch of all, s"],
        [[row["scale"], f"{row['device']:,}", f"{row['request']:.0f}", f"{row['seconds']:.3f}"]
         for row in rows]), ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("log", type=pathlib.Path, nargs="+")
    args = parser.parse_args()
    results = lines(args.log)
    if not results:
        sys.exit("error: no results in these logs")
    text = [HEAD, *held(results), *remembered(results), SIZES,
            *markdown(*sizes.table(args.build, NAMES)), "", "Hooks of the policies:", "",
            *markdown(["", *NAMES], sizes.hook_rows(NAMES)), ""]
    PAGE.write_text("\n".join(text))
    return 0


if __name__ == "__main__":
    guests.finish(main)
