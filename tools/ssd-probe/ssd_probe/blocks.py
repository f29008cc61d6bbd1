# SPDX-License-Identifier: GPL-2.0
"""Mapping by page or by block, erase blocks, and how many of them are open.

After "A new I/O scheduler for solid state devices", section 3.2: a write into another erase block
than those before costs a merge. Instead of along the drive, writes go round and round a few places
here: as long as no more erase blocks have to be open than the drive allows, none is merged. Two
places close to each other that need one open block lie in the same erase block.
"""
import dataclasses

import numpy

from ssd_probe import change, engine, writing
from ssd_probe.engine import WRITE
from ssd_probe.probe import Bench, Curve, Finding, procedure
from ssd_probe.writing import KB, MB, cannot, value

# The most places that are written in turn: more than any drive is known to have open blocks.
MOST = 300
# Writes that a time is the median of, at least.
COUNT = 24


@dataclasses.dataclass
class Turns:
    """Writes in turn to some places. @pieces: writes that fill the buffer before a program is seen,
    0 if a flush after each write shows it. @known: {number of places: ns of writes}."""
    bench: Bench
    length: int
    pieces: int
    known: dict[int, numpy.ndarray] = dataclasses.field(default_factory=dict)

    def times(self, places) -> numpy.ndarray:
        """Return the ns of writes that take turns over @places, after two rounds."""
        rounds = 2 + max(2, -(-COUNT // len(places)))
        if self.pieces:
            rounds = -(-(self.pieces + 2 * COUNT) // len(places)) + 2
            offsets = numpy.tile(places, rounds)
            writing.settle(self.bench, writing.LONG_PAUSE_NS)
            done = self.bench.engine.play(engine.ios(offsets, self.length, WRITE), 1, 60)
            return writing.took(done)[-COUNT:]
        offsets = numpy.tile(places, rounds)
        return writing.program_costs(self.bench, offsets, self.length)[2 * len(places):]

    def spread(self, count: int) -> numpy.ndarray:
        """Return @count places all over the drive."""
        step = self.bench.size // (count + 1) // MB * MB or MB
        return (numpy.arange(count) * step) % (self.bench.size - MB)

    def alone(self) -> numpy.ndarray:
        """Return the ns of writes that need one open block."""
        return self.times(self.spread(1) + numpy.array([0] if not self.pieces else
                                                       [0, 64 * KB]))

    def dear(self, places) -> bool:
        """Return true if taking turns over @places costs more than writing to one."""
        many, one = self.times(places), self.alone()
        self.known[len(places)] = many
        self.known.setdefault(1, one)
        return change.differ(one, many) and numpy.median(many) > 1.2 * numpy.median(one)

    def curve(self, mark: float) -> Curve:
        """Return the time of a write by the number of places."""
        counts = sorted(self.known)
        return Curve("Writes in turn to places all over the drive", "places", "us", {
            "write": ([float(count) for count in counts],
                      [float(numpy.median(self.known[count])) / 1000 for count in counts])}, [mark])


def turns_of(bench: Bench, found) -> Turns | None:
    """Return how to see programs on this drive, None if they cannot be seen."""
    length = max(bench.block, 4 * KB)
    if writing.programs_seen(bench, found):
        return Turns(bench, length, 0)
    size, kind = value(found, "write_buffer_kb"), value(found, "write_buffer_kind")
    if not size or kind != "fifo":
        return None
    return Turns(bench, length, int(size * KB / length * 1.1) + 8)


def first_dear(turns: Turns) -> tuple[int, int] | None:
    """Return a number of places that cost no more than one, and a number that do; None if any
    number costs the same."""
    low, high = 1, 2
    while high <= MOST:
        if turns.dear(turns.spread(high)):
            return low, high
        low, high = high, high * 2 if high < 256 or high == MOST else MOST
    return None


@procedure(gives="mapping open_blocks", needs="early_ack write_buffer_kb write_buffer_kind",
           destroys=True)
def mapping(bench: Bench, found) -> list[Finding]:
    """Mapping by page or by block, and the blocks that are open at once"""
    turns = turns_of(bench, found)
    if turns is None:
        return cannot("mapping open_blocks", "the drive hides its programs, also from a flush")
    edge = first_dear(turns)
    if edge is None:
        return [Finding("mapping", "page", "", 0.98, curve=turns.curve(MOST)),
                Finding("open_blocks", None, why="the mapping is by page")]
    low, high = edge
    while high - low > 1:
        middle = (low + high) // 2
        if turns.dear(turns.spread(middle)):
            high = middle
        else:
            low = middle
    sure = turns.dear(turns.spread(high)) and not (low > 1 and turns.dear(turns.spread(low)))
    curve = turns.curve(low)
    return [Finding("mapping", "block", "", 0.98, curve=curve),
            Finding("open_blocks", low, "", 0.95, curve=curve) if sure else
            cannot("open_blocks", "the cost of writes in turn varies")[0]]


@dataclasses.dataclass
class Neighbours:
    """Whether two places are in the same erase block: with others in as many erase blocks as may
    be open less one, they cost no more than one."""
    turns: Turns
    open_blocks: int

    def same(self, first: int, second: int) -> bool:
        """Return true if two places are in the same erase block."""
        size = self.turns.bench.size
        others = size // 2 + numpy.arange(self.open_blocks - 1) * (
            size // 2 // self.open_blocks // MB * MB)
        return not self.turns.dear(numpy.concatenate([[first], others, [second]]))

    def last(self, first: int, low: int, high: int, step: int) -> int:
        """Return the last place, @low or some @step later, that is in the erase block of @first;
        @high is not in it."""
        while high - low > step:
            middle = low + (high - low) // 2 // step * step
            if self.same(first, middle):
                low = middle
            else:
                high = middle
        return low


def block_size(near: Neighbours, page: int, step: int) -> int | None:
    """Return the bytes of an erase block. @page: bytes of a flash page, @step: of a clustered page,
    which may lie in two erase blocks."""
    reach = near.turns.bench.size // 4
    high = step
    while near.same(0, high):
        high *= 2
        if high > reach:
            return None
    low = near.last(0, high // 2 if high > step else 0, high, step)
    # The clustered page behind begins in the next erase block, or has its begin in it.
    least, most = low + step - (step - page if step > page else 0), low + step
    if least == most:
        return least
    return narrowed(near, page, step, low + page, low + step)


def narrowed(near: Neighbours, page: int, step: int, least: int, most: int) -> int | None:
    """Return the size between @least and @most bytes, if clustered pages of @step bytes may lie in
    two erase blocks: the end of a later erase block tells it more exactly."""
    number = 2
    while most - least >= page and number * most < near.turns.bench.size // 2:
        begin = -(-(number - 1) * most // step) * step
        low = max(begin, (number * least - 1) // step * step - step)
        high = (number * most // step + 1) * step
        if not near.same(begin, low) or near.same(begin, high):
            return None
        last = near.last(begin, low, high, step)
        # The erase block ends in the clustered page behind @last, or with @last.
        least = max(least, -(-(last + step) // number))
        most = min(most, (last + 2 * step - 1) // number)
        least, most = -(-least // page) * page, most // page * page
        if least > most:
            return None
        number *= 2
    return least if least == most else None


@procedure(gives="erase_block_kb clustered_block_kb stride_boundary",
           needs="mapping open_blocks clustered_page_kb flash_page_kb write_buffer_kb "
           "write_buffer_kind early_ack", destroys=True)
def erase_block(bench: Bench, found) -> list[Finding]:
    """Size of the erase blocks that a write must not leave"""
    kind, count = value(found, "mapping"), value(found, "open_blocks")
    sizes = "erase_block_kb clustered_block_kb"
    if kind == "page":
        buffered = bool(value(found, "write_buffer_kb"))
        return [*cannot(sizes, "mapped by page, no write leaves an erase block"),
                Finding("stride_boundary", "amount" if buffered else None, "",
                        0.95 if buffered else 0, "" if buffered else "no boundary")]
    turns = turns_of(bench, found)
    if kind is None or count is None or turns is None:
        return cannot(f"{sizes} stride_boundary", "the mapping is not known")
    near = Neighbours(turns, count)
    page = int((value(found, "flash_page_kb") or 4) * KB)
    step = max(int((value(found, "clustered_page_kb") or 4) * KB), turns.length)
    size = block_size(near, min(page, step), step)
    if size is None or not right_size(near, size, step):
        return [*cannot(sizes, "the boundaries of the erase blocks vary"),
                Finding("stride_boundary", "offset", confidence=0.95)]
    curve = turns.curve(count)
    return [Finding("erase_block_kb", size / KB, "KB", 0.97, curve=curve),
            Finding("clustered_block_kb", size / KB, "KB", 0.95, curve=curve),
            Finding("stride_boundary", "offset", confidence=0.97, curve=curve)]


def right_size(near: Neighbours, size: int, step: int) -> bool:
    """Return true if other erase blocks than the first one have this size, too."""
    for number in (1, 2, 5):
        begin, end = number * size, (number + 1) * size
        if end + size > near.turns.bench.size // 2:
            continue
        first, last = -(-begin // step) * step, end // step * step - step
        if not near.same(first, last) or near.same(first, -(-end // step) * step):
            return False
    return True
