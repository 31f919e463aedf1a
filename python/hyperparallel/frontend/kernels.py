# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that this front end writes as MLIR itself.

torch-mlir leaves the upstream dialects for a cumulative sum, and computes the place of every maximum along with it;
and it does not know the operator that adds rows to a table.

A kernel's text takes the place of the call that the worker emitted for it; names that it defines begin with a prefix
that is its own. Maps are written out, so that the text can stand anywhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from hyperparallel.enums import StrEnum
from hyperparallel.frontend.graph import TensorType

_MLIR_TYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "i8",
    "bool": "i1",
}


def element_type(dtype: str) -> str:
    """Return MLIR's spelling of a PyTorch element type.

    Raises:
        KeyError: The element type is not supported.
    """
    return _MLIR_TYPES[dtype]


def tensor_type(type_: TensorType) -> str:
    """Return MLIR's spelling of a tensor type."""
    return "tensor<" + "".join(f"{size}x" for size in type_.shape) + element_type(type_.dtype) + ">"


class KernelName(StrEnum):
    """The kernels that there are."""

    CUMULATIVE_SUM = "cumulative_sum"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    SCATTER_ADD = "scatter_add"


@dataclasses.dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel at one place in the program.

    Attributes:
        name: Which kernel.
        dims: The dimensions that it works along.
        sources: Types of its operands.
        result: Type of its result.
    """

    name: str
    dims: tuple[int, ...]
    sources: tuple[TensorType, ...]
    result: TensorType

    @property
    def source(self) -> TensorType:
        """Type of its first operand."""
        return self.sources[0]

    def text(self, operands: Sequence[str], result: str, prefix: str) -> str:
        """Return the MLIR text that computes ``result`` from ``operands``."""
        if self.name == KernelName.SCATTER_ADD:
            return _scatter_add(self, operands, result, prefix)
        if self.name == KernelName.CUMULATIVE_SUM:
            return _cumulative_sum(self, operands[0], result, prefix)
        return _extremum(self, operands[0], result, prefix)


def _scatter_add(kernel: Kernel, operands: Sequence[str], result: str, prefix: str) -> str:
    """Add to the third operand, or to zeros if there is none."""
    updates, indices, *tables = operands
    update_type, index_type = (tensor_type(type_) for type_ in kernel.sources[:2])
    type_, zero = tensor_type(kernel.result), "0.0" if element_type(kernel.result.dtype) in _FLOAT_BITS else "0"
    made = "" if tables else f"%{prefix}_table = arith.constant dense<{zero}> : {type_}\n"
    table = tables[0] if tables else f"%{prefix}_table"
    return (
        f"{made}{result} = indexing.scatter_add {updates} at {indices} into {table} : {update_type}, {index_type} "
        f"into {type_}"
    )


_FLOAT_BITS = {"f64": (64, 11), "f32": (32, 8), "f16": (16, 5), "bf16": (16, 8)}


def _limit(element: str, *, lowest: bool, unsigned: bool) -> str:
    """Return the least or greatest value of an element type, as MLIR spells it; floats have infinities."""
    if element in _FLOAT_BITS:
        width, exponent = _FLOAT_BITS[element]
        bits = ((1 << exponent) - 1) << (width - 1 - exponent) | (int(lowest) << (width - 1))
        return f"0x{bits:0{width // 4}X}"
    width = int(element[1:])
    if unsigned:
        # MLIR reads all ones as -1.
        return "0" if lowest else "-1"
    return str(-(1 << (width - 1)) if lowest else (1 << (width - 1)) - 1)


def _extremum(kernel: Kernel, operand: str, result: str, prefix: str) -> str:
    """One reduction with one result; a NaN makes it NaN, as in PyTorch."""
    rank, p = len(kernel.source.shape), prefix
    element, type_ = element_type(kernel.result.dtype), tensor_type(kernel.result)
    keeps_dims = len(kernel.result.shape) == rank
    unsigned = kernel.source.dtype in ("bool", "uint8")
    lowest = kernel.name == KernelName.MAXIMUM
    limit = ("false" if lowest else "true") if element == "i1" else _limit(element, lowest=lowest, unsigned=unsigned)
    combine = "max" if lowest else "min"
    op = f"arith.{combine}imumf" if element in _FLOAT_BITS else f"arith.{combine}{'u' if unsigned else 's'}i"
    space = ", ".join(f"d{i}" for i in range(rank))
    writes = ", ".join(
        "0" if dim in kernel.dims else f"d{dim}" for dim in range(rank) if keeps_dims or dim not in kernel.dims
    )
    iterators = ", ".join('"reduction"' if dim in kernel.dims else '"parallel"' for dim in range(rank))
    return f"""
%{p}_limit = arith.constant {limit}{"" if element == "i1" else f" : {element}"}
%{p}_empty = tensor.empty() : {type_}
%{p}_init = linalg.fill ins(%{p}_limit : {element}) outs(%{p}_empty : {type_}) -> {type_}
{result} = linalg.generic {{
    indexing_maps = [affine_map<({space}) -> ({space})>, affine_map<({space}) -> ({writes})>],
    iterator_types = [{iterators}]}}
    ins({operand} : {tensor_type(kernel.source)}) outs(%{p}_init : {type_}) {{
  ^bb0(%{p}_in: {element}, %{p}_best: {element}):
    %{p}_next = {op} %{p}_in, %{p}_best : {element}
    linalg.yield %{p}_next : {element}
}} -> {type_}
"""


def _cumulative_sum(kernel: Kernel, operand: str, result: str, prefix: str) -> str:
    """One reduction: ``y[.., i, ..] = sum over j of (j <= i ? x[.., j, ..] : 0)``.

    It reads n^2/2 elements where a scan reads n, and in return every rule for reductions applies to it as it is: it can
    be split along every dimension, fused and vectorised. Sums of a sequence are small beside the model that they belong
    to.
    """
    rank, (dim,) = len(kernel.source.shape), kernel.dims
    dims = [f"d{i}" for i in range(rank)]
    reads = [*dims[:dim], f"d{rank}", *dims[dim + 1 :]]
    space = ", ".join([*dims, f"d{rank}"])
    source, element = element_type(kernel.source.dtype), element_type(kernel.result.dtype)
    is_float = element.startswith(("f", "bf"))
    zero = "0.0" if is_float else "0"
    add = "arith.addf" if is_float else "arith.addi"
    type_ = tensor_type(kernel.result)
    p = prefix
    convert, term = _convert(
        f"%{p}_in", source, element, f"%{p}_wide", unsigned=kernel.source.dtype in ("bool", "uint8")
    )
    return f"""
%{p}_zero = arith.constant {zero} : {element}
%{p}_empty = tensor.empty() : {type_}
%{p}_init = linalg.fill ins(%{p}_zero : {element}) outs(%{p}_empty : {type_}) -> {type_}
{result} = linalg.generic {{
    indexing_maps = [affine_map<({space}) -> ({", ".join(reads)})>, affine_map<({space}) -> ({", ".join(dims)})>],
    iterator_types = [{", ".join(['"parallel"'] * rank)}, "reduction"]}}
    ins({operand} : {tensor_type(kernel.source)}) outs(%{p}_init : {type_}) {{
  ^bb0(%{p}_in: {source}, %{p}_sum: {element}):
    %{p}_i = linalg.index {dim} : index
    %{p}_j = linalg.index {rank} : index
    %{p}_taken = arith.cmpi ule, %{p}_j, %{p}_i : index
    {convert}
    %{p}_term = arith.select %{p}_taken, {term}, %{p}_zero : {element}
    %{p}_next = {add} %{p}_sum, %{p}_term : {element}
    linalg.yield %{p}_next : {element}
}} -> {type_}
"""


def _convert(value: str, source: str, target: str, result: str, *, unsigned: bool) -> tuple[str, str]:
    """Return the line that converts an element, and the name of what it makes."""
    if source == target:
        return "", value
    source_float, target_float = (element.startswith(("f", "bf")) for element in (source, target))
    width = {"bf16": 16, "index": 64}
    bits = [width.get(element) or int(element[1:]) for element in (source, target)]
    if source_float and target_float:
        op = "arith.extf" if bits[0] < bits[1] else "arith.truncf"
    elif source_float:
        op = "arith.fptosi"
    elif target_float:
        op = "arith.uitofp" if unsigned else "arith.sitofp"
    elif bits[0] > bits[1]:
        op = "arith.trunci"
    else:
        op = "arith.extui" if unsigned else "arith.extsi"
    return f"{result} = {op} {value} : {source} to {target}", result
