# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Local programs of single ops: executed on virtual devices, compared with the whole op element by element."""

from __future__ import annotations

import numpy as np
import pytest

from hyperparallel.errors import CompilationError, RuntimeFailure
from hyperparallel.testing import run_sharded
from hyperparallel.testing.annotated import check, expand, numbers

MESHES = [{"a": 2, "b": 2}, {"a": 4, "b": 1}, {"a": 3, "b": 2}, {"a": 1, "b": 1}]


# ----------------------------------------------------------------------------------------------------------------------
# Structured ops
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_contraction_adds_its_init_once(mesh: dict[str, int]) -> None:
    """K of 5 is padded; zeros stand for the padding of both operands; the init, not zero, is added once."""
    check(
        """
        func.func @main(%x: tensor<4x5xf32> {S(b, a)}, %w: tensor<5x3xf32> {S(a, _)},
                        %init: tensor<4x3xf32> {S(b, _)}) -> tensor<4x3xf32> {
          %p = linalg.matmul {S(b, _; sum a)} ins(%x, %w : tensor<4x5xf32>, tensor<5x3xf32>)
                 outs(%init : tensor<4x3xf32>) -> tensor<4x3xf32>
          %y = hypershard.all_reduce %p over @mesh {"a"} <sum> {S(b, _)} : tensor<4x3xf32> -> tensor<4x3xf32>
          return %y : tensor<4x3xf32>
        }""",
        [numbers([4, 5]), numbers([5, 3]), numbers([4, 3])],
        mesh,
        collectives={"all_reduce": 1} if mesh["a"] > 1 else {},
    )


REDUCTIONS = [
    ("maximumf", "max", "f32", 3.5),
    ("minimumf", "min", "f32", -0.5),
    ("addf", "sum", "f32", 10.0),
    ("mulf", "prod", "f32", 3.0),
    ("addi", "sum", "i32", 10),
    ("muli", "prod", "i64", 3),
    ("andi", "and", "i32", 0x7F0F),
    ("ori", "or", "i32", 0x100),
    ("maxsi", "max", "i32", -2),
    ("minsi", "min", "i64", 1),
]


@pytest.mark.parametrize(("op", "kind", "element", "init"), REDUCTIONS, ids=[case[0] for case in REDUCTIONS])
@pytest.mark.parametrize("rows", [3, 4, 7])
def test_reductions_of_every_kind(op: str, kind: str, element: str, init: float, rows: int) -> None:
    """The kind travels, the init counts once, padding and devices without a row count for nothing."""
    check(
        f"""
        func.func @main(%x: tensor<{rows}x4x{element}> {{S(a, _)}}) -> tensor<4x{element}> {{
          %c = arith.constant {init} : {element}
          %e = tensor.empty() : tensor<4x{element}>
          %f = linalg.fill ins(%c : {element}) outs(%e : tensor<4x{element}>) -> tensor<4x{element}>
          %p = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
                 iterator_types = ["reduction", "parallel"]}} ins(%x : tensor<{rows}x4x{element}>)
                 outs(%f : tensor<4x{element}>) attrs = {{S(_; {kind} a)}} {{
          ^bb0(%in: {element}, %out: {element}):
            %s = arith.{op} %in, %out : {element}
            linalg.yield %s : {element}
          }} -> tensor<4x{element}>
          %y = hypershard.all_reduce %p over @mesh {{"a"}} <{kind}> {{S(_)}}
                 : tensor<4x{element}> -> tensor<4x{element}>
          return %y : tensor<4x{element}>
        }}""",
        [numbers([rows, 4], {"f32": "f4", "i32": "i4", "i64": "i8"}[element])],
        {"a": 4},
        collectives={"all_reduce": 1},
    )


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_indices_are_global(mesh: dict[str, int]) -> None:
    """iota and a causal mask, both dimensions split, 5 and 7 do not divide."""
    check(
        """
        func.func @main(%x: tensor<5x7xf32> {S(a, b)}) -> (tensor<5x7xf32>, tensor<5x7xi64>) {
          %low = arith.constant -9.0 : f32
          %e = tensor.empty() {S(a, b)} : tensor<5x7xf32>
          %ei = tensor.empty() {S(a, b)} : tensor<5x7xi64>
          %m:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                 affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
                 ins(%x : tensor<5x7xf32>) outs(%e, %ei : tensor<5x7xf32>, tensor<5x7xi64>)
                 attrs = {hypershard.sharding = [S(a, b), S(a, b)]} {
          ^bb0(%in: f32, %out: f32, %outi: i64):
            %i = linalg.index 0 : index
            %j = linalg.index 1 : index
            %c10 = arith.constant 10 : index
            %t = arith.muli %i, %c10 : index
            %u = arith.addi %t, %j : index
            %v = arith.index_cast %u : index to i64
            %p = arith.cmpi sle, %j, %i : index
            %s = arith.select %p, %in, %low : f32
            linalg.yield %s, %v : f32, i64
          } -> (tensor<5x7xf32>, tensor<5x7xi64>)
          return %m#0, %m#1 : tensor<5x7xf32>, tensor<5x7xi64>
        }""",
        [numbers([5, 7])],
        mesh,
        collectives={},
        exact=True,
    )


def test_padding_never_traps() -> None:
    """Divisions of integers, positions from data and assertions on rows that are padding."""
    check(
        """
        func.func @main(%x: tensor<5xi64> {S(a)}, %d: tensor<5xi64> {S(a)}, %t: tensor<6x3xf32> {S(_, _)})
            -> (tensor<5x3xf32>, tensor<5xi64>) {
          %e = tensor.empty() {S(a, _)} : tensor<5x3xf32>
          %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>,
                 affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
                 ins(%x, %d : tensor<5xi64>, tensor<5xi64>) outs(%e : tensor<5x3xf32>) attrs = {S(a, _)} {
          ^bb0(%in: i64, %div: i64, %out: f32):
            %c6 = arith.constant 6 : i64
            %c0 = arith.constant 0 : i64
            %q = arith.remsi %in, %div : i64
            %m = arith.remsi %q, %c6 : i64
            %pos = arith.maxsi %m, %c0 : i64
            %ok = arith.cmpi slt, %in, %c6 : i64
            cf.assert %ok, "in range"
            %j = linalg.index 1 : index
            %i = arith.index_cast %in : i64 to index
            %v = tensor.extract %t[%i, %j] : tensor<6x3xf32>
            %f = arith.sitofp %pos : i64 to f32
            %s = arith.addf %v, %f : f32
            linalg.yield %s : f32
          } -> tensor<5x3xf32>
          %q = arith.divsi %x, %d {S(a)} : tensor<5xi64>
          return %r, %q : tensor<5x3xf32>, tensor<5xi64>
        }""",
        [np.array([5, 0, 3, 1, 4]), np.array([2, -3, 5, -1, 7]), numbers([6, 3])],
        {"a": 4},
        collectives={},
    )


EMBEDDING = """
func.func @main(%t: tensor<7x4xf32> {S(a, b)}, %x: tensor<5xi64> {S(_)}) -> tensor<5x4xf32> {
  %e = tensor.empty() {S(_, b)} : tensor<5x4xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
         iterator_types = ["parallel", "parallel"]} ins(%x : tensor<5xi64>) outs(%e : tensor<5x4xf32>)
         attrs = {S(_, b; sum a)} {
  ^bb0(%in: i64, %out: f32):
    %c7 = arith.constant 7 : i64
    %ok = arith.cmpi slt, %in, %c7 : i64
    cf.assert %ok, "index must be smaller than dim size"
    %i = arith.index_cast %in : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%i, %j] : tensor<7x4xf32>
    linalg.yield %v : f32
  } -> tensor<5x4xf32>
  %y = hypershard.all_reduce %p over @mesh {"a"} <sum> {S(_, b)} : tensor<5x4xf32> -> tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}"""


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_embedding_with_the_vocabulary_split(mesh: dict[str, int]) -> None:
    """Rows of other devices add nothing; the assertion is about the global index."""
    table = numbers([7, 4])
    check(EMBEDDING, [table, np.array([6, 0, 3, 3, 5])], mesh)

    axes = ", ".join(f'"{name}"={size}' for name, size in mesh.items())
    text = f"hypershard.mesh @mesh = <[{axes}]>{expand(EMBEDDING)}"
    outside = np.array([6, 0, 7, 3, 5])
    with pytest.raises(RuntimeFailure, match="smaller than dim size"):
        run_sharded(text, [table, outside], passes=["hypershard-partition-program"])


def test_reading_a_tensor_along_loops_of_one_iteration() -> None:
    """A loop of one iteration may be split: all but one device iterate over padding, at position 0."""
    check(
        """
        func.func @main(%t: tensor<1x5xf32> {S(_, b)}, %e: tensor<1x5xf32> {S(a, b)}) -> tensor<1x5xf32> {
          %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>],
                 iterator_types = ["parallel", "parallel"]} outs(%e : tensor<1x5xf32>) attrs = {S(a, b)} {
          ^bb0(%out: f32):
            %i = linalg.index 0 : index
            %j = linalg.index 1 : index
            %v = tensor.extract %t[%i, %j] : tensor<1x5xf32>
            linalg.yield %v : f32
          } -> tensor<1x5xf32>
          return %y : tensor<1x5xf32>
        }""",
        [numbers([1, 5]), numbers([1, 5], seed=1)],
        {"a": 2, "b": 2},
        collectives={},
        exact=True,
    )


def test_argmax_with_rows_split() -> None:
    """Two results, reduced together along a whole dimension; first occurrence on ties."""
    x = numbers([5, 6])
    x[2, 4] = x[2, 1] = x[2].max() + 1
    check(
        """
        func.func @main(%x: tensor<5x6xf32> {S(a, _)}) -> (tensor<5xf32>, tensor<5xi64>) {
          %low = arith.constant -1.0e30 : f32
          %c0 = arith.constant 0 : i64
          %e = tensor.empty() {S(a)} : tensor<5xf32>
          %f = linalg.fill {S(a)} ins(%low : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
          %ei = tensor.empty() {S(a)} : tensor<5xi64>
          %fi = linalg.fill {S(a)} ins(%c0 : i64) outs(%ei : tensor<5xi64>) -> tensor<5xi64>
          %m:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                 affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
                 ins(%x : tensor<5x6xf32>) outs(%f, %fi : tensor<5xf32>, tensor<5xi64>)
                 attrs = {hypershard.sharding = [S(a), S(a)]} {
          ^bb0(%in: f32, %best: f32, %at: i64):
            %j = linalg.index 1 : index
            %k = arith.index_cast %j : index to i64
            %p = arith.cmpf ogt, %in, %best : f32
            %s = arith.select %p, %in, %best : f32
            %t = arith.select %p, %k, %at : i64
            linalg.yield %s, %t : f32, i64
          } -> (tensor<5xf32>, tensor<5xi64>)
          return %m#0, %m#1 : tensor<5xf32>, tensor<5xi64>
        }""",
        [x],
        {"a": 2},
        collectives={},
        exact=True,
    )


def test_convolution_with_the_batch_split() -> None:
    """7x7, stride 2, padded by 3: no halo; channels of the result split too, and the sum over channels is partial."""
    check(
        """
        func.func @main(%x: tensor<3x4x9x9xf32> {S(a, b, _, _)}, %w: tensor<5x4x7x7xf32> {S(_, b, _, _)})
            -> tensor<3x5x5x5xf32> {
          %z = arith.constant 0.0 : f32
          %p = tensor.pad %x low[0, 0, 3, 3] high[0, 0, 3, 3] {
          ^bb0(%i: index, %j: index, %k: index, %l: index):
            tensor.yield %z : f32
          } {S(a, b, _, _)} : tensor<3x4x9x9xf32> to tensor<3x4x15x15xf32>
          %one = arith.constant 1.5 : f32
          %e = tensor.empty() {S(a, _, _, _)} : tensor<3x5x5x5xf32>
          %f = linalg.fill {S(a, _, _, _)} ins(%one : f32) outs(%e : tensor<3x5x5x5xf32>) -> tensor<3x5x5x5xf32>
          %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>,
                 S(a, _, _, _; sum b)} ins(%p, %w : tensor<3x4x15x15xf32>, tensor<5x4x7x7xf32>)
                 outs(%f : tensor<3x5x5x5xf32>) -> tensor<3x5x5x5xf32>
          %y = hypershard.all_reduce %c over @mesh {"b"} <sum> {S(a, _, _, _)}
                 : tensor<3x5x5x5xf32> -> tensor<3x5x5x5xf32>
          return %y : tensor<3x5x5x5xf32>
        }""",
        [numbers([3, 4, 9, 9]), numbers([5, 4, 7, 7]) / 8],
        {"a": 2, "b": 3},
        collectives={"all_reduce": 1},
    )


# ----------------------------------------------------------------------------------------------------------------------
# Cutting and joining
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "size", "stride"), [(0, 12, 1), (5, 9, 1), (1, 8, 3), (23, 2, 1), (2, 5, 5)])
@pytest.mark.parametrize("devices", [2, 3, 4])
def test_slice_of_a_split_dimension(offset: int, size: int, stride: int, devices: int) -> None:
    """Each device gets its block of the slice, wherever that lies."""
    check(
        f"""
        func.func @main(%x: tensor<3x25xf32> {{S(_, a)}}) -> tensor<2x{size}xf32> {{
          %s = tensor.extract_slice %x[1, {offset}] [2, {size}] [1, {stride}] {{S(_, a)}}
                 : tensor<3x25xf32> to tensor<2x{size}xf32>
          return %s : tensor<2x{size}xf32>
        }}""",
        [numbers([3, 25])],
        {"a": devices},
        collectives={"halo_exchange": 1},
        exact=True,
    )


def test_slice_that_drops_a_dimension() -> None:
    """The split dimension keeps its factor when another one is dropped."""
    check(
        """
        func.func @main(%x: tensor<3x10x4xf32> {S(_, a, b)}) -> tensor<6x4xf32> {
          %s = tensor.extract_slice %x[2, 3, 0] [1, 6, 4] [1, 1, 1] {S(a, b)} : tensor<3x10x4xf32> to tensor<6x4xf32>
          return %s : tensor<6x4xf32>
        }""",
        [numbers([3, 10, 4])],
        {"a": 2, "b": 2},
        collectives={"halo_exchange": 1},
        exact=True,
    )


@pytest.mark.parametrize(("offset", "size"), [(0, 4), (3, 5), (8, 3), (2, 1)])
@pytest.mark.parametrize("devices", [2, 3, 4])
def test_insert_into_a_split_dimension(offset: int, size: int, devices: int) -> None:
    """A source of size 1 is on every device; one dimension is cut without being split."""
    layout = "a" if size > 1 else "_"
    check(
        f"""
        func.func @main(%s: tensor<2x{size}xf32> {{S(_, {layout})}}, %d: tensor<5x11xf32> {{S(_, a)}})
            -> tensor<5x11xf32> {{
          %r = tensor.insert_slice %s into %d[1, {offset}] [2, {size}] [2, 1] {{S(_, a)}}
                 : tensor<2x{size}xf32> into tensor<5x11xf32>
          return %r : tensor<5x11xf32>
        }}""",
        [numbers([2, size]), numbers([5, 11], seed=3)],
        {"a": devices},
        collectives={"halo_exchange": 1} if size > 1 else {},
        exact=True,
    )


def test_insert_of_lower_rank() -> None:
    """The dropped dimension is the split one: one device takes the row."""
    check(
        """
        func.func @main(%s: tensor<6xf32> {S(b)}, %d: tensor<5x6xf32> {S(a, b)}) -> tensor<5x6xf32> {
          %r = tensor.insert_slice %s into %d[3, 0] [1, 6] [1, 1] {S(a, b)} : tensor<6xf32> into tensor<5x6xf32>
          return %r : tensor<5x6xf32>
        }""",
        [numbers([6]), numbers([5, 6], seed=3)],
        {"a": 2, "b": 2},
        collectives={},
        exact=True,
    )


@pytest.mark.parametrize("value", ["0.0", "-3.5", "at"])
@pytest.mark.parametrize("rows", [1, 6, 7])
def test_pad_of_a_split_dimension(value: str, rows: int) -> None:
    """A constant, and a value computed from the position; padding at the global edge only."""
    body = f"%v = arith.constant {value} : f32"
    if value == "at":
        body = """%s = arith.muli %i, %j : index
                  %t = arith.index_cast %s : index to i64
                  %v = arith.sitofp %t : i64 to f32"""
    layout = "a" if rows > 1 else "_"
    check(
        f"""
        func.func @main(%x: tensor<{rows}x3xf32> {{S({layout}, _)}}) -> tensor<{rows + 5}x7xf32> {{
          %r = tensor.pad %x low[3, 1] high[2, 3] {{
          ^bb0(%i: index, %j: index):
            {body}
            tensor.yield %v : f32
          }} {{S(a, _)}} : tensor<{rows}x3xf32> to tensor<{rows + 5}x7xf32>
          return %r : tensor<{rows + 5}x7xf32>
        }}""",
        [numbers([rows, 3])],
        {"a": 4},
        collectives={"halo_exchange": 1} if rows > 1 else {},
        exact=True,
    )


@pytest.mark.parametrize("mesh", [{"a": 4, "b": 2}, {"a": 3, "b": 1}], ids=str)
def test_concat_along_a_split_dimension(mesh: dict[str, int]) -> None:
    """4 + 1 + 7: nothing is added up over the other axis, -0.0 and NaN stay what they are."""
    x = numbers([4, 2])
    x[1, 1] = -0.0
    x[2, 0] = np.nan
    check(
        """
        func.func @main(%x: tensor<4x2xf32> {S(a, _)}, %y: tensor<1x2xf32> {S(_, _)}, %z: tensor<7x2xf32> {S(a, _)})
            -> tensor<12x2xf32> {
          %r = tensor.concat dim(0) %x, %y, %z {S(a, _)}
                 : (tensor<4x2xf32>, tensor<1x2xf32>, tensor<7x2xf32>) -> tensor<12x2xf32>
          return %r : tensor<12x2xf32>
        }""",
        [x, numbers([1, 2], seed=1), numbers([7, 2], seed=2)],
        mesh,
        collectives={"halo_exchange": 2},
        exact=True,
    )


def test_concat_along_a_whole_dimension() -> None:
    """Rows split, columns put together: nothing moves."""
    check(
        """
        func.func @main(%x: tensor<5x2xf32> {S(a, _)}, %y: tensor<5x3xf32> {S(a, _)}) -> tensor<5x5xf32> {
          %r = tensor.concat dim(1) %x, %y {S(a, _)} : (tensor<5x2xf32>, tensor<5x3xf32>) -> tensor<5x5xf32>
          return %r : tensor<5x5xf32>
        }""",
        [numbers([5, 2]), numbers([5, 3], seed=1)],
        {"a": 4},
        collectives={},
        exact=True,
    )


# ----------------------------------------------------------------------------------------------------------------------
# Values from nothing, and reshapes
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_constants_and_generated_tensors(mesh: dict[str, int]) -> None:
    """Each device makes its own part."""
    table = ", ".join(str([3 * i - 20 + j * j for j in range(5)]) for i in range(6))
    check(
        f"""
        func.func @main(%x: tensor<6x5xi32> {{S(a, b)}}) -> (tensor<6x5xi32>, tensor<6x5xi32>, tensor<6x5xi32>) {{
          %c = arith.constant {{S(a, b)}} dense<[{table}]> : tensor<6x5xi32>
          %y = arith.addi %x, %c {{S(a, b)}} : tensor<6x5xi32>
          %s = arith.constant {{S(a, b)}} dense<7> : tensor<6x5xi32>
          %z = arith.muli %y, %s {{S(a, b)}} : tensor<6x5xi32>
          %g = tensor.generate {{
          ^bb0(%i: index, %j: index):
            %t = tensor.extract %whole[%i, %j] : tensor<6x5xi32>
            %k = arith.index_cast %j : index to i32
            %u = arith.addi %t, %k : i32
            tensor.yield %u : i32
          }} {{S(a, b)}} : tensor<6x5xi32>
          return %y, %z, %g : tensor<6x5xi32>, tensor<6x5xi32>, tensor<6x5xi32>
        }}""".replace(
            "%y = arith.addi", f"%whole = arith.constant dense<[{table}]> : tensor<6x5xi32>\n%y = arith.addi"
        ),
        [numbers([6, 5], "i4")],
        mesh,
        collectives={},
        exact=True,
    )


RESHAPES = [
    # flatten on a dimension that is not the first, then split
    ("4x4x4", "_, a, _", "collapse_shape", "[[0], [1, 2]]", "", "4x16", "_, a"),
    # rows split by two axes, each goes to its own dimension
    ("16x3", "a.b, _", "expand_shape", "[[0, 1], [2]]", "output_shape [2, 8, 3] ", "2x8x3", "a, b, _"),
    # the major part does not take both axes
    ("16x3", "a.b, _", "expand_shape", "[[0, 1], [2]]", "output_shape [4, 4, 3] ", "4x4x3", "a.b, _, _"),
    ("2x8x3", "a, b, _", "collapse_shape", "[[0, 1], [2]]", "", "16x3", "a.b, _"),
    # unit dimensions, and a part that does not divide
    ("5x3", "a, b", "expand_shape", "[[0, 1], [2]]", "output_shape [1, 5, 3] ", "1x5x3", "_, a, b"),
]


@pytest.mark.parametrize(("source", "given", "op", "groups", "more", "result", "made"), RESHAPES)
def test_reshapes(source: str, given: str, op: str, groups: str, more: str, result: str, made: str) -> None:
    """The parts of a dimension keep their axes; nothing moves."""
    check(
        f"""
        func.func @main(%x: tensor<{source}xf32> {{S({given})}}) -> tensor<{result}xf32> {{
          %r = tensor.{op} %x {groups} {more}{{S({made})}} : tensor<{source}xf32> into tensor<{result}xf32>
          return %r : tensor<{result}xf32>
        }}""",
        [numbers([int(n) for n in source.split("x")])],
        {"a": 2, "b": 2},
        collectives={},
        exact=True,
    )


# ----------------------------------------------------------------------------------------------------------------------
# Collectives in global form
# ----------------------------------------------------------------------------------------------------------------------

MOVES = [
    ("a, _", "all_gather", '{"a"} dim 0', "_, _", "all_gather"),
    ("_, a.b", "all_gather", '{"b"} dim 1', "_, a", "all_gather"),
    ("_, a.b", "all_gather", '{"a", "b"} dim 1', "_, _", "all_gather"),
    ("_, _", "slice_local", '{"a"} dim 0', "a, _", None),
    ("_, a", "slice_local", '{"b"} dim 1', "_, a.b", None),
    ("_, a", "all_to_all", '{"a"} split 0 concat 1', "a, _", "all_to_all"),
    ("b, a", "all_to_all", '{"a"} split 0 concat 1', "b.a, _", "all_to_all"),
    ("_, a.b", "permute", '{"a", "b"} to {"b", "a"}', "_, b.a", "permute"),
    ("_, _; sum a", "all_reduce", '{"a"} <sum>', "_, _", "all_reduce"),
    ("_, _; sum a.b", "all_reduce", '{"b"} <sum>', "_, _; sum a", "all_reduce"),
    ("b, _; max a", "all_reduce", '{"a"} <max>', "b, _", "all_reduce"),
    ("_, _; sum a", "reduce_scatter", '{"a"} <sum> dim 0', "a, _", "reduce_scatter"),
    ("_, b; sum a", "reduce_scatter", '{"a"} <sum> dim 1', "_, b.a", "reduce_scatter"),
    ("a, _; avg b", "reduce_scatter", '{"b"} <avg> dim 1', "a, b", "reduce_scatter"),
]


@pytest.mark.parametrize("shape", [(12, 24), (7, 11), (5, 3), (1, 2)], ids=str)
@pytest.mark.parametrize("mesh", [{"a": 2, "b": 2}, {"a": 2, "b": 3}], ids=str)
@pytest.mark.parametrize(("given", "op", "how", "made", "kind"), MOVES)
def test_collectives(
    given: str, op: str, how: str, made: str, kind: str | None, mesh: dict[str, int], shape: tuple[int, int]
) -> None:
    """Whatever divides or does not: the value is the same, and its layout another."""
    rows, columns = shape
    run = check(
        f"""
        func.func @main(%x: tensor<{rows}x{columns}xf32> {{S({given})}}) -> tensor<{rows}x{columns}xf32> {{
          %y = hypershard.{op} %x over @mesh {how} {{S({made})}}
                 : tensor<{rows}x{columns}xf32> -> tensor<{rows}x{columns}xf32>
          return %y : tensor<{rows}x{columns}xf32>
        }}""",
        [numbers(shape)],
        mesh,
    )
    if shape == (12, 24):
        assert run.collectives == ({kind: 1} if kind else {})


# ----------------------------------------------------------------------------------------------------------------------
# Structure
# ----------------------------------------------------------------------------------------------------------------------


def test_loops_branches_and_calls() -> None:
    """Loop-carried values, both branches, a while loop and a called function are local."""
    check(
        """
        func.func private @scale(%x: tensor<5x3xf32> {S(a, _)}, %c: f32) -> tensor<5x3xf32> {
          %s = tensor.splat %c {S(a, _)} : tensor<5x3xf32>
          %y = arith.mulf %x, %s {S(a, _)} : tensor<5x3xf32>
          return %y : tensor<5x3xf32>
        }
        func.func @main(%x: tensor<5x3xf32> {S(a, _)}, %p: tensor<i1> {S()}) -> tensor<5x3xf32> {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c3 = arith.constant 3 : index
          %half = arith.constant -0.5 : f32
          %l = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %x) -> tensor<5x3xf32> {
            %w = func.call @scale(%v, %half) {S(a, _), hp.path = "layers.0"} : (tensor<5x3xf32>, f32) -> tensor<5x3xf32>
            %u = arith.addf %w, %x {S(a, _)} : tensor<5x3xf32>
            scf.yield %u : tensor<5x3xf32>
          } {S(a, _)}
          %q = tensor.extract %p[] : tensor<i1>
          %b = scf.if %q -> tensor<5x3xf32> {
            scf.yield %l : tensor<5x3xf32>
          } else {
            %n = arith.negf %l {S(a, _)} : tensor<5x3xf32>
            scf.yield %n : tensor<5x3xf32>
          } {S(a, _)}
          %w:2 = scf.while (%v = %b, %i = %c0) : (tensor<5x3xf32>, index) -> (tensor<5x3xf32>, index) {
            %more = arith.cmpi slt, %i, %c3 : index
            scf.condition(%more) %v, %i : tensor<5x3xf32>, index
          } do {
          ^bb0(%v: tensor<5x3xf32>, %i: index):
            %t = math.tanh %v {S(a, _)} : tensor<5x3xf32>
            %j = arith.addi %i, %c1 : index
            scf.yield %t, %j : tensor<5x3xf32>, index
          } attributes {hypershard.sharding = [S(a, _), unit]}
          return %w#0 : tensor<5x3xf32>
        }""",
        [numbers([5, 3]), np.array(False)],
        {"a": 2},
        collectives={},
    )


def test_manual_region() -> None:
    """The body is the program of one device, collectives and all."""
    check_manual = """
        hypershard.mesh @mesh = <["a"=2]>
        func.func @main(%x: tensor<4x3xf32> {S(a, _)}) -> tensor<4x3xf32> {
          %y = hypershard.manual (%x) in [S(a, _)] out [S(_, _)] {
          ^bb0(%l: tensor<2x3xf32>):
            %n = arith.negf %l : tensor<2x3xf32>
            %g = hypershard.all_gather %n over @mesh {"a"} dim 0 : tensor<2x3xf32> -> tensor<4x3xf32>
            hypershard.return %g : tensor<4x3xf32>
          } {S(_, _)} : (tensor<4x3xf32>) -> tensor<4x3xf32>
          return %y : tensor<4x3xf32>
        }"""

    x = numbers([4, 3])
    run = run_sharded(expand(check_manual), [x], passes=["hypershard-partition-program"])
    np.testing.assert_array_equal(run.results[0], -x)
    assert run.collectives == {"all_gather": 1}


def test_what_is_refused_has_a_place() -> None:
    """An error names the op and what to run first."""

    text = expand("""
        hypershard.mesh @mesh = <["a"=2]>
        func.func @main(%x: tensor<4x3xf32> {S(a, _)}) -> tensor<4x3xf32> {
          %y = arith.negf %x {S(_, a)} : tensor<4x3xf32>
          return %y : tensor<4x3xf32>
        }""")
    with pytest.raises(CompilationError, match="insert-reshards"):
        run_sharded(text, [numbers([4, 3])], passes=["hypershard-partition-program"])
