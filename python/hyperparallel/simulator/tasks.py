# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scheduled tasks, and their discrete-event simulation.

Streams do their tasks in the order in which they are listed; a task starts when it is the next of its stream and the
tasks that it depends on have ended. It then takes its seconds (a latency, or all of a kernel), and after them moves its
bytes at up to its rate through segments that it shares with whatever else flows there at that moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hyperparallel.simulator.errors import SimulationError


@dataclass(frozen=True, slots=True)
class Task:
    """Something that takes time.

    Attributes:
        stream: The queue that it waits in.
        seconds: Before bytes flow: latency, launch, or all of a kernel.
        bytes: What it moves then.
        rate: Bytes per second when nothing is in the way.
        segments: What its flow shares with others.
        after: Indices of the tasks that must have ended.
        meets: Index of the task that this one meets, which meets it: both begin when both can, and end together.
        takes: Bytes that it takes from tiers when it starts.
        gives: Bytes that it gives back to tiers when it ends.
        members: Devices that do the same at the same time on the same segments; they are simulated once.
        name: What to call it in reports.
    """

    stream: str
    seconds: float = 0.0
    bytes: float = 0.0
    rate: float = 0.0
    segments: tuple[str, ...] = ()
    after: tuple[int, ...] = ()
    meets: int | None = None
    takes: Mapping[str, float] = field(default_factory=dict[str, float])
    gives: Mapping[str, float] = field(default_factory=dict[str, float])
    members: float = 1.0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Simulation:
    """What came of a simulation.

    Attributes:
        seconds: From the start of the first to the end of the last task.
        spans: Start and end of each task.
        busy: By stream: seconds in which one of its tasks runs.
        moved: By segment: bytes of all members that went through.
        peak: By tier: the most bytes that were resident.
        residency: By tier: pairs of a time and the bytes that are resident from then on.
    """

    seconds: float
    spans: tuple[tuple[float, float], ...]
    busy: Mapping[str, float]
    moved: Mapping[str, float]
    peak: Mapping[str, float]
    residency: Mapping[str, tuple[tuple[float, float], ...]]


def _index(names: Mapping[str, int], name: str, what: str, task: int) -> int:
    if name not in names:
        raise SimulationError(
            f"expected task {task} to use one of the {what}s {', '.join(names) or 'none'} but got {name}"
        )
    return names[name]


def simulate(
    tasks: Sequence[Task],
    *,
    segments: Mapping[str, float] | None = None,
    tiers: Mapping[str, float] | None = None,
    noise: float = 0.0,
    seed: int = 0,
) -> Simulation:
    """Executes tasks on a machine of streams, segments and tiers.

    Args:
        tasks: The tasks; those of a stream in its order.
        segments: Bytes per second of each segment.
        tiers: Bytes resident in each tier at the beginning.
        noise: Multiplies every time by 1 + noise * u, u uniform in [-1, 1); below 1.
        seed: Of the noise; the same seed gives the same result.

    Raises:
        SimulationError: A task is wrong, or tasks wait for each other.

    Example:
        >>> both = [Task("a", bytes=100.0, rate=10.0, segments=("wire",)), Task("b", bytes=50.0, rate=10.0,
        ...         segments=("wire",))]
        >>> simulate(both, segments={"wire": 10.0}).spans
        ((0.0, 15.0), (0.0, 10.0))
    """
    from hyperparallel import _hyperparallel

    segments, tiers = segments or {}, tiers or {}
    streams = {name: index for index, name in enumerate(dict.fromkeys(task.stream for task in tasks))}
    segment_ids = {name: index for index, name in enumerate(segments)}
    tier_ids = {name: index for index, name in enumerate(tiers)}
    engine = _hyperparallel.Simulation(len(streams), list(segments.values()), list(tiers.values()))
    for number, task in enumerate(tasks):
        if not task.members >= 1:
            raise SimulationError(f"expected task {number} to stand for at least 1 device")
        for before in task.after:
            if not 0 <= before < len(tasks):
                raise SimulationError(f"expected task {number} to be after one of {len(tasks)} tasks but got {before}")
        if task.meets is not None and not 0 <= task.meets < len(tasks):
            raise SimulationError(f"expected task {number} to meet one of {len(tasks)} tasks but got {task.meets}")
        engine.add(
            streams[task.stream],
            task.seconds,
            task.bytes,
            task.rate,
            task.members,
            [_index(segment_ids, name, "segment", number) for name in task.segments],
            list(task.after),
            task.meets,
            [
                (_index(tier_ids, tier, "tier", number), task.takes.get(tier, 0.0), -task.gives.get(tier, 0.0))
                for tier in dict.fromkeys([*task.takes, *task.gives])
            ],
        )
    try:
        engine.run(noise, seed)
    except ValueError as error:
        raise SimulationError(str(error)) from None
    return Simulation(
        seconds=engine.seconds,
        spans=tuple(engine.spans),
        busy=dict(zip(streams, engine.busy, strict=True)),
        moved=dict(zip(segments, engine.moved, strict=True)),
        peak=dict(zip(tiers, engine.peak, strict=True)),
        residency={name: tuple(engine.residency(index)) for name, index in tier_ids.items()},
    )


__all__ = ["Simulation", "Task", "simulate"]
