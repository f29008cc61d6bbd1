# SPDX-License-Identifier: GPL-2.0
"""Reads: their time, the depth and the size that serve them best, the flash page, the buffer.

The buffer, the time of a read and prefetching are procedures 3 and 4 and section 4.3 of
"Parameter-aware I/O management for solid state disks", changed in two points. A range is read
backwards, so that no drive takes it for a stream; and only its oldest part is read again, since
a range that exceeds a buffer by one page has lost that one first. The curve of sizes is figure 1
of "PASS", section 2.
"""
import numpy
import scipy.stats

from ssd_probe import engine
from ssd_probe.probe import Bench, Curve, Finding, procedure

KB = 1024
# Reads of this size are the ones that drives are compared by.
SMALL = 4 * KB
# Differences of so many ns are those of clocks and of interrupts.
RESOLUTION = 600
# Flash pages and read buffers are looked for up to these sizes.
MAX_PAGE, MAX_BUFFER = 64 * KB, 64 << 20
# No flash of SSDs has smaller pages.
LEAST_PAGE = 2 * KB


def value_of(found: dict[str, Finding], name: str):
    """Return what was found for @name, None if nothing was."""
    return found[name].value if name in found else None


def page_of(bench: Bench, found: dict[str, Finding]) -> int:
    """Return the bytes of a flash page, or of a usual one if that is not known."""
    return int((value_of(found, "flash_page_kb") or 4) * KB) // bench.block * bench.block


def interval(samples: numpy.ndarray, share: float = 0.5) -> tuple[float, float]:
    """Return the 95 % confidence interval of a quantile by order statistics."""
    ranks = scipy.stats.binom.ppf([0.025, 0.975], len(samples), share).astype(int)
    low, high = numpy.sort(samples)[numpy.minimum(ranks, len(samples) - 1)]
    return float(low), float(high)


def differs(first: numpy.ndarray, second: numpy.ndarray) -> float:
    """Return the confidence, from 0 to 1, that two samples of times are of different levels: by the
    test of Mann and Whitney, and by more than a 50th, which no parameter would explain."""
    low, high = sorted((numpy.median(first), numpy.median(second)))
    if high - low <= 0.02 * high:
        return 0.0
    return 1 - float(scipy.stats.mannwhitneyu(first, second).pvalue)


@procedure(gives="read_us")
def read_time(bench: Bench, _found) -> list[Finding]:
    """Time of a read of the smallest size from flash"""
    count = 500 if bench.quick else 2000
    times = bench.latencies(bench.places(count, SMALL), bench.block) / 1e3
    low, high = interval(times)
    median = float(numpy.median(times))
    ordered = numpy.sort(times)
    curve = Curve("Time of single reads", "us", "share of the reads that are faster",
                  {"reads": (ordered[::20].tolist(),
                             (numpy.arange(count) / count)[::20].tolist())}, [median])
    if high - low > 0.1 * median:
        return [Finding("read_us", None, "us", 0, f"the times vary: {low:.0f} to {high:.0f} us is "
                        "all that can be said of their median", curve)]
    return [Finding("read_us", round(median, 2), "us", 0.95, curve=curve)]


def depths(tags: int) -> list[int]:
    """Return depths to measure, each at most a third more than the one before."""
    listed = [1]
    while listed[-1] < tags:
        listed.append(min(tags, max(listed[-1] + 1, listed[-1] * 4 // 3)))
    return listed


def saturation(listed: list[int], rates: numpy.ndarray, share: float = 0.9) -> int:
    """Return the first of @listed with at least @share of the best rate."""
    return listed[int(numpy.flatnonzero(rates >= share * numpy.max(rates))[0])]


@procedure(gives="read_depth")
def read_depth(bench: Bench, _found) -> list[Finding]:
    """Reads in flight that saturate the drive"""
    listed = depths(min(bench.tags, bench.engine.max_depth))
    rates = []
    for number, depth in enumerate(listed):
        count = 300 + 12 * depth
        rates.append(bench.rate(bench.places(count, SMALL), SMALL, depth=depth))
        bench.progress((number + 1) / len(listed))
    depth = saturation(listed, numpy.array(rates))
    curve = Curve("Random reads of 4 KB", "requests in flight", "reads per second",
                  {"reads": (listed, rates)}, [depth])
    if depth == listed[-1] and depth > 1:
        why = "more requests than the drive takes at once would be faster still"
        return [Finding("read_depth", depth, "requests", 0.5, why, curve)]
    return [Finding("read_depth", depth, "requests", 0.95, curve=curve)]


class PageTests:
    """Tests that tell two blocks of one flash page from two blocks of neighbouring pages, as far as
    each can on this drive: a place is the first byte of the second block. A test has control
    samples, of twice the same block, which is in one page. A drive that answers a second read
    of the same block from a buffer is tested by that alone."""

    COUNT = 24

    def __init__(self, bench: Bench):
        self.bench = bench
        places = bench.places(4 * self.COUNT, MAX_PAGE)
        buffered = differs(bench.latencies(places, bench.block), self.again(places, 0)) > 0.999
        if buffered:
            self.tests = [self.again]
        else:
            self.tests = [self.together, self.across] if bench.tags > 1 else [self.across]
        # What a second read of a page takes longer than the first one.
        self.second = numpy.inf
        if self.together in self.tests:
            self.second = float(numpy.median(self.together(places, 0)) -
                                numpy.median(self.across(places, 0)))
        self.limits = [self.band(test) for test in self.tests]

    def again(self, places, step) -> numpy.ndarray:
        """Read the block at each place, then the one before it; return the times of the latter,
        which a read buffer makes shorter if it holds the page."""
        offsets = numpy.stack((places, places - step), axis=1).ravel()
        return self.bench.latencies(offsets, self.bench.block)[1::2]

    def together(self, places, step) -> numpy.ndarray:
        """Read both blocks at once."""
        offsets = numpy.stack((places, places - step), axis=1).ravel()
        return self.bench.group_times(offsets, self.bench.block, 2)

    def across(self, places, step) -> numpy.ndarray:
        """Read both blocks with one request."""
        length = self.bench.block * 2 if step else self.bench.block
        return self.bench.latencies(places - step, length)

    def band(self, test) -> tuple[float, float]:
        """Return the times that a test may take within a page."""
        bench = self.bench
        places = bench.places(self.COUNT, MAX_PAGE)
        same = test(places, 0)
        if test == self.across:
            # In a page smaller than two blocks each request of two blocks takes two pages.
            anywhere = test(bench.places(8 * self.COUNT, bench.block, bench.block,
                                         length=2 * bench.block), bench.block)
            same = anywhere[anywhere <= numpy.quantile(anywhere, 0.1)]
            if numpy.median(same) > numpy.median(test(places, 0)) + self.second / 2:
                # Each of them takes two pages, one after the other.
                same = same * 0
        middle = float(numpy.median(same))
        wide = max(0.01 * middle, RESOLUTION, 4 * float(scipy.stats.median_abs_deviation(same)))
        return middle - wide, middle + wide

    def crossed(self, places) -> numpy.ndarray:
        """Return for each place whether a page begins there, as far as any test says so."""
        answer = numpy.zeros(len(places), dtype=bool)
        for test, (low, high) in zip(self.tests, self.limits, strict=True):
            times = test(places, self.bench.block)
            answer |= (times < low) | (times > high)
        return answer


def one_more(bench: Bench, size: int, pages: int, count: int) -> numpy.ndarray:
    """Return by how many ns @count reads of so many @pages of a supposed @size are longer if they
    are one block longer: that takes another page, which waits if the pages before it are on all
    channels or units already."""
    length = size * pages
    starts = bench.places(count, size, length=length + bench.block)
    shorter = bench.latencies(starts, length)
    return bench.latencies(starts, length + bench.block) - shorter


def shares_of_more(bench: Bench, sizes: list[int], count: int) -> list[float]:
    """Return for each of the @sizes of a page the share of reads that are longer for another page,
    with the number of pages for which most are."""
    numbers = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
    inside = one_more(bench, bench.block, 1, 4 * count)
    least = float(numpy.quantile(inside, 0.25)) + max(RESOLUTION, 0.01 * numpy.ptp(inside))
    shares = []
    for number, size in enumerate(sizes):
        longer = [one_more(bench, size, pages, count) > least for pages in numbers
                  if size * pages + bench.block <= bench.max_bytes]
        shares.append(max((float(each.mean()) for each in longer), default=0.0))
        bench.progress((number + 1) / len(sizes))
    return shares


def page_sizes(block: int) -> list[int]:
    """Return sizes of pages to try, in bytes: all with at most three significant bits."""
    sizes = {bits << shift for bits in (1, 3, 5, 7) for shift in range(20)}
    return sorted(block * size for size in sizes if block * size <= MAX_PAGE)


def smallest_full(sizes: list[int], shares: list[float], count: int) -> tuple[int | None, float]:
    """Return the first size of which all multiples but stray ones are boundaries, and the
    confidence: that a size with half as many would not have shown so many among @count."""
    for size, share in zip(sizes, shares, strict=True):
        if share >= 0.85:
            return size, 1 - float(scipy.stats.binom.sf(share * count - 1, count, 0.5))
    return None, 0.0


@procedure(gives="flash_page_kb")
def flash_page(bench: Bench, _found) -> list[Finding]:
    """Bytes of a flash page: reads within it touch no other"""
    tests = PageTests(bench)
    sizes, count = page_sizes(bench.block), 16 if bench.quick else 24
    shares = []
    for number, size in enumerate(sizes):
        places = bench.places(count, size, size, length=2 * bench.block)
        shares.append(float(tests.crossed(places).mean()))
        bench.progress((number + 1) / len(sizes))
    size, confidence = smallest_full(sizes, shares, count)
    if size is None and tests.tests == [tests.across]:
        shares = shares_of_more(bench, sizes, count)
        size, confidence = smallest_full(sizes, shares, count)
    curve = Curve("Where flash pages begin", "bytes", "share of the multiples that begin a page",
                  {"multiples": (sizes, shares)}, [size] if size else [])
    if size is None:
        return [Finding("flash_page_kb", None, "KB", 0, "reads of two blocks take the same time "
                        "wherever they begin", curve)]
    if size < LEAST_PAGE:
        return [Finding("flash_page_kb", None, "KB", 0, "reads of two blocks take longer wherever "
                        "they begin: something else delays them", curve)]
    return [Finding("flash_page_kb", size / KB, "KB", confidence, curve=curve)]


def eviction(bench: Bench, buffer_bytes: int, kept) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return offsets and lengths of reads that fill a read buffer with other data than that at the
    offsets @kept. None of them is larger than a quarter of the buffer, because drives do not
    keep large requests."""
    if not buffer_bytes:
        return numpy.zeros(0, dtype="u8"), numpy.zeros(0, dtype="u4")
    length = min(max(buffer_bytes // 4 // SMALL, 1) * SMALL, bench.max_bytes)
    count = -(-buffer_bytes * 5 // 4 // length)
    places = bench.places(count + 8 * len(kept), SMALL, length=length)
    # A drive reads whole pages.
    holds = ((places[:, None] < kept + MAX_PAGE) &
             (places[:, None] + length + MAX_PAGE > kept)).any(axis=1)
    places = numpy.resize(places[~holds], count)
    return places, numpy.full(count, length, dtype="u4")


class BufferTest:
    """Is a block that was read still in the drive's read buffer after other reads?"""

    def __init__(self, bench: Bench, step: int):
        self.bench, self.step = bench, step
        places = bench.places(40, step)
        both = bench.latencies(numpy.repeat(places, 2), bench.block)
        self.misses, self.hits = both[0::2], both[1::2]
        self.limit = (numpy.median(self.misses) + numpy.median(self.hits)) / 2
        self.confidence = 0.0
        if numpy.median(self.hits) < numpy.median(self.misses):
            self.confidence = differs(self.misses, self.hits)

    def held(self, size: int, repeats: int = 5) -> tuple[float, float]:
        """Read @size bytes backwards, the step at the end alone, the rest in larger parts, then
        that step once more. Return the share of @repeats in which it was still there, and the
        median time in ns."""
        part = min(max(size // 32 // self.step, 1) * self.step, self.bench.max_bytes)
        ends = numpy.arange(size - self.step, 0, -part)
        begins = numpy.maximum(ends - part, 0)
        last = (self.bench.size - size) // self.step
        times = []
        for start in self.bench.random.integers(0, last + 1, repeats) * self.step:
            top = start + size - self.step
            listed = engine.ios(numpy.concatenate(([top], start + begins, [top])),
                                numpy.concatenate(([self.bench.block], ends - begins,
                                                   [self.bench.block])))
            done = self.bench.engine.play(listed)
            times.append(float(done["end_ns"][-1] - done["begin_ns"][-1]))
        return float(numpy.mean(numpy.array(times) < self.limit)), float(numpy.median(times))


def last_held(held, step: int, limit: int) -> tuple[int, dict[int, float]]:
    """Return the largest multiple of @step up to @limit for which @held(size) is at least a half,
    by doubling and halving, and what held() said of each size."""
    said, low, high = {}, 1, 2
    while high * step <= limit:
        said[high] = held(high * step)
        if said[high] < 0.5:
            break
        low, high = high, high * 2
    while high - low > 1 and high in said:
        middle = (low + high) // 2
        said[middle] = held(middle * step)
        low, high = (middle, high) if said[middle] >= 0.5 else (low, middle)
    return low * step, {steps * step: share for steps, share in said.items()}


@procedure(gives="read_buffer_kb", needs="flash_page_kb")
def read_buffer(bench: Bench, found) -> list[Finding]:
    """Size of the read buffer"""
    test = BufferTest(bench, page_of(bench, found))
    if test.confidence < 0.999:
        curve = Curve("Reading the same block again", "time", "ns",
                      {"first": (list(range(len(test.misses))), test.misses.tolist()),
                       "again": (list(range(len(test.hits))), test.hits.tolist())}, log_x=False)
        return [Finding("read_buffer_kb", 0, "KB", 0.95, curve=curve)]
    limit = min(MAX_BUFFER, bench.size // 4)
    times = {}

    def held(size):
        share, times[size] = test.held(size, 3 if bench.quick else 5)
        return share

    size, said = last_held(held, test.step, limit)
    sizes = sorted(times)
    curve = Curve("Reading the oldest block of a range again", "KB read in between", "us",
                  {"time": ([each / KB for each in sizes], [times[each] / 1e3 for each in sizes])},
                  [size / KB])
    if size * 2 > limit:
        return [Finding("read_buffer_kb", None, "KB", 0, "the drive still holds what was read "
                        f"{size >> 20} MB ago", curve)]
    unclear = sum(0 < share < 1 for share in said.values())
    if unclear > 2:
        return [Finding("read_buffer_kb", None, "KB", 0, "blocks leave the buffer in no order",
                        curve)]
    return [Finding("read_buffer_kb", size / KB, "KB", 0.95, curve=curve)]


# Contiguous reads of a run; a drive has noticed a stream long before the last quarter of it.
RUN = 32


@procedure(gives="prefetch", needs="flash_page_kb")
def prefetch(bench: Bench, found) -> list[Finding]:
    """Are reads of a stream served before they arrive?"""
    step = page_of(bench, found) if value_of(found, "flash_page_kb") else MAX_PAGE
    step = min(step * -(-2 * SMALL // step), bench.max_bytes)
    runs = 12 if bench.quick else 24
    starts = bench.places(runs, step, length=step * RUN)
    offsets = (starts[:, None] + numpy.arange(RUN) * step).ravel()
    # The pause gives the drive the time to read ahead whatever the stream has asked for.
    listed = engine.ios(offsets, step, barriers=True, delay_ns=2_000_000)
    done = bench.engine.play(listed)
    times = (done["end_ns"] - done["begin_ns"]).astype(float).reshape(runs, RUN)
    early, late = times[:, 1], numpy.median(times[:, RUN * 3 // 4:], axis=1)
    confidence = differs(early, late)
    curve = Curve("A stream of reads with pauses", "read of the stream", "us",
                  {"median": (list(range(1, RUN + 1)),
                              (numpy.median(times, axis=0) / 1e3).tolist())}, log_x=False)
    ahead = numpy.median(late) < numpy.median(early) and confidence > 0.999
    return [Finding("prefetch", bool(ahead), "", confidence if ahead else 0.95, curve=curve)]


@procedure(gives="request_size")
def request_size(bench: Bench, _found) -> list[Finding]:
    """Bandwidth of reads by their size and pattern"""
    depth = min(8, bench.tags)
    sizes = [SMALL << shift for shift in range(20) if SMALL << shift <= bench.max_bytes]
    lines = {"random": [], "sequential": []}
    for number, size in enumerate(sizes):
        count = int(max(40, min(600, (48 << 20) // size)))
        count = min(count, bench.size // size)
        start = bench.places(1, size, length=size * count)[0]
        for name, offsets in (("random", bench.places(count, size)),
                              ("sequential", start + numpy.arange(count) * size)):
            lines[name].append(bench.rate(offsets, size, depth=depth) * size / 1e6)
        bench.progress((number + 1) / len(sizes))
    first = saturation(sizes, numpy.array(lines["random"]))
    curve = Curve(f"Reads, {depth} in flight", "KB", "MB/s",
                  {name: ([size / KB for size in sizes], rates) for name, rates in lines.items()},
                  [first / KB])
    return [Finding("request_size", first / KB, "KB", 0.95, curve=curve)]
