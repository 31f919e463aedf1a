# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What CANN has an operator for goes to it, if a fragment would not be cheaper: called on the fake NPU, held against NumPy."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import codegen_cases
import numpy as np
import pytest
from ascend_fakes import use_fake_npu
from codegen_cases import Array, Execute

SIZES = (3, 4, 8)
SHAPE = "3x4x8x"
NUMPY = {"f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32}
MAPS = {"all": "(i, j, k)", "row": "(i, j, 0)", "column": "(k)", "turned": "(k, i, j)"}
UNARY: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "abs": ("math.absf", np.abs),
    "ceil": ("math.ceil", np.ceil),
    "cos": ("math.cos", np.cos),
    "erf": ("math.erf", np.vectorize(math.erf, otypes=[np.float32])),
    "exp": ("math.exp", np.exp),
    "floor": ("math.floor", np.floor),
    "log": ("math.log", np.log),
    "neg": ("arith.negf", np.negative),
    "rsqrt": ("math.rsqrt", lambda x: 1 / np.sqrt(x)),
    "sin": ("math.sin", np.sin),
    "sqrt": ("math.sqrt", np.sqrt),
    "tanh": ("math.tanh", np.tanh),
}
BINARY: dict[str, tuple[str, Callable[[Array, Array], Array]]] = {
    "add": ("add", np.add),
    "sub": ("sub", np.subtract),
    "mul": ("mul", np.multiply),
    "div": ("div", np.divide),
    "maximum": ("max", np.maximum),
    "minimum": ("min", np.minimum),
}


@pytest.fixture(autouse=True)
def on_the_fake_npu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile for NPUs, and run on fake ones."""
    use_fake_npu(monkeypatch)
    monkeypatch.setattr(codegen_cases, "TARGET", "ascend")


def structured(result: str, operands: Sequence[tuple[str, str, str]], body: str, to: str, element: str) -> str:
    """An elementwise op on 3x4x8 elements.

    Args:
        result: Its name, and that of the tensor that it writes, without the percent sign.
        operands: Of each the name, the kind of its map, and its type.
        body: Computes %r of %a, %b and so on.
        to: The result's type.
        element: And its elements'.
    """
    kind = "row" if "x1x" in to else "all"
    maps = ", ".join(f"affine_map<(i, j, k) -> {MAPS[one]}>" for one in [*(kind for _, kind, _ in operands), "all"])
    if kind == "row":
        maps = ", ".join(["affine_map<(i, j, k) -> (i, j, k)>"] * (len(operands) + 1))
    arguments = ", ".join(f"%{'abc'[i]}: {of.split('x')[-1][:-1]}" for i, (_, _, of) in enumerate(operands))
    return f"""
      %{result}_empty = tensor.empty() : {to}
      %{result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "parallel"]}}
          ins({", ".join(name for name, _, _ in operands)} : {", ".join(of for _, _, of in operands)})
          outs(%{result}_empty : {to}) {{
      ^bb0({arguments}, %out: {element}):
        {body}
        linalg.yield %r : {element}
      }} -> {to}"""


def reduced(result: str, of: str, combiner: str, start: str, dims: str = "r") -> str:
    """A row's elements combined: 3x4x1 of 3x4x8."""
    return f"""
      %{result}_start = arith.constant {start} : f32
      %{result}_empty = tensor.empty() : tensor<3x4x1xf32>
      %{result}_init = linalg.fill ins(%{result}_start : f32) outs(%{result}_empty : tensor<3x4x1xf32>)
          -> tensor<3x4x1xf32>
      %{result} = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, 0)>],
          iterator_types = ["parallel", "parallel", "reduction"]}}
          ins({of} : tensor<3x4x8xf32>) outs(%{result}_init : tensor<3x4x1xf32>) {{
      ^bb0(%a: f32, %out: f32):
        %r = arith.{combiner} %a, %out : f32
        linalg.yield %r : f32
      }} -> tensor<3x4x1xf32>"""


WIDE, ROWS, COLUMNS = "tensor<3x4x8xf32>", "tensor<3x4x1xf32>", "tensor<8xf32>"


def wide(result: str, operands: Sequence[tuple[str, str]], body: str) -> str:
    types = {"all": WIDE, "row": ROWS, "column": COLUMNS}
    return structured(result, [(name, kind, types[kind]) for name, kind in operands], body, WIDE, "f32")


def rows(result: str, of: str, body: str) -> str:
    return structured(result, [(of, "all", ROWS)], body, ROWS, "f32")


SOFTMAX = (
    reduced("most", "%x", "maximumf", "0xFF800000")
    + wide("less", [("%x", "all"), ("%most", "row")], "%r = arith.subf %a, %b : f32")
    + wide("power", [("%less", "all")], "%r = math.exp %a : f32")
    + reduced("total", "%power", "addf", "0.0")
    + wide("y", [("%power", "all"), ("%total", "row")], "%r = arith.divf %a, %b : f32")
)
RECIPROCAL = (
    reduced("squares", "%square", "addf", "0.0")
    + rows("variance", "%squares", "%n = arith.constant 8.0 : f32\n%r = arith.divf %a, %n : f32")
    + rows("more", "%variance", "%e = arith.constant 1.0e-5 : f32\n%r = arith.addf %a, %e : f32")
    + rows("rstd", "%more", "%r = math.rsqrt %a : f32")
)
LAYER_NORM = (
    reduced("sum", "%x", "addf", "0.0")
    + rows("mean", "%sum", "%n = arith.constant 8.0 : f32\n%r = arith.divf %a, %n : f32")
    + wide("centred", [("%x", "all"), ("%mean", "row")], "%r = arith.subf %a, %b : f32")
    + wide("square", [("%centred", "all"), ("%centred", "all")], "%r = arith.mulf %a, %b : f32")
    + RECIPROCAL
    + wide("scaled", [("%centred", "all"), ("%rstd", "row")], "%r = arith.mulf %a, %b : f32")
    + wide("weighed", [("%scaled", "all"), ("%w", "column")], "%r = arith.mulf %a, %b : f32")
    + wide("y", [("%weighed", "all"), ("%v", "column")], "%r = arith.addf %a, %b : f32")
)
RMS_NORM = (
    wide("square", [("%x", "all"), ("%x", "all")], "%r = arith.mulf %a, %b : f32")
    + RECIPROCAL
    + wide("scaled", [("%x", "all"), ("%rstd", "row")], "%r = arith.mulf %a, %b : f32")
    + wide("y", [("%w", "column"), ("%scaled", "all")], "%r = arith.mulf %a, %b : f32")
)


def program(arguments: str, body: str, results: Sequence[tuple[str, str]]) -> str:
    types = ", ".join(of for _, of in results)
    return (
        f"func.func @main({arguments}) -> ({types}) {{{body}\n"
        f"return {', '.join(name for name, _ in results)} : {types}\n}}"
    )


def told_of(tmp_path: Path) -> tuple[dict[str, int], int, dict[str, int]]:
    """Calls of operators, kernels, and what was chosen for which reason, of the last program."""
    told = json.loads((tmp_path / "program.json").read_text())
    return told.get("operations", {}), len(told["kernels"]), told.get("choices", {})


def softmax(x: Array) -> Array:
    power = np.exp(x - x.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(0.3, 2.0, shape).astype(np.float32)


NO_MORE = "operator, no more launches and trips to memory than a fragment"


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_functions_of_elements(element: str, execute: Execute, tmp_path: Path) -> None:
    of = f"tensor<{SHAPE}{element}>"
    body = "".join(
        structured(name, [("%x", "all", of)], f"%r = {op} %a : {element}", of, element)
        for name, (op, _) in UNARY.items()
    )
    x = numbers(*SIZES).astype(NUMPY[element])
    results = execute(program(f"%x: {of}", body, [(f"%{name}", of) for name in UNARY]), x)
    for (name, (_, function)), result in zip(UNARY.items(), results, strict=True):
        wanted = function(x.astype(np.float32))
        np.testing.assert_allclose(result, wanted, rtol=2e-3 if element == "f16" else 1e-5, err_msg=name)
    assert told_of(tmp_path) == (dict.fromkeys(UNARY, 1), 0, {f"{name}: {NO_MORE}": 1 for name in UNARY})


@pytest.mark.parametrize("element", ["f32", "f16", "i64"])
@pytest.mark.parametrize("other", ["all", "column", "number"])
def test_functions_of_two(element: str, other: str, execute: Execute, tmp_path: Path) -> None:
    """Of tensors of one shape, with a column that is repeated, and with a number."""
    of, column = f"tensor<{SHAPE}{element}>", f"tensor<8x{element}>"
    suffix, body = ("i" if element[0] == "i" else "f"), ""
    names = [name for name in BINARY if name != "div" or suffix == "f"]
    if other == "number":
        names = [name for name in names if name[0] != "m" or name == "mul"]
    for name in names:
        op = f"arith.{BINARY[name][0]}{'imumf' if name[:2] in ('ma', 'mi') and suffix == 'f' else suffix}"
        op = op.replace("maxi", "maxsi").replace("mini", "minsi") if suffix == "i" else op
        number = f"%n = arith.constant {'3' if suffix == 'i' else '3.0'} : {element}\n" if other == "number" else ""
        operands = [("%x", "all", of), ("%w", other, of if other == "all" else column)]
        body += structured(
            name,
            operands[:1] if number else operands,
            f"{number}%r = {op} %a, {'%n' if number else '%b'} : {element}",
            of,
            element,
        )
    x = (7 * numbers(*SIZES)).astype(NUMPY[element])
    w = (7 * numbers(*(SIZES if other == "all" else SIZES[-1:]), seed=1)).astype(NUMPY[element])
    text = program(f"%x: {of}, %w: {of if other == 'all' else column}", body, [(f"%{name}", of) for name in names])
    for name, result in zip(names, execute(text, x, w), strict=True):
        wanted = BINARY[name][1](x, np.asarray(3, NUMPY[element]) if other == "number" else w)
        np.testing.assert_allclose(result, wanted, rtol=2e-3 if element == "f16" else 1e-6, err_msg=name)
    called = [f"{name}_scalar" if other == "number" else name for name in names]
    assert told_of(tmp_path)[:2] == (dict.fromkeys(called, 1), 0)


@pytest.mark.parametrize(
    ("source", "target", "op"),
    [("f32", "f16", "truncf"), ("f16", "f32", "extf"), ("i64", "f32", "sitofp"), ("f32", "i32", "fptosi")],
)
def test_changes_of_type(source: str, target: str, op: str, execute: Execute, tmp_path: Path) -> None:
    of, to = f"tensor<{SHAPE}{source}>", f"tensor<{SHAPE}{target}>"
    body = structured("y", [("%x", "all", of)], f"%r = arith.{op} %a : {source} to {target}", to, target)
    x = (9 * numbers(*SIZES)).astype(NUMPY[source])
    (result,) = execute(program(f"%x: {of}", body, [("%y", to)]), x)
    np.testing.assert_array_equal(result, x.astype(NUMPY[target]))
    assert told_of(tmp_path)[:2] == ({"cast": 1}, 0)


def test_reductions(execute: Execute, tmp_path: Path) -> None:
    body = (
        reduced("sum", "%x", "addf", "0.0")
        + reduced("most", "%x", "maximumf", "0xFF800000")
        + reduced("least", "%x", "minimumf", "0x7F800000")
    )
    x = numbers(*SIZES) - 1
    text = program(f"%x: {WIDE}", body, [("%sum", ROWS), ("%most", ROWS), ("%least", ROWS)])
    results = execute(text, x)
    for result, function in zip(results, (np.sum, np.max, np.min), strict=True):
        np.testing.assert_allclose(result, function(x, axis=-1, keepdims=True), rtol=1e-5)
    assert told_of(tmp_path)[:2] == ({"sum": 1, "max": 1, "min": 1}, 0)


def test_permutation_and_fill(execute: Execute, tmp_path: Path) -> None:
    text = """
    func.func @main(%x: tensor<3x4x8xf32>) -> (tensor<8x3x4xf32>, tensor<5xf16>) {
      %e = tensor.empty() : tensor<8x3x4xf32>
      %y = linalg.transpose ins(%x : tensor<3x4x8xf32>) outs(%e : tensor<8x3x4xf32>) permutation = [2, 0, 1]
      %n = arith.constant -1.5 : f16
      %f = tensor.empty() : tensor<5xf16>
      %z = linalg.fill ins(%n : f16) outs(%f : tensor<5xf16>) -> tensor<5xf16>
      return %y, %z : tensor<8x3x4xf32>, tensor<5xf16>
    }"""
    x = numbers(*SIZES)
    turned, filled = execute(text, x)
    np.testing.assert_array_equal(turned, x.transpose(2, 0, 1))
    np.testing.assert_array_equal(filled, np.full(5, -1.5, np.float16))
    assert told_of(tmp_path)[:2] == ({"permute": 1, "fill": 1}, 0)


def test_softmax(execute: Execute, tmp_path: Path) -> None:
    x = 3 * numbers(*SIZES)
    (result,) = execute(program(f"%x: {WIDE}", SOFTMAX, [("%y", WIDE)]), x)
    np.testing.assert_allclose(result, softmax(x), rtol=1e-5)
    assert told_of(tmp_path) == ({"softmax": 1}, 0, {f"softmax: {NO_MORE}": 1})


@pytest.mark.parametrize("wanted", [(), ("%mean", "%rstd"), ("%centred",)])
def test_layer_norm(wanted: tuple[str, ...], execute: Execute, tmp_path: Path) -> None:
    """Also with the rows' numbers, as backward wants them, and with what is one step from them, which stays."""
    x, w, v = numbers(*SIZES), numbers(8, seed=1), numbers(8, seed=2)
    types = {"%mean": ROWS, "%rstd": ROWS, "%centred": WIDE}
    results = [("%y", WIDE), *((name, types[name]) for name in wanted)]
    got = execute(program(f"%x: {WIDE}, %w: {COLUMNS}, %v: {COLUMNS}", LAYER_NORM, results), x, w, v)
    mean = x.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    known = {"%y": (x - mean) * rstd * w + v, "%mean": mean, "%rstd": rstd, "%centred": x - mean}
    for (name, _), result in zip(results, got, strict=True):
        np.testing.assert_allclose(result, known[name], rtol=1e-4, atol=1e-5, err_msg=name)
    operations, kernels, choices = told_of(tmp_path)
    assert choices["layer_norm: " + NO_MORE] == operations["layer_norm"] == 1
    assert kernels == ("%centred" in wanted)


def test_rms_norm(execute: Execute, tmp_path: Path) -> None:
    x, w = numbers(*SIZES), numbers(8, seed=1)
    (result,) = execute(program(f"%x: {WIDE}, %w: {COLUMNS}", RMS_NORM, [("%y", WIDE)]), x, w)
    np.testing.assert_allclose(result, x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w, rtol=1e-5)
    assert told_of(tmp_path) == ({"rms_norm": 1}, 0, {f"rms_norm: {NO_MORE}": 1})


def test_neighbours_share_a_fragment(execute: Execute, tmp_path: Path) -> None:
    """A sum before and a product after are one launch with the softmax: the operator would be three, and four trips more."""
    body = (
        wide("x", [("%p", "all"), ("%q", "all")], "%r = arith.addf %a, %b : f32")
        + SOFTMAX
        + wide("z", [("%y", "all"), ("%q", "all")], "%r = arith.mulf %a, %b : f32")
    )
    p, q = numbers(*SIZES), numbers(*SIZES, seed=1)
    (result,) = execute(program(f"%p: {WIDE}, %q: {WIDE}", body, [("%z", WIDE)]), p, q)
    np.testing.assert_allclose(result, softmax(p + q) * q, rtol=1e-5)
    assert told_of(tmp_path) == (
        {},
        1,
        {"softmax: fragment, shares launches and trips to memory with other ops": 1},
    )


def product(result: str, left: str, right: str, maps: Sequence[str], shapes: Sequence[str], element: str) -> str:
    """A contraction over the last of five loops into zeros.

    Args:
        result: Its name.
        left: An operand.
        right: The other one.
        maps: Of the operands, and of the result.
        shapes: The same.
        element: Of all of them.
    """
    types = [f"tensor<{shape}x{element}>" for shape in shapes]
    return f"""
      %{result}_empty = tensor.empty() : {types[2]}
      %{result}_init = linalg.fill ins(%zero : {element}) outs(%{result}_empty : {types[2]}) -> {types[2]}
      %{result} = linalg.generic {{indexing_maps = [{", ".join(f"affine_map<(b, h, m, n, k) -> ({one})>" for one in maps)}],
          iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}}
          ins({left}, {right} : {types[0]}, {types[1]}) outs(%{result}_init : {types[2]}) {{
      ^bb0(%a: {element}, %b: {element}, %c: {element}):
        %times = arith.mulf %a, %b : {element}
        %plus = arith.addf %c, %times : {element}
        linalg.yield %plus : {element}
      }} -> {types[2]}"""


@pytest.mark.parametrize("masked", [False, True])
def test_attention(masked: bool, execute: Execute, tmp_path: Path) -> None:
    """Two products around a softmax, of operands whose heads are not their first dimension."""
    q, k, v = (numbers(2, rows, 4, 16, seed=seed) - 1 for seed, rows in enumerate((3, 8, 8)))
    mask = np.where(numbers(3, 8, seed=3) < 1, np.float32(-3e38), np.float32(0))
    scores = "tensor<2x4x3x8xf32>"
    body = (
        "%zero = arith.constant 0.0 : f32\n%lowest = arith.constant 0xFF800000 : f32\n%scale = arith.constant 2.5e-01 : f32"
        + product(
            "s", "%q", "%k", ("b, m, h, k", "b, n, h, k", "b, h, m, n"), ("2x3x4x16", "2x8x4x16", "2x4x3x8"), "f32"
        )
    )
    ids = "affine_map<(b, h, m, n) -> (b, h, m, n)>"
    mask_map = "affine_map<(b, h, m, n) -> (m, n)>, " if masked else ""
    body += f"""
      %t_empty = tensor.empty() : {scores}
      %t = linalg.generic {{indexing_maps = [{ids}, {mask_map}{ids}],
          iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
          ins(%s{", %mask" if masked else ""} : {scores}{", tensor<3x8xf32>" if masked else ""}) outs(%t_empty : {scores}) {{
      ^bb0(%a: f32, {"%b: f32, " if masked else ""}%o: f32):
        {"%x" if masked else "%r"} = arith.mulf %a, %scale : f32
        {"%r = arith.addf %x, %b : f32" if masked else ""}
        linalg.yield %r : f32
      }} -> {scores}"""
    for result, of, combiner, start in (("most", "%t", "maximumf", "%lowest"), ("total", "%power", "addf", "%zero")):
        reduce = f"""
      %{result}_empty = tensor.empty() : tensor<2x4x3x1xf32>
      %{result}_init = linalg.fill ins({start} : f32) outs(%{result}_empty : tensor<2x4x3x1xf32>) -> tensor<2x4x3x1xf32>
      %{result} = linalg.generic {{indexing_maps = [{ids}, affine_map<(b, h, m, n) -> (b, h, m, 0)>],
          iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
          ins({of} : {scores}) outs(%{result}_init : tensor<2x4x3x1xf32>) {{
      ^bb0(%a: f32, %o: f32):
        %r = arith.{combiner} %a, %o : f32
        linalg.yield %r : f32
      }} -> tensor<2x4x3x1xf32>"""
        operation = (
            "%d = arith.subf %a, %b : f32\n%r = math.exp %d : f32"
            if result == "most"
            else "%r = arith.divf %a, %b : f32"
        )
        made = "power" if result == "most" else "y"
        body += f"""{reduce}
      %{made}_empty = tensor.empty() : {scores}
      %{made} = linalg.generic {{indexing_maps = [{ids}, affine_map<(b, h, m, n) -> (b, h, m, 0)>, {ids}],
          iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
          ins({of}, %{result} : {scores}, tensor<2x4x3x1xf32>) outs(%{made}_empty : {scores}) {{
      ^bb0(%a: f32, %b: f32, %o: f32):
        {operation}
        linalg.yield %r : f32
      }} -> {scores}"""
    body += product(
        "z", "%y", "%v", ("b, h, m, k", "b, k, h, n", "b, m, h, n"), ("2x4x3x8", "2x8x4x16", "2x3x4x16"), "f32"
    )
    arguments = "%q: tensor<2x3x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %mask: tensor<3x8xf32>"
    (result,) = execute(program(arguments, body, [("%z", "tensor<2x3x4x16xf32>")]), q, k, v, mask)
    scaled = np.einsum("bmhk,bnhk->bhmn", q, k) * 0.25 + (mask if masked else 0)
    wanted = np.einsum("bhmn,bnhe->bmhe", softmax(scaled), v)
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)
    operations, kernels, _ = told_of(tmp_path)
    assert (operations, kernels) == ({"attention": 1}, 0)
