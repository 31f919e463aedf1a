# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a group receives is laid out as it was sent, where both meshes have the axes.

A stage in the middle of a pipeline has no input of its own that says how the batch is split: it is the layout of what comes
in. Groups are propagated in their order, and what those before them send is a wish for what they receive. Where a group has
several stages, a wish may come from a group behind it: so many times as a group has stages, copies are propagated first.

Cost: a propagation for each stage of a group; linear in the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from mlir import ir

from hyperparallel.dialects import hypershard
from hyperparallel.plan.mesh import Mesh

_SEND, _RECV = "hypermpmd.send", "hypermpmd.recv"
Dims = Sequence[hypershard.DimShardingAttr]


class Layouts:
    """How messages were laid out by the groups that send them.

    Args:
        meshes: The mesh of each group.
    """

    def __init__(self, meshes: Mapping[str, Mesh]) -> None:
        self._meshes = meshes
        self._sent: dict[tuple[str, str, int], Dims] = {}

    def record(self, group: str, module: ir.Module) -> None:
        """Note how a propagated program's messages are laid out."""
        for op in _ops_of_main(module):
            if op.name == _SEND:
                how = _sharding_of(op.operands[0])
                if how is not None:
                    peer, tag = _peer_and_tag(op)
                    self._sent[group, peer, tag] = how.dims

    def wish(self, group: str, module: ir.Module) -> int:
        """Ask for these layouts in the program of a receiver; returns for how many messages."""
        count = 0
        for op in list(_ops_of_main(module)):
            if op.name != _RECV:
                continue
            peer, tag = _peer_and_tag(op)
            dims = self._sent.get((peer, group, tag))
            if dims is None:
                continue
            chosen = [[axis for axis in dim.axes if self._is_shared(axis.name, group, peer)] for dim in dims]
            if not any(chosen):
                continue
            count += 1
            result = op.results[0]
            uses = list(result.uses)
            with module.context, ir.Location.unknown(), ir.InsertionPoint.after(op):
                how = hypershard.sharding(_mesh_name(module), [[*axes, ...] for axes in chosen])
                asked = hypershard.constraint(result, how)
            for use in uses:
                use.owner.operation.operands[use.operand_number] = asked
        return count

    def _is_shared(self, axis: str, group: str, peer: str) -> bool:
        mine, theirs = self._meshes[group], self._meshes[peer]
        return axis in mine.names and axis in theirs.names and mine.size(axis) == theirs.size(axis)


def propagate_together(
    names: Sequence[str],
    meshes: Mapping[str, Mesh],
    rounds: int,
    module_of: Callable[[str, bool], ir.Module],
    propagate: Callable[[str, ir.Module, bool], None],
) -> None:
    """Propagate the programs of all groups.

    Args:
        names: The groups, in order.
        meshes: Their meshes.
        rounds: How often; all but the last time on copies.
        module_of: The program of a group, or a copy of it.
        propagate: Propagates a program of a group, which may be a copy.
    """
    layouts = Layouts(meshes)
    for turn in range(rounds):
        is_copy = turn < rounds - 1
        for name in names:
            module = module_of(name, is_copy)
            layouts.wish(name, module)
            propagate(name, module, is_copy)
            layouts.record(name, module)


def _ops_of_main(module: ir.Module) -> Iterator[ir.Operation]:
    for function in module.operation.regions[0].blocks[0].operations:
        if "sym_name" in function.attributes and ir.StringAttr(function.attributes["sym_name"]).value == "main":
            for op in function.regions[0].blocks[0].operations:
                yield op.operation


def _peer_and_tag(message: ir.Operation) -> tuple[str, int]:
    return ir.StringAttr(message.attributes["peer"]).value, ir.IntegerAttr(message.attributes["tag"]).value


def _mesh_name(module: ir.Module) -> str:
    """The mesh of a group's program, of which it has one."""
    return next(
        ir.StringAttr(op.attributes["sym_name"]).value
        for op in module.operation.regions[0].blocks[0].operations
        if op.operation.name == "hypershard.mesh"
    )


def _sharding_of(value: ir.Value) -> hypershard.ShardingAttr | None:
    """The sharding that hangs on what makes a value."""
    if isinstance(value.owner, ir.Block):
        argument = ir.BlockArgument(value)
        attributes = cast("Sequence[Any]", ir.ArrayAttr(value.owner.owner.attributes["arg_attrs"]))
        found = ir.DictAttr(attributes[argument.arg_number])
        return hypershard.ShardingAttr(found[hypershard.SHARDING]) if hypershard.SHARDING in found else None
    owner = value.owner
    if hypershard.SHARDING not in owner.attributes:
        return None
    how = owner.attributes[hypershard.SHARDING]
    if isinstance(how, ir.ArrayAttr):
        how = how[ir.OpResult(value).result_number]
    return hypershard.ShardingAttr(how)


__all__ = ["Layouts", "propagate_together"]
