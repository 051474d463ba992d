"""Student's t against tables, and the edges of few values."""

from __future__ import annotations

import math

import pytest

from hopwise_lab import statistics


@pytest.mark.parametrize(
    ("freedom", "t"),
    [
        (1, 12.706204736174698),
        (2, 4.302652729749464),
        (4, 2.7764451051977987),
        (19, 2.093024054408263),
        (999, 1.9623414611334487),
    ],
)
def test_quantiles_are_those_of_tables(freedom: int, t: float) -> None:
    assert statistics.quantile(freedom) == pytest.approx(t, rel=1e-12)
    assert statistics.two_sided(freedom, t) == pytest.approx(0.05, rel=1e-11)


def test_one_value_has_no_interval_and_none_has_no_mean() -> None:
    assert math.isnan(statistics.located([]).mean)
    one = statistics.mean([3.0])
    assert (one.mean, one.n) == (3.0, 1)
    assert math.isnan(one.low)
    assert math.isnan(one.p)


def test_values_without_scatter_leave_no_doubt() -> None:
    assert statistics.ratio([(2.0, 1.0), (4.0, 2.0)]) == (2.0, 2.0, 2.0, 2, 0.0)
    assert statistics.difference([(1.0, 1.0), (2.0, 2.0)]).p == 1.0


def test_intervals_of_figures_do_not_go_below_zero() -> None:
    assert statistics.mean([0.0, 0.0, 5.0]).low == 0.0
    assert statistics.difference([(0.0, 0.0), (5.0, 0.0)]).low < 0.0
