# SPDX-License-Identifier: GPL-2.0
"""Made-up races of ssdctl advise, of candidates whose true scores are known."""
import collections.abc
import dataclasses
import math

import numpy

from ssd_ctl import schedulers
from ssd_ctl.advice import rounds, sequential
from ssd_ctl.advice.sequential import NONE

NAMES = list(schedulers.ALL)
# The candidate that may be better, and the factor by which a cliff slows the drive down.
BETTER, SLOWER = "pass", 20
# What the start of the load takes, in windows.
START = 2


@dataclasses.dataclass(frozen=True)
class Kind:
    """What the candidates and their noise are like. @effect: by how much BETTER is better, as a
    logarithm, @deviation: of a window, @start: the deviation that a candidate has in common in the
    rounds of a run, @lag: correlation of a candidate's window with that in the next round, @cliff:
    rounds until the drive becomes slower, 0: it does not; before it all are equal, @rounds: for
    which there is time."""
    effect: float = 0.0
    deviation: float = 0.03
    start: float = 0.0
    lag: float = 0.0
    cliff: int = 0
    rounds: int = 60


def kinds() -> list[Kind]:
    """Return the kinds of the published table."""
    noises = [{}, {"start": 0.01}, {"start": 0.025}, {"start": 0.05}, {"lag": 0.5}, {"lag": 0.8},
              {"start": 0.025, "lag": 0.5}, {"start": 0.05, "lag": 0.8}]
    return [*(Kind(**noise) for noise in noises),
            *(Kind(effect=math.log(1 + gain), **noise) for noise in (noises[0], noises[6])
              for gain in (0.01, 0.03, 0.05, 0.1)),
            *(Kind(effect=math.log(1.1), cliff=cliff, **noise) for cliff in (3, 8, 20)
              for noise in (noises[0], noises[7])),
            *(Kind(cliff=cliff, **noises[6]) for cliff in (3, 8, 20))]


class Noise:
    """The drive of a race: what each candidate does in a window."""

    def __init__(self, kind: Kind, seed: int):
        self.kind, self.dice, self.round = kind, numpy.random.default_rng(seed), 0
        self.state = self.dice.normal(0, 1, len(NAMES))
        self.begin()

    def begin(self):
        """Start the load."""
        self.started = self.dice.normal(0, self.kind.start, len(NAMES))

    def fallen(self) -> bool:
        """Return true after the cliff, or without one."""
        return not self.kind.cliff or self.round > self.kind.cliff

    def next(self) -> dict[str, float]:
        """Return the scores of a round."""
        kind, fresh = self.kind, self.dice.normal(0, 1, len(NAMES))
        self.state = kind.lag * self.state + math.sqrt(1 - kind.lag ** 2) * fresh
        self.round += 1
        level = self.dice.normal(0, kind.deviation)
        level -= math.log(SLOWER) if kind.cliff and self.fallen() else 0
        scores = level + self.started + kind.deviation * self.state
        scores[NAMES.index(BETTER)] += kind.effect if self.fallen() else 0
        return dict(zip(NAMES, scores, strict=True))


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a race ended. @before: it was decided before the cliff, @used: of the time."""
    name: str
    sure: bool
    before: bool
    used: float

    def wrong(self, kind: Kind) -> bool:
        """Return true if what is decided is not so: another one is better by more than the margin,
        or the recommended one is no better than none."""
        effect = 0.0 if self.before else kind.effect
        if not self.sure or self.name == BETTER and effect > 0:
            return False
        return self.name != NONE or effect > math.log(sequential.MARGIN)

    def right(self, kind: Kind) -> bool:
        """Return true if what is decided is so."""
        return self.sure and not self.wrong(kind)


def served(score: float) -> numpy.ndarray:
    """Return a round with one part, of a score."""
    return numpy.array([[1000 * math.exp(score), 1.0]])


def of_run(noise: Noise, names: collections.abc.Sequence[str]) -> dict[str, numpy.ndarray]:
    """Return a run of the load."""
    noise.begin()
    made = [noise.next() for _ in range(rounds.RUN)]
    return {name: numpy.stack([served(scores[name]) for scores in made]) for name in names}


def race(kind: Kind, seed: int) -> Ended:
    """Return how a race ends, with the control flow of Rounds.run()."""
    noise, made = Noise(kind, seed), sequential.Race(NAMES, numpy.ones(1))
    used, most, outcome = 0, kind.rounds * len(NAMES), None
    while not outcome:
        made.add(of_run(noise, made.running()))
        cost = rounds.RUN * len(made.running()) + START
        used += cost
        outcome = made.after(used / most, used + cost > most, int((most - used) / cost))
    return Ended(outcome.name, outcome.sure, not noise.fallen(), used / most)
