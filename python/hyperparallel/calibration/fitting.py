# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Least squares on times: a time is a sum of terms, each a known size times an unknown cost.

What is made small is the relative error, so that a microsecond of a short task counts as much as a millisecond of a
long one. Costs are never negative: a term whose cost would be is left out.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Fit:
    """What came of a fit.

    Attributes:
        costs: The cost of each term; 0 where it was left out.
        residual: The median of the relative errors.
        points: How many times were fitted.
    """

    costs: tuple[float, ...]
    residual: float
    points: int


def fit_times(sizes: Sequence[Sequence[float]], seconds: Sequence[float]) -> Fit:
    """Fits ``seconds[i] = sum of sizes[i][j] * costs[j]``.

    Args:
        sizes: For each time, the size of each term; at most eight terms.
        seconds: The times; all positive.

    Raises:
        ValueError: There are fewer times than terms.

    Example:
        >>> fit = fit_times([(1, 10), (1, 20), (1, 40)], [3e-6, 5e-6, 9e-6])
        >>> [round(cost * 1e6, 6) for cost in fit.costs]
        [1.0, 0.2]
    """
    matrix = np.asarray(sizes, dtype=float)
    times = np.asarray(seconds, dtype=float)
    if len(times) < matrix.shape[1]:
        raise ValueError(f"expected at least {matrix.shape[1]} times but got {len(times)}")
    weighted = matrix / times[:, None]
    best: tuple[float, tuple[float, ...]] | None = None
    terms = range(matrix.shape[1])
    # The best of all sets of terms whose costs come out positive is the least-squares solution without negative costs.
    for count in range(len(terms), 0, -1):
        for chosen in itertools.combinations(terms, count):
            found, *_ = np.linalg.lstsq(weighted[:, chosen], np.ones(len(times)), rcond=None)
            if (found < 0).any():
                continue
            costs = [0.0] * len(terms)
            for term, cost in zip(chosen, found, strict=True):
                costs[term] = float(cost)
            error = float(np.square(weighted @ np.asarray(costs) - 1).sum())
            if best is None or error < best[0] * (1 - 1e-9):
                best = (error, tuple(costs))
    assert best is not None, "sizes and times are positive, so that one term alone has a positive cost"
    errors = np.abs(weighted @ np.asarray(best[1]) - 1)
    return Fit(best[1], float(np.median(errors)), len(times))


def capacity_of(sizes: Sequence[float], rates: Sequence[float]) -> float:
    """Where a rate that falls with size has fallen half way, on a logarithmic scale of both.

    Args:
        sizes: Working sets, rising.
        rates: Bytes per second at each.

    Example:
        >>> capacity_of([1, 2, 4, 8, 16], [64, 64, 64, 4, 4])
        5.656854249492381
    """
    middle = (rates[0] * rates[-1]) ** 0.5
    for (small, fast), (large, slow) in itertools.pairwise(zip(sizes, rates, strict=True)):
        if slow <= middle < fast:
            part = np.log(fast / middle) / np.log(fast / slow)
            return float(small * (large / small) ** part)
    return float(sizes[-1])


def relative_spread(values: Sequence[float]) -> float:
    """The median distance from the median, over the median."""
    middle = statistics.median(values)
    return statistics.median(abs(value - middle) for value in values) / middle


__all__ = ["Fit", "capacity_of", "fit_times", "relative_spread"]
