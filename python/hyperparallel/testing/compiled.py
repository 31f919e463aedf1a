# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the program of each device as users do: compiled for the CPU, on the threads of the runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from mlir import ir

from hyperparallel import _hyperparallel
from hyperparallel.cache import cache_directory
from hyperparallel.errors import CompilationError
from hyperparallel.runtime import Launch, Runtime
from hyperparallel.testing.layout import Array, Mesh
from hyperparallel.testing.reference import tensor_of


def run_devices(
    module: ir.Module, mesh: Mesh, inputs: Sequence[Sequence[Array]], function: str = "main"
) -> tuple[list[list[Array]], dict[str, int], int]:
    """Compiles a local program and runs it on every device of a mesh.

    Args:
        module: The program of one device.
        mesh: The devices.
        inputs: For each device, its arguments.
        function: Where to begin.

    Returns:
        For each device its results; collectives by kind; bytes that the busiest device received.

    Raises:
        CompilationError: The code generator refused the program.
        RuntimeFailure: A device failed.
    """
    results = [[np.empty(*tensor_of(kind)) for kind in _results(module, function)] for _ in inputs]
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as folder:
        path = Path(folder) / "program.so"
        try:
            _hyperparallel.compile_program(module, str(path), str(cache_directory()), 1)
        except ValueError as error:
            raise CompilationError(
                "the code generator refused the program",
                diagnostics=str(error).splitlines(),
                pass_name="hp-lower-to-cpu",
            ) from None
        with Runtime(devices=mesh.num_devices) as runtime:
            program = runtime.load(path)
            statistics = runtime.run(
                [
                    Launch(
                        program,
                        f"hp_entry_{function}",
                        [_plain(value) for value in inputs[device]],
                        [_plain(value) for value in results[device]],
                        device=device,
                        rank=device,
                    )
                    for device in range(mesh.num_devices)
                ]
            )
    collectives = {str(kind): count for kind, count in statistics.collectives.items()}
    moved = max((sum(device.moved_bytes.values()) for device in statistics.devices), default=0)
    return results, collectives, moved


def _results(module: ir.Module, function: str) -> list[ir.Type]:
    for op in module.body.operations:
        if op.operation.name == "func.func" and ir.StringAttr(op.operation.attributes["sym_name"]).value == function:
            return list(ir.FunctionType(ir.TypeAttr(op.operation.attributes["function_type"]).value).results)
    return []


def _plain(value: Array) -> Array:
    """The same memory, as the runtime counts it: bf16 as its bits."""
    return value.view(np.uint16) if value.dtype.name == "bfloat16" else value
