# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simulation of a compiled program: the local program that every device of a mesh runs, on a machine it may not have.

The JSON of :func:`simulate_json`, which ``hp simulate`` writes, has these keys; times are seconds, sizes bytes:

- ``machine``, ``function``: what was simulated
- ``seconds``: the step; ``compute_seconds``, ``communication_seconds``: in which kernels, and collectives, run;
  ``exposed_communication_seconds``: in which a collective runs and no kernel does
- ``flops``; ``mfu``: seconds that the contractions take at peak rates, over the seconds of the step
- ``tiers``: of each ``name``, ``capacity``, ``peak``, and ``timeline``: pairs of a time and what is resident from then
- ``collectives``: of each ``op`` the ``count``, ``bytes_received`` and ``seconds``
- ``tasks``: in program order, of each ``op``, ``path``, ``stream``, ``start``, ``end``, ``flops``, ``bytes``,
  ``bytes_received`` and ``bound``
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperparallel.errors import CompilationError
from hyperparallel.machines import Machine
from hyperparallel.simulator.errors import SimulationError

if TYPE_CHECKING:
    from mlir import ir


_SECONDS = ("seconds", "compute_seconds", "communication_seconds", "exposed_communication_seconds")


@dataclass(frozen=True, slots=True)
class TaskSpan:
    """A kernel or collective and when it runs."""

    op: str
    path: str
    stream: str
    start: float
    end: float
    flops: float
    bytes: float
    bytes_received: float
    bound: str


@dataclass(frozen=True, slots=True)
class TierUse:
    """A tier: its capacity, the most that was resident, and every change as (time, bytes)."""

    name: str
    capacity: float
    peak: float
    timeline: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class CollectiveUse:
    """All collectives of one kind."""

    op: str
    count: int
    bytes_received: float
    seconds: float


@dataclass(frozen=True, slots=True)
class ProgramSimulation:
    """A step of a program; see the module's text for the attributes."""

    machine: str
    function: str
    seconds: float
    compute_seconds: float
    communication_seconds: float
    exposed_communication_seconds: float
    flops: float
    mfu: float
    tiers: tuple[TierUse, ...]
    collectives: tuple[CollectiveUse, ...]
    tasks: tuple[TaskSpan, ...]

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> ProgramSimulation:
        """From the JSON of :func:`simulate_json`, read."""
        numbers = (*_SECONDS, "flops", "mfu")
        return ProgramSimulation(
            machine=data["machine"],
            function=data["function"],
            **{key: float(data[key]) for key in numbers},
            tiers=tuple(
                TierUse(
                    name=use["name"],
                    capacity=float(use["capacity"]),
                    peak=float(use["peak"]),
                    timeline=tuple((time, bytes) for time, bytes in use["timeline"]),
                )
                for use in data["tiers"]
            ),
            collectives=tuple(
                CollectiveUse(use["op"], use["count"], float(use["bytes_received"]), float(use["seconds"]))
                for use in data["collectives"]
            ),
            tasks=tuple(TaskSpan(**task) for task in data["tasks"]),
        )


def simulate_json(module: ir.Module, *, machine: Machine | str | None = None, function: str = "main") -> str:
    """Simulates a function of a compiled module.

    Args:
        module: The local program of one device (after partition); costs are those of its shapes.
        machine: A description, preset or file to use instead of the module's ``supernode.machine``
            (``cpu-supernode`` if it has none). The module is not changed.
        function: Where the program starts.

    Returns:
        JSON as the module's text documents it.

    Raises:
        SimulationError: There is no such function.
        MachineError: There is no such machine.
    """
    from hyperparallel import _hyperparallel
    from hyperparallel.dialects import supernode

    with supernode.machine_set(module, machine):
        try:
            return _hyperparallel.simulate_program(module, function)
        except ValueError as error:
            raise SimulationError(str(error).strip().removeprefix("error: ")) from None


def simulate_program(
    module: ir.Module, *, machine: Machine | str | None = None, function: str = "main"
) -> ProgramSimulation:
    """As :func:`simulate_json`, as data."""
    return ProgramSimulation.from_json(json.loads(simulate_json(module, machine=machine, function=function)))


def simulate_file(
    path: str | Path, *, machine: Machine | str | None = None, function: str = "main"
) -> ProgramSimulation:
    """As :func:`simulate_program`, of a file of text or bytecode.

    Raises:
        CompilationError: The file cannot be read or is no program.
    """
    from mlir import ir

    from hyperparallel import dialects

    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise CompilationError(f"{path}: cannot read the file: {error.strerror}") from None
    context = ir.Context()
    dialects.register(context)
    with context:
        try:
            module = ir.Module.parse(content)
        except ir.MLIRError as error:  # pyright: ignore[reportAttributeAccessIssue] (absent from the stubs)
            said = [str(diagnostic.message) for diagnostic in error.error_diagnostics]
            raise CompilationError(f"{path}: expected a program but it cannot be read", diagnostics=said) from None
        return simulate_program(module, machine=machine, function=function)


__all__ = [
    "CollectiveUse",
    "ProgramSimulation",
    "TaskSpan",
    "TierUse",
    "simulate_file",
    "simulate_json",
    "simulate_program",
]
