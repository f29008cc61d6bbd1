#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The benchmark gives the same figures, to 0.5 %, when it is run again in another
# guest; and what was measured is known afterwards, until a source changes
# timeout: 1800
"""Two guests make the same runs: an emulated SSD under two schedulers, and the
instructions of an I/O on null_blk."""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

import harness  # noqa: E402  (beside the benchmark)
import matrix  # noqa: E402

MOST_PERCENT = 0.5
# Figures of which a single request decides, or steps between fio's buckets.
COARSE = ("max", "_p")


def runs():
    """What is measured, anew."""
    times = {"RAMP": "200ms", "RUNTIME": "1500ms"}
    job, variables = matrix.mixed("randrw", "4k", 32)
    made = [harness.Run("sata", job, scheduler, variables=variables | times)
            for scheduler in ("mq-deadline", "pass")]
    variables = matrix.cost_workload("randrw", "4k", 32) | {"RUNTIME": "400ms"}
    return [*made, harness.Run(harness.NULL_BLK, "cost", "pass", {}, matrix.TIMED, variables)]


def figures_of(run):
    """The figures that have to be the same."""
    if run.job == "cost":
        return {"instructions": harness.instructions(run)}
    return {key: value for key, value in run.result["figures"].items()
            if not any(part in key for part in COARSE)}


def compare(first, second):
    """Print and judge each figure of two runs."""
    good = True
    for key, value in figures_of(first).items():
        other = figures_of(second)[key]
        off = 100 * abs(other / value - 1) if value else 100 * (other != 0)
        good &= off <= MOST_PERCENT
        print(f"{'ok  ' if off <= MOST_PERCENT else 'FAIL'}  {first.device} {first.label} "
              f"{key}: {value:.5g}, again {other:.5g} ({off:.3f} %)", flush=True)
    return good


def resumes(folder, run):
    """What is kept comes back, to the same run only."""
    store = harness.Store(folder / "store")
    assert not store.recall(runs()[0]), "knows what it never measured"
    store.keep(run)
    again = runs()[0]
    assert store.recall(again) and again.result == run.result, "forgets"
    other = runs()[0]
    other.variables["RUNTIME"] = "200ms"
    assert not store.recall(other), "takes another run's result"
    store.base[0] = "other sources"
    assert not store.recall(runs()[0]), "takes the result of other sources"
    print("ok    results are kept, and taken for the same run only")


def main():
    os.makedirs(harness.PROJECT / "build", exist_ok=True)
    with tempfile.TemporaryDirectory(dir=harness.PROJECT / "build") as name:
        folder = pathlib.Path(name)
        both = [runs(), runs()]
        progress = harness.Progress(sum(map(len, both)))
        for number, some in enumerate(both):
            harness.run_guest(some, f"guest-{number}", folder, progress)
        resumes(folder, both[0][0])
    return 0 if all([compare(*pair) for pair in zip(*both, strict=True)]) else 1


if __name__ == "__main__":
    harness.finish(main)
