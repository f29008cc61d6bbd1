#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The benchmark gives the same, to the last digit, when it is run again in another
# guest; and what was measured is known afterwards, until a source changes
# timeout: 1800
"""Two guests make the same runs: one submitter and several on emulated SSDs, with
schedulers of ours and others, and the instructions of an I/O on null_blk."""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

import harness  # noqa: E402  (beside the benchmark)
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
