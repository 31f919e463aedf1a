# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Embeddings split along the vocabulary, their backward, and slices from computed places: cases 16 to 18, executed on
virtual devices.
"""

from __future__ import annotations

import numpy as np
import pytest

from hyperparallel.testing import Executor, Padding, Sharding, run_sharded, run_unsharded
from hyperparallel.testing.annotated import numbers

TOKENS = np.array([3, 0, 61, 3, 33, 3, 61], dtype=np.int64)
"""Rows that repeat, out of 64."""

EMBEDDING = """
#n = affine_map<(n, w) -> (n)>
#nw = affine_map<(n, w) -> (n, w)>
func.func @main(%table: tensor<4096x256xf32>, %tokens: tensor<7xi64>) -> tensor<7x256xf32> {
  %e = tensor.empty() : tensor<7x256xf32>
  %r = linalg.generic {indexing_maps = [#n, #nw], iterator_types = ["parallel", "parallel"]}
      ins(%tokens : tensor<7xi64>) outs(%e : tensor<7x256xf32>) {
  ^bb0(%t: i64, %o: f32):
    %row = arith.index_cast %t : i64 to index
    %w = linalg.index 1 : index
    %v = tensor.extract %table[%row, %w] : tensor<4096x256xf32>
    linalg.yield %v : f32
  } -> tensor<7x256xf32>
  return %r : tensor<7x256xf32>
}"""

BACKWARD = """
func.func @main(%rows: tensor<7x256xf32>, %tokens: tensor<7xi64>) -> tensor<64x256xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x256xf32>
  %r = indexing.scatter_add %rows at %tokens into %zero : tensor<7x256xf32>, tensor<7xi64> into tensor<64x256xf32>
  return %r : tensor<64x256xf32>
}"""

ADDED = """
func.func @main(%rows: tensor<7x256xf32>, %tokens: tensor<7xi64>, %table: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %r = indexing.scatter_add %rows at %tokens into %table : tensor<7x256xf32>, tensor<7xi64> into tensor<64x256xf32>
  return %r : tensor<64x256xf32>
}"""

_CLAMPED = """
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %i = tensor.extract %start[] : tensor<i64>
  %wanted = arith.index_cast %i : i64 to index
  %high = arith.minsi %wanted, %two : index
  %first = arith.maxsi %high, %zero : index"""
"""The first of 6 columns out of 8, from where they end inside."""

SLICES = {
    "taken out": f"""
func.func @main(%x: tensor<2x8xf32>, %start: tensor<i64>) -> tensor<2x6xf32> {{{_CLAMPED}
  %r = tensor.extract_slice %x[0, %first] [2, 6] [1, 1] : tensor<2x8xf32> to tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}}""",
    "looked up": f"""
#ij = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<2x8xf32>, %start: tensor<i64>) -> tensor<2x6xf32> {{{_CLAMPED}
  %e = tensor.empty() : tensor<2x6xf32>
  %r = linalg.generic {{indexing_maps = [#ij], iterator_types = ["parallel", "parallel"]}} outs(%e : tensor<2x6xf32>) {{
  ^bb0(%o: f32):
    %row = linalg.index 0 : index
    %j = linalg.index 1 : index
    %column = arith.addi %first, %j : index
    %v = tensor.extract %x[%row, %column] : tensor<2x8xf32>
    linalg.yield %v : f32
  }} -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}}""",
}

EXECUTIONS = (
    (Executor.REFERENCE, Padding.LARGE),
    (Executor.REFERENCE, Padding.ZERO),
    (Executor.RUNTIME, Padding.LARGE),
)


@pytest.mark.parametrize("shards", [2, 3])
def test_case_16_embedding_with_the_vocabulary_split(shards: int) -> None:
    """Every row comes from the one shard that has it: zeros of the others, and one sum."""
    inputs = [numbers([4096, 256]), TOKENS]
    (wanted,) = run_unsharded(EMBEDDING, inputs)
    layout: list[Sharding] = [[["a"], []], None]
    for executor, padding in EXECUTIONS:
        run = run_sharded(EMBEDDING, inputs, {"a": shards}, layout, executor=executor, padding=padding)
        assert run.results[0].tobytes() == wanted.tobytes()
        assert run.collectives == {"all_reduce": 1}


@pytest.mark.parametrize("tokens", [2, 3], ids=lambda n: f"tokens over {n}")
def test_case_17_backward_with_the_tokens_split(tokens: int) -> None:
    """Each device has a sum of its tokens, all rows; they are added up once. Padding adds to no row."""
    inputs = [numbers([7, 256]), TOKENS]
    (wanted,) = run_unsharded(BACKWARD, inputs)
    for executor, padding in EXECUTIONS:
        run = run_sharded(
            BACKWARD, inputs, {"a": tokens}, [[["a"], []], [["a"]]], [[[], []]], executor=executor, padding=padding
        )
        np.testing.assert_allclose(run.results[0], wanted, rtol=1e-5, atol=1e-6)
        others = np.delete(run.results[0], TOKENS, axis=0)
        assert not others.any(), "rows of no token stay zero"
        assert run.collectives == {"all_reduce": 1}


def test_case_17_reduce_before_slicing() -> None:
    """Tokens split, the table wanted split: the sums are scattered, no device adds up the whole table."""
    inputs = [numbers([7, 256]), TOKENS]
    (wanted,) = run_unsharded(BACKWARD, inputs)
    for executor, padding in EXECUTIONS:
        run = run_sharded(
            BACKWARD, inputs, {"a": 2}, [[["a"], []], [["a"]]], [[["a"], []]], executor=executor, padding=padding
        )
        np.testing.assert_allclose(run.results[0], wanted, rtol=1e-5, atol=1e-6)
        assert run.collectives == {"reduce_scatter": 1}


@pytest.mark.parametrize("shards", [2, 3])
def test_case_17_backward_with_the_vocabulary_split(shards: int) -> None:
    """Each device adds to the rows that it has; nothing is communicated."""
    inputs = [numbers([7, 256]), TOKENS]
    (wanted,) = run_unsharded(BACKWARD, inputs)
    for executor, padding in EXECUTIONS:
        run = run_sharded(
            BACKWARD, inputs, {"a": shards}, [None, None], [[["a"], []]], executor=executor, padding=padding
        )
        assert run.results[0].tobytes() == wanted.tobytes()
        assert run.collectives == {}


def test_what_is_added_to_is_added_once() -> None:
    """A table that is not zero, tokens over one axis and width over the other."""
    inputs = [numbers([7, 256]), TOKENS, numbers([64, 256])]
    (wanted,) = run_unsharded(ADDED, inputs)
    layout: list[Sharding] = [[["a"], ["b"]], [["a"]], [[], ["b"]]]
    for executor, padding in EXECUTIONS:
        run = run_sharded(ADDED, inputs, {"a": 2, "b": 2}, layout, [[[], ["b"]]], executor=executor, padding=padding)
        np.testing.assert_allclose(run.results[0], wanted, rtol=1e-5, atol=1e-6)


def test_updates_without_a_row_are_dropped() -> None:
    """Split and not split."""
    tokens = np.array([3, -1, 64, 3, 6, -7, 9], dtype=np.int64)
    inputs = [numbers([7, 256]), tokens]
    (wanted,) = run_unsharded(BACKWARD, inputs)
    expected = np.zeros((64, 256), np.float32)
    for place in (0, 3, 4, 6):
        expected[tokens[place]] += inputs[0][place]
    assert wanted.tobytes() == expected.tobytes()
    run = run_sharded(BACKWARD, inputs, {"a": 3}, [None, None], [[["a"], []]], executor=Executor.RUNTIME)
    assert run.results[0].tobytes() == expected.tobytes()


@pytest.mark.parametrize("start", [7, 1, -3])
@pytest.mark.parametrize("how", SLICES)
def test_case_18_a_slice_whose_start_runs_over_the_end(how: str, start: int) -> None:
    """It is clamped in the whole tensor: of columns over two devices, those from 2 to 7."""
    x = numbers([2, 8])
    inputs = [x, np.array(start, np.int64)]
    first = min(max(start, 0), 2)
    for executor, padding in EXECUTIONS:
        run = run_sharded(SLICES[how], inputs, {"a": 2}, [[[], ["a"]], None], executor=executor, padding=padding)
        np.testing.assert_array_equal(run.results[0], x[:, first : first + 6])
