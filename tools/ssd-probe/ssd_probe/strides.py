# SPDX-License-Identifier: GPL-2.0
"""Strided writes: "A new I/O scheduler for solid state devices", section 3.2, figures 8 to 12.

Small writes go forward by a stride. If some take much longer than others, the distance of these
peaks says why: the same offset for two strides is a boundary of the drive's blocks, the same
amount of data is a buffer that is emptied. Throughput falls with the stride until each write is in
another block.
"""
import numpy
import scipy.stats

from ssd_common import change
from ssd_probe import writing
from ssd_probe.engine import WRITE, ios
from ssd_probe.probe import Bench, Curve, Finding, procedure
from ssd_probe.writing import KB, MB

# Strides in KB, and the two whose peaks are compared.
STRIDES = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
COMPARED = (32, 64)
# Writes of a stride, and those of COMPARED; the most seconds of one.
COUNT, LONG_COUNT, LIMIT_S = 96, 512, 30
# Peaks that decide, at least.
PEAKS = 4


def times_of(bench: Bench, stride: int, count: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Write at multiples of @stride bytes; return the offsets and the ns of the writes."""
    length = max(bench.block, 4 * KB)
    count = min(count, bench.size // stride)
    begin = int(bench.places(1, 16 * MB, length=count * stride)[0]) if (
        bench.size > count * stride + 16 * MB) else 0
    offsets = begin + numpy.arange(count) * stride
    writing.settle(bench)
    done = bench.engine.play(ios(offsets, length, WRITE), 1, LIMIT_S)
    return offsets[:len(done)], writing.took(done)


def peaks_of(times: numpy.ndarray) -> numpy.ndarray:
    """Return the indices of the writes that take much longer than most: behind the widest gap
    between logarithms of sorted times, if that is a factor of two."""
    order = numpy.sort(numpy.log(times))
    middle = len(order) // 2
    gaps = numpy.diff(order[middle:])
    if not len(gaps) or gaps.max() < numpy.log(2):
        return numpy.zeros(0, dtype=int)
    limit = order[middle + int(numpy.argmax(gaps))]
    return numpy.flatnonzero(numpy.log(times) > limit)


def distance(offsets: numpy.ndarray, peaks: numpy.ndarray) -> float | None:
    """Return the bytes from one peak to the next, None if they are not regular."""
    if len(peaks) < PEAKS:
        return None
    steps = numpy.diff(offsets[peaks])
    middle = float(numpy.median(steps))
    return middle if numpy.mean(steps == middle) > 0.7 else None


@procedure(gives="stride_peaks_kb", destroys=True)
def stride_peaks(bench: Bench, _found) -> list[Finding]:
    """Distance of the writes that take long among strided ones"""
    lines, found = {}, []
    for stride in COMPARED:
        offsets, times = times_of(bench, stride * KB, LONG_COUNT)
        lines[f"stride {stride} KB"] = (((offsets - offsets[0]) / KB).tolist(),
                                        (times / 1000).tolist())
        found.append(distance(offsets, peaks_of(times)))
    curve = Curve("Strided writes", "KB from the first one", "us", lines, log_x=False)

    def cannot(why):
        return [Finding("stride_peaks_kb", None, "KB", why=why, curve=curve)]

    if None in found:
        return cannot("there are no regular peaks")
    if found[0] == found[1]:
        curve.marks = [found[0] / KB * number for number in range(1, PEAKS + 1)]
        return [Finding("stride_peaks_kb", found[0] / KB, "KB", 0.9, curve=curve)]
    if 2 * found[0] == found[1]:
        return cannot(f"the peaks are those of a buffer: one for {found[0] / COMPARED[0] / KB:.0f} "
                      "writes of either stride")
    return cannot("the peaks of two strides have nothing in common")


def is_faster(times: numpy.ndarray, others: numpy.ndarray) -> bool:
    """Return true if the mean of @times is less than that of @others by a tenth, and Welch's test
    does not take that for chance."""
    if times.mean() > 0.9 * others.mean():
        return False
    # The test needs times that vary.
    if times.std() + others.std() < 1e-6 * others.mean():
        return True
    # From the samples themselves scipy warns if one of them does not vary.
    found = scipy.stats.ttest_ind_from_stats(
        others.mean(), others.std(ddof=1), len(others), times.mean(), times.std(ddof=1), len(times),
        equal_var=False, alternative="greater")
    return bool(found.pvalue < change.CHANCE)


@procedure(gives="stride_level_kb", destroys=True)
def stride_level(bench: Bench, _found) -> list[Finding]:
    """Stride from which on longer ones are no slower"""
    strides = [stride for stride in STRIDES if 16 * stride * KB <= bench.size]
    every = [times_of(bench, stride * KB, COUNT)[1] for stride in strides]
    rates = [4 * KB / float(times.mean()) * 1000 for times in every]
    curve = Curve("Strided writes (BP, figure 10)", "KB, stride", "MB/s",
                  {"4 KB": ([float(stride) for stride in strides], rates)})
    faster = [is_faster(times, every[-1]) for times in every]
    if not any(faster):
        return [Finding("stride_level_kb", None, "KB", why="no stride is faster than a longer one",
                        curve=curve)]
    at = len(faster) - faster[::-1].index(True)
    if at > len(strides) - 2:
        return [Finding("stride_level_kb", None, "KB", curve=curve,
                        why="the longest strides still differ")]
    curve.marks = [float(strides[at])]
    return [Finding("stride_level_kb", strides[at], "KB", 0.9, curve=curve)]
