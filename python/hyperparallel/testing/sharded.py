# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a program split over virtual devices, through the whole pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from mlir import ir
from mlir.passmanager import PassManager

from hyperparallel.dialects import hypershard
from hyperparallel.enums import StrEnum
from hyperparallel.errors import CompilationError, RuntimeFailure
from hyperparallel.testing import compiled, reference
from hyperparallel.testing.layout import Array, Layout, Mesh, Padding, gather, scatter

Sharding: TypeAlias = "str | Sequence[Sequence[str]] | None"
"""How a tensor is split: the dialect's text (``#hypershard.sharding<@mesh, [{"a"}, {}]>``, or only what follows the
mesh, ``[{"a"}, {}], partial=<sum {"b"}>``), a list of axes for each dimension (``[["a"], []]``), or None to leave it
open."""

PIPELINE = ("hp-shard",)
"""The pipeline between an annotated program and what each device runs."""


class Executor(StrEnum):
    """What runs the program of each device."""

    REFERENCE = "reference"
    """The interpreter of ``hyperparallel.testing.reference``: slow, and independent of code generation."""
    RUNTIME = "runtime"
    """Compiled for the CPU, and run by the runtime: what users run."""


@dataclass(frozen=True, slots=True)
class ShardedRun:
    """What a run gave.

    Attributes:
        results: The global results, put together from the devices.
        collectives: How many collectives of each kind one device took part in.
        bytes_moved: Bytes that the busiest device received from others.
        per_device: For each device, its local results.
        program: The text of the program that every device ran.
    """

    results: list[Array]
    collectives: dict[str, int]
    bytes_moved: int
    per_device: list[list[Array]]
    program: str


def run_unsharded(mlir_text: str, inputs: Sequence[Array], *, function: str = "main") -> list[Array]:
    """Runs a program as it is, on one device, with the reference executor.

    Args:
        mlir_text: A module of linalg on tensors.
        inputs: The arguments of ``function``.
        function: Where to begin.
    """
    with ir.Context(), ir.Location.unknown():
        module = _parse(mlir_text)
        _check_inputs(_function(module, function), inputs)
        return reference.run_whole(module, inputs, function)


def run_sharded(
    mlir_text: str,
    inputs: Sequence[Array],
    mesh: Mapping[str, int] | None = None,
    arg_shardings: Sequence[Sharding] | None = None,
    result_shardings: Sequence[Sharding] | None = None,
    function: str = "main",
    *,
    passes: Sequence[str] = PIPELINE,
    executor: Executor | str = Executor.RUNTIME,
    padding: Padding | str = Padding.LARGE,
) -> ShardedRun:
    """Splits a program over the devices of a mesh, runs it on all of them, and puts the results together.

    Args:
        mlir_text: A module of linalg on tensors.
        inputs: The global arguments. An argument with a partial sharding is cut into unequal terms of both signs.
        mesh: Devices along each axis, major to minor; None if the module declares its mesh itself.
        arg_shardings: One for each argument; None leaves what the module says.
        result_shardings: One for each result; None leaves what the module says.
        function: Where to begin.
        passes: The pipeline; the default is the whole one.
        executor: What runs the local programs.
        padding: What fills local tensors where a dimension does not divide; no result may depend on it.

    Raises:
        CompilationError: A pass refused the program.
        RuntimeFailure: The inputs do not fit, a device failed, or copies of a result differ.

    >>> import numpy as np
    >>> text = '''func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    ...   %y = arith.mulf %x, %x : tensor<4xf32>
    ...   return %y : tensor<4xf32>
    ... }'''
    >>> run = run_sharded(text, [np.float32([1, -2, 3, -4])], {"a": 2}, [[["a"]]])
    >>> run.results[0].tolist(), run.collectives
    ([1.0, 4.0, 9.0, 16.0], {})
    """
    executor = Executor(executor)
    with ir.Context(), ir.Location.unknown():
        module = _parse(mlir_text)
        if mesh is not None:
            with ir.InsertionPoint.at_block_begin(module.body):
                hypershard.mesh("mesh", mesh)
        entry = _function(module, function)
        _check_inputs(entry, inputs)
        kind = ir.FunctionType(ir.TypeAttr(entry.operation.attributes["function_type"]).value)
        _annotate(entry, "argument", len(kind.inputs), arg_shardings)
        _annotate(entry, "result", len(kind.results), result_shardings)
        _compile(module, passes)
        devices = _mesh(module)
        entry = _function(module, function)
        arguments = [_described(attrs, devices) for attrs in _dictionaries(entry, "arg_attrs")]
        results = [_described(attrs, devices) for attrs in _dictionaries(entry, "res_attrs")]
        pieces = [
            scatter(np.asarray(value), layout, devices.num_devices, Padding(padding))
            for value, (layout, _) in zip(inputs, arguments, strict=True)
        ]
        locals_ = [[piece[device] for piece in pieces] for device in range(devices.num_devices)]
        program = str(module)
        if executor == Executor.RUNTIME:
            per_device, collectives, moved = compiled.run_devices(module, devices, locals_, function)
        else:
            per_device, traffic = reference.run_devices(module, devices, locals_, function)
            collectives, moved = dict(traffic.collectives), traffic.bytes_moved
        whole = [
            gather([local[index] for local in per_device], layout, shape)
            for index, (layout, shape) in enumerate(results)
        ]
        return ShardedRun(whole, collectives, moved, per_device, program)


# ----------------------------------------------------------------------------------------------------------------------
# Before the pipeline
# ----------------------------------------------------------------------------------------------------------------------


def _parse(text: str) -> ir.Module:
    try:
        return ir.Module.parse(text)
    except ir.MLIRError as error:  # pyright: ignore[reportAttributeAccessIssue]
        raise CompilationError("the program does not parse", diagnostics=[str(error)]) from None


def _function(module: ir.Module, name: str) -> ir.OpView:
    for op in module.body.operations:
        if op.operation.name == "func.func" and ir.StringAttr(op.operation.attributes["sym_name"]).value == name:
            return op
    raise RuntimeFailure(f"the module has no function @{name}")


def _check_inputs(entry: ir.OpView, inputs: Sequence[Array]) -> None:
    kind = ir.FunctionType(ir.TypeAttr(entry.operation.attributes["function_type"]).value)
    if len(kind.inputs) != len(inputs):
        raise RuntimeFailure(f"expected {len(kind.inputs)} inputs but got {len(inputs)}")
    for index, (wanted, value) in enumerate(zip(kind.inputs, inputs, strict=True)):
        shape, dtype = reference.tensor_of(wanted)
        found = np.asarray(value)
        if found.shape != shape or found.dtype != dtype:
            raise RuntimeFailure(
                f"expected input {index} to be {dtype}{list(shape)} but got {found.dtype}{list(found.shape)}"
            )


def _annotate(entry: ir.OpView, what: str, count: int, shardings: Sequence[Sharding] | None) -> None:
    if shardings is None:
        return
    if len(shardings) != count:
        raise RuntimeFailure(f"expected {count} {what} shardings but got {len(shardings)}")
    for index, sharding in enumerate(shardings):
        if sharding is None:
            continue
        attribute = _sharding(sharding)
        if what == "argument":
            hypershard.shard_argument(entry, index, attribute)
        else:
            hypershard.shard_result(entry, index, attribute)


def _sharding(sharding: str | Sequence[Sequence[str]]) -> ir.Attribute:
    if not isinstance(sharding, str):
        return hypershard.sharding("mesh", sharding)
    text = sharding if sharding.startswith("#") else f"#hypershard.sharding<@mesh, {sharding}>"
    try:
        return hypershard.parse_sharding(text)
    except (ir.MLIRError, ValueError) as error:  # pyright: ignore[reportAttributeAccessIssue]
        raise CompilationError(f"{sharding} is no sharding", diagnostics=[str(error)]) from None


def _compile(module: ir.Module, passes: Sequence[str]) -> None:
    for name in passes:
        try:
            PassManager.parse(f"builtin.module({name})").run(module.operation)
        except ir.MLIRError as error:  # pyright: ignore[reportAttributeAccessIssue]
            raise CompilationError("the program was refused", diagnostics=[str(error)], pass_name=name) from None


# ----------------------------------------------------------------------------------------------------------------------
# After the pipeline
# ----------------------------------------------------------------------------------------------------------------------


def _mesh(module: ir.Module) -> Mesh:
    for op in module.body.operations:
        if op.operation.name == "hypershard.mesh":
            return Mesh(tuple(hypershard.MeshAttr(op.operation.attributes["mesh"]).axes))
    return Mesh(())


def _dictionaries(entry: ir.OpView, name: str) -> list[ir.DictAttr]:
    if name not in entry.operation.attributes:
        return []
    return [ir.DictAttr(attrs) for attrs in ir.ArrayAttr(entry.operation.attributes[name])]


def _described(attrs: ir.DictAttr, mesh: Mesh) -> tuple[Layout, tuple[int, ...]]:
    """Layout and global shape of an argument or result of a local program."""
    sharding = hypershard.parse_sharding(ir.StringAttr(attrs["hp.sharding"]).value)
    shape, _ = reference.tensor_of(ir.TypeAttr(attrs["hp.global_type"]).value)
    part = lambda ref: mesh.part(ref.name, ref.pre_size, ref.size)  # noqa: E731
    dims = tuple(tuple(part(ref) for ref in dim.axes) for dim in sharding.dims)
    partial = tuple(part(ref) for ref in sharding.partial_axes)
    return Layout(dims, sharding.partial_kind if partial else "", partial), shape
