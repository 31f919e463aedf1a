# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unions and differences of spans of time, as sorted lists of disjoint (start, end)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

Span = tuple[float, float]


def union(spans: Iterable[Span]) -> list[Span]:
    """The times that any span covers.

    >>> union([(3.0, 4.0), (0.0, 1.0), (0.5, 2.0)])
    [(0.0, 2.0), (3.0, 4.0)]
    """
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        elif end > start:
            merged.append((start, end))
    return merged


def length(spans: Sequence[Span]) -> float:
    """Seconds of disjoint spans."""
    return sum(end - start for start, end in spans)


def covered(span: Span, by: Sequence[Span]) -> float:
    """Seconds of a span that disjoint sorted spans cover; O(log n) and the spans that it meets.

    >>> covered((0.5, 3.5), [(0.0, 1.0), (2.0, 3.0)])
    1.5
    """
    start, end = span
    index = max(0, bisect_right(by, (start, float("inf"))) - 1)
    seconds = 0.0
    while index < len(by) and by[index][0] < end:
        seconds += max(0.0, min(end, by[index][1]) - max(start, by[index][0]))
        index += 1
    return seconds


__all__ = ["Span", "covered", "length", "union"]
