# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts what a training step does for each microbatch into a loop.

    %rows = tensor.expand_shape %input            [B, S] -> [B/M, M, S]: row r is in microbatch r mod M
    %sums = scf.for %m = 0 to M iter_args(zeros)  {hp.microbatches}
      %part = tensor.extract_slice %rows[0, %m, 0]
      forward and backward of %part
      sums + (loss, gradients)
    updates of the sums

What forward changes (running statistics of batches) goes from one microbatch to the next instead of into a sum.
A microbatch takes every M-th row, so that devices which split the batch need nothing of each other's.
The loss was divided by M where it was traced, so that sums are means.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hyperparallel.enums import Role


@dataclasses.dataclass(frozen=True, slots=True)
class Microbatches:
    """How many microbatches, and the names of the inputs that are split into them."""

    count: int
    split: frozenset[str] = frozenset()


def loop_over_microbatches(ir: Any, main: Any, microbatches: Microbatches, is_update: Mapping[Any, bool]) -> None:
    """Rewrite ``@main``, which does one microbatch and then the updates.

    Args:
        ir: The ``mlir.ir`` module.
        main: The function; its ``arg_attrs`` are there.
        microbatches: What to do; with one microbatch there is no loop.
        is_update: Its calls, and whether they belong to the update.
    """
    if microbatches.count == 1:
        return
    block = main.regions[0].blocks[0]
    operations = [op.operation for op in block]
    is_behind = [is_update.get(op, op.name == "func.return") for op in operations]
    body = [op for op, behind in zip(operations, is_behind, strict=True) if not behind]
    after = [op for op, behind in zip(operations, is_behind, strict=True) if behind]
    carried = _changed_buffers(main, body)
    sums = [value for value in _values_after(body, after) if value not in carried]
    count = microbatches.count
    with ir.InsertionPoint.at_block_begin(block):
        low, high, step = (_constant(ir, ir.IndexType.get(), value) for value in (0, count, 1))
        zeros = [_zeros(ir, value.type) for value in sums]
        inputs = _split_inputs(ir, main, block, microbatches)
    loop = ir.Operation.create(
        "scf.for",
        results=[value.type for value in (*sums, *carried)],
        operands=[low, high, step, *zeros, *carried.values()],
        attributes={"hp.microbatches": ir.UnitAttr.get()},
        regions=1,
        ip=ir.InsertionPoint(body[0]),
    )
    inner = loop.regions[0].blocks.append(ir.IndexType.get(), *(value.type for value in (*sums, *carried)))
    yielded = ir.Operation.create("scf.yield", operands=[], ip=ir.InsertionPoint(inner))
    with ir.InsertionPoint(yielded):
        parts = {argument: _part(ir, rows, inner.arguments[0]) for argument, rows in inputs.items()}
    for argument, part in parts.items():
        for use in list(argument.uses):
            if use.owner.operation.name != "tensor.expand_shape":
                use.owner.operation.operands[use.operand_number] = part
    for op in body:
        op.move_before(yielded)
    for value, result in zip((*sums, *carried), loop.results, strict=True):
        _replace(value, result, lambda user: user.block != inner)
    for argument, held in zip(carried.values(), list(inner.arguments)[1 + len(sums) :], strict=True):
        _replace(argument, held, lambda user: user.block == inner)
    with ir.InsertionPoint(yielded):
        totals = list(inner.arguments)[1 : 1 + len(sums)]
        added = [_add(ir, total, value) for total, value in zip(totals, sums, strict=True)]
        ir.Operation.create("scf.yield", operands=[*added, *carried])
    yielded.erase()


def _replace(old: Any, new: Any, wanted: Callable[[Any], bool]) -> None:
    """Have the wanted ones of a value's users take another."""
    for use in list(old.uses):
        user = use.owner.operation
        if wanted(user):
            user.operands[use.operand_number] = new


def _changed_buffers(main: Any, body: Sequence[Any]) -> dict[Any, Any]:
    """The next values of buffers that ``body`` makes, and the arguments that they take the place of."""
    block = main.regions[0].blocks[0]
    made = {result for op in body for result in op.results}
    buffers = {
        attributes["hp.name"].value: argument
        for argument, attributes in zip(block.arguments, main.attributes["arg_attrs"], strict=True)
        if attributes["hp.role"].value == Role.BUFFER
    }
    found: dict[Any, Any] = {}
    returned = block.operations[len(block.operations) - 1].operands
    for value, attributes in zip(returned, main.attributes["res_attrs"], strict=True):
        name = attributes["hp.updates"].value if "hp.updates" in attributes else None
        if name in buffers and value in made:
            found[value] = buffers[name]
    return found


def _values_after(body: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """What ``body`` makes and ``after`` takes, each once."""
    made = {result for op in body for result in op.results}
    return list(dict.fromkeys(operand for op in after for operand in op.operands if operand in made))


def _constant(ir: Any, type_: Any, value: int) -> Any:
    attribute = ir.IntegerAttr.get(type_, value)
    return ir.Operation.create("arith.constant", results=[type_], attributes={"value": attribute}).results[0]


def _zeros(ir: Any, type_: Any) -> Any:
    zero = ir.FloatAttr.get(type_.element_type, 0.0)
    attribute = ir.DenseElementsAttr.get_splat(type_, zero)
    return ir.Operation.create("arith.constant", results=[type_], attributes={"value": attribute}).results[0]


def _split_inputs(ir: Any, main: Any, block: Any, microbatches: Microbatches) -> dict[Any, Any]:
    """Give split inputs the whole batch; return them as ``[rows of a microbatch, microbatches, ...]``."""
    from mlir.dialects import tensor

    dialect: Any = tensor
    found: dict[Any, Any] = {}
    for argument, attributes in zip(block.arguments, main.attributes["arg_attrs"], strict=True):
        if attributes["hp.name"].value not in microbatches.split:
            continue
        type_ = argument.type
        rows, *rest = type_.shape
        argument.set_type(ir.RankedTensorType.get([rows * microbatches.count, *rest], type_.element_type))
        shape = [rows, microbatches.count, *rest]
        groups = [[0, 1], *([position + 2] for position in range(len(rest)))]
        expanded = ir.RankedTensorType.get(shape, type_.element_type)
        found[argument] = dialect.expand_shape(expanded, argument, groups, [], shape)
    kind = main.attributes["function_type"].value
    main.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get([argument.type for argument in block.arguments], kind.results)
    )
    return found


def _part(ir: Any, rows: Any, number: Any) -> Any:
    """The microbatch of that number."""
    count, _, *rest = rows.type.shape
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    rank = len(rest) + 2

    def array(values: Sequence[int]) -> Any:
        return ir.DenseI64ArrayAttr.get(list(values))

    return ir.Operation.create(
        "tensor.extract_slice",
        results=[ir.RankedTensorType.get([count, *rest], rows.type.element_type)],
        operands=[rows, number],
        attributes={
            "static_offsets": array([0, dynamic, *([0] * len(rest))]),
            "static_sizes": array([count, 1, *rest]),
            "static_strides": array([1] * rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0, 0]),
        },
    ).results[0]


def _add(ir: Any, total: Any, value: Any) -> Any:
    """A ``linalg.generic`` that adds one to the other, in its place."""
    type_ = total.type
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank))
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    operation = ir.Operation.create(
        "linalg.generic",
        results=[type_],
        operands=[value, total],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([identity, identity]),
            "iterator_types": ir.ArrayAttr.get([parallel] * type_.rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
        },
        regions=1,
    )
    body = operation.regions[0].blocks.append(type_.element_type, type_.element_type)
    with ir.InsertionPoint(body):
        added = ir.Operation.create(
            "arith.addf", results=[type_.element_type], operands=[body.arguments[1], body.arguments[0]]
        )
        ir.Operation.create("linalg.yield", operands=[added.results[0]])
    return operation.results[0]
