#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The benchmark gives the same figures, to the last digit, when it continues after an
# interruption; a result is known afterwards, until a source changes
# check: none
# timeout: 1800
"""One submitter and several on emulated SSDs in simulated guests, with schedulers of this project
and others, a program beside readers, and in virtual time the instructions of an I/O on null_blk:
measured, then again with some of the results lost."""
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

import bench  # noqa: E402  (beside the benchmark)
import guests  # noqa: E402
import matrix  # noqa: E402
import model  # noqa: E402
import storage  # noqa: E402


def runs():
    """Return the runs, without results."""
    times = {"RAMP": "100ms", "RUNTIME": "500ms"}
    job, variables = matrix.mixed("randrw", "4k", 32)
    made = [model.Run("sata", job, "pass", variables=variables | times, simulate=True),
            model.Run("sata", "beside", "none", keys=matrix.KEPT, simulate=True,
                      variables={"BESIDE": "untar", "SEED": "1"} | times)]
    times = {"RAMP": "75ms", "RUNTIME": "400ms"}
    writer = {"WRITE": "write", "BS": "128k", "DEPTH": "16", "DELAY": "10ms"}
    made += [model.Run("bp-transcend", job, scheduler, variables=more | times, simulate=True)
             for job, scheduler, more in (("threads", "bfq", {}), ("threads", "bp", {}),
                                          ("interference", "mq-deadline", writer))]
    variables = matrix.cost_workload("randrw", "4k", 32) | {"RUNTIME": "400ms"}
    return [*made, model.Run(model.NULL_BLK, "cost", "pass", {}, matrix.TIMED, variables)]


def compare(first, second):
    """Print the figures of a run; return True if the second run has the same result."""
    same = first.result == second.result
    figures = ", ".join(f"{key} {value:.5g}" for key, value in first.result["figures"].items()
                        if value and "_p" not in key)
    print(f"{'ok  ' if same else 'FAIL'}  {first.device} {first.job} {first.label}: {figures}",
          flush=True)
    if not same:
        print(f"      again: {second.result}")
    return same


def check_recall(store, run):
    """Check that a result is recalled for the same run only."""
    again = runs()[0]
    assert store.recall(again) and again.result["window"] == run.result["window"], "forgets"
    other = runs()[0]
    other.variables["RUNTIME"] = "200ms"
    assert not store.recall(other), "takes another run's result"
    print("ok    results are kept, and taken for the same run only")


def check_changed_job(store, folder):
    """Check that a changed fio job makes the results of its runs unknown, and no others."""
    mixed, threads = runs()[0], runs()[2]
    jobs, model.JOBS = model.JOBS, folder / "jobs"
    shutil.copytree(jobs, model.JOBS)
    with open(model.JOBS / f"{mixed.job}.fio", "a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert not store.recall(mixed), "takes the result of another job"
    assert store.recall(threads), "forgets the result of an unchanged job"
    model.JOBS = jobs
    print("ok    a changed fio job makes only its own results unknown")


def check_changed_source(store, folder):
    """Check that a changed program in the guest makes all results unknown, and that the digest
    of an unchanged guest repeats."""
    program = folder / storage.PROGRAM
    place = model.GUEST / storage.PROGRAM
    program.write_bytes(place.read_bytes())
    program.chmod(place.stat().st_mode)
    option = f"--file={place.relative_to(model.PROJECT)}={program}"
    usual = storage.guest_options(simulate=True)
    options = (*usual, option)
    assert storage.lab_digests(options) == store.images[usual], "forgets the same image's results"
    program.write_text(program.read_text() + "# changed\n")
    storage.lab_digests.cache_clear()
    store.images[usual] = storage.lab_digests(options)
    assert not store.recall(runs()[0]), "takes the result of other sources"
    print("ok    a changed source makes all results unknown")


def main():
    os.makedirs(model.PROJECT / "build", exist_ok=True)
    with tempfile.TemporaryDirectory(dir=model.PROJECT / "build") as name:
        folder = pathlib.Path(name)
        store = storage.Store(folder / "store")
        first, second = ([matrix.Cell("test", run.device, run.job, [run]) for run in runs()]
                         for _ in range(2))
        assert not store.recall(second[0].runs[0]), "knows a run that was never measured"
        bench.measure(first, folder, store)
        # Lose the last result of each guest, so that every guest runs again.
        for guest in bench.by_guest(first):
            store.path(guest[-1]).unlink()
        bench.measure(second, folder, store)
        check_recall(store, first[0].runs[0])
        check_changed_job(store, folder)
        check_changed_source(store, folder)
    return 0 if all([compare(*one.runs, *other.runs)
                     for one, other in zip(first, second, strict=True)]) else 1


if __name__ == "__main__":
    guests.finish(main)
