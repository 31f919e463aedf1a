# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention is recognised however its ops cut the batch and the heads, and its one call gives what NumPy does."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import codegen_cases
import numpy as np
import pytest
from ascend_fakes import use_fake_npu
from codegen_cases import Array, Execute

Cut = tuple[int, ...]
HEADS, ROWS, KEYS, WIDTH = 12, 5, 8, 16


@pytest.fixture(autouse=True)
def on_the_fake_npu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile for NPUs, and run on fake ones."""
    use_fake_npu(monkeypatch)
    monkeypatch.setattr(codegen_cases, "TARGET", "ascend")


def tensor(*sizes: int) -> str:
    """The type of that shape."""
    return f"tensor<{'x'.join(map(str, sizes))}xf32>"


def maps(loops: int, *results: Sequence[int]) -> str:
    """Maps from so many loops to some of them each."""
    names = [f"d{loop}" for loop in range(loops)]
    return ", ".join(
        f"affine_map<({', '.join(names)}) -> ({', '.join(names[loop] for loop in result)})>" for result in results
    )


def iterators(loops: int, reductions: Sequence[int] = ()) -> str:
    """What each loop is."""
    return ", ".join('"reduction"' if loop in reductions else '"parallel"' for loop in range(loops))


class Program:
    """The text of a function, line by line."""

    def __init__(self) -> None:
        self.lines = [
            "%zero = arith.constant 0.0 : f32",
            "%lowest = arith.constant 0xFF800000 : f32",
            "%scale = arith.constant 2.5e-01 : f32",
        ]

    def generic(
        self, name: str, maps: str, iterators: str, operands: Sequence[tuple[str, str]], init: str, to: str, body: str
    ) -> None:
        """A structured op that writes over ``init``.

        Args:
            name: Its result's.
            maps: Of the operands and the result.
            iterators: Of its loops.
            operands: Names and types.
            init: What the result is filled with before.
            to: The result's type.
            body: Computes %r of %a, %b, and of %o, the result so far.
        """
        arguments = "".join(f"%{'ab'[number]}: f32, " for number in range(len(operands)))
        self.lines.append(f"""
      %{name}_empty = tensor.empty() : {to}
      %{name}_init = linalg.fill ins({init} : f32) outs(%{name}_empty : {to}) -> {to}
      %{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
          ins({", ".join(one for one, _ in operands)} : {", ".join(one for _, one in operands)})
          outs(%{name}_init : {to}) {{
      ^bb0({arguments}%o: f32):
        {body}
        linalg.yield %r : f32
      }} -> {to}""")

    def reshape(self, name: str, before: Cut, after: Cut, rest: tuple[int, ...]) -> str:
        """A value of other heads: all are made one dimension, and that is cut anew."""
        count = len(rest)
        whole = (math.prod(before), *rest)
        for op, outer, source, result in (
            ("collapse", before, (*before, *rest), whole),
            ("expand", after, whole, (*after, *rest)),
        ):
            groups = [list(range(len(outer))), *([len(outer) + number] for number in range(count))]
            sizes = "" if op == "collapse" else f" output_shape {list(result)}"
            if source != result:
                self.lines.append(
                    f"%{name}_{op} = tensor.{op}_shape %{name} {groups}{sizes} : {tensor(*source)} into {tensor(*result)}"
                )
                name = f"{name}_{op}"
        return name


DOT = "%x = arith.mulf %a, %b : f32\n%r = arith.addf %o, %x : f32"


def attention(scores: Cut, masked: Cut, rows: Cut, values: Cut) -> str:
    """The function, with heads cut in that way by the ops; K and V have no dimension for the last loop of heads, if there are three."""
    program = Program()
    shared, taken = min(len(scores), 2), min(len(values), 2)

    def product(name: str, cut: Cut, kept: int, left: str, right: str, extents: tuple[int, int, int]) -> None:
        """For each head; the right operand has the first ``kept`` loops of heads, and the keys before the width."""
        rows, columns, summed = extents
        n = len(cut)
        right_loops, right_shape = [n + 1, n + 2], (columns, summed)
        if summed == KEYS:
            right_loops, right_shape = [n + 2, n + 1], (summed, columns)
        program.generic(
            name,
            maps(n + 3, [*range(n), n, n + 2], [*range(kept), *right_loops], [*range(n), n, n + 1]),
            iterators(n + 3, [n + 2]),
            [(left, tensor(*cut, rows, summed)), (right, tensor(*cut[:kept], *right_shape))],
            "%zero",
            tensor(*cut, rows, columns),
            DOT,
        )

    product("s", scores, shared, "%q", "%k", (ROWS, KEYS, WIDTH))
    matrix = (ROWS, KEYS)
    s = program.reshape("s", scores, masked, matrix)
    n = len(masked)
    everything = range(n + 2)
    kind = tensor(*masked, *matrix)
    program.generic(
        "t",
        maps(n + 2, everything, [0, n, n + 1], everything),
        iterators(n + 2),
        [(f"%{s}", kind), ("%mask", tensor(masked[0], *matrix))],
        "%zero",
        kind,
        "%x = arith.mulf %a, %scale : f32\n%r = arith.addf %x, %b : f32",
    )
    t = program.reshape("t", masked, rows, matrix)
    n = len(rows)
    everything, kept = range(n + 2), range(n + 1)
    kind = tensor(*rows, *matrix)
    for name, made, of, start, combiner, body in (
        ("most", "power", t, "%lowest", "maximumf", "%d = arith.subf %a, %b : f32\n%r = math.exp %d : f32"),
        ("total", "p", "power", "%zero", "addf", "%r = arith.divf %a, %b : f32"),
    ):
        row = tensor(*rows, ROWS)
        one = f"%r = arith.{combiner} %a, %o : f32"
        program.generic(
            name, maps(n + 2, everything, kept), iterators(n + 2, [n + 1]), [(f"%{of}", kind)], start, row, one
        )
        operands = [(f"%{of}", kind), (f"%{name}", row)]
        program.generic(
            made, maps(n + 2, everything, kept, everything), iterators(n + 2), operands, "%zero", kind, body
        )
    p = program.reshape("p", rows, values, matrix)
    product("z", values, taken, f"%{p}", "%v", (ROWS, WIDTH, KEYS))
    arguments = ", ".join(
        (
            f"%q: {tensor(*scores, ROWS, WIDTH)}, %k: {tensor(*scores[:shared], KEYS, WIDTH)}",
            f"%v: {tensor(*values[:taken], KEYS, WIDTH)}, %mask: {tensor(masked[0], *matrix)}",
        )
    )
    kind = tensor(*values, ROWS, WIDTH)
    body = "\n".join(program.lines)
    return f"func.func @main({arguments}) -> {kind} {{\n{body}\nreturn %z : {kind}\n}}"


def in_numpy(q: Array, k: Array, v: Array, mask: Array) -> Array:
    """The same, of one dimension of heads: who has fewer of them has each for as many neighbours."""
    q = q.reshape(HEADS, ROWS, WIDTH)
    k, v = (one.reshape(-1, KEYS, WIDTH) for one in (k, v))
    k, v, mask = (np.repeat(one, HEADS // len(one), axis=0) for one in (k, v, mask))
    scaled = np.einsum("hmk,hnk->hmn", q, k) * 0.25 + mask
    power = np.exp(scaled - scaled.max(-1, keepdims=True))
    return np.einsum("hmn,hne->hme", power / power.sum(-1, keepdims=True), v)


CALL = "one call, with a mask"
UNFIT = "none: its ops cut heads at places that do not fit"
CASES: list[tuple[Cut, Cut, Cut, Cut, str]] = [
    ((2, 2, 3), (2, 2, 3), (2, 2, 3), (2, 2, 3), CALL),
    ((2, 2, 3), (2, 2, 3), (2, 6), (2, 2, 3), CALL),
    ((2, 2, 3), (2, 6), (12,), (2, 6), CALL),
    ((12,), (2, 6), (2, 2, 3), (12,), CALL),
    ((2, 6), (12,), (4, 3), (2, 2, 3), CALL),
    ((12,), (12,), (12,), (2, 6), CALL),
    ((12,), (2, 6), (12,), (6, 2), CALL),
    ((4, 3), (4, 3), (12,), (2, 6), CALL),
    ((3, 4), (12,), (12,), (4, 3), UNFIT),
    ((2, 6), (3, 4), (12,), (2, 6), UNFIT),
]


@pytest.mark.parametrize(("scores", "masked", "rows", "values", "told"), CASES)
def test_cuts(scores: Cut, masked: Cut, rows: Cut, values: Cut, told: str, execute: Execute, tmp_path: Path) -> None:
    """What does not fit stays as it is, and is as right."""
    generator = np.random.default_rng(7)
    shapes = (
        (*scores, ROWS, WIDTH),
        (*scores[:2], KEYS, WIDTH),
        (*values[:2], KEYS, WIDTH),
        (masked[0], ROWS, KEYS),
    )
    q, k, v, mask = (generator.standard_normal(shape, np.float32) for shape in shapes)
    (result,) = execute(attention(scores, masked, rows, values), q, k, v, mask)
    np.testing.assert_allclose(result.reshape(HEADS, ROWS, WIDTH), in_numpy(q, k, v, mask), rtol=1e-4, atol=1e-5)
    description = json.loads((tmp_path / "program.json").read_text())
    assert description["attention"] == {told: 1}
    assert description["operations"].get("attention", 0) == (1 if told == CALL else 0)
