# SPDX-License-Identifier: GPL-2.0
"""Size and kind of the write buffer.

After "Parameter-aware I/O management for solid state disks", sections 4.2.6 and 4.3: a write takes
longer from the size on that the buffer does not hold, and a cache still has what was written
before other writes, while a FIFO buffer has programmed it.
"""
import dataclasses

import numpy

from ssd_probe import change, engine, writing
from ssd_probe.engine import READ, WRITE
from ssd_probe.probe import Bench, Curve, Finding, procedure
from ssd_probe.writing import FAR, KB, MB, Places, cannot, value

# The most pieces that are written to fill a buffer.
MOST = 8192
# Pieces in a row that the buffer holds, or lacks, for all others to be held or lacking.
RUN = 24


class Kept:
    """Which of the pieces written last the drive still holds in its buffer: reads tell. @length:
    bytes of a piece. Pieces lie so far apart that no two share a page."""

    def __init__(self, bench: Bench, count: int, length: int, limit_ns: float, pause_ns: int):
        self.bench, self.length, self.limit_ns = bench, length, limit_ns
        room = max(8, (bench.size - 2 * MB) // max(64 * KB, length))
        self.offsets = Places(bench).take(min(count, room), length, max(64 * KB, length))
        bench.engine.play(engine.ios(self.offsets, length, WRITE))
        writing.settle(bench, pause_ns)
        # A read of something else takes a change of direction upon itself.
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


def cache_pieces(bench: Bench, length: int, most: int, limit_ns: float) -> int | None:
    """Return how many pieces of @length bytes a cache keeps; None if it is a FIFO buffer, which
    keeps what waits for a program: one piece, or another number each time."""
    pause = writing.pause_of(bench)
    first = Kept(bench, most, length, limit_ns, pause)
    count = first.youngest()
    if count < 2 or count == len(first):
        return count if count > 1 else None
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
    length = max(bench.block, 4 * KB)
    limit = limit_of_hits(bench, length)
    if limit is None:
        return cannot("write_buffer_kind", "the drive does not serve reads from its write buffer")
    count = cache_pieces(bench, length, 700, limit)
    kind = "fifo" if count is None else "cache"
    return [Finding("write_buffer_kind", kind, confidence=0.98)]


def cache_size(bench: Bench) -> Finding:
    """Find how much a write cache keeps."""
    length = max(bench.block, 4 * KB)
    limit = limit_of_hits(bench, length)
    if limit is None:
        return cannot("write_buffer_kb", "the drive does not serve reads from its cache")[0]
    most, count = 700, None
    while count is None and most <= MOST:
        count = cache_pieces(bench, length, most, limit)
        if count is None:
            return cannot("write_buffer_kb", "what the cache keeps varies")[0]
        if count >= most - 1:
            most, count = most * 3, None
    if count is None:
        return cannot("write_buffer_kb", f"the cache keeps more than {MOST * length // MB} MB")[0]
    fine = max(bench.block, count * length // 400 // bench.block * bench.block)
    if fine < length:
        count, length = cache_pieces(bench, fine, 3 * count * length // fine // 2, limit), fine
        if count is None:
            return cannot("write_buffer_kb", "what the cache keeps varies")[0]
    return Finding("write_buffer_kb", count * length / KB, "KB", 0.98)


@dataclasses.dataclass
class Fill:
    """How a FIFO buffer fills. @held: pieces that it holds, @at: writes that did not wait, @ends:
    the ns at which the writes ended."""
    held: float
    at: int
    ends: numpy.ndarray


def fill(bench: Bench, offsets: numpy.ndarray, length: int, depth: int) -> Fill | None:
    """Write pieces until the buffer is full; return None if none has to wait for a program."""
    writing.settle(bench, writing.pause_of(bench))
    done = bench.engine.play(engine.ios(offsets, length, WRITE), depth, 20)
    return filled(numpy.sort(done["end_ns"]).astype(float))


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
    return Fill(at - float(ends[at - 1] - ends[0]) / slow, at, ends)


def two_places(bench: Bench, found, count: int, length: int) -> list[numpy.ndarray]:
    """Return lists of places that alternate, so that a FIFO buffer joins no two writes. The pair
    of one of them is likely to be on the same unit, whatever the allocation."""
    base = int(Places(bench).take(1, MB, MB)[0])
    units, stride = value(found, "units"), value(found, "stride_kb")
    page = int(max(value(found, "clustered_page_kb") or 0, 64) * KB)
    far = FAR if base + FAR + MB < bench.size else FAR // 4
    steps = [page]
    if units and stride and units * stride < 4096:
        row = int(units * stride * KB)
        steps.insert(0, row * max(1, page // row))
    if value(found, "mapping") == "page":
        steps.append(far)
    return [base + numpy.arange(count) % 2 * step for step in steps]


def first_fill(bench: Bench, found, length: int, depth: int) -> tuple[int, int] | None:
    """Return which of two_places() fills the buffer, and with how many writes."""
    count = 256
    while count <= MOST:
        for which, offsets in enumerate(two_places(bench, found, count, length)):
            if fill(bench, offsets, length, depth):
                return which, count
        count *= 2
    return None


def fifo_pieces(bench: Bench, found, length: int, depth: int) -> tuple[float, list[Fill]] | None:
    """Return how many pieces the buffer holds, and how it filled each time."""
    first = first_fill(bench, found, length, depth)
    if first is None:
        return None
    which, count = first
    fills = [fill(bench, two_places(bench, found, count, length)[which], length, depth)
             for _ in range(5)]
    fills = [item for item in fills if item]
    if len(fills) < 3:
        return None
    return float(numpy.median([item.held for item in fills])), fills


def fifo_size(bench: Bench, found) -> Finding:
    """Find how much a FIFO buffer holds."""
    length = max(bench.block, 4 * KB)
    for depth in (1, min(8, bench.tags)):
        for piece in sorted({length, bench.block}, reverse=True):
            known = fifo_pieces(bench, found, piece, depth)
            if known is not None:
                break
        if known is not None:
            break
    if known is None:
        return cannot("write_buffer_kb", "flash programs as fast as the drive takes writes")[0]
    count, fills = known
    fine = max(bench.block, int(count * piece // 256) // bench.block * bench.block)
    if fine < piece:
        again = fifo_pieces(bench, found, fine, depth)
        if again is not None:
            (count, fills), piece = again, fine
    held = [item.held for item in fills]
    if not change.agree(held, 0.06, 2):
        return cannot("write_buffer_kb", "the buffer holds another amount each time")[0]
    size = count * piece
    exact = step_of_size(bench, found, size)
    curve = Curve("Writes of alternating places", "KB written", "us since the begin", {
        "end": (((numpy.arange(len(fills[0].ends)) + 1) * piece / KB).tolist(),
                (fills[0].ends / 1000).tolist())}, marks=[fills[0].at * piece / KB])
    return Finding("write_buffer_kb", round((exact or size) / KB, 1), "KB",
                   0.98 if exact else 0.95, curve=curve)


def step_of_size(bench: Bench, found, about: float) -> float | None:
    """Return the largest write that the empty buffer takes, in bytes, if it is near to @about: it
    tells exactly what one request can tell."""
    cluster = (value(found, "clustered_page_kb") or 0) * KB
    low, high = int(about * 0.85), int(about * 1.15)
    if high > bench.max_bytes or about < 2 * cluster or not cluster:
        return None
    low, high = (size // bench.block * bench.block for size in (low, high + bench.block))
    if low < bench.block or high - low < bench.block:
        return None
    times = {low: buffer_time(bench, low), high: buffer_time(bench, high)}
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
    return float(low)


def buffer_time(bench: Bench, length: int) -> float:
    """Return the ns of a write of @length bytes that finds the buffer empty."""
    offsets = Places(bench).take(5, length, max(64 * KB, bench.max_bytes))
    times, pause = [], writing.pause_of(bench)
    for offset in offsets:
        writing.settle(bench, pause)
        times.append(bench.latencies(offset, length, WRITE)[0])
    return float(numpy.median(times))


@procedure(gives="write_buffer_kb", needs="early_ack write_buffer_kind clustered_page_kb units "
           "stride_kb", destroys=True)
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
