# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Static offsets: where buffers lie in one piece of memory, so that two that live at the same time share no byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hyperparallel.offload.errors import OffloadError


@dataclass(frozen=True, slots=True)
class Buffer:
    """Bytes that are needed at the moments from ``lower`` up to ``upper``."""

    lower: int
    upper: int
    size: int


@dataclass(frozen=True, slots=True)
class Arena:
    """Offsets by buffer, the height that they come to, the most bytes live at one moment, and how they were found."""

    offsets: tuple[int, ...]
    height: int
    max_live: int
    method: str

    @property
    def over_max_live(self) -> float:
        """How much higher it is than any must be: 0.01 is one percent."""
        return self.height / self.max_live - 1 if self.max_live else 0.0


def _tuples(buffers: Sequence[Buffer], alignment: int) -> list[tuple[int, int, int]]:
    if alignment < 1:
        raise OffloadError(f"expected an alignment of at least 1 but got {alignment}")
    for number, buffer in enumerate(buffers):
        if buffer.size < 0 or buffer.upper < buffer.lower:
            raise OffloadError(f"expected buffer {number} to have no negative size or life but got {buffer}")
    return [(buffer.lower, buffer.upper, buffer.size) for buffer in buffers]


def assign_offsets(
    buffers: Sequence[Buffer], *, alignment: int = 1, capacity: int | None = None, exact: bool = False
) -> Arena:
    """Finds offsets of little height.

    Args:
        buffers: What is to be placed.
        alignment: Offsets, and sizes rounded up, are multiples of it.
        capacity: A height that is enough; the most bytes live at one moment if not given.
        exact: Search exactly where simple orders do not come to that. This may take a minute.

    Raises:
        OffloadError: A buffer makes no sense.

    Example:
        >>> assign_offsets([Buffer(0, 2, 10), Buffer(1, 3, 20), Buffer(2, 4, 10)]).height
        30
    """
    from hyperparallel import _hyperparallel

    found = _hyperparallel.assign_offsets(_tuples(buffers, alignment), alignment, capacity or 0, exact)
    offsets, height, max_live, method = found
    return Arena(tuple(offsets), height, max_live, method)


def find_overlap(buffers: Sequence[Buffer], offsets: Sequence[int], *, alignment: int = 1) -> str | None:
    """What is wrong with offsets: which two buffers that live at the same time share a byte; None if nothing is."""
    from hyperparallel import _hyperparallel

    try:
        return _hyperparallel.find_overlap(_tuples(buffers, alignment), offsets, alignment) or None
    except ValueError as error:
        raise OffloadError(str(error)) from None


__all__ = ["Arena", "Buffer", "assign_offsets", "find_overlap"]
