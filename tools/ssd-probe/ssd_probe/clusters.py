# SPDX-License-Identifier: GPL-2.0
"""The clustered page: the unit in which the drive writes ("Parameter-aware I/O management for solid
state disks", section 4.2.3, procedure 1).

A write that covers a clustered page in part reads the rest first. So the time of a write drops when
its size becomes a multiple of the clustered page, and rises when it grows beyond it.
"""
import numpy

from ssd_probe import change, writing
from ssd_probe.probe import Bench, Curve, Finding, procedure
from ssd_probe.writing import KB, Places, cannot

# Writes of each size.
COUNT = 12
# Time for the work that a drive does while it is idle, in ns.
IDLE_NS = 200_000_000


class Sizes:
    """The times of writes by their size."""

    def __init__(self, bench: Bench):
        self.bench, self.places, self.times = bench, Places(bench), {}
        self.delay_ns = 0
        length = max(bench.block, 4 * KB)
        hasty = self.measure(length, 64 * KB, 32)
        self.delay_ns = IDLE_NS
        calm = self.measure(length, 64 * KB, 32)
        # A drive that collects garbage beside the writes does not if it had time before.
        if spread(calm) > spread(hasty) / 2:
            self.delay_ns = 0
        self.times = {}

    def measure(self, length: int, align: int, count: int) -> numpy.ndarray:
        """Return the ns of @count more writes of @length bytes at multiples of @align."""
        offsets = self.places.take(count, length, align, gaps=True)
        took = writing.program_costs(self.bench, offsets, length, self.delay_ns)
        self.times.setdefault(length, []).extend(took.tolist())
        return took

    def middle(self, length: int) -> float:
        """Return the median ns of writes of @length bytes."""
        return float(numpy.median(self.times[length]))

    def curve(self, found: float) -> Curve:
        """Return the median time by size."""
        sizes = sorted(self.times)
        return Curve("Writes by size", "KB", "us", {"write": (
            [size / KB for size in sizes],
            [self.middle(size) / 1000 for size in sizes])}, [found], False)


def spread(times: numpy.ndarray) -> float:
    """Return the range of the middle half of @times, as a part of their median."""
    low, middle, high = numpy.percentile(times, [25, 50, 75])
    return float((high - low) / middle)


def is_multiple(sizes: Sizes, size: int, count: int) -> bool:
    """Return true if writes of @size bytes are faster than those of one block less and of one more,
    which read a part of a clustered page."""
    block, parts = sizes.bench.block, ([], [], [])
    for _ in range(count // 4):
        for part, length in zip(parts, (size - block, size, size + block), strict=True):
            part.append(sizes.measure(length, size, 4))
    less, same, more = (numpy.concatenate(part) for part in parts)
    chance = change.CHANCE if count > COUNT else 1e-2
    if not (change.differ(same, less, chance) and change.differ(same, more, chance)):
        return False
    # All of them, wherever they begin: otherwise only some multiples of @size end on a boundary.
    low, middle, high = numpy.percentile(same, [25, 50, 75])
    drop, rise = numpy.median(less) - middle, numpy.percentile(more, 25) - middle
    # A block more is in another clustered page, of which more is read than of the one before.
    return numpy.percentile(less, 25) > high and rise > max(high - low, 0.7 * drop)


def candidates(bench: Bench) -> list[int]:
    """Return the sizes that a clustered page may have, in bytes."""
    small = [size for size in (KB, 2 * KB) if size > bench.block]
    step = max(4 * KB, bench.block)
    return small + list(range(step, min(bench.max_bytes, 512 * KB) + 1, step))


@procedure(gives="clustered_page_kb", needs="early_ack", destroys=True)
def clustered_page_kb(bench: Bench, found) -> list[Finding]:
    """Size of the clustered page"""
    seen = writing.programs_seen(bench, found)
    if not seen:
        return cannot("clustered_page_kb", "the drive hides its programs, also from a flush")
    sizes = Sizes(bench)
    tried = [size for size in candidates(bench) if size > bench.block]
    for number, size in enumerate(tried):
        bench.progress(number / len(tried))
        if is_multiple(sizes, size, COUNT) and is_multiple(sizes, size, 4 * COUNT):
            return [Finding("clustered_page_kb", size / KB, "KB", 0.99,
                            curve=sizes.curve(size / KB))]
    small, large = (sizes.measure(size, max(size, 64 * KB), 32)
                    for size in (bench.block, bench.max_bytes))
    if spread(small) > 0.3 or numpy.median(large) < 1.5 * numpy.median(small):
        return cannot("clustered_page_kb", "no size of writes is faster than a smaller one")
    return [Finding("clustered_page_kb", bench.block / KB, "KB", 0.8,
                    "no size is faster than one block less: a block is written without a read",
                    sizes.curve(bench.block / KB))]
