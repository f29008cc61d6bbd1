#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The benchmark's store: a paper's result is found again by another run of its script, with the time
# scale that it was measured with; nothing is stored if a source has changed since the start
# timeout: 60
# quick: host
"""No guest runs: what the guest would print is made up here."""
import contextlib
import functools
import io
import json
import os
import pathlib
import shutil
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "bench"), str(TESTS / "lib")]

from checks import check  # noqa: E402  (beside this folder)
import guests  # noqa: E402  (beside the benchmark)
import model  # noqa: E402
import paper  # noqa: E402
import storage  # noqa: E402
from tables import Column, Table, labelled  # noqa: E402

LAB = []
# What scripts/lab --digest would print.
DIGESTS = {"guest": "image", "pass": "module", "bp": "module"}


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


def refused(store, run):
    """Return what the store says if it refuses to measure a run."""
    try:
        guests.run_guest([run], "guest", model.PROJECT, guests.Progress(1), store)
    except model.Failed as error:
        return str(error)
    return ""


def changes():
    """Check that no guest starts once a preset or the image is another than at the start."""
    store = storage.Store(model.PROJECT / "store")
    preset = model.PRESETS / "sata.conf"
    text = preset.read_text()
    run = model.Run("sata", "oltp", "none")
    check(not store.recall(run) and not refused(store, run) and store.recall(run),
          "unchanged sources: measured and kept")
    number, known = len(LAB), storage.circumstances([run])["presets"]["sata"]
    preset.write_text(text + "# changed\n")
    check("sata.conf" in refused(store, run), f"a changed preset: {refused(store, run)}")
    check(storage.circumstances([run])["presets"]["sata"] == known == text,
          "the preset is reported as it was measured")
    preset.write_text(text)
    ours = {name: model.Run("sata", "oltp", name) for name in ("bp", "pass")}
    for each in ours.values():
        check(not refused(store, each), f"{each.scheduler}: measured and kept")
    number = len(LAB)
    DIGESTS["pass"] = "another"
    check("image" in refused(store, ours["pass"]), "a changed scheduler")
    storage.lab_digests.cache_clear()
    later = storage.Store(store.folder)
    check(not later.recall(ours["pass"]), "its results are void")
    check(later.recall(ours["bp"]) and later.recall(run), "those of others are not")
    DIGESTS["guest"] = "another"
    check("image" in refused(store, run), f"a changed module: {refused(store, run)}")
    check(len(LAB) == number, "no guest has started")


def main():
    os.makedirs(model.PROJECT / "build", exist_ok=True)
    guests.lab = lab
    storage.lab_digests = functools.cache(lambda options: dict(DIGESTS))
    storage.first_line = lambda *command: "made up"
    with tempfile.TemporaryDirectory(dir=model.PROJECT / "build") as name:
        model.PROJECT = pathlib.Path(name)
        model.PRESETS = shutil.copytree(model.PRESETS, model.PROJECT / "presets")
        papers()
        changes()


if __name__ == "__main__":
    main()
