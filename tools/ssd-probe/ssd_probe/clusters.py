# SPDX-License-Identifier: GPL-2.0
"""The clustered page: the unit in which the drive writes ("Parameter-aware I/O management for solid
state disks", section 4.2.3, procedure 1).

A write that covers a clustered page in part reads the rest first. So the time of a write drops when
its size becomes a multiple of the clustered page, and rises when it grows beyond it.
"""
import numpy

from ssd_common import change
from ssd_probe import writing
from ssd_probe.probe import Bench, Curve, Finding, procedure
from ssd_probe.writing import KB, Places, cannot, value

# Writes of each size.
COUNT = 12
# Percent of the times of a size that are used.
LOW = 20


class Sizes:
    """The times of writes by their size."""

    def __init__(self, bench: Bench):
        self.bench, self.places, self.times = bench, Places(bench), {}
        writing.settle(bench, writing.LONG_PAUSE_NS)
        # So many samples are needed if other work of the drive is among them.
        self.count = COUNT
        if spread(self.measure(max(bench.block, 4 * KB), 64 * KB, 32)) > 0.1:
            self.count = 4 * COUNT
        self.times = {}
        # A clustered page that is written in part costs a read, of which most is not overhead.
        self.least_ns = float(numpy.median(writing.reads_from_flash(bench, 32, bench.block))) / 20

    def measure(self, length: int, align: int, count: int) -> numpy.ndarray:
        """Return the ns of @count more writes of @length bytes at multiples of @align."""
        offsets = self.places.take(count, length, align, gaps=True)
        took = writing.program_costs(self.bench, offsets, length, writing.IDLE_NS)
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
    chance = 1e-2 if count == COUNT else change.CHANCE
    if not (change.differ(same, less, chance) and change.differ(same, more, chance)):
        return False
    # The fastest of them show no other work of the drive.
    less, same, more = (numpy.percentile(part, LOW) for part in (less, same, more))
    # A block more is in another clustered page, of which more is read than of the one before.
    drop = less - same
    return drop > sizes.least_ns and more - same > 0.7 * drop


def candidates(bench: Bench, page: int) -> list[int]:
    """Return the sizes that a clustered page may have, in bytes. @page: of flash."""
    fine = min(max(page, KB), 4 * KB)
    most = min(bench.max_bytes, 512 * KB)
    listed = {KB, 2 * KB} | set(range(fine, 16 * fine + 1, fine)) | set(range(4 * KB, most, 4 * KB))
    return sorted(size for size in listed | {most}
                  if bench.block < size <= most and not size % bench.block)


def smallest(sizes: Sizes, size: int) -> int:
    """Return the smallest part of @size that is a multiple of the clustered page as well: it may
    have been overlooked beside other work of the drive."""
    for part in (4, 3, 2):
        least = size // part
        if not size % (part * sizes.bench.block) and least > sizes.bench.block and (
                is_multiple(sizes, least, 6 * COUNT)):
            return least
    return size


@procedure(gives="clustered_page_kb", needs="early_ack flash_page_kb", destroys=True)
def clustered_page_kb(bench: Bench, found) -> list[Finding]:
    """Size of the clustered page"""
    seen = writing.programs_seen(bench, found)
    if not seen:
        return cannot("clustered_page_kb", "the drive hides its programs, also from a flush")
    sizes = Sizes(bench)
    tried = candidates(bench, int((value(found, "flash_page_kb") or 4) * KB))
    for number, size in enumerate(tried):
        bench.progress(number / len(tried))
        if is_multiple(sizes, size, sizes.count) and is_multiple(sizes, size, 6 * COUNT):
            least = smallest(sizes, size) / KB
            return [Finding("clustered_page_kb", least, "KB", 0.99, curve=sizes.curve(least))]
    small, large = (sizes.measure(size, max(size, 64 * KB), 32)
                    for size in (bench.block, bench.max_bytes))
    if spread(small) > 0.1 or numpy.median(large) < 1.5 * numpy.median(small):
        return cannot("clustered_page_kb", "no size of writes is faster than a smaller one")
    return [Finding("clustered_page_kb", bench.block / KB, "KB", 0.8,
                    "no size is faster than one block less: a block is written without a read",
                    sizes.curve(bench.block / KB))]
