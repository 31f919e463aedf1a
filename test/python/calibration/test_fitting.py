# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fits of the calibration: times that follow a law give its costs back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperparallel.calibration.fitting import capacity_of, fit_times
from hyperparallel.calibration.measurement import collective_terms

costs = st.floats(min_value=1e-3, max_value=1e3)
SIZES = [(1.0, 2.0, 1.0), (4.0, 1.0, 1.0), (8.0, 64.0, 1.0), (100.0, 3.0, 1.0), (0.5, 0.25, 1.0)]


@given(costs, costs, costs)
def test_exact_times_give_the_costs_back(a: float, b: float, c: float) -> None:
    fit = fit_times(SIZES, [x * a + y * b + z * c for x, y, z in SIZES])
    assert fit.costs == pytest.approx((a, b, c), rel=1e-6)
    assert fit.residual < 1e-9
    assert fit.points == len(SIZES)


def test_a_cost_that_would_be_negative_is_left_out() -> None:
    fit = fit_times([(1.0, 1.0), (2.0, 1.0), (3.0, 1.0)], [1.0, 2.1, 3.3])
    assert fit.costs[1] == 0
    assert 1.0 < fit.costs[0] < 1.1


def test_short_times_count_as_much_as_long_ones() -> None:
    sizes = [(float(size), 1.0) for size in (1, 10, 100, 1000, 10000, 100000)]
    noise = np.random.default_rng(0).uniform(0.98, 1.02, len(sizes))
    fit = fit_times(sizes, [float(n) * (3e-6 * x + 5e-6 * y) for n, (x, y) in zip(noise, sizes, strict=True)])
    assert fit.costs == pytest.approx((3e-6, 5e-6), rel=0.03)
    assert fit.residual < 0.02


def test_fewer_times_than_costs_are_refused() -> None:
    with pytest.raises(ValueError, match="expected at least 2 times but got 1"):
        fit_times([(1.0, 1.0)], [1.0])


@given(st.floats(min_value=1.5, max_value=400), st.floats(min_value=2, max_value=20))
def test_a_step_in_the_rate_is_found_between_its_neighbours(edge: float, drop: float) -> None:
    sizes = [1.0, 2.0, 5.0, 11.0, 30.0, 90.0, 500.0]
    found = capacity_of(sizes, [drop if size <= edge else 1.0 for size in sizes])
    below = max(size for size in sizes if size <= edge)
    above = min(size for size in sizes if size > edge)
    assert below < found < above


def test_a_rate_that_does_not_fall_has_no_edge() -> None:
    assert capacity_of([1.0, 2.0, 4.0], [3.0, 3.0, 3.0]) == 4.0


@pytest.mark.parametrize(
    ("kind", "bytes_", "expected"),
    [
        ("all_gather", 100, (1, 800)),
        ("reduce_scatter", 100, (1, 125)),
        ("all_reduce", 100, (1, 500)),
        ("all_reduce", 1 << 20, (2, 3.25 * (1 << 20))),
        ("all_to_all", 100, (1, 200)),
    ],
)
def test_terms_of_collectives_are_those_of_the_cost_model(kind: str, bytes_: float, expected: object) -> None:
    assert collective_terms(kind, bytes_, 4) == expected
