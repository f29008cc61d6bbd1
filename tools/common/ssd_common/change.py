# SPDX-License-Identifier: GPL-2.0
"""Where a series of measurements changes, and whether two samples differ.

The change point is the one of the piecewise constant fit with the least squares; it counts if the
Bayesian information criterion prefers two levels to one, and if the Mann-Whitney test says that
the values on its two sides differ.
"""
import numpy
import scipy.stats

# A difference is believed if it would come by chance once in so many times.
CHANCE = 1e-4


def differ(first, second, chance: float = CHANCE) -> bool:
    """Return true if the values of @second tend to be larger than those of @first."""
    if len(first) < 5 or len(second) < 5 or max(second) <= min(first):
        return False
    found = scipy.stats.mannwhitneyu(second, first, alternative="greater")
    return bool(found.pvalue < chance)


def change_point(values, least: int = 5) -> int | None:
    """Return the index at which the level of @values changes, with @least values on either side,
    or None if one level fits as well."""
    values = numpy.asarray(values, dtype=float)
    count = len(values)
    if count < 2 * least:
        return None
    split = numpy.arange(least, count - least + 1)
    total, squares = numpy.cumsum(values), numpy.cumsum(values ** 2)
    before = squares[split - 1] - total[split - 1] ** 2 / split
    rest = total[-1] - total[split - 1]
    after = squares[-1] - squares[split - 1] - rest ** 2 / (count - split)
    errors = numpy.maximum(before, 0) + numpy.maximum(after, 0)
    best = int(numpy.argmin(errors))
    whole = squares[-1] - total[-1] ** 2 / count
    floor = 1e-12 * max(squares[-1], 1e-300)
    gain = count * numpy.log(max(whole, floor) / max(errors[best], floor))
    if gain < 2 * numpy.log(count):
        return None
    return int(split[best])


def rise(values, least: int = 5) -> int | None:
    """Return the index from which on @values are larger, or None. @values: of times, above 0."""
    at = change_point(numpy.log(numpy.maximum(values, 1)), least)
    if at is None or not differ(values[:at], values[at:]):
        return None
    return at


def agree(values, part: float, least: float = 0) -> bool:
    """Return true if all @values are within @part of their median, or within @least of it."""
    middle = float(numpy.median(values))
    return all(abs(value - middle) <= max(part * middle, least) for value in values)
