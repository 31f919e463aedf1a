# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Local collectives, compiled and run on virtual devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from codegen_cases import compile_text, run_program
from numpy.typing import NDArray
from test_execution import numbers

Array = NDArray[Any]
DEVICES = 4
MESH = 'hypershard.mesh @m = <["a"=2, "b"=2]>'


def program(body: str, result: str, shape: str = "4x6") -> str:
    """A program in which ``body`` makes %r of %v, the input plus 100 times the device's number."""
    return f"""
    {MESH}
    func.func @main(%x: tensor<{shape}xf32>) -> {result} {{
      %d = hypershard.axis_index @m {{"a", "b"}}
      %i = arith.index_cast %d : index to i64
      %f = arith.sitofp %i : i64 to f32
      %h = arith.constant 100.0 : f32
      %o = arith.mulf %f, %h : f32
      %e = tensor.empty() : tensor<{shape}xf32>
      %v = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]}} ins(%x : tensor<{shape}xf32>) outs(%e : tensor<{shape}xf32>) {{
      ^bb0(%a: f32, %b: f32):
        %s = arith.addf %a, %o : f32
        linalg.yield %s : f32
      }} -> tensor<{shape}xf32>
      {body}
      return %r : {result}
    }}"""


def run(tmp_path: Path, body: str, result: str, shape: tuple[int, int] = (4, 6)) -> tuple[list[Array], list[Array]]:
    """Each device's operand and result."""
    x = numbers(*shape)
    path = compile_text(program(body, result, f"{shape[0]}x{shape[1]}"), tmp_path / "program.so")
    results, statistics = run_program(path, [x], DEVICES)
    assert all(sum(device.leaked_bytes.values()) == 0 for device in statistics.devices)
    return [x + np.float32(100 * device) for device in range(DEVICES)], [result[0] for result in results]


def test_all_gather_in_the_order_of_the_axes(tmp_path: Path) -> None:
    """b is given first, so that it is the major one."""
    body = '%r = hypershard.all_gather %v over @m {"b", "a"} dim 1 : tensor<4x6xf32> -> tensor<4x24xf32>'
    parts, got = run(tmp_path, body, "tensor<4x24xf32>")
    for result in got:
        np.testing.assert_array_equal(result, np.concatenate([parts[device] for device in (0, 2, 1, 3)], 1))


@pytest.mark.parametrize(("kind", "reference"), [("sum", np.sum), ("max", np.max), ("min", np.min)])
def test_all_reduce(tmp_path: Path, kind: str, reference: Any) -> None:
    """Over one axis: two groups at once."""
    body = f'%r = hypershard.all_reduce %v over @m {{"a"}} <{kind}> : tensor<4x6xf32> -> tensor<4x6xf32>'
    parts, got = run(tmp_path, body, "tensor<4x6xf32>")
    for device, result in enumerate(got):
        group = [parts[device % 2], parts[device % 2 + 2]]
        np.testing.assert_allclose(result, reference(group, 0), rtol=1e-6)


def test_reduce_scatter(tmp_path: Path) -> None:
    body = '%r = hypershard.reduce_scatter %v over @m {"a", "b"} <sum> dim 0 : tensor<4x6xf32> -> tensor<1x6xf32>'
    parts, got = run(tmp_path, body, "tensor<1x6xf32>")
    for device, result in enumerate(got):
        np.testing.assert_allclose(result, np.sum(parts, 0)[device : device + 1], rtol=1e-6)


def test_all_to_all(tmp_path: Path) -> None:
    body = '%r = hypershard.all_to_all %v over @m {"b"} split 1 concat 0 : tensor<4x6xf32> -> tensor<8x3xf32>'
    parts, got = run(tmp_path, body, "tensor<8x3xf32>")
    for device, result in enumerate(got):
        pair = [parts[device - device % 2], parts[device - device % 2 + 1]]
        own = slice(3 * (device % 2), 3 * (device % 2) + 3)
        np.testing.assert_array_equal(result, np.concatenate([part[:, own] for part in pair], 0))


def test_permute(tmp_path: Path) -> None:
    """{a, b} to {b, a}: the devices 1 and 2 swap."""
    body = '%r = hypershard.permute %v over @m {"a", "b"} to {"b", "a"} : tensor<4x6xf32> -> tensor<4x6xf32>'
    parts, got = run(tmp_path, body, "tensor<4x6xf32>")
    for device, sender in enumerate((0, 2, 1, 3)):
        np.testing.assert_array_equal(got[device], parts[sender])


@pytest.mark.parametrize("columns", [8, 6])
def test_slice_local(tmp_path: Path, columns: int) -> None:
    """Even, and with a last block that ends past the operand: zeros."""
    block = -(-columns // DEVICES)
    body = f"""%r = hypershard.slice_local %v over @m {{"a", "b"}} dim 1
        : tensor<4x{columns}xf32> -> tensor<4x{block}xf32>"""
    parts, got = run(tmp_path, body, f"tensor<4x{block}xf32>", (4, columns))
    for device, result in enumerate(got):
        padded = np.pad(parts[device], ((0, 0), (0, block * DEVICES - columns)))
        np.testing.assert_array_equal(result, padded[:, device * block : (device + 1) * block])


def test_halo_exchange(tmp_path: Path) -> None:
    """Windows that reach over both neighbours' edges, and zeros outside."""
    body = """%r = hypershard.halo_exchange %v over @m {"a", "b"} dim 0 of 15 window -1 step 4 size 6
        : tensor<4x6xf32> -> tensor<6x6xf32>"""
    parts, got = run(tmp_path, body, "tensor<6x6xf32>")
    whole = np.pad(np.concatenate(parts, 0)[:15], ((1, 6), (0, 0)))
    for device, result in enumerate(got):
        np.testing.assert_array_equal(result, whole[4 * device : 4 * device + 6])
