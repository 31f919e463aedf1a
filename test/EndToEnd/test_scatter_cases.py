# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Embeddings split along the vocabulary, and their backward: cases 16 and 17, executed on virtual devices."""

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
