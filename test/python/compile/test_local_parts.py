# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays that are cut for devices and put together again are what they were, whatever the mesh and the layout."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperparallel.compare import compare
from hyperparallel.local_parts import block_of, disagreement, join_array, split_array
from hyperparallel.plan import Mesh
from hyperparallel.plan.layouts import AxisRef, DimLayout, TensorLayout
from hyperparallel.plan.spelling import read_sharding_text


@st.composite
def _cases(draw: st.DrawFn) -> tuple[tuple[int, ...], TensorLayout, Mesh]:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    mesh = Mesh(tuple((name, size) for name, size in zip("abc", sizes, strict=False)))
    rank = draw(st.integers(0, 3))
    shape = tuple(draw(st.lists(st.integers(0, 7), min_size=rank, max_size=rank)))
    dims: list[list[AxisRef]] = [[] for _ in range(rank)]
    for name in draw(st.permutations(mesh.names)):
        place = draw(st.integers(-1, rank - 1))
        if place >= 0:
            dims[place].append(AxisRef(name))
    return shape, TensorLayout(tuple(DimLayout(tuple(axes)) for axes in dims)), mesh


@settings(max_examples=200, deadline=None)
@given(_cases())
def test_parts_make_the_whole(case: tuple[tuple[int, ...], TensorLayout, Mesh]) -> None:
    shape, layout, mesh = case
    whole = np.arange(math.prod(shape), dtype=np.float32).reshape(shape) - 3
    parts = split_array(whole, layout, mesh)
    assert len(parts) == mesh.num_devices
    assert {part.shape for part in parts} == {layout.local_shape(shape, mesh)}
    assert all(part.flags.c_contiguous for part in parts)
    np.testing.assert_array_equal(join_array(parts, shape, layout, mesh), whole)
    assert disagreement(parts, shape, layout, mesh) is None


def test_blocks_by_hand() -> None:
    mesh = Mesh.parse("dp=2,tp=4")
    # Device 6 is at dp=1, tp=2. As (2, 2) the coordinate tp=2 is (1, 0).
    assert block_of(6, [AxisRef("tp"), AxisRef("dp")], mesh) == 2 * 2 + 1
    assert block_of(6, [AxisRef("dp"), AxisRef("tp")], mesh) == 1 * 4 + 2
    assert block_of(6, [AxisRef("tp", 1, 2)], mesh) == 1
    assert block_of(6, [AxisRef("tp", 2, 2)], mesh) == 0
    layout = read_sharding_text('[{"tp":(2)2, "dp"}]', "here")
    parts = split_array(np.arange(7), layout, mesh)
    # Blocks of ceil(7/4) = 2; the last is cut short and padded with zero.
    assert [part.tolist() for part in parts] == [[0, 1], [4, 5], [0, 1], [4, 5], [2, 3], [6, 0], [2, 3], [6, 0]]


def test_copies_that_differ_are_found() -> None:
    mesh = Mesh.parse("dp=2,tp=2")
    layout = read_sharding_text('[{"tp"}]', "here")
    parts = [part.copy() for part in split_array(np.array([1.0, float("nan"), 3.0]), layout, mesh)]
    assert disagreement(parts, (3,), layout, mesh) is None
    # Padding may differ; values may not.
    parts[3][1] = 9
    assert disagreement(parts, (3,), layout, mesh) is None
    parts[2][0] = 2
    assert disagreement(parts, (3,), layout, mesh) == "devices 0 and 2 hold different copies"


@pytest.mark.parametrize(
    ("got", "want", "error"),
    [
        ([1.0, -2.0], [1.0, -2.0], 0.0),
        ([3.0, 0.0], [3.0, 0.5], 0.5 / np.sqrt((9 + 0.25) / 2)),
        ([10.0, -1.0], [8.0, -1.0], 0.25),
        ([np.inf, 1.0], [np.inf, 1.0], 0.0),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([-np.inf, 1.0], [np.inf, 1.0], np.inf),
        ([np.nan, 1.0], [2.0, 1.0], np.inf),
        ([1.0], [1.0, 2.0], np.inf),
        ([0.0, 1e-9], [0.0, 0.0], np.inf),
    ],
)
def test_comparison(got: list[float], want: list[float], error: float) -> None:
    comparison = compare({"y": np.array(got)}, {"y": np.array(want)})
    assert comparison.max_rel_error == pytest.approx(error)
    assert comparison.ok == (error <= comparison.tolerance)


def test_a_missing_result_is_far_away() -> None:
    assert not compare({}, {"y": np.ones(2)}).ok
    assert compare({}, {}).ok
