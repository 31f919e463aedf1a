# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled programs compute what numpy computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from codegen_cases import Execute
from numpy.typing import NDArray

Array = NDArray[Any]


def numbers(*shape: int, dtype: Any = np.float32, scale: float = 1.0, seed: int = 0) -> Array:
    """Values that are all different and of both signs."""
    count = int(np.prod(shape))
    values = np.random.default_rng(seed + count).permutation(np.linspace(-1.7, 2.3, count)) if count else np.zeros(0)
    if np.issubdtype(dtype, np.integer):
        values = np.arange(count) - count // 3
    return np.asarray(values.reshape(shape) * scale, dtype)


def elementwise(body: str, shape: str, element: str, *, inputs: int = 1, result: str | None = None) -> str:
    """A program that applies ``body`` (of %x, %y … to %r) to each element."""
    out = result or element
    names = "xyzw"[:inputs]
    dims = shape.count("x") + 1 if shape else 0
    loops = ", ".join(f"d{i}" for i in range(dims))
    identity = f"affine_map<({loops}) -> ({loops})>"
    kinds = ", ".join(['"parallel"'] * dims)
    prefix = f"{shape}x" if shape else ""
    arguments = ", ".join(f"%{name}s: tensor<{prefix}{element}>" for name in names)
    values = ", ".join(f"%{name}s" for name in names)
    types = ", ".join(f"tensor<{prefix}{element}>" for _ in names)
    scalars = ", ".join(f"%{name}: {element}" for name in names)
    return f"""
    func.func @main({arguments}) -> tensor<{prefix}{out}> {{
      %e = tensor.empty() : tensor<{prefix}{out}>
      %0 = linalg.generic {{indexing_maps = [{", ".join([identity] * (inputs + 1))}], iterator_types = [{kinds}]}}
        ins({values} : {types}) outs(%e : tensor<{prefix}{out}>) {{
      ^bb0({scalars}, %o: {out}):
        {body}
        linalg.yield %r : {out}
      }} -> tensor<{prefix}{out}>
      return %0 : tensor<{prefix}{out}>
    }}"""


def erf(x: Array) -> Array:
    import math

    return np.vectorize(math.erf)(x)


POINTS = np.concatenate(
    [
        np.linspace(-12, 12, 4001),
        np.linspace(-1e-3, 1e-3, 401),
        np.array([0.0, -0.0, 1.0, -1.0, 87.5, -87.5, 104.0, 1e30, -1e30, 1e-40, np.inf, -np.inf, np.nan]),
        np.geomspace(1e-37, 1e37, 999),
    ]
).astype(np.float32)


@pytest.mark.parametrize(
    ("op", "reference"),
    [
        ("exp", np.exp),
        ("exp2", np.exp2),
        ("expm1", np.expm1),
        ("log", np.log),
        ("log2", np.log2),
        ("log10", np.log10),
        ("log1p", np.log1p),
        ("tanh", np.tanh),
        ("erf", erf),
        ("sqrt", np.sqrt),
        ("rsqrt", lambda x: 1 / np.sqrt(x)),
        ("roundeven", np.round),
        ("round", lambda x: np.trunc(x + np.copysign(0.5, x))),
        ("floor", np.floor),
        ("absf", np.abs),
    ],
)
def test_math_is_accurate(execute: Execute, op: str, reference: Any) -> None:
    """Within 4e-7 relative over the whole range, and the usual special values."""
    (got,) = execute(elementwise(f"%r = math.{op} %x : f32", str(POINTS.size), "f32"), POINTS)
    with np.errstate(all="ignore"):
        want = reference(POINTS.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    # Below 1e-37 exp, say, is denormal, and so has fewer digits.
    np.testing.assert_allclose(got, want, rtol=4e-7, atol=3e-45)


@pytest.mark.parametrize(("op", "reference"), [("sin", np.sin), ("cos", np.cos)])
def test_sine_of_large_angles(execute: Execute, op: str, reference: Any) -> None:
    """Rotary embeddings ask for angles of thousands of radians."""
    x = np.concatenate([np.linspace(-20, 20, 2001), np.linspace(-1e5, 1e5, 4001)]).astype(np.float32)
    (got,) = execute(elementwise(f"%r = math.{op} %x : f32", str(x.size), "f32"), x)
    np.testing.assert_allclose(got, reference(x.astype(np.float64)), rtol=4e-7, atol=1e-7)


def test_pow_of_any_sign(execute: Execute) -> None:
    """Negative bases, integer and other exponents, zeros and infinities."""
    bases = np.array([-2.5, -1.0, -0.0, 0.0, 0.3, 1.0, 1.7, 9.0, np.inf, -np.inf, np.nan], np.float32)
    exponents = np.array([-3.0, -2.0, -0.5, 0.0, 0.3, 1.0, 2.0, 3.0, 20.0], np.float32)
    x, y = (grid.ravel().copy() for grid in np.meshgrid(bases, exponents))
    (got,) = execute(elementwise("%r = math.powf %x, %y : f32", str(x.size), "f32", inputs=2), x, y)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(got, want, rtol=4e-7)


@pytest.mark.parametrize(
    ("element", "dtype", "op", "reference"),
    [
        ("f64", np.float64, "%r = math.exp %x : f64", np.exp),
        ("f64", np.float64, "%r = arith.mulf %x, %x : f64", np.square),
        ("f16", np.float16, "%r = arith.addf %x, %x : f16", lambda x: x + x),
        ("f16", np.float16, "%r = math.tanh %x : f16", np.tanh),
        ("i64", np.int64, "%r = arith.muli %x, %x : i64", np.square),
        ("i32", np.int32, "%r = arith.addi %x, %x : i32", lambda x: x + x),
        ("i8", np.int8, "%r = arith.subi %x, %x : i8", lambda x: x - x),
    ],
)
def test_element_types(execute: Execute, element: str, dtype: Any, op: str, reference: Any) -> None:
    """Every element type of the ABI, on a shape of several dimensions."""
    x = numbers(3, 5, 7, dtype=dtype)
    (got,) = execute(elementwise(op, "3x5x7", element), x)
    assert got.dtype == x.dtype
    np.testing.assert_allclose(got, reference(x), rtol=1e-3 if element == "f16" else 1e-12)


def test_bfloat16(execute: Execute) -> None:
    """bf16 is computed in f32 and rounded to nearest even."""
    x = numbers(129)
    bits = (x.view(np.uint32) >> 16).astype(np.uint16)
    (got,) = execute(elementwise("%r = arith.mulf %x, %x : bf16", "129", "bf16"), bits)
    wide = (bits.astype(np.uint32) << 16).view(np.float32)
    square = (wide * wide).view(np.uint32)
    want = ((square + 0x7FFF + ((square >> 16) & 1)) >> 16).astype(np.uint16)
    np.testing.assert_array_equal(got.view(np.uint16), want)


def test_booleans_are_bytes(execute: Execute) -> None:
    """A mask is written as 0 and 1, and read back."""
    x, y = numbers(4, 33), numbers(4, 33, seed=1)
    text = elementwise("%r = arith.cmpf olt, %x, %y : f32", "4x33", "f32", inputs=2, result="i1")
    (got,) = execute(text, x, y)
    np.testing.assert_array_equal(got, x < y)
    text = elementwise("%r = arith.xori %x, %y : i1", "4x33", "i1", inputs=2)
    (got,) = execute(text, x < y, x < 0)
    np.testing.assert_array_equal(got, (x < y) ^ (x < 0))


@pytest.mark.parametrize("shape", ["", "1", "1x1x1", "0", "3x0x2"])
def test_degenerate_shapes(execute: Execute, shape: str) -> None:
    """Rank 0, size 1 and size 0."""
    x = numbers(*(int(size) for size in shape.split("x") if size))
    (got,) = execute(elementwise("%r = arith.negf %x : f32", shape, "f32"), x)
    assert got.shape == x.shape
    np.testing.assert_array_equal(got, -x)


def softmax_layernorm(rows: int, columns: int) -> str:
    """Layer normalisation of a softmax, with the row's values used many times."""
    full, row = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
    wide = "affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>"

    def reduce(name: str, op: str, source: str, init: str) -> str:
        return f"""
      %{name}0 = linalg.fill ins({init} : f32) outs(%er : {row}) -> {row}
      %{name} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
        iterator_types = ["parallel", "reduction"]}} ins({source} : {full}) outs(%{name}0 : {row}) {{
      ^bb0(%a: f32, %o: f32):
        %r = arith.{op} %a, %o : f32
        linalg.yield %r : f32
      }} -> {row}"""

    def combine(name: str, body: str, left: str, right: str) -> str:
        return f"""
      %{name} = linalg.generic {{indexing_maps = [{wide}], iterator_types = ["parallel", "parallel"]}}
        ins({left}, {right} : {full}, {row}) outs(%ef : {full}) {{
      ^bb0(%a: f32, %b: f32, %o: f32):
        {body}
        linalg.yield %r : f32
      }} -> {full}"""

    return f"""
    func.func @main(%x: {full}) -> {full} {{
      %zero = arith.constant 0.0 : f32
      %low = arith.constant 0xFF800000 : f32
      %n = arith.constant {columns}.0 : f32
      %eps = arith.constant 1.0e-5 : f32
      %ef = tensor.empty() : {full}
      %er = tensor.empty() : {row}
      {reduce("max", "maximumf", "%x", "%low")}
      {combine("e", "%d = arith.subf %a, %b : f32 %r = math.exp %d : f32", "%x", "%max")}
      {reduce("sum", "addf", "%e", "%zero")}
      {combine("p", "%r = arith.divf %a, %b : f32", "%e", "%sum")}
      {reduce("total", "addf", "%p", "%zero")}
      {combine("c", "%m = arith.divf %b, %n : f32 %r = arith.subf %a, %m : f32", "%p", "%total")}
      %sq = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]}} ins(%c : {full}) outs(%ef : {full}) {{
      ^bb0(%a: f32, %o: f32):
        %r = arith.mulf %a, %a : f32
        linalg.yield %r : f32
      }} -> {full}
      {reduce("var", "addf", "%sq", "%zero")}
      {
        combine(
            "y",
            "%v = arith.divf %b, %n : f32 %w = arith.addf %v, %eps : f32 %s = math.rsqrt %w : f32 "
            "%r = arith.mulf %a, %s : f32",
            "%c",
            "%var",
        )
    }
      return %y : {full}
    }}"""


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 3), (64, 129), (3, 70000)])
def test_rows_share_one_kernel(execute: Execute, rows: int, columns: int) -> None:
    """Softmax and layer norm, on rows that fit the stack and on rows that do not."""
    x = numbers(rows, columns, scale=3)
    (got,) = execute(softmax_layernorm(rows, columns), x)
    wide = x.astype(np.float64)
    p = np.exp(wide - wide.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    c = p - p.mean(1, keepdims=True)
    want = c / np.sqrt(np.square(c).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_reductions_along_either_dimension(execute: Execute, order: tuple[int, int]) -> None:
    """Sums of rows and of columns, with inits that are not zero."""
    x = numbers(37, 53)
    kept = ["i", "j"][order[0]]
    size = x.shape[order[0]]
    kinds = '"parallel", "reduction"' if order == (0, 1) else '"reduction", "parallel"'
    init = numbers(size, seed=5)
    (got,) = execute(
        f"""
    func.func @main(%x: tensor<37x53xf32>, %init: tensor<{size}xf32>) -> tensor<{size}xf32> {{
      %0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ({kept})>],
        iterator_types = [{kinds}]}} ins(%x : tensor<37x53xf32>) outs(%init : tensor<{size}xf32>) {{
      ^bb0(%a: f32, %o: f32):
        %r = arith.addf %o, %a : f32
        linalg.yield %r : f32
      }} -> tensor<{size}xf32>
      return %0 : tensor<{size}xf32>
    }}""",
        x,
        init,
    )
    np.testing.assert_allclose(got, x.sum(order[1]) + init, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("element", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize(
    ("op", "reference", "init"), [("maximumf", np.max, -np.inf), ("minimumf", np.min, np.inf)], ids=["max", "min"]
)
def test_extrema_of_rows(execute: Execute, op: str, reference: Any, init: float, element: str) -> None:
    """Of any length, wherever they are; NaN is the maximum and the minimum of all."""
    rows, columns = 40, 67
    bits = {"f32": 32, "f64": 64, "f16": 16, "bf16": 16}[element]
    first = {"f32": "0x7F800000", "f64": "0x7FF0000000000000", "f16": "0x7C00", "bf16": "0x7F80"}[element]
    if init < 0:
        first = f"0x{int(first, 16) | 1 << (bits - 1):X}"
    values = numbers(rows, columns)
    values[3, 11], values[4, 66], values[5, :] = np.nan, np.inf, -np.inf
    values[6, :], values[6, 40] = -0.0, 0.0
    values[7, :], values[7, 41] = 0.0, -0.0
    text = f"""
    func.func @main(%x: tensor<{rows}x{columns}xf32>) -> tensor<{rows}xf32> {{
      %i = arith.constant {first} : {element}
      %e = tensor.empty() : tensor<{rows}x{columns}x{element}>
      %c = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}}
        ins(%x : tensor<{rows}x{columns}xf32>) outs(%e : tensor<{rows}x{columns}x{element}>) {{
      ^bb0(%a: f32, %o: {element}):
        %t = CAST
        linalg.yield %t : {element}
      }} -> tensor<{rows}x{columns}x{element}>
      %r = tensor.empty() : tensor<{rows}x{element}>
      %f = linalg.fill ins(%i : {element}) outs(%r : tensor<{rows}x{element}>) -> tensor<{rows}x{element}>
      %m = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]}}
        ins(%c : tensor<{rows}x{columns}x{element}>) outs(%f : tensor<{rows}x{element}>) {{
      ^bb0(%a: {element}, %o: {element}):
        %t = arith.{op} %a, %o : {element}
        linalg.yield %t : {element}
      }} -> tensor<{rows}x{element}>
      %w = tensor.empty() : tensor<{rows}xf32>
      %d = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}}
        ins(%m : tensor<{rows}x{element}>) outs(%w : tensor<{rows}xf32>) {{
      ^bb0(%a: {element}, %o: f32):
        %t = BACK
        linalg.yield %t : f32
      }} -> tensor<{rows}xf32>
      return %d : tensor<{rows}xf32>
    }}"""
    casts = {
        "f32": ("arith.addf %a, %a : f32", "arith.addf %a, %a : f32"),
        "f64": ("arith.extf %a : f32 to f64", "arith.truncf %a : f64 to f32"),
        "f16": ("arith.truncf %a : f32 to f16", "arith.extf %a : f16 to f32"),
        "bf16": ("arith.truncf %a : f32 to bf16", "arith.extf %a : bf16 to f32"),
    }
    there, back = casts[element]
    (found,) = execute(text.replace("CAST", there).replace("BACK", back), values)
    wanted = reference(values, axis=1)
    if element == "f32":
        wanted = 4 * wanted
    assert np.isnan(found[3])
    np.testing.assert_allclose(found, wanted, rtol={"f16": 1e-3, "bf16": 1e-2}.get(element, 0))


def test_argmax_takes_the_first(execute: Execute) -> None:
    """Two results at once; of equal values the first counts."""
    x = numbers(6, 41)
    x[2, 7] = x[2, 30] = 9.0
    value, index = execute(
        """
    func.func @main(%x: tensor<6x41xf32>) -> (tensor<6xf32>, tensor<6xi64>) {
      %low = arith.constant 0xFF800000 : f32
      %zero = arith.constant 0 : i64
      %ev = tensor.empty() : tensor<6xf32>
      %ei = tensor.empty() : tensor<6xi64>
      %v = linalg.fill ins(%low : f32) outs(%ev : tensor<6xf32>) -> tensor<6xf32>
      %i = linalg.fill ins(%zero : i64) outs(%ei : tensor<6xi64>) -> tensor<6xi64>
      %0:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
          affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<6x41xf32>) outs(%v, %i : tensor<6xf32>, tensor<6xi64>) {
      ^bb0(%a: f32, %b: f32, %c: i64):
        %j = linalg.index 1 : index
        %k = arith.index_cast %j : index to i64
        %m = arith.maximumf %a, %b : f32
        %g = arith.cmpf ogt, %a, %b : f32
        %s = arith.select %g, %k, %c : i64
        linalg.yield %m, %s : f32, i64
      } -> (tensor<6xf32>, tensor<6xi64>)
      return %0#0, %0#1 : tensor<6xf32>, tensor<6xi64>
    }""",
        x,
    )
    np.testing.assert_array_equal(value, x.max(1))
    np.testing.assert_array_equal(index, x.argmax(1))


GATHER = """
    func.func @main(%table: tensor<11x9xf32>, %ids: tensor<4x3xi64>) -> tensor<4x3x9xf32> {
      %zero = arith.constant 0 : i64
      %rows = arith.constant 11 : index
      %e = tensor.empty() : tensor<4x3x9xf32>
      %0 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j)>, affine_map<(i, j, k) -> (i, j, k)>],
        iterator_types = ["parallel", "parallel", "parallel"]} ins(%ids : tensor<4x3xi64>)
        outs(%e : tensor<4x3x9xf32>) {
      ^bb0(%id: i64, %o: f32):
        %row = arith.index_cast %id : i64 to index
        %column = linalg.index 2 : index
        %below = arith.cmpi slt, %row, %rows : index
        cf.assert %below, "index must be smaller than dim size"
        %value = tensor.extract %table[%row, %column] : tensor<11x9xf32>
        linalg.yield %value : f32
      } -> tensor<4x3x9xf32>
      return %0 : tensor<4x3x9xf32>
    }"""


def test_gather(execute: Execute) -> None:
    """An embedding: a captured tensor, read at computed places."""
    table = numbers(11, 9)
    ids = np.array([[0, 10, 3], [3, 3, 1], [7, 9, 2], [5, 4, 6]])
    (got,) = execute(GATHER, table, ids)
    np.testing.assert_array_equal(got, table[ids])


def test_assertion_ends_the_run(execute: Execute) -> None:
    """A failed assertion of the program is an error of the run, with its message."""
    from hyperparallel.errors import RuntimeFailure

    with pytest.raises(RuntimeFailure, match="index must be smaller than dim size"):
        execute(GATHER, numbers(11, 9), np.full((4, 3), 11))


def test_scatter_through_a_loop(execute: Execute) -> None:
    """scf.for carries a tensor and updates it at computed places."""
    values, ids = numbers(7), np.array([2, 0, 2, 4, 4, 4, 1])
    (got,) = execute(
        """
    func.func @main(%values: tensor<7xf32>, %ids: tensor<7xi64>, %init: tensor<5xf32>) -> tensor<5xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c7 = arith.constant 7 : index
      %0 = scf.for %i = %c0 to %c7 step %c1 iter_args(%t = %init) -> tensor<5xf32> {
        %id = tensor.extract %ids[%i] : tensor<7xi64>
        %at = arith.index_cast %id : i64 to index
        %v = tensor.extract %values[%i] : tensor<7xf32>
        %old = tensor.extract %t[%at] : tensor<5xf32>
        %new = arith.addf %old, %v : f32
        %u = tensor.insert %new into %t[%at] : tensor<5xf32>
        scf.yield %u : tensor<5xf32>
      }
      return %0 : tensor<5xf32>
    }""",
        values,
        ids,
        numbers(5, seed=2),
    )
    want = numbers(5, seed=2)
    np.add.at(want, ids, values)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_branches_and_loops(execute: Execute) -> None:
    """scf.while halves until small; scf.if then picks one of two tensors."""
    text = """
    func.func @main(%x: tensor<8xf32>, %flag: tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>) {
      %c0 = arith.constant 0 : index
      %half = arith.constant 0.5 : f32
      %limit = arith.constant 0.25 : f32
      %e = tensor.empty() : tensor<8xf32>
      %w = scf.while (%t = %x) : (tensor<8xf32>) -> tensor<8xf32> {
        %first = tensor.extract %t[%c0] : tensor<8xf32>
        %size = math.absf %first : f32
        %go = arith.cmpf ogt, %size, %limit : f32
        scf.condition(%go) %t : tensor<8xf32>
      } do {
      ^bb0(%t: tensor<8xf32>):
        %h = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]} ins(%t : tensor<8xf32>) outs(%e : tensor<8xf32>) {
        ^bb0(%a: f32, %o: f32):
          %r = arith.mulf %a, %half : f32
          linalg.yield %r : f32
        } -> tensor<8xf32>
        scf.yield %h : tensor<8xf32>
      }
      %f = tensor.extract %flag[] : tensor<i1>
      %i = scf.if %f -> tensor<8xf32> {
        scf.yield %x : tensor<8xf32>
      } else {
        scf.yield %w : tensor<8xf32>
      }
      return %w, %i : tensor<8xf32>, tensor<8xf32>
    }"""
    x = numbers(8, scale=5)
    want = x.copy()
    while abs(want[0]) > 0.25:
        want = want * np.float32(0.5)
    for flag in (True, False):
        looped, picked = execute(text, x, np.array(flag))
        np.testing.assert_array_equal(looped, want)
        np.testing.assert_array_equal(picked, x if flag else want)


def test_functions_share_and_return(execute: Execute) -> None:
    """A function called twice; one that returns its argument; a value returned twice."""
    x, y = numbers(4, 6), numbers(4, 6, seed=3)
    got = execute(
        """
    func.func @main(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>)
        -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
      %0:2 = func.call @block(%x, %y) : (tensor<4x6xf32>, tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
      %1:2 = func.call @block(%0#0, %x) : (tensor<4x6xf32>, tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
      return %1#0, %1#1, %1#0, %x : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
    }
    func.func private @block(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
      %e = tensor.empty() : tensor<4x6xf32>
      %0 = linalg.sub ins(%a, %b : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
      return %0, %b : tensor<4x6xf32>, tensor<4x6xf32>
    }""",
        x,
        y,
    )
    first = x - y
    second = first - x
    for array, want in zip(got, (second, x, second, x), strict=True):
        np.testing.assert_array_equal(array, want)


def test_results_that_are_one_value(execute: Execute) -> None:
    """The same value twice, as a reshape, and computed twice; an argument twice."""
    text = """
    func.func @main(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<2x3xf32>, tensor<6xf32>, tensor<6xf32>,
                                           tensor<6xf32>) {
      %y = arith.negf %x : tensor<6xf32>
      %z = arith.negf %x : tensor<6xf32>
      %r = tensor.expand_shape %y [[0, 1]] output_shape [2, 3] : tensor<6xf32> into tensor<2x3xf32>
      return %y, %y, %r, %z, %x, %x
        : tensor<6xf32>, tensor<6xf32>, tensor<2x3xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
    }"""
    x = np.float32([1, -2, 3, -4, 5, -6])
    results = execute(text, x)
    for result, wanted in zip(results, (-x, -x, -x.reshape(2, 3), -x, x, x), strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_slices_pads_and_concatenations(execute: Execute) -> None:
    """Views and copies of parts, with strides and reversed roles."""
    x = numbers(6, 10)
    got = execute(
        """
    func.func @main(%x: tensor<6x10xf32>) -> (tensor<3x4xf32>, tensor<8x11xf32>, tensor<6x12xf32>, tensor<10x6xf32>) {
      %zero = arith.constant -1.5 : f32
      %s = tensor.extract_slice %x[1, 2] [3, 4] [2, 2] : tensor<6x10xf32> to tensor<3x4xf32>
      %p = tensor.pad %x low[2, 0] high[0, 1] {
      ^bb0(%i: index, %j: index):
        tensor.yield %zero : f32
      } : tensor<6x10xf32> to tensor<8x11xf32>
      %l = tensor.extract_slice %x[0, 8] [6, 2] [1, 1] : tensor<6x10xf32> to tensor<6x2xf32>
      %c = tensor.concat dim(1) %l, %x : (tensor<6x2xf32>, tensor<6x10xf32>) -> tensor<6x12xf32>
      %e = tensor.empty() : tensor<10x6xf32>
      %t = linalg.transpose ins(%x : tensor<6x10xf32>) outs(%e : tensor<10x6xf32>) permutation = [1, 0]
      return %s, %p, %c, %t : tensor<3x4xf32>, tensor<8x11xf32>, tensor<6x12xf32>, tensor<10x6xf32>
    }""",
        x,
    )
    np.testing.assert_array_equal(got[0], x[1:7:2, 2:10:2])
    np.testing.assert_array_equal(got[1], np.pad(x, ((2, 0), (0, 1)), constant_values=-1.5))
    np.testing.assert_array_equal(got[2], np.concatenate([x[:, 8:], x], 1))
    np.testing.assert_array_equal(got[3], x.T)


def test_large_kernels_run_in_pieces(execute: Execute) -> None:
    """Many iterations, so that several cores take part."""
    x, y = numbers(257, 1031), numbers(257, 1031, seed=1)
    text = elementwise("%m = arith.mulf %x, %y : f32 %r = math.tanh %m : f32", "257x1031", "f32", inputs=2)
    (got,) = execute(text, x, y)
    np.testing.assert_allclose(got, np.tanh(x.astype(np.float64) * y), rtol=1e-6, atol=1e-7)


def test_bfloat16_meets_every_kind_of_op(execute: Execute) -> None:
    """Constants, comparisons, selection, functions and conversions from and to integers."""
    x = numbers(129, scale=4)
    bits = (x.view(np.uint32) >> 16).astype(np.uint16)
    body = """
        %c = arith.constant 1.5 : bf16
        %big = arith.cmpf ogt, %x, %c : bf16
        %p = math.exp %x : bf16
        %m = arith.maximumf %x, %c : bf16
        %s = arith.select %big, %m, %p : bf16
        %i = arith.fptosi %x : bf16 to i32
        %f = arith.sitofp %i : i32 to bf16
        %w = arith.extf %s : bf16 to f32
        %v = arith.extf %f : bf16 to f32
        %r = arith.addf %w, %v : f32"""
    (got,) = execute(elementwise(body, "129", "bf16", result="f32"), bits)
    wide = (bits.astype(np.uint32) << 16).view(np.float32)
    want = np.where(wide > 1.5, wide, np.exp(wide)) + np.trunc(wide)
    np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-2)
