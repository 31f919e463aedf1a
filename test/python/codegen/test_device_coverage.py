# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of docs/Runtime.md that says who does an op of a program for GPUs: each row is compiled, and counted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hyperparallel import _hyperparallel
from hyperparallel.pipeline import make_context, parse_program

PAGE = Path(__file__).resolve().parents[3] / "docs" / "Runtime.md"


def generic(maps: str, loops: str, operands: str, body: str, result: str) -> str:
    """One structured op."""
    kinds = ", ".join({"p": '"parallel"', "r": '"reduction"'}[loop] for loop in loops)
    return (
        f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {operands} {{\n{body}\n}} -> {result}"
    )


def affine(dims: str, *results: str) -> str:
    """Indexing maps of one op."""
    return ", ".join(f"affine_map<({dims}) -> ({result})>" for result in results)


PRODUCT = generic(
    affine("m, n, k", "m, k", "k, n", "m, n"),
    "ppr",
    "ins(%x, %w : tensor<8x16xf32>, tensor<16x8xf32>) outs(%zeros : tensor<8x8xf32>)",
    "^bb0(%a: f32, %b: f32, %c: f32):\n%m = arith.mulf %a, %b : f32\n%s = arith.addf %c, %m : f32\nlinalg.yield %s : f32",
    "tensor<8x8xf32>",
)
GELU = """^bb0(%a: f32, %b: f32, %c: f32):
%s = arith.addf %a, %b : f32
%s2 = arith.mulf %s, %s : f32
%s3 = arith.mulf %s2, %s : f32
%c3 = arith.mulf %s3, %cubic : f32
%in = arith.addf %s, %c3 : f32
%in2 = arith.mulf %in, %root : f32
%t = math.tanh %in2 : f32
%t1 = arith.addf %t, %one : f32
%h = arith.mulf %s, %half : f32
%g = arith.mulf %h, %t1 : f32
linalg.yield %g : f32"""
CONSTANTS = """%zero = arith.constant 0.0 : f32
%one = arith.constant 1.0 : f32
%half = arith.constant 0.5 : f32
%root = arith.constant 0.797884583 : f32
%cubic = arith.constant 4.471500e-02 : f32
%least = arith.constant 0xFF800000 : f32
%square = tensor.empty() : tensor<8x8xf32>
%wide = tensor.empty() : tensor<8x16xf32>
%tall = tensor.empty() : tensor<16x8xf32>
%rows = tensor.empty() : tensor<8xf32>
%columns = tensor.empty() : tensor<16xf32>
%zeros = linalg.fill ins(%zero : f32) outs(%square : tensor<8x8xf32>) -> tensor<8x8xf32>
%none = linalg.fill ins(%zero : f32) outs(%rows : tensor<8xf32>) -> tensor<8xf32>
%noneC = linalg.fill ins(%zero : f32) outs(%columns : tensor<16xf32>) -> tensor<16xf32>
%lowest = linalg.fill ins(%least : f32) outs(%rows : tensor<8xf32>) -> tensor<8xf32>"""
WIDE = "tensor<8x16xf32>"


def elementwise(body: str) -> str:
    """An op on each element of %x."""
    return generic(
        affine("i, j", "i, j", "i, j"),
        "pp",
        f"ins(%x : {WIDE}) outs(%wide : {WIDE})",
        f"^bb0(%a: f32, %c: f32):\n{body}\nlinalg.yield %r : f32",
        WIDE,
    )


def reduced(kept: str, init: str, combiner: str, of: str = "%x") -> str:
    """A reduction of a matrix to a vector."""
    vector = {"i": "tensor<8xf32>", "j": "tensor<16xf32>"}[kept]
    return generic(
        affine("i, j", "i, j", kept),
        {"i": "pr", "j": "rp"}[kept],
        f"ins({of} : {WIDE}) outs({init} : {vector})",
        f"^bb0(%a: f32, %c: f32):\n%r = arith.{combiner} %a, %c : f32\nlinalg.yield %r : f32",
        vector,
    )


def by_row(of: str, row: str, body: str) -> str:
    """An op of a matrix and a number of each row."""
    return generic(
        affine("i, j", "i, j", "i", "i, j"),
        "pp",
        f"ins({of}, {row} : {WIDE}, tensor<8xf32>) outs(%wide : {WIDE})",
        f"^bb0(%a: f32, %b: f32, %c: f32):\n{body}\nlinalg.yield %r : f32",
        WIDE,
    )


OPS: dict[str, tuple[str, str]] = {
    "product": (f"%y = {PRODUCT}", "tensor<8x8xf32>"),
    "product, bias, tanh-GELU": (
        f"%p = {PRODUCT}\n%y = "
        + generic(
            affine("i, j", "i, j", "j", "i, j"),
            "pp",
            "ins(%p, %bias : tensor<8x8xf32>, tensor<8xf32>) outs(%square : tensor<8x8xf32>)",
            GELU,
            "tensor<8x8xf32>",
        ),
        "tensor<8x8xf32>",
    ),
    "elements": ("%y = " + elementwise("%r = math.exp %a : f32"), WIDE),
    "sums of rows": ("%y = " + reduced("i", "%none", "addf"), "tensor<8xf32>"),
    "sums of columns": ("%y = " + reduced("j", "%noneC", "addf"), "tensor<16xf32>"),
    "softmax": (
        f"%m = {reduced('i', '%lowest', 'maximumf')}\n"
        f"%e = {by_row('%x', '%m', '%d = arith.subf %a, %b : f32' + chr(10) + '%r = math.exp %d : f32')}\n"
        f"%t = {reduced('i', '%none', 'addf', '%e')}\n"
        f"%y = {by_row('%e', '%t', '%r = arith.divf %a, %b : f32')}",
        WIDE,
    ),
    "transpose": (
        f"%y = linalg.transpose ins(%x : {WIDE}) outs(%tall : tensor<16x8xf32>) permutation = [1, 0]",
        "tensor<16x8xf32>",
    ),
    "rows by number (embedding)": (
        "%y = "
        + generic(
            affine("i, j", "i", "i, j"),
            "pp",
            f"ins(%numbers : tensor<8xi64>) outs(%wide : {WIDE})",
            "^bb0(%n64: i64, %c: f32):\n%j = linalg.index 1 : index\n%n = arith.index_cast %n64 : i64 to index\n"
            f"%r = tensor.extract %x[%n, %j] : {WIDE}\nlinalg.yield %r : f32",
            WIDE,
        ),
        WIDE,
    ),
    "sums by number (its gradient)": (
        f"%y = indexing.scatter_add %x at %numbers into %wide0 : {WIDE}, tensor<8xi64> into {WIDE}",
        WIDE,
    ),
    "all-reduce": (f'%y = hypershard.all_reduce %x over @mesh {{"d"}} <sum> : {WIDE} -> {WIDE}', WIDE),
    "a loop as long as a value says": (
        "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
        "%n64 = tensor.extract %numbers[%c0] : tensor<8xi64>\n%n = arith.index_cast %n64 : i64 to index\n"
        f"%y = scf.for %i = %c0 to %n step %c1 iter_args(%wide1 = %x) -> {WIDE} {{\n%z = "
        + elementwise("%r = math.exp %a : f32").replace("ins(%x", "ins(%wide1")
        + f"\nscf.yield %z : {WIDE}\n}}",
        WIDE,
    ),
}


def counted(name: str, folder: Path) -> tuple[int, int, int, int]:
    """Calls of cuBLASLt, kernels, calls of NCCL, and accesses by the host."""
    body, result = OPS[name]
    text = (
        'hypershard.mesh @mesh = <["d"=2]>\n'
        f"func.func @main(%x: {WIDE}, %w: tensor<16x8xf32>, %bias: tensor<8xf32>, "
        f"%numbers: tensor<8xi64>) -> {result} {{\n{CONSTANTS}\n"
        f"%wide0 = linalg.fill ins(%zero : f32) outs(%wide : {WIDE}) -> {WIDE}\n{body}\nreturn %y : {result}\n}}"
    )
    path = folder / "program.so"
    module = parse_program(text, "row.mlir", make_context())
    _hyperparallel.compile_program(module, str(path), "", 1, str(folder / "kernels.ptx"), "sm_80")
    described = json.loads(path.with_suffix(".json").read_text())
    calls: dict[str, int] = described["calls"]
    return (
        calls.get("hp_rt_matmul", 0),
        len(described["kernels"]),
        calls.get("hp_rt_all_reduce", 0),
        calls.get("hp_rt_read", 0) + calls.get("hp_rt_write", 0),
    )


def table() -> dict[str, tuple[int, int, int, int]]:
    """What the page says."""
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    return {name: (int(library), int(kernels), int(nccl), int(host)) for name, library, kernels, nccl, host in rows}


def test_the_page_has_all_rows() -> None:
    assert list(table()) == list(OPS)


@pytest.mark.parametrize("name", OPS)
def test_who_does_it(name: str, tmp_path: Path) -> None:
    assert table()[name] == counted(name, tmp_path)
