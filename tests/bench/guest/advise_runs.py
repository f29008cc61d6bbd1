#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# packages: python3-numpy python3-scipy
"""Inside the guest: let advise measure the cases of a plan of advise-score.py, and measure what
is true. Print a line of JSON for each case.

The module ioload makes the load, because fio takes ten times as long in a simulated guest; it logs
each I/O as fio does.

The truth is measured apart: each candidate has a drive of its own, made anew, on which the load
starts again and again, with the threads in another order. First all candidates have some such runs,
then those that may be better than the recommended one by more than the margin, until both verdicts
of advise-score.py are clear or a limit is reached. It has the score in common with advise, but
neither the rounds, in which candidates take turns, nor the race, nor the rules of
recommendation."""
import dataclasses
import json
import math
import pathlib
import random
import sys
import time

import load as ioload
from common import PROJECT, command
from ssd import Device

sys.path[:0] = [str(PROJECT / "tools/ssdctl"), str(PROJECT / "tools/common")]

import numpy  # noqa: E402
from ssd_ctl import advise_options, schedulers  # noqa: E402  (in a folder added above)
from ssd_common.drive import Drive  # noqa: E402
from ssd_ctl.advice import (  # noqa: E402
    candidates, engine, rounds, sequential, target, workload)

# Limits of advise: its default, but for the shortest window and the I/Os: a guest has to get by
# with fewer than a fast drive makes. Of undecided cases they may be raised (--patience).
# A process has the log of a session in memory, of which the host maps a limited number of pages.
PLAN = rounds.Plan(least_s=0.05, limit_s=advise_options.MINUTES * 60, most_ios=1_500_000,
                   most_logged=400_000)
# The first runs on a drive, which do not count, in those that count.
WARM = 0.4
# The time in which a run settles before its window, in the longest mean latency, if there is time;
# not shorter than in advise.
SETTLED = 2
# Runs of each candidate at first; later at least, and in those before.
FIRST, RUNS, MORE = 10, 4, 1
# Limits of the truth, and the part of them that is for the first runs.
MOST_IOS, MOST_S = 1_500_000, 24 * 3600
AT_FIRST = 0.6
# Probability that a verdict is false, at any of the LOOKS. Half of it is for candidates that are
# dropped.
ERROR, LOOKS = 0.05, 16
# What counts: on which side of this a difference is.
MARGIN = math.log(sequential.MARGIN)
RIGHT, WRONG, UNCLEAR = "right", "wrong", "unclear"


def whole(drive):
    """Return a drive as what is measured on."""
    return target.Target(drive.path, drive.size, "drive", -1)


class Load(engine.Fio):
    """The threads of ioload with a load on a drive, in place of fio, in an order that the seed
    gives: where the drive has too few tags, those that start first may hold them. With seeds that
    follow each other each thread is the first in turn."""

    def __init__(self, load, drive, seed):
        super().__init__([], load, drive, whole(drive), seed)
        # The job and the bytes of an I/O of each thread.
        self.jobs, self.blocks = [], []

    def __enter__(self):
        if not ioload.IOLOAD.exists():
            command("modprobe", "ioload")
        made = []
        for number, job in enumerate(self.load.jobs):
            options = self.load.options(job)
            for thread in range(int(options.pop("numjobs", 1))):
                settings = ioload.settings(dict(options), thread, self.drive.size)
                made.append((number, settings | {"seed": self.seed * 1000 + len(made)}))
        first = made.pop(self.seed % len(made))
        random.Random(self.seed).shuffle(made)
        for number, settings in [first, *made]:
            ioload.add(settings)
            self.jobs.append(number)
            self.blocks.append(settings["block"])
        ioload.put("device", self.drive.path)
        ioload.put("measure", 1)
        ioload.put("run", 1)
        self.wait_for_first()
        return self

    def __exit__(self, *_):
        try:
            ioload.put("run", 0)
        finally:
            ioload.put("measure", 0)

    def check_runs(self):
        """Do nothing: the threads do not end."""

    def check(self):
        """Do nothing: the threads open no files."""

    def logs(self):
        """Return the logs of each job, rows of engine.COLUMNS."""
        records = numpy.frombuffer((ioload.IOLOAD / "log").read_bytes(), "u8").reshape(-1, 2)
        thread = (records[:, 1] % ioload.WRITE >> ioload.THREAD).astype("i8")
        rows = numpy.stack([records[:, 0] // engine.MS, records[:, 1] & ioload.LATENCY,
                            records[:, 1] // ioload.WRITE,
                            numpy.array(self.blocks, "u8")[thread]], 1).astype("i8")
        job = numpy.array(self.jobs)[thread]
        return [rows[job == number] for number in range(len(self.load.jobs))]


class Told(rounds.Rounds):
    """Rounds with ioload, which print how far they are."""

    def fio(self):
        """Return the load with other addresses than before."""
        self.sessions += 1
        return Load(self.load, self.drive, self.plan.seed * 1000 + self.sessions)

    def take(self, windows, logs):
        """Evaluate the windows of a run."""
        super().take(windows, logs)
        print(f"@ {self.passed():.1f} s, {self.race.runs} runs, windows of {self.window_s:.3f} s, "
              f"{self.ios()} I/Os, of {' '.join(self.race.running())}", flush=True)


def told_of(drive, case, found):
    """Return what advise says, and the length of its windows."""
    load = workload.Workload("random", case["job"], case["name"])
    measured = Told(drive, whole(drive), load, found,
                    dataclasses.replace(PLAN, seed=case["number"],
                                        limit_s=case["patience"] * PLAN.limit_s,
                                        most_ios=case["patience"] * PLAN.most_ios), [])
    outcome = measured.run()
    return {"choice": outcome.name, "sure": outcome.sure, "rounds": measured.round,
            "runs": measured.race.runs, "changes": measured.race.starts - 1,
            "sessions": measured.sessions, "ios": measured.ios(),
            "seconds": measured.passed(), "window_s": measured.window_s,
            "settle_s": measured.settle_s,
            "gains": {name: [*measured.gain(name), len(measured.of(name))]
                      for name in measured.race.names},
            "waits_s": measured.waits_s(),
            "scores": {name: list(measured.race.scores_of(name)) for name in measured.race.names},
            "left": measured.race.left, "aside": measured.race.aside}


class Truth:
    """The scores of candidates in runs, each alone on a drive; how they compare with the one called
    @choice. All candidates have the same drive, and in a run the same addresses and the same order
    of threads, so that chance treats them alike, and those that do the same have the same score.
    What depends on how a load starts is in the bounds, because each run starts it. @before: what an
    earlier truth has left unclear, {}: none."""

    def __init__(self, case, found, told, before):
        self.case, self.choice = case, told["choice"]
        self.found = {candidate.name: candidate for candidate in found}
        self.load = workload.Workload("random", case["job"], case["name"])
        # As long as the limits allow.
        possible = min(MOST_IOS * told["seconds"] / told["ios"], MOST_S)
        run = AT_FIRST * possible / len(found) / FIRST / (1 + WARM)
        # Advise has longer windows if it was allowed more.
        least = [told[key] / case["patience"] for key in ("settle_s", "window_s")]
        self.settle_s = max(least[0], min(SETTLED * told["waits_s"], run / 2))
        self.window_s = max(run - self.settle_s, least[1])
        self.race = sequential.Race(list(self.found), self.load.weights())
        self.race.bounds_by = sequential.student
        # After an earlier truth of the same choice: without those that were dropped, but with what
        # all are compared with.
        left = before.get("left", self.found)
        self.left = [name for name in self.found if name in left or name == "none"]
        self.looks = before.get("looks", 0)
        self.seed = 7_000_000 + 10_000 * self.looks
        self.ios = self.starts = 0
        self.most_ios, self.most_s = case["longer"] * MOST_IOS, case["longer"] * MOST_S

    def runs(self, count):
        """Give each candidate that is left @count runs that count."""
        warm = math.ceil(WARM * count)
        served = {name: self.alone(self.found[name], warm + count)[warm:] for name in self.left}
        for run in zip(*served.values(), strict=True):
            self.race.add(dict(zip(served, run, strict=True)))
        self.starts += warm + count

    def alone(self, candidate, count):
        """Return what a candidate has served in each of @count runs, on a new drive."""
        with Device(self.case["preset"], **self.case["keys"]) as device:
            drive = Drive(device.path)
            candidates.Selector(drive).select(candidate)
            first = self.seed + self.starts
            return [self.run(drive, first + number)[None] for number in range(count)]

    def run(self, drive, seed):
        """Return what is served in a run."""
        with Load(self.load, drive, seed) as load:
            time.sleep(self.settle_s)
            begin = engine.milliseconds()
            time.sleep(self.window_s)
            end = engine.milliseconds()
        logs = load.logs()
        self.ios += sum(map(len, logs))
        return self.load.served([workload.figures(log, begin, end) for log in logs],
                                (end - begin) / 1e3)

    def bounds(self, name, other, share=1):
        """Return how much better a candidate is than another one, by Student's t. Each bound errs
        with a probability of ERROR / 2 / @share at any of the LOOKS."""
        return self.race.bounds(name, other, ERROR / LOOKS / share)

    def over(self, other):
        """Return how much better each candidate is than another one: mean and half of the
        interval."""
        found = {name: self.bounds(name, other) for name in self.found}
        return {name: (each.mean, max(each.high - each.mean, each.mean - each.low))
                for name, each in found.items()}

    def drop(self):
        """Leave out those that are certainly worse than the best one, and those that are known not
        to be better than the choice by more than the MARGIN. None stays until it is known, too."""
        best = max(self.left, key=lambda name: self.bounds(name, self.choice).mean)
        known = {name for name in self.left
                 if name != best and self.bounds(best, name, len(self.found)).low > 0 or
                 self.bounds(name, self.choice).high <= MARGIN}
        if self.safe() == UNCLEAR:
            known.discard("none")
        self.left = [name for name in self.left if name == self.choice or name not in known]

    def verdict(self, names, share):
        """Return whether the choice is known not to be worse than any of these by more than the
        MARGIN, or known to be. If one of them is better by more, this one has to be judged wrongly
        for RIGHT, so its error is not divided (the intersection-union test; Berger, "Multiparameter
        hypothesis testing and acceptance sampling", 1982). Any of @share candidates can be judged
        wrongly for WRONG."""
        if any(self.bounds(name, self.choice, share).low > MARGIN for name in names):
            return WRONG
        return RIGHT if all(self.bounds(name, self.choice).high <= MARGIN
                            for name in names) else UNCLEAR

    def safe(self):
        """Return the verdict on whether the choice is no worse than none."""
        return self.verdict(["none"], 1)

    def verdicts(self):
        """Return the verdicts on whether the choice is near the best one, and no worse than
        none."""
        return {"near_best": self.verdict(self.left, len(self.found)), "safe": self.safe()}

    def measure(self):
        """Measure until all is known or the I/Os are used up."""
        began, count = time.monotonic(), FIRST
        while count >= 1:
            before, since, had = self.ios, time.monotonic(), len(self.left)
            self.runs(count)
            now = time.monotonic()
            self.drop()
            self.looks += 1
            if UNCLEAR not in self.verdicts().values() or self.looks >= LOOKS:
                break
            share = len(self.left) / had / count
            count = min(max(RUNS, round(MORE * self.race.runs)),
                        int((self.most_ios - self.ios) / share / max(1, self.ios - before)),
                        int((self.most_s - now + began) / share / (now - since)))
            print(f"@ the truth: {self.ios} I/Os, {self.race.runs} runs, left "
                  f"{' '.join(self.left)}", flush=True)


def truth(case, found, told):
    """Return how much better each candidate is than the recommended one, and than none: mean and
    half of the interval; and the verdicts."""
    before = case["truth"]
    if before.get("looks", 0) >= LOOKS:
        return before
    measured = Truth(case, found, told, before)
    measured.measure()
    made = {"runs": {name: len(served) for name, served in measured.race.sums.items()},
            "over_choice": measured.over(told["choice"]), "over_none": measured.over("none")}
    # Of candidates that were dropped before, the figures of then.
    for name in [name for name, runs in made["runs"].items() if before and not runs]:
        for figures in made:
            made[figures][name] = before[figures][name]
    return {"ios": measured.ios, "window_s": measured.window_s, "left": measured.left,
            "looks": measured.looks, **made, **measured.verdicts(),
            "served": {name: numpy.array(served).tolist()
                       for name, served in measured.race.sums.items()}}


def measure(case):
    """Return what advise says of a case, and what is true."""
    with Device(case["preset"], **case["keys"]) as device:
        drive = Drive(device.path)
        found = candidates.candidates(schedulers.available(drive), case["probed"])
        told = case["told"] or told_of(drive, case, found)
    return {"told": told, "truth": truth(case, found, told)}


def main():
    """Measure the cases of the plan."""
    pathlib.Path("/proc/sys/kernel/hung_task_timeout_secs").write_text("0")
    for case in json.loads(pathlib.Path(sys.argv[1]).read_text()):
        print(f"@@ {case['name']}", flush=True)
        print(json.dumps(measure(case)), flush=True)


if __name__ == "__main__":
    main()
