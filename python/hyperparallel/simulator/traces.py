# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recorded training steps as tasks.

A trace is JSON, gzipped or not: ``{"name", "tensors": [[bytes, persistent 0|1], ...], "ops": [[name, seconds, [tensors
read], [tensors written]], ...]}``. A tensor lives from its first to its last op; a persistent one (weight, optimizer
state) is resident at both ends of the step.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hyperparallel.simulator.errors import SimulationError
from hyperparallel.simulator.tasks import Simulation, Task, simulate

#: The tier and the stream of a trace.
DEVICE = "device"
COMPUTE = "compute"


@dataclass(frozen=True, slots=True)
class Operation:
    """An op of a trace: its measured seconds, and the numbers of the tensors that it reads and writes."""

    name: str
    seconds: float
    reads: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded step.

    Attributes:
        name: Of the model.
        tensors: Bytes of each tensor.
        persistent: Whether each tensor is resident at both ends of the step.
        operations: The ops in the order in which they ran.
    """

    name: str
    tensors: tuple[int, ...]
    persistent: tuple[bool, ...]
    operations: tuple[Operation, ...]

    @property
    def compute_seconds(self) -> float:
        """Seconds of all ops."""
        return sum(operation.seconds for operation in self.operations)

    @property
    def largest_operation_bytes(self) -> int:
        """The most bytes of tensors that one op reads and writes."""
        return max(
            (sum(self.tensors[tensor] for tensor in {*op.reads, *op.writes}) for op in self.operations), default=0
        )

    def tasks(self) -> list[Task]:
        """One task for each op, on one stream, with its tensors taken from and given back to the device's memory."""
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for number, operation in enumerate(self.operations):
            for tensor in (*operation.reads, *operation.writes):
                first.setdefault(tensor, number)
                last[tensor] = number
        takes = [0.0] * len(self.operations)
        gives = [0.0] * len(self.operations)
        for tensor, number in first.items():
            if not self.persistent[tensor]:
                takes[number] += self.tensors[tensor]
                gives[last[tensor]] += self.tensors[tensor]
        return [
            Task(COMPUTE, operation.seconds, takes={DEVICE: taken}, gives={DEVICE: given}, name=operation.name)
            for operation, taken, given in zip(self.operations, takes, gives, strict=True)
        ]

    def simulate(self) -> Simulation:
        """The step with everything in the device's memory."""
        resident = sum(size for size, keep in zip(self.tensors, self.persistent, strict=True) if keep)
        return simulate(self.tasks(), tiers={DEVICE: float(resident)})


def _tensors(listed: Any, count: int, where: str) -> tuple[int, ...]:
    if not isinstance(listed, list):
        raise SimulationError(f"{where}: expected a list of tensor numbers")
    for number in cast("list[Any]", listed):
        if not isinstance(number, int) or not 0 <= number < count:
            raise SimulationError(f"{where}: expected the number of one of {count} tensors but got {number}")
    return tuple(cast("list[int]", listed))


def _operation(entry: Any, count: int, where: str) -> Operation:
    if not isinstance(entry, list) or len(cast("list[Any]", entry)) != 4:
        raise SimulationError(f"{where}: expected [name, seconds, [tensors read], [tensors written]]")
    name, seconds, reads, writes = cast("list[Any]", entry)
    if not isinstance(seconds, (int, float)) or not seconds >= 0:
        raise SimulationError(f"{where}: expected seconds of at least 0 but got {seconds}")
    return Operation(str(name), float(seconds), _tensors(reads, count, where), _tensors(writes, count, where))


def read_trace(path: str | Path) -> Trace:
    """Reads a trace from a JSON file, gzipped or not.

    Raises:
        SimulationError: The file cannot be read or is no trace; the message says where.
    """
    try:
        content = Path(path).read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        data = json.loads(content)
    except OSError as error:
        raise SimulationError(f"{path}: cannot read the file: {error.strerror or 'the gzip data is broken'}") from None
    except (EOFError, ValueError, RecursionError):
        raise SimulationError(f"{path}: expected JSON, gzipped or not") from None
    if not isinstance(data, dict):
        raise SimulationError(f"{path}: expected an object with name, tensors and ops")
    entries = cast("Mapping[str, Any]", data)
    for key, kind in {"name": str, "tensors": list, "ops": list}.items():
        if not isinstance(entries.get(key), kind):
            raise SimulationError(f"{path}: expected `{key}` to be a {'text' if kind is str else 'list'}")
    sizes: list[int] = []
    persistent: list[bool] = []
    for number, tensor in enumerate(entries["tensors"]):
        match tensor:
            case [int(size), 0 | 1 as keep] if size >= 0:
                sizes.append(size)
                persistent.append(bool(keep))
            case _:
                raise SimulationError(f"{path}: tensor {number}: expected [bytes, 0 or 1] but got {tensor}")
    operations = tuple(
        _operation(entry, len(sizes), f"{path}: op {number}") for number, entry in enumerate(entries["ops"])
    )
    return Trace(entries["name"], tuple(sizes), tuple(persistent), operations)


__all__ = ["COMPUTE", "DEVICE", "Operation", "Trace", "read_trace"]
