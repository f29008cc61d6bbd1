# SPDX-License-Identifier: GPL-2.0
"""Pairs of simultaneous reads of one block, and what their times tell.

The time of a pair has one of three levels: the reads are independent, their transfers wait for
each other (they share a channel), or the second read waits for the first one (they share a unit).
Levels are the modes of a density estimate of all pairs.
"""
import dataclasses

import numpy
import scipy.ndimage
import scipy.signal
import scipy.stats

from ssd_probe import engine
from ssd_probe.probe import Bench
from ssd_probe.reads import KB, RESOLUTION, eviction, page_of, value_of

FREE, CHANNEL, UNIT = range(3)
# Pages of the largest stripe, in two steps: most stripes are in the first.
STRIPES = (136, 1100)
# I/Os that counting the units of a drive without stripe may take.
MOST_IOS = 120_000


def pair_offsets(first, second) -> numpy.ndarray:
    """Return the offsets of pairs, the higher one first, so that no pair is a stream."""
    return numpy.stack((numpy.maximum(first, second), numpy.minimum(first, second)), axis=1).ravel()


def pair_times(bench: Bench, first, second) -> numpy.ndarray:
    """Read a block at each of @first and @second at once; return the ns that each pair took."""
    return bench.group_times(pair_offsets(first, second), bench.block, 2)


def modes(times: numpy.ndarray, width: float) -> list[tuple[float, float]]:
    """Return the modes of positive @times, each with its share of them: the maxima of a kernel
    density estimate of their logarithms with a bandwidth of @width, but those of very few."""
    logs = numpy.log(times)
    step = width / 4
    low = logs.min() - 6 * width
    count = numpy.bincount(((logs - low) / step).astype(int), minlength=1)
    density = scipy.ndimage.gaussian_filter1d(
        numpy.pad(count, (0, 32)).astype(float), 4, mode="constant")
    peaks, _ = scipy.signal.find_peaks(density)
    found = []
    for peak in peaks:
        near = logs[abs(logs - (low + (peak + 0.5) * step)) < 3 * width]
        if len(near) >= max(4, 0.003 * len(logs)):
            found.append((float(numpy.exp(numpy.median(near))), len(near) / len(logs)))
    return found


@dataclasses.dataclass
class Levels:
    """Times of pairs, in ns. @single: of one read, @free: of independent reads, @channel: of reads
    that share a channel, None if that was not seen, @unit: that share a unit, @bounds:
    between the levels."""
    single: float
    free: float
    channel: float | None
    unit: float
    bounds: tuple[float, float]

    def of(self, times: numpy.ndarray) -> numpy.ndarray:
        """Return the level of each time: FREE, CHANNEL or UNIT."""
        return (times > self.bounds[0]).astype(int) + (times > self.bounds[1])

    def wait(self) -> float:
        """Return the ns by which the second of two independent reads ends later."""
        return max(0.0, self.free - self.single)


def find_levels(single: float, times: numpy.ndarray, width: float) -> Levels | None:
    """Return the levels of @times of pairs; None if no pair is seen on one unit. A unit that reads
    twice takes twice as long, but for what both reads have in common anyway: the firmware and
    the host, which independent reads show, too, and a tenth for the system that asks."""
    # Some pairs are faster, because a buffer or a fast part of the flash has one of the blocks, but
    # most pairs that are free are as slow as the usual one.
    found = modes(times, width)
    slack = 1 + 2 * width
    most = max((share for mode, share in found if mode < 1.6 * single), default=0)
    free = next((mode for mode, share in found if share >= 0.4 * most), single)
    found = [mode for mode, _ in found if mode >= free]
    wait = max(0.0, free - single)
    top = [mode for mode in found if mode > free * slack
           and (1.9 * single - 2 * wait) / slack <= mode <= 2 * single * slack]
    if not top:
        return None
    unit = top[-1]
    between = [mode for mode in found if free * (1 + 4 * width) < mode < unit / (1 + 4 * width)]
    channel = between[-1] if between else None
    low = (free * between[0]) ** 0.5 if between else (free * unit) ** 0.5
    high = ((channel or free) * unit) ** 0.5
    return Levels(single, free, channel, unit, (min(low, high), high))


class Layout:
    """What is known about pages of @page bytes and units. @stripe: pages, None: there is none."""

    def __init__(self, bench: Bench, page: int, buffer_bytes: int):
        self.bench, self.page, self.buffer_bytes = bench, page, buffer_bytes
        self.pages = bench.size // page
        times = bench.latencies(bench.places(200, page), bench.block)
        self.single = float(numpy.median(times))
        noise = float(scipy.stats.median_abs_deviation(numpy.log(times), scale="normal"))
        self.width = min(max(0.004, RESOLUTION / 2 / self.single, noise), 0.05)
        self.levels = None
        self.scanned = numpy.zeros((0, 0))
        self.random_times = self.far_pairs(600)

    def find(self, stripe_kb: float | None) -> bool:
        """Find the levels of pairs without looking for a stripe; return whether there are any."""
        stripe = self.stripe_pages(stripe_kb)
        more = self.apart(numpy.full(100, stripe)) if stripe else self.far_pairs(1400)
        self.random_times = numpy.append(self.random_times, more)
        self.levels = find_levels(self.single, self.random_times, self.width)
        return self.levels is not None

    def stripe_pages(self, stripe_kb: float | None) -> int | None:
        """Return the pages of a stripe, None if there is none."""
        return round(stripe_kb * KB / self.page) if stripe_kb else None

    def far_pairs(self, count: int) -> numpy.ndarray:
        """Return the times of pairs of pages anywhere."""
        return pair_times(self.bench, self.bench.places(count, self.page),
                          self.bench.places(count, self.page))

    def apart(self, distances: numpy.ndarray) -> numpy.ndarray:
        """Return the times of pairs whose distance is a random multiple of each of @distances, in
        pages. The multiples are large: reads of one group of pages may share a sense."""
        most = numpy.clip(self.pages // (2 * distances), 2, 96)
        far = distances * self.bench.random.integers(numpy.minimum(16, most - 1), most)
        first = (self.bench.random.random(len(far)) * (self.pages - far)).astype(int)
        return pair_times(self.bench, first * self.page, (first + far) * self.page)

    def scan(self, last: int, samples: int = 6) -> numpy.ndarray:
        """Return times of pairs for each distance up to @last pages: a row for each."""
        last = min(last, self.pages // 8)
        distances = numpy.repeat(numpy.arange(1, last + 1), samples)
        order = self.bench.random.permutation(len(distances))
        times = numpy.empty(len(distances))
        times[order] = self.apart(distances[order])
        return times.reshape(last, samples)

    def neighbours(self, count: int = 48) -> numpy.ndarray:
        """Return the times of reads of the last block of a page and the first of the next."""
        places = self.bench.places(count, self.page, self.page, length=2 * self.bench.block)
        return self.bench.latencies(places - self.bench.block, 2 * self.bench.block)

    def measure(self):
        """Find the levels and scan distances until there is a stripe; return it, or None."""
        for last in STRIPES:
            self.scanned = self.scan(last)
            times = numpy.concatenate((self.scanned.ravel(), self.random_times))
            self.levels = find_levels(self.single, times, self.width)
            if not self.levels:
                return None
            stripe = self.stripe()
            if stripe:
                return stripe
        return None

    def stripe(self) -> int | None:
        """Return the first distance whose multiples are all on one unit, but for stray reads,
        however far they are from each other; or 1 if pages that are not far are on one unit."""
        shares = (self.levels.of(self.scanned) == UNIT).mean(axis=1)
        for distance in numpy.flatnonzero(shares >= 0.8) + 1:
            if self.holds(self.apart(numpy.full(40, distance))) and (
                    distance == 1 or self.holds(self.in_phase(numpy.full(40, distance)))):
                return int(distance)
        return None

    def holds(self, times: numpy.ndarray) -> bool:
        """Return whether pairs that took these times are on one unit, but for stray reads."""
        return bool((self.levels.of(times) == UNIT).mean() >= 0.85)

    def in_phase(self, distances: numpy.ndarray) -> numpy.ndarray:
        """Return the times of pairs anywhere that are a multiple of @distances, in pages, apart."""
        rows = self.pages // distances
        first, second = (self.bench.random.integers(0, rows) for _ in range(2))
        second = numpy.where(first == second, (first + 1) % rows, second)
        phase = self.bench.random.integers(0, distances)
        return pair_times(self.bench, (first * distances + phase) * self.page,
                          (second * distances + phase) * self.page)

    def table(self, stripe: int, repeats: int = 3) -> numpy.ndarray:
        """Return the level of the first page of a stripe with each other page of stripes."""
        rows = self.pages // stripe
        phases = numpy.repeat(numpy.arange(stripe), repeats)
        first = self.bench.random.integers(0, rows, len(phases))
        second = (first + self.bench.random.integers(rows // 4, rows // 2, len(phases))) % rows
        times = pair_times(self.bench, first * stripe * self.page,
                           (second * stripe + phases) * self.page)
        return self.levels.of(numpy.median(times.reshape(stripe, repeats), axis=1))

    def groups_apart(self, offsets: numpy.ndarray) -> numpy.ndarray:
        """Read a block at each of the @offsets of a row at once, row after row. The read buffer, if
        there is one, is emptied before each. Return the ns that each read took, in the same
        shape."""
        rows, size = offsets.shape
        listed = []
        for row in offsets:
            others, lengths = eviction(self.bench, self.buffer_bytes, row)
            both = engine.ios(numpy.append(others, row.astype("u8")),
                              numpy.append(lengths, numpy.full(size, self.bench.block)))
            both["flags"][[0, len(others)]] = engine.BARRIER
            listed.append(both)
        done = self.bench.engine.play(numpy.concatenate(listed), depth=max(size, 2))
        done = done.reshape(rows, -1)[:, -size:]
        return (done["end_ns"] - done["begin_ns"].min(axis=1, keepdims=True)).astype(float)

    def groups_at_once(self, offsets: numpy.ndarray) -> numpy.ndarray:
        """As groups_apart(), for offsets that were not read before."""
        size = offsets.shape[1]
        barriers = engine.groups(offsets.size, size)
        done = self.bench.engine.play(
            engine.ios(offsets.ravel(), self.bench.block, barriers=barriers), depth=size)
        done = done.reshape(-1, size)
        return (done["end_ns"] - done["begin_ns"].min(axis=1, keepdims=True)).astype(float)

    def one_unit(self, pages: numpy.ndarray) -> bool:
        """Return whether a group of reads takes as many times longer than one as it has reads. A
        row of @pages is an offset of each of a group's pages, which pairs say are on one unit.
        If the firmware takes longer than the flash, a pair that shares a channel only looks the
        same; but then most larger groups are faster."""
        wanted = self.single + (pages.shape[1] - 1) * (self.levels.unit - self.single)
        times = self.groups_apart(pages).max(axis=1)
        return bool(numpy.mean(times > wanted * (1 - max(0.02, 3 * self.width))) > 0.6)

    def behind(self, unit, other, sizes) -> numpy.ndarray:
        """Read pages of one unit and then one of another unit, all at once; return by how many ns
        the last one is later than a single read. @unit(count): offsets of pages on one unit,
        @other: functions that return an offset on another unit. A row for each size of the
        group in @sizes, a column for each of @other."""
        late = numpy.zeros((len(sizes), len(other)))
        for at, size in enumerate(sizes):
            rows = [numpy.append(unit(size - 1), place()) for place in other for _ in range(3)]
            times = self.groups_apart(numpy.array(rows))[:, -1].reshape(-1, 3)
            late[at] = numpy.median(times, axis=1) - self.single
        return late

    def byte_wait(self, count: int = 60) -> float | None:
        """Return by how many ns the bytes of a read keep the host's interface busy: that is what a
        read of more bytes of the same page takes longer. None: a page is one block."""
        if self.page == self.bench.block:
            return None
        whole = self.bench.latencies(self.bench.places(count, self.page), self.page)
        longer = max(0.0, float(numpy.median(whole)) - self.single)
        return longer / (self.page / self.bench.block - 1)

    def meetings(self, largest: int, most: int = 6) -> list[int]:
        """Return sizes of groups for delayed(), up to @largest: those whose last request comes
        shortly before or after the transfer of one of the others."""
        wait, busy = self.levels.wait(), self.levels.unit - self.single
        sizes = numpy.arange(3, min(self.bench.tags, largest) + 1)
        early = (sizes - 1) * wait % busy
        early = numpy.where(early > 0.9 * busy, busy - early, early)
        best = sizes[numpy.argsort(early, kind="stable")[:most]]
        return sorted({3, 4, *best.tolist()} & set(sizes.tolist()))

    def delayed(self, unit, other, largest: int = 24) -> numpy.ndarray | None:
        """Return which of the @other units share a channel with a @unit, for drives whose firmware
        takes longer for a request than a channel for a page. Then no two of a pair's transfers
        meet. But the unit is busy with reads that follow each other at once, and the last
        request is later by the firmware's time for each before it: with some number of them its
        transfer meets one of the unit. See behind(). @largest: of these groups. None: the times
        do not say."""
        sizes = self.meetings(largest)
        if len(sizes) < 2:
            return None
        late = self.behind(unit, other, sizes)
        slack = max(RESOLUTION, 2 * self.width * self.single)
        # With two channels or more, half of the units are on others.
        met = late > numpy.quantile(late, 0.25, axis=1, method="lower", keepdims=True) + slack
        if met.any():
            return met.any(axis=0)
        # All units are alike: each has a channel of its own, or there is one channel.
        host, busy = self.byte_wait(), self.levels.unit - self.single
        free = numpy.mean([not_met(size - 1, float(numpy.median(row)), self.levels.wait(), busy,
                                   host) for size, row in zip(sizes, late, strict=True)
                           if size <= 5])
        if 0.1 < free < 0.9 or (free < 0.5 and host is None):
            return None
        # What waits for the host anyway may have waited for a channel before.
        if free > 0.5 and (host or 0) > 0.08 * self.single:
            return None
        return numpy.full(len(other), free < 0.5)

    def first_region(self, share: float) -> int:
        """Return the pages from the drive's begin on that are on the unit of the first ones.
        @share: of the drive, roughly."""
        low, high = int(share * self.pages / 16) + 1, self.pages - 1
        while high - low > 1:
            middle = (low + high) // 2
            near = self.bench.random.integers(0, low, 3)
            pairs = numpy.stack((numpy.full(3, middle), near), axis=1) * self.page
            times = self.groups_apart(pairs).max(axis=1)
            same = self.levels.of(numpy.median(times)) == UNIT
            low, high = (middle, high) if same else (low, middle)
        return high

    def classes(self, expected: float) -> list[numpy.ndarray]:
        """Divide random pages into classes that conflict, about @expected many; return their
        offsets. Return nothing if it would take too many I/Os."""
        count = int(expected * (numpy.log(expected) + 6)) + 8
        batch = int(min(8, max(1, expected // 4), self.bench.tags - 1))
        left = numpy.unique(self.bench.places(count, self.page))
        evicting = len(eviction(self.bench, self.buffer_bytes, left[:1])[0])
        if count * expected / 2 * (1 + 1.5 * (1 + evicting) / batch) > MOST_IOS:
            return []
        self.bench.random.shuffle(left)
        found = []
        while len(left):
            same = self.conflicts(left[0], left[1:], batch)
            found.append(numpy.append(left[:1], left[1:][same]))
            left = left[1:][~same]
        return self.without_strays(found)

    def without_strays(self, classes: list[numpy.ndarray]) -> list[numpy.ndarray]:
        """Return the @classes without those of very few pages that are on the unit of another one,
        which happens if the drive moves pages meanwhile."""
        kept, few = [], sum(map(len, classes)) / len(classes) / 3
        for each in classes:
            others = [other for other in classes if other is not each]
            if len(each) < few and others:
                pairs = numpy.array([(each[0], self.bench.random.choice(other))
                                     for other in others for _ in range(2)])
                times = self.groups_apart(pairs).max(axis=1).reshape(-1, 2)
                if (self.levels.of(times) == UNIT).all(axis=1).any():
                    continue
            kept.append(each)
        return kept

    def conflicts(self, page: int, others: numpy.ndarray, batch: int) -> numpy.ndarray:
        """Return for each of the @others whether it is on the unit of the @page. They are read in
        batches, together with the page; those that end late are read again, in pairs."""
        same = numpy.zeros(len(others), dtype=bool)
        for size in (batch, 1) if batch > 1 else (1,):
            asked = numpy.arange(len(others)) if size == batch else numpy.flatnonzero(same)
            if not len(asked):
                break
            rows = numpy.resize(asked, (-(-len(asked) // size), size))
            firsts = numpy.full((len(rows), 1), page)
            times = self.groups_apart(numpy.hstack((firsts, others[rows])))[:, 1:]
            same[:] = False
            same[rows[self.levels.of(times) == UNIT]] = True
        return same


def not_met(before: int, late: float, wait: float, busy: float, host: float | None) -> bool:
    """Return whether a read behind so many others of one unit is as @late as it must be if it meets
    none of them on a channel. Out of order it is decoded later by the @wait for each, which may
    be all the @host's; in order it begins with the one before it, for which the unit must be
    free, and may wait for it on the way to the host. All in ns; @host: None if not known."""
    slack = (before + 1) * RESOLUTION / 2
    host = host or 0.0
    in_order = max(before * wait, (before - 1) * busy + host)
    if host > 0.7 * wait and wait - slack <= late <= before * wait + slack:
        return True
    return any(abs(late - each) <= slack + 0.02 * each for each in (before * wait, in_order))


def layout_of(bench: Bench, found) -> Layout:
    """Return the Layout of a drive of which the page and the read buffer were looked for."""
    return Layout(bench, page_of(bench, found), int((value_of(found, "read_buffer_kb") or 0) * KB))
