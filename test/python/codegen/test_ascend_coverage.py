# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of docs/Runtime.md that says who does an op of a program for NPUs: each row is compiled, and counted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import test_ascend_operators as operators
from test_device_coverage import CONSTANTS, OPS, PAGE, WIDE, affine, elementwise, generic, reduced

from hyperparallel import _hyperparallel
from hyperparallel.pipeline import make_context, parse_program

BATCHED = (
    "%batch = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 4, 16] : "
    f"{WIDE} into tensor<2x4x16xf32>\n"
    + (
        "%b4 = tensor.empty() : tensor<2x4x4xf32>\n"
        "%z4 = linalg.fill ins(%zero : f32) outs(%b4 : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>\n%y = "
        + generic(
            affine("b, m, n, k", "b, m, k", "b, n, k", "b, m, n"),
            "pppr",
            "ins(%batch, %batch : tensor<2x4x16xf32>, tensor<2x4x16xf32>) outs(%z4 : tensor<2x4x4xf32>)",
            "^bb0(%a: f32, %b: f32, %c: f32):\n%m = arith.mulf %a, %b : f32\n%s = arith.addf %c, %m : f32\n"
            "linalg.yield %s : f32",
            "tensor<2x4x4xf32>",
        )
    )
)
MORE: dict[str, tuple[str, str]] = {
    "batch of products": (BATCHED, "tensor<2x4x4xf32>"),
    "several functions of elements": ("%y = " + elementwise("%t = math.exp %a : f32\n%r = math.tanh %t : f32"), WIDE),
    "change of type": (
        "%half16 = tensor.empty() : tensor<8x16xf16>\n%y = "
        + generic(
            affine("i, j", "i, j", "i, j"),
            "pp",
            f"ins(%x : {WIDE}) outs(%half16 : tensor<8x16xf16>)",
            "^bb0(%a: f32, %c: f16):\n%r = arith.truncf %a : f32 to f16\nlinalg.yield %r : f16",
            "tensor<8x16xf16>",
        ),
        "tensor<8x16xf16>",
    ),
    "greatest of rows": ("%y = " + reduced("i", "%lowest", "maximumf"), "tensor<8xf32>"),
    "a choice by a comparison": (
        "%y = " + elementwise("%t = arith.cmpf olt, %a, %half : f32\n%r = arith.select %t, %a, %zero : f32"),
        WIDE,
    ),
    "a part of each row": (
        f"%y = tensor.extract_slice %x[0, 4] [8, 8] [1, 1] : {WIDE} to tensor<8x8xf32>",
        "tensor<8x8xf32>",
    ),
    "side by side": (
        f"%y = tensor.concat dim(1) %x, %x : ({WIDE}, {WIDE}) -> tensor<8x32xf32>",
        "tensor<8x32xf32>",
    ),
    "one number everywhere": (f"%y = linalg.fill ins(%half : f32) outs(%wide : {WIDE}) -> {WIDE}", WIDE),
    "gathered from devices": (
        f'%y = hypershard.all_gather %x over @mesh {{"d"}} dim 0 : {WIDE} -> tensor<16x16xf32>',
        "tensor<16x16xf32>",
    ),
}
ROWS = {**OPS, **MORE}
FUNCTIONS: dict[str, str] = {
    "layer normalisation": operators.program(
        f"%x: {operators.WIDE}, %w: {operators.COLUMNS}, %v: {operators.COLUMNS}",
        operators.LAYER_NORM,
        [("%y", operators.WIDE)],
    ),
    "RMS normalisation": operators.program(
        f"%x: {operators.WIDE}, %w: {operators.COLUMNS}", operators.RMS_NORM, [("%y", operators.WIDE)]
    ),
    "softmax with neighbours": operators.program(
        f"%p: {operators.WIDE}, %q: {operators.WIDE}",
        operators.wide("x", [("%p", "all"), ("%q", "all")], "%r = arith.addf %a, %b : f32") + operators.SOFTMAX,
        [("%y", operators.WIDE)],
    ),
}


def counted(name: str, folder: Path) -> tuple[str, int, int, int]:
    """Calls of operators, fragments, calls of HCCL, and accesses by the host."""
    text = FUNCTIONS.get(name)
    if text is None:
        body, result = ROWS[name]
        needed = f"%wide0 = linalg.fill ins(%zero : f32) outs(%wide : {WIDE}) -> {WIDE}\n" if "%wide0" in body else ""
        text = (
            'hypershard.mesh @mesh = <["d"=2]>\n'
            f"func.func @main(%x: {WIDE}, %w: tensor<16x8xf32>, %bias: tensor<8xf32>, "
            f"%numbers: tensor<8xi64>) -> {result} {{\n{CONSTANTS}\n{needed}{body}\nreturn %y : {result}\n}}"
        )
    path = folder / "program.so"
    module = parse_program(text, "row.mlir", make_context())
    _hyperparallel.compile_program(module, str(path), "", 1, str(folder / "kernels.mlir"), "Ascend910B1")
    told = json.loads(path.with_suffix(".json").read_text())
    calls: dict[str, int] = told["calls"]
    operations = {"product": calls.get("hp_rt_matmul", 0), **told["operations"]}
    collectives = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
    return (
        ", ".join(f"{count} {one}" if count > 1 else one for one, count in operations.items() if count) or "none",
        len(told["kernels"]),
        sum(calls.get(f"hp_rt_{one}", 0) for one in collectives),
        calls.get("hp_rt_read", 0) + calls.get("hp_rt_write", 0),
    )


def table() -> dict[str, tuple[str, int, int, int]]:
    """What the page says."""
    text = PAGE.read_text(encoding="utf-8").split("## Programs for NPUs")[1]
    rows = re.findall(r"^\| ([^|]+) \| ([a-z0-9_, ]+) \| (\d+) \| (\d+) \| (\d+) \|$", text, re.M)
    return {name: (called, int(kernels), int(hccl), int(host)) for name, called, kernels, hccl, host in rows}


def test_the_page_has_all_rows() -> None:
    assert list(table()) == [*ROWS, *FUNCTIONS]


@pytest.mark.parametrize("name", [*ROWS, *FUNCTIONS])
def test_who_does_it(name: str, tmp_path: Path) -> None:
    assert table()[name] == counted(name, tmp_path)
