#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# packages: fio python3-numpy python3-scipy
"""Inside the guest: let advise measure the cases of a plan of advise-score.py, and measure what
is true. Print a line of JSON for each case.

The truth is measured apart, on a drive made anew: all candidates in windows that are several times
as long as advise's, then those near the best one, none and the recommended one in more windows,
until their differences are known or the I/Os are used up. It has the score in common with advise,
but neither the race nor the rules of recommendation."""
import dataclasses
import json
import math
import pathlib
import random
import sys

from common import FIO, PROJECT
from ssd import Device

sys.path[:0] = [str(PROJECT / "tools/ssdctl"), str(PROJECT / "tools/ssd-probe")]

import numpy  # noqa: E402
from scipy import stats  # noqa: E402
from ssd_ctl import schedulers  # noqa: E402  (in a folder added above)
from ssd_ctl.advice import candidates, engine, rounds, workload  # noqa: E402
from ssd_probe.drive import Drive  # noqa: E402

# Limits of advise: a guest has to get by with fewer I/Os than a machine makes in a second.
PLAN = rounds.Plan(least_s=0.02, most_s=5.0, limit_s=900.0, enough=200, window_ios=800,
                   most_ios=120_000)
# The truth: windows in those of advise, windows of all candidates, of those near the best one.
LONGER, ALL, LEAST_MORE, MOST_MORE = 3, 3, 3, 40
# Near: within 8 %, or not known better. Differences ought to be known to 0.7 %.
NEAR, KNOWN = math.log(1.08), 0.007
MOST_IOS = 150_000


class Told(rounds.Rounds):
    """Rounds that print how far they are."""

    def take(self, windows, logs):
        """As before."""
        super().take(windows, logs)
        print(f"@ {self.passed():.1f} s, {self.race.rounds} rounds of {self.window_s:.3f} s, "
              f"{engine.completions(self.drive) - self.first} requests, of "
              f"{' '.join(self.race.left)}", flush=True)


def advise(drive, case, found):
    """Return what advise says, and the length of its windows."""
    load = workload.Workload("random", case["job"], case["name"])
    measured = Told(drive, drive.path, load, found,
                    dataclasses.replace(PLAN, seed=case["number"]), FIO)
    outcome = measured.run()
    return {"choice": outcome.name, "sure": outcome.sure, "rounds": measured.race.rounds,
            "sessions": measured.sessions, "ios": measured.logged_ios,
            "seconds": measured.passed(), "window_s": measured.window_s,
            "gains": {name: [*measured.gain(name), len(measured.of(name))]
                      for name in measured.race.names},
            "left": measured.race.left}


class Truth:
    """The scores of candidates in long windows."""

    def __init__(self, drive, case, found, window_s):
        self.drive, self.case = drive, case
        self.found = {candidate.name: candidate for candidate in found}
        self.load = workload.Workload("random", case["job"], case["name"])
        self.window_s = LONGER * window_s
        self.selector = candidates.Selector(drive)
        self.random = random.Random(f"truth {case['name']}")
        self.scores = {name: [] for name in self.found}
        self.ios = self.windows = 0

    def measure(self, names, count):
        """Measure @count windows of each of @names."""
        spans = []
        self.selector.select(self.found["none"])
        seed = 7_000_000 + self.windows
        with engine.Fio(FIO, self.load, self.drive, self.drive.path, seed) as fio:
            for _ in range(count):
                order = list(names)
                self.random.shuffle(order)
                spans.append({name: self.window(name) for name in order})
        logs = fio.logs()
        self.ios += sum(map(len, logs))
        self.windows += count * len(names)
        for turn in spans:
            for name in self.found:
                self.scores[name].append(self.score(logs, *turn[name]) if name in turn else None)

    def window(self, name):
        """Let a window of a candidate pass; return its begin and end in ms."""
        self.selector.select(self.found[name])
        engine.pause(self.drive, self.window_s / 3, PLAN.window_ios)
        begin = engine.milliseconds()
        engine.pause(self.drive, self.window_s, LONGER * PLAN.window_ios)
        return begin, engine.milliseconds()

    def score(self, logs, begin, end):
        """Return the score of a window."""
        return self.load.score([workload.figures(log, begin, end) for log in logs],
                               (end - begin) / 1e3)

    def difference(self, name, other):
        """Return how much better a candidate is than another one, and the half of the 95 %
        interval, by Student's t."""
        values = [mine - theirs for mine, theirs in
                  zip(self.scores[name], self.scores[other], strict=True)
                  if mine is not None and theirs is not None]
        if len(values) < 2 or name == other:
            return 0.0, 0.0 if name == other else math.inf
        error = float(numpy.std(values, ddof=1)) / math.sqrt(len(values))
        return float(numpy.mean(values)), float(stats.t.ppf(0.975, len(values) - 1)) * error

    def near(self, choice):
        """Return those that may be the best one, none, and the recommended one."""
        best = max(self.found, key=lambda name: self.difference(name, "none")[0])
        near = [name for name in self.found
                if self.difference(best, name)[0] - self.difference(best, name)[1] / 2 < NEAR]
        return list(dict.fromkeys([*near, "none", choice]))

    def wanted(self, names, choice):
        """Return how many windows each of @names needs to be known."""
        count = len(self.scores[choice])
        worst = max((self.difference(name, choice)[1] for name in names), default=0.0)
        # With few windows Student's t is large.
        worst *= 2 / float(stats.t.ppf(0.975, count - 1))
        each = self.ios / self.windows
        possible = int((MOST_IOS - self.ios) / (each * len(names)))
        needed = math.ceil(count * (worst / KNOWN) ** 2) - count
        return max(LEAST_MORE, min(needed, MOST_MORE, possible))


def truth(drive, case, found, told):
    """Return how much better each candidate is than the recommended one, and than none: mean and
    half of the interval."""
    choice = told["choice"]
    measured = Truth(drive, case, found, told["window_s"])
    measured.measure(measured.found, ALL)
    print(f"@ the truth: {measured.ios} I/Os", flush=True)
    names = measured.near(choice)
    measured.measure(names, measured.wanted(names, choice))
    return {"ios": measured.ios, "window_s": measured.window_s,
            "windows": {name: sum(score is not None for score in scores)
                        for name, scores in measured.scores.items()},
            "over_choice": {name: measured.difference(name, choice) for name in measured.found},
            "over_none": {name: measured.difference(name, "none") for name in measured.found}}


def measure(case):
    """Return what advise says of a case, and what is true."""
    with Device(case["preset"], **case["keys"]) as device:
        drive = Drive(device.path)
        found = candidates.candidates(schedulers.available(drive), case["probed"])
        told = advise(drive, case, found)
    with Device(case["preset"], **case["keys"]) as device:
        return {"told": told, "truth": truth(Drive(device.path), case, found, told)}


def main():
    """Measure the cases of the plan."""
    pathlib.Path("/proc/sys/kernel/hung_task_timeout_secs").write_text("0")
    for case in json.loads(pathlib.Path(sys.argv[1]).read_text()):
        print(f"@@ {case['name']}", flush=True)
        print(json.dumps(measure(case)), flush=True)


if __name__ == "__main__":
    main()
