# SPDX-License-Identifier: GPL-2.0
"""Requests that hinder each other: in the order of the queue, and in regions of the drive.

Regions are those of "PASS", section 2, figure 2: a range of addresses that is best served with
some number of requests, and is slower with more. Groups of random reads are compared that differ
only in how far they are from each other, so that conflicts of units are the same in both.
"""
import numpy
import scipy.optimize
import scipy.stats

from ssd_probe.pairs import Layout, find_levels, layout_of
from ssd_probe.probe import Bench, Curve, Finding, procedure
from ssd_probe.reads import KB, differs, value_of

MIB = 1 << 20
# Conflicts that the order of a queue is judged by, and groups that are made for them at most.
CONFLICTS, MOST_GROUPS = 40, 6000


@procedure(gives="in_order", needs="flash_page_kb read_buffer_kb")
def in_order(bench: Bench, found) -> list[Finding]:
    """Does the drive serve its queue in order?"""
    def unknown(why, curve=None):
        return [Finding("in_order", None, why=why, curve=curve)]

    if bench.tags < 3:
        return unknown("the drive takes too few requests at a time")
    layout = layout_of(bench, found)
    layout.levels = levels = find_levels(layout.single, layout.random_times, layout.width)
    if not levels:
        return unknown("two reads at once never wait for one unit, as far as their times show")
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
    """Groups of @count simultaneous reads, half of them in one window of the drive and half in
    another one."""

    def __init__(self, layout: Layout, count: int):
        self.layout, self.count = layout, count
        self.bench = layout.bench
        # The window at the drive's begin, within its first region, and the other one.
        self.near = self.bench.size // 64
        self.width = max(self.bench.size // 256, layout.page)

    def times(self, where: int, groups: int) -> numpy.ndarray:
        """Return the mean ns of the reads of each of so many @groups, with the second window in the
        middle of which is @where."""
        bench, page = self.bench, self.layout.page
        low = max(0, min(where - self.width // 2, bench.size - self.width))
        half = self.count // 2
        first = bench.places(groups * half, page, 0, self.near).reshape(groups, half)
        second = bench.places(groups * (self.count - half), page, low,
                              low + self.width).reshape(groups, -1)
        offsets = bench.random.permuted(numpy.hstack((first, second)), axis=1)
        return self.layout.groups_apart(offsets).mean(axis=1)


def boundary(slow, low: int, high: int, step: int) -> int:
    """Return the place between @low and @high where slow(place) changes from True to False."""
    while high - low > step:
        middle = (low + high) // 2
        low, high = (middle, high) if slow(middle) else (low, middle)
    return (low + high) // 2


def best_depth(depths: numpy.ndarray, extra: numpy.ndarray,
               errors: numpy.ndarray) -> tuple[float, float]:
    """Return the depth up to which a region costs nothing, and its standard error. @extra: mean
    ns by which reads are slower in one region than in many, with standard @errors. Each request
    costs as much as there are others beyond that depth, so the mean grows with the square of
    the depth beyond it."""
    def model(depth, free, cost):
        return cost * numpy.maximum(depth - free, 0) ** 2 / (2 * depth)

    first = max(float(extra[-1]), 1.0) * 2 / depths[-1]
    fitted, spread = scipy.optimize.curve_fit(
        model, depths, extra, p0=(depths[-1] / 4, first), sigma=errors, absolute_sigma=True,
        bounds=([0.5, 0], [float(depths[-1]), numpy.inf]))
    return float(fitted[0]), float(spread[0, 0] ** 0.5)


@procedure(gives="region_mb region_depth",
           needs="flash_page_kb read_buffer_kb units stride_kb allocation")
def regions(bench: Bench, found) -> list[Finding]:
    """Ranges of addresses that take few requests at a time"""
    count = min(bench.tags, 32)
    if count < 4:
        return nothing("the drive takes too few requests at a time")
    layout = layout_of(bench, found)
    crowds = Crowds(layout, count)
    groups = 24 if bench.quick else 40
    same = crowds.times(crowds.near + crowds.width, groups)
    far = [crowds.times(place, groups) for place in (bench.size // 2, bench.size * 7 // 8)]
    if value_of(found, "allocation") == "concat":
        return of_units(found)
    apart = numpy.concatenate(far)
    confidence = differs(same, apart)
    if confidence < 0.999 or numpy.median(same) < numpy.median(apart):
        return nothing("reads of one range are as fast as reads of many")
    limit = (numpy.median(same) + numpy.median(apart)) / 2
    measured = {}

    def slow(place):
        measured[place] = float(numpy.mean(crowds.times(place, groups // 2)))
        return measured[place] > limit

    size = boundary(slow, crowds.near, bench.size * 7 // 8, max(crowds.width // 8, layout.page))
    places = sorted(measured)
    curve = Curve("Reads in two windows, the first at the drive's begin",
                  "MB from there to the second", "mean us", {"reads": ([place / MIB for place in places],
                                        [measured[place] / 1e3 for place in places])},
                  [size / MIB])
    return [Finding("region_mb", round(size / MIB, 1), "MB", confidence, curve=curve),
            region_depth(layout, size, count, groups)]


def region_depth(layout: Layout, size: int, count: int, groups: int) -> Finding:
    """Return the depth up to which reads of a region of @size bytes are not slower than others."""
    bench, page = layout.bench, layout.page
    depths = numpy.unique(numpy.geomspace(2, count, 9).round().astype(int))
    means = {"one region": [], "all regions": []}
    errors = []
    for depth in depths:
        number = groups * max(1, 12 // depth) * depth
        ranges = {"one region": bench.places(number, page, 0, size),
                  "all regions": bench.places(number, page)}
        times = {name: layout.groups_apart(offsets.reshape(-1, depth)).mean(axis=1)
                 for name, offsets in ranges.items()}
        for name, each in times.items():
            means[name].append(float(each.mean()))
        errors.append(max(50.0, sum(each.var() / len(each) for each in times.values()) ** 0.5))
    extra = numpy.array(means["one region"]) - numpy.array(means["all regions"])
    best, error = best_depth(depths.astype(float), extra, numpy.array(errors))
    curve = Curve("Reads by their number", "requests", "mean us",
                  {name: (depths.tolist(), [each / 1e3 for each in line])
                   for name, line in means.items()}, [best], log_x=False)
    if not error < max(1.0, 0.25 * best):
        return Finding("region_depth", None, "requests", curve=curve, why=f"the data fit {best:.0f} "
                       "requests, but others as well")
    return Finding("region_depth", max(1, round(best)), "requests", 0.9, curve=curve)


def of_units(found) -> list[Finding]:
    """Return the regions of a drive on which each unit has a contiguous one."""
    size = value_of(found, "stride_kb")
    if not size:
        return nothing("regions of units have different sizes")
    curve = found["stride_kb"].curve
    return [Finding("region_mb", round(size * KB / MIB, 1), "MB", 0.95, curve=curve),
            Finding("region_depth", 1, "requests", 0.95, curve=curve)]


def nothing(why: str) -> list[Finding]:
    """Return the findings for a drive on which no region was seen."""
    return [Finding("region_mb", None, "MB", why=why),
            Finding("region_depth", None, "requests", why=why)]
