# SPDX-License-Identifier: GPL-2.0
"""What procedures have in common: what they measure with, and what they report.

A procedure is a function that measures with a Bench and returns Findings. It is registered with
@procedure, which names what it finds, the findings that it needs, and whether it writes.
"""
import collections.abc
import dataclasses

import numpy

from ssd_probe import engine
from ssd_probe.engine import READ


@dataclasses.dataclass
class Curve:
    """Evidence that can be drawn. @lines: {name: (x values, y values)}, a mark: an x value that
    the finding rests on."""
    title: str
    x: str
    y: str
    lines: dict[str, tuple[list[float], list[float]]]
    marks: list[float] = dataclasses.field(default_factory=list)
    log_x: bool = True
    log_y: bool = False


@dataclasses.dataclass
class Finding:
    """A parameter of the drive. @value: None means "cannot tell", and @why says the reason.
    @confidence: from 0 to 1."""
    name: str
    value: float | int | str | bool | None
    unit: str = ""
    confidence: float = 0.0
    why: str = ""
    curve: Curve | None = None


@dataclasses.dataclass
class Procedure:
    """A registered procedure. @gives, @needs: names of findings; one that is needed may be
    "cannot tell", or missing with --only. @destroys: it writes."""
    function: collections.abc.Callable
    gives: tuple[str, ...]
    needs: tuple[str, ...]
    destroys: bool
    title: str


# In the order of the modules that define them; the command sorts them by what they need.
PROCEDURES: list[Procedure] = []


def procedure(gives: str, needs: str = "", destroys: bool = False):
    """Register a function(Bench, {name: Finding}) -> iterable of Finding; the first line of its
    docstring is its title. @gives and @needs: names, separated by spaces."""
    def register(function):
        PROCEDURES.append(Procedure(function, tuple(gives.split()), tuple(needs.split()), destroys,
                                    function.__doc__.splitlines()[0]))
        return function
    return register


class Bench:
    """What a procedure measures with. @size: bytes of the drive, @block: bytes of a logical block,
    @tags: requests that the drive takes at once, @max_bytes: of one request, @quick: fewer
    repetitions, @seed: of random numbers."""

    def __init__(self, player: engine.Engine, size: int, block: int, tags: int, max_bytes: int,
                 quick: bool = False, seed: int = 1):
        self.engine = player
        self.size, self.block, self.tags, self.max_bytes = size, block, tags, max_bytes
        self.quick = quick
        self.random = numpy.random.default_rng(seed)
        # Called with the part of the procedure that is done, from 0 to 1.
        self.progress = lambda part: None

    def places(self, count: int, align: int, low: int = 0, high: int | None = None,
               length: int | None = None) -> numpy.ndarray:
        """Return @count random offsets, multiples of @align, of I/Os of @length bytes (default:
        @align) in the bytes from @low to @high (default: the drive's end)."""
        high = self.size if high is None else high
        last = (high - (length or align)) // align
        return self.random.integers(-(-low // align), last + 1, count) * align

    def latencies(self, offsets, length, op: int = READ) -> numpy.ndarray:
        """Make one I/O after another; return the ns that each took."""
        done = self.engine.play(engine.ios(offsets, length, op))
        return (done["end_ns"] - done["begin_ns"]).astype(float)

    def group_times(self, offsets, length, size: int, op: int = READ) -> numpy.ndarray:
        """Make groups of @size I/Os at a time; return the ns that each group took, from its
        begin to its last end."""
        done = self.engine.play(engine.ios(offsets, length, op, engine.groups(len(offsets), size)),
                                depth=size)
        begin = done["begin_ns"].reshape(-1, size).min(axis=1)
        return (done["end_ns"].reshape(-1, size).max(axis=1) - begin).astype(float)

    def rate(self, offsets, length, op: int = READ, depth: int = 1) -> float:
        """Make the I/Os, @depth at a time; return I/Os a second, without the first and the last
        tenth."""
        done = self.engine.play(engine.ios(offsets, length, op), depth)
        ends = numpy.sort(done["end_ns"])
        first, last = len(ends) // 10, len(ends) - 1 - len(ends) // 10
        return (last - first) / max(1.0, float(ends[last] - ends[first])) * 1e9
