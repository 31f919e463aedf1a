# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is to be scheduled: the tasks of device groups, and what they need of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hyperparallel.enums import StrEnum


class Kind(StrEnum):
    """What a task is. In a pipeline, backward is one task or two."""

    FORWARD = "forward"
    BACKWARD = "backward"
    BACKWARD_INPUT = "backward_input"
    BACKWARD_WEIGHT = "backward_weight"
    UPDATE = "update"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Task:
    """One thing that a group does.

    Attributes:
        group: The number of the group.
        kind: Forward and backward tasks are known by kind, stage and microbatch; others by their number alone.
        stage: The stage of the pipeline.
        microbatch: The microbatch.
        seconds: What it takes.
        start_bytes: Bytes that the group holds from its start on.
        end_bytes: Bytes more that it holds from its end on; below zero where it gives back.
    """

    group: int
    kind: Kind = Kind.OTHER
    stage: int = 0
    microbatch: int = 0
    seconds: float = 0.0
    start_bytes: int = 0
    end_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Edge:
    """Task ``to`` needs what task ``source`` makes; sending it to another group takes ``seconds``."""

    source: int
    to: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Problem:
    """A step over device groups.

    Attributes:
        tasks: What is to be done.
        edges: What needs what.
        groups: The groups' names, by number.
        limits: The bytes that each group may hold at a time; none for any number.
        stages: The number of stages.
        microbatches: The number of microbatches.
    """

    tasks: tuple[Task, ...]
    edges: tuple[Edge, ...]
    groups: tuple[str, ...]
    limits: tuple[int | None, ...]
    stages: int = 0
    microbatches: int = 0


def pipeline(
    *,
    stages: int,
    microbatches: int,
    groups: int | None = None,
    split_backward: bool = False,
    forward: float | Sequence[float] = 1.0,
    backward_input: float | Sequence[float] = 1.0,
    backward_weight: float | Sequence[float] = 1.0,
    transfer: float = 0.0,
    activation_bytes: int | Sequence[int] = 1,
    limit: int | None = None,
) -> Problem:
    """A training step of a chain of stages.

    Args:
        stages: The number of stages.
        microbatches: The number of microbatches.
        groups: The number of device groups; stage i is of group i % groups. As many as stages if none is given.
        split_backward: Backward is two tasks, by input and by weight, instead of one that takes the time of both.
        forward: Seconds of a forward: of each stage, or for all.
        backward_input: Seconds of a backward by input.
        backward_weight: Seconds of a backward by weight.
        transfer: Seconds from a group to another.
        activation_bytes: Bytes that are live from a microbatch's forward to the end of its backward.
        limit: The bytes that a group may hold.
    """
    number = stages if groups is None else groups

    def at(stage: int, value: float | Sequence[float]) -> float:
        return value[stage] if isinstance(value, Sequence) else value

    def held(stage: int) -> int:
        return activation_bytes[stage] if isinstance(activation_bytes, Sequence) else activation_bytes

    last = Kind.BACKWARD_WEIGHT if split_backward else Kind.BACKWARD
    first = Kind.BACKWARD_INPUT if split_backward else Kind.BACKWARD
    kinds = (Kind.FORWARD, first, last) if split_backward else (Kind.FORWARD, first)
    tasks: list[Task] = []
    index: dict[tuple[Kind, int, int], int] = {}
    for stage in range(stages):
        both = at(stage, backward_input) + at(stage, backward_weight)
        seconds = {
            Kind.FORWARD: at(stage, forward),
            Kind.BACKWARD: both,
            Kind.BACKWARD_INPUT: at(stage, backward_input),
            Kind.BACKWARD_WEIGHT: at(stage, backward_weight),
        }
        for microbatch in range(microbatches):
            for kind in kinds:
                index[kind, stage, microbatch] = len(tasks)
                takes = held(stage) if kind is Kind.FORWARD else 0
                gives = held(stage) if kind is last else 0
                tasks.append(Task(stage % number, kind, stage, microbatch, seconds[kind], takes, -gives))
    edges: list[Edge] = []
    for stage in range(stages):
        for microbatch in range(microbatches):
            here = {kind: index[kind, stage, microbatch] for kind in kinds}
            edges.append(Edge(here[Kind.FORWARD], here[first]))
            if split_backward:
                edges.append(Edge(here[first], here[last]))
            if stage + 1 < stages:
                wire = transfer if number > 1 else 0.0
                edges.append(Edge(here[Kind.FORWARD], index[Kind.FORWARD, stage + 1, microbatch], wire))
                edges.append(Edge(index[first, stage + 1, microbatch], here[first], wire))
    names = tuple(f"g{group}" for group in range(number))
    return Problem(tuple(tasks), tuple(edges), names, (limit,) * number, stages, microbatches)


__all__ = ["Edge", "Kind", "Problem", "Task", "pipeline"]
