# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plain interpreter of tensor programs: the oracle that compiled programs are compared with.

It runs linalg, tensor, arith, math, scf, func, indexing and the collectives of hypershard on numpy arrays, each op as its
documentation defines it, one thread per virtual device. A structured op is evaluated for all its parallel iterations at
once, and step by step along its reduction loops. It is strict: an index out of bounds, a division of integers by zero
or a failed assertion on any iteration is an error, on padding too.

Cost: a few microseconds for each op and reduction step; meant for tests, not for models.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from mlir import ir
from mlir.passmanager import PassManager

import hyperparallel.dialects  # noqa: F401  # pyright: ignore[reportUnusedImport]  (registers them)
from hyperparallel.errors import HyperParallelError, RuntimeFailure
from hyperparallel.testing import scalars
from hyperparallel.testing.exchange import Exchange, Traffic
from hyperparallel.testing.layout import Array, Mesh, Part, linear_index

Value = Any
"""A numpy array (a tensor, or a number per iteration) or a numpy scalar."""

_TERMINATORS = frozenset({"linalg.yield", "scf.yield", "tensor.yield", "func.return", "scf.condition"})

_IDENTITIES = frozenset(
    f"hypershard.{name}"
    for name in (
        *("constraint", "reshard", "barrier", "all_gather", "all_reduce"),
        *("reduce_scatter", "all_to_all", "permute", "slice_local"),
    )
)
"""What changes only where a tensor is, in a program that is not split yet."""


def dtype_of(kind: ir.Type) -> np.dtype[Any]:
    """The numpy type of an element type."""
    text = str(kind)
    if text == "bf16":
        import ml_dtypes  # pyright: ignore[reportMissingImports]

        return np.dtype(ml_dtypes.bfloat16)
    table = {"f16": "f2", "f32": "f4", "f64": "f8", "index": "i8", "i1": "?"}
    if text in table:
        return np.dtype(table[text])
    if text.lstrip("su") in ("i8", "i16", "i32", "i64"):
        return np.dtype(f"i{int(text.lstrip('su')[1:]) // 8}")
    raise RuntimeFailure(f"the reference executor has no elements of type {text}")


def tensor_of(kind: ir.Type) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and element type of a tensor type."""
    ranked = ir.RankedTensorType(kind)
    if not ranked.has_static_shape:
        raise RuntimeFailure(f"expected static shapes but got {kind}")
    return tuple(ranked.shape), dtype_of(ranked.element_type)


@dataclass(frozen=True, slots=True)
class _Iteration:
    """What the body of a structured op may ask: the number of the iteration along each loop."""

    indices: tuple[Value, ...]


class _Machine:
    """One virtual device that runs a function of a module."""

    def __init__(self, functions: dict[str, ir.OpView], mesh: Mesh, device: int, exchange: Exchange | None) -> None:
        self.functions = functions
        self.mesh = mesh
        self.device = device
        self.exchange = exchange

    # ------------------------------------------------------------------------------------------------------------------
    # Blocks
    # ------------------------------------------------------------------------------------------------------------------

    def call(self, name: str, arguments: Sequence[Value]) -> list[Value]:
        """Runs a function."""
        if name not in self.functions:
            raise RuntimeFailure(f"the module has no function @{name} with a body")
        return self.block(self.functions[name].regions[0].blocks[0], arguments, {}, None)

    def block(
        self, block: ir.Block, arguments: Sequence[Value], outer: dict[ir.Value, Value], at: _Iteration | None
    ) -> list[Value]:
        """Runs a block; the operands of its terminator."""
        values = dict(outer)
        for argument, value in zip(block.arguments, arguments, strict=True):
            values[argument] = value
        for op in block.operations:
            operands = [values[operand] for operand in op.operation.operands]
            name = op.operation.name
            if name in _TERMINATORS:
                return operands
            with np.errstate(all="ignore"):
                results = self.op(op.operation, name, operands, values, at)
            for result, value in zip(op.operation.results, results, strict=True):
                values[result] = value
        return []

    def op(
        self, op: ir.Operation, name: str, operands: list[Value], values: dict[ir.Value, Value], at: _Iteration | None
    ) -> list[Value]:
        """The results of an op."""
        if name in scalars.BINARY:
            return [scalars.BINARY[name](*operands)]
        if name in scalars.UNARY:
            return [scalars.UNARY[name](*operands)]
        if name in scalars.CONVERSIONS or name in scalars.UNSIGNED_CONVERSIONS:
            return [scalars.convert(name, operands[0], _element_dtype(op.results[0].type))]
        if self.exchange is None and name in _IDENTITIES:
            return [operands[0]]
        handler = getattr(self, "_" + name.replace(".", "_"), None)
        if handler is None:
            raise RuntimeFailure(f"the reference executor does not know the op {name}")
        return cast("list[Value]", handler(op, operands, values, at))

    # ------------------------------------------------------------------------------------------------------------------
    # arith and friends
    # ------------------------------------------------------------------------------------------------------------------

    def _arith_constant(self, op: ir.Operation, *_: Any) -> list[Value]:
        attribute = op.attributes["value"]
        kind = op.results[0].type
        if isinstance(kind, ir.RankedTensorType):
            shape, dtype = tensor_of(kind)
            return [np.array(attribute).astype(dtype).reshape(shape)]
        value = cast("Any", attribute).value
        return [np.array(value).astype(_element_dtype(kind))[()]]

    def _arith_select(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        return [np.where(*operands)]

    def _arith_cmpi(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        return [scalars.compare_integers(_integer(op, "predicate"), *operands)]

    def _arith_cmpf(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        return [scalars.compare_floats(_integer(op, "predicate"), *operands)]

    def _math_fma(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        return [operands[0] * operands[1] + operands[2]]

    def _cf_assert(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        if not bool(np.all(operands[0])):
            raise RuntimeFailure(f"device {self.device}: assertion failed: {op.attributes['msg']}")
        return []

    # ------------------------------------------------------------------------------------------------------------------
    # linalg
    # ------------------------------------------------------------------------------------------------------------------

    def _linalg_index(self, op: ir.Operation, _: Any, __: Any, at: _Iteration | None) -> list[Value]:
        assert at is not None
        return [at.indices[_integer(op, "dim")]]

    def _linalg_generic(
        self, op: ir.Operation, operands: list[Value], values: dict[ir.Value, Value], *_: Any
    ) -> list[Value]:
        maps = [cast("ir.AffineMap", entry.value) for entry in cast("Any", op.attributes["indexing_maps"])]
        reductions = ["reduction" in str(entry) for entry in cast("Any", op.attributes["iterator_types"])]
        num_inputs = next(iter(cast("Any", op.attributes["operandSegmentSizes"])))
        extents = _loop_extents(maps, operands)
        results = [np.array(operand) for operand in operands[num_inputs:]]
        parallel = tuple(1 if reduced else extent for extent, reduced in zip(extents, reductions, strict=True))
        grids = [
            np.arange(extent).reshape([-1 if d == i else 1 for d in range(len(extents))])
            for i, extent in enumerate(extents)
        ]
        steps = [range(extent) if reduced else range(1) for extent, reduced in zip(extents, reductions, strict=True)]
        body = op.regions[0].blocks[0]
        if 0 in extents:
            return results
        for step in itertools.product(*steps):
            indices = tuple(np.int64(step[i]) if reduced else grids[i] for i, reduced in enumerate(reductions))
            places = [tuple(_evaluate(expr, indices) for expr in where.results) for where in maps]
            arrays = [*operands[:num_inputs], *results]
            arguments = [
                array[place] if isinstance(array, np.ndarray) and array.ndim else array
                for array, place in zip(arrays, places, strict=True)
            ]
            yielded = self.block(body, arguments, values, _Iteration(indices))
            for result, place, value in zip(results, places[num_inputs:], yielded, strict=True):
                full = np.broadcast_to(value, parallel)
                if result.ndim == 0:
                    result[()] = full.reshape(-1)[0]
                    continue
                target = tuple(np.broadcast_to(index, parallel) for index in place)
                result[target] = full
        return results

    # ------------------------------------------------------------------------------------------------------------------
    # tensor
    # ------------------------------------------------------------------------------------------------------------------

    def _tensor_empty(self, op: ir.Operation, *_: Any) -> list[Value]:
        from hyperparallel.testing.layout import padding_of

        shape, dtype = tensor_of(op.results[0].type)
        return [np.full(shape, padding_of(dtype), dtype)]

    def _tensor_splat(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        shape, dtype = tensor_of(op.results[0].type)
        return [np.full(shape, operands[0], dtype)]

    def _tensor_cast(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        return operands

    def _reshape(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        return [operands[0].reshape(tensor_of(op.results[0].type)[0])]

    _tensor_expand_shape = _tensor_collapse_shape = _reshape

    def _tensor_dim(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        return [np.int64(operands[0].shape[int(operands[1])])]

    def _tensor_from_elements(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        shape, dtype = tensor_of(op.results[0].type)
        return [np.array(operands, dtype).reshape(shape)]

    def _indexing_scatter_add(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        updates, indices, table = operands
        result = np.array(table)
        for update, index in zip(updates, indices, strict=True):
            if 0 <= index < len(result):
                result[index] = result[index] + update
        return [result]

    def _tensor_extract(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        tensor, *position = operands
        for dim, index in enumerate(position):
            if bool(np.any(np.asarray(index) < 0) or np.any(np.asarray(index) >= tensor.shape[dim])):
                raise RuntimeFailure(
                    f"device {self.device}: a position along dimension {dim} of {tensor.shape} is out of bounds"
                )
        return [tensor[tuple(np.broadcast_arrays(*position))] if position else tensor[()]]

    def _tensor_insert(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        scalar, tensor, *position = operands
        result = np.array(tensor)
        result[tuple(int(index) for index in position)] = scalar
        return [result]

    def _tensor_extract_slice(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        window = _slices(op, operands[1:], operands[0].shape)
        return [np.array(operands[0][window]).reshape(tensor_of(op.results[0].type)[0])]

    def _tensor_insert_slice(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        result = np.array(operands[1])
        window = _slices(op, operands[2:], result.shape)
        result[window] = operands[0].reshape(result[window].shape)
        return [result]

    def _tensor_concat(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        return [np.concatenate(operands, axis=_integer(op, "dim"))]

    def _tensor_pad(
        self, op: ir.Operation, operands: list[Value], values: dict[ir.Value, Value], *_: Any
    ) -> list[Value]:
        shape, dtype = tensor_of(op.results[0].type)
        grids = tuple(np.indices(shape))
        padding = self.block(op.regions[0].blocks[0], grids, values, None)[0]
        result = np.broadcast_to(padding, shape).astype(dtype)
        low = _mixed(op, "static_low", operands[1:])
        where = tuple(slice(begin, begin + n) for begin, n in zip(low, operands[0].shape, strict=True))
        result[where] = operands[0]
        return [result]

    def _tensor_generate(
        self, op: ir.Operation, operands: list[Value], values: dict[ir.Value, Value], *_: Any
    ) -> list[Value]:
        shape, dtype = tensor_of(op.results[0].type)
        element = self.block(op.regions[0].blocks[0], tuple(np.indices(shape)), values, None)[0]
        return [np.broadcast_to(element, shape).astype(dtype)]

    # ------------------------------------------------------------------------------------------------------------------
    # scf and func
    # ------------------------------------------------------------------------------------------------------------------

    def _func_call(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        return self.call(ir.FlatSymbolRefAttr(op.attributes["callee"]).value, operands)

    def _scf_for(self, op: ir.Operation, operands: list[Value], values: dict[ir.Value, Value], *_: Any) -> list[Value]:
        low, high, step, *carried = operands
        for index in range(int(low), int(high), int(step)):
            carried = self.block(op.regions[0].blocks[0], [np.int64(index), *carried], values, None)
        return carried

    def _scf_if(
        self, op: ir.Operation, operands: list[Value], values: dict[ir.Value, Value], at: _Iteration | None
    ) -> list[Value]:
        if np.asarray(operands[0]).ndim:
            raise RuntimeFailure("the reference executor does not know scf.if within structured ops")
        region = op.regions[0 if bool(operands[0]) else 1]
        return self.block(region.blocks[0], [], values, at) if len(region.blocks) else []

    def _scf_while(
        self, op: ir.Operation, operands: list[Value], values: dict[ir.Value, Value], *_: Any
    ) -> list[Value]:
        carried = operands
        while True:
            condition, *carried = self.block(op.regions[0].blocks[0], carried, values, None)
            if not bool(condition):
                return carried
            carried = self.block(op.regions[1].blocks[0], carried, values, None)

    # ------------------------------------------------------------------------------------------------------------------
    # hypershard
    # ------------------------------------------------------------------------------------------------------------------

    def _parts(self, op: ir.Operation, name: str = "axes") -> list[Part]:
        refs = cast("Any", op.attributes[name])
        return [self.mesh.part(ref.name, ref.pre_size, ref.size) for ref in refs]

    def _table(self) -> Exchange:
        assert self.exchange is not None
        return self.exchange

    def _hypershard_axis_index(self, op: ir.Operation, *_: Any) -> list[Value]:
        return [np.int64(linear_index(self.device, self._parts(op)))]

    def _hypershard_all_gather(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        return [self._table().all_gather(self.device, operands[0], self._parts(op), _integer(op, "dim"))]

    def _hypershard_all_reduce(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        return [self._table().all_reduce(self.device, operands[0], self._parts(op), _reduction(op))]

    def _hypershard_reduce_scatter(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        dim = _integer(op, "dim")
        return [self._table().reduce_scatter(self.device, operands[0], self._parts(op), _reduction(op), dim)]

    def _hypershard_all_to_all(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        split, concat = _integer(op, "split_dim"), _integer(op, "concat_dim")
        return [self._table().all_to_all(self.device, operands[0], self._parts(op), split, concat)]

    def _hypershard_permute(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        return [self._table().permute(self.device, operands[0], self._parts(op), self._parts(op, "to_axes"))]

    def _hypershard_halo_exchange(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        window = (_integer(op, "stride"), _integer(op, "lo"), _integer(op, "size"))
        dim, extent = _integer(op, "dim"), _integer(op, "global_size")
        return [self._table().halo_exchange(self.device, operands[0], self._parts(op), dim, extent, window)]

    def _hypershard_slice_local(self, op: ir.Operation, operands: list[Value], *_: Any) -> list[Value]:
        dim, parts = _integer(op, "dim"), self._parts(op)
        shape, dtype = tensor_of(op.results[0].type)
        result = np.zeros(shape, dtype)
        start = linear_index(self.device, parts) * shape[dim]
        own = operands[0].take(
            range(min(start, operands[0].shape[dim]), min(start + shape[dim], operands[0].shape[dim])), dim
        )
        result[tuple(slice(0, n) for n in own.shape)] = own
        return [result]


# ----------------------------------------------------------------------------------------------------------------------
# Attributes
# ----------------------------------------------------------------------------------------------------------------------


def _element_dtype(kind: ir.Type) -> np.dtype[Any]:
    return dtype_of(ir.RankedTensorType(kind).element_type if isinstance(kind, ir.RankedTensorType) else kind)


def _integer(op: ir.Operation, name: str) -> int:
    return ir.IntegerAttr(op.attributes[name]).value


def _reduction(op: ir.Operation) -> str:
    return str(op.attributes["kind"]).split()[-1].rstrip(">").split("<")[-1]


def _mixed(op: ir.Operation, name: str, dynamic: list[Value]) -> list[int]:
    """A list of which some entries are operands; takes these from the front of ``dynamic``."""
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    return [int(dynamic.pop(0)) if entry == marker else entry for entry in cast("Any", op.attributes[name])]


def _slices(op: ir.Operation, dynamic: list[Value], shape: tuple[int, ...]) -> tuple[slice, ...]:
    """The window of extract_slice and insert_slice."""
    offsets = _mixed(op, "static_offsets", dynamic)
    sizes = _mixed(op, "static_sizes", dynamic)
    strides = _mixed(op, "static_strides", dynamic)
    for offset, size, stride, extent in zip(offsets, sizes, strides, shape, strict=True):
        if offset < 0 or (size > 0 and offset + (size - 1) * stride >= extent):
            raise RuntimeFailure(f"the slice [{offset}, {size}, {stride}] leaves its dimension of size {extent}")
    return tuple(
        slice(offset, offset + (size - 1) * stride + 1 if size else offset, stride)
        for offset, size, stride in zip(offsets, sizes, strides, strict=True)
    )


def _loop_extents(maps: Sequence[ir.AffineMap], operands: Sequence[Value]) -> list[int]:
    extents = [-1] * maps[0].n_dims
    for where, operand in zip(maps, operands, strict=True):
        for dim, expr in enumerate(where.results):
            if isinstance(expr, ir.AffineDimExpr):
                extents[expr.position] = operand.shape[dim]
    if -1 in extents:
        raise RuntimeFailure("expected every loop of a structured op to run along a dimension")
    return extents


def _evaluate(expr: ir.AffineExpr, indices: Sequence[Value]) -> Value:
    if isinstance(expr, ir.AffineDimExpr):
        return indices[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return np.int64(expr.value)
    binary: list[tuple[Any, Callable[[Value, Value], Value]]] = [
        (ir.AffineAddExpr, np.add),
        (ir.AffineMulExpr, np.multiply),
        (ir.AffineModExpr, np.remainder),
        (ir.AffineFloorDivExpr, np.floor_divide),
    ]
    for kind, function in binary:
        if isinstance(expr, kind):
            return function(_evaluate(cast("Any", expr).lhs, indices), _evaluate(cast("Any", expr).rhs, indices))
    raise RuntimeFailure(f"the reference executor has no map with {expr}")


# ----------------------------------------------------------------------------------------------------------------------
# Programs
# ----------------------------------------------------------------------------------------------------------------------


def prepare(module: ir.Module) -> dict[str, ir.OpView]:
    """Generalises named ops, and finds the functions."""
    with module.context:
        PassManager.parse("builtin.module(linalg-generalize-named-ops)").run(module.operation)
    functions: dict[str, ir.OpView] = {}
    for op in module.body.operations:
        if op.operation.name == "func.func" and len(op.regions[0].blocks):
            functions[ir.StringAttr(op.operation.attributes["sym_name"]).value] = op
    return functions


def run_whole(module: ir.Module, inputs: Sequence[Array], function: str = "main") -> list[Array]:
    """Runs a program that is not split, on one device."""
    results = _Machine(prepare(module), Mesh(()), 0, None).call(function, list(inputs))
    return [np.asarray(result) for result in results]


def run_devices(
    module: ir.Module, mesh: Mesh, inputs: Sequence[Sequence[Array]], function: str = "main"
) -> tuple[list[list[Array]], Traffic]:
    """Runs a local program on every device of a mesh.

    Args:
        module: The program of one device.
        mesh: The devices.
        inputs: For each device, its arguments.
        function: Where to begin.

    Returns:
        For each device its results, and what was moved.
    """
    functions = prepare(module)
    exchange = Exchange(mesh.num_devices)
    results: list[list[Array]] = [[] for _ in range(mesh.num_devices)]
    failures: list[tuple[int, BaseException]] = []

    def work(device: int) -> None:
        try:
            made = _Machine(functions, mesh, device, exchange).call(function, list(inputs[device]))
            results[device] = [np.asarray(value) for value in made]
        except BaseException as error:
            failures.append((device, error))
            exchange.abort()

    threads = [threading.Thread(target=work, args=(device,)) for device in range(mesh.num_devices)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        # The first that failed is the cause; others were released when it did.
        device, error = failures[0]
        if isinstance(error, HyperParallelError):
            raise error
        raise RuntimeFailure(f"device {device}: {type(error).__name__}: {error}") from error
    return results, exchange.traffic
