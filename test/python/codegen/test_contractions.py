# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions of every layout equal numpy's einsum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from codegen_cases import Execute
from numpy.typing import NDArray
from test_execution import numbers

Array = NDArray[Any]
SIZES = {"b": 3, "h": 4, "g": 2, "r": 3, "m": 5, "n": 7, "k": 6, "q": 2, "u": 1}


def contraction(spec: str, element: str = "f32", out: str | None = None, zero: bool = True) -> str:
    """A program that computes ``spec`` (einsum), added to an argument unless ``zero``."""
    out = out or element
    inputs, result = spec.split("->")
    parts = [*inputs.split(","), result]
    loops = sorted(set("".join(parts)))
    maps = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(part)})>" for part in parts)
    kinds = ", ".join(f'"{"parallel" if loop in result else "reduction"}"' for loop in loops)

    def type_of(part: str, of: str) -> str:
        return "tensor<" + "".join(f"{SIZES[index]}x" for index in part) + of + ">"

    a, b, c = type_of(parts[0], element), type_of(parts[1], element), type_of(parts[2], out)
    f = "f" if element[0] in "fb" else "i"
    widen = "" if element == out else f"%p = arith.extf %x : {element} to {out} %q = arith.extf %y : {element} to {out}"
    x, y = ("%x", "%y") if element == out else ("%p", "%q")
    constant = "0.0" if f == "f" else "0"
    init = f"%e = tensor.empty() : {c} %i = linalg.fill ins(%zero : {out}) outs(%e : {c}) -> {c}" if zero else ""
    return f"""
    func.func @main(%a: {a}, %b: {b}{"" if zero else f", %i: {c}"}) -> {c} {{
      %zero = arith.constant {constant} : {out}
      {init}
      %0 = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
        ins(%a, %b : {a}, {b}) outs(%i : {c}) {{
      ^bb0(%x: {element}, %y: {element}, %o: {out}):
        {widen}
        %m = arith.mul{f} {x}, {y} : {out}
        %s = arith.add{f} %o, %m : {out}
        linalg.yield %s : {out}
      }} -> {c}
      return %0 : {c}
    }}"""


def operands(spec: str, dtype: Any = np.float32) -> tuple[Array, Array]:
    a, b = spec.split("->")[0].split(",")
    return (
        numbers(*(SIZES[index] for index in a), dtype=dtype),
        numbers(*(SIZES[index] for index in b), dtype=dtype, seed=1),
    )


SPECS = [
    "mk,kn->mn",
    "mk,nk->mn",
    "km,kn->mn",
    "mk,kn->nm",
    "bmk,bkn->bmn",
    "bmk,kn->bmn",
    "mk,bkn->bmn",
    "bhmk,bhnk->bhmn",
    "bmhk,bnhk->bhmn",
    "bhmn,bnhk->bmhk",
    "bgrmk,bgnk->bgrmn",
    "mk,k->m",
    "k,kn->n",
    "bmk,bk->bm",
    "mkb,knb->mnb",
    "kmb,bnk->nbm",
    "mkq,kqn->mn",
    "mkq,qkn->mn",
    "qmk,knq->mn",
    "bhmk,hkn->nbhm",
    "umk,kn->umn",
    "muk,kun->mun",
    "bhgrmk,bhgrnk->mbhngr",
]


@pytest.mark.parametrize("spec", SPECS)
def test_layouts(execute: Execute, spec: str) -> None:
    """Transposed, batched, broadcast, with several reductions: in place, or through packed copies."""
    a, b = operands(spec)
    (got,) = execute(contraction(spec), a, b)
    np.testing.assert_allclose(got, np.einsum(spec, a, b), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spec", ["mk,kn->mn", "mkb,knb->mnb", "bhmn,bnhk->bmhk"])
def test_adds_to_its_init(execute: Execute, spec: str) -> None:
    """An init that is not zero is added once, and not written to."""
    a, b = operands(spec)
    result = spec.split("->")[1]
    init = numbers(*(SIZES[index] for index in result), seed=2)
    (got,) = execute(contraction(spec, zero=False), a, b, init)
    np.testing.assert_allclose(got, np.einsum(spec, a, b) + init, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("element", "out", "dtype"),
    [
        ("f64", "f64", np.float64),
        ("f16", "f16", np.float16),
        ("f16", "f32", np.float16),
        ("i64", "i64", np.int64),
        ("i32", "i32", np.int32),
    ],
)
def test_element_types(execute: Execute, element: str, out: str, dtype: Any) -> None:
    """Floats through the runtime's matmul, integers through a kernel."""
    a, b = operands("bmk,bkn->bmn", dtype)
    (got,) = execute(contraction("bmk,bkn->bmn", element, out), a, b)
    want = np.einsum("bmk,bkn->bmn", a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(got, want, rtol=4e-3 if out == "f16" else 1e-5, atol=4e-3 if out == "f16" else 1e-5)


@pytest.mark.parametrize("out", ["bf16", "f32"])
def test_bfloat16(execute: Execute, out: str) -> None:
    """Products of bf16 are summed in f32."""
    a, b = ((array.view(np.uint32) >> 16).astype(np.uint16) for array in operands("bmk,bkn->bmn"))
    (got,) = execute(contraction("bmk,bkn->bmn", "bf16", out), a, b)
    wide = [(bits.astype(np.uint32) << 16).view(np.float32) for bits in (a, b)]
    if out == "bf16":
        got = (got.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    bound = 1e-2 if out == "bf16" else 1e-5
    np.testing.assert_allclose(got, np.einsum("bmk,bkn->bmn", *wide), rtol=bound, atol=bound)


def test_slices_are_read_in_place(execute: Execute) -> None:
    """Attention on slices of one projection: no operand is copied, the result is written transposed."""
    x = numbers(2, 8, 3 * 12)
    (got,) = execute(
        """
    func.func @main(%x: tensor<2x8x36xf32>) -> tensor<2x8x3x4xf32> {
      %zero = arith.constant 0.0 : f32
      %q = tensor.extract_slice %x[0, 0, 0] [2, 8, 12] [1, 1, 1] : tensor<2x8x36xf32> to tensor<2x8x12xf32>
      %k = tensor.extract_slice %x[0, 0, 12] [2, 8, 12] [1, 1, 1] : tensor<2x8x36xf32> to tensor<2x8x12xf32>
      %v = tensor.extract_slice %x[0, 0, 24] [2, 8, 12] [1, 1, 1] : tensor<2x8x36xf32> to tensor<2x8x12xf32>
      %qh = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [2, 8, 3, 4]
        : tensor<2x8x12xf32> into tensor<2x8x3x4xf32>
      %kh = tensor.expand_shape %k [[0], [1], [2, 3]] output_shape [2, 8, 3, 4]
        : tensor<2x8x12xf32> into tensor<2x8x3x4xf32>
      %vh = tensor.expand_shape %v [[0], [1], [2, 3]] output_shape [2, 8, 3, 4]
        : tensor<2x8x12xf32> into tensor<2x8x3x4xf32>
      %e0 = tensor.empty() : tensor<2x3x8x4xf32>
      %e1 = tensor.empty() : tensor<2x3x4x8xf32>
      %qt = linalg.transpose ins(%qh : tensor<2x8x3x4xf32>) outs(%e0 : tensor<2x3x8x4xf32>) permutation = [0, 2, 1, 3]
      %kt = linalg.transpose ins(%kh : tensor<2x8x3x4xf32>) outs(%e1 : tensor<2x3x4x8xf32>) permutation = [0, 2, 3, 1]
      %vt = linalg.transpose ins(%vh : tensor<2x8x3x4xf32>) outs(%e0 : tensor<2x3x8x4xf32>) permutation = [0, 2, 1, 3]
      %qc = tensor.collapse_shape %qt [[0, 1], [2], [3]] : tensor<2x3x8x4xf32> into tensor<6x8x4xf32>
      %kc = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x3x4x8xf32> into tensor<6x4x8xf32>
      %vc = tensor.collapse_shape %vt [[0, 1], [2], [3]] : tensor<2x3x8x4xf32> into tensor<6x8x4xf32>
      %e2 = tensor.empty() : tensor<6x8x8xf32>
      %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<6x8x8xf32>) -> tensor<6x8x8xf32>
      %s = linalg.batch_matmul ins(%qc, %kc : tensor<6x8x4xf32>, tensor<6x4x8xf32>) outs(%z2 : tensor<6x8x8xf32>)
        -> tensor<6x8x8xf32>
      %e3 = tensor.empty() : tensor<6x8x4xf32>
      %z3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<6x8x4xf32>) -> tensor<6x8x4xf32>
      %o = linalg.batch_matmul ins(%s, %vc : tensor<6x8x8xf32>, tensor<6x8x4xf32>) outs(%z3 : tensor<6x8x4xf32>)
        -> tensor<6x8x4xf32>
      %oh = tensor.expand_shape %o [[0, 1], [2], [3]] output_shape [2, 3, 8, 4]
        : tensor<6x8x4xf32> into tensor<2x3x8x4xf32>
      %e4 = tensor.empty() : tensor<2x8x3x4xf32>
      %ot = linalg.transpose ins(%oh : tensor<2x3x8x4xf32>) outs(%e4 : tensor<2x8x3x4xf32>) permutation = [0, 2, 1, 3]
      return %ot : tensor<2x8x3x4xf32>
    }""",
        x,
    )
    q, k, v = (part.reshape(2, 8, 3, 4) for part in np.split(x, 3, 2))
    scores = np.einsum("bmhk,bnhk->bhmn", q, k)
    np.testing.assert_allclose(got, np.einsum("bhmn,bnhk->bmhk", scores, v), rtol=1e-4, atol=1e-4)
