# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small programs, each of which does one thing over and over, as text.

A program is a private function, the *step*, and an entry that calls it ``repeats`` times, each time on the result of
the time before. So the time of one step holds all that a kernel costs in a program (the call, the place for its
result), and the time to start a run is spread thin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: The mesh axes that collectives run over, by the number of devices.
MESH = "mesh"
AXIS = "x"


@dataclass(frozen=True, slots=True)
class MicroProgram:
    """One small program.

    Attributes:
        name: Of the entry; the step is called ``NAME_step``.
        text: The functions.
        arguments: Shape and element type of each argument.
        results: Shape and element type of each result.
        repeats: Steps in a run.
        facts: Sizes that a fit wants to know.
    """

    name: str
    text: str
    arguments: tuple[tuple[tuple[int, ...], str], ...]
    results: tuple[tuple[tuple[int, ...], str], ...]
    repeats: int
    facts: Mapping[str, float] = field(default_factory=dict[str, float])


def _tensor(shape: Sequence[int], element: str) -> str:
    return f"tensor<{'x'.join(map(str, [*shape, element]))}>"


def _program(
    name: str,
    arguments: Sequence[tuple[Sequence[int], str]],
    carried: int,
    body: str,
    repeats: int,
    facts: Mapping[str, float],
    copies: int = 1,
) -> MicroProgram:
    """A step of the given body, which makes ``%d`` of the type of argument ``carried``, the value that is carried on.

    With more than one copy of argument 1, steps take them in turn.
    """
    types = [_tensor(shape, element) for shape, element in arguments]
    signature = ", ".join(f"%a{index}: {type_}" for index, type_ in enumerate(types))
    extra = "".join(f", %b{copy}: {types[1]}" for copy in range(1, copies))
    result = types[carried]
    lines = [f"func.func private @{name}_step({signature}) -> {result} {{", body, f"  return %d : {result}"]
    lines += ["}", f"func.func @{name}({signature}{extra}) -> {result} {{"]
    value = f"%a{carried}"
    for turn in range(repeats):
        given = [f"%a{index}" for index in range(len(types))]
        given[carried] = value
        if turn % copies:
            given[1] = f"%b{turn % copies}"
        lines.append(f"  %r{turn} = call @{name}_step({', '.join(given)}) : ({', '.join(types)}) -> {result}")
        value = f"%r{turn}"
    lines += [f"  return {value} : {result}", "}"]
    plain = [(tuple(shape), element) for shape, element in arguments]
    plain += [plain[1]] * (copies - 1) if copies > 1 else []
    return MicroProgram(name, "\n".join(lines) + "\n", tuple(plain), (plain[carried],), repeats, facts)


def _repeats(seconds: float, most: int = 48) -> int:
    """So many steps that a run takes about a millisecond and a half."""
    return max(1, min(most, round(1.5e-3 / seconds)))


def _zero(element: str) -> str:
    return "0.0" if element[0] in "fb" else "0"


def matmul(
    name: str,
    m: int,
    n: int,
    k: int,
    *,
    batch: int = 0,
    element: str = "f32",
    rate: float = 5e10,
    copies: int = 1,
) -> MicroProgram:
    """A matrix product, or ``batch`` of them; ``rate`` is a guess, for the number of steps.

    With ``copies`` of the second operand, each step takes another, as the layers of a model do with their weights.
    """
    lead = [batch] if batch else []
    a, b, c = [*lead, m, k], [*lead, k, n], [*lead, m, n]
    ta, tb, tc = (_tensor(shape, element) for shape in (a, b, c))
    op = "linalg.batch_matmul" if batch else "linalg.matmul"
    body = (
        f"  %z = arith.constant {_zero(element)} : {element}\n  %e = tensor.empty() : {tc}\n"
        f"  %f = linalg.fill ins(%z : {element}) outs(%e : {tc}) -> {tc}\n"
        f"  %d = {op} ins(%a0, %a1 : {ta}, {tb}) outs(%f : {tc}) -> {tc}"
    )
    flops = 2.0 * max(1, batch) * m * n * k
    facts = {"m": m, "n": n, "k": k, "batch": max(1, batch)}
    repeats = max(copies, _repeats(flops / rate))
    return _program(name, [(a, element), (b, element), (c, element)], 2, body, repeats, facts, copies)


_ROW = "affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>"


def elementwise(name: str, rows: int, columns: int, ops: Sequence[str], *, element: str = "f32") -> MicroProgram:
    """A chain of scalar ops on each element; ``{x}`` in an op is what the op before made, ``{y}`` a second operand."""
    shape = [rows, columns]
    type_ = _tensor(shape, element)
    lines: list[str] = []
    value = "%x"
    for index, op in enumerate(ops):
        lines.append(f"    %v{index} = {op.format(x=value, y='%y')} : {element}")
        value = f"%v{index}"
    body = (
        f"  %e = tensor.empty() : {type_}\n"
        f"  %d = linalg.generic {{indexing_maps = [{_ROW}, affine_map<(i, j) -> (i, j)>],"
        f' iterator_types = ["parallel", "parallel"]}}\n'
        f"      ins(%a0, %a1 : {type_}, {type_}) outs(%e : {type_}) {{\n  ^bb0(%x: {element}, %y: {element}, %o: {element}):\n"
        + "\n".join(lines)
        + f"\n    linalg.yield {value} : {element}\n  }} -> {type_}"
    )
    guess = rows * columns * 0.3e-9 * max(1, len(ops)) + 0.3e-6
    return _program(name, [(shape, element), (shape, element)], 0, body, _repeats(guess), {"elements": rows * columns})


def softmax(name: str, rows: int, columns: int) -> MicroProgram:
    """A softmax over rows: the passes that a norm or an attention score takes."""
    full, thin = _tensor([rows, columns], "f32"), _tensor([rows, 1], "f32")
    row, one = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (i, 0)>"

    def reduce(result: str, source: str, init: str, op: str) -> str:
        return (
            f"  %{result}e = tensor.empty() : {thin}\n"
            f"  %{result}f = linalg.fill ins({init} : f32) outs(%{result}e : {thin}) -> {thin}\n"
            f'  %{result} = linalg.generic {{indexing_maps = [{row}, {one}], iterator_types = ["parallel", "reduction"]}}\n'
            f"      ins(%{source} : {full}) outs(%{result}f : {thin}) {{\n  ^bb0(%x: f32, %y: f32):\n"
            f"    %s = {op} %x, %y : f32\n    linalg.yield %s : f32\n  }} -> {thin}\n"
        )

    def apply(result: str, source: str, row_value: str, ops: str) -> str:
        return (
            f"  %{result}e = tensor.empty() : {full}\n"
            f'  %{result} = linalg.generic {{indexing_maps = [{row}, {one}, {row}], iterator_types = ["parallel", "parallel"]}}\n'
            f"      ins(%{source}, %{row_value} : {full}, {thin}) outs(%{result}e : {full}) {{\n"
            f"  ^bb0(%x: f32, %y: f32, %o: f32):\n{ops}\n    linalg.yield %s : f32\n  }} -> {full}\n"
        )

    body = (
        "  %z = arith.constant 0.0 : f32\n  %low = arith.constant 0xFF800000 : f32\n"
        + reduce("m", "a0", "%low", "arith.maximumf")
        + apply("u", "a0", "m", "    %t = arith.subf %x, %y : f32\n    %s = math.exp %t : f32")
        + reduce("l", "u", "%z", "arith.addf")
        + apply("d", "u", "l", "    %s = arith.divf %x, %y : f32").rstrip()
    )
    elements = rows * columns
    return _program(name, [([rows, columns], "f32")], 0, body, _repeats(elements * 2e-9), {"elements": elements})


def finished_matmul(name: str, m: int, n: int, k: int) -> MicroProgram:
    """A matrix product and an addition to what it made, which comes from another kernel's hands."""
    ta, tb, tc = _tensor([m, k], "f32"), _tensor([k, n], "f32"), _tensor([m, n], "f32")
    body = (
        f"  %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : {tc}\n"
        f"  %f = linalg.fill ins(%z : f32) outs(%e : {tc}) -> {tc}\n"
        f"  %p = linalg.matmul ins(%a0, %a1 : {ta}, {tb}) outs(%f : {tc}) -> {tc}\n"
        f"  %g = tensor.empty() : {tc}\n"
        f"  %d = linalg.generic {{indexing_maps = [{_ROW}, affine_map<(i, j) -> (i, j)>],"
        f' iterator_types = ["parallel", "parallel"]}}\n'
        f"      ins(%p, %a2 : {tc}, {tc}) outs(%g : {tc}) {{\n  ^bb0(%x: f32, %y: f32, %o: f32):\n"
        f"    %s = arith.addf %x, %y : f32\n    linalg.yield %s : f32\n  }} -> {tc}"
    )
    repeats = _repeats(2.0 * m * n * k / 5e10, 8)
    facts = {"bytes": 12.0 * m * n}
    return _program(name, [([m, k], "f32"), ([k, n], "f32"), ([m, n], "f32")], 2, body, repeats, facts)


_WORDS = {
    "all_reduce": "{axes} <sum>",
    "all_gather": "{axes} dim 0",
    "reduce_scatter": "{axes} <sum> dim 0",
    "all_to_all": "{axes} split 0 concat 1",
}


def collective(name: str, kind: str, elements: int, members: int) -> MicroProgram:
    """A collective over all devices, on ``elements`` floats of each (a matrix of ``members`` rows for an all-to-all)."""
    given: tuple[int, ...] = (elements,)
    made: tuple[int, ...] = (elements,)
    match kind:
        case "all_gather":
            made = (elements * members,)
        case "reduce_scatter":
            made = (elements // members,)
        case "all_to_all":
            given, made = (members, elements // members), (1, elements)
        case _:
            pass
    source, target = _tensor(given, "f32"), _tensor(made, "f32")
    words = _WORDS[kind].format(axes=f'over @{MESH} {{"{AXIS}"}}')
    repeats = _repeats(20e-6 + elements * members * 8 / 1e10, 24)
    lines = [
        f"func.func private @{name}_step(%a0: {source}) -> {target} {{",
        f"  %d = hypershard.{kind} %a0 {words} : {source} -> {target}",
        f"  return %d : {target}",
        "}",
        f"func.func @{name}(%a0: {source}) -> {target} {{",
    ]
    lines += [f"  %r{turn} = call @{name}_step(%a0) : ({source}) -> {target}" for turn in range(repeats)]
    lines += [f"  return %r{repeats - 1} : {target}", "}"]
    facts = {"bytes": 4.0 * elements, "members": members}
    text = "\n".join(lines) + "\n"
    return MicroProgram(name, text, ((given, "f32"),), ((made, "f32"),), repeats, facts)


def module_text(programs: Sequence[MicroProgram], devices: int) -> str:
    """All programs as one module, with the mesh that collectives name."""
    return f'hypershard.mesh @{MESH} = <["{AXIS}"={devices}]>\n' + "\n".join(program.text for program in programs)


__all__ = [
    "MicroProgram",
    "collective",
    "elementwise",
    "finished_matmul",
    "matmul",
    "module_text",
    "softmax",
]
