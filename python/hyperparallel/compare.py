# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares arrays with a reference, and says how far they are apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

DEFAULT_TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """How far results are from a reference.

    Attributes:
        max_abs_error: The largest absolute difference.
        max_rel_error: The largest difference relative to the reference element, or to the root mean square of its
        tensor
            where the element is smaller than that.
        by_result: ``max_rel_error`` of each result.
        tolerance: What ``max_rel_error`` may be.
    """

    max_abs_error: float
    max_rel_error: float
    by_result: Mapping[str, float]
    tolerance: float = DEFAULT_TOLERANCE

    @property
    def ok(self) -> bool:
        """Whether the results are equal within the tolerance."""
        return self.max_rel_error <= self.tolerance


def compare(
    got: Mapping[str, NDArray[Any]], want: Mapping[str, NDArray[Any]], tolerance: float = DEFAULT_TOLERANCE
) -> Comparison:
    """Compare results by name.

    Infinities and NaN must stand in the same places; integers and booleans are compared as numbers. A missing result or
    another shape counts as infinitely far.

    >>> import numpy as np
    >>> compare({"y": np.array([1.0, -2.0])}, {"y": np.array([1.0, -2.0])}).max_rel_error
    0.0
    """
    worst_abs = worst_rel = 0.0
    by_result: dict[str, float] = {}
    for name, reference in want.items():
        absolute, relative = _errors(got.get(name), reference)
        by_result[name] = relative
        worst_abs, worst_rel = max(worst_abs, absolute), max(worst_rel, relative)
    return Comparison(worst_abs, worst_rel, by_result, tolerance)


def _errors(got: NDArray[Any] | None, want: NDArray[Any]) -> tuple[float, float]:
    if got is None or got.shape != want.shape:
        return float("inf"), float("inf")
    if not want.size:
        return 0.0, 0.0
    left, right = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(right)
    same = np.array_equal(left[~finite], right[~finite], equal_nan=True)
    if not same or not np.isfinite(left[finite]).all():
        return float("inf"), float("inf")
    left, right = left[finite], right[finite]
    if not right.size:
        return 0.0, 0.0
    difference = np.abs(left - right)
    scale = np.maximum(np.abs(right), np.sqrt(np.mean(right * right)))
    relative = np.divide(difference, scale, out=np.where(difference > 0, np.inf, 0.0), where=scale > 0)
    return float(difference.max()), float(relative.max())
