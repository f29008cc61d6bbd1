# SPDX-License-Identifier: GPL-2.0
"""The race between candidates: after each round it says which have lost, whether the winner is
known, and what to recommend.

A load has parts that count. A round has, for each candidate that runs, the work done and the time
taken by each part. The score of a candidate is the mean over the parts of the logarithm of all work
by all time, and each round has a share of it, scores(). Two candidates are compared by the
differences of these shares in the rounds that both were in, so what a round does to both of them
nearly drops out. If a part's work was done in few rounds, or none was done, this may be luck: the
score has an upper bound, but no lower one. If a part's time was taken in few rounds, by a long
wait, the score has no bound.

The mean of the differences is bounded by a confidence sequence, which holds at all times at
once, so the race may be looked at after each round and may end when it likes. It is the one of the
t-test with a Gaussian mixture over the effect's size: Wang and Ramdas, "Anytime-valid t-tests and
confidence sequences for Gaussian means with unknown variance", 2023; Lai, "On confidence
sequences", 1976. For n differences x of sum S and sum of squares V about a mean m,

    E(m) = sqrt(C / (n + C)) * (V / (V - S^2 / (n + C)))^(n/2)

exceeds 1/alpha at any time with a probability of alpha at most if m is the mean, and the x are
independent and normal. C is small where large effects are expected.

An error is that the best candidate is judged worse than another one, or that a candidate is judged
better than none and is not: with K candidates these are 2 (K - 1) one-sided statements, each of
which gets its share of ERROR (Bonferroni). Half of ERROR is for the confidence sequence. The other
half is for Student's t when the time is over, which ends the race at a moment that the scores do
not choose. If that does not decide either, the best of those that seem better is recommended: the
others may be better still. Each is tested alone for not being worse than none by MARGIN, so ERROR
does not hold for all of them together.

Candidates that are hardly the best may be set aside, so that the rounds that are left tell the
others apart: of made-up races that are not decided in 12 rounds a third fewer end wrong. That a
candidate was set aside is no statement: it counts as a rival by the rounds that it had.
"""
import collections.abc
import dataclasses
import itertools
import math

import numpy
from scipy import stats

# Probability of a wrong answer. Scores within the factor MARGIN count as equal.
ERROR, MARGIN = 0.05, 1.02
# The variance of an effect, in those of a difference, is 1/C before anything is known.
C = 0.03
# The standard deviation of a score is not taken to be below this.
LEAST_DEVIATION = 0.001
# A part without work counts as this share of the least work that a candidate did of it in a round.
NOTHING = 0.5
# A part rests on at least so many equal rounds.
CARRIED = 3
# What rounds take is not taken to be below this.
LEAST_TOOK = 1e-9
NONE = "none"


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Of the mean of differences of scores. @least, @most: false if it has no such bound."""
    mean: float
    half: float
    least: bool = True
    most: bool = True

    @property
    def low(self) -> float:
        """The lower bound."""
        return self.mean - self.half if self.least else -math.inf

    @property
    def high(self) -> float:
        """The upper bound."""
        return self.mean + self.half if self.most else math.inf


def few(values: numpy.ndarray) -> numpy.ndarray:
    """Return of each part whether few rounds make it up, or none. @values: by round and part."""
    total = values.sum(axis=0)
    return (total == 0) | (total ** 2 < CARRIED * (values ** 2).sum(axis=0))


def scores(served: numpy.ndarray, weights: numpy.ndarray, least: numpy.ndarray) -> numpy.ndarray:
    """Return a value for each round, whose mean is the score of all rounds together and whose
    spread tells its error: jackknife's pseudo-values, by how much the score would change without
    the round. @served: by round and part, what was done and what it took. @least: what counts as
    done of a part of which nothing was.

    The mean of each round's own score would be less the more rounds differ, and so would depend on
    how long they are: a job that is served by fits and starts may have nothing in a short one."""
    count, rare = len(served), few(served[:, :, 0])
    done, took = served.sum(axis=0).T
    shares = numpy.zeros(served.shape[:2])
    if count > 1:
        less, shorter = (total - served[:, :, at] for at, total in enumerate((done, took)))
        # What few rounds have done has the spread of a single event.
        single = count * (numpy.arange(count) == 0)[:, None] - 1
        shares = numpy.where(rare, single, (count - 1) * numpy.log(
            numpy.maximum(done, least) / numpy.maximum(less, least)))
        shares -= (count - 1) * numpy.log(took / numpy.maximum(shorter, LEAST_TOOK))
        shares -= shares.mean(axis=0)
    return (numpy.log(numpy.maximum(done, least) / took) + shares) @ weights


def spread(values: numpy.ndarray) -> float:
    """Return the sum of the squares about the mean."""
    found = float(((values - values.mean()) ** 2).sum())
    return max(found, (len(values) - 1) * LEAST_DEVIATION ** 2)


def sequence(values: numpy.ndarray, error: float) -> Bounds:
    """Return the bounds of the mean that hold at all times, but with a probability of @error."""
    n = len(values)
    if n < 2:
        return Bounds(float(values.sum()), math.inf)
    # E(m) < 1/error, solved for the mean's distance to m.
    ratio = math.exp(2 / n * (-math.log(error) + math.log((n + C) / C) / 2))
    weight = ratio * n * n / (n + C) - n * (ratio - 1)
    half = math.sqrt(spread(values) * (ratio - 1) / weight) if weight > 0 else math.inf
    return Bounds(float(values.mean()), half)


def student(values: numpy.ndarray, error: float) -> Bounds:
    """Return the bounds of the mean for one look, by Student's t."""
    n = len(values)
    if n < 2:
        return Bounds(float(values.sum()), math.inf)
    deviation = math.sqrt(spread(values) / (n - 1) / n)
    return Bounds(float(values.mean()), float(stats.t.ppf(1 - error / 2, n - 1)) * deviation)


@dataclasses.dataclass(frozen=True)
class First:
    """The first rounds of a candidate. @scores: scores(), @rare: few of them make up the work of a
    part, @waited: its time."""
    scores: numpy.ndarray
    rare: bool
    waited: bool


@dataclasses.dataclass
class Outcome:
    """What is recommended. @sure: the best candidate is at most MARGIN better. @rivals: those
    that may be better by more."""
    name: str
    sure: bool
    rivals: list[str]


class Race:
    """A race of candidates. @names: in the order of preference among equals; NONE is the first.
    @weights: of the parts, 1 together."""

    def __init__(self, names: collections.abc.Sequence[str], weights: numpy.ndarray,
                 error: float = ERROR, margin: float = MARGIN):
        self.names, self.weights = list(names), weights
        self.left = list(names)
        # Of those that are left; they have no more rounds.
        self.aside: list[str] = []
        self.margin = math.log(margin)
        # Of a two-sided comparison; each side of it is a statement.
        self.error = error / 2 / max(1, len(names) - 1)
        # By round. A candidate that stops does not return, so all share the first rounds.
        self.served: dict[str, list[numpy.ndarray]] = {name: [] for name in names}
        # The least above 0 that a round did of each part.
        self.least = numpy.full(len(weights), numpy.inf)
        self.rounds = 0
        # By candidate and number of rounds, until the next round.
        self.known: dict[tuple[str, int], First] = {}
        self.bounds_by = sequence

    def add(self, served: dict[str, numpy.ndarray]):
        """Add a round: of each candidate that runs, what was done of each part and what it
        took."""
        for name, parts in served.items():
            self.served[name].append(parts)
            self.least = numpy.fmin(self.least, numpy.where(parts[:, 0] > 0, parts[:, 0],
                                                            numpy.inf))
        self.rounds += 1
        self.known.clear()

    def bounds(self, name: str, other: str, error: float | None = None,
               by: collections.abc.Callable | None = None) -> Bounds:
        """Return the bounds of how much better @name is than @other. @error: that the true value is
        beyond one of them; by default a comparison's share. @by: sequence or student; by default
        that of the race."""
        count = min(len(self.served[name]), len(self.served[other]))
        if name == other or not count:
            return Bounds(0.0, 0.0 if name == other else math.inf)
        mine, theirs = self.first(name, count), self.first(other, count)
        found = (by or self.bounds_by)(mine.scores - theirs.scores, error or self.error)
        if mine.waited or theirs.waited:
            return Bounds(found.mean, math.inf)
        return Bounds(found.mean, found.half, not mine.rare, not theirs.rare)

    def first(self, name: str, count: int) -> First:
        """Return the first rounds of a candidate."""
        if (name, count) not in self.known:
            served = numpy.array(self.served[name][:count])
            counts = served[:, self.weights > 0]
            self.known[name, count] = First(self.scores(served), bool(few(counts[:, :, 0]).any()),
                                            bool(few(counts[:, :, 1]).any()))
        return self.known[name, count]

    def scores(self, served: numpy.ndarray) -> numpy.ndarray:
        """Return scores() of rounds of this race."""
        # What no candidate has done anything of is equal.
        least = NOTHING * numpy.where(numpy.isfinite(self.least), self.least, 1)
        return scores(served, self.weights, least)

    def scores_of(self, name: str) -> numpy.ndarray:
        """Return scores() of all rounds of a candidate."""
        return self.first(name, len(self.served[name])).scores

    def lost(self, name: str) -> bool:
        """Return true if a candidate has lost: it is worse than one that is preferred among equals,
        or worse than another one by more than the margin."""
        for other in self.left:
            simpler = self.names.index(other) < self.names.index(name)
            if other != name and self.bounds(other, name).low > (0 if simpler else self.margin):
                return True
        return False

    def drop(self) -> list[str]:
        """Leave out those that have lost; return them. None stays, to compare with."""
        gone = [name for name in self.left if name != NONE and self.lost(name)]
        self.left = [name for name in self.left if name not in gone]
        return gone

    def running(self) -> list[str]:
        """Return those that the next round measures."""
        return [name for name in self.left if name not in self.aside]

    def ahead(self) -> str:
        """Return the best of those that run, as far as is known."""
        return max(self.running(), key=lambda name: self.bounds(name, NONE).mean)

    def set_aside(self):
        """Measure those no more that are worse than the best one with a probability of 1 - ERROR,
        each tested alone. None stays, to compare with. If the best one is ahead of all, they stay,
        to make sure of it. If it is known to be better than none, its rivals stay, which would be
        rivals to the end otherwise."""
        best = self.ahead()
        worse = [name for name in self.running()
                 if self.bounds(best, name, 2 * ERROR, student).low > 0]
        if self.bounds(best, NONE, by=student).low > 0:
            worse = [name for name in worse
                     if self.bounds(name, best, by=student).high <= self.margin]
        if len(worse) < len(self.running()) - 1:
            self.aside += [name for name in worse if name != NONE]

    def rivals(self, name: str) -> list[str]:
        """Return those that may be better than @name by more than the margin."""
        return [other for other in self.left if self.bounds(other, name).high > self.margin]

    def gains(self, name: str) -> bool:
        """Return true if a candidate is better than none, and by more than the margin as far as
        is known."""
        gain = self.bounds(name, NONE)
        return gain.low > 0 and gain.mean > self.margin

    def seems_better(self, name: str) -> bool:
        """Return true if a candidate is better than none by more than the margin as far as is
        known, and not worse by more than the margin with a probability of 1 - ERROR."""
        gain = self.bounds(name, NONE, 2 * ERROR)
        return gain.low > -self.margin and gain.mean > self.margin

    def decided(self) -> Outcome | None:
        """Return what to recommend if it is known: of those to which the best is equal the one
        that is preferred."""
        known = [name for name in self.running()
                 if (name == NONE or self.gains(name)) and not self.rivals(name)]
        return Outcome(known[0], True, []) if known else None

    def last(self) -> Outcome:
        """Return what to recommend when the time is over."""
        self.bounds_by = student
        found = self.decided()
        if found:
            return found
        best = max((name for name in self.running() if name == NONE or self.seems_better(name)),
                   key=lambda name: self.bounds(name, NONE).mean)
        return Outcome(best, False, self.rivals(best))

    def confidence(self, name: str) -> float:
        """Return the confidence of what is said of the recommended one: that it is better than
        none, and that no other one is better by more than the margin."""
        claims = [self.claim(name, NONE, 0.0)] if name != NONE else []
        claims += [self.claim(name, other, -self.margin) for other in self.names if other != name]
        return min(claims, default=1.0)

    def claim(self, name: str, other: str, least: float) -> float:
        """Return the confidence with which @name is better than @other by @least."""
        share = len(self.names) - 1
        # The scores have chosen when one that has lost stopped.
        by = self.bounds_by if other in self.left else sequence
        for confidence in itertools.chain((0.999, 0.99), numpy.arange(0.98, 0.0, -0.02)):
            if self.bounds(name, other, (1 - confidence) / share, by).low > least:
                return float(confidence)
        return 0.0
