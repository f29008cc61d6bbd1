#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# Documentation/real-drives.md is what scripts/real-drives makes of the results of real drives, and
# each result fits its schema; what does not is refused in one line; what a result says is escaped
# quick: host

import contextlib
import copy
import io
import json
import pathlib
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "scripts")]

from host import need  # noqa: E402  (in a folder added above)

need("jsonschema")

from checks import check  # noqa: E402  (in a folder added above)
from ssd import load_tool  # noqa: E402

TOOL = load_tool("real-drives")
CHOICE = {"scheduler": "bp", "tunables": {"depth": 4}, "queue": {"nr_requests": "128"}}
NONE = {"scheduler": "none", "tunables": {}, "queue": {}}
FIGURES = {"mbps": 10.0, "mean_ms": 1.0, "p99_ms": 4.0}


def candidate(name, gain, low, high, choice):
    """A candidate of a result."""
    return {"name": name, "choice": choice, "gain": gain, "low": low, "high": high,
            "verdict": "lost", "read": FIGURES, "write": {}}


RESULT = {
    "schema": 1, "version": "0.9.0", "date": "2026-01-30", "kernel": "6.12.43+deb13-amd64",
    "machine": "x86_64", "has": NONE, "hwdb": ["block:*:name:X:fwrev:*:", " SSD_IOSCHED=bp"],
    "drive": {"vendor": "ATA", "model": "Disk <b>|`x`", "firmware": "", "kind": "SATA",
              "driver": "ahci", "bytes": 10**12, "rotational": False, "logical_block": 512,
              "tags": 32},
    "advice": {"version": "0.9.0", "kernel": "6.12", "workload": "desktop", "sure": True,
               "recommended": "bp (probed)", "choice": CHOICE, "had": NONE, "confidence": 0.99,
               "minutes": 12.4, "runs": 6, "rounds": 20, "changes": 0, "rivals": [],
               "disturbed": 0, "candidates": [candidate("none", 1.0, None, None, NONE),
                                              candidate("bp (probed)", 1.2, 1.1, None, CHOICE)]}}
UNDECIDED = {"sure": False, "recommended": None, "disturbed": 2, "rivals": ["bp (probed)"]}


def program(*words):
    """Call the program in this process; return (status, errors)."""
    errors = io.StringIO()
    sys.argv = ["real-drives", *words]
    with contextlib.redirect_stderr(errors):
        return TOOL.main(), errors.getvalue()


def committed():
    """The page and the files that are in the repository."""
    status, errors = program("--check")
    check(status == 0, f"the page is what the results make {errors.strip()}")


def made(folder):
    """The page has a line for each result, in order, with what is in it as text."""
    TOOL.RESULTS, TOOL.PAGE = folder, folder.parent / "page.md"
    TOOL.PAGE.write_text("# Title\n<!-- results -->\n<!-- end -->\nmore\n")
    (folder / "README").write_text("about it")
    check("There are none yet." in TOOL.table(), "without results")
    for name, change in (("disk.json", {}), ("disk-2.json", UNDECIDED), ("bare.json", None)):
        one = copy.deepcopy(RESULT)
        one["advice"] = None if change is None else one["advice"] | change
        one["drive"]["model"] += name[4]
        (folder / name).write_text(json.dumps(one))
    check(program("--check")[0] == 1, "a page that is stale is no good")
    check(program() == (0, "") and program("--check")[0] == 0 and
          TOOL.PAGE.read_text().endswith("|\n<!-- end -->\nmore\n"), "it is written")
    lines = [line for line in TOOL.PAGE.read_text().splitlines() if line.startswith("| ATA")]
    check(len(lines) == 3 and "Disk \\<b\\>\\|\\`x\\`" in lines[0], f"{lines}")
    check(any("| desktop | bp \\(probed\\) | +10 % to ? | 12 | [disk.json](results/" in line
              for line in lines), "the answer, its gain, the file")
    check(any("undecided, bp \\(probed\\) leads (disturbed)" in line for line in lines) and
          any("| not measured |" in line for line in lines), "undecided, not measured")


def refused(folder):
    """What is no result is named, in one line."""
    for name, text in (
            ("Serial S1.json", json.dumps(RESULT)), ("x.txt", "{}"), ("a.json", "{"),
            ("a.json", "\xff"), ("a.json", "[" * 100000), ("a.json", "{}"),
            *(("a.json", json.dumps(RESULT | change)) for change in (
                {"serial": "S1"}, {"schema": 2}, {"date": "today"}, {"hwdb": ["a\nb"]},
                {"version": "0.9\n"}, {"date": "2026-01-30\n"},
                {"has": NONE | {"scheduler": "bp\n"}},
                {"drive": RESULT["drive"] | {"serial": "S1"}},
                {"drive": RESULT["drive"] | {"model": "a\u202eb"}},
                {"drive": RESULT["drive"] | {"bytes": -1}}, {"has": NONE | {"scheduler": "$(x)"}},
                {"advice": RESULT["advice"] | {"workload": "/home/x.fio"}},
                {"advice": RESULT["advice"] | {"on": "/home/x"}},
                {"advice": RESULT["advice"] | {"candidates": []}},
                {"advice": RESULT["advice"] | {"confidence": 2}}))):
        (folder / name).write_bytes(text.encode("latin-1", "replace"))
        status, errors = program("--check")
        check(status == 1 and errors.count("\n") == 1 and name in errors, errors.strip()[:150])
        (folder / name).unlink()


def main():
    committed()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place, "results")
        folder.mkdir()
        made(folder)
        refused(folder)


if __name__ == "__main__":
    main()
