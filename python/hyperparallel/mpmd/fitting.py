# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fastest order of microbatches that leaves each group within its devices' memory.

The scheduler knows what forward fragments save for backward ones, spread evenly over a group. A device holds more than
that: parameters, the optimizer's state, what an op needs while it runs; and how it is laid out is known only when the
program was partitioned. So:

1. The program is split with the fastest order, and each group's program is measured as it will run.
2. A group that is above its limit may save that much less, by what the measurements so far say of a saved byte; the
   program is split again, with the fastest order under these limits.
3. It ends when all groups are within their limits. If there is no such order, the one with the least excess stays, and
   phase 6 moves what does not fit to the tiers below, or refuses.

Cost: a few splits, each of which lowers every group's program once; only where a limit is given and the order is free.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from mlir import ir

from hyperparallel.errors import CompilationError
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.memory import device_peak
from hyperparallel.pipeline import PhaseRunner, copy_program
from hyperparallel.plan import ResolvedPlan

_ATTEMPTS = 6


@dataclasses.dataclass(slots=True)
class GroupProgram:
    """The program of one group, on its way through the phases.

    Attributes:
        name: The group.
        module: Its nested module.
        model: What its arguments and results are.
        plan: The plan's rules for it.
        runner: Runs phases on it.
    """

    name: str
    module: ir.Module
    model: ImportedModel
    plan: ResolvedPlan
    runner: PhaseRunner


Split = tuple[ir.Module, list[GroupProgram]]


@dataclasses.dataclass(slots=True)
class _Group:
    """What is known of a group: pairs of bytes that its schedule saves and of its measured peak, and of its limits."""

    limit: int
    points: list[tuple[int, int]] = dataclasses.field(default_factory=list[tuple[int, int]])
    refused: int = 0

    def next_limit(self) -> int:
        """Bytes that it may save in the next attempt."""
        saved, peak = self.points[-1]
        if peak <= self.limit:
            return saved
        slope = 1.0
        if len(self.points) > 1:
            before, before_peak = self.points[-2]
            if before != saved and before_peak != peak:
                slope = max((before_peak - peak) / (before - saved), 0.1)
        return max(saved - int((peak - self.limit) / slope), 1, (self.refused + saved) // 2 if self.refused else 1)


def schedule_within(limits: Mapping[str, int], report: Path, split: Callable[[Mapping[str, int]], Split]) -> Split:
    """Split a program with the fastest order that keeps the groups' limits, or comes nearest to that.

    Args:
        limits: Bytes that a device of each group may use, by group.
        report: Where the scheduler says what its order saves.
        split: Splits the program, with limits of what each group may save.

    Raises:
        CompilationError: The program cannot be split.
    """
    groups = {name: _Group(limit) for name, limit in limits.items()}
    best: tuple[int, dict[str, int]] | None = None
    allowed: dict[str, int] = {}
    is_current = False
    made: Split | None = None
    for attempt in range(_ATTEMPTS):
        try:
            made = split(allowed)
        except CompilationError as error:
            if attempt == 0 or error.pass_name != _SCHEDULE:
                raise
            # No order saves so little.
            for name, group in groups.items():
                if group.points[-1][1] > group.limit:
                    group.refused = max(group.refused, allowed[name])
            is_current = False
        else:
            is_current = False
            saved = {one["name"]: int(one["saved_bytes"]) for one in json.loads(report.read_text("utf-8"))["groups"]}
            peaks = {one.name: device_peak(copy_program(one.module)) for one in made[1]}
            for name, group in groups.items():
                group.points.append((saved[name], peaks[name]))
            excess = sum(max(0, peaks[name] - group.limit) for name, group in groups.items())
            if best is None or excess < best[0]:
                best, is_current = (excess, allowed), True
            if excess == 0:
                return made
        following = {name: group.next_limit() for name, group in groups.items()}
        if following == allowed:
            break
        allowed = following
    assert best is not None
    assert made is not None
    return made if is_current else split(best[1])


_SCHEDULE = "hypermpmd-schedule"

__all__ = ["GroupProgram", "schedule_within"]
