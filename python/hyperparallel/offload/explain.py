# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Why a plan is as it is: what moved and what stayed, what of it is hidden, and what bandwidth would hide it.

The planner says it (``lib/Planner/Explain.h``); here it gets names.
"""

from __future__ import annotations

from dataclasses import dataclass

from hyperparallel.enums import StrEnum
from hyperparallel.offload.planner import Plan, planner_with
from hyperparallel.offload.problem import DEVICE, Problem


class Fate(StrEnum):
    """What becomes of a storage."""

    KEPT = "kept"
    MOVED = "moved"
    RECOMPUTED = "recomputed"


@dataclass(frozen=True, slots=True)
class StorageReport:
    """What becomes of a storage, for its longest time away; for one that is kept, its longest time without a use.

    Attributes:
        storage: Its number.
        name: Its name.
        fate: Whether it moves.
        bytes: Its size.
        tier: Where it goes, or ``device``.
        after: The op that uses it before that time; -1 for the start of the step.
        before: The op that uses it after that time; n for the end of the step, above for the next step.
        gap_seconds: That time, in the step as planned.
        copy_seconds: What all copies of it take in a step.
        hidden_seconds: What of that goes on behind ops.
        exposed_seconds: What the step waits for them; more than they take where others are before them in the queue.
        break_even_bandwidth: Bytes per second of a link at which its copies alone fit that time; None if there is none.
    """

    storage: int
    name: str
    fate: Fate
    bytes: int
    tier: str
    after: int
    before: int
    gap_seconds: float
    copy_seconds: float
    hidden_seconds: float
    exposed_seconds: float
    break_even_bandwidth: float | None


def explain(problem: Problem, plan: Plan) -> tuple[StorageReport, ...]:
    """A report for every storage that has bytes and could leave the device, in the order of their numbers.

    Raises:
        OffloadError: The plan is none for the problem.
    """
    reports: list[StorageReport] = []
    for storage, number, tier, after, before, *seconds, bandwidth in planner_with(problem, plan.spills).explain():
        fate = list(Fate)[number]
        reports.append(
            StorageReport(
                storage,
                problem.storages[storage].name,
                fate,
                problem.storages[storage].bytes,
                problem.tiers[tier].name if fate == Fate.MOVED else DEVICE,
                after,
                before,
                *seconds,
                break_even_bandwidth=bandwidth or None,
            )
        )
    return tuple(reports)


__all__ = ["Fate", "StorageReport", "explain"]
