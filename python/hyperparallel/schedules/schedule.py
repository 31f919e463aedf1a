# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules: found by name, or checked where somebody else gives an order. See ``lib/Scheduler/NamedSchedules.cpp``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hyperparallel.enums import StrEnum
from hyperparallel.errors import PlanError
from hyperparallel.schedules.problem import Kind, Problem

if TYPE_CHECKING:
    from hyperparallel import _hyperparallel


class ScheduleName(StrEnum):
    """The schedules that there are."""

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED_1F1B = "interleaved_1f1b"
    ZERO_BUBBLE_H1 = "zero_bubble_h1"
    AUTO = "auto"


class ScheduleError(PlanError):
    """There is no such schedule for the problem; the message says which rule or limit is in the way."""


@dataclass(frozen=True, slots=True)
class Run:
    """A step of a group: it does the task of that number."""

    task: int


@dataclass(frozen=True, slots=True)
class SendEdge:
    """A step of a group: it sends what that edge of the problem needs."""

    edge: int


@dataclass(frozen=True, slots=True)
class ReceiveEdge:
    """A step of a group: it receives it."""

    edge: int


Step = Run | SendEdge | ReceiveEdge


@dataclass(frozen=True, slots=True)
class GroupReport:
    """What a schedule means for one group.

    Attributes:
        busy_seconds: In which it works.
        bubble: The part of the schedule in which it does not, between 0 and 1.
        peak_bytes: The most bytes that its tasks hold.
    """

    busy_seconds: float
    bubble: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """The order in which each group works.

    Attributes:
        method: How it was found.
        seconds: The whole step, if every task starts as soon as it can.
        bubble: The part of all groups' time in which they do not work.
        peak_live: By stage, the most microbatches between forward and the end of backward.
        groups: What it means for each group.
        order: Each group's tasks, in order.
        steps: Each group's tasks with its sends and receives: no group waits forever, even if a send waits for its
            receive.
        start: When each task starts.
        end: When each task ends.
        declined: For ``auto``: what else was tried, and why it was not taken.
    """

    method: str
    seconds: float
    bubble: float
    peak_live: tuple[int, ...]
    groups: tuple[GroupReport, ...]
    order: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[Step, ...], ...]
    start: tuple[float, ...]
    end: tuple[float, ...]
    declined: tuple[str, ...]


_KINDS = tuple(Kind)
_STEPS = (Run, SendEdge, ReceiveEdge)


def _scheduler(problem: Problem) -> _hyperparallel.Scheduler:
    from hyperparallel import _hyperparallel

    if len(problem.limits) != len(problem.groups):
        raise ScheduleError(
            f"expected a memory limit, or None, for each of {len(problem.groups)} groups but got {len(problem.limits)}"
        )
    scheduler = _hyperparallel.Scheduler(problem.stages, problem.microbatches)
    for name, limit in zip(problem.groups, problem.limits, strict=True):
        scheduler.add_group(name, -1 if limit is None else limit)
    for task in problem.tasks:
        scheduler.add_task(
            task.group,
            _KINDS.index(task.kind),
            task.stage,
            task.microbatch,
            task.seconds,
            task.start_bytes,
            task.end_bytes,
        )
    for edge in problem.edges:
        scheduler.add_edge(edge.source, edge.to, edge.seconds)
    return scheduler


def _result(problem: Problem, scheduler: _hyperparallel.Scheduler) -> Schedule:
    steps: list[tuple[Step, ...]] = [
        tuple(_STEPS[what](index) for what, index in scheduler.steps(group)) for group in range(len(problem.groups))
    ]
    return Schedule(
        method=scheduler.method,
        seconds=scheduler.seconds,
        bubble=scheduler.bubble,
        peak_live=tuple(scheduler.peak_live),
        groups=tuple(GroupReport(*scheduler.group(group)) for group in range(len(problem.groups))),
        order=tuple(tuple(step.task for step in group if isinstance(step, Run)) for group in steps),
        steps=tuple(steps),
        start=tuple(scheduler.times(ends=False)),
        end=tuple(scheduler.times(ends=True)),
        declined=tuple(scheduler.declined),
    )


def schedule(problem: Problem, name: ScheduleName) -> Schedule:
    """The order that the named schedule gives each group.

    Raises:
        ScheduleError: The problem makes no sense, the schedule does not apply to it, or it does not fit a group's memory.
    """
    scheduler = _scheduler(problem)
    try:
        scheduler.make(name)
    except ValueError as error:
        raise ScheduleError(str(error)) from None
    return _result(problem, scheduler)


def check_order(problem: Problem, order: Sequence[Sequence[int]]) -> Schedule:
    """What an order that somebody gives takes: the task numbers of each group.

    Raises:
        ScheduleError: A task is missing, everything waits in a circle, or a group's memory is too small.
    """
    scheduler = _scheduler(problem)
    try:
        scheduler.take(order)
    except ValueError as error:
        raise ScheduleError(str(error)) from None
    return _result(problem, scheduler)


__all__ = [
    "GroupReport",
    "ReceiveEdge",
    "Run",
    "Schedule",
    "ScheduleError",
    "ScheduleName",
    "SendEdge",
    "Step",
    "check_order",
    "schedule",
]
