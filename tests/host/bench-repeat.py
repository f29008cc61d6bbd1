#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The benchmark gives the same, to the last digit, when it goes on after an
# interruption; what was measured is known afterwards, until a source changes
# timeout: 1800
"""One submitter and several on emulated SSDs, with schedulers of ours and others, and the
instructions of an I/O on null_blk: measured, then again with some of the results lost."""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

import bench  # noqa: E402  (beside the benchmark)
import harness  # noqa: E402
import matrix  # noqa: E402


def runs():
    """What is measured, anew."""
    times = {"RAMP": "200ms", "RUNTIME": "1500ms"}
    job, variables = matrix.mixed("randrw", "4k", 32)
    made = [harness.Run("sata", job, scheduler, variables=variables | times)
            for scheduler in ("mq-deadline", "pass")]
    times = {"RAMP": "75ms", "RUNTIME": "400ms"}
    made += [harness.Run("bp-transcend", job, scheduler, variables=times)
             for job in ("threads", "interference") for scheduler in ("bfq", "mq-deadline", "bp")]
    variables = matrix.cost_workload("randrw", "4k", 32) | {"RUNTIME": "400ms"}
    return [*made, harness.Run(harness.NULL_BLK, "cost", "pass", {}, matrix.TIMED, variables)]


def compare(first, second):
    """Print what came of a run, and whether it was the same again."""
    same = first.result == second.result
    figures = ", ".join(f"{key} {value:.5g}" for key, value in first.result["figures"].items()
                        if value and "_p" not in key)
    print(f"{'ok  ' if same else 'FAIL'}  {first.device} {first.job} {first.label}: {figures}",
          flush=True)
    if not same:
        print(f"      again: {second.result}")
    return same


def knows(store, run):
    """What is kept comes back, to the same run only."""
    again = runs()[0]
    assert store.recall(again) and again.result["fio"] == run.result["fio"], "forgets"
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
        store = harness.Store(folder / "store")
        first, second = ([matrix.Cell("test", run.device, run.job, [run]) for run in runs()]
                         for _ in range(2))
        assert not store.recall(second[0].runs[0]), "knows what it never measured"
        bench.measure(first, folder, store)
        # The last one of each guest, so that all are made again.
        for guest in bench.by_guest(first):
            store.path(guest[-1]).unlink()
        bench.measure(second, folder, store)
        knows(store, first[0].runs[0])
    return 0 if all([compare(*one.runs, *other.runs)
                     for one, other in zip(first, second, strict=True)]) else 1


if __name__ == "__main__":
    harness.finish(main)
