# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans: which storages leave the device, and when they come back.

A spill lies between two uses of a storage, by the ops ``after`` and ``before``. The copy out is issued when ``after``
has ended; before op ``freed`` it is waited for, and the source freed; before op ``fetched`` memory is taken and the copy
in is issued, for which ``before`` waits. The storage is off the device for the ops from ``freed`` up to ``fetched``, so
that whether everything fits depends on integers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hyperparallel.offload.errors import CapacityError, OffloadError
from hyperparallel.offload.problem import DEVICE, Link, Problem

if TYPE_CHECKING:
    from hyperparallel import _hyperparallel


@dataclass(frozen=True, slots=True)
class Spill:
    """A storage that is off the device between two of its uses; slot n stands for the end of a step of n ops.

    Attributes:
        storage: Its number.
        after: The op that used it last; -1 for the start of the step.
        before: The op that uses it next; n for the end of the step, n + 1 + i for op i of the next step.
        freed: The first op for which it is off the device.
        fetched: The first op for which its memory is taken again.
        tier: The number of the tier that it goes to.
        clean: A valid copy lies there already: nothing is copied out.
        recomputed: It is dropped and computed again: nothing is copied at all.
        delay: Ops by which the copy out is issued later than it could be, to let others go first.
        out: When the copy out begins and ends.
        back: When the copy in begins and ends.
    """

    storage: int
    after: int
    before: int
    freed: int
    fetched: int
    tier: int = 0
    clean: bool = False
    recomputed: bool = False
    delay: int = 0
    out: tuple[float, float] = (0.0, 0.0)
    back: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan, and what carrying it out takes.

    Attributes:
        spills: What leaves the device.
        seconds: The step; with spills over the end of the step, each step once they have all begun.
        bound_seconds: No plan's step takes less.
        compute_seconds: The step if nothing had to move.
        waits_out: Seconds in which the step waits for copies out.
        waits_in: For copies in.
        slowed_down: Seconds that ops take longer because copies use the device's memory.
        peak_bytes: The most bytes on the device.
        bytes_out: Bytes copied out in a step.
        bytes_in: Bytes copied back.
        tightest_operation: The op that needs most bytes whatever moves; n for the end of the step.
        tightest_bytes: Those bytes: no smaller capacity works.
        max_live_bytes: The most bytes on the device if nothing moves.
        method: How the plan was found.
        starts: When each op starts.
        resident: Bytes on the device at each op, and at the end of the step.
        below: Bytes in each tier, by its name, likewise.
    """

    spills: tuple[Spill, ...]
    seconds: float
    bound_seconds: float
    compute_seconds: float
    waits_out: float
    waits_in: float
    slowed_down: float
    peak_bytes: int
    bytes_out: int
    bytes_in: int
    tightest_operation: int
    tightest_bytes: int
    max_live_bytes: int
    method: str
    starts: tuple[float, ...]
    resident: tuple[int, ...]
    below: dict[str, tuple[int, ...]]

    @property
    def over_bound(self) -> float:
        """How much longer the step takes than the bound: 0.01 is one percent."""
        return self.seconds / self.bound_seconds - 1 if self.bound_seconds > 0 else 0.0


_START, _OUT_START, _OUT_END, _IN_START, _IN_END = 2, 4, 5, 6, 7
_DEVICE_TOO_SMALL, _TIERS_TOO_SMALL = 1, 2


def _planner(problem: Problem) -> _hyperparallel.Planner:
    from hyperparallel import _hyperparallel

    planner = _hyperparallel.Planner(
        problem.capacity, problem.alignment, problem.minimum_bytes, problem.memory_bandwidth
    )
    segments = {name: number for number, name in enumerate(problem.segments)}
    for bandwidth in problem.segments.values():
        planner.add_segment(bandwidth)

    def link(link: Link) -> tuple[float, float, int, int]:
        if link.segment is not None and link.segment not in segments:
            raise OffloadError(f"expected a link to use one of the segments {', '.join(segments) or 'none'}")
        segment = -1 if link.segment is None else segments[link.segment]
        return link.latency, link.bandwidth, segment, link.staging

    for tier in problem.tiers:
        planner.add_tier(tier.capacity, link(tier.out), link(tier.back))
    for storage in problem.storages:
        planner.add_storage(
            storage.bytes,
            storage.persistent,
            storage.may_start_below,
            storage.clean,
            storage.pinned,
            storage.home_tier,
            -1.0 if storage.recompute_seconds is None else storage.recompute_seconds,
            storage.recompute_from,
        )
    for op in problem.operations:
        planner.add_operation(op.seconds, op.workspace, op.memory_bytes, op.reads, op.writes)
    return planner


def _operation_name(problem: Problem, number: int) -> str:
    if not 0 <= number < len(problem.operations):
        return "the end of the step"
    name = problem.operations[number].name
    return f"op {number}" + (f" ({name})" if name else "")


def _result(problem: Problem, planner: _hyperparallel.Planner) -> Plan:
    summary = planner.summary
    status = summary.pop("status")
    tightest = summary.pop("tightest_slot")
    needed, available = summary.pop("tier_needed_bytes"), summary.pop("tier_capacity_bytes")
    if status == _DEVICE_TOO_SMALL:
        name = _operation_name(problem, tightest)
        needed = summary["tightest_bytes"] if problem.tiers else summary["max_live_bytes"]
        raise CapacityError(
            f"expected {DEVICE} memory of at least {needed} bytes, which {name} needs whatever moves, "
            f"but got {problem.capacity}; give it {needed} bytes or more, or make the op's tensors smaller",
            tier=DEVICE,
            operation=tightest if tightest < len(problem.operations) else -1,
            operation_name=name,
            needed=needed,
            available=problem.capacity,
        )
    if status == _TIERS_TOO_SMALL:
        names = ", ".join(tier.name for tier in problem.tiers)
        raise CapacityError(
            f"expected the tiers below ({names}) to hold {needed} bytes at once but got {available}; give them that, "
            f"or the {DEVICE} more than {problem.capacity} bytes",
            tier=problem.tiers[-1].name,
            operation=-1,
            operation_name="",
            needed=needed,
            available=available,
        )
    times = [planner.times(which) for which in (_OUT_START, _OUT_END, _IN_START, _IN_END)]
    spills = tuple(
        Spill(*fields, out=(out_start, out_end), back=(in_start, in_end))
        for fields, out_start, out_end, in_start, in_end in zip(planner.spills, *times, strict=True)
    )
    del summary["max_live_slot"]
    return Plan(
        spills=spills,
        tightest_operation=tightest,
        starts=tuple(planner.times(_START)[:-1]),
        resident=tuple(planner.bytes(-1)),
        below={tier.name: tuple(planner.bytes(number)) for number, tier in enumerate(problem.tiers)},
        **summary,
    )


def plan(problem: Problem) -> Plan:
    """Plans the step: what leaves the device, and when, so that it takes the least time.

    Raises:
        OffloadError: The problem makes no sense.
        CapacityError: The device's memory is too small for some op whatever moves, or the tiers below are too small.
    """
    planner = _planner(problem)
    try:
        planner.plan()
    except ValueError as error:
        raise OffloadError(str(error)) from None
    return _result(problem, planner)


def planner_with(problem: Problem, spills: Sequence[Spill]) -> _hyperparallel.Planner:
    """A planner that has taken spills which somebody else has planned.

    Raises:
        OffloadError: They are no plan for the problem, or not a safe one; the message says why.
    """
    planner = _planner(problem)
    try:
        planner.take(
            [(s.storage, s.after, s.before, s.freed, s.fetched, s.tier, s.clean, s.recomputed, s.delay) for s in spills]
        )
    except ValueError as error:
        raise OffloadError(str(error)) from None
    return planner


def execute(problem: Problem, spills: Sequence[Spill]) -> Plan:
    """Carries out spills that somebody else has planned.

    Raises:
        OffloadError: They are no plan for the problem, or not a safe one; the message says why.
    """
    return _result(problem, planner_with(problem, spills))


__all__ = ["Plan", "Spill", "execute", "plan"]
