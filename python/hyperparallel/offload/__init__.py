# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Placing tensors in memory tiers: which leave the device, when they come back, and where they lie.

Example:
    >>> from hyperparallel.offload import Link, Operation, Problem, Storage, Tier, plan
    >>> host = Tier("host", 1000, Link(10.0), Link(10.0))
    >>> steps = (Operation(5.0, writes=(0,)), Operation(20.0, writes=(1,)), Operation(5.0, reads=(0,)))
    >>> result = plan(Problem(steps, (Storage(50), Storage(100)), 100, (host,)))
    >>> result.seconds, result.bytes_out  # 50 bytes leave before the second op, and come back before the third
    (40.0, 50)
"""

from __future__ import annotations

from hyperparallel.offload.arena import Arena, Buffer, assign_offsets, find_overlap
from hyperparallel.offload.errors import CapacityError, OffloadError
from hyperparallel.offload.explain import Fate, StorageReport, explain
from hyperparallel.offload.planner import Plan, Spill, execute, plan
from hyperparallel.offload.problem import DEVICE, Link, Operation, Problem, Storage, Tier

__all__ = [
    "DEVICE",
    "Arena",
    "Buffer",
    "CapacityError",
    "Fate",
    "Link",
    "OffloadError",
    "Operation",
    "Plan",
    "Problem",
    "Spill",
    "Storage",
    "StorageReport",
    "Tier",
    "assign_offsets",
    "execute",
    "explain",
    "find_overlap",
    "plan",
]
