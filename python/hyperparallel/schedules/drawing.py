# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules as text: a line for each group, time to the right."""

from __future__ import annotations

from hyperparallel.schedules.problem import Kind, Problem
from hyperparallel.schedules.schedule import Schedule

_LETTERS = {
    Kind.FORWARD: "F",
    Kind.BACKWARD: "B",
    Kind.BACKWARD_INPUT: "B",
    Kind.BACKWARD_WEIGHT: "W",
    Kind.UPDATE: "U",
    Kind.OTHER: "x",
}


def draw(problem: Problem, schedule: Schedule, *, width: int = 100) -> str:
    """One line for each group: letter and microbatch where a task starts, then a dash as long as it lasts.

    A microbatch of a group's second stage has a ' behind it, and so on. Tasks too short for their name lose letters.

    Args:
        problem: What was scheduled.
        schedule: The schedule.
        width: Columns for the whole step.
    """
    scale = width / schedule.seconds if schedule.seconds > 0 else 0.0
    lines: list[str] = []
    margin = max((len(name) for name in problem.groups), default=0)
    for name, order in zip(problem.groups, schedule.order, strict=True):
        line = ["."] * width
        stages = sorted({problem.tasks[number].stage for number in order})
        for number in order:
            task = problem.tasks[number]
            first, end = round(schedule.start[number] * scale), round(schedule.end[number] * scale)
            label = f"{_LETTERS[task.kind]}{task.microbatch}" + "'" * stages.index(task.stage)
            line[first:end] = label.ljust(end - first, "-")[: end - first]
        lines.append(f"{name:<{margin}}  {''.join(line)}")
    return "\n".join(lines)


__all__ = ["draw"]
