# SPDX-License-Identifier: GPL-2.0
"""Rounds of windows, until the race is decided or the time is over.

In each round every candidate that is left has one window, in random order, after a time in which
it settles. fio is started for some rounds at a time (a session), because its start takes long. How
long a window is follows from the load under none: so long that each job does enough in it, within
the plan's limits. The first session begins with a guess by the drive's own count; if a job did too
little in it, it was the pilot, its figures are dropped and the windows become longer.
"""
import collections.abc
import dataclasses
import math
import random
import time

import numpy

from ssd_ctl import CtlError
from ssd_ctl.advice import engine, workload
from ssd_ctl.advice.candidates import Candidate, Selector
from ssd_ctl.advice.sequential import NONE, Outcome, Race
from ssd_probe.drive import Drive

# Part of the I/Os that each job ought to have in a window with which the pilot is content.
CONTENT = 0.4
# Share of a window in which a candidate settles before it, and the s that it takes at least.
SETTLE, LEAST_SETTLE_S = 0.5, 0.02
# Rounds of the first session, and of any later one at least.
LEAST_ROUNDS = 4
# I/Os that fio logs in a session, at most.
MOST_LOGGED = 5_000_000
GUESS_S = 0.5


@dataclasses.dataclass
class Plan:
    """How long to measure: limits of a window and of all, in s. @enough: I/Os of each job that a
    window ought to have, @most_ios: limit of all I/Os, @seed: of the order and of the load's
    addresses."""
    least_s: float = 0.2
    most_s: float = 10.0
    limit_s: float = 600.0
    enough: int = 200
    most_ios: float = math.inf
    seed: int = 1


@dataclasses.dataclass
class Measured:
    """A window and what each job did in it, by direction; and its score."""
    window: engine.Window
    jobs: list[dict[int, workload.Figures]]
    score: float


class Rounds:
    """The measurement of @candidates with a @load on a @place of a @drive. @told: is called with
    this object now and then."""

    def __init__(self, drive: Drive, place: str, load: workload.Workload,
                 candidates: list[Candidate], plan: Plan, command: list[str],
                 told: collections.abc.Callable = lambda rounds: None):
        self.drive, self.place, self.load, self.plan = drive, place, load, plan
        self.command, self.told = command, told
        self.candidates = {candidate.name: candidate for candidate in candidates}
        self.race = Race(list(self.candidates))
        self.selector = Selector(drive)
        self.random = random.Random(plan.seed)
        self.measured: list[Measured] = []
        self.window_s = self.settle_s = 0.0
        self.sessions = self.round = 0
        self.began, self.first = time.monotonic(), engine.completions(drive)
        self.outcome: Outcome | None = None
        # Bytes and I/Os of all sessions by fio's count, within its logs.
        self.logged_bytes = self.logged_ios = 0

    def passed(self) -> float:
        """Return the s since the begin."""
        return time.monotonic() - self.began

    def ends(self) -> bool:
        """Return true if another round would be beyond a limit."""
        round_s = (self.window_s + self.settle_s) * len(self.race.left)
        done = engine.completions(self.drive) - self.first
        rate = done / self.passed() if self.passed() else 0.0
        return (self.passed() + round_s > self.plan.limit_s or
                done + rate * round_s > self.plan.most_ios)

    def rounds_wanted(self) -> int:
        """Return the rounds of the next session: more the longer the race lasts."""
        return max(LEAST_ROUNDS, self.race.rounds // 2)

    def run(self) -> Outcome:
        """Measure; return what to recommend."""
        while not self.outcome:
            windows, logs = self.session()
            longer = self.longer(logs) if not self.measured else 0.0
            if longer > self.window_s and self.passed() < self.plan.limit_s / 2:
                self.set_window(longer)
                continue
            self.take(windows, logs)
            self.race.drop()
            self.outcome = self.race.decided()
            if not self.outcome and self.ends():
                self.outcome = self.race.last()
            self.told(self)
        return self.outcome

    def session(self) -> tuple[list[engine.Window], list[numpy.ndarray]]:
        """Let fio run for some rounds; return the windows, and fio's logs."""
        self.sessions += 1
        windows = []
        self.selector.select(self.candidates[NONE])
        seed = self.plan.seed * 1000 + self.sessions
        with engine.Fio(self.command, self.load, self.drive, self.place, seed) as fio:
            count = engine.completions(self.drive)
            if not self.window_s:
                self.guess()
            for _ in range(self.rounds_wanted()):
                if windows and self.ends():
                    break
                windows += self.one_round(fio)
                if engine.completions(self.drive) - count > MOST_LOGGED:
                    break
            self.told(self)
            fio.check()
        return windows, fio.logs()

    def one_round(self, fio: engine.Fio) -> list[engine.Window]:
        """Give each candidate a window; return them."""
        order = list(self.race.left)
        self.random.shuffle(order)
        made = []
        for name in order:
            self.selector.select(self.candidates[name])
            time.sleep(self.settle_s)
            fio.check()
            made.append(self.watched(engine.Window(name, self.round)))
            self.told(self)
        self.round += 1
        return made

    def watched(self, window: engine.Window) -> engine.Window:
        """Let a window pass."""
        before = engine.counters(self.drive)
        window.begin = engine.milliseconds()
        time.sleep(self.window_s)
        window.end = engine.milliseconds()
        after = engine.counters(self.drive)
        window.kernel = (after[0] - before[0], after[1] - before[1])
        return window

    def guess(self):
        """Take the length of a window from what the drive does now, as if the jobs did alike."""
        count, begin = engine.completions(self.drive), time.monotonic()
        wanted, done, passed = self.plan.enough * len(self.load.jobs), 0, 0.0
        while done < wanted / 4 and passed < self.plan.most_s / 4:
            time.sleep(min(GUESS_S, self.plan.least_s))
            done = engine.completions(self.drive) - count
            passed = time.monotonic() - begin
        self.set_window(wanted * passed / done if done else self.plan.most_s)

    def set_window(self, seconds: float):
        """Set the length of windows within the limits, and with it the time to settle."""
        self.window_s = min(max(seconds, self.plan.least_s), self.plan.most_s)
        self.settle_s = max(SETTLE * self.window_s, LEAST_SETTLE_S)

    def longer(self, logs: list[numpy.ndarray]) -> float:
        """Return the length of a window that the load needs, 0 if the present one will do."""
        seconds = max((int(numpy.ptp(log[:, 0])) for log in logs if len(log)), default=0) / 1e3
        slowest = min(map(len, logs))
        if not slowest:
            return self.plan.most_s
        needed = seconds / slowest
        enough = self.plan.enough
        return 0.0 if self.window_s >= CONTENT * enough * needed else enough * needed

    def take(self, windows: list[engine.Window], logs: list[numpy.ndarray]):
        """Evaluate the windows of a session."""
        self.logged_bytes += sum(int(log[:, 3].sum()) for log in logs)
        self.logged_ios += sum(map(len, logs))
        rounds: dict[int, dict[str, float]] = {}
        for window in windows:
            jobs = [workload.figures(log, window.begin, window.end) for log in logs]
            score = self.load.score(jobs, window.seconds)
            self.measured.append(Measured(window, jobs, score))
            rounds.setdefault(window.round, {})[window.candidate] = score
        for scores in rounds.values():
            self.race.add(scores)
        if not windows:
            raise CtlError("the time is too short for a round: raise --minutes")

    def left_s(self) -> float:
        """Return the s that are left, at most."""
        return max(0.0, self.plan.limit_s - self.passed())

    def of(self, name: str) -> list[Measured]:
        """Return the windows of a candidate."""
        return [one for one in self.measured if one.window.candidate == name]

    def gain(self, name: str) -> tuple[float, float, float]:
        """Return how much better a candidate is than none, as a factor, and its bounds."""
        bounds = self.race.bounds(name, NONE)
        low, high = (math.exp(min(value, 50)) for value in (bounds.low, bounds.high))
        return math.exp(bounds.mean), low, high
