# SPDX-License-Identifier: GPL-2.0
"""Requests that hinder each other: in the order of the queue, and in regions of the drive.

Regions are those of "PASS", section 2, figure 2: a range of addresses that is best served with
some number of requests, and is slower with more. Groups of random reads are compared that differ
only in how far they are from each other, so that conflicts of units are the same in both.
"""
import numpy
import scipy.optimize
import scipy.stats

from ssd_probe.pairs import Layout, layout_of
from ssd_probe.probe import Bench, Curve, Finding, procedure
from ssd_probe.reads import KB, differs, value_of

MIB = 1 << 20
# Conflicts that the order of a queue is judged by, and groups that are made for them at most.
CONFLICTS, MOST_GROUPS = 40, 6000


@procedure(gives="in_order", needs="flash_page_kb read_buffer_kb stripe_kb")
def in_order(bench: Bench, found) -> list[Finding]:
    """Does the drive serve its queue in order?"""
    def unknown(why, curve=None):
        return [Finding("in_order", None, why=why, curve=curve)]

    if bench.tags < 3:
        return unknown("the drive takes too few requests at a time")
    layout = layout_of(bench, found)
    if not layout.find(value_of(found, "stripe_kb")):
        return unknown("two reads at once never wait for one unit, as far as their times show")
    levels = layout.levels
    second, third = waiting_thirds(layout)
    if len(second) < 10:
        return unknown("too few reads were found that wait for one unit")
    # The drive decodes the third read before the second one can begin, or the test says nothing.
    if levels.single + 2 * levels.wait() > 0.97 * levels.unit:
        return unknown("the firmware takes longer for a request than a unit for a read")
    ahead = third < second - max(0.02 * levels.single, 1000)
    share = float(ahead.mean())
    curve = Curve("The third read of a group of which the second one waits for the first one",
                  "us by which it ends before the second one", "share of the groups",
                  {"groups": (numpy.sort((second - third) / 1e3).tolist(),
                              (numpy.arange(len(second)) / len(second)).tolist())}, log_x=False)
    if share < 0.1:
        return [Finding("in_order", True, "", float(1 - 0.5 ** len(second)), curve=curve)]
    if share > 0.25:
        return [Finding("in_order", False, "", float(1 - 0.5 ** ahead.sum()), curve=curve)]
    return unknown("the third read is ahead of the second one in some groups only", curve)


def waiting_thirds(layout: Layout) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Read groups of three random pages. Return the ns of the second and of the third read of those
    groups whose second read waits for the unit of the first one."""
    bench, levels, groups = layout.bench, layout.levels, 0
    seconds, thirds = [], []
    while groups < MOST_GROUPS and sum(map(len, seconds)) < CONFLICTS:
        offsets = bench.places(3 * 400, layout.page).reshape(-1, 3)
        times = layout.groups_at_once(offsets)
        waits = abs(times[:, 1] - levels.unit) < 0.02 * levels.unit
        seconds.append(times[waits, 1])
        thirds.append(times[waits, 2])
        groups += len(offsets)
    return numpy.concatenate(seconds), numpy.concatenate(thirds)


class Crowds:
    """Groups of simultaneous reads of pages in ranges of the drive. @stripe: pages after which the
    units repeat, or None. With a stripe the pages are spread evenly over it, so that all groups
    have the same conflicts, as far as possible."""

    def __init__(self, layout: Layout, stripe: int | None):
        self.layout, self.stripe = layout, stripe or 1
        self.bench = layout.bench
        # The window at the drive's begin, within its first region, and the other one.
        self.near = max(self.bench.size // 64, self.stripe * layout.page)
        self.width = max(self.bench.size // 256, self.stripe * layout.page)

    def phases(self, groups: int, count: int) -> numpy.ndarray:
        """Return pages of a stripe, @count different ones in each of so many @groups if it has as
        many."""
        random, stripe = self.bench.random, self.stripe
        rows = [numpy.concatenate([random.permutation(stripe) for _ in range(-(-count // stripe))])
                for _ in range(groups)]
        return numpy.array(rows)[:, :count]

    def offsets(self, ranges: list[tuple[int, int]], groups: int, count: int) -> numpy.ndarray:
        """Return offsets of groups of @count reads, evenly from @ranges of bytes."""
        size = self.stripe * self.layout.page
        shares = numpy.arange(count) % len(ranges)
        low, high = (numpy.array([each[end] for each in ranges])[shares] // size for end in (0, 1))
        rows = self.bench.random.integers(low, numpy.maximum(high, low + 1), (groups, count))
        rows = numpy.minimum(rows, self.bench.size // size - 1)
        offsets = (rows * self.stripe + self.phases(groups, count)) * self.layout.page
        return self.bench.random.permuted(offsets, axis=1)

    def times(self, ranges: list[tuple[int, int]], groups: int, count: int) -> numpy.ndarray:
        """Return the mean ns of the reads of each group; see offsets()."""
        return self.layout.groups_apart(self.offsets(ranges, groups, count)).mean(axis=1)

    def around(self, place: int, groups: int, count: int) -> numpy.ndarray:
        """Return times() of groups with half of the reads at the drive's begin and half around a
        @place."""
        low = max(0, min(place - self.width // 2, self.bench.size - self.width))
        return self.times([(0, self.near), (low, low + self.width)], groups, count)


def boundary(slow, low: int, high: int, step: int) -> int:
    """Return the place between @low and @high where slow(place) changes from True to False."""
    while high - low > step:
        middle = (low + high) // 2
        low, high = (middle, high) if slow(middle) else (low, middle)
    return (low + high) // 2


def all_at_once(depth, free, cost):
    """Return what reads are slower by if each of them finds all others of the region."""
    return cost * numpy.maximum(depth - free, 0)


def one_by_one(depth, free, cost):
    """Return what reads are slower by if each of them finds those that came before it."""
    return cost * numpy.maximum(depth - free, 0) ** 2 / (2 * depth)


def best_depth(depths: numpy.ndarray, extra: numpy.ndarray,
               errors: numpy.ndarray) -> tuple[float, float]:
    """Return the depth up to which a region costs nothing, and how far off it may be. @extra: mean
    ns by which reads are slower in one region than in many, with standard @errors. A request
    costs the same for each other beyond that depth, of all or of those before it: the model
    that fits better decides, or both if none does."""
    fits = []
    for model in (all_at_once, one_by_one):
        start = (depths[-1] / 4, max(float(extra[-1]), 1.0) / depths[-1])
        fitted, spread = scipy.optimize.curve_fit(
            model, depths, extra, p0=start, sigma=errors, absolute_sigma=True,
            bounds=([0.5, 0], [float(depths[-1]), numpy.inf]))
        misfit = float((((model(depths, *fitted) - extra) / errors) ** 2).sum())
        fits.append((misfit, float(fitted[0]), float(spread[0, 0] ** 0.5)))
    (misfit, best, error), (other_misfit, other, _) = sorted(fits)
    if other_misfit - misfit < 6:
        error = max(error, abs(best - other))
    return best, error


@procedure(gives="region_mb region_depth",
           needs="flash_page_kb read_buffer_kb units stride_kb stripe_kb allocation")
def regions(bench: Bench, found) -> list[Finding]:
    """Ranges of addresses that take few requests at a time"""
    count = min(bench.tags, 32)
    if count < 4:
        return nothing("the drive takes too few requests at a time")
    layout = layout_of(bench, found)
    crowds = Crowds(layout, layout.stripe_pages(value_of(found, "stripe_kb")))
    groups = 24 if bench.quick else 40
    same = crowds.around(crowds.near + crowds.width, groups, count)
    if value_of(found, "allocation") == "concat":
        return of_units(found)
    apart = numpy.concatenate([crowds.around(place, groups, count)
                               for place in (bench.size // 2, bench.size * 7 // 8)])
    confidence = differs(same, apart)
    if confidence < 0.999 or numpy.median(same) < numpy.median(apart):
        return nothing("reads of one range are as fast as reads of many")
    limit = (numpy.median(same) + numpy.median(apart)) / 2
    measured = {}

    def slow(place):
        measured[place] = float(numpy.mean(crowds.around(place, groups // 2, count)))
        return measured[place] > limit

    size = boundary(slow, crowds.near, bench.size * 7 // 8, max(crowds.width // 8, layout.page))
    places = sorted(measured)
    line = ([place / MIB for place in places], [measured[place] / 1e3 for place in places])
    curve = Curve("Reads in two windows, the first at the drive's begin",
                  "MB from there to the second", "mean us", {"reads": line}, [size / MIB])
    return [Finding("region_mb", round(size / MIB, 1), "MB", confidence, curve=curve),
            region_depth(crowds, size, count, groups)]


def region_depth(crowds: Crowds, size: int, count: int, groups: int) -> Finding:
    """Return the depth up to which reads of a region of @size bytes are not slower than others."""
    depths = numpy.unique(numpy.geomspace(2, count, 9).round().astype(int))
    ranges = {"one region": [(0, size)], "all regions": [(0, crowds.bench.size)]}
    means, errors = {name: [] for name in ranges}, []
    for depth in depths:
        times = {name: crowds.times(each, groups * max(1, 12 // depth), depth)
                 for name, each in ranges.items()}
        for name, each in times.items():
            means[name].append(float(each.mean()))
        errors.append(max(50.0, sum(each.var() / len(each) for each in times.values()) ** 0.5))
    extra = numpy.array(means["one region"]) - numpy.array(means["all regions"])
    best, error = best_depth(depths.astype(float), extra, numpy.array(errors))
    curve = Curve("Reads by their number", "requests", "mean us",
                  {name: (depths.tolist(), [each / 1e3 for each in line])
                   for name, line in means.items()}, [best], log_x=False)
    if best < 0.75 or not error < max(1.0, 0.25 * best):
        return Finding("region_depth", None, "requests", curve=curve,
                       why=f"the data fit {best:.0f} requests, but others as well")
    return Finding("region_depth", max(1, round(best)), "requests", 0.9, curve=curve)


def of_units(found) -> list[Finding]:
    """Return the regions of a drive on which each unit has a contiguous one."""
    size = value_of(found, "stride_kb")
    if not size:
        return nothing("regions of units have different sizes")
    why = "a region is one unit, which serves one read at a time; more only wait"
    return [Finding("region_mb", round(size * KB / MIB, 1), "MB", 0.95,
                    curve=found["stride_kb"].curve),
            Finding("region_depth", None, "requests", why=why)]


def nothing(why: str) -> list[Finding]:
    """Return the findings for a drive on which no region was seen."""
    return [Finding("region_mb", None, "MB", why=why),
            Finding("region_depth", None, "requests", why=why)]
