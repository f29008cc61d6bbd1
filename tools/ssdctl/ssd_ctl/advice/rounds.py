# SPDX-License-Identifier: GPL-2.0
"""Runs of the load, until the race is decided or the time is over.

In each run fio is started anew, for each phase of the load, and makes RUN rounds. In a round every
candidate that runs has one window, after a time in which it settles: in random order, in the next
round in the reverse one, so that what changes steadily during a run treats all alike. All runs are
equal, because a run is one observation of the race (sequential.py). How long a window is follows
from a pilot, the load under none: so long that each job does enough in it, within the plan's
limits, and not so long that there would be few runs. As far as they allow, a candidate settles
longer than any I/O waits: until then, it has not shown what it does with those that wait longest.
"""
import collections.abc
import dataclasses
import math
import random
import time

import numpy

from ssd_common.drive import Drive
from ssd_ctl.advice import engine, workload
from ssd_ctl.advice.candidates import Candidate, Selector
from ssd_ctl.advice.sequential import NONE, Outcome, Race
from ssd_ctl.advice.target import Target

# The pilot lasts PILOT_WINDOWS of the shortest windows, and on until the jobs have done PILOT times
# the I/Os of a window, but no longer than the longest window.
PILOT, PILOT_WINDOWS = 2, 5
# The time in which a candidate settles before a window: its share of a window at first, the s that
# it takes at least, and its share of a turn, which is both, at most.
SETTLE, LEAST_SETTLE_S, MOST_SETTLE = 0.5, 0.02, 0.5
# Rounds of a run. Its start costs little of the time then, and there are many runs.
RUN = 2
# Rounds for which there ought to be time, in twelve runs. Bounds from a few long windows are much
# wider than those from as much time in more windows.
ROUNDS = 24
# So many flushes in the pilot show that the drive has them.
FLUSHES = 10
# The share of the limits that is for finding how long a window is.
LENGTHEN = 1 / 8
# The part by which the I/Os of a job with a rate may differ under the candidates.
UNEVEN = 0.05
# Logarithm of the largest gain that is told: numbers above 2^63 are not read from a file.
MOST_GAIN = 40


@dataclasses.dataclass
class Plan:
    """How long to measure: limits of a window and of all, in s. @enough: I/Os of each job that a
    window ought to have, @most_ios: limit of all I/Os, @most_logged: of the lines in the logs of a
    session, @seed: of the order and of the load's addresses."""
    least_s: float = 0.2
    most_s: float = 10.0
    limit_s: float = 600.0
    enough: int = 200
    most_ios: float = math.inf
    most_logged: int = 5_000_000
    seed: int = 1


@dataclasses.dataclass
class Measured:
    """A window and what each job did in it, by direction."""
    window: engine.Window
    jobs: list[dict[int, workload.Figures]]


class Rounds:
    """The measurement of @candidates with a @load on a @place of a @drive. @told: is called with
    this object now and then."""

    def __init__(self, drive: Drive, place: Target, load: workload.Workload,
                 candidates: list[Candidate], plan: Plan, command: list[str],
                 told: collections.abc.Callable = lambda rounds: None):
        self.drive, self.place, self.load, self.plan = drive, place, load, plan
        self.command, self.told = command, told
        self.candidates = {candidate.name: candidate for candidate in candidates}
        self.race = Race(list(self.candidates), load.weights())
        self.selector = Selector(drive)
        self.random = random.Random(plan.seed)
        self.measured: list[Measured] = []
        self.window_s = self.settle_s = 0.0
        # Seconds of a candidate in a round that leave time for ROUNDS rounds.
        self.turn_s = 0.0
        self.sessions = self.round = self.windows = 0
        # Most lines that the logs had in a second: a job may do I/O that does not reach the drive.
        self.lines_s = 0.0
        # The s and the I/Os before the first round.
        self.before_s = self.before_ios = 0.0
        self.began, self.first = time.monotonic(), engine.completions(drive)
        self.outcome: Outcome | None = None

    def passed(self) -> float:
        """Return the s since the begin."""
        return time.monotonic() - self.began

    def ios(self) -> int:
        """Return the I/Os since the begin, by the kernel's count; of those merged each counts."""
        return engine.completions(self.drive) - self.first

    def used(self) -> float:
        """Return the share of the limits that is used up."""
        return max(self.passed() / self.plan.limit_s, self.ios() / self.plan.most_ios)

    def cost(self) -> tuple[float, float]:
        """Return the s and the I/Os of another run."""
        share = RUN * len(self.race.running()) * len(self.load.phases) / max(self.windows, 1)
        return (share * (self.passed() - self.before_s), share * (self.ios() - self.before_ios))

    def ends(self) -> bool:
        """Return true if another run would be beyond a limit. There has been one."""
        seconds, ios = self.cost()
        return (self.passed() + seconds > self.plan.limit_s or
                self.ios() + ios > self.plan.most_ios)

    def runs_left(self) -> int:
        """Return for how many more runs there is time."""
        seconds, ios = self.cost()
        return int(max(0.0, min((self.plan.limit_s - self.passed()) / max(seconds, 1e-9),
                                (self.plan.most_ios - self.ios()) / max(ios, 1e-9))))

    def run(self) -> Outcome:
        """Measure; return what to recommend."""
        self.pilot()
        self.lengthen()
        self.before_s, self.before_ios = self.passed(), self.ios()
        self.round = self.windows = 0
        while not self.outcome:
            self.take(self.one_run())
            self.outcome = self.race.after(self.used(), self.ends(), self.runs_left())
            self.told(self)
        return self.outcome

    def fio(self, phase: int) -> engine.Fio:
        """Return fio with other addresses than before."""
        self.sessions += 1
        return engine.Fio(self.command, self.load, self.drive, self.place,
                          self.plan.seed * 1000 + self.sessions, phase)

    def one_run(self) -> list[Measured]:
        """Let each phase of the load run alone; return the windows."""
        first, made = self.round, []
        for phase in range(len(self.load.phases)):
            self.round = first
            made += self.seen(*self.session(RUN, phase))
        return made

    def logs_of(self, fio: engine.Fio, seconds: float) -> list[numpy.ndarray]:
        """Return the logs of an fio that has ended, which ran for some @seconds."""
        logs = fio.logs()
        self.lines_s = max(self.lines_s, sum(map(len, logs)) / seconds)
        return logs

    def session(self, rounds: int, phase: int
                ) -> tuple[list[engine.Window], list[numpy.ndarray]]:
        """Let fio run for some rounds of a phase; return the windows, and fio's logs."""
        windows = []
        with self.fio(phase) as fio:
            began = time.monotonic()
            order = self.race.running()
            self.random.shuffle(order)
            for _ in range(rounds):
                windows += self.one_round(fio, order, phase)
                order.reverse()
                # A run is cut short only for want of memory.
                if (time.monotonic() - began) * self.lines_s > self.plan.most_logged:
                    break
            self.told(self)
            fio.check()
            seconds = time.monotonic() - began
        return windows, self.logs_of(fio, seconds)

    def one_round(self, fio: engine.Fio, order: list[str], phase: int) -> list[engine.Window]:
        """Give each candidate a window of a phase, in this order; return them."""
        made = []
        for name in order:
            self.selector.select(self.candidates[name])
            time.sleep(self.settle_s)
            fio.check()
            self.place.check()
            made.append(self.watched(engine.Window(name, self.round, phase=phase)))
            self.windows += 1
            self.told(self)
        self.round += 1
        return made

    def watched(self, window: engine.Window) -> engine.Window:
        """Let a window pass."""
        before = engine.moved(self.drive), engine.flushed(self.drive)
        window.begin = engine.milliseconds()
        time.sleep(self.window_s)
        window.end = engine.milliseconds()
        after = engine.moved(self.drive), engine.flushed(self.drive)
        window.kernel, window.flushes = (
            (last[0] - first[0], last[1] - first[1])
            for first, last in zip(before, after, strict=True))
        return window

    def pilot(self):
        """Find the length of a window: so long that the slowest job of each phase does enough under
        none; and what counts: flushes may not reach the drive, as without a cache or barriers."""
        self.selector.select(self.candidates[NONE])
        made = [self.piloted(phase) for phase in range(len(self.load.phases))]
        needed = max(self.plan.enough * seconds / max(min(done), 1) for seconds, done in made)
        self.window_s = min(needed, self.plan.most_s)
        self.settle_s = SETTLE * self.window_s
        self.fit(sum(seconds for seconds, _ in made), sum(sum(done) for _, done in made))
        self.race = Race(list(self.candidates), self.load.weights())

    def piloted(self, phase: int) -> tuple[float, list[int]]:
        """Let a phase run; return for how many s, and the I/Os of each of its jobs."""
        jobs = self.load.phases[phase]
        with self.fio(phase) as fio:
            flushes = engine.flushed(self.drive)[0]
            begin, count = engine.milliseconds(), engine.completions(self.drive)
            time.sleep(PILOT_WINDOWS * self.plan.least_s)
            count += PILOT * self.plan.enough * len(jobs) - engine.completions(self.drive)
            engine.pause(self.drive, self.plan.most_s, max(0, count))
            end = engine.milliseconds()
            if engine.flushed(self.drive)[0] - flushes >= FLUSHES:
                self.load.flushes.add(phase)
            fio.check()
        seconds = (end - begin) / 1e3
        logs = self.logs_of(fio, seconds)
        return seconds, [int(((logs[job][:, 0] >= begin) & (logs[job][:, 0] < end)).sum())
                         for job in jobs]

    def fit(self, seconds: float, ios: int):
        """Make windows so short that there is time for ROUNDS, by the I/Os of some seconds, and
        room for the logs of a run."""
        limit = min(self.plan.limit_s, self.plan.most_ios * seconds / max(ios, 1))
        logged_s = self.plan.most_logged / max(self.lines_s, 1) / RUN
        self.turn_s = min(limit / ROUNDS / len(self.load.phases), logged_s) / len(self.candidates)
        self.window_s = max(min(self.window_s, self.turn_s / (1 + SETTLE)), self.plan.least_s)
        self.settle_s = max(min(self.settle_s, self.turn_s * MOST_SETTLE), LEAST_SETTLE_S)

    def lengthen(self):
        """Make windows longer until no I/O waits longer than a candidate settles. A wait ends with
        a window at the latest, so this takes some rounds, which do not count."""
        while self.used() < LENGTHEN:
            before = self.passed(), self.ios()
            waited = max(longest(self.session(1, phase)[1])
                         for phase in range(len(self.load.phases)))
            self.fit(self.passed() - before[0], self.ios() - before[1])
            most = self.turn_s * MOST_SETTLE
            if waited <= self.settle_s or self.settle_s >= most:
                break
            self.settle_s = min(max(waited, 2 * self.settle_s), most)
            self.window_s = max(self.window_s, self.settle_s)

    @staticmethod
    def seen(windows: list[engine.Window], logs: list[numpy.ndarray]) -> list[Measured]:
        """Return windows with what each job did in them, by fio's logs."""
        return [Measured(window, [workload.figures(log, window.begin, window.end) for log in logs])
                for window in windows]

    def take(self, measured: list[Measured]):
        """Evaluate the windows of a run. A round counts if it has all phases."""
        self.measured += measured
        served: dict[str, dict[int, list[numpy.ndarray]]] = {}
        for one in measured:
            window = one.window
            served.setdefault(window.candidate, {}).setdefault(window.round, []).append(
                self.load.served(one.jobs, window.seconds, window.phase, window.flushes))
        self.race.add({name: numpy.array([sum(parts) for parts in rounds.values()
                                          if len(parts) == len(self.load.phases)])
                       for name, rounds in served.items()})

    def left_s(self) -> float:
        """Return the s that are left, at most."""
        return max(0.0, self.plan.limit_s - self.passed())

    def foreign(self) -> float:
        """Return the part of the bytes that the drive moved in all windows and fio did not."""
        moved = sum(sum(one.window.kernel) for one in self.measured)
        ours = sum(job[way].bytes for one in self.measured for job in one.jobs
                   for way in (workload.READ, workload.WRITE) if way in job)
        return max(0.0, 1 - ours / moved) if moved else 0.0

    def cached(self) -> float:
        """Return the part of the bytes that fio read in all windows and the drive did not."""
        ours = sum(job[workload.READ].bytes for one in self.measured for job in one.jobs
                   if workload.READ in job)
        moved = sum(one.window.kernel[workload.READ] for one in self.measured)
        return max(0.0, 1 - moved / ours) if ours else 0.0

    def uneven(self) -> list[str]:
        """Return the names of jobs with a rate that did more I/Os a second under one candidate than
        under another. fio makes up for what a candidate leaves undone in the windows of others."""
        return [job.name for number, job in enumerate(self.load.jobs)
                if self.load.has_rate(job) and self.is_uneven(number)]

    def is_uneven(self, number: int) -> bool:
        """Return true if a candidate's I/Os of a job differ from its share of the time."""
        measured = {name: self.of(name, number) for name in self.race.names}
        done = {name: [sum(way.ios for way in one.jobs[number].values()) for one in found]
                for name, found in measured.items()}
        seconds = {name: sum(one.window.seconds for one in found)
                   for name, found in measured.items()}
        rate = sum(map(sum, done.values())) / max(sum(seconds.values()), 1e-9)
        # At both ends of a window, one more or less.
        return any(abs(sum(ios) - rate * seconds[name]) > UNEVEN * rate * seconds[name] + len(ios)
                   for name, ios in done.items())

    def waits_s(self) -> float:
        """Return the longest mean latency that a job has in a direction under a candidate; of no
        I/O, the time of all its windows."""
        waits = [0.0]
        for name in self.race.names:
            for number, job in enumerate(self.load.jobs):
                measured = self.of(name, number)
                for way in self.load.ways(job):
                    made = [one.jobs[number][way] for one in measured if way in one.jobs[number]]
                    ios = sum(one.ios for one in made)
                    waits.append(sum(one.ios * one.mean for one in made) / 1e3 / ios if ios else
                                 sum(one.window.seconds for one in measured))
        return max(waits)

    def unsettled(self) -> bool:
        """Return true if I/Os wait longer than a candidate settles: then a window shows in part
        what the candidate before it has left."""
        return self.waits_s() > self.settle_s

    def of(self, name: str, number: int) -> list[Measured]:
        """Return the windows of a candidate in which a job ran."""
        phase = self.load.phase_of(number)
        return [one for one in self.measured
                if one.window.candidate == name and one.window.phase == phase]

    def gain(self, name: str) -> tuple[float, float | None, float | None]:
        """Return how much better a candidate is than none, as a factor, and its bounds; None where
        there is none."""
        bounds = self.race.bounds(name, NONE)
        low, high = (math.exp(min(value, MOST_GAIN)) if math.isfinite(value) else None
                     for value in (bounds.low, bounds.high))
        return math.exp(min(bounds.mean, MOST_GAIN)), low, high


def longest(logs: list[numpy.ndarray]) -> float:
    """Return the longest latency in logs, in s."""
    return max((int(log[:, 1].max()) for log in logs if len(log)), default=0) / 1e9
