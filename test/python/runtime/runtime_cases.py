# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Meshes, groups and values that the tests share, and calls of the test programs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperparallel.runtime import DataType, Program, RunStatistics, empty

Axes = tuple[tuple[int, int], ...]
"""(stride, size), major to minor."""

MESHES: list[tuple[int, Axes]] = [
    (1, ()),
    (1, ((1, 1),)),
    (2, ((1, 2),)),
    (2, ()),
    (3, ((1, 3),)),
    (4, ((1, 4),)),
    (4, ((2, 2),)),
    (4, ((1, 2),)),
    (4, ((2, 2), (1, 2))),
    (4, ((1, 2), (2, 2))),
    (6, ((3, 2),)),
    (6, ((1, 3),)),
    (6, ((1, 3), (3, 2))),
    (8, ((2, 2),)),
    (8, ((4, 2), (1, 2))),
    (8, ((1, 2), (4, 2))),
    (8, ((1, 2), (2, 2), (4, 2))),
    (8, ((1, 8),)),
]


def mesh_id(case: tuple[int, Axes]) -> str:
    """A short name of a mesh for pytest."""
    devices, axes = case
    return f"{devices}:" + "+".join(f"{size}at{stride}" for stride, size in axes)


def size_of(axes: Axes) -> int:
    """Devices in a group along ``axes``."""
    return int(np.prod([size for _, size in axes], dtype=int))


def index_of(device: int, axes: Axes) -> int:
    """The device's rank among its group."""
    index = 0
    for stride, size in axes:
        index = index * size + device // stride % size
    return index


def members_of(device: int, axes: Axes) -> list[int]:
    """The group of a device along ``axes``, by rank, straight from the definition."""
    base = device - sum(device // stride % size * stride for stride, size in axes)
    coordinates = itertools.product(*(range(size) for _, size in axes))
    return [base + sum(c * stride for c, (stride, _) in zip(cs, axes, strict=True)) for cs in coordinates]


def values(shape: Sequence[int], dtype: DataType, seed: int) -> NDArray[Any]:
    """Values that differ and have both signs where the type has them; bf16 as bits."""
    generator = np.random.default_rng(seed)
    count = int(np.prod(shape, dtype=int))
    if dtype is DataType.I1:
        return generator.integers(0, 2, shape).astype(np.bool_)
    if dtype in (DataType.I8, DataType.I16, DataType.I32, DataType.I64):
        info = np.iinfo(str(dtype).replace("i", "int"))
        return generator.integers(info.min, info.max, shape, dtype=info.dtype, endpoint=True)
    spread = generator.permutation(count).astype(np.float64) - count / 2 + generator.uniform(0.1, 0.4, count)
    floats = (spread / max(count, 1) * 7).reshape(shape)
    if dtype is DataType.BF16:
        return (floats.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return floats.astype({DataType.F16: np.float16, DataType.F32: np.float32, DataType.F64: np.float64}[dtype])


def axes_words(axes: Axes) -> list[int]:
    """Axes as the test programs read them."""
    return [len(axes), *(word for axis in axes for word in axis)]


def run(
    program: Program,
    entry: str,
    parameters: Sequence[Sequence[int]],
    inputs: Sequence[NDArray[Any]],
    result_shape: Sequence[int],
) -> tuple[list[NDArray[Any]], RunStatistics]:
    """Runs an entry of programs.c on all devices; one result each, poisoned before the run."""
    results = [empty(result_shape, array.dtype) for array in inputs]
    for result in results:
        result.view(np.uint8)[...] = 0xA5
    words = [np.array(p, dtype=np.int64) for p in parameters]
    statistics = program.run(entry, [list(pair) for pair in zip(words, inputs, strict=True)], [[r] for r in results])
    return results, statistics
