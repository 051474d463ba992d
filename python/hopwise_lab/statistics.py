"""Means, ratios and differences with 95 % intervals by Student's t: the plain case of `docs/statistics.md`.

The laboratory's own verdicts stand in a trial's `summary.json`. They add Holm's correction, a test of equivalence and a
way for blocks that delivered nothing. This file computes what a figure takes, for any column.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

CONFIDENCE = 0.95


class Located(NamedTuple):
    """A mean with its interval; NaN where the values do not tell it."""

    mean: float
    low: float
    high: float
    n: int
    #: The chance of a mean this far from 0 or farther, if the true one is 0.
    p: float


def located(values: Sequence[float]) -> Located:
    """The mean of values, and the interval of the true one if they scatter normally."""
    n = len(values)
    if n == 0:
        return Located(math.nan, math.nan, math.nan, 0, math.nan)
    mean = sum(values) / n
    if n == 1:
        return Located(mean, math.nan, math.nan, 1, math.nan)
    error = math.sqrt(sum((value - mean) ** 2 for value in values) / ((n - 1) * n))
    half = quantile(n - 1) * error
    # Values without any scatter leave no doubt.
    without = 1.0 if mean == 0.0 else 0.0
    p = two_sided(n - 1, mean / error) if error > 0.0 else without
    return Located(mean, mean - half, mean + half, n, p)


def mean(values: Sequence[float]) -> Located:
    """The mean of figures that are never below 0, and neither is their interval."""
    found = located(values)
    # NaN stays NaN: `max` returns its first argument where a comparison is false.
    return found._replace(low=max(found.low, 0.0))


def ratio(pairs: Sequence[tuple[float, float]]) -> Located:
    """The geometric mean of arm / baseline over (arm, baseline), by the logs of the blocks' ratios; all above 0."""
    found = located([math.log(arm / baseline) for arm, baseline in pairs])
    return found._replace(mean=math.exp(found.mean), low=math.exp(found.low), high=math.exp(found.high))


def difference(pairs: Sequence[tuple[float, float]]) -> Located:
    """The mean of arm − baseline over (arm, baseline)."""
    return located([arm - baseline for arm, baseline in pairs])


def two_sided(freedom: int, t: float) -> float:
    """The chance that Student's t is this far from 0 or farther, on either side."""
    return _incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))


@cache
def quantile(freedom: int) -> float:
    """The number of standard errors around a mean within which the true one lies with 95 %."""
    low, high = 0.0, 1.0
    while two_sided(freedom, high) > 1.0 - CONFIDENCE:
        low, high = high, 2.0 * high
    while True:
        middle = (low + high) / 2.0
        if not low < middle < high:
            return middle
        if two_sided(freedom, middle) > 1.0 - CONFIDENCE:
            low = middle
        else:
            high = middle


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    # The fraction converges fast below this place; above it the other tail has the same form.
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / a / _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """The value of 1 + d1/(1 + d2/(1 + …)), from the front by Lentz's way."""
    tiny = 1e-300
    value, upper, lower = 1.0, 1.0, 0.0
    for nth in range(1, 10_000):
        m = nth // 2
        if nth % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        lower = 1.0 / ((1.0 + term * lower) or tiny)
        upper = (1.0 + term / upper) or tiny
        value *= upper * lower
        if abs(upper * lower - 1.0) < 1e-15:
            break
    return value
