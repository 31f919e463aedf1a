# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parallel loops cover their range once, nested and on all devices at the same time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from runtime_cases import run, values

from hyperparallel.runtime import DataType, Launch, Runtime, empty


@pytest.mark.parametrize(("devices", "threads"), [(1, 1), (1, 2), (1, 4), (3, 6), (4, 8), (8, 2)])
@pytest.mark.parametrize(("rows", "columns", "grain"), [(1, 5, 1), (64, 33, 1), (64, 33, 10), (7, 1000, 100)])
def test_every_row_once(devices: int, threads: int, rows: int, columns: int, grain: int, programs: Path) -> None:
    with Runtime(devices, threads=threads) as runtime:
        program = runtime.load(programs)
        inputs = [values((rows, columns), DataType.F32, seed) for seed in range(devices)]
        for repetitions in (1, 50):
            results, _ = run(program, "loops", [[rows, columns, grain, repetitions]] * devices, inputs, (rows, columns))
            for device, result in enumerate(results):
                np.testing.assert_array_equal(result, inputs[device] * 2 + np.float32(device + 1))


def test_groups_run_different_programs(programs: Path) -> None:
    """Two meshes in one run, of different sizes and with different entries; ranks are per mesh."""
    with Runtime(3) as runtime:
        program = runtime.load(programs)
        inputs = [values((8,), DataType.F32, seed) for seed in range(3)]
        results = [empty((8,), "f32") for _ in range(3)]
        words = np.array([0, 8, 7, 0, 0, 1, 1, 2], dtype=np.int64)
        loop = np.array([1, 8, 1, 1], dtype=np.int64)
        statistics = runtime.run(
            [
                Launch(program, "all_reduce", [words, inputs[0]], [results[0]], device=2, group=5, rank=0),
                Launch(program, "loops", [loop, inputs[1]], [results[1]], device=0, group=1, rank=0),
                Launch(program, "all_reduce", [words, inputs[2]], [results[2]], device=1, group=5, rank=1),
            ]
        )
        np.testing.assert_array_equal(results[0], inputs[0] + inputs[2])
        np.testing.assert_array_equal(results[2], results[0])
        np.testing.assert_array_equal(results[1], inputs[1] * 2 + np.float32(1))
        assert [(d.device, d.group, d.rank) for d in statistics.devices] == [(2, 5, 0), (0, 1, 0), (1, 5, 1)]
