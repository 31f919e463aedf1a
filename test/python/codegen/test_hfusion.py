# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments in HFusion's text compute what NumPy does, and Ascend's compiler takes them: random bodies, maps, reductions."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mlir import ir
from mlir.passmanager import PassManager
from numpy.typing import NDArray

from hyperparallel.bishengir import assemble_fragments
from hyperparallel.pipeline import make_context, parse_program
from hyperparallel.testing.hfusion import twin_of

Array = NDArray[np.float32]

ROWS, COLUMNS = 6, 24
MAPS: dict[str, tuple[tuple[int, ...], Callable[[Array], Array]]] = {
    "(i, j)": ((ROWS, COLUMNS), lambda x: x),
    "(i)": ((ROWS,), lambda x: x[:, None]),
    "(j)": ((COLUMNS,), lambda x: x[None, :]),
    "()": ((), lambda x: x),
    "(i, 0)": ((ROWS, 1), lambda x: x),
}
UNARY: dict[str, Callable[[Array], Array]] = {
    "arith.negf": np.negative,
    "math.absf": np.abs,
    "math.tanh": np.tanh,
    "math.sin": np.sin,
    "math.floor": np.floor,
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
}


class Case:
    """A random op on buffers, and what it computes."""

    def __init__(self, number: int) -> None:
        draw = random.Random(number)
        values = np.random.default_rng(number)
        self.name = f"case{number}"
        self.inputs: list[Array] = []
        known: list[tuple[str, Array]] = []
        lines: list[str] = []
        maps: list[str] = []
        self.reduces = draw.random() < 0.4
        for number_of_input in range(draw.randint(1, 4)):
            # The loop of a reduction needs an operand that says how long it is.
            text = "(i, j)" if self.reduces and number_of_input == 0 else draw.choice(list(MAPS))
            shape, view = MAPS[text]
            self.inputs.append(values.standard_normal(shape, dtype=np.float32))
            known.append((f"%x{len(maps)}", view(self.inputs[-1])))
            maps.append(text)

        def add(operation: str, value: Array) -> None:
            name = f"%{len(lines)}"
            lines.append(f"{name} = {operation}")
            known.append((name, np.asarray(value, np.float32)))

        for _ in range(draw.randint(1, 7)):
            (left, a), (right, b) = draw.choice(known), draw.choice(known)
            kind = draw.randrange(6)
            if kind == 0:
                operation = draw.choice(list(UNARY))
                add(f"{operation} {left} : f32", UNARY[operation](a))
            elif kind == 1:
                constant = np.float32(draw.choice([-1.5, 0.25, 2.0]))
                add(f"arith.constant {constant:e} : f32", np.asarray(constant))
            elif kind == 2:
                lines.append(f"%{len(lines)} = arith.cmpf olt, {left}, {right} : f32")
                add(f"arith.select %{len(lines) - 1}, {right}, {left} : f32", np.where(a < b, b, a))
            elif kind == 3:
                dim = draw.randrange(2)
                lines.append(f"%{len(lines)} = linalg.index {dim} : index")
                lines.append(f"%{len(lines)} = arith.index_cast %{len(lines) - 1} : index to i64")
                count = np.arange(ROWS)[:, None] if dim == 0 else np.arange(COLUMNS)[None, :]
                add(f"arith.sitofp %{len(lines) - 1} : i64 to f32", count.astype(np.float32))
            else:
                operation = draw.choice(list(BINARY))
                add(f"{operation} {left}, {right} : f32", BINARY[operation](a, b))
        result, value = known[-1]
        whole = np.broadcast_to(value, (ROWS, COLUMNS))
        if self.reduces:
            before = values.standard_normal(ROWS, dtype=np.float32)
            self.inputs.append(before)
            lines.append(f"%{len(lines)} = arith.addf %out, {result} : f32")
            result, self.wanted, out_map = f"%{len(lines) - 1}", before + whole.sum(1, dtype=np.float32), "(i)"
        else:
            out_map, self.wanted = "(i, j)", np.ascontiguousarray(whole)
        out = _memref(self.wanted.shape)
        types = [_memref(array.shape) for array in self.inputs[: len(maps)]]
        arguments = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(types))
        self.text = f"""
        func.func @{self.name}({arguments}, %r: {out}) {{
          linalg.generic {{indexing_maps = [{", ".join(f"affine_map<(i, j) -> {one}>" for one in [*maps, out_map])}],
              iterator_types = ["parallel", "{"reduction" if self.reduces else "parallel"}"]}}
              ins({", ".join(f"%a{i}" for i in range(len(types)))} : {", ".join(types)}) outs(%r : {out}) {{
          ^bb0({", ".join(f"%x{i}: f32" for i in range(len(types)))}, %out: f32):
            {chr(10).join(lines)}
            linalg.yield {result} : f32
          }}
          return
        }}"""


def _memref(shape: tuple[int, ...]) -> str:
    return f"memref<{''.join(f'{size}x' for size in shape)}f32>"


def fragments_of(text: str) -> dict[str, tuple[str, list[int]]]:
    """Texts of a module's fragments by the function that calls them, and the caller's arguments that each takes."""
    context = make_context()
    module = parse_program(text, "cases.mlir", context)
    with context:
        PassManager.parse("builtin.module(hp-form-fragments)").run(module.operation)
    found: dict[str, tuple[str, list[int]]] = {}
    texts = {
        ir.StringAttr(op.attributes["sym_name"]).value: ir.StringAttr(op.attributes["hp.fragment"]).value
        for op in module.body.operations
        if "hp.fragment" in op.attributes
    }
    for function in module.body.operations:
        for block in function.regions[0].blocks:
            arguments = list(block.arguments)
            for op in block.operations:
                callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value if "callee" in op.attributes else ""
                if callee in texts:
                    # A result that is read, too, goes to a buffer of its own: -1.
                    taken = [arguments.index(one) if one in arguments else -1 for one in op.operands]
                    found[ir.StringAttr(function.attributes["sym_name"]).value] = (texts[callee], taken)
    return found


def test_random_fragments(tmp_path: Path) -> None:
    if importlib.util.find_spec("ascendnpuir") is None and "HP_BISHENGIR" not in os.environ:
        pytest.skip("no ascendnpu-ir: fragments can be neither scheduled nor run")
    cases = [Case(number) for number in range(40)]
    fragments = fragments_of("".join(case.text for case in cases))
    # Of equal functions the compiler keeps one, and so does hp-form-fragments.
    names: dict[str, str] = {}
    for name, (text, _) in fragments.items():
        names.setdefault(text, name)
    module = "".join(text.replace("@fragment(", f"@{name}(", 1) for text, name in names.items())
    (tmp_path / "kernels.mlir").write_text(f"module {{\n{module}}}\n")
    scheduled = assemble_fragments(tmp_path / "kernels.mlir", "Ascend910B1")
    assert [fragment.name for fragment in scheduled] == list(names.values())
    library = ctypes.CDLL(str(twin_of((tmp_path / "kernels.mlir").read_text())))
    for case in cases:
        result = np.full_like(case.wanted, np.nan)
        # A reduction adds to what is there, which is the last of its inputs.
        values = [*case.inputs, result]
        text, taken = fragments[case.name]
        run = library[names[text]]
        run(*(ctypes.c_void_p(values[number].ctypes.data) for number in taken))
        np.testing.assert_allclose(result, case.wanted, rtol=2e-5, atol=2e-5, err_msg=case.text)
