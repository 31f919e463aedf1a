# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The error of a simulation."""

from __future__ import annotations

from hyperparallel.errors import HyperParallelError


class SimulationError(HyperParallelError):
    """Tasks, a trace or a program cannot be simulated; the message says what is wrong with them."""


__all__ = ["SimulationError"]
