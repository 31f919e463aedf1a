# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases that break other systems, each through the whole pipeline, executed on virtual devices.

Every program is run unsplit and split, with hostile padding, and compared element by element; its collectives are
counted. It runs in the interpreter, which is strict, and compiled, as users run it.
S(d)@a means that dimension d is split over axis a.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from hyperparallel.errors import RuntimeFailure
from hyperparallel.testing import Executor, Padding, ShardedRun, Sharding, run_sharded, run_unsharded
from hyperparallel.testing.annotated import numbers

Array = np.ndarray[Any, Any]


def check(
    text: str,
    inputs: Sequence[Array],
    mesh: Mapping[str, int],
    arguments: Sequence[Sharding],
    results: Sequence[Sharding] | None = None,
    *,
    collectives: Mapping[str, int] | None = None,
    exact: bool = False,
) -> ShardedRun:
    """Compares the split program with the unsplit one, whatever stands in the padding."""
    wanted = run_unsharded(text, inputs)
    runs = [
        run_sharded(text, inputs, mesh, arguments, results, executor=executor, padding=padding)
        for executor, padding in (
            (Executor.REFERENCE, Padding.LARGE),
            (Executor.REFERENCE, Padding.ZERO),
            (Executor.RUNTIME, Padding.LARGE),
        )
    ]
    for run in runs:
        for whole, result in zip(wanted, run.results, strict=True):
            assert whole.shape == result.shape
            assert whole.dtype == result.dtype
            if exact:
                assert whole.tobytes() == result.tobytes(), run.program
            else:
                np.testing.assert_allclose(result, whole, rtol=2e-5, atol=2e-5, err_msg=run.program)
        if collectives is not None:
            assert run.collectives == dict(collectives), run.program
    return runs[0]


def filled(name: str, shape: str, value: str = "0.0", element: str = "f32") -> str:
    """A tensor with one value everywhere."""
    kind = f"tensor<{shape}{'x' if shape else ''}{element}>"
    return f"""
      %{name}_c = arith.constant {value} : {element}
      %{name}_e = tensor.empty() : {kind}
      %{name} = linalg.fill ins(%{name}_c : {element}) outs(%{name}_e : {kind}) -> {kind}"""


def matmul(name: str, lhs: str, rhs: str, m: int, k: int, n: int, init: str | None = None) -> str:
    """%name = %lhs * %rhs, or added to %init."""
    zero = "" if init else filled(f"{name}_z", f"{m}x{n}")
    return f"""{zero}
      %{name} = linalg.matmul ins(%{lhs}, %{rhs} : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>)
        outs(%{init or name + "_z"} : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>"""


def unary(name: str, op: str, value: str, shape: str) -> str:
    """An elementwise op as a generic."""
    kind = f"tensor<{shape}xf32>"
    rank = shape.count("x") + 1
    dims = ", ".join(f"d{i}" for i in range(rank))
    identity = f"affine_map<({dims}) -> ({dims})>"
    parallel = ", ".join(['"parallel"'] * rank)
    return f"""
      %{name}_e = tensor.empty() : {kind}
      %{name} = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = [{parallel}]}}
        ins(%{value} : {kind}) outs(%{name}_e : {kind}) {{
      ^bb0(%in: f32, %out: f32):
        {op}
        linalg.yield %r : f32
      }} -> {kind}"""


RELU = "%z = arith.constant 0.0 : f32\n%r = arith.maximumf %in, %z : f32"
EXP = "%r = math.exp %in : f32"


def reduction(
    name: str, value: str, rows: int, columns: int, init: str, op: str = "arith.addf", kind: str = "f32"
) -> str:
    """Reduces the rows of a matrix: tensor<columns>."""
    return f"""
      %{name} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
        iterator_types = ["reduction", "parallel"]}} ins(%{value} : tensor<{rows}x{columns}x{kind}>)
        outs(%{init} : tensor<{columns}x{kind}>) {{
      ^bb0(%in: {kind}, %out: {kind}):
        %s = {op} %in, %out : {kind}
        linalg.yield %s : {kind}
      }} -> tensor<{columns}x{kind}>"""


# ----------------------------------------------------------------------------------------------------------------------
# Shapes and divisibility
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("devices", [2, 4])
def test_case_01_mean_over_rows_that_do_not_divide(devices: int) -> None:
    """The true mean; no NaN on the device that has no row."""
    text = f"""
    func.func @main(%x: tensor<3x4xf32>) -> tensor<4xf32> {{
      {filled("z", "4")}{reduction("s", "x", 3, 4, "z")}
      {unary("m", "%c = arith.constant 3.0 : f32" + chr(10) + "%r = arith.divf %in, %c : f32", "s", "4")}
      return %m : tensor<4xf32>
    }}"""
    run = check(text, [numbers([3, 4])], {"a": devices}, [[["a"], []]], [[[]]])
    assert all(np.isfinite(local[0]).all() for local in run.per_device)


def test_case_02_rows_that_do_not_divide_are_padded() -> None:
    """17 rows on 8 devices: 3 on each, never all 17."""
    text = f"""
    func.func @main(%x: tensor<17x16xf32>, %w: tensor<16x5xf32>) -> tensor<17x5xf32> {{
      {unary("r", RELU, "x", "17x16")}{matmul("y", "r", "w", 17, 16, 5)}
      return %y : tensor<17x5xf32>
    }}"""
    run = check(text, [numbers([17, 16]), numbers([16, 5])], {"a": 8}, [[["a"], []], None], collectives={})
    assert run.per_device[0][0].shape == (3, 5)


@pytest.mark.parametrize("rows", [0, 1])
def test_case_03_dimension_of_size_one_or_zero(rows: int) -> None:
    """As if it were whole; the result's shape is what it was."""
    text = f"""
    func.func @main(%x: tensor<{rows}x4xf32>) -> tensor<{rows}x4xf32> {{
      {unary("y", EXP, "x", f"{rows}x4")}
      return %y : tensor<{rows}x4xf32>
    }}"""
    check(text, [numbers([rows, 4])], {"a": 2}, [[["a"], []]])
    check(text, [numbers([rows, 4])], {"a": 2}, [None], [[["a"], []]])


@pytest.mark.parametrize("mesh", [{"a": 1, "b": 8}, {"a": 1, "b": 1}, {}], ids=str)
def test_case_04_meshes_with_one_device_along_an_axis(mesh: dict[str, int]) -> None:
    """The result is the same, and nothing moves."""
    text = f"""
    func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {{
      {matmul("y", "x", "w", 8, 16, 4)}
      return %y : tensor<8x4xf32>
    }}"""
    layout: list[Sharding] = [[["b"], ["a"]], [["a"], []]] if mesh else [[[], []], None]
    check(text, [numbers([8, 16]), numbers([16, 4])], mesh, layout, collectives={})


def test_case_05_rows_over_both_axes_viewed_as_more_dimensions() -> None:
    """16x3 viewed as 2x8x3: each axis goes to its part, nothing moves."""
    text = """
    func.func @main(%x: tensor<16x3xf32>) -> tensor<2x8x3xf32> {
      %y = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 8, 3] : tensor<16x3xf32> into tensor<2x8x3xf32>
      return %y : tensor<2x8x3xf32>
    }"""
    check(text, [numbers([16, 3])], {"a": 2, "b": 2}, [[["a", "b"], []]], collectives={}, exact=True)


# ----------------------------------------------------------------------------------------------------------------------
# Reshape
# ----------------------------------------------------------------------------------------------------------------------


def test_case_06_flatten_on_a_dimension_that_is_not_the_first() -> None:
    """4x4x4, S(1)@a, viewed 8x8."""
    text = """
    func.func @main(%x: tensor<4x4x4xf32>) -> tensor<8x8xf32> {
      %f = tensor.collapse_shape %x [[0, 1, 2]] : tensor<4x4x4xf32> into tensor<64xf32>
      %y = tensor.expand_shape %f [[0, 1]] output_shape [8, 8] : tensor<64xf32> into tensor<8x8xf32>
      return %y : tensor<8x8xf32>
    }"""
    check(text, [numbers([4, 4, 4])], {"a": 2}, [[[], ["a"], []]], exact=True)


def test_case_07_flatten_with_the_minor_dimension_split() -> None:
    """2x8, S(1)@a, flattened to 16."""
    text = """
    func.func @main(%x: tensor<2x8xf32>) -> tensor<16xf32> {
      %y = tensor.collapse_shape %x [[0, 1]] : tensor<2x8xf32> into tensor<16xf32>
      return %y : tensor<16xf32>
    }"""
    check(text, [numbers([2, 8])], {"a": 4}, [[[], ["a"]]], exact=True)
    check(text, [numbers([2, 8])], {"a": 4}, [[[], ["a"]]], [[["a"]]], exact=True)


# ----------------------------------------------------------------------------------------------------------------------
# Partial sums
# ----------------------------------------------------------------------------------------------------------------------


def test_case_08_constant_after_a_sum() -> None:
    """Ten is added once. (Rows of this length are cheaper to reduce than to gather.)"""
    text = f"""
    func.func @main(%x: tensor<63x8192xf32>) -> tensor<8192xf32> {{
      {filled("z", "8192")}{reduction("s", "x", 63, 8192, "z")}
      {unary("y", "%c = arith.constant 10.0 : f32" + chr(10) + "%r = arith.addf %in, %c : f32", "s", "8192")}
      return %y : tensor<8192xf32>
    }}"""
    check(text, [numbers([63, 8192])], {"a": 2}, [[["a"], []]], [[[]]], collectives={"all_reduce": 1})


AFTER = {
    "relu": unary("y", RELU, "p", "4x3"),
    "exp": unary("y", EXP, "p", "4x3"),
    "max": filled("l", "3", "-1.0e30") + reduction("y", "p", 4, 3, "l", "arith.maximumf"),
    "norm": unary("q", "%r = arith.mulf %in, %in : f32", "p", "4x3") + filled("l", "3") + reduction("t", "q", 4, 3, "l")
    + unary("y", "%r = math.sqrt %in : f32", "t", "3"),
}  # fmt: skip


@pytest.mark.parametrize("after", list(AFTER))
def test_case_09_what_is_not_linear_comes_after_the_reduction(after: str) -> None:
    """relu, exp, max and norm of a K-split matmul are those of the sum."""
    kind = "tensor<4x3xf32>" if after in ("relu", "exp") else "tensor<3xf32>"
    text = f"""
    func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x3xf32>) -> {kind} {{
      {matmul("p", "x", "w", 4, 8, 3)}{AFTER[after]}
      return %y : {kind}
    }}"""
    check(text, [numbers([4, 8]), numbers([8, 3])], {"a": 2}, [[[], ["a"]], [["a"], []]], collectives={"all_reduce": 1})


@pytest.mark.parametrize("inner", [8, 6])
def test_case_10_contraction_over_two_axes(inner: int) -> None:
    """Partial over both, one reduction."""
    text = f"""
    func.func @main(%x: tensor<4x{inner}xf32>, %w: tensor<{inner}x3xf32>) -> tensor<4x3xf32> {{
      {matmul("p", "x", "w", 4, inner, 3)}
      return %p : tensor<4x3xf32>
    }}"""
    arguments: list[Sharding] = [[[], ["a", "b"]], [["a", "b"], []]]
    inputs = [numbers([4, inner]), numbers([inner, 3])]
    check(text, inputs, {"a": 2, "b": 2}, arguments, [[[], []]], collectives={"all_reduce": 1})


def test_case_11_init_of_a_split_contraction() -> None:
    """The init is added once."""
    text = f"""
    func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x3xf32>, %i: tensor<4x3xf32>) -> tensor<4x3xf32> {{
      {matmul("p", "x", "w", 4, 8, 3, init="i")}
      return %p : tensor<4x3xf32>
    }}"""
    inputs = [numbers([4, 8]), numbers([8, 3]), numbers([4, 3])]
    check(text, inputs, {"a": 4}, [[[], ["a"]], [["a"], []], None], collectives={"all_reduce": 1})


@pytest.mark.parametrize(
    ("op", "element", "value"),
    [("arith.maximumf", "f32", "1.25"), ("arith.minimumf", "f32", "-0.75"), ("arith.andi", "i32", "32527"),
     ("arith.ori", "i32", "64"), ("arith.mulf", "f32", "-2.0"), ("arith.maxsi", "i64", "3")],
)  # fmt: skip
def test_case_12_the_kind_of_a_reduction_travels(op: str, element: str, value: str) -> None:
    """An init that is no identity counts once; nothing but sums is summed."""
    text = f"""
    func.func @main(%x: tensor<67x8192x{element}>) -> tensor<8192x{element}> {{
      {filled("z", "8192", value, element)}{reduction("s", "x", 67, 8192, "z", op, element)}
      return %s : tensor<8192x{element}>
    }}"""
    dtype = {"f32": "f4", "i32": "i4", "i64": "i8"}[element]
    check(text, [numbers([67, 8192], dtype)], {"a": 4}, [[["a"], []]], [[[]]], collectives={"all_reduce": 1})


# ----------------------------------------------------------------------------------------------------------------------
# Index-dependent
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mesh", [{"a": 2, "b": 2}, {"a": 3, "b": 2}], ids=str)
def test_case_13_indices_are_global(mesh: dict[str, int]) -> None:
    """iota, arange and a causal mask."""
    text = """
    func.func @main(%x: tensor<6x6xf32>) -> (tensor<6x6xf32>, tensor<6xi64>) {
      %e = tensor.empty() : tensor<6x6xf32>
      %m = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]} ins(%x : tensor<6x6xf32>) outs(%e : tensor<6x6xf32>) {
      ^bb0(%in: f32, %out: f32):
        %low = arith.constant -9.0 : f32
        %i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %p = arith.cmpi sle, %j, %i : index
        %s = arith.select %p, %in, %low : f32
        linalg.yield %s : f32
      } -> tensor<6x6xf32>
      %ei = tensor.empty() : tensor<6xi64>
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        outs(%ei : tensor<6xi64>) {
      ^bb0(%out: i64):
        %i = linalg.index 0 : index
        %v = arith.index_cast %i : index to i64
        linalg.yield %v : i64
      } -> tensor<6xi64>
      return %m, %r : tensor<6x6xf32>, tensor<6xi64>
    }"""
    run = check(text, [numbers([6, 6])], mesh, [[["a"], ["b"]]], [[["a"], ["b"]], [["a"]]], collectives={}, exact=True)
    assert run.per_device[0][1].shape == (6 // mesh["a"],)


def test_case_14_argmax_along_the_split_dimension() -> None:
    """Global index, first occurrence on ties."""
    x = numbers([8, 3])
    x[6] = x[1] = x.max() + 1
    text = f"""
    func.func @main(%x: tensor<8x3xf32>) -> (tensor<3xf32>, tensor<3xi64>) {{
      {filled("l", "3", "-1.0e30")}{filled("k", "3", "0", "i64")}
      %m:2 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
        affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}} ins(%x : tensor<8x3xf32>)
        outs(%l, %k : tensor<3xf32>, tensor<3xi64>) {{
      ^bb0(%in: f32, %best: f32, %at: i64):
        %i = linalg.index 0 : index
        %n = arith.index_cast %i : index to i64
        %p = arith.cmpf ogt, %in, %best : f32
        %s = arith.select %p, %in, %best : f32
        %t = arith.select %p, %n, %at : i64
        linalg.yield %s, %t : f32, i64
      }} -> (tensor<3xf32>, tensor<3xi64>)
      return %m#0, %m#1 : tensor<3xf32>, tensor<3xi64>
    }}"""
    run = check(text, [x], {"a": 4}, [[["a"], []]], exact=True)
    assert run.results[1].tolist() == [1, 1, 1]


EMBEDDING = """
func.func @main(%t: tensor<20002x64xf32>, %x: tensor<2x3xi64>) -> tensor<2x3x64xf32> {
  %e = tensor.empty() : tensor<2x3x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j)>, affine_map<(i, j, k) -> (i, j, k)>],
    iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x3xi64>) outs(%e : tensor<2x3x64xf32>) {
  ^bb0(%in: i64, %out: f32):
    %n = arith.constant 20002 : i64
    %ok = arith.cmpi slt, %in, %n : i64
    cf.assert %ok, "index must be smaller than dim size"
    %i = arith.index_cast %in : i64 to index
    %k = linalg.index 2 : index
    %v = tensor.extract %t[%i, %k] : tensor<20002x64xf32>
    linalg.yield %v : f32
  } -> tensor<2x3x64xf32>
  return %y : tensor<2x3x64xf32>
}"""


@pytest.mark.parametrize("devices", [2, 4])
def test_case_16_embedding_with_the_vocabulary_split(devices: int) -> None:
    """Rows of other devices add nothing; out of range is what it was; the table is not gathered."""
    table = numbers([20002, 64])
    arguments: list[Sharding] = [[["a"], []], None]
    result: list[Sharding] = [[[], [], []]]
    inside = np.array([[20001, 0, 4], [15001, 10000, 4]])
    check(EMBEDDING, [table, inside], {"a": devices}, arguments, result, collectives={"all_reduce": 1})
    outside = np.array([[9, 0, 20002], [4, 7, 2]])
    with pytest.raises(RuntimeFailure, match="smaller than dim size"):
        run_unsharded(EMBEDDING, [table, outside])
    with pytest.raises(RuntimeFailure, match="smaller than dim size"):
        run_sharded(EMBEDDING, [table, outside], {"a": devices}, arguments, result)


# ----------------------------------------------------------------------------------------------------------------------
# Data movement
# ----------------------------------------------------------------------------------------------------------------------


def test_case_19_slices_of_a_split_dimension() -> None:
    """Each device holds its part of the slice: [0:4] of 48, and the chunks of 30720 in 12."""
    text = """
    func.func @main(%x: tensor<2x48xf32>) -> tensor<2x4xf32> {
      %s = tensor.extract_slice %x[0, 0] [2, 4] [1, 1] : tensor<2x48xf32> to tensor<2x4xf32>
      return %s : tensor<2x4xf32>
    }"""
    run = check(text, [numbers([2, 48])], {"a": 4}, [[[], ["a"]]], [[[], ["a"]]], exact=True)
    assert run.per_device[3][0].shape == (2, 1)
    chunks = "\n".join(
        f"%s{i} = tensor.extract_slice %x[{2560 * i}] [2560] [1] : tensor<30720xf32> to tensor<2560xf32>"
        for i in range(12)
    )
    names = ", ".join(f"%s{i}" for i in range(12))
    kinds = ", ".join(["tensor<2560xf32>"] * 12)
    text = f"func.func @main(%x: tensor<30720xf32>) -> ({kinds}) {{\n{chunks}\nreturn {names} : {kinds}\n}}"
    run = check(text, [numbers([30720])], {"a": 4}, [[["a"]]], [[["a"]]] * 12, exact=True)
    assert all(part.shape == (640,) for part in run.per_device[2])


def test_case_20_concat_along_the_split_dimension() -> None:
    """4 + 12 on a mesh (4, 2): no doubling over the other axis."""
    text = """
    func.func @main(%x: tensor<4x3xf32>, %y: tensor<12x3xf32>) -> tensor<16x3xf32> {
      %r = tensor.concat dim(0) %x, %y : (tensor<4x3xf32>, tensor<12x3xf32>) -> tensor<16x3xf32>
      return %r : tensor<16x3xf32>
    }"""
    inputs = [numbers([4, 3]), numbers([12, 3], seed=5)]
    check(text, inputs, {"a": 4, "b": 2}, [[["a"], []], [["a"], []]], [[["a"], []]], exact=True)


def test_case_21_constants() -> None:
    """Each device has its own part; two uses that are split differently need no reshard."""
    text = """
    func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
      %c = arith.constant dense<[VALUES]> : tensor<64xf32>
      %u = arith.addf %x, %c : tensor<64xf32>
      %v = arith.mulf %y, %c : tensor<64xf32>
      return %u, %v : tensor<64xf32>, tensor<64xf32>
    }""".replace("VALUES", ", ".join(f"{i}.0" for i in range(64)))
    inputs = [numbers([64]), numbers([64], seed=2)]
    arguments: list[Sharding] = [[["a"]], [["b"]]]
    run = check(text, inputs, {"a": 2, "b": 4}, arguments, arguments, collectives={}, exact=True)
    assert [part.shape for part in run.per_device[0]] == [(32,), (16,)]


# ----------------------------------------------------------------------------------------------------------------------
# Convolution
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [4, 3])
def test_case_22_convolution_with_the_batch_split(batch: int) -> None:
    """7x7, stride 2, padded by 3: no halo, no restriction."""
    text = f"""
    func.func @main(%x: tensor<{batch}x2x9x9xf32>, %w: tensor<3x2x7x7xf32>) -> tensor<{batch}x3x5x5xf32> {{
      %z = arith.constant 0.0 : f32
      %p = tensor.pad %x low[0, 0, 3, 3] high[0, 0, 3, 3] {{
      ^bb0(%i: index, %j: index, %k: index, %l: index):
        tensor.yield %z : f32
      }} : tensor<{batch}x2x9x9xf32> to tensor<{batch}x2x15x15xf32>
      {filled("f", f"{batch}x3x5x5", "0.5")}
      %y = linalg.conv_2d_nchw_fchw {{dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}}
        ins(%p, %w : tensor<{batch}x2x15x15xf32>, tensor<3x2x7x7xf32>)
        outs(%f : tensor<{batch}x3x5x5xf32>) -> tensor<{batch}x3x5x5xf32>
      return %y : tensor<{batch}x3x5x5xf32>
    }}"""
    inputs = [numbers([batch, 2, 9, 9]), numbers([3, 2, 7, 7]) / 8]
    run = check(text, inputs, {"a": 2}, [[["a"], [], [], []], None], collectives={})
    assert run.per_device[0][0].shape == (2, 3, 5, 5)


# ----------------------------------------------------------------------------------------------------------------------
# Propagation and resharding
# ----------------------------------------------------------------------------------------------------------------------


def test_case_24_closed_dimensions_stay_whole() -> None:
    """[?, closed, "a"]: the closed dimension is not split although the other operand is split there."""
    text = """
    func.func @main(%x: tensor<4x4x4xf32>, %y: tensor<4x4x4xf32>) -> tensor<4x4x4xf32> {
      %r = arith.addf %x, %y : tensor<4x4x4xf32>
      return %r : tensor<4x4x4xf32>
    }"""
    arguments: list[Sharding] = ['[{?}, {}, {"a"}]', '[{"b", ?}, {?}, {?}]']
    run = check(text, [numbers([4, 4, 4]), numbers([4, 4, 4], seed=1)], {"a": 2, "b": 2}, arguments, collectives={})
    assert run.per_device[0][0].shape == (2, 4, 2)


IDENTITY = "func.func @main(%x: tensor<{0}xf32>) -> tensor<{0}xf32> {{ return %x : tensor<{0}xf32> }}"


def test_case_25_one_permute_one_all_to_all() -> None:
    """Axis order swapped in one dimension; a split moved from one dimension to another."""
    text = IDENTITY.format("8x8x8")
    before: Sharding = [[], ["a", "b"], []]
    x = numbers([8, 8, 8])
    mesh = {"a": 2, "b": 4}
    check(text, [x], mesh, [before], [[[], ["b", "a"], []]], collectives={"permute": 1}, exact=True)
    check(text, [x], mesh, [before], [[[], ["a"], ["b"]]], collectives={"all_to_all": 1}, exact=True)


def layouts(axes: Sequence[str], rank: int) -> list[list[list[str]]]:
    """Every way to split a tensor over any of the axes, in any order."""
    found: list[list[list[str]]] = []
    for order in itertools.permutations(axes):
        for places in itertools.product(range(rank + 1), repeat=len(axes)):
            layout = [[axis for axis, place in zip(order, places, strict=True) if place == dim] for dim in range(rank)]
            if layout not in found:
                found.append(layout)
    return found


@pytest.mark.parametrize("mesh", [{"dp": 2, "tp": 4}, {"dp": 2, "tp": 3}], ids=str)
@pytest.mark.parametrize("shape", [(8, 16), (7, 5)], ids=str)
def test_case_26_every_pair_of_layouts(mesh: dict[str, int], shape: tuple[int, int]) -> None:
    """From every layout to every other, in one program."""
    pairs = list(itertools.product(layouts(list(mesh), 2), repeat=2))
    kind = f"tensor<{shape[0]}x{shape[1]}xf32>"
    names = [f"%x{i}" for i in range(len(pairs))]
    arguments, kinds = ", ".join(f"{name}: {kind}" for name in names), ", ".join([kind] * len(pairs))
    text = f"func.func @main({arguments}) -> ({kinds}) {{ return {', '.join(names)} : {kinds} }}"
    inputs = [numbers(shape, seed=i) for i in range(len(pairs))]
    run = run_sharded(text, inputs, mesh, [pair[0] for pair in pairs], [pair[1] for pair in pairs])
    for value, result, pair in zip(inputs, run.results, pairs, strict=True):
        np.testing.assert_array_equal(result, value, err_msg=str(pair))


@pytest.mark.parametrize(("rows", "columns"), [(4, 16), (16, 4)])
def test_case_27_rows_and_columns_on_one_axis(rows: int, columns: int) -> None:
    """Exactly one operand is gathered: the smaller."""
    text = f"""
    func.func @main(%x: tensor<{rows}x8xf32>, %w: tensor<8x{columns}xf32>) -> tensor<{rows}x{columns}xf32> {{
      {matmul("y", "x", "w", rows, 8, columns)}
      return %y : tensor<{rows}x{columns}xf32>
    }}"""
    inputs = [numbers([rows, 8]), numbers([8, columns])]
    run = check(text, inputs, {"a": 4}, [[["a"], []], [[], ["a"]]], collectives={"all_gather": 1})
    assert run.bytes_moved == 4 * 8 * 4 * 3 // 4


def test_case_28_two_layers_with_only_the_batch_annotated() -> None:
    """No collective."""
    text = f"""
    func.func @main(%x: tensor<8x6xf32>, %w1: tensor<6x10xf32>, %w2: tensor<10x3xf32>) -> tensor<8x3xf32> {{
      {matmul("h", "x", "w1", 8, 6, 10)}{unary("r", RELU, "h", "8x10")}{matmul("y", "r", "w2", 8, 10, 3)}
      return %y : tensor<8x3xf32>
    }}"""
    inputs = [numbers([8, 6]), numbers([6, 10]), numbers([10, 3])]
    run = check(text, inputs, {"a": 4, "b": 2}, [[["a"], []], None, None], collectives={})
    assert run.per_device[0][0].shape == (2, 3)


@pytest.mark.parametrize("inside", [[["a"], []], [[], ["a"]], [["a"], ["b"]]])
def test_case_29_loop_whose_body_wants_another_sharding(inside: list[list[str]]) -> None:
    """One sharding for init, block argument, yield and result; the body may ask for another one."""
    dims = ", ".join("{" + ", ".join(f'"{axis}"' for axis in axes) + "}" for axes in inside)
    text = f"""
    hypershard.mesh @mesh = <["a"=2, "b"=2]>
    func.func @main(%x: tensor<4x6xf32> {{hypershard.sharding = #hypershard.sharding<@mesh, [{{"a"}}, {{}}]>}})
        -> tensor<4x6xf32> {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %x) -> (tensor<4x6xf32>) {{
        %w = hypershard.constraint %v <@mesh, [{dims}]> : tensor<4x6xf32>
        %t = math.tanh %w : tensor<4x6xf32>
        %u = arith.addf %t, %x : tensor<4x6xf32>
        scf.yield %u : tensor<4x6xf32>
      }}
      return %r : tensor<4x6xf32>
    }}"""
    x = numbers([4, 6])
    wanted = run_unsharded(text, [x])[0]
    run = run_sharded(text, [x])
    np.testing.assert_allclose(run.results[0], wanted, rtol=1e-5, atol=1e-6)
    if inside == [["a"], []]:
        assert run.collectives == {}


def test_case_30_reduce_scatter() -> None:
    """A contraction split on both sides, its result pinned split; and a partial argument wanted split."""
    text = f"""
    func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {{
      {matmul("p", "x", "w", 8, 16, 4)}
      return %p : tensor<8x4xf32>
    }}"""
    inputs = [numbers([8, 16]), numbers([16, 4])]
    arguments: list[Sharding] = [[[], ["a"]], [["a"], []]]
    check(text, inputs, {"a": 4}, arguments, [[["a"], []]], collectives={"reduce_scatter": 1})
    check(
        IDENTITY.format("8x4"),
        [numbers([8, 4])],
        {"a": 4},
        ['[{}, {}], partial=<sum {"a"}>'],
        [[["a"], []]],
        collectives={"reduce_scatter": 1},
    )
