# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Proof that no process waits forever, by executing sends, receives and collectives without data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hyperparallel.schedules.problem import Problem
from hyperparallel.schedules.schedule import Run, Schedule, SendEdge


@dataclass(frozen=True, slots=True)
class Send:
    """Sends a message to a process. Bytes that are not given are not compared."""

    to: int
    tag: int = 0
    bytes: int = -1
    label: str = ""


@dataclass(frozen=True, slots=True)
class Receive:
    """Receives a message from a process."""

    source: int
    tag: int = 0
    bytes: int = -1
    label: str = ""


@dataclass(frozen=True, slots=True)
class Meet:
    """Takes part in a collective of the circle of that number; tags tell different collectives apart."""

    circle: int
    tag: int = 0
    bytes: int = -1
    label: str = ""


Action = Send | Receive | Meet


def find_deadlock(
    processes: Mapping[str, Sequence[Action]], circles: Sequence[Sequence[int]] = (), *, buffered: bool = False
) -> str | None:
    """Executes the processes' actions: what is not possible here is not possible in any run.

    Args:
        processes: What each process does, in order; processes are numbered in the mapping's order.
        circles: The processes that take part in collectives, for ``Meet``.
        buffered: A send ends at once, as in this project's runtime; else it waits for its receive.

    Returns:
        None if all come to their end; else who waits for whom, which message nobody receives, or what does not match.
    """
    from hyperparallel import _hyperparallel

    def fields(action: Action) -> tuple[int, int, int, int, str]:
        if isinstance(action, Send):
            return 0, action.to, action.tag, action.bytes, action.label
        if isinstance(action, Receive):
            return 1, action.source, action.tag, action.bytes, action.label
        return 2, action.circle, action.tag, action.bytes, action.label

    fault = _hyperparallel.find_deadlock(
        list(processes), [[fields(action) for action in actions] for actions in processes.values()], circles, buffered
    )
    return fault or None


def actions_of(problem: Problem, schedule: Schedule) -> dict[str, tuple[Action, ...]]:
    """The sends and receives of each group, by its name, in the order of the schedule's steps."""
    result: dict[str, tuple[Action, ...]] = {}
    for name, steps in zip(problem.groups, schedule.steps, strict=True):
        actions: list[Action] = []
        for step in steps:
            if isinstance(step, Run):
                continue
            edge = problem.edges[step.edge]
            if isinstance(step, SendEdge):
                actions.append(Send(problem.tasks[edge.to].group, step.edge))
            else:
                actions.append(Receive(problem.tasks[edge.source].group, step.edge))
        result[name] = tuple(actions)
    return result


__all__ = ["Action", "Meet", "Receive", "Send", "actions_of", "find_deadlock"]
