# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lays the spans of a stream on tracks, on each of which two spans are apart or one holds the other.

Viewers of Chrome traces draw a stack of nested spans and nothing else, but transfers that share a link may overlap
without nesting. Spans are taken by start, longer ones first, and put on the first track whose open spans allow it.
Cost: O(n * tracks); a stream has as many tracks as spans overlap at one time.
"""

from __future__ import annotations

from collections.abc import Sequence


def tracks_of(spans: Sequence[tuple[float, float]]) -> list[int]:
    """The track of each span.

    >>> tracks_of([(0.0, 2.0), (1.0, 3.0), (2.0, 4.0), (2.5, 3.0)])
    [0, 1, 0, 0]
    """
    order = sorted(range(len(spans)), key=lambda index: (spans[index][0], -spans[index][1]))
    placed = [0] * len(spans)
    open_ends: list[list[float]] = []
    for index in order:
        start, end = spans[index]
        for track, ends in enumerate(open_ends):
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or end <= ends[-1]:
                ends.append(end)
                placed[index] = track
                break
        else:
            placed[index] = len(open_ends)
            open_ends.append([end])
    return placed


__all__ = ["tracks_of"]
