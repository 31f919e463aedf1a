# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Why a plan is as it is: what moved and what stayed, what of it is hidden, and what bandwidth would hide it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hyperparallel.enums import StrEnum
from hyperparallel.offload.planner import Plan
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


def _moment(plan: Plan, slot: int) -> float:
    """When a slot begins, those of the next step included."""
    count = len(plan.starts)
    if slot > count:
        return plan.seconds + _moment(plan, slot - count - 1)
    return plan.starts[slot] if slot < count else plan.seconds


def _ends(problem: Problem, plan: Plan) -> list[float]:
    return [start + op.seconds for start, op in zip(plan.starts, problem.operations, strict=True)]


def _exposed(problem: Problem, plan: Plan) -> list[float]:
    """Seconds that the step waits for each spill: waits of a slot go to the copies that end in them, in their order."""
    ends = _ends(problem, plan)
    waits: list[tuple[int, float, int]] = []
    count = len(problem.operations)
    for number, spill in enumerate(plan.spills):
        if spill.recomputed:
            continue
        if spill.freed <= count and not spill.clean:
            waits.append((spill.freed, spill.out[1], number))
        if spill.before <= count:
            waits.append((spill.before, spill.back[1], number))
    exposed = [0.0] * len(plan.spills)
    reached = {slot: ends[slot - 1] if slot else 0.0 for slot, _, _ in waits}
    for slot, end, number in sorted(waits):
        exposed[number] += max(0.0, end - reached[slot])
        reached[slot] = max(reached[slot], end)
    return exposed


def explain(problem: Problem, plan: Plan) -> tuple[StorageReport, ...]:
    """A report for every storage that has bytes and a time without a use, in the order of their numbers."""
    ends = _ends(problem, plan)
    exposed = _exposed(problem, plan)
    count = len(problem.operations)

    def length(after: int, before: int) -> float:
        return _moment(plan, before) - (ends[after] if after >= 0 else 0.0)

    uses: list[list[int]] = [[] for _ in problem.storages]
    for number, op in enumerate(problem.operations):
        for storage in dict.fromkeys((*op.reads, *op.writes)):
            uses[storage].append(number)
    spills: list[list[int]] = [[] for _ in problem.storages]
    for number, spill in enumerate(plan.spills):
        spills[spill.storage].append(number)
    reports: list[StorageReport] = []
    for number, storage in enumerate(problem.storages):
        points = [-1, *uses[number], count] if storage.persistent else uses[number]
        gaps = [(a, b) for a, b in pairwise(points) if b - a > 1]
        if spills[number]:
            away = [spill for spill in (plan.spills[one] for one in spills[number]) if spill.freed < spill.fetched]
            gaps = [(spill.after, spill.before) for spill in away]
        if not gaps or storage.bytes == 0:
            continue
        after, before = max(gaps, key=lambda gap: length(*gap))
        copies = sum(
            plan.spills[spill].back[1]
            - plan.spills[spill].back[0]
            + plan.spills[spill].out[1]
            - plan.spills[spill].out[0]
            for spill in spills[number]
            if not plan.spills[spill].recomputed
        )
        waited = sum(exposed[spill] for spill in spills[number])
        moved = [plan.spills[spill] for spill in spills[number] if not plan.spills[spill].recomputed]
        gap = length(after, before)
        ways = 1 if storage.clean else 2
        reports.append(
            StorageReport(
                storage=number,
                name=storage.name,
                fate=Fate.MOVED if moved else Fate.RECOMPUTED if spills[number] else Fate.KEPT,
                bytes=storage.bytes,
                tier=problem.tiers[moved[0].tier].name if moved else DEVICE,
                after=after,
                before=before,
                gap_seconds=gap,
                copy_seconds=copies,
                hidden_seconds=max(0.0, copies - waited),
                exposed_seconds=waited,
                break_even_bandwidth=ways * storage.bytes / gap if gap > 0 else None,
            )
        )
    return tuple(reports)


__all__ = ["Fate", "StorageReport", "explain"]
