#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The benchmark's store: a paper's result is found again by another run of its script, with the time
# scale that it was measured with
# timeout: 60
"""No guest runs: what the guest would print is made up here."""
import contextlib
import io
import json
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

import guests  # noqa: E402  (beside the benchmark)
import model  # noqa: E402
import paper  # noqa: E402
import storage  # noqa: E402
from tables import Column, Table, labelled  # noqa: E402

LAB = []


def check(condition, text):
    """Print what was checked; end the test unless @condition holds."""
    print(("ok    " if condition else "FAIL  ") + text, flush=True)
    if not condition:
        sys.exit(1)


def lab(_command, _log, handle, _options, files):
    """Stand for a guest: print a result for each run of the plan."""
    plan = json.loads(dict(files)["plan.json"].read_text())
    LAB.append(plan)
    for _ in plan:
        handle(json.dumps({"figures": {"mbps": 1.5, "tps": 70.0}}))


def transactions():
    """transactions on drives of today"""
    runs = [model.Run(preset, "oltp", "none", variables={"TEST": "x"}, label=preset)
            for preset in ("sata", "pass-ssd1")]
    return [Table("Transactions", labelled(runs), [Column("tps", "tps", form="{:.1f}")])]


def made():
    """Run a paper's script; return its tables."""
    sys.argv[1:] = []
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        paper.tables_of_paper("pass", "", {"transactions": transactions}, "")
    return out.getvalue()


def papers():
    """Check that a program on a file system is not dilated, and measured once."""
    first = made()
    check([run["time_scale"] for plan in LAB for run in plan] == [1, 1],
          "programs run in the guest's time")
    check("| sata | 70.0 |" in first and "| pass-ssd1 | 70.0 |" in first, "each row is shown")
    guests_before = len(LAB)
    check(made() == first and len(LAB) == guests_before, "and found again, without a guest")


def main():
    os.makedirs(model.PROJECT / "build", exist_ok=True)
    guests.lab = lab
    storage.lab_digest = lambda options: "image"
    storage.first_line = lambda *command: "made up"
    with tempfile.TemporaryDirectory(dir=model.PROJECT / "build") as name:
        model.PROJECT = pathlib.Path(name)
        model.PRESETS = shutil.copytree(model.PRESETS, model.PROJECT / "presets")
        papers()


if __name__ == "__main__":
    main()
