#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# What ssd-probe concludes from reads, on times made up for drives of known kinds: levels of pairs,
# stripes and orders of allocation, sizes of pages and buffers, depths; and that it concludes
# nothing where two kinds of drives have the same times
# timeout: 120
# quick: host
import itertools
import math
import pathlib
import sys

import numpy

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT / name) for name in ("tests/lib", "tools/common", "tools/ssd-probe")]

from checks import check  # noqa: E402  (beside this folder)
from ssd_probe import pairs, reads, regions, units  # noqa: E402  (in a folder added above)

RANDOM = numpy.random.default_rng(1)
COUNTS = {"c": 3, "w": 2, "d": 2, "p": 2}


def noisy(values, spread=0.002):
    """Return times around @values, one in 200 of which is long."""
    values = numpy.asarray(values, dtype=float)
    made = values * RANDOM.normal(1, spread, len(values))
    return numpy.where(RANDOM.random(len(values)) < 0.005, made * RANDOM.uniform(1, 5), made)


def pairs_of(free, channel, unit, counts):
    """Return times of so many pairs of each level."""
    return noisy(numpy.repeat([free, channel, unit], counts))


def levels():
    """Check the levels that are found in times of pairs."""
    found = pairs.find_levels(100e3, pairs_of(102e3, 140e3, 198e3, (900, 300, 60)), 0.005)
    check(abs(found.free / 102e3 - 1) < 0.005 and abs(found.channel / 140e3 - 1) < 0.005
          and abs(found.unit / 198e3 - 1) < 0.005, f"three levels: {found}")
    check(found.of(numpy.array([101e3, 139e3, 199e3])).tolist() == [0, 1, 2],
          "times are told apart by them")
    found = pairs.find_levels(100e3, pairs_of(120e3, 0.5, 180e3, (900, 0, 60)), 0.005)
    check(found.channel is None and abs(found.wait() - 20e3) < 1e3, f"no channel: {found}")
    check(pairs.find_levels(100e3, pairs_of(102e3, 140e3, 1, (900, 300, 0)), 0.005) is None,
          "no level if no pair is on one unit")
    found = pairs.find_levels(100e3, pairs_of(100e3, 102e3, 198e3, (20, 900, 60)), 0.005)
    check(abs(found.free / 102e3 - 1) < 0.005, "pairs with a block from a buffer are no level")


def table_of(order, unit):
    """Return the level of each page of a stripe with its first page, and the number of units."""
    inside = {"chip": "dp", "die": "p", "plane": ""}[unit]
    pages = math.prod(COUNTS.values())
    table, rest = numpy.full(pages, pairs.UNIT), numpy.arange(pages)
    for letter in order:
        rest, digit = numpy.divmod(rest, COUNTS[letter])
        if letter == "c":
            table[digit != 0] = pairs.FREE
        elif letter not in inside:
            table[(digit != 0) & (table == pairs.UNIT)] = pairs.CHANNEL
    return table, pages // math.prod(COUNTS[letter] for letter in inside)


def plain(order, unit):
    """Return what can be seen of an order: channels, and units on a channel."""
    kinds = {"c": "c", "w": "w", "d": "w" if unit != "chip" else "", "p": "w" if unit == "plane"
             else ""}
    return "".join(key for key, _ in itertools.groupby("".join(kinds[letter] for letter in order)))


def orders():
    """Check all orders of allocation."""
    for unit in ("chip", "die", "plane"):
        for order in map("".join, itertools.permutations("cwdp")):
            table, count = table_of(order, unit)
            digits = units.digits_of(table)
            right = (units.expected(digits, len(table)) == table).all()
            seen = "".join(key for key, _ in itertools.groupby(units.order_of(digits)))
            if not (right and units.product(digits, "cw") == count and
                    units.product(digits, "c") == COUNTS["c"] and seen == plain(order, unit)):
                check(False, f"{order}, {unit}: {digits}")
    check(True, "the digits of all 24 orders at each level")
    table = RANDOM.integers(0, 3, 24)
    table[0] = pairs.UNIT
    check((units.expected(units.digits_of(table), 24) == table).mean() < 0.97,
          "a table in no order is not taken for one")


def sizes():
    """Check sizes of pages and buffers that are no powers of two, and those of none."""
    tried = reads.page_sizes(512)
    for page in (2048, 6144, 16384):
        shares = [math.gcd(size, page) / page for size in tried]
        check(reads.smallest_full(tried, shares, 24)[0] == page, f"a page of {page} bytes")
    check(reads.smallest_full(tried, [0.3] * len(tried), 24)[0] is None, "no page")
    for size in (64, 112, 255, 5120):
        found, said = reads.last_held(lambda asked, size=size: float(asked <= size), 1, 1 << 16)
        check(found == size and len(said) < 40, f"a buffer of {size} in {len(said)} steps")
    check(reads.last_held(lambda _: 1.0, 4, 4096)[0] == 4096, "a buffer larger than what is tried")


def depths():
    """Check depths of saturation, and of regions."""
    listed = reads.depths(32)
    check(listed[0] == 1 and listed[-1] == 32 and all(
        later <= max(first + 1, first * 4 / 3) for first, later in itertools.pairwise(listed)),
        f"depths {listed}")
    rates = numpy.minimum(numpy.array(listed), 12.0)
    check(reads.saturation(listed, rates) in (12, 13, 11), "saturated at 12")
    rates = rates - 0.02 * numpy.array(listed)
    check(reads.saturation(listed, rates) in (11, 12, 13), "also if it is slower beyond")
    deep = numpy.unique(numpy.geomspace(2, 32, 9).round())
    errors = numpy.full(len(deep), 300.0)
    for model in (regions.all_at_once, regions.one_by_one):
        for free in (3, 5, 9):
            extra = model(deep, free, 15e3) + RANDOM.normal(0, 200, len(deep))
            best, error = regions.best_depth(deep, extra, errors)
            check(abs(best - free) < max(1, error), f"{model.__name__}: {best:.1f}, truth {free}")
    best, error = regions.best_depth(deep, RANDOM.normal(0, 300, len(deep)), errors)
    check(best < 0.75 or error > max(1.0, 0.25 * best), f"no depth in noise: {best:.1f}")
    check(abs(regions.boundary(lambda place: place < 7 << 20, 1 << 20, 1 << 30, 4096)
              - (7 << 20)) <= 4096, "the end of a region")


def differences():
    """Check when two samples differ."""
    first, second = noisy([100e3] * 40), noisy([130e3] * 40)
    check(reads.differs(first, second) > 0.999, "samples that differ by 30 %")
    check(reads.differs(first, noisy([100e3] * 40)) == 0, "samples of one level")
    low, high = reads.interval(noisy([100e3] * 200))
    check(low <= 100.2e3 and high >= 99.8e3 and high - low < 1e3, f"median {low:.0f} to {high:.0f}")


def meetings():
    """Check what a read behind others tells of channels."""
    wait, busy = 10e3, 70e3
    for before in (2, 3, 4):
        for late, kind in ((before * wait, "out of order"),
                           (max(before * wait, (before - 1) * busy), "in order")):
            check(pairs.not_met(before, late, wait, busy, None), f"{before} before, {kind}: alone")
        check(not pairs.not_met(before, (before - 1) * busy + 25e3, wait, busy, 1e3),
              f"{before} before: behind a transfer")
    check(pairs.not_met(3, wait, wait, busy, wait), "a wait for the host, which is as long for all")
    check(not pairs.not_met(3, wait, wait, busy, 1e3), "the same wait on a fast interface")


if __name__ == "__main__":
    levels()
    orders()
    sizes()
    depths()
    differences()
    meetings()
