# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshards between random layouts, compiled and run on virtual devices: the values are those that went in."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from hyperparallel.testing import run_sharded

sys.path.insert(0, str(Path(__file__).resolve().parent))
from collective_simulator import Axes, Axis, Layout, Mesh, print_layout

PARTS: dict[str, tuple[Mesh, Axes]] = {
    "2x2": (Mesh({"a": 2, "b": 2}), (Axis("a", 1, 2), Axis("b", 1, 2))),
    "2x3": (Mesh({"a": 2, "b": 3}), (Axis("a", 1, 2), Axis("b", 1, 3))),
    "2x4": (Mesh({"a": 2, "b": 4}), (Axis("a", 1, 2), Axis("b", 1, 2), Axis("b", 2, 2))),
}
SHAPES = [(8,), (5,), (6,), (4, 6), (7, 3), (1, 4), (8, 8), (3, 5, 2), (4, 4, 4)]


def random_layout(rng: random.Random, mesh: Mesh, parts: Axes, rank: int, *, may_be_partial: bool) -> str:
    """The text of a sharding, without the mesh."""
    dims: list[list[Axis]] = [[] for _ in range(rank)]
    partial: list[Axis] = []
    for part in rng.sample(parts, len(parts)):
        place = rng.randrange(rank + 1 + may_be_partial)
        if place < rank:
            dims[place].append(part)
        elif place == rank + 1:
            partial.append(part)
    partial.sort(key=parts.index)
    layout = Layout(tuple(map(tuple, dims)), tuple(partial))
    return print_layout(mesh, layout).removeprefix("<@m, ").removesuffix(">")


@pytest.mark.parametrize("executor", ["reference", "runtime"])
@pytest.mark.parametrize("name", PARTS)
def test_values_survive(name: str, executor: str) -> None:
    mesh, parts = PARTS[name]
    rng = random.Random(5)
    shapes = [rng.choice(SHAPES) for _ in range(24)]
    types = [f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in shapes]
    arguments = ", ".join(f"%x{i}: {kind}" for i, kind in enumerate(types))
    names = ", ".join(f"%x{i}" for i in range(len(shapes)))
    program = f"func.func @main({arguments}) -> ({', '.join(types)}) {{ return {names} : {', '.join(types)} }}"
    inputs = [
        np.where(np.arange(np.prod(shape)) % 2, -1, 1).reshape(shape).astype(np.float32)
        * (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + number)
        for number, shape in enumerate(shapes)
    ]
    run = run_sharded(
        program,
        inputs,
        mesh.axes,
        [random_layout(rng, mesh, parts, len(shape), may_be_partial=True) for shape in shapes],
        [random_layout(rng, mesh, parts, len(shape), may_be_partial=False) for shape in shapes],
        executor=executor,
    )
    for given, found in zip(inputs, run.results, strict=True):
        np.testing.assert_allclose(found, given, rtol=1e-5, atol=1e-4)
    # Not all pairs are equal or mere slices: something was sent.
    assert sum(run.collectives.values()) > 8
    assert run.bytes_moved > 0
