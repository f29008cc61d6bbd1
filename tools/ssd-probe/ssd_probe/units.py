# SPDX-License-Identifier: GPL-2.0
"""Parallel units: how many there are, which pages are on which, and which share a channel.

"Exploiting parallelism for access conflict minimization" (PIQ) takes all this for known. Here it
is found by pairs of simultaneous reads, see pairs.py. Pages at a distance that is a multiple of
the stripe are on one unit if the allocation is static. The first distance for which that holds is
found, then the unit and the channel of each page of a stripe, relative to the first one. The
parameters follow if these agree with a mixed-radix number whose digits are the channel, the unit
on a channel, and parts of one unit. Where there is no stripe, pages picked at random are divided
into classes of pages that conflict. Whether pages stay where they are is seen by writing some
again.
"""
import time

import numpy
import scipy.stats

from ssd_probe import engine
from ssd_probe.pairs import CHANNEL, FREE, UNIT, Layout, Levels, layout_of, pair_times
from ssd_probe.probe import Bench, Curve, Finding, procedure
from ssd_probe.reads import KB, value_of

LETTERS = {FREE: "c", CHANNEL: "w", UNIT: "s"}


def digits_of(table: numpy.ndarray) -> list[tuple[str, int]]:
    """Return the digits of a page's number in a stripe, the one that varies fastest first: "c" for
    the channel, "w" for units of a channel, "s" for parts of a unit, each with its radix.
    @table: the level of each page with the first one."""
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
    layout = layout_of(bench, found)
    stripe = layout.measure()
    answers = Answers(scan_curve(layout), "two reads at once never wait for one unit, as far as "
                      "their times show")
    if not layout.levels:
        only_unit(layout, answers)
    elif stripe == 1:
        concatenated(layout, answers)
    elif not stripe or not striped(layout, stripe, answers):
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


HIDDEN = ("the firmware or the interface takes longer for a request than a channel may take for a "
          "page")
MERGED = ("the firmware takes so long for a request that two units on a channel look like one")


def hidden(levels) -> bool:
    """Return whether reads may share a channel without a difference in the time of a pair."""
    return levels.channel is None and levels.wait() > 0.03 * levels.single


def striped(layout: Layout, stripe: int, answers: Answers) -> bool:
    """Answer for a drive with static allocation in stripes. Return False if it is none."""
    random, page, rows = layout.bench.random, layout.page, layout.pages // stripe

    def at(phase, count=1):
        return (random.choice(rows - 1, count, replace=False) * stripe + phase) * page

    table = layout.table(stripe)
    if table[0] != UNIT or (table == UNIT).all():
        return False
    alike = numpy.flatnonzero(table == UNIT)
    if not layout.one_unit(numpy.array([at(random.choice(alike, group_size(layout)),
                                           group_size(layout)) for _ in range(16)])):
        if not hidden(layout.levels):
            return False
        for name in answers.made:
            answers.refuse(name, MERGED)
        return True
    seen = True
    if hidden(layout.levels):
        others = numpy.flatnonzero(table != UNIT)
        late = layout.delayed(lambda count: at(0, count), [
            lambda phase=phase: at(phase)[0] for phase in others])
        seen = late is not None
        if seen:
            table[others] = numpy.where(late, CHANNEL, FREE)
    digits = digits_of(table)
    agreed = float((expected(digits, stripe) == table).mean())
    if agreed < 0.97 and hidden(layout.levels):
        seen, table = False, numpy.where(table == UNIT, UNIT, FREE)
        digits = digits_of(table)
        agreed = float((expected(digits, stripe) == table).mean())
    if agreed < 0.97:
        return False
    while digits[-1][0] == "s":
        stripe //= digits.pop()[1]
    answers.give("units", product(digits, "cw"), agreed)
    answers.give("stripe_kb", stripe * layout.page / KB, agreed)
    run = digits[0][1] if digits[0][0] == "s" else 1
    answers.give("stride_kb", run * layout.page / KB, agreed)
    if seen:
        answers.give("channels", product(digits, "c"), agreed)
        answers.give("allocation", order_of(digits), agreed)
    else:
        answers.refuse("channels", HIDDEN)
        answers.refuse("allocation", HIDDEN)
    return True


def group_size(layout: Layout) -> int:
    """Return how many reads a test of a unit makes at once."""
    return min(4, layout.bench.tags)


def concatenated(layout: Layout, answers: Answers):
    """Answer for a drive whose units have a contiguous region each."""
    shares = layout.levels.of(layout.random_times) == UNIT
    if shares.mean() > 0.95:
        answers.give("units", 1)
        return
    pages = layout.first_region(shares.mean())
    count = round(layout.pages / pages)
    low, high = scipy.stats.binomtest(int(shares.sum()), len(shares)).proportion_ci(0.999)
    if not low <= 1 / count <= high:
        for name in ("units", "stride_kb", "allocation"):
            answers.refuse(name, "regions of units have different sizes")
        return
    answers.give("units", count)
    answers.give("stride_kb", pages * layout.page / KB)
    answers.give("allocation", "concat")
    answers.refuse("stripe_kb", "units have a contiguous region each")
    if hidden(layout.levels):
        # Other parts of the drive than channels may be shared by neighbouring regions.
        answers.refuse("channels", HIDDEN)
        return
    random = layout.bench.random
    give_channels(layout, answers, [
        random.integers(region * pages, (region + 1) * pages - 1, 24) * layout.page
        for region in range(count)])


def sharing(layout: Layout, classes: list[numpy.ndarray]) -> numpy.ndarray | None:
    """Return for each of the @classes but the first one, offsets of pages of a unit, whether it
    shares a channel with the first one; None if that is not seen."""
    choice = layout.bench.random.choice
    if hidden(layout.levels):
        return layout.delayed(lambda count: choice(classes[0], count, replace=False),
                              [lambda each=each: choice(each) for each in classes[1:]],
                              min(24, len(classes[0]) + 1))
    pairs = numpy.array([(choice(classes[0]), choice(each))
                         for each in classes[1:] for _ in range(3)])
    times = numpy.median(layout.groups_apart(pairs).max(axis=1).reshape(-1, 3), axis=1)
    return layout.levels.of(times) != FREE


def give_channels(layout: Layout, answers: Answers, classes: list[numpy.ndarray]):
    """Answer with the number of channels. @classes: offsets of pages of each unit."""
    late = sharing(layout, sorted(classes, key=len, reverse=True))
    if late is None:
        answers.refuse("channels", HIDDEN)
    elif len(classes) % (1 + late.sum()):
        answers.refuse("channels", "channels have different numbers of units")
    else:
        answers.give("channels", len(classes) // (1 + int(late.sum())))


def scattered(layout: Layout, answers: Answers):
    """Answer for a drive whose pages are on units in no order."""
    for name in ("channels", "stride_kb", "stripe_kb", "allocation"):
        answers.refuse(name, "neighbouring pages are on units in no order")
    share = max((layout.levels.of(layout.random_times) == UNIT).mean(), 0.002)
    classes = layout.classes(1 / share)
    if not classes:
        answers.refuse("units", f"there are too many to count, about {1 / share:.0f}")
        return
    count, sizes = len(classes), [len(each) for each in classes]
    # Classes are random samples of equal units. If not, something was mistaken for a unit.
    unlikely = scipy.stats.binom.cdf(min(sizes), sum(sizes), 1 / count) * count < 0.01
    missing = count * numpy.exp(-sum(sizes) / count)
    if unlikely or missing > 0.1:
        answers.refuse("units", f"{count} groups of pages that conflict were found, of which some "
                       "are too small to rely on")
        return
    size = group_size(layout)
    groups = [layout.bench.random.choice(each, size, replace=False)
              for each in classes if len(each) >= size for _ in range(-(-12 // count))]
    if not layout.one_unit(numpy.array(groups)):
        answers.refuse("units", MERGED)
        answers.refuse("channels", MERGED)
        return
    answers.give("units", count, float(numpy.exp(-missing)))
    give_channels(layout, answers, classes)


# Pairs of which one page is written again, and pairs that are left alone.
WRITTEN, LEFT = 30, 15
# What is written to push those pages out of a write cache, at most so many times.
PUSH_BYTES, PUSHES = 16 << 20, 4
# What the drive has to do because of the writes should have ended after so many seconds.
SETTLE_S = 2


def conflicting(layout: Layout, stripe: int | None) -> tuple[numpy.ndarray, float]:
    """Return pairs of offsets of pages on one unit, and their share of those that were to be.
    @stripe: pages, None if there is none."""
    wanted, random = WRITTEN + LEFT, layout.bench.random
    if stripe:
        rows = layout.pages // stripe
        first = random.choice(rows // 2, wanted, replace=False)
        pairs = numpy.stack((first, first + random.integers(rows // 4, rows // 2, wanted)), axis=1)
        pairs = (pairs * stripe + random.integers(0, stripe, (wanted, 1))) * layout.page
    else:
        share = max((layout.levels.of(layout.random_times) == UNIT).mean(), 0.003)
        count = int(1.3 * wanted / share)
        pairs = layout.bench.places(2 * count, layout.page).reshape(count, 2)
        times = pair_times(layout.bench, pairs[:, 0], pairs[:, 1])
        pairs = pairs[layout.levels.of(times) == UNIT][:wanted]
    kept, seen = still(layout, pairs)
    return pairs[kept & seen], float(kept[seen].mean()) if seen.sum() >= LEFT else 1.0


def still(layout: Layout, pairs: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return which of the @pairs are on one unit, and of which that is seen, from the times of both
    pages alone and together: a page that was just written may be in faster flash than others.
    What else the drive does makes times longer only, so the shorter one of two counts."""
    levels = layout.levels
    alone = numpy.minimum(*(layout.groups_apart(pairs.reshape(-1, 1)) for _ in range(2)))
    alone = alone.reshape(-1, 2)
    together = numpy.minimum(*(layout.groups_apart(pairs).max(axis=1) for _ in range(2)))
    free = alone.max(axis=1) + levels.free - levels.single
    unit = alone.sum(axis=1) + levels.unit - 2 * levels.single
    part = (levels.bounds[1] - levels.free) / (levels.unit - levels.free)
    # Two reads of which a buffer serves one do not wait for each other.
    seen = ~buffered(levels, alone).any(axis=1) & (unit - free > 0.1 * (levels.unit - levels.free))
    return together > free + part * (unit - free), seen


def buffered(levels: Levels, times: numpy.ndarray) -> numpy.ndarray:
    """Return which of the @times of single reads are those of a buffer: a unit is needed for much
    less of them than the second read of a unit takes."""
    busy = levels.unit - levels.single
    return times - (levels.single - busy) < 0.15 * busy


def write_again(layout: Layout, places: numpy.ndarray):
    """Write the pages at @places again, and as much else as makes reads of them come from flash."""
    bench = layout.bench
    bench.engine.play(engine.ios(places, layout.page, engine.WRITE))
    bench.engine.play(engine.ios([0], 0, engine.FLUSH))
    time.sleep(SETTLE_S)
    length = min(bench.max_bytes, PUSH_BYTES)
    for _ in range(PUSHES):
        times = layout.groups_apart(places[:, None])
        if buffered(layout.levels, times).mean() < 0.1:
            return
        start = bench.places(1, layout.page, length=PUSH_BYTES)[0]
        offsets = start + numpy.arange(PUSH_BYTES // length) * length
        offsets = offsets[~numpy.isin(offsets // length, places // length)]
        bench.engine.play(engine.ios(offsets, length, engine.WRITE))
        bench.engine.play(engine.ios([0], 0, engine.FLUSH))


@procedure(gives="static_allocation", destroys=True,
           needs="flash_page_kb read_buffer_kb units stripe_kb stride_kb allocation")
def static_allocation(bench: Bench, found) -> list[Finding]:
    """Does a page stay on its unit when it is written again?"""
    def unknown(why):
        return [Finding("static_allocation", None, why=why)]

    if bench.tags < 2 or value_of(found, "units") == 1:
        return unknown("pages on one unit are not told from others")
    layout = layout_of(bench, found)
    if not layout.find(value_of(found, "stripe_kb")):
        return unknown("two reads at once never wait for one unit, as far as their times show")
    stripe = layout.stripe_pages(value_of(found, "stripe_kb"))
    pairs, share = conflicting(layout, stripe)
    # A static allocation leaves all of them where they were.
    if stripe and share < 0.75:
        return dynamic(found, Curve(
            "Pairs of pages at multiples of the stripe, after other procedures have written", "",
            "share still on one unit", {"pairs": ([0], [share])}, log_x=False))
    if len(pairs) < WRITTEN:
        why = "too few pages were found on one unit"
        return unknown(why) + [Finding(name, None, why=why) for name in (
            "stripe_kb", "stride_kb", "allocation") if stripe and name in found]
    written = bench.random.permutation(len(pairs)) < len(pairs) * WRITTEN // (WRITTEN + LEFT)
    write_again(layout, pairs[written, 0])
    kept, seen = still(layout, pairs)
    if (written & seen).sum() < WRITTEN // 2 or not (~written & seen).any():
        return unknown("what was written is read from a buffer")
    return moved(found, float(kept[written & seen].mean()), float(kept[~written & seen].mean()),
                 int((written & seen).sum()))


def moved(found, written: float, left: float, count: int) -> list[Finding]:
    """Return what follows from the shares of pairs that still conflict. @count: of those with a
    written page. If pages move, the stripes that were seen are those of the last writes."""
    curve = Curve("Pairs of pages on one unit, after one of both was written again",
                  "0: left alone, 1: written again", "share still on one unit",
                  {"pairs": ([0, 1], [left, written])}, log_x=False)
    if left < 0.8:
        return [Finding("static_allocation", None, why="pages move without being written",
                        curve=curve)]
    chance = float(scipy.stats.binom.sf(round(written * count) - 1, count, 0.5))
    if written > 0.85:
        return [Finding("static_allocation", True, "", 1 - chance, curve=curve)]
    if written > 0.7:
        return [Finding("static_allocation", None, curve=curve,
                        why="some of the pages move when they are written, others do not")]
    return dynamic(found, curve)


def dynamic(found, curve: Curve) -> list[Finding]:
    """Return what follows if pages move when they are written."""
    why = "pages are on any unit, as they are written"
    return [Finding("static_allocation", False, "", 0.95, curve=curve),
            *(Finding(name, None, "KB", why=why, curve=curve) for name in ("stripe_kb", "stride_kb")
              if name in found),
            *(Finding(name, "dynamic", "", 0.95, curve=curve) for name in ("allocation",)
              if name in found)]
