# SPDX-License-Identifier: GPL-2.0
"""What the procedures that write have in common.

A program is seen in the time of a write, or of the flush after it if the drive acknowledges writes
before they are programmed. A drive whose buffer survives a power failure has nothing to do for a
flush: its programs are seen only once the buffer is full.
"""
import numpy

from ssd_common import change
from ssd_probe import engine
from ssd_probe.engine import FLUSH, READ, WRITE
from ssd_probe.probe import Bench, Finding

KB, MB = 1 << 10, 1 << 20
# Time in which a drive programs what its buffer holds, in ns.
PAUSE_NS, LONG_PAUSE_NS = 1_000_000_000, 6_000_000_000
# Time for the work that a drive does while it is idle, before a write whose time counts.
IDLE_NS = 25_000_000
# A multiple of the row of pages on all units, for nearly any number of units and size of page:
# 2^8 * 3 * 5 * 7 pages of 4 KB.
FAR = 26880 * 4 * KB


def value(found: dict[str, Finding], name: str):
    """Return the value of a finding, None if it is missing."""
    return found[name].value if name in found else None


def cannot(names: str, why: str) -> list[Finding]:
    """Return findings that say why they cannot tell."""
    return [Finding(name, None, why=why) for name in names.split()]


def took(done: numpy.ndarray) -> numpy.ndarray:
    """Return the ns of each I/O."""
    return (done["end_ns"] - done["begin_ns"]).astype(float)


class Places:
    """Places that ascend over the drive from a random one on, so that no write meets what was
    written shortly before, and most stay in the erase block of their predecessor."""

    def __init__(self, bench: Bench):
        self.bench = bench
        self.next = int(bench.places(1, MB, high=bench.size // 2)[0])

    def take(self, count: int, length: int, align: int = 0, gaps: bool = False) -> numpy.ndarray:
        """Return @count places of @length bytes, multiples of @align (default: @length), with one
        or two units of that left out between some of them if @gaps."""
        align = align or length
        steps = numpy.full(count, -(-length // align))
        if gaps:
            steps += self.bench.random.integers(1, 3, count)
        total = int(steps.sum()) * align
        if self.next + total + align > self.bench.size:
            self.next = 0
        first = -(-self.next // align)
        self.next = (first + int(steps.sum())) * align
        return (first + numpy.cumsum(steps) - steps) * align


def flushed(offsets, lengths, delay_ns: int = 0) -> numpy.ndarray:
    """Return a list of I/O: each write is followed by a flush, and comes after a pause."""
    listed = numpy.repeat(engine.ios(offsets, lengths, WRITE, True, delay_ns), 2)
    listed["op"][1::2], listed["length"][1::2], listed["delay_ns"][1::2] = FLUSH, 0, 0
    return listed


def write_and_flush(bench: Bench, offsets, lengths,
                    delay_ns: int = 0) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Make each write and a flush after it; return the ns of the writes and of the flushes."""
    times = took(bench.engine.play(flushed(offsets, lengths, delay_ns)))
    return times[::2], times[1::2]


def program_costs(bench: Bench, offsets, lengths, delay_ns: int = 0) -> numpy.ndarray:
    """Return the ns from the begin of each write until it is programmed, as far as the drive tells
    (programs_seen()). @delay_ns: a pause before each write."""
    return numpy.add(*write_and_flush(bench, offsets, lengths, delay_ns))


def flush_costs(bench: Bench, count: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return the ns of flushes after a small write, and of flushes after none."""
    length = max(bench.block, 4 * KB)
    offsets = Places(bench).take(count, length, 64 * KB)
    busy = write_and_flush(bench, offsets, length)[1]
    idle = took(bench.engine.play(engine.ios(numpy.zeros(count), 0, FLUSH)))
    return busy, idle


def flush_works(busy: numpy.ndarray, idle: numpy.ndarray) -> bool:
    """Return true if flushes with something to do take longer than those without."""
    return change.differ(idle, busy) and numpy.median(busy) > 1.5 * numpy.median(idle)


def programs_seen(bench: Bench, found: dict[str, Finding]) -> bool | None:
    """Return true if program_costs() has the time of the programs, None if that is not known."""
    if flush_works(*flush_costs(bench, 24)):
        return True
    early = value(found, "early_ack")
    return None if early is None else not early


def settle(bench: Bench, pause_ns: int = PAUSE_NS):
    """Let the drive program what it has acknowledged."""
    wait = engine.ios([0, 0], 0, FLUSH, barriers=True)
    wait["delay_ns"][1] = pause_ns
    bench.engine.play(wait)


def pause_of(bench: Bench) -> int:
    """Return the ns that settle() has to wait: long if the drive has nothing to do for a flush."""
    return PAUSE_NS if flush_works(*flush_costs(bench, 24)) else LONG_PAUSE_NS


def reads_from_flash(bench: Bench, count: int, length: int) -> numpy.ndarray:
    """Return the ns of reads at random places, each of which continues another one: some drives
    look for the place of others first."""
    first = min(max(length, 64 * KB), bench.max_bytes)
    offsets = numpy.repeat(bench.places(count, first, length=first + length), 2)
    offsets[1::2] += first
    lengths = numpy.tile([first, length], count)
    return bench.latencies(offsets, lengths, READ)[1::2]
