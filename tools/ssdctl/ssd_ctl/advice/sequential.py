# SPDX-License-Identifier: GPL-2.0
"""The race between candidates: after each run it says which have lost, whether the winner is
known, and what to recommend.

A run is one start of the load. It has some rounds, and a round a window of each candidate that
runs. What a start leads to is common to the rounds of its run, so the run is the observation: of
each candidate, the work done and the time taken by each part of the load. The score of a candidate
is the mean over the parts of the logarithm of all work by all time, and each run has a share of it,
scores(). Two candidates are compared by the differences of these shares in the runs that both were
in, so what a run does to both of them nearly drops out. If a part's work was done in few runs, or
none was done, this may be luck: the score has an upper bound, but no lower one. If a part's time
was taken in few runs, by a long wait, the score has no bound.

Runs may be alike because they follow each other. Their noise is taken as autoregressive, of the
correlation that a run has with the next one (lag): the largest one that the likelihood of all
candidates' scores allows. Differences are whitened by it: x[n] - lag x[n - 1] are independent. With
a lag that is too large they are anticorrelated, and the bounds too wide.

The mean of the differences is bounded by a confidence sequence, which holds at all times at
once, so the race may be looked at after each run and may end when it likes. It is the one of the
t-test with a Gaussian mixture over the effect's size: Wang and Ramdas, "Anytime-valid t-tests and
confidence sequences for Gaussian means with unknown variance", 2023; Lai, "On confidence
sequences", 1976. With n whitened differences y, of which each has the mean d m, D the sum of the
squares of d, S the sum of d (y - d m) and V that of (y - d m)^2,

    E(m) = sqrt(C / (D + C)) * (V / (V - S^2 / (D + C)))^(n/2)

exceeds 1/alpha at any time with a probability of alpha at most if m is the mean, and the y are
independent and normal. C is small where large effects are expected.

If the drive becomes slower or faster by CLIFF (its cache is full), what was before says nothing of
what comes: the race starts again, with all candidates. When, only the level of all candidates
together decides, not how they differ, so the choice does not favour one. The first start of the
race has three quarters of ERROR, each further one a quarter of the one before.

An error is that the best candidate is judged worse than another one, or that a candidate is judged
better than none and is not: with K candidates these are 2 (K - 1) one-sided statements, each of
which gets its share of ERROR (Bonferroni). Half of ERROR is for the confidence sequence. The other
half is for Student's t when the time is over, which ends the race at a moment that the scores do
not choose. If that does not decide either, nothing is recommended. The best of those that seem
better leads: the others may be better still. Each is tested alone for not being worse than none by
MARGIN, so ERROR does not hold for all of them together.

Candidates that are hardly the best may be set aside, so that the runs that are left tell the others
apart. That a candidate was set aside is no statement: it counts as a rival by the runs that it had.
"""
import collections.abc
import dataclasses
import functools
import itertools
import math

import numpy
from scipy import stats

from ssd_common.change import CHANCE, change_point

# Probability of a wrong answer. Scores within the factor MARGIN count as equal.
ERROR, MARGIN = 0.05, 1.02
# Of a candidate that gains much, another one may be better by more: by this share of the gain, and
# by this factor at most. A gain of 60 times need not wait for the last 5 %.
LITTLE, MOST = 0.1, 1.1
# The variance of an effect, in those of a difference, is 1/C before anything is known.
C = 0.03
# The standard deviation of a score is not taken to be below this.
LEAST_DEVIATION = 0.001
# Correlations of a run with the next one that are looked at, and by how much the logarithm of the
# likelihood of the one that is taken may be below the largest one. Alone it is too small in one of
# five; with it the made-up races err as seldom as they say (tests/bench/advise-races.py).
LAGS, LESS_LIKELY = numpy.arange(0, 0.96, 0.05), 0.3
# The factor by which the level of all candidates changes where the race starts again, and the
# rounds on either side at least.
CLIFF, BESIDE = 1.1, 2
# The share of the time after which it is for those that may be the best.
NARROW = 1 / 2
# A race is ended before its time if it is less likely to be decided, after so many runs.
HOPELESS, LEAST_RUNS = 0.01, 6
# It goes on all the same if it is as likely as this to show that the best one is better than none.
LIKELY = 0.5
# A part without work counts as this share of the least work that a candidate did of it in a run.
NOTHING = 0.5
# A part rests on at least so many equal runs.
CARRIED = 3
# What runs take is not taken to be below this.
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


@dataclasses.dataclass(frozen=True)
class Sample:
    """@count whitened differences: their @mean, the @weight of which it is one (D), and the sum of
    @squares about it."""
    count: int
    weight: float
    mean: float
    squares: float


def whitened(values: numpy.ndarray, lag: float) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return what is independent and of equal variance if a value has the correlation @lag with the
    next one, and the factor of the mean in it. @values: the last axis is time."""
    made, factor = values.copy(), numpy.full(values.shape[-1], 1 - lag)
    made[..., 1:] -= lag * values[..., :-1]
    factor[:1] = math.sqrt(1 - lag * lag)
    made[..., :1] *= factor[:1]
    return made, factor


def largest_lag(scores: numpy.ndarray) -> float:
    """Return the largest likely correlation of a run with the next one. @scores: of candidates, by
    run. The likelihood is the restricted one, without the candidates' means; what is common to all
    candidates in a run is left out."""
    candidates, count = scores.shape
    noise = scores - scores.mean(axis=0)
    likely = []
    for lag in LAGS:
        made, factor = whitened(noise, lag)
        weight = factor @ factor
        rest = (made * made).sum(axis=1) - (made @ factor) ** 2 / weight
        rest += (count - 1) * (1 + lag * lag) * LEAST_DEVIATION ** 2
        likely.append((candidates - 1) / 2 * (
            math.log((1 - lag * lag) / weight) - (count - 1) * numpy.log(rest).mean()))
    return float(LAGS[numpy.flatnonzero(likely >= max(likely) - LESS_LIKELY)[-1]])


def few(values: numpy.ndarray) -> numpy.ndarray:
    """Return of each part whether few runs make it up, or none. @values: by run and part, the last
    axes."""
    total = values.sum(axis=-2)
    return (total == 0) | (total ** 2 < CARRIED * (values ** 2).sum(axis=-2))


def scores(served: numpy.ndarray, weights: numpy.ndarray, least: numpy.ndarray) -> numpy.ndarray:
    """Return a value for each run, whose mean is the score of all runs together and whose spread
    tells its error: jackknife's pseudo-values, by how much the score would change without the run.
    @served: by run and part, what was done and what it took, the last axes. @least: what counts as
    done of a part of which nothing was.

    The mean of each run's own score would be less the more runs differ, and so would depend on how
    long they are: a job that is served by fits and starts may have nothing in a short one."""
    count, rare = served.shape[-3], few(served[..., 0])[..., None, :]
    done, took = numpy.moveaxis(served.sum(axis=-3, keepdims=True), -1, 0)
    shares = numpy.zeros(served.shape[:-1])
    if count > 1:
        less, shorter = done - served[..., 0], took - served[..., 1]
        # What few runs have done has the spread of a single event.
        single = count * (numpy.arange(count) == 0)[:, None] - 1
        shares = numpy.where(rare, single, (count - 1) * numpy.log(
            numpy.maximum(done, least) / numpy.maximum(less, least)))
        shares -= (count - 1) * numpy.log(took / numpy.maximum(shorter, LEAST_TOOK))
        shares -= shares.mean(axis=-2, keepdims=True)
    return (numpy.log(numpy.maximum(done, least) / took) + shares) @ weights


def spread(found: Sample) -> float:
    """Return the sum of the squares about the mean."""
    return max(found.squares, (found.count - 1) * LEAST_DEVIATION ** 2)


def sequence(found: Sample, error: float) -> Bounds:
    """Return the bounds of the mean that hold at all times, but with a probability of @error."""
    if found.count < 2:
        return Bounds(found.mean, math.inf)
    # E(m) < 1/error, solved for the mean's distance to m.
    n, d = found.count, found.weight
    ratio = math.exp(2 / n * (-math.log(error) + math.log((d + C) / C) / 2))
    weight = ratio * d * d / (d + C) - d * (ratio - 1)
    half = math.sqrt(spread(found) * (ratio - 1) / weight) if weight > 0 else math.inf
    return Bounds(found.mean, half)


@functools.cache
def quantile(error: float, freedom: int) -> float:
    """Return the quantile of Student's t that is exceeded on both sides with @error."""
    return float(stats.t.ppf(1 - error / 2, freedom))


def student(found: Sample, error: float) -> Bounds:
    """Return the bounds of the mean for one look, by Student's t."""
    if found.count < 2:
        return Bounds(found.mean, math.inf)
    deviation = math.sqrt(spread(found) / (found.count - 1) / found.weight)
    return Bounds(found.mean, quantile(error, found.count - 1) * deviation)


class First:
    """The first runs of all candidates that have so many. @names: of them, @scores: scores(), by
    candidate and run, @rare: names of those of which few runs make up the work of a part, @waited:
    its time."""

    def __init__(self, names: list[str], scores: numpy.ndarray, rare: set[str], waited: set[str],
                 lag: float):
        self.scores, self.rare, self.waited = scores, rare, waited
        self.at = {name: at for at, name in enumerate(names)}
        made, factor = whitened(scores, lag)
        self.count, self.weight = len(factor), float(factor @ factor)
        self.means = made @ factor / self.weight
        rest = made - numpy.outer(self.means, factor)
        self.products = rest @ rest.T

    def compared(self, name: str, other: str) -> Sample:
        """Return the sample of the differences of two candidates."""
        i, j = self.at[name], self.at[other]
        squares = self.products[i, i] + self.products[j, j] - 2 * self.products[i, j]
        return Sample(self.count, self.weight, float(self.means[i] - self.means[j]),
                      float(squares))


@dataclasses.dataclass
class Outcome:
    """What is recommended. @sure: the best candidate is hardly better, tolerated(). @rivals:
    those that may be better by more."""
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
        # Of those that are left; they have no more runs.
        self.aside: list[str] = []
        self.margin = math.log(margin)
        # Of a two-sided comparison, of all starts of the race; each side of it is a statement.
        self.all_errors = error / 2 / max(1, len(names) - 1)
        # Starts of the race, with this one.
        self.starts = 1
        # By run. A candidate that stops does not return, so all share the first runs.
        self.served: dict[str, list[numpy.ndarray]] = {name: [] for name in names}
        # The same by run, of all its rounds.
        self.sums: dict[str, list[numpy.ndarray]] = {name: [] for name in names}
        # The rounds of each run.
        self.lengths: list[int] = []
        # The least above 0 that a run did of each part.
        self.least = numpy.full(len(weights), numpy.inf)
        # By the number of runs, until the next run.
        self.known: dict[int, First] = {}
        self.lag = 0.0
        self.bounds_by = sequence

    @property
    def runs(self) -> int:
        """The runs since the race has started."""
        return len(self.lengths)

    @property
    def error(self) -> float:
        """The error of a two-sided comparison."""
        return self.all_errors * 3 / 4 ** self.starts

    def add(self, served: dict[str, numpy.ndarray]):
        """Add a run: of each candidate that runs, by round, what was done of each part and what it
        took."""
        for name, parts in served.items():
            self.served[name].append(parts)
            self.sums[name].append(parts.sum(axis=0))
            done = self.sums[name][-1][:, 0]
            self.least = numpy.fmin(self.least, numpy.where(done > 0, done, numpy.inf))
        self.lengths.append(len(parts))
        self.look()

    def look(self):
        """Forget what was known of fewer runs; find how alike runs are that follow each other."""
        self.known.clear()
        self.lag = 0.0
        lengths = [len(runs) for runs in self.served.values()]
        count = max(lengths, key=lambda least: (least - 1) * sum(each >= least for each in lengths))
        if count > 1:
            self.lag = largest_lag(self.first(count).scores)
            self.known.clear()

    def bounds(self, name: str, other: str, error: float | None = None,
               by: collections.abc.Callable | None = None) -> Bounds:
        """Return the bounds of how much better @name is than @other. @error: that the true value is
        beyond one of them; by default a comparison's share. @by: sequence or student; by default
        that of the race."""
        count = min(len(self.served[name]), len(self.served[other]))
        if name == other or not count:
            return Bounds(0.0, 0.0 if name == other else math.inf)
        first = self.first(count)
        found = (by or self.bounds_by)(first.compared(name, other), error or self.error)
        if {name, other} & first.waited:
            return Bounds(found.mean, math.inf)
        return Bounds(found.mean, found.half, name not in first.rare, other not in first.rare)

    def first(self, count: int) -> First:
        """Return the first runs of those that have so many."""
        if count not in self.known:
            names = [name for name in self.names if len(self.served[name]) >= count]
            served = numpy.array([self.sums[name][:count] for name in names])
            counts = served[:, :, self.weights > 0]
            rare, waited = ({name for name, found in zip(names, few(counts[..., at]), strict=True)
                             if found.any()} for at in (0, 1))
            self.known[count] = First(names, scores(served, self.weights, self.nothing()), rare,
                                      waited, self.lag)
        return self.known[count]

    def nothing(self) -> numpy.ndarray:
        """Return what counts as done of a part of which nothing was: of one that no candidate has
        done anything of, the same for all."""
        return NOTHING * numpy.where(numpy.isfinite(self.least), self.least, 1)

    def scores_of(self, name: str) -> numpy.ndarray:
        """Return scores() of all runs of a candidate."""
        count = len(self.served[name])
        first = self.first(count) if count else None
        return first.scores[first.at[name]] if first else numpy.zeros(0)

    def levels(self) -> numpy.ndarray:
        """Return by round the mean score of those that run."""
        rates = [numpy.concatenate(self.served[name]) for name in self.running()]
        least = self.nothing()
        return numpy.mean([numpy.log(numpy.maximum(rate[:, :, 0], least) /
                                     numpy.maximum(rate[:, :, 1], LEAST_TOOK)) @ self.weights
                           for rate in rates], axis=0)

    def cliff(self) -> int | None:
        """Return the number of the first run after the level of all has changed, None if it has
        not."""
        levels = self.levels()
        at, count = change_point(levels, BESIDE), len(levels)
        if at is None:
            return None
        step = abs(levels[at:].mean() - levels[:at].mean())
        squares = sum(float(((side - side.mean()) ** 2).sum())
                      for side in (levels[:at], levels[at:]))
        error = math.sqrt(max(squares / (count - 2), LEAST_DEVIATION ** 2) *
                          (1 / at + 1 / (count - at)))
        # It may be anywhere.
        if step < math.log(CLIFF) or 2 * count * stats.t.sf(step / error, count - 2) > CHANCE:
            return None
        return int(numpy.searchsorted(numpy.cumsum(self.lengths) - self.lengths, at))

    def restart(self) -> bool:
        """Start again if the drive has changed; return true then. Those that had stopped lack the
        runs since the change, so if there are any, these do not count either."""
        at = self.cliff()
        if at is None:
            return False
        at = at if len(self.running()) == len(self.names) else self.runs
        for each in (self.served, self.sums):
            each.update({name: runs[at:] for name, runs in each.items()})
        self.lengths = self.lengths[at:]
        self.left, self.aside = list(self.names), []
        self.starts += 1
        self.look()
        return True

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
        """Return those that the next run measures."""
        return [name for name in self.left if name not in self.aside]

    def ahead(self) -> str:
        """Return the best of those that run, as far as is known."""
        return max(self.running(), key=lambda name: self.bounds(name, NONE).mean)

    def set_aside(self):
        """Measure those no more that are worse than the best one with a probability of 1 - ERROR,
        each tested alone, unless they are rivals of it: these would be so to the end otherwise.
        None stays, to compare with. If the best one is ahead of all, they stay, to make sure of
        it."""
        best = self.ahead()
        rivals = self.rivals(best)
        worse = [name for name in self.running()
                 if name not in rivals and self.bounds(best, name, 2 * ERROR, student).low > 0]
        if len(worse) < len(self.running()) - 1:
            self.aside += [name for name in worse if name != NONE]

    def tolerated(self, name: str, error: float | None = None,
                  by: collections.abc.Callable | None = None) -> float:
        """Return by how much another one may be better than a candidate that is recommended.
        @error, @by: of bounds()."""
        gain = self.bounds(name, NONE, error, by).low
        return max(self.margin, min(LITTLE * gain, math.log(MOST)))

    def rivals(self, name: str) -> list[str]:
        """Return those that may be better than @name by more than is tolerated."""
        most = self.tolerated(name)
        return [other for other in self.left if self.bounds(other, name).high > most]

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
        """Return what to recommend if it is known: the preferred one of the candidates that no
        other one exceeds by more than is tolerated."""
        known = [name for name in self.running()
                 if (name == NONE or self.gains(name)) and not self.rivals(name)]
        return Outcome(known[0], True, []) if known else None

    def last(self) -> Outcome:
        """Return what to recommend when the time is over."""
        self.bounds_by = student
        return self.decided() or self.undecided()

    def undecided(self) -> Outcome:
        """Return which one leads if it is not known which is best."""
        best = max((name for name in self.running() if name == NONE or self.seems_better(name)),
                   key=lambda name: self.bounds(name, NONE).mean)
        return Outcome(best, False, self.rivals(best))

    def after(self, used: float, over: bool, more: int) -> Outcome | None:
        """Return how the race ends if it ends after this run, otherwise stop those that need no
        more runs. @used: the share of the time, @over: there is no time for another run, @more: for
        how many there is. If those hardly decide it, and are not likely to show that the best one
        is better than none, the race ends undecided, without Student's t, since the scores choose
        this moment."""
        self.restart()
        self.drop()
        outcome = self.decided() or (self.last() if over else None)
        if not outcome and used > NARROW:
            self.set_aside()
            # Of two candidates that are left there may be more runs.
            more = more * len(self.running()) // 2
            if (self.runs >= LEAST_RUNS and self.chance(more) < HOPELESS and
                    self.chance_to_gain(more) < LIKELY):
                outcome = self.undecided()
        return outcome

    def chance_to_gain(self, more: int) -> float:
        """Return how likely @more runs show that the best one is better than none; 0 if it is
        known."""
        best = self.ahead()
        return 0.0 if best == NONE or self.gains(best) else self.shows(best, NONE, 0.0, more)

    def chance(self, more: int) -> float:
        """Return how likely @more runs decide for the best one or for none, by what is known: at
        most, as it is the least likely one of the statements that are needed."""
        def decides(name: str) -> float:
            needed = [(name, NONE, 0.0)] if name != NONE else []
            most = self.tolerated(name, by=student)
            needed += [(name, other, -most) for other in self.left if other != name]
            return min((self.shows(*claim, more) for claim in needed), default=1.0)
        return max(decides(name) for name in {self.ahead(), NONE})

    def shows(self, name: str, other: str, least: float, more: int) -> float:
        """Return how likely @more runs show that @name is better than @other by @least, if any true
        value was as likely before."""
        now = self.bounds(name, other, by=student)
        if other in self.aside or not math.isfinite(now.half) or not more:
            return float(now.low > least)
        count = len(self.served[name])
        deviation = now.half / quantile(self.error, count - 1)
        share = count / (count + more)
        half = quantile(self.error, count + more - 1) * deviation * math.sqrt(share)
        return float(stats.norm.cdf(
            (now.mean - least - half) / (deviation * math.sqrt(1 - share))))

    def confidence(self, name: str) -> float:
        """Return the confidence of what is said of the recommended one: that it is better than
        none, and that no other one is better by more than is tolerated."""
        return min((self.claim(name, other) for other in self.names if other != name), default=1.0)

    def claim(self, name: str, other: str) -> float:
        """Return the confidence with which @name is better than none, or @other no better than
        @name by more than is tolerated."""
        share = len(self.names) - 1
        # The scores have chosen when one that has lost stopped.
        by = self.bounds_by if other in self.left else sequence
        for confidence in itertools.chain((0.999, 0.99), numpy.arange(0.98, 0.0, -0.02)):
            error = (1 - confidence) / share
            least = 0.0 if other == NONE else -self.tolerated(name, error)
            if self.bounds(name, other, error, by).low > least:
                return float(confidence)
        return 0.0
