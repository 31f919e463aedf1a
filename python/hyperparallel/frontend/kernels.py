# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that this front end writes as MLIR itself, because torch-mlir leaves the upstream dialects for them.

A kernel's text takes the place of the call that the worker emitted for it; names that it defines begin with a prefix
that is its own. Maps are written out, so that the text can stand anywhere.
"""

from __future__ import annotations

import dataclasses

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


@dataclasses.dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel at one place in the program.

    Attributes:
        name: Which kernel.
        dim: The dimension that it works along.
        source: Type of its operand.
        result: Type of its result.
    """

    name: str
    dim: int
    source: TensorType
    result: TensorType

    def text(self, operand: str, result: str, prefix: str) -> str:
        """Return the MLIR text that computes ``result`` from ``operand``."""
        return _cumulative_sum(self, operand, result, prefix)


def _cumulative_sum(kernel: Kernel, operand: str, result: str, prefix: str) -> str:
    """One reduction: ``y[.., i, ..] = sum over j of (j <= i ? x[.., j, ..] : 0)``.

    It reads n^2/2 elements where a scan reads n, and in return every rule for reductions applies to it as it is: it can
    be split along every dimension, fused and vectorised. Sums of a sequence are small beside the model that they belong
    to.
    """
    rank, dim = len(kernel.source.shape), kernel.dim
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
