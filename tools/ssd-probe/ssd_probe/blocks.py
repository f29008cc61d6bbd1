# SPDX-License-Identifier: GPL-2.0
"""Mapping by page or by block, erase blocks, and how many of them are open.

After "A new I/O scheduler for solid state devices", section 3.2: a write into another erase block
than those before costs a merge. Instead of along the drive, writes go round and round a few places
here: as long as no more erase blocks have to be open than the drive allows, none is merged. Two
places close to each other that need one open block lie in the same erase block.
"""
import dataclasses

import numpy
import scipy.stats

from ssd_common import change
from ssd_probe import engine, writing
from ssd_probe.engine import WRITE
from ssd_probe.probe import Bench, Curve, Finding, procedure
from ssd_probe.writing import KB, cannot, value

# The most places that are written in turn: more than any drive is known to have open blocks.
MOST = 300
# Writes that a time is the median of, at least.
COUNT = 30
# Writes that fill most buffers, if no flush shows the programs.
PIECES = 2500
# Neighbouring places among which those of a turn are chosen in that case.
NEAR = 64


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
            # On random units, so that as many work at a time for any number of places.
            offsets = numpy.tile(places, rounds)
            offsets = offsets + self.bench.random.integers(0, NEAR, len(offsets)) * self.length
            writing.settle(self.bench, writing.LONG_PAUSE_NS)
            done = self.bench.engine.play(engine.ios(offsets, self.length, WRITE), 1, 60)
            return writing.took(done)[-COUNT:]
        offsets = numpy.tile(places, rounds)
        return writing.program_costs(self.bench, offsets, self.length)[2 * len(places):]

    def spread(self, count: int) -> numpy.ndarray:
        """Return @count places all over the drive, each time others: a clustered page may happen
        to lie in two erase blocks."""
        step = self.bench.size // (count + 1) // self.length
        shift = int(self.bench.random.integers(0, max(1, step // 2)))
        return (numpy.arange(count) * step + shift) * self.length

    def costly(self, count: int) -> bool:
        """Return true if @count open blocks cost more than one."""
        return self.dear(self.spread(count)) and self.dear(self.spread(count))

    def alone(self) -> numpy.ndarray:
        """Return the ns of writes that need one open block."""
        return self.times(self.spread(1))

    def dear(self, places) -> bool:
        """Return true if taking turns over @places costs more than writing to one. An open block
        that is full is merged in any case, and others are full at the same time: if only some of
        the writes are long, more of them decide."""
        many, one = numpy.empty(0), numpy.empty(0)
        while len(many) < 4 * COUNT:
            many = numpy.append(many, self.times(places))
            one = numpy.append(one, self.alone())
            self.known[len(places)] = many
            self.known.setdefault(1, one)
            share = float(is_long(many, one).mean())
            if share == 0 or share >= 0.5:
                break
        return dearer(many, one)

    def plain(self, count: int) -> bool:
        """Return true if more places than @count cost so much that it is seen in any case: with
        a full buffer other work of the drive is seen, too."""
        more = [numpy.median(times) for places, times in self.known.items() if places > count]
        return not self.pieces or min(more) > 3 * numpy.median(self.known[1])

    def curve(self, mark: float) -> Curve:
        """Return the time of a write by the number of places."""
        counts = sorted(self.known)
        return Curve("Writes in turn to places all over the drive", "places", "us", {
            "write": ([float(count) for count in counts],
                      [float(numpy.median(self.known[count])) / 1000 for count in counts])}, [mark])


def is_long(times: numpy.ndarray, one: numpy.ndarray) -> numpy.ndarray:
    """Return which of @times something was added to, compared to @one."""
    return times > 1.2 * numpy.median(one)


def dearer(many: numpy.ndarray, one: numpy.ndarray) -> bool:
    """Return true if more of the ns @many are long than of @one, by Fisher's exact test."""
    longs = [is_long(times, one) for times in (many, one)]
    table = [[int(times.sum()), int((~times).sum())] for times in longs]
    return bool(scipy.stats.fisher_exact(table, "greater")[1] < change.CHANCE)


def turns_of(bench: Bench, found) -> Turns | None:
    """Return how to see programs on this drive, None if they cannot be seen."""
    length = max(bench.block, 4 * KB)
    if writing.programs_seen(bench, found):
        return Turns(bench, max(length, int((value(found, "clustered_page_kb") or 0) * KB)), 0)
    if value(found, "write_buffer_kind") != "fifo":
        return None
    return Turns(bench, length, PIECES)


def first_dear(turns: Turns) -> tuple[int, int] | None:
    """Return a number of places that cost no more than one, and a number that do; None if any
    number costs the same."""
    low, high = 1, 2
    while high <= MOST:
        if turns.costly(high):
            return low, high
        low, high = high, high * 2 if high < 256 or high == MOST else MOST
    return None


def last_cheap(turns: Turns, low: int, high: int) -> int | None:
    """Return the largest number of places that cost no more than one, between @low, which does not,
    and @high; None if that is not always so."""
    while high - low > 1:
        middle = (low + high) // 2
        if turns.costly(middle):
            high = middle
        else:
            low = middle
    dear = [turns.dear(turns.spread(count)) for count in (high, 2 * high, 3 * high, high)]
    cheap = [turns.costly(count) for count in {low // 2, low - 1, low} if count > 1]
    return low if all(dear) and not any(cheap) else None


@procedure(gives="mapping open_blocks", needs="early_ack write_buffer_kind slc_cache_mb "
           "clustered_page_kb", destroys=True)
def mapping(bench: Bench, found) -> list[Finding]:
    """Mapping by page or by block, and the blocks that are open at once"""
    turns = turns_of(bench, found)
    if turns is None:
        return cannot("mapping open_blocks", "the drive hides its programs, also from a flush")
    page = [Finding("mapping", "page", "", 0.98, curve=turns.curve(MOST)),
            Finding("open_blocks", None, why="the mapping is by page")]
    if value(found, "slc_cache_mb"):
        page[0].why, page[0].confidence = "writes go to a cache in flash first", 0.9
        return page
    edge = first_dear(turns)
    page[0].curve = turns.curve(MOST)
    if edge is None:
        return page
    count = last_cheap(turns, *edge)
    if count is None or not turns.plain(count):
        return cannot("mapping open_blocks", "the cost of writes in turn varies")
    curve = turns.curve(count)
    return [Finding("mapping", "block", "", 0.98, curve=curve),
            Finding("open_blocks", count, "", 0.95, curve=curve)]


@dataclasses.dataclass
class Neighbours:
    """Whether two places are in the same erase block: with others in as many erase blocks as may
    be open less one, they cost no more than one."""
    turns: Turns
    open_blocks: int

    def same(self, first: int, second: int) -> bool:
        """Return true if two places are in the same erase block."""
        size = self.turns.bench.size
        length = self.turns.length
        others = (size // 2 + numpy.arange(self.open_blocks - 1) * (
            size // 2 // self.open_blocks)) // length * length
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
    # The next clustered page is not wholly in the erase block.
    least, most = low + step, low + 2 * step - page
    return least if least == most else narrowed(near, page, step, least, most)


def narrowed(near: Neighbours, page: int, step: int, least: int, most: int) -> int | None:
    """Return the size between @least and @most bytes, if clustered pages of @step bytes may lie in
    two erase blocks: the end of a later erase block tells it more exactly."""
    number = 2
    while most - least >= page and number * most < near.turns.bench.size // 2:
        begin = -(-(number - 1) * most // step) * step
        low = max(begin, number * least // step * step - step)
        high = number * most // step * step
        if not near.same(begin, low) or near.same(begin, high):
            return None
        last = near.last(begin, low, high, step)
        # The erase block ends with the clustered page @last, or in the next one.
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
