# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is to be placed: a step as ops in a fixed order, the storages that they use, and the memory below the device's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hyperparallel.simulator.traces import Trace

#: What the device's own memory is called.
DEVICE = "device"


@dataclass(frozen=True, slots=True)
class Operation:
    """An op of the step.

    Attributes:
        seconds: What it takes when no copy is under way.
        reads: The numbers of the storages that it reads.
        writes: Of those that it writes.
        workspace: Bytes that it alone needs, while it runs.
        memory_bytes: Bytes that it moves through the device's memory, which copies slow down.
        name: What to call it.
    """

    seconds: float
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    workspace: int = 0
    memory_bytes: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Storage:
    """What lives, moves and dies together: a tensor with all its views.

    Attributes:
        bytes: Its size.
        persistent: It is resident at both ends of the step: a weight, optimizer state, a cache.
        may_start_below: If it is persistent: it may also be below at both ends.
        clean: A valid copy lies below; until it is written it can be dropped without a copy.
        pinned: It never leaves the device.
        home_tier: The number of the tier of that copy.
        recompute_seconds: What it takes to compute it again from ``recompute_from``, if that can be done.
        recompute_from: The numbers of the storages that it is computed from.
        name: What to call it.
    """

    bytes: int
    persistent: bool = False
    may_start_below: bool = False
    clean: bool = False
    pinned: bool = False
    home_tier: int = 0
    recompute_seconds: float | None = None
    recompute_from: tuple[int, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """One way between the device and a tier: n bytes take ``latency`` seconds (for each chunk) + n / ``bandwidth``.

    Chunks have at most ``staging`` bytes, those of a buffer that the tier's capacity is without; 0 for any number.
    """

    bandwidth: float
    latency: float = 0.0
    segment: str | None = None
    staging: int = 0

    def seconds(self, size: int) -> float:
        """What a copy of that many bytes takes when it is alone."""
        chunks = -(-size // self.staging) if self.staging and size else 1
        return chunks * self.latency + size / self.bandwidth


@dataclass(frozen=True, slots=True)
class Tier:
    """Memory below the device's: its name, its bytes, and the links out of the device and back."""

    name: str
    capacity: int
    out: Link
    back: Link


@dataclass(frozen=True, slots=True)
class Problem:
    """A step and a machine.

    Attributes:
        operations: In the order in which they run.
        storages: What they use, by number.
        capacity: Bytes of the device's memory.
        tiers: The memory below, nearer tiers first.
        segments: Bytes per second of each segment that links share.
        memory_bandwidth: Bytes per second of the device's memory; 0 if copies slow nothing down.
        minimum_bytes: Smaller storages stay, unless it cannot be done without them.
        alignment: Sizes are rounded up to a multiple of it.
    """

    operations: tuple[Operation, ...]
    storages: tuple[Storage, ...]
    capacity: int
    tiers: tuple[Tier, ...]
    segments: Mapping[str, float] = field(default_factory=dict[str, float])
    memory_bandwidth: float = 0.0
    minimum_bytes: int = 0
    alignment: int = 1

    @staticmethod
    def of_trace(trace: Trace, capacity: int, *tiers: Tier, segments: Mapping[str, float] | None = None) -> Problem:
        """A recorded step on a device with that capacity."""
        return Problem(
            operations=tuple(Operation(op.seconds, op.reads, op.writes, name=op.name) for op in trace.operations),
            storages=tuple(
                Storage(size, persistent=keep, name=f"t{number}")
                for number, (size, keep) in enumerate(zip(trace.tensors, trace.persistent, strict=True))
            ),
            capacity=capacity,
            tiers=tiers,
            segments=segments or {},
        )


__all__ = ["DEVICE", "Link", "Operation", "Problem", "Storage", "Tier"]
