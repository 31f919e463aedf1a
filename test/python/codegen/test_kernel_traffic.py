# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transposes on GPUs: right numbers, whole sectors, as the fake driver counts them for the warps of its kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import codegen_cases
import numpy as np
import pytest
from codegen_cases import Execute
from fakes import fake_libraries
from traffic import VARIABLE, Traffic, read_traffic


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Compile for GPUs, run on fake ones, and have them tell what kernels move."""
    for variable, path in fake_libraries("cuda").items():
        monkeypatch.setenv(variable, path)
    monkeypatch.setattr(codegen_cases, "TARGET", "cuda")
    path = tmp_path / "traffic.jsonl"
    monkeypatch.setenv(VARIABLE, str(path))
    return path


def only_kernel(path: Path) -> Traffic:
    """What the one kernel moved."""
    (found,) = read_traffic(path).values()
    return found


def permuted(shape: tuple[int, ...], order: tuple[int, ...], element: str, body: str = "") -> str:
    """A program that permutes the dimensions of its argument, and computes ``%r`` of ``%x`` by the way."""
    dims = [f"d{number}" for number in range(len(shape))]
    source = ", ".join(dims[order.index(number)] for number in range(len(shape)))
    kinds = ", ".join(['"parallel"'] * len(shape))
    given = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    result = f"tensor<{'x'.join(str(shape[number]) for number in order)}x{element}>"
    loops = ", ".join(dims)
    return f"""func.func @main(%a: {given}) -> {result} {{
      %init = tensor.empty() : {result}
      %0 = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({source})>, affine_map<({loops}) -> ({loops})>],
                           iterator_types = [{kinds}]}} ins(%a : {given}) outs(%init : {result}) {{
      ^bb0(%x: {element}, %y: {element}):
        {body or f"%r = arith.addf %x, %x : {element}"}
        linalg.yield %r : {element}
      }} -> {result}
      return %0 : {result}
    }}"""


@pytest.mark.parametrize(
    ("shape", "order", "element", "dtype", "most"),
    [
        ((64, 96), (1, 0), "f32", np.float32, 1.0),
        ((128, 64), (1, 0), "f16", np.float16, 1.0),
        ((64, 64), (1, 0), "f64", np.float64, 1.0),
        ((2, 32, 3, 64), (0, 3, 2, 1), "f32", np.float32, 1.0),
        ((4, 64, 8, 8), (0, 2, 3, 1), "f32", np.float32, 1.0),  # channels last: rows of a sector are read
        ((16, 32, 24), (2, 1, 0), "f32", np.float32, 1.0),
        # Edges: rows that are no multiples of a sector begin and end within one.
        ((45, 70), (1, 0), "f32", np.float32, 1.3),
        ((3, 33, 37), (2, 0, 1), "f32", np.float32, 1.3),
    ],
)
def test_transposes(
    execute: Execute,
    told: Path,
    shape: tuple[int, ...],
    order: tuple[int, ...],
    element: str,
    dtype: Any,
    most: float,
) -> None:
    given = (np.arange(np.prod(shape), dtype=np.float64) % 997 - 400).reshape(shape).astype(dtype)
    (found,) = execute(permuted(shape, order, element), given)
    np.testing.assert_array_equal(found, 2 * np.transpose(given, order))
    traffic = only_kernel(told)
    assert traffic.needed * 32 >= 2 * given.nbytes, "all is read and written"
    assert traffic.excess <= most
    assert traffic.again <= most
    # Elements of 4 bytes come from as many banks as there are; of others, two lie in one, or one in two.
    assert traffic.shared_passes > 0
    assert traffic.conflicts <= (1.1 if dtype == np.float32 else 2)


def test_booleans(execute: Execute, told: Path) -> None:
    """A square of 64 bytes: its rows in shared memory are a word longer, too."""
    given = np.arange(64 * 128).reshape(64, 128) % 3 == 0
    text = permuted((64, 128), (1, 0), "i1", "%one = arith.constant true\n%r = arith.xori %x, %one : i1")
    (found,) = execute(text, given)
    np.testing.assert_array_equal(found, ~given.T)
    assert only_kernel(told).excess == 1


def test_without_squares_it_would_not_be_whole_sectors(execute: Execute, told: Path) -> None:
    """That the measure sees a transpose: an edge of 7 is too short for a square, and is read across."""
    given = np.arange(7 * 64, dtype=np.float32).reshape(64, 7)
    (found,) = execute(permuted((64, 7), (1, 0), "f32"), given)
    np.testing.assert_array_equal(found, 2 * given.T)
    traffic = only_kernel(told)
    assert traffic.shared_passes == 0
    assert traffic.excess > 2
