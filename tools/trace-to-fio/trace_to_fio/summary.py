# SPDX-License-Identifier: GPL-2.0
"""What is in a trace: requests, sizes, footprint, rate, how sequential. In constant memory."""
import dataclasses

import numpy

from trace_to_fio.spool import Spool
from trace_to_fio.values import SECTOR

WAYS = ("read", "write")
# The footprint is counted in units of UNIT bytes; of larger traces in the multiple by which there
# are at most MARKS.
UNIT, MARKS = 4096, 1 << 26
# Units of a request that are marked one by one for all requests at a time; more as a slice.
FEW = 64
# Sizes are counted by sectors up to so many; larger ones, up to 4 GiB, by half as many steps for
# each doubling, so exact to 1/4096.
SECTORS = 8192
HALF = SECTORS // 2
SIZES = SECTORS + 10 * HALF + 1
# A request is sequential if it begins where one of so many before it, of the same kind, ended.
BEFORE = 32
# Intervals of the rate, of addresses, and of the picture's sizes.
STEPS, PLACES = 200, 100
S = 10**9
MOST = 5


def size_steps(size: numpy.ndarray) -> numpy.ndarray:
    """Return the numbers under which sizes in bytes are counted, as large ones are."""
    sectors = -(-size // SECTOR)
    doublings = numpy.maximum(numpy.frexp(sectors)[1].astype("<i8") - SECTORS.bit_length() + 1, 0)
    return doublings * HALF + -(-sectors // (1 << doublings))


def size_of(step: int) -> int:
    """Return the largest size in bytes that is counted under a number."""
    doublings = max(step // HALF - 1, 0)
    return (step - doublings * HALF << doublings) * SECTOR


class Way:
    """Counts of the reads or of the writes."""

    def __init__(self):
        self.requests = self.bytes = self.sequential = 0
        self.sizes = numpy.zeros(SIZES, "<i8")
        self.smallest, self.largest = 0, 0
        self.ends = numpy.full(BEFORE, -1, "<i8")
        self.rate = numpy.zeros(STEPS, "<i8")
        self.map = numpy.zeros((STEPS, PLACES), "<i8")

    def add(self, begin: numpy.ndarray, size: numpy.ndarray, step: numpy.ndarray,
            place: numpy.ndarray):
        """Count requests in order of time: bytes, bytes, intervals of time and of addresses."""
        if not len(size):
            return
        low, high = int(size.min()), int(size.max())
        self.smallest = min(self.smallest, low) if self.requests else low
        self.largest = max(self.largest, high)
        self.requests += len(size)
        self.bytes += int(size.sum())
        self.sizes += numpy.bincount(size_steps(size), minlength=SIZES)
        self.rate += numpy.bincount(step, minlength=STEPS)
        numpy.add.at(self.map, (step, place), 1)
        ends = numpy.concatenate([self.ends, begin + size])
        follows = numpy.zeros(len(begin), bool)
        for back in range(1, BEFORE + 1):
            follows |= ends[BEFORE - back:len(ends) - back] == begin
        self.sequential += int(follows.sum())
        self.ends = ends[-BEFORE:]

    def percentile(self, percent: float) -> int:
        """Return the size in bytes that so many percent of the requests do not exceed."""
        sums = numpy.cumsum(self.sizes)
        return min(size_of(int(numpy.searchsorted(sums, self.requests * percent / 100))),
                   self.largest)

    def common(self) -> list[tuple[int, int]]:
        """Return the commonest sizes in bytes, rounded up to sectors, with their requests."""
        order = numpy.argsort(-self.sizes, kind="stable")[:MOST]
        return [(size_of(int(at)), int(self.sizes[at])) for at in order if self.sizes[at]]


class Footprint:
    """What part of the addresses is read and written."""

    def __init__(self, total: int):
        self.unit = UNIT
        while total > self.unit * MARKS:
            self.unit *= 2
        self.marks = numpy.zeros(total // self.unit + 1, "u1")

    def add(self, begin: numpy.ndarray, size: numpy.ndarray, bit: int):
        """Mark what requests of a way cover."""
        first, last = begin // self.unit, (begin + size - 1) // self.unit
        many = last - first >= FEW
        for start, end in zip(first[many].tolist(), last[many].tolist(), strict=True):
            self.marks[start:end + 1] |= bit
        first, last = first[~many], last[~many]
        while len(first):
            self.marks[first] |= bit
            first += 1
            more = first <= last
            first, last = first[more], last[more]

    def bytes(self, bits: int) -> int:
        """Return the bytes that are marked by any of the bits."""
        return int(numpy.count_nonzero(self.marks & bits)) * self.unit


@dataclasses.dataclass
class Summary:
    """What is in a trace. @total: bytes of all devices, @busiest: requests in the busiest second"""
    ways: tuple[Way, Way]
    footprint: Footprint
    total: int
    ns: int
    busiest: int
    devices: list[tuple[str, int]]


def share(times: numpy.ndarray, of: int, count: int) -> numpy.ndarray:
    """Return in which of @count equal intervals of @of the values are."""
    return numpy.minimum((times / max(of, 1) * count).astype("<i8"), count - 1)


def summary(spool: Spool, devices: dict[str, int], base: numpy.ndarray, total: int) -> Summary:
    """Return what is in the requests. @base: where each device begins, @total: where they end"""
    found = Summary((Way(), Way()), Footprint(total), total, spool.last - spool.first, 0, [])
    counts = numpy.zeros(max(1, len(devices)), "<i8")
    second, in_second = -1, 0
    for block in spool.in_order():
        device = block["kind"] >> 1
        counts += numpy.bincount(device, minlength=len(counts))
        ns, begin = block["ns"] - spool.first, block["offset"] + base[device]
        size = block["size"].astype("<i8")
        step, place = share(ns, found.ns, STEPS), share(begin, total, PLACES)
        for way, counted in enumerate(found.ways):
            mine = block["kind"] & 1 == way
            counted.add(begin[mine], size[mine], step[mine], place[mine])
            found.footprint.add(begin[mine], size[mine], 1 << way)
        seconds, per_second = numpy.unique(ns // S, return_counts=True)
        if seconds[0] == second:
            per_second[0] += in_second
        second, in_second = seconds[-1], per_second[-1]
        found.busiest = max(found.busiest, int(per_second.max()))
    found.devices = sorted(((name, int(counts[number])) for name, number in devices.items()),
                           key=lambda each: -each[1])
    return found


def of_way(way: Way, footprint: int) -> dict:
    """Return the figures of the reads or of the writes."""
    return {"requests": way.requests, "bytes": way.bytes,
            "size_bytes": {"smallest": way.smallest, "mean": round(way.bytes / way.requests, 1),
                           "median": way.percentile(50), "p99": way.percentile(99),
                           "largest": way.largest},
            "common_sizes": [{"bytes": size, "requests": count} for size, count in way.common()],
            "sequential_percent": round(100 * way.sequential / way.requests, 2),
            "footprint_bytes": footprint} if way.requests else \
        {"requests": 0, "bytes": 0, "footprint_bytes": 0}


def figures(found: Summary) -> dict:
    """Return the summary as it is in JSON."""
    requests = sum(way.requests for way in found.ways)
    size = sum(way.bytes for way in found.ways)
    seconds = found.ns / S
    result = {
        "requests": requests, "bytes": size, "duration_s": round(seconds, 6),
        "read_percent": round(100 * found.ways[0].requests / requests, 2),
        "rate": {"requests_per_s": round(requests / seconds, 2) if seconds else None,
                 "bytes_per_s": round(size / seconds, 1) if seconds else None,
                 "busiest_second_requests": found.busiest},
        "span_bytes": found.total, "footprint_bytes": found.footprint.bytes(3),
        "footprint_unit_bytes": found.footprint.unit,
        "devices": [{"name": name, "requests": count} for name, count in found.devices]}
    for bit, (name, way) in enumerate(zip(WAYS, found.ways, strict=True)):
        result[name] = of_way(way, found.footprint.bytes(1 << bit))
    return result
