# SPDX-License-Identifier: GPL-2.0
"""Size of a cache of single-level cells, and the cliff behind it.

What a stream of writes has left in the cache is read faster than the rest, which tells a cache from
other reasons for writes to slow down, such as garbage collection.
"""
import numpy

from ssd_common import change
from ssd_probe import engine, writing
from ssd_probe.engine import READ, WRITE
from ssd_probe.probe import Bench, Curve, Finding, procedure
from ssd_probe.writing import KB, MB, cannot, value

# The most MB of the stream, and the reads that look for it.
MOST_MB, READS = 768, 1200
# Parts of the stream that are looked at on their own.
PARTS = 40
# Bytes at its end that may be in the write buffer, and seconds of the stream at most.
BUFFER, LIMIT_S = 16 * MB, 90


def stream(bench: Bench) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return the places of a stream of writes, and those of reads over all of it."""
    length = min(bench.max_bytes, 512 * KB)
    begin = min(bench.size // 4, 64 * MB)
    size = min(MOST_MB * MB, int(bench.size * 0.6)) // length * length
    writes = begin + numpy.arange(0, size, length)
    # Each read is of another page, whatever its size.
    step = max(64 * KB, (size - BUFFER) // READS // (64 * KB) * (64 * KB))
    return writes, begin + numpy.arange(0, size - BUFFER, step)


def measure(bench: Bench) -> tuple[numpy.ndarray, ...]:
    """Write the stream, then read it, without a pause in which the drive could empty its cache.
    Return the places and ends of the writes, places and ns of the reads, ns of reads elsewhere."""
    length = max(bench.block, 4 * KB)
    writes, reads = stream(bench)
    places = bench.random.permutation(reads)
    old = bench.random.permutation(numpy.arange(0, int(writes[0]), 64 * KB))[:len(places) // 4]
    every = numpy.arange(len(old)) * len(places) // len(old)
    mixed = numpy.insert(places, every, old)
    is_old = numpy.insert(numpy.zeros(len(places), bool), every, True)
    writing.settle(bench, writing.LONG_PAUSE_NS)
    listed = engine.ios(writes, int(writes[1] - writes[0]), WRITE)
    depth = min(8, bench.tags)
    ends = numpy.sort(bench.engine.play(listed, depth, LIMIT_S)["end_ns"]).astype(float)
    took = bench.latencies(mixed, length, READ)
    written = places < writes[0] + len(ends) * (writes[1] - writes[0])
    return writes[:len(ends)], ends, places[written], took[~is_old][written], took[is_old]


def rates(writes: numpy.ndarray, ends: numpy.ndarray) -> Curve:
    """Return MB/s by the MB written."""
    length = float(writes[1] - writes[0])
    each = max(1, len(ends) // 200)
    marks = ends[::each]
    done = (numpy.arange(len(marks)) * each + 1) * length / 1e6
    return Curve("A stream of writes", "MB written", "MB/s", {"write": (
        done[1:].tolist(), (each * length * 1e3 / numpy.maximum(numpy.diff(marks), 1)).tolist())},
        log_x=False)


def fast_parts(places: numpy.ndarray, took: numpy.ndarray, old: numpy.ndarray) -> numpy.ndarray:
    """Return the share of the reads @took, at @places, that are faster than those of @old data, of
    each part of the stream; all 0 if none are."""
    base = float(numpy.median(old))
    fast = took < 0.985 * base
    none = numpy.zeros(PARTS)
    if fast.mean() < 0.005 or not change.differ(took[fast], old):
        return none
    limit = (float(numpy.median(took[fast])) + base) / 2
    parts = numpy.array_split(took[numpy.argsort(places)] < limit, PARTS)
    shares = numpy.array([part.mean() for part in parts])
    # Some reads are faster by chance, such as those that a read buffer serves.
    chance = float((old < limit).mean())
    if shares.max() < chance + 0.3:
        return none
    return numpy.clip((shares - chance) / (1 - chance), 0, 1)


@procedure(gives="slc_cache_mb", needs="early_ack stride_kb", destroys=True)
def slc_cache_mb(bench: Bench, found) -> list[Finding]:
    """Size of a cache of single-level cells"""
    writes, ends, places, took, old = measure(bench)
    curve = rates(writes, ends)
    parts = fast_parts(places, took, old)
    size = len(writes) * float(writes[1] - writes[0]) - BUFFER
    size = (parts.mean() * size + parts[-3:].mean() * BUFFER) / MB
    if not size:
        return [Finding("slc_cache_mb", 0, "MB", 0.9, "nothing just written is read faster",
                        curve=curve)]
    if parts.min() > 0.9:
        return cannot("slc_cache_mb", "all that was just written is read faster, so the cache is "
                      f"larger than {size:.0f} MB")
    if (value(found, "stride_kb") or 0) > 1024:
        return cannot("slc_cache_mb", "each part of the drive has a cache of its own")
    curve.marks = [size]
    return [Finding("slc_cache_mb", round(size, 1), "MB", 0.9, curve=curve)]
