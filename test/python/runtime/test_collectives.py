# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every collective equals NumPy on every group structure, is deterministic, and is counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from runtime_cases import MESHES, Axes, axes_words, index_of, members_of, mesh_id, run, size_of, values

from hyperparallel.runtime import Collective, DataType, Runtime, bfloat16_to_float32, float32_to_bfloat16

Runtimes = Callable[[int], Runtime]
DTYPES = list(DataType)
REDUCTIONS = ("sum", "max", "min", "prod", "and", "or", "avg")
FLOATS = (DataType.F16, DataType.BF16, DataType.F32, DataType.F64)
all_meshes = pytest.mark.parametrize("case", MESHES, ids=mesh_id)


def code(dtype: DataType) -> int:
    return DTYPES.index(dtype)


def defined(dtype: DataType, op: str) -> bool:
    if dtype is DataType.I1:
        return op in ("and", "or", "prod")
    return op not in ("and", "or") if dtype in FLOATS else op != "avg"


def reduce_in_order(parts: list[NDArray[Any]], dtype: DataType, op: str) -> NDArray[Any]:
    """Folds in rank order, with the precision that the ABI promises: equal bits, not close values."""
    functions: dict[str, Any] = {
        "sum": np.add,
        "avg": np.add,
        "max": np.maximum,
        "min": np.minimum,
        "prod": np.logical_and if dtype is DataType.I1 else np.multiply,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
    }
    if dtype is DataType.BF16:
        parts = [bfloat16_to_float32(part) for part in parts]
    elif dtype is DataType.F16:
        parts = [part.astype(np.float32) for part in parts]
    total = parts[0]
    with np.errstate(over="ignore"):
        for part in parts[1:]:
            total = functions[op](total, part)
    if op == "avg":
        total = total / total.dtype.type(len(parts))
    if dtype is DataType.BF16:
        return float32_to_bfloat16(total)
    return total.astype(np.float16) if dtype is DataType.F16 else total


@all_meshes
@pytest.mark.parametrize("asynchronous", [0, 1])
def test_all_gather(case: tuple[int, Axes], asynchronous: int, runtimes: Runtimes, programs: Path) -> None:
    devices, axes = case
    program = runtimes(devices).load(programs)
    size = size_of(axes)
    for dtype in DTYPES:
        for outer, dim, inner in [(1, 3, 5), (4, 2, 3), (3, 1, 257), (1, 70, 40)]:
            inputs = [values((outer, dim, inner), dtype, seed) for seed in range(devices)]
            parameters = [[asynchronous, outer, dim, inner, code(dtype), *axes_words(axes)]] * devices
            results, statistics = run(program, "all_gather", parameters, inputs, (outer, size * dim, inner))
            for device, result in enumerate(results):
                expected = np.concatenate([inputs[m] for m in members_of(device, axes)], axis=1)
                np.testing.assert_array_equal(result, expected)
            one = statistics.devices[-1]
            assert one.collectives[Collective.ALL_GATHER] == (size > 1)
            assert one.moved_bytes[Collective.ALL_GATHER] == (size - 1) * inputs[0].nbytes


@all_meshes
@pytest.mark.parametrize("in_place", [0, 1])
def test_all_reduce(case: tuple[int, Axes], in_place: int, runtimes: Runtimes, programs: Path) -> None:
    devices, axes = case
    program = runtimes(devices).load(programs)
    size = size_of(axes)
    for dtype in DTYPES:
        for op in (op for op in REDUCTIONS if defined(dtype, op)):
            # In the slot; in one step; in two steps with an uneven last part.
            for count in (7, 1500) if op != "sum" else (1, 7, 1500, 40_001):
                inputs = [values((count,), dtype, seed) for seed in range(devices)]
                header = [in_place ^ 1, count, code(dtype), REDUCTIONS.index(op), in_place]
                results, statistics = run(
                    program, "all_reduce", [header + axes_words(axes)] * devices, inputs, (count,)
                )
                for device, result in enumerate(results):
                    expected = reduce_in_order([inputs[m] for m in members_of(device, axes)], dtype, op)
                    np.testing.assert_array_equal(result, expected, err_msg=f"{dtype} {op} {count}")
                moved = sum(d.moved_bytes[Collective.ALL_REDUCE] for d in statistics.devices)
                assert moved == devices // size * 2 * (size - 1) * inputs[0].nbytes


@all_meshes
@pytest.mark.parametrize("asynchronous", [0, 1])
def test_reduce_scatter(case: tuple[int, Axes], asynchronous: int, runtimes: Runtimes, programs: Path) -> None:
    devices, axes = case
    program = runtimes(devices).load(programs)
    size = size_of(axes)
    for dtype in DTYPES:
        op = "or" if dtype is DataType.I1 else "sum"
        for outer, dim, inner in [(1, 2, 3), (3, 2, 5), (2, 50, 60)]:
            inputs = [values((outer, size * dim, inner), dtype, seed) for seed in range(devices)]
            header = [asynchronous, outer, dim, inner, code(dtype), REDUCTIONS.index(op)]
            results, _ = run(
                program, "reduce_scatter", [header + axes_words(axes)] * devices, inputs, (outer, dim, inner)
            )
            for device, result in enumerate(results):
                whole = reduce_in_order([inputs[m] for m in members_of(device, axes)], dtype, op)
                rank = index_of(device, axes)
                np.testing.assert_array_equal(result, whole[:, rank * dim : (rank + 1) * dim])


@all_meshes
@pytest.mark.parametrize("asynchronous", [0, 1])
def test_all_to_all(case: tuple[int, Axes], asynchronous: int, runtimes: Runtimes, programs: Path) -> None:
    devices, axes = case
    program = runtimes(devices).load(programs)
    size = size_of(axes)
    for dtype in (DataType.I8, DataType.F16, DataType.F32, DataType.F64):
        for scale in (1, 9):
            for split in range(4):
                for concat in range(4):
                    shape = [2, 3 * scale, 2, 3]
                    shape[split] *= size
                    inputs = [values(shape, dtype, seed) for seed in range(devices)]
                    header = [asynchronous, split, concat, inputs[0].itemsize, 4, *shape]
                    out_shape = list(shape)
                    out_shape[split] //= size
                    out_shape[concat] *= size
                    results, _ = run(program, "all_to_all", [header + axes_words(axes)] * devices, inputs, out_shape)
                    for device, result in enumerate(results):
                        rank = index_of(device, axes)
                        blocks = [np.split(inputs[m], size, axis=split)[rank] for m in members_of(device, axes)]
                        np.testing.assert_array_equal(result, np.concatenate(blocks, axis=concat))


PERMUTES: list[tuple[int, Axes, Axes]] = [
    (1, (), ()),
    (4, ((2, 2), (1, 2)), ((1, 2), (2, 2))),
    (4, ((1, 2), (2, 2)), ((2, 2), (1, 2))),
    (4, ((2, 2),), ((1, 2),)),
    (4, ((1, 2),), ((1, 2),)),
    (6, ((3, 2), (1, 3)), ((1, 3), (3, 2))),
    (6, ((1, 6),), ((1, 3), (3, 2))),
    (8, ((4, 2), (2, 2), (1, 2)), ((1, 2), (2, 2), (4, 2))),
    (8, ((2, 4), (1, 2)), ((1, 2), (2, 4))),
    (8, ((4, 2),), ((1, 2),)),
    (8, ((4, 2), (1, 2)), ((2, 2), (4, 2))),
]


@pytest.mark.parametrize("case", PERMUTES, ids=lambda c: f"{mesh_id(c[:2])}to{mesh_id((c[0], c[2]))}")
@pytest.mark.parametrize("asynchronous", [0, 1])
def test_permute(case: tuple[int, Axes, Axes], asynchronous: int, runtimes: Runtimes, programs: Path) -> None:
    devices, source_axes, target_axes = case
    program = runtimes(devices).load(programs)
    for count in (3, 5000):
        inputs = [values((count,), DataType.F32, seed) for seed in range(devices)]
        header = [asynchronous, inputs[0].nbytes, *axes_words(source_axes), *axes_words(target_axes)]
        results, statistics = run(program, "permute", [header] * devices, inputs, (count,))
        for device, result in enumerate(results):
            sender = members_of(device, source_axes)[index_of(device, target_axes)]
            np.testing.assert_array_equal(result, inputs[sender])
            moved = statistics.devices[device].moved_bytes[Collective.PERMUTE]
            assert moved == (inputs[0].nbytes if sender != device else 0)


@all_meshes
@pytest.mark.parametrize(
    ("size", "stride", "low", "length"),
    [(11, 3, -1, 5), (16, 4, 0, 4), (7, 2, -3, 9), (10, 5, 2, 12), (5, 1, 0, 3), (9, 4, -20, 4), (13, 4, 1, 0)],
)
def test_halo_exchange(
    case: tuple[int, Axes], size: int, stride: int, low: int, length: int, runtimes: Runtimes, programs: Path
) -> None:
    devices, axes = case
    program = runtimes(devices).load(programs)
    group = size_of(axes)
    block = -(-size // group)
    for outer, inner in [(1, 1), (3, 2), (2, 300)]:
        wholes = {g[0]: values((outer, size, inner), DataType.F32, g[0]) for g in map(tuple, _groups(devices, axes))}
        inputs = []
        for device in range(devices):
            rank = index_of(device, axes)
            local = np.full((outer, block, inner), np.nan, dtype=np.float32)  # the tail is padding
            part = wholes[members_of(device, axes)[0]][:, rank * block : (rank + 1) * block]
            local[:, : part.shape[1]] = part
            inputs.append(local)
        header = [outer, block, inner * 4, size, stride, low, length, *axes_words(axes)]
        results, _ = run(program, "halo_exchange", [header] * devices, inputs, (outer, length, inner))
        for device, result in enumerate(results):
            whole = wholes[members_of(device, axes)[0]]
            expected = np.zeros((outer, length, inner), dtype=np.float32)
            for i in range(length):
                position = index_of(device, axes) * stride + low + i
                if 0 <= position < size:
                    expected[:, i] = whole[:, position]
            np.testing.assert_array_equal(result, expected)


def _groups(devices: int, axes: Axes) -> list[list[int]]:
    return [members_of(device, axes) for device in range(devices) if index_of(device, axes) == 0]


def test_bits_do_not_depend_on_the_run(runtimes: Runtimes, programs: Path) -> None:
    """Sums of f32 that would differ with the order are the same on all members and in all runs."""
    program = runtimes(8).load(programs)
    inputs = [values((30_000,), DataType.F32, seed) * 10.0 ** (seed - 4) for seed in range(8)]
    inputs = [array.astype(np.float32) for array in inputs]
    parameters = [[0, 30_000, code(DataType.F32), 0, 0, *axes_words(((1, 8),))]] * 8
    first, _ = run(program, "all_reduce", parameters, inputs, (30_000,))
    for _ in range(5):
        again, _ = run(program, "all_reduce", parameters, inputs, (30_000,))
        for result in again:
            assert result.tobytes() == first[0].tobytes()


def test_special_values(runtimes: Runtimes, programs: Path) -> None:
    """max and min hand NaN on from any member; f16 overflows to infinity, and rounds once."""
    program = runtimes(2).load(programs)
    axes = axes_words(((1, 2),))
    cases = [
        (DataType.F32, "max", [np.nan, 1, -np.inf, 3], [0, np.nan, -5, 4], [np.nan, np.nan, -5, 4]),
        (DataType.F64, "min", [np.nan, 1, np.inf, 3], [0, np.nan, -5, 4], [np.nan, np.nan, -5, 3]),
        (DataType.F16, "sum", [65504, -65504, 2048, 6e-8], [16, -16, 1, 6e-8], [np.inf, -np.inf, 2048, 1.2e-7]),
        (DataType.F16, "sum", [65504, np.nan, 2050, -6e-5], [15, 1, 1, 5e-5], [65504, np.nan, 2052, -1e-5]),
    ]
    for dtype, op, left, right, expected in cases:
        kind = {DataType.F16: np.float16, DataType.F32: np.float32, DataType.F64: np.float64}[dtype]
        inputs = [np.array(left, dtype=kind), np.array(right, dtype=kind)]
        parameters = [[0, 4, code(dtype), REDUCTIONS.index(op), 0, *axes]] * 2
        with np.errstate(over="ignore"):
            wide = inputs[0].astype(np.float64) + inputs[1].astype(np.float64)
            exact = wide.astype(kind) if op == "sum" else np.array(expected, dtype=kind)
        results, _ = run(program, "all_reduce", parameters, inputs, (4,))
        np.testing.assert_array_equal(results[0], exact)
        np.testing.assert_allclose(results[0].astype(np.float64), np.array(expected), rtol=0.02)


def test_every_half_survives(runtimes: Runtimes, programs: Path) -> None:
    """All 65,536 bit patterns of f16 and bf16 come back from a conversion to f32 and back; NaNs stay NaNs."""
    program = runtimes(1).load(programs)
    bits = np.arange(65536, dtype=np.uint16)
    for dtype in (DataType.F16, DataType.BF16):
        parameters = [[0, 65536, code(dtype), REDUCTIONS.index("max"), 0, 0]]
        (result,), _ = run(program, "all_reduce", parameters, [bits], (65536,))
        exponent = 0x7C00 if dtype is DataType.F16 else 0x7F80
        is_nan = (bits & 0x7FFF) > exponent
        np.testing.assert_array_equal(result[~is_nan], bits[~is_nan])
        assert np.all((result[is_nan] & 0x7FFF) > exponent)


@pytest.mark.parametrize("rounds", [1, 2, 40])
def test_many_in_flight(rounds: int, runtimes: Runtimes, programs: Path) -> None:
    """Collectives of two crossing groups, started in one order and awaited in the reverse."""
    program = runtimes(6).load(programs)
    rows, columns = ((1, 3),), ((3, 2),)
    inputs = [values((8,), DataType.F32, seed) for seed in range(6)]
    parameters = [[rounds, *axes_words(rows), *axes_words(columns)]] * 6
    results, _ = run(program, "overlapped", parameters, inputs, (rounds, 8))
    for device, result in enumerate(results):
        for i in range(rounds):
            members = members_of(device, columns if i % 2 else rows)
            parts = [inputs[m] + np.float32(i) for m in members]
            np.testing.assert_array_equal(result[i], reduce_in_order(parts, DataType.F32, "sum"))


@pytest.mark.parametrize("devices", [2, 3, 8])
def test_messages(devices: int, runtimes: Runtimes, programs: Path) -> None:
    program = runtimes(devices).load(programs)
    inputs = [values((16,), DataType.F32, seed) for seed in range(devices)]
    results, statistics = run(program, "ring", [[devices]] * devices, inputs, (16,))
    for device, result in enumerate(results):
        np.testing.assert_array_equal(result, inputs[device - 1])
    assert statistics.devices[0].collectives[Collective.RECV] == 2
    assert statistics.devices[0].moved_bytes[Collective.RECV] == 64


def test_empty_tensors(runtimes: Runtimes, programs: Path) -> None:
    program = runtimes(2).load(programs)
    axes = axes_words(((1, 2),))
    inputs = [np.empty((2, 0, 3), dtype=np.float32)] * 2
    results, _ = run(program, "all_gather", [[0, 2, 0, 3, code(DataType.F32), *axes]] * 2, inputs, (2, 0, 3))
    assert results[0].shape == (2, 0, 3)
    run(program, "all_reduce", [[0, 0, code(DataType.F32), 0, 0, *axes]] * 2, inputs, (0,))


def test_sizes_in_turn(runtimes: Runtimes, programs: Path) -> None:
    """The slots of a group serve small, medium and large reductions alike, again and again."""
    program = runtimes(4).load(programs)
    inputs = [values((40_000,), DataType.F32, seed) for seed in range(4)]
    for axes in (((1, 4),), ((2, 2),)):
        results, statistics = run(program, "mixes_sizes", [[200, *axes_words(axes)]] * 4, inputs, (40_000,))
        for device, result in enumerate(results):
            parts = [inputs[m] for m in members_of(device, axes)]
            np.testing.assert_array_equal(result, reduce_in_order(parts, DataType.F32, "sum"))
        assert statistics.collectives == {Collective.ALL_REDUCE: 200}


def test_groups_outlive_runs(runtimes: Runtimes, programs: Path) -> None:
    """Runs of one layout share groups, around the ring of slots; another layout in between does not disturb."""
    runtime = runtimes(4)
    program = runtime.load(programs)
    inputs = [values((8,), DataType.F32, seed) for seed in range(4)]
    parameters = [[0, 8, code(DataType.F32), 0, 0, *axes_words(((1, 4),))]] * 4
    expected = reduce_in_order(inputs, DataType.F32, "sum")
    for i in range(150):
        results, _ = run(program, "all_reduce", parameters, inputs, (8,))
        np.testing.assert_array_equal(results[3], expected)
        if i % 40 == 39:
            pair = [[0, 8, code(DataType.F32), 0, 0, *axes_words(((1, 2),))]] * 2
            results, _ = run(program, "all_reduce", pair, inputs[2:], (8,))
            np.testing.assert_array_equal(results[0], inputs[2] + inputs[3])
