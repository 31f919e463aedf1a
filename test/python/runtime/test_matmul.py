# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hp_rt_matmul equals NumPy for all types, layouts, batches and epilogues."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from runtime_cases import values

from hyperparallel.errors import RuntimeFailure
from hyperparallel.runtime import (
    DataType,
    Program,
    Runtime,
    bfloat16_to_float32,
    empty,
    float32_to_bfloat16,
    numpy_dtype,
)

ACTIVATIONS = ("none", "relu", "gelu", "gelu_tanh", "silu")
Batch = ctypes.c_int64 * 4


class Desc(ctypes.Structure):
    _fields_: ClassVar = [
        ("struct_size", ctypes.c_uint64),
        *((name, ctypes.c_int64) for name in ("dtype", "out_dtype", "trans_a", "trans_b", "m", "n", "k")),
        *((name, ctypes.c_void_p) for name in ("a", "b", "c")),
        *((name, ctypes.c_int64) for name in ("ld_a", "ld_b", "ld_c", "batch_rank")),
        *((name, Batch) for name in ("batch", "stride_a", "stride_b", "stride_c")),
        ("alpha", ctypes.c_double),
        ("beta", ctypes.c_double),
        ("bias", ctypes.c_void_p),
        ("activation", ctypes.c_int64),
    ]


def wide(array: NDArray[Any], dtype: DataType) -> NDArray[np.float64]:
    return (bfloat16_to_float32(array) if dtype is DataType.BF16 else array).astype(np.float64)


def narrow(array: NDArray[np.float64], dtype: DataType) -> NDArray[Any]:
    return float32_to_bfloat16(array.astype(np.float32)) if dtype is DataType.BF16 else array.astype(numpy_dtype(dtype))


def activate(x: NDArray[np.float64], activation: str) -> NDArray[np.float64]:
    if activation == "relu":
        return np.maximum(x, 0)
    if activation == "gelu":
        return x / 2 * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))
    if activation == "gelu_tanh":
        return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    if activation == "silu":
        return x / (1 + np.exp(-x))
    return x


def call(
    program: Program,
    desc: Desc,
    arrays: Sequence[NDArray[Any]],
    bias: NDArray[Any] | None,
    c: NDArray[Any],
    repetitions: int = 1,
) -> tuple[NDArray[Any], float]:
    """Runs one product; the result and the seconds that it took."""
    desc.struct_size = ctypes.sizeof(Desc)
    desc.bias = 0 if bias is None else 1
    raw = np.frombuffer(bytes(desc), dtype=np.uint8)
    result = empty(c.shape, c.dtype)
    words = np.array([repetitions, c.nbytes], dtype=np.int64)
    unused = np.zeros(1, dtype=np.float32)
    arguments = [raw, words, *arrays, unused if bias is None else bias, np.ascontiguousarray(c)]
    statistics = program.run("matmul", [arguments], [[result]])
    return result, statistics.wall_seconds


@pytest.fixture(scope="module", params=[1, 2, 3])
def program(request: pytest.FixtureRequest, programs: Path) -> Program:
    return Runtime(threads=request.param).load(programs)


SHAPES = [(1, 1, 1), (5, 7, 3), (1, 300, 40), (300, 1, 40), (64, 100, 0), (33, 0, 5), (200, 170, 600), (130, 700, 70)]


@pytest.mark.parametrize("dtype", [DataType.F32, DataType.F64, DataType.F16, DataType.BF16])
@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_layouts(dtype: DataType, trans_a: int, trans_b: int, program: Program) -> None:
    """Transposed or not, with rows further apart than they are long, scaled and added to c."""
    for m, n, k in SHAPES:
        for alpha, beta, pad in [(1.0, 0.0, 0), (-0.5, 2.0, 3)]:
            a = values(((k, m + pad) if trans_a else (m, k + pad)), dtype, 1)
            b = values(((n, k + pad) if trans_b else (k, n + pad)), dtype, 2)
            c = values((m, n + pad), dtype, 3)
            if beta == 0.0:
                c = np.full_like(c, 0x7FFF if dtype is DataType.BF16 else np.nan)  # must not be read
            code = list(DataType).index(dtype)
            desc = Desc(0, code, code, trans_a, trans_b, m, n, k)
            desc.ld_a, desc.ld_b, desc.ld_c = a.shape[1], b.shape[1], n + pad
            desc.alpha, desc.beta = alpha, beta
            result, _ = call(program, desc, [a, b], None, c)
            left = wide(a, dtype)[:, :m].T if trans_a else wide(a, dtype)[:, :k]
            right = wide(b, dtype)[:, :k].T if trans_b else wide(b, dtype)[:, :n]
            expected = alpha * (left @ right) + (beta * wide(c, dtype)[:, :n] if beta else 0)
            check(result[:, :n], expected, dtype, k)
            np.testing.assert_array_equal(result[:, n:], c[:, n:])


def check(result: NDArray[Any], expected: NDArray[np.float64], dtype: DataType, k: int) -> None:
    rounding = {DataType.F64: 1e-14, DataType.F32: 3e-7, DataType.F16: 6e-4, DataType.BF16: 5e-3}[dtype]
    scale = 12 * math.sqrt(max(k, 1)) if dtype in (DataType.F32, DataType.F64) else 12
    np.testing.assert_allclose(wide(result, dtype), expected, rtol=rounding, atol=rounding * scale * 4)


@pytest.mark.parametrize("dtype", [DataType.F32, DataType.F64, DataType.BF16])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize(("m", "k"), [(1, 40), (8, 40), (128, 96), (200, 40), (8, 800)])
def test_a_wide_product_in_parts_has_the_bits_of_the_whole(
    m: int, k: int, trans_b: int, dtype: DataType, program: Program
) -> None:
    """Parts that begin at multiples of 512 columns and have 2560 or more, as offload-split-large-ops makes them."""
    n, code = 5 * 2560 + 77, list(DataType).index(dtype)
    a = values((m, k), dtype, 1)
    b = values((n, k) if trans_b else (k, n), dtype, 2)
    bias = values((n,), dtype, 3)

    def product(first: int, end: int) -> NDArray[Any]:
        part = np.ascontiguousarray(b[first:end] if trans_b else b[:, first:end])
        desc = Desc(0, code, code, 0, trans_b, m, end - first, k)
        desc.ld_a, desc.ld_b, desc.ld_c, desc.alpha = k, part.shape[1], end - first, 1.0
        desc.activation = ACTIVATIONS.index("relu")
        return call(program, desc, [a, part], bias[first:end], np.zeros((m, end - first), a.dtype))[0]

    whole = product(0, n)
    wanted = np.maximum(wide(a, dtype) @ (wide(b, dtype).T if trans_b else wide(b, dtype)) + wide(bias, dtype), 0)
    check(whole, wanted, dtype, k)
    for cuts in ([0, 2560, 5120, 9728, n], [0, 4096, 8704, n]):
        parts = [product(first, end) for first, end in itertools.pairwise(cuts)]
        assert np.concatenate(parts, 1).tobytes() == whole.tobytes()


def test_half_operands_with_an_f32_result(program: Program) -> None:
    for dtype in (DataType.F16, DataType.BF16):
        a, b = values((140, 530), dtype, 1), values((530, 290), dtype, 2)
        desc = Desc(0, list(DataType).index(dtype), list(DataType).index(DataType.F32), 0, 0, 140, 290, 530)
        desc.ld_a, desc.ld_b, desc.ld_c, desc.alpha = 530, 290, 290, 1.0
        bias = values((290,), DataType.F32, 4)
        result, _ = call(program, desc, [a, b], bias, np.zeros((140, 290), dtype=np.float32))
        check(result, wide(a, dtype) @ wide(b, dtype) + bias, DataType.F32, 530)


def test_batches_with_strides_and_broadcast(program: Program) -> None:
    """Attention's layout: heads inside rows ([batch, sequence, head, dim]), one operand shared by a batch dimension."""
    batch, heads, sequence, width = 3, 4, 17, 8
    q = values((batch, sequence, heads, width), DataType.F32, 1)
    k = values((sequence, heads, width), DataType.F32, 2)
    desc = Desc(0, 7, 7, 0, 1, sequence, sequence, width)
    desc.ld_a = desc.ld_b = heads * width
    desc.ld_c, desc.alpha, desc.batch_rank = sequence, 0.25, 2
    desc.batch[:2] = [batch, heads]
    desc.stride_a[:2] = [sequence * heads * width, width]
    desc.stride_b[:2] = [0, width]
    desc.stride_c[:2] = [heads * sequence * sequence, sequence * sequence]
    c = np.zeros((batch, heads, sequence, sequence), dtype=np.float32)
    result, _ = call(program, desc, [q, k], None, c)
    np.testing.assert_allclose(result, 0.25 * np.einsum("bqhd,khd->bhqk", q, k), rtol=1e-5, atol=1e-5)


def test_four_batch_dimensions(program: Program) -> None:
    shape = (2, 3, 1, 2)
    a, b = values((*shape, 30, 20), DataType.F64, 1), values((*shape, 20, 25), DataType.F64, 2)
    desc = Desc(0, 8, 8, 0, 0, 30, 25, 20)
    desc.ld_a, desc.ld_b, desc.ld_c, desc.alpha, desc.batch_rank = 20, 25, 25, 1.0, 4
    desc.batch[:] = shape
    for name, array in (("stride_a", a), ("stride_b", b), ("stride_c", np.zeros((*shape, 30, 25)))):
        getattr(desc, name)[:] = [stride // 8 for stride in array.strides[:4]]
    result, _ = call(program, desc, [a, b], None, np.zeros((*shape, 30, 25)))
    np.testing.assert_allclose(result, a @ b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [DataType.F32, DataType.F64, DataType.F16, DataType.BF16])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_epilogues(dtype: DataType, activation: str, program: Program) -> None:
    m, n, k = 70, 260, 40
    a, b, bias = values((m, k), dtype, 1), values((k, n), dtype, 2), values((n,), dtype, 3)
    code = list(DataType).index(dtype)
    for with_bias, beta in itertools.product((True, False), (0.0, 1.0)):
        desc = Desc(0, code, code, 0, 0, m, n, k)
        desc.ld_a, desc.ld_b, desc.ld_c = k, n, n
        desc.alpha, desc.beta, desc.activation = 0.5, beta, ACTIVATIONS.index(activation)
        c = values((m, n), dtype, 4)
        result, _ = call(program, desc, [a, b], bias if with_bias else None, c)
        total = 0.5 * (wide(a, dtype) @ wide(b, dtype)) + beta * wide(c, dtype)
        check(result, activate(total + (wide(bias, dtype) if with_bias else 0), activation), dtype, k)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_are_accurate_everywhere(activation: str, program: Program) -> None:
    """1 x 1 products with weight 1: the activation alone, from far below to far above zero."""
    x = np.concatenate([np.linspace(-30, 30, 20001), [-1e4, -100, -88, -87, 0, 87, 88, 100, 1e4]]).astype(np.float32)
    desc = Desc(0, 7, 7, 0, 0, 1, x.size, 1)
    desc.ld_a, desc.ld_b, desc.ld_c, desc.alpha = 1, x.size, x.size, 1.0
    desc.activation = ACTIVATIONS.index(activation)
    result, _ = call(
        program, desc, [np.ones((1, 1), dtype=np.float32), x[None]], None, np.zeros((1, x.size), np.float32)
    )
    with np.errstate(over="ignore"):
        expected = activate(x.astype(np.float64), activation)
    error = np.abs(result[0] - expected) / np.maximum(1, np.abs(x))
    assert error.max() < 4e-7


def test_products_inside_a_parallel_loop(program: Program) -> None:
    a, b = values((20, 30, 40), DataType.F32, 1), values((20, 40, 50), DataType.F32, 2)
    desc = Desc(ctypes.sizeof(Desc), 7, 7, 0, 0, 30, 50, 40)
    desc.ld_a, desc.ld_b, desc.ld_c, desc.alpha = 40, 50, 50, 1.0
    raw = np.frombuffer(bytes(desc), dtype=np.uint8)
    words = np.array([20, 30 * 40 * 4, 40 * 50 * 4, 30 * 50 * 4], dtype=np.int64)
    result = empty((20, 30, 50), "f32")
    program.run("matmul_in_loop", [[raw, words, a, b]], [[result]])
    np.testing.assert_allclose(result, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": 3}, "matmul: expected f16, bf16, f32 or f64 but got i32"),
        ({"out_dtype": 8}, "matmul: f32 operands with a f64 result"),
        ({"m": -1}, "matmul: m = -1 is out of range"),
        ({"k": 1 << 40}, "matmul: k = 1099511627776 is out of range"),
        ({"ld_b": 2}, "matmul: ld_b = 2 is out of range"),
        ({"batch_rank": 5}, "matmul: batch_rank = 5 is out of range"),
        ({"activation": 9}, "matmul: activation = 9 is out of range"),
    ],
)
def test_bad_descriptions(changes: dict[str, int], message: str, program: Program) -> None:
    a, b = values((4, 4), DataType.F32, 1), values((4, 4), DataType.F32, 2)
    desc = Desc(0, 7, 7, 0, 0, 4, 4, 4)
    desc.ld_a = desc.ld_b = desc.ld_c = 4
    desc.alpha = 1.0
    for name, value in changes.items():
        setattr(desc, name, value)
    with pytest.raises(RuntimeFailure, match=message):
        call(program, desc, [a, b], None, np.zeros((4, 4), dtype=np.float32))


def test_a_missing_openblas_is_named(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hyperparallel.runtime.library.find_openblas", lambda: Path("/nowhere/libblas.so"))
    desc = Desc(0, 7, 7, 0, 0, 4, 4, 4)
    desc.ld_a = desc.ld_b = desc.ld_c = 4
    a = values((4, 4), DataType.F32, 1)
    with Runtime() as runtime:
        program = runtime.load(programs)
        with pytest.raises(RuntimeFailure, match="pip install scipy-openblas32") as caught:
            call(program, desc, [a, a], None, np.zeros((4, 4), dtype=np.float32))
    assert caught.value.status == "HP_NOT_FOUND"
