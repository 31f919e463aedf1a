# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simulation of programs: what a step takes on a machine that one may not have.

A program is a directory that ``hp compile`` made, a file with the program of one device (after partition), or a program
of opaque tasks (``supernode.task``, and ``copy``, ``send`` and ``recv`` beside it). What comes of it is a
:class:`~hyperparallel.simulator.timeline.Timeline`.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperparallel.errors import CompilationError
from hyperparallel.machines import Machine
from hyperparallel.simulator.errors import SimulationError
from hyperparallel.simulator.timeline import TensorUse, Timeline

if TYPE_CHECKING:
    from mlir import ir


def _simulate(module: ir.Module, machine: Machine | str | None, function: str, noise: float, seed: int) -> Any:
    from hyperparallel import _hyperparallel
    from hyperparallel.dialects import supernode

    with supernode.machine_set(module, machine):
        try:
            return json.loads(_hyperparallel.simulate_program(module, function, noise, seed))
        except ValueError as error:
            raise SimulationError(str(error).strip().removeprefix("error: ")) from None


def simulate_program(
    module: ir.Module,
    *,
    machine: Machine | str | None = None,
    function: str = "main",
    noise: float = 0.0,
    seed: int = 0,
) -> Timeline:
    """Simulates a module.

    Args:
        module: The local program of one device, whose shapes are costed; or functions with ``supernode.program``.
        machine: A description, preset or file to use instead of the module's ``supernode.machine``
            (``cpu-supernode`` if it has none). The module is not changed.
        function: Where the program starts.
        noise: Vary every time by up to this part; below 1.
        seed: Of the noise.

    Raises:
        SimulationError: There is no such function, or the program does not fit the machine; the message says why.
        MachineError: There is no such machine.

    Example:
        >>> from mlir import ir
        >>> from hyperparallel import dialects
        >>> module = ir.Module.parse('''func.func @main(%w: tensor<98000000xi8> {supernode.tier = "pool"}) {
        ...   %0 = supernode.copy %w from "pool" to "hbm" : tensor<98000000xi8>
        ...   supernode.task "use" ins(%0 : tensor<98000000xi8>) {seconds = 1.0e-3}
        ...   return
        ... }''', ir.Context())
        >>> simulate_program(module, machine="a3-node").first_step_seconds  # 1.46 us and 1 ms at 98 GB/s, then the task
        0.00200146
    """
    return Timeline.from_json(_simulate(module, machine, function, noise, seed))


def _read(path: Path, content: bytes) -> ir.Module:
    from mlir import ir

    from hyperparallel import dialects

    context = ir.Context()
    dialects.register(context)
    with context:
        try:
            return ir.Module.parse(content)
        except ir.MLIRError as error:  # pyright: ignore[reportAttributeAccessIssue] (absent from the stubs)
            said = [str(diagnostic.message) for diagnostic in error.error_diagnostics]
            raise CompilationError(f"{path}: expected a program but it cannot be read", diagnostics=said) from None


def simulate_file(
    path: str | Path,
    *,
    machine: Machine | str | None = None,
    function: str = "main",
    noise: float = 0.0,
    seed: int = 0,
) -> Timeline:
    """As :func:`simulate_program`, of a file of text or bytecode, or of a directory that ``hp compile`` made.

    Raises:
        CompilationError: The file cannot be read or is no program.
        RuntimeFailure: The directory is no whole compiled program.
        SimulationError: As :func:`simulate_program`.
        MachineError: As :func:`simulate_program`.
    """
    path = Path(path)
    if path.is_dir():
        return _simulate_directory(path, machine, noise, seed)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CompilationError(f"{path}: cannot read the file: {error.strerror}") from None
    module = _read(path, content)
    timeline = simulate_program(module, machine=machine, function=function, noise=noise, seed=seed)
    named = "sym_name" in module.operation.attributes
    return timeline if named else dataclasses.replace(timeline, name=path.name.partition(".")[0])


def _simulate_directory(path: Path, machine: Machine | str | None, noise: float, seed: int) -> Timeline:
    """The program's manifest says what its arguments are as a whole."""
    from hyperparallel.compiled import CompiledProgram

    program = CompiledProgram.load(path)
    module = _read(program.local_program_file, program.local_program_file.read_bytes())
    timeline = simulate_program(module, machine=machine, noise=noise, seed=seed)
    # A group's program takes what it reads; several may take the same.
    taken = tuple(argument for one in program.programs for argument in one.arguments)
    arguments = taken if program.programs else program.arguments
    tensors = tuple(
        TensorUse(
            argument.name,
            str(argument.role or ""),
            argument.shape,
            argument.dtype,
            str(argument.layout),
            use.local_bytes,
        )
        for argument, use in zip(arguments, timeline.tensors, strict=True)
    )
    # The device's own memory is the first tier; the program may have been given less of it.
    tiers = timeline.tiers
    if program.device_memory is not None and tiers:
        tiers = (dataclasses.replace(tiers[0], capacity=float(program.device_memory)), *tiers[1:])
    return dataclasses.replace(timeline, name=program.name, tensors=tensors, tiers=tiers)


__all__ = ["simulate_file", "simulate_program"]
