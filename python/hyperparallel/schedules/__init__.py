# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In which order device groups do their parts of a step, and the proof that none waits forever.

Example:
    >>> from hyperparallel.schedules import ScheduleName, pipeline, schedule
    >>> result = schedule(pipeline(stages=4, microbatches=8), ScheduleName.ONE_F_ONE_B)
    >>> result.seconds, round(result.bubble, 4), result.peak_live  # a forward takes 1 s, a backward 2 s
    (33.0, 0.2727, (4, 3, 2, 1))
"""

from __future__ import annotations

from hyperparallel.schedules.deadlock import Action, Meet, Receive, Send, actions_of, find_deadlock
from hyperparallel.schedules.drawing import draw
from hyperparallel.schedules.problem import Edge, Kind, Problem, Task, pipeline
from hyperparallel.schedules.schedule import (
    GroupReport,
    Run,
    Schedule,
    ScheduleError,
    ScheduleName,
    Step,
    check_order,
    schedule,
)

__all__ = [
    "Action",
    "Edge",
    "GroupReport",
    "Kind",
    "Meet",
    "Problem",
    "Receive",
    "Run",
    "Schedule",
    "ScheduleError",
    "ScheduleName",
    "Send",
    "Step",
    "Task",
    "actions_of",
    "check_order",
    "draw",
    "find_deadlock",
    "pipeline",
    "schedule",
]
