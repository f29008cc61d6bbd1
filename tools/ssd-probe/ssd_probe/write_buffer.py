# SPDX-License-Identifier: GPL-2.0
"""Size and kind of the write buffer.

After "Parameter-aware I/O management for solid state disks", sections 4.2.6 and 4.3: a write takes
longer from the size on that the buffer does not hold, and a cache still has what was written
before other writes, while a FIFO buffer has programmed it.
"""
import dataclasses

import numpy

from ssd_common import change
from ssd_probe import engine, writing
from ssd_probe.engine import READ, WRITE
from ssd_probe.probe import Bench, Curve, Finding, procedure
from ssd_probe.writing import FAR, KB, MB, Places, cannot, value

# The most pieces that are written to fill a buffer.
MOST = 8192
# Pieces that are written to find what a cache keeps.
PIECES = (700, 2100, 6300)
# Pieces in a row that the buffer holds, or lacks, for all others to be held or lacking.
RUN = 24
# The most seconds of a fill.
LIMIT_S = 20
# Time for the merges of erase blocks that a fill causes, in ns.
MERGES_NS = 40_000_000_000


class Kept:
    """Which of the pieces written last the drive still holds in its buffer: reads tell. @length:
    bytes of a piece. Pieces lie so far apart that no two share a page."""

    def __init__(self, bench: Bench, count: int, length: int, limit_ns: float, pause_ns: int):
        self.bench, self.length, self.limit_ns = bench, length, limit_ns
        room = max(8, (bench.size - 2 * MB) // max(64 * KB, length))
        self.offsets = Places(bench).take(min(count, room), length, max(64 * KB, length))
        for part in numpy.array_split(self.offsets, -(-len(self.offsets) // 512)):
            bench.engine.play(engine.ios(part, length, WRITE))
        writing.settle(bench, pause_ns)
        # The first read pays for the change of direction.
        bench.latencies(0, length, READ)
        self.known: dict[int, bool] = {}

    def __len__(self):
        return len(self.offsets)

    def held(self, age: int) -> bool:
        """Return true if the buffer holds the piece after which @age others were written."""
        if age not in self.known:
            took = self.bench.latencies(self.offsets[-1 - age], self.length, READ)[0]
            self.known[age] = bool(took < self.limit_ns)
        return self.known[age]

    def youngest(self) -> int:
        """Return how many of the youngest pieces the buffer holds. It need not drop them exactly in
        the order of writes: those about the first one that it lacks are all read."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.held(middle):
                low = middle + 1
            else:
                high = middle
        first = self.first_run(low, -1, True)
        return first + sum(self.held(age) for age in range(first, self.first_run(low, 1, False)))

    def first_run(self, age: int, way: int, held: bool) -> int:
        """Return the age, from @age on in a direction, behind which the buffer holds all of a run
        of pieces, or none of it."""
        run = 0
        while 0 <= age + min(way, 0) < len(self) and run < RUN:
            age += min(way, 0)
            run = run + 1 if self.held(age) == held else 0
            age += max(way, 0)
        return age


def limit_of_hits(bench: Bench, length: int) -> float | None:
    """Return the ns between a read from the write buffer and one from flash, or None if reads do
    not tell."""
    offsets = Places(bench).take(32, length, 64 * KB)
    listed = numpy.repeat(engine.ios(offsets, length, WRITE), 3)
    listed["op"][1::3] = listed["op"][2::3] = READ
    hits = writing.took(bench.engine.play(listed))[2::3]
    writing.settle(bench, writing.LONG_PAUSE_NS)
    misses = writing.reads_from_flash(bench, 64, length)
    if not change.differ(hits, misses) or numpy.median(hits) > 0.9 * numpy.median(misses):
        return None
    return float(numpy.median(hits) + numpy.median(misses)) / 2


def kept_pieces(bench: Bench, length: int, most: int) -> int | None:
    """Return how many of @most pieces of @length bytes the drive keeps in its buffer, None if that
    is not the same number each time. A FIFO buffer keeps the youngest one at most."""
    limit_ns = limit_of_hits(bench, length)
    if limit_ns is None:
        return None
    pause = writing.pause_of(bench)
    first = Kept(bench, most, length, limit_ns, pause)
    count = first.youngest()
    if count < 2 or count == len(first):
        return count
    second = Kept(bench, max(len(first) - 131, count + 97), length, limit_ns, pause)
    return count if abs(second.youngest() - count) <= 1 + count // 50 else None


@procedure(gives="write_buffer_kind", needs="early_ack", destroys=True)
def write_buffer_kind(bench: Bench, found) -> list[Finding]:
    """Whether the write buffer is a FIFO or a cache"""
    early = value(found, "early_ack")
    if early is None:
        return cannot("write_buffer_kind", "it is not known whether writes are buffered")
    if not early:
        return [Finding("write_buffer_kind", "none", confidence=found["early_ack"].confidence)]
    count = kept_pieces(bench, max(bench.block, 4 * KB), PIECES[0])
    if count is None:
        return cannot("write_buffer_kind", "reads do not say what the buffer keeps")
    return [Finding("write_buffer_kind", "cache" if count > 1 else "fifo", confidence=0.98)]


def cache_size(bench: Bench) -> Finding:
    """Find how much a write cache keeps."""
    length, count = max(bench.block, 4 * KB), None
    for most in PIECES:
        count = kept_pieces(bench, length, most)
        if count is None or count < most - 1:
            break
    else:
        return cannot("write_buffer_kb", f"the cache keeps more than {count * length // MB} MB")[0]
    fine = max(bench.block, (count or 0) * length // 400 // bench.block * bench.block)
    if count and fine < length:
        count, length = kept_pieces(bench, fine, 3 * count * length // fine // 2), fine
    if not count:
        return cannot("write_buffer_kb", "what the cache keeps varies")[0]
    return Finding("write_buffer_kb", count * length / KB, "KB", 0.98)


@dataclasses.dataclass
class Fill:
    """How a FIFO buffer fills. @at: writes that did not wait, @held: those of them that had not
    been programmed when the next one waited, @ends: the ns at which the writes ended."""
    at: int
    held: float
    ends: numpy.ndarray


def filled(ends: numpy.ndarray) -> Fill | None:
    """Find from the ns at which writes ended how many the buffer holds: those that did not wait,
    less those programmed since the begin at the rate at which it goes on when it is full."""
    at = change.rise(numpy.diff(ends, prepend=0), 8)
    if at is None:
        return None
    # Two places may be on two units, which end their programs in pairs.
    slow = float(numpy.median(ends[at + 2:] - ends[at:-2])) / 2
    if slow < 1.25 * (ends[at - 1] - ends[0]) / (at - 1):
        return None
    return Fill(at, at - float(ends[at - 1] - ends[0]) / slow, ends)


@dataclasses.dataclass
class Filler:
    """Fills a FIFO buffer with pieces of @length bytes, @depth of them at a time, at @places in
    turn, so that the buffer joins no two of them."""
    bench: Bench
    places: numpy.ndarray
    length: int
    depth: int
    pause_ns: int

    def fill(self, count: int) -> Fill | None:
        """Write @count pieces; return None if none has to wait for a program."""
        writing.settle(self.bench, self.pause_ns)
        listed = engine.ios(numpy.resize(self.places, count), self.length, WRITE)
        done = self.bench.engine.play(listed, self.depth, LIMIT_S)
        return filled(numpy.sort(done["end_ns"]).astype(float))

    def repeated(self, count: int) -> list[Fill]:
        """Return how the buffer filled several times."""
        fills = [self.fill(count) for _ in range(7)]
        return [item for item in fills if item]


def size_of(fills: list[Fill], steady: bool = True) -> float | None:
    """Return how many pieces the buffer holds, None if @fills do not say. @steady: programs take as
    long while the buffer fills as when it is full. Otherwise, and if the fills differ: a drive
    that does other work meanwhile programs less, so a buffer holds as many as in any of the
    fills, and less than did not wait in any."""
    if len(fills) < 4:
        return None
    held = numpy.sort([item.held for item in fills])
    most = min(item.at for item in fills)
    # Many programs while the buffer fills make the difference inexact.
    if most > 1.33 * float(numpy.median(held)):
        return None
    if steady and change.agree(held[1:-1], 0.025, 1):
        return min(float(numpy.median(held)) + 0.5, most)
    least = float(held[-2])
    if abs(most - least) > max(0.1 * most, 2):
        return None
    return (most + least) / 2


def fillers(bench: Bench, found) -> list[tuple[Filler, int]]:
    """Return ways to fill the buffer, the preferred first, with the number of pieces to begin with.
    The slower a drive programs, the better. Mapped by block, it is slowest between erase blocks,
    of which a few large pieces do; otherwise on one unit."""
    length, pause = max(bench.block, 4 * KB), writing.pause_of(bench)
    count = value(found, "open_blocks")
    if value(found, "mapping") == "block" and count:
        places = numpy.arange(count + 1) * (bench.size // (count + 2) // MB * MB)
        merge = float(writing.program_costs(
            bench, numpy.resize(places, 3 * len(places)), length).mean())
        cluster = max(length, int((value(found, "clustered_page_kb") or 4) * KB))
        listed = []
        for size in (length << shift for shift in range(0, 10, 2)):
            # Clustered pages that are programmed at the same time may each cause a merge.
            pieces = int(min(192, MERGES_NS / merge / -(-size // cluster)))
            if pieces >= 24 and size <= bench.max_bytes:
                listed.append((Filler(bench, places, size, 1, pause), pieces))
        return listed
    base = int(Places(bench).take(1, MB, MB)[0])
    pairs = [numpy.array([base, base + step]) for step in steps(bench, found, base)]
    ways = [(1, length), (1, bench.block), (min(8, bench.tags), length),
            (min(8, bench.tags), bench.block)]
    return [(Filler(bench, pair, size, depth, pause), 256) for depth, size in dict.fromkeys(ways)
            for pair in pairs]


def steps(bench: Bench, found, base: int) -> list[int]:
    """Return distances of two places that are likely to be on the same unit."""
    units, stride = value(found, "units"), value(found, "stride_kb")
    page = int(max(value(found, "clustered_page_kb") or 0, 64) * KB)
    listed = [page]
    if units and stride and units * stride < 4096:
        row = int(units * stride * KB)
        listed.insert(0, row * -(-page // row))
    if base + FAR + MB < bench.size:
        listed.append(FAR)
    return listed


def fifo_fills(bench: Bench, found) -> tuple[Filler, list[Fill]] | None:
    """Return how the buffer fills in the first of the ways in which it does."""
    for filler, least in fillers(bench, found):
        count, most = least, least if value(found, "mapping") == "block" else MOST
        while count <= most:
            if filler.fill(count):
                return filler, filler.repeated(count)
            count *= 2
    return None


def corrected(count: float, found) -> float | None:
    """Return how many pieces the buffer holds, without what its first programs make of @count; None
    if they make too much of it."""
    more = 0
    if value(found, "mapping") == "block":
        # As many writes as blocks are open may have been programmed without a merge.
        more = -int(value(found, "open_blocks") or 0)
    elif value(found, "static_allocation") is False:
        # All units begin, and end, their first programs at once.
        more = int(value(found, "units") or 0)
    return None if abs(more) > 0.1 * count else count + more / 2


def fifo_size(bench: Bench, found) -> Finding:
    """Find how much a FIFO buffer holds."""
    known = fifo_fills(bench, found)
    if known is None or not known[1]:
        return cannot("write_buffer_kb", "flash programs as fast as the drive takes writes")[0]
    filler, fills = known
    steady = value(found, "slc_cache_mb") == 0
    count = size_of(fills, steady)
    if count:
        count = corrected(count, found)
    fine = max(bench.block, int((count or 0) * filler.length // 256) // bench.block * bench.block)
    if count and fine < filler.length and value(found, "mapping") != "block":
        finer = dataclasses.replace(filler, length=fine)
        again = finer.repeated(int(1.6 * count * filler.length / fine) + 32)
        if size_of(again, steady):
            filler, fills, count = finer, again, corrected(size_of(again, steady), found)
    about = (count or numpy.mean([item.at for item in fills])) * filler.length
    exact = step_of_size(bench, found, about)
    most = (min(item.at for item in fills) + 1) * filler.length
    if exact and (exact > most or count and abs(exact - about) > 0.06 * about):
        exact = None
    if not count and not exact:
        return cannot("write_buffer_kb", "the buffer holds another amount each time")[0]
    one = fills[0]
    curve = Curve("Writes that fill the buffer", "KB written", "us since the begin", {
        "end": (((numpy.arange(len(one.ends)) + 1) * filler.length / KB).tolist(),
                (one.ends / 1000).tolist())}, marks=[(exact or about) / KB])
    return Finding("write_buffer_kb", round((exact or about) / KB, 1), "KB",
                   0.98 if exact else 0.95, curve=curve)


def step_of_size(bench: Bench, found, about: float) -> float | None:
    """Return the largest write that the empty buffer takes, in bytes, if it is near to @about: it
    tells exactly what one request can tell."""
    cluster = (value(found, "clustered_page_kb") or 0) * KB
    low, high = int(about * 0.8), int(about * 1.2)
    if high > bench.max_bytes or about < 2 * cluster or not cluster:
        return None
    low, high = (size // bench.block * bench.block for size in (low, high + bench.block))
    if low < bench.block or high - low < bench.block:
        return None
    ends = (low, high)
    times = {size: buffer_time(bench, size) for size in ends}
    base = buffer_time(bench, bench.block)
    if times[high] < 1.3 * (base + (times[low] - base) * high / low):
        return None
    while high - low > bench.block:
        middle = (low + high) // 2 // bench.block * bench.block
        took = buffer_time(bench, middle)
        inside = base + (times[low] - base) * (middle - bench.block) / max(1, low - bench.block)
        if abs(took - inside) < abs(took - times[high]):
            low = middle
            times[low] = took
        else:
            high = middle
            times[high] = took
    return None if low == ends[0] or high == ends[1] else float(low)


def buffer_time(bench: Bench, length: int) -> float:
    """Return the ns of a write of @length bytes that finds the buffer empty."""
    offsets = Places(bench).take(5, length, max(64 * KB, bench.max_bytes))
    times, pause = [], writing.pause_of(bench)
    for offset in offsets:
        writing.settle(bench, pause)
        times.append(bench.latencies(offset, length, WRITE)[0])
    return float(numpy.median(times))


@procedure(gives="write_buffer_kb", needs="early_ack write_buffer_kind clustered_page_kb units "
           "stride_kb static_allocation mapping open_blocks slc_cache_mb", destroys=True)
def write_buffer_kb(bench: Bench, found) -> list[Finding]:
    """Size of the write buffer"""
    early, kind = value(found, "early_ack"), value(found, "write_buffer_kind")
    if early is None:
        return cannot("write_buffer_kb", "it is not known whether writes are buffered")
    if not early:
        return [Finding("write_buffer_kb", 0, "KB", found["early_ack"].confidence)]
    if kind == "cache":
        return [cache_size(bench)]
    if kind == "fifo":
        return [fifo_size(bench, found)]
    return cannot("write_buffer_kb", "it is not known how the buffer works")
