# SPDX-License-Identifier: GPL-2.0
"""Parallel units: how many there are, which pages are on which, and which share a channel.

"Exploiting parallelism for access conflict minimization" (PIQ) takes all this for known. Here it
is found by pairs of simultaneous reads of one block. The time of a pair has one of three levels:
the reads are independent, their transfers wait for each other (a channel), or the second read
waits for the first one (a unit). Levels are the modes of a density estimate of all pairs.

Pages at a distance that is a multiple of the stripe are on one unit if the allocation is static.
The first stripe that holds at all its multiples is found, then the unit and the channel of each
of its pages, relative to the first one. The parameters follow if these agree with a mixed-radix
number whose digits are the channel, the unit on a channel, and parts of one unit. Where there is
no stripe, pages picked at random are divided into classes of pages that conflict.
"""
import dataclasses

import numpy
import scipy.ndimage
import scipy.signal
import scipy.stats

from ssd_probe import engine
from ssd_probe.probe import Bench, Curve, Finding, procedure
from ssd_probe.reads import KB, page_of, value_of

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


def modes(times: numpy.ndarray, width: float) -> list[float]:
    """Return the modes of positive @times: the maxima of a kernel density estimate of their
    logarithms with a bandwidth of @width, without those of very few samples."""
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
            found.append(float(numpy.exp(numpy.median(near))))
    return sorted(set(found))


@dataclasses.dataclass
class Levels:
    """Times of pairs, in ns. @single: of one read, @free: of independent reads, @channel: of reads
    that share a channel, None if that was not seen, @unit: that share a unit. @alone: all
    independent reads share something else, @bounds: between the levels."""
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
    the host, which independent reads show, too."""
    found = modes(times, width)
    if not found:
        return None
    free, slack = found[0], 1 + 2 * width
    wait = max(0.0, free - single)
    top = [mode for mode in found[1:]
           if (2 * single - 2 * wait) / slack <= mode <= 2 * single * slack]
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
        self.width = min(max(0.004, noise), 0.05)
        self.levels = None
        self.scanned = numpy.zeros((0, 0))
        self.random_times = self.far_pairs(600)

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
        """Return the times of single reads of the last block of a page and the first of the next."""
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
        """Return the first distance whose multiples are all on one unit, but for stray reads."""
        shares = (self.levels.of(self.scanned) == UNIT).mean(axis=1)
        for distance in numpy.flatnonzero(shares >= 0.8) + 1:
            times = self.apart(numpy.full(40, distance))
            if (self.levels.of(times) == UNIT).mean() >= 0.85:
                return int(distance)
        return None

    def table(self, stripe: int, repeats: int = 3) -> numpy.ndarray:
        """Return the level of the first page of a stripe with each other page of stripes."""
        rows = self.pages // stripe
        phases = numpy.repeat(numpy.arange(stripe), repeats)
        first = self.bench.random.integers(0, rows, len(phases))
        second = (first + self.bench.random.integers(rows // 4, rows // 2, len(phases))) % rows
        times = pair_times(self.bench, first * stripe * self.page,
                           (second * stripe + phases) * self.page)
        return self.levels.of(numpy.median(times.reshape(stripe, repeats), axis=1))

    def first_region(self, share: float) -> int:
        """Return the pages from the drive's begin on that are on the unit of the first ones. @share:
        of the drive, roughly."""
        low, high = int(share * self.pages / 16) + 1, self.pages - 1
        spread = max(low // 4096, 1)
        while high - low > 1:
            middle = (low + high) // 2
            near = self.bench.random.integers(0, low, 5)
            beyond = middle + self.bench.random.integers(0, min(spread, high - middle), 5)
            times = pair_times(self.bench, near * self.page, beyond * self.page)
            same = self.levels.of(numpy.median(times)) == UNIT
            low, high = (middle, high) if same else (low, middle)
        return high


LETTERS = {FREE: "c", CHANNEL: "w", UNIT: "s"}


def digits_of(table: numpy.ndarray) -> list[tuple[str, int]]:
    """Return the digits of a page's number in a stripe, the one that varies fastest first: "c" for the
    channel, "w" for units of a channel, "s" for parts of a unit, each with its radix. @table: the
    level of each page with the first one."""
    digits, weight = [], 1
    while weight < len(table):
        kind, radix = table[weight], 2
        while weight * radix < len(table) and table[weight * radix] == kind:
            radix += 1
        digits.append((LETTERS[kind], radix))
        weight *= radix
    return digits


def expected(digits: list[tuple[str, int]], count: int) -> numpy.ndarray:
    """Return the table that @digits lead to, for @count pages."""
    rest, level = numpy.arange(count), numpy.full(count, UNIT)
    for letter, radix in digits:
        rest, digit = numpy.divmod(rest, radix)
        if letter == "c":
            level[digit != 0] = FREE
        elif letter == "w":
            level[(digit != 0) & (level == UNIT)] = CHANNEL
    return level


def product(digits: list[tuple[str, int]], letters: str) -> int:
    """Return the product of the radices of these letters."""
    return int(numpy.prod([radix for letter, radix in digits if letter in letters], dtype=int))


def order_of(digits: list[tuple[str, int]]) -> str:
    """Return the order of allocation over channels and ways."""
    return "".join(letter for letter, _ in digits if letter != "s")


class Answers:
    """The findings of units(), at first without values."""

    UNITS = {"units": "units", "channels": "channels", "stride_kb": "KB", "stripe_kb": "KB",
             "allocation": ""}

    def __init__(self, curve: Curve | None, why: str):
        self.made = {name: Finding(name, None, unit, why=why, curve=curve)
                     for name, unit in self.UNITS.items()}

    def give(self, name: str, value, confidence: float = 0.95, why: str = ""):
        """Set the value of a finding."""
        finding = self.made[name]
        finding.value, finding.confidence, finding.why = value, confidence, why

    def refuse(self, name: str, why: str):
        """Say why a finding has no value."""
        self.made[name].why = why

    def all(self) -> list[Finding]:
        """Return the findings."""
        return list(self.made.values())


def scan_curve(layout: Layout) -> Curve:
    """Return the evidence: the share of pairs on one unit by distance, and all times."""
    lines = {}
    if layout.levels and layout.scanned.size:
        shares = (layout.levels.of(layout.scanned) == UNIT).mean(axis=1)
        distances = numpy.arange(1, len(shares) + 1) * layout.page / KB
        lines["on one unit"] = (distances.tolist(), shares.tolist())
    return Curve("Pairs of simultaneous reads at multiples of a distance", "KB",
                 "share of the pairs", lines)


@procedure(gives="units channels stride_kb stripe_kb allocation",
           needs="flash_page_kb read_buffer_kb")
def units(bench: Bench, found) -> list[Finding]:
    """Units that read in parallel, and the order in which pages are on them"""
    if bench.tags < 2:
        return Answers(None, "the drive takes one request at a time").all()
    buffer_bytes = int((value_of(found, "read_buffer_kb") or 0) * KB)
    layout = Layout(bench, page_of(bench, found), buffer_bytes)
    stripe = layout.measure()
    answers = Answers(scan_curve(layout), "two reads at once never wait for one unit, as far as "
                      "their times show")
    if not layout.levels:
        only_unit(layout, answers)
    elif stripe == 1:
        concatenated(layout, answers)
    elif stripe:
        striped(layout, stripe, answers)
    else:
        scattered(layout, answers)
    return answers.all()


def only_unit(layout: Layout, answers: Answers):
    """Answer for a drive on which all pairs take the same time: there is one unit if a read of two
    pages takes that time as well."""
    pair = float(numpy.median(layout.random_times))
    both = float(numpy.median(layout.neighbours()))
    if pair > 1.2 * layout.single and abs(both - pair) < 0.1 * (pair - layout.single):
        answers.give("units", 1)
        answers.refuse("channels", "there is one unit")


def give_channels(layout: Layout, answers: Answers, number: int, count: int) -> bool:
    """Answer with the number of channels if the levels tell it; return whether they do. @number: of
    channels as far as free pairs say, of @count units."""
    levels = layout.levels
    wait, seen = levels.wait(), levels.channel is not None
    if seen:
        answers.give("channels", number)
        return True
    if count > 1 and wait > 0.05 * levels.single:
        answers.refuse("channels", "the firmware or the interface takes longer for a request than "
                       "a channel may take for a page")
        return False
    answers.give("channels", count)
    return True


def striped(layout: Layout, stripe: int, answers: Answers):
    """Answer for a drive with static allocation in stripes."""
    table = layout.table(stripe)
    digits = digits_of(table)
    agreed = float((expected(digits, stripe) == table).mean())
    same = float((table == UNIT).mean())
    count = round(1 / same)
    if agreed < 0.97 or product(digits, "cw") != count:
        for name in ("channels", "stride_kb", "allocation"):
            answers.refuse(name, "units and channels alternate in no simple order")
        if abs(1 / same - count) < 0.02:
            answers.give("units", count, 0.9)
        else:
            answers.refuse("units", "units have different numbers of pages in a stripe")
        return
    while digits[-1][0] == "s":
        stripe //= digits.pop()[1]
    answers.give("units", count)
    answers.give("stripe_kb", stripe * layout.page / KB)
    run = digits[0][1] if digits[0][0] == "s" else 1
    answers.give("stride_kb", run * layout.page / KB)
    if give_channels(layout, answers, product(digits, "c"), count):
        answers.give("allocation", order_of(digits))
    else:
        answers.refuse("allocation", answers.made["channels"].why)


def concatenated(layout: Layout, answers: Answers):
    """Answer for a drive whose units have a contiguous region each."""
    shares = layout.levels.of(layout.random_times) == UNIT
    if shares.mean() > 0.95:
        answers.give("units", 1)
        return
    pages = layout.first_region(shares.mean())
    count = -(-layout.pages // pages)
    low, high = scipy.stats.binomtest(int(shares.sum()), len(shares)).proportion_ci(0.999)
    if not low <= 1 / count <= high:
        for name in ("units", "stride_kb", "allocation"):
            answers.refuse(name, "regions of units have different sizes")
        return
    answers.give("units", count)
    answers.give("stride_kb", pages * layout.page / KB)
    answers.give("allocation", "concat")


def scattered(layout: Layout, answers: Answers):
    """Answer for a drive whose pages are on units in no order."""
    for name in ("stride_kb", "stripe_kb", "allocation"):
        answers.refuse(name, "neighbouring pages are on units in no order")
    answers.refuse("channels", "pages are on units in no order")
    answers.refuse("units", "not counted")
