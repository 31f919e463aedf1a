# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The numbers of a timeline that a person asks for first; the page, the terminal and ``--json`` show these and no other.

A device's seconds are counted once: where a timeline has several groups, seconds of operations are those of the mean
device, so that a simulated group of four devices and four measured devices compare.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hyperparallel.simulator.timeline import CollectiveUse, Exposed, LinkUse, TaskSpan, Timeline

MATMUL = "matmul"
KERNEL = "other kernels"
_CONTRACTION = re.compile(r"matmul|contract|conv|matvec|vecmat|\bdot\b|mmt4d")
_DIALECT = re.compile(r"^(hypershard|hypermpmd|offload|supernode|linalg|tensor)\.")
_GENERIC = {"linalg.generic"}
_DENSE = 4.0  # FLOP for each byte; the costliest elementwise functions do 2 to 3
_COPIES = {"h2d": "copy in", "d2h": "copy out"}


@dataclass(frozen=True, slots=True)
class Cause:
    """What a part of the step goes to: ``kernels``, or what runs while no kernel does; None where that is unknown."""

    name: str
    seconds: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class OperationUse:
    """All tasks of one operation, or of one kind of operation.

    Attributes:
        name: The operation, or the kind.
        kind: The kind: ``matmul``, ``other kernels``, a collective, ``copy in``, ``copy out``.
        count: Tasks of the mean device.
        seconds: Of the mean device.
        share: Of the step.
        flops: Of all tasks; None if unknown.
        bytes: Read and written by all tasks; None if unknown.
    """

    name: str
    kind: str
    count: float
    seconds: float
    share: float
    flops: float | None
    bytes: float | None


@dataclass(frozen=True, slots=True)
class TierPeak:
    """The fullest moment of a tier in a group; ``used`` is the share of the capacity, None if that is unknown."""

    name: str
    group: str
    capacity: float | None
    peak: float
    used: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """See the module's text; times are seconds, sizes bytes, shares fractions of the step.

    Attributes:
        causes: Parts of the step, ``kernels`` first; those that are known add up to ``seconds``.
        kinds: Operations by kind, longest first.
        operations: Operations by name, longest first.
    """

    name: str
    kind: str
    machine: str
    mesh: Mapping[str, int]
    devices: int
    seconds: float
    first_step_seconds: float | None
    flops: float | None
    mfu: float | None
    utilisation: float | None
    masked_communication: float | None
    causes: tuple[Cause, ...]
    tiers: tuple[TierPeak, ...]
    kinds: tuple[OperationUse, ...]
    operations: tuple[OperationUse, ...]
    collectives: tuple[CollectiveUse, ...]
    links: tuple[LinkUse, ...]

    @property
    def fullest_tier(self) -> TierPeak | None:
        """The tier that is nearest to its capacity, or the one with the highest peak where no capacity is known."""
        return max(self.tiers, key=lambda tier: (tier.used or 0.0, tier.peak), default=None)

    def to_json(self) -> dict[str, Any]:
        """Plain data, ready for ``json.dumps``."""
        return {**asdict(self), "mesh": dict(self.mesh)}


def bare(op: str) -> str:
    """An op's name without our dialects' and upstream's prefixes: ``hypershard.all_reduce`` is ``all_reduce``."""
    return _DIALECT.sub("", op)


def kind_of(task: TaskSpan, stream_kind: str) -> str:
    """What kind of work a task is, the same for a prediction and a measurement of it.

    A generic op does not say that it is a matrix product, so its operations have to: a product does several for each
    byte, elementwise work few. Products with a vector, which do not, count among the other kernels where they are generic.
    """
    if stream_kind in _COPIES:
        return _COPIES[stream_kind]
    if stream_kind in ("communication", "network"):
        return bare(task.op)
    if _CONTRACTION.search(task.op):
        return MATMUL
    is_dense = bool(task.flops and task.bytes) and (task.flops or 0.0) >= _DENSE * (task.bytes or 0.0)
    return MATMUL if is_dense and task.op in _GENERIC else KERNEL


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _by(timeline: Timeline, key: Callable[[TaskSpan], tuple[str, str]]) -> tuple[OperationUse, ...]:
    """Tasks put together by name and kind."""
    tasks: dict[tuple[str, str], list[TaskSpan]] = {}
    for task in timeline.tasks:
        tasks.setdefault(key(task), []).append(task)
    devices = sum(group.devices for group in timeline.groups) or 1
    uses: list[OperationUse] = []
    for (name, kind), members in tasks.items():
        weights = [timeline.groups[task.group].devices for task in members]
        seconds = sum((task.end - task.start) * weight for task, weight in zip(members, weights, strict=True)) / devices
        uses.append(
            OperationUse(
                name,
                kind,
                sum(weights) / devices,
                seconds,
                seconds / timeline.seconds if timeline.seconds else 0.0,
                _total([task.flops for task in members]),
                _total([task.bytes for task in members]),
            )
        )
    return tuple(sorted(uses, key=lambda use: (-use.seconds, use.name)))


def causes_of(seconds: float, exposed: Exposed) -> tuple[Cause, ...]:
    """The parts of a step; what is not exposed are kernels.

    >>> [(cause.name, cause.seconds) for cause in causes_of(4.0, Exposed(1.0, 0.0, 0.5))]
    [('kernels', 2.5), ('communication', 1.0), ('transfer', 0.0), ('bubble', 0.5)]
    """
    idle = _total([exposed.communication, exposed.transfer, exposed.bubble])
    parts = {
        "kernels": None if idle is None else max(0.0, seconds - idle),
        "communication": exposed.communication,
        "transfer": exposed.transfer,
        "bubble": exposed.bubble,
    }
    return tuple(
        Cause(name, part, part / seconds if part is not None and seconds else None) for name, part in parts.items()
    )


def summarise(timeline: Timeline) -> Summary:
    """The summary of a timeline; O(tasks)."""
    streams = [[str(stream.kind) for stream in group.streams] for group in timeline.groups]

    def kind(task: TaskSpan) -> str:
        return kind_of(task, streams[task.group][task.stream])

    return Summary(
        name=timeline.name,
        kind=str(timeline.kind),
        machine=timeline.machine,
        mesh=dict(timeline.mesh),
        devices=timeline.devices,
        seconds=timeline.seconds,
        first_step_seconds=timeline.first_step_seconds,
        flops=timeline.flops,
        mfu=timeline.mfu,
        utilisation=timeline.utilisation,
        masked_communication=timeline.masked_communication,
        causes=causes_of(timeline.seconds, timeline.exposed),
        tiers=tuple(
            TierPeak(
                tier.name,
                timeline.groups[tier.group].name,
                tier.capacity,
                tier.peak,
                tier.peak / tier.capacity if tier.capacity else None,
            )
            for tier in timeline.tiers
        ),
        kinds=_by(timeline, lambda task: (kind(task), kind(task))),
        operations=_by(timeline, lambda task: (task.op, kind(task))),
        collectives=timeline.collectives,
        links=timeline.links,
    )


__all__ = ["Cause", "OperationUse", "Summary", "TierPeak", "bare", "causes_of", "kind_of", "summarise"]
