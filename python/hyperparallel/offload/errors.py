# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The errors of placing tensors in memory tiers."""

from __future__ import annotations

from hyperparallel.errors import HyperParallelError, PlanError


class OffloadError(HyperParallelError):
    """A problem or a plan does not make sense; the message says what is wrong with it."""


class CapacityError(PlanError):
    """A tier is too small, whatever moves.

    Attributes:
        tier: The name of the tier, ``device`` for the device's own memory.
        operation: The number of the op that needs most, and its name; -1 where it is not one op.
        operation_name: The name of that op.
        needed: Bytes that it needs: the smallest capacity that could work.
        available: Bytes that there are.
    """

    def __init__(
        self, message: str, *, tier: str, operation: int, operation_name: str, needed: int, available: int
    ) -> None:
        super().__init__(message, constraint=f"{needed} bytes in {tier}, which has {available}")
        self.tier = tier
        self.operation = operation
        self.operation_name = operation_name
        self.needed = needed
        self.available = available


__all__ = ["CapacityError", "OffloadError"]
