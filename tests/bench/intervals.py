# SPDX-License-Identifier: GPL-2.0
"""Confidence intervals over seeds.

A figure that was measured with n seeds is its mean, plus or minus the 95 % interval of Student's
t distribution with n - 1 degrees of freedom. Two schedulers are compared seed by seed: the
interval is that of the logarithms of their ratios, so what a seed does to both drops out.
"""
import dataclasses
import math
import statistics

# 97.5 % quantiles of Student's t distribution, by degrees of freedom from 1.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


@dataclasses.dataclass(frozen=True)
class Interval:
    """@mean plus or minus @half, which is None if there is one value only."""
    mean: float
    half: float | None

    def sign(self) -> int:
        """Return 1 or -1 if the interval lies above or below 0; otherwise 0."""
        if self.half is None or abs(self.mean) <= self.half:
            return 0
        return 1 if self.mean > 0 else -1


def interval(values: list[float]) -> Interval:
    """Return the interval of the mean of some values."""
    mean, count = statistics.fmean(values), len(values)
    if count < 2:
        return Interval(mean, None)
    quantile = STUDENT[min(count - 1, len(STUDENT)) - 1]
    return Interval(mean, quantile * statistics.stdev(values) / math.sqrt(count))


def logarithms(ours: list[float], theirs: list[float]) -> list[float]:
    """Return the logarithm of the ratio of two figures for each seed."""
    return [math.log(mine / other) for mine, other in zip(ours, theirs, strict=True)]


def percent(ratio: Interval) -> Interval:
    """Return an interval of logarithms of ratios as one of percents. It is not symmetric then:
    the half on the side of 0 is what decides."""
    times = math.exp(ratio.mean)
    if ratio.half is None:
        return Interval(100 * (times - 1), None)
    bound = math.exp(ratio.mean - math.copysign(ratio.half, ratio.mean))
    return Interval(100 * (times - 1), 100 * abs(times - bound))
