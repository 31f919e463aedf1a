# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""HyperShard: how every tensor is split over a mesh of devices.

Attributes are made by ``mesh_attr``, ``axis``, ``dim`` and ``sharding``; ops by the functions named as they are. All
plain Python where that says it: an axis is its name, a dimension a list of axes, ``...`` at its end leaves it open.

>>> from mlir import ir
>>> with ir.Context():
...     print(sharding("m", [["dp"], ["tp", ...], []], partial=("sum", ["cp"])))
...     print(sharding("m", [dim(["dp"], priority=1), [axis("tp", pre_size=1, size=2)]], replicated=["pp"]))
#hypershard.sharding<@m, [{"dp"}, {"tp", ?}, {}], partial=<sum {"cp"}>>
#hypershard.sharding<@m, [{"dp"}p1, {"tp":(1)2}], replicated={"pp"}>

What cannot be is a ``ValueError`` with the verifier's words, at the place where it is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import TypeAlias, cast

from mlir import ir

from hyperparallel._hyperparallel import AxisRefAttr, DimShardingAttr, MeshAttr, ShardingAttr
from hyperparallel.dialects import _hypershard_ops_gen as ops
from hyperparallel.enums import StrEnum

SHARDING = "hypershard.sharding"
"""The name under which a sharding hangs on ops, arguments and results."""


class Direction(StrEnum):
    """Which way shardings may travel through a barrier."""

    NONE = "none"
    FORWARD = "forward"
    BACKWARD = "backward"


class Reduction(StrEnum):
    """How the partial values of several devices become the whole value."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    AND = "and"
    OR = "or"
    AVG = "avg"


Axis: TypeAlias = str | AxisRefAttr
"""An axis by name, or a part of one made by ``axis``."""
Dim: TypeAlias = Sequence["Axis | EllipsisType"] | DimShardingAttr
"""The axes that split a dimension, major to minor; ``...`` comes last and leaves it open."""
Mesh: TypeAlias = "str | ops.MeshOp"
"""A mesh by its symbol's name, or the op that declares it."""


# ----------------------------------------------------------------------------------------------------------------------
# Attributes
# ----------------------------------------------------------------------------------------------------------------------


def mesh_attr(axes: Mapping[str, int], *, device_ids: Sequence[int] = ()) -> MeshAttr:
    """Devices arranged along named axes, the last axis fastest.

    Args:
        axes: The number of devices along each axis, major to minor.
        device_ids: Entry i is the physical device at position i; empty for 0, 1, 2 and so on.
    """
    return MeshAttr.get(list(axes), list(axes.values()), list(device_ids))


def axis(name: str, *, pre_size: int = 0, size: int = 0) -> AxisRefAttr:
    """An axis, or the part of it of that size that comes after parts of together ``pre_size`` devices.

    >>> with ir.Context():
    ...     print(axis("tp", pre_size=2, size=4))
    #hypershard.axis<"tp":(2)4>
    """
    return AxisRefAttr.get(name, pre_size, size)


def dim(axes: Sequence[Axis | EllipsisType], *, priority: int = 0) -> DimShardingAttr:
    """How one dimension is split.

    Args:
        axes: The axes, major to minor; ``...`` comes last and lets propagation add more.
        priority: 0 acts first.
    """
    is_open = bool(axes) and axes[-1] is ...
    listed = list(axes[:-1] if is_open else axes)
    if any(entry is ... for entry in listed):
        raise ValueError("expected ... to come last in a dimension")
    return DimShardingAttr.get(_axes(cast("list[Axis]", listed)), is_open, priority)


def sharding(
    mesh: Mesh,
    dims: Sequence[Dim],
    *,
    replicated: Sequence[Axis] = (),
    partial: tuple[Reduction | str, Sequence[Axis]] | None = None,
) -> ShardingAttr:
    """How a tensor is split over a mesh.

    Args:
        mesh: The mesh.
        dims: One entry for each dimension of the tensor.
        replicated: Axes that propagation must not use.
        partial: A kind of reduction, and the axes over which the value is still to be reduced.
    """
    kind, partial_axes = partial if partial is not None else ("", ())
    return ShardingAttr.get(
        _symbol(mesh),
        [entry if isinstance(entry, DimShardingAttr) else dim(entry) for entry in dims],
        _axes(replicated),
        str(kind),
        _axes(partial_axes),
    )


def parse_sharding(text: str) -> ShardingAttr:
    """Reads the textual form, such as ``#hypershard.sharding<@m, [{"dp"}, {}]>``."""
    return ShardingAttr(ir.Attribute.parse(text))


# ----------------------------------------------------------------------------------------------------------------------
# Shardings on what others made
# ----------------------------------------------------------------------------------------------------------------------


def shard_argument(function: ir.OpView, index: int, how: ir.Attribute) -> None:
    """Hangs a sharding on an argument of a function."""
    _set_in_list(function, "arg_attrs", len(_function_type(function).inputs), index, how)


def shard_result(function: ir.OpView, index: int, how: ir.Attribute) -> None:
    """Hangs a sharding on a result of a function."""
    _set_in_list(function, "res_attrs", len(_function_type(function).results), index, how)


def shard(value: ir.OpResult, how: ir.Attribute) -> None:
    """Hangs a sharding on the op that has this one result."""
    owner = value.owner
    if len(owner.results) != 1:
        raise ValueError(f"expected an op with one result but {owner.name} has {len(owner.results)}")
    owner.attributes[SHARDING] = how


# ----------------------------------------------------------------------------------------------------------------------
# Ops: declarations and what a person asks for
# ----------------------------------------------------------------------------------------------------------------------


def mesh(name: str, axes: Mapping[str, int], *, device_ids: Sequence[int] = ()) -> ops.MeshOp:
    """Declares a mesh under a symbol's name; goes into the module's body."""
    return ops.MeshOp(name, mesh_attr(axes, device_ids=device_ids))


def constraint(value: ir.Value, how: ShardingAttr) -> ir.Value:
    """Asks for a sharding of a value."""
    return _result(ops.ConstraintOp(value, how))


def reshard(value: ir.Value, how: ShardingAttr) -> ir.Value:
    """Changes the sharding of a value."""
    return _result(ops.ReshardOp(value, how))


def barrier(value: ir.Value, allow: Direction | str = Direction.NONE) -> ir.Value:
    """Stops propagation at a value, but for the direction that is allowed."""
    direction = ir.Attribute.parse(f"#hypershard<direction {Direction(allow)}>")
    return _result(ops.BarrierOp(value, direction))


# ----------------------------------------------------------------------------------------------------------------------
# Ops: collectives, in the local form (on one device's part)
# ----------------------------------------------------------------------------------------------------------------------


def all_gather(value: ir.Value, over: Mesh, axes: Sequence[Axis], *, dim: int) -> ir.Value:
    """Puts the parts of a group together along a dimension, in group order."""
    result = _resized(value, {dim: _group_size(over, axes)})
    return _result(ops.AllGatherOp(result, value, _symbol(over), _axis_array(axes), dim))


def all_reduce(value: ir.Value, over: Mesh, axes: Sequence[Axis], kind: Reduction | str = Reduction.SUM) -> ir.Value:
    """Combines the values of a group element by element."""
    return _result(ops.AllReduceOp(value.type, value, _symbol(over), _axis_array(axes), _reduction(kind)))


def reduce_scatter(
    value: ir.Value, over: Mesh, axes: Sequence[Axis], *, dim: int, kind: Reduction | str = Reduction.SUM
) -> ir.Value:
    """Combines the values of a group; every member keeps its block of a dimension."""
    result = _resized(value, {}, {dim: _group_size(over, axes)})
    return _result(ops.ReduceScatterOp(result, value, _symbol(over), _axis_array(axes), _reduction(kind), dim))


def all_to_all(value: ir.Value, over: Mesh, axes: Sequence[Axis], *, split: int, concat: int) -> ir.Value:
    """Moves a split from dimension ``concat`` to dimension ``split``."""
    size = _group_size(over, axes)
    result = _resized(value, {concat: size}, {split: size})
    return _result(ops.AllToAllOp(result, value, _symbol(over), _axis_array(axes), split, concat))


def permute(value: ir.Value, over: Mesh, axes: Sequence[Axis], *, to: Sequence[Axis]) -> ir.Value:
    """Gives the block number b under ``to`` what block number b under ``axes`` has."""
    return _result(ops.PermuteOp(value.type, value, _symbol(over), _axis_array(axes), _axis_array(to)))


def slice_local(value: ir.Value, over: Mesh, axes: Sequence[Axis], *, dim: int) -> ir.Value:
    """Keeps the own block of a dimension, of ceil(size / members) elements; no communication."""
    result = _resized(value, {}, {dim: _group_size(over, axes)})
    return _result(ops.SliceLocalOp(result, value, _symbol(over), _axis_array(axes), dim))


def axis_index(over: Mesh, axes: Sequence[Axis]) -> ir.Value:
    """This device's number along axes, the first one most significant."""
    return _result(ops.AxisIndexOp(_symbol(over), _axis_array(axes)))


# ----------------------------------------------------------------------------------------------------------------------
# From Python to attributes
# ----------------------------------------------------------------------------------------------------------------------


def _axes(axes: Sequence[Axis]) -> list[AxisRefAttr]:
    return [axis(entry) if isinstance(entry, str) else entry for entry in axes]


def _axis_array(axes: Sequence[Axis]) -> ir.ArrayAttr:
    return _array(_axes(axes))


def _array(attributes: Sequence[ir.Attribute]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get(list(attributes))


def _dictionary(entries: Mapping[str, ir.Attribute]) -> ir.DictAttr:
    return ir.DictAttr.get(dict(entries))


def _result(op: ir.OpView) -> ir.Value:
    return op.operation.results[0]


def _reduction(kind: Reduction | str) -> ir.Attribute:
    return ir.Attribute.parse(f"#hypershard.reduction<{Reduction(kind)}>")


def _symbol(mesh: Mesh) -> str:
    return mesh if isinstance(mesh, str) else ir.StringAttr(mesh.operation.attributes["sym_name"]).value


def _mesh_of(mesh: Mesh) -> MeshAttr:
    """The mesh's axes; a name is looked up from the current insertion point outwards."""
    if not isinstance(mesh, str):
        return MeshAttr(mesh.operation.attributes["mesh"])
    scope: ir.Operation | None = ir.InsertionPoint.current.block.owner.operation
    while scope is not None:
        if scope.name == "builtin.module":
            table = ir.SymbolTable(scope)
            if mesh in table and "mesh" in table[mesh].operation.attributes:
                return MeshAttr(table[mesh].operation.attributes["mesh"])
        scope = scope.parent.operation if scope.parent is not None else None
    raise ValueError(f"expected a mesh of the module but got @{mesh}")


def _group_size(mesh: Mesh, axes: Sequence[Axis]) -> int:
    sizes = dict(_mesh_of(mesh).axes)
    size = 1
    for entry in _axes(axes):
        if entry.name not in sizes:
            raise ValueError(f'expected an axis of @{_symbol(mesh)} but got "{entry.name}"')
        size *= entry.size or sizes[entry.name]
    return size


def _resized(value: ir.Value, times: Mapping[int, int], split: Mapping[int, int] | None = None) -> ir.Type:
    """The value's type with dimensions multiplied, and split into so many blocks."""
    tensor = ir.RankedTensorType(value.type)
    shape = list(tensor.shape)
    for index in (*times, *(split or {})):
        if not 0 <= index < len(shape):
            raise ValueError(f"expected a dimension in [0, {len(shape)}) but got {index}")
    for index, factor in times.items():
        shape[index] *= factor
    for index, blocks in (split or {}).items():
        shape[index] = -(-shape[index] // blocks)
    return ir.RankedTensorType.get(shape, tensor.element_type)


def _function_type(function: ir.OpView) -> ir.FunctionType:
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def _set_in_list(function: ir.OpView, name: str, size: int, index: int, how: ir.Attribute) -> None:
    """Sets the sharding in entry ``index`` of a function's list of dictionaries, and keeps what else is there."""
    if not 0 <= index < size:
        raise ValueError(f"expected an index in [0, {size}) but got {index}")
    entries: list[ir.Attribute] = [_dictionary({})] * size
    if name in function.attributes:
        entries = list(ir.ArrayAttr(function.attributes[name]))
    kept = {item.name: item.attr for item in ir.DictAttr(entries[index])}
    entries[index] = _dictionary({**kept, SHARDING: how})
    function.attributes[name] = _array(entries)


__all__ = [
    "SHARDING",
    "Axis",
    "AxisRefAttr",
    "Dim",
    "DimShardingAttr",
    "Direction",
    "Mesh",
    "MeshAttr",
    "Reduction",
    "ShardingAttr",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "axis",
    "axis_index",
    "barrier",
    "constraint",
    "dim",
    "mesh",
    "mesh_attr",
    "ops",
    "parse_sharding",
    "permute",
    "reduce_scatter",
    "reshard",
    "shard",
    "shard_argument",
    "shard_result",
    "sharding",
    "slice_local",
]
