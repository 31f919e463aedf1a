# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs on random meshes with random shardings: the split program gives what the whole one gives.

Programs are built from what imported models are made of. Dimensions often do not divide, meshes have up to eight
devices. The same programs are drawn on every run; HP_PROPERTY_EXAMPLES=1000 draws as many new ones.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from hyperparallel.testing import Executor, Padding, Sharding, run_sharded, run_unsharded
from hyperparallel.testing.annotated import numbers

EXAMPLES = os.environ.get("HP_PROPERTY_EXAMPLES")
SIZES = st.sampled_from([1, 2, 3, 4, 5, 6, 8])
MESHES = st.sampled_from(
    [{"a": 2}, {"a": 3}, {"a": 4}, {"a": 8}, {"a": 2, "b": 2}, {"a": 2, "b": 3}, {"a": 4, "b": 2}, {"a": 1, "b": 4},
     {"a": 2, "b": 2, "c": 2}]
)  # fmt: skip


@dataclass
class Program:
    """A function under construction: its text, and the shape of each of its values."""

    lines: list[str] = field(default_factory=list)
    arguments: list[tuple[int, ...]] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    count: int = 0

    def argument(self, shape: tuple[int, ...]) -> str:
        """A new argument of the function."""
        name = f"%x{len(self.arguments)}"
        self.arguments.append(shape)
        self.shapes[name] = shape
        return name

    def fresh(self, shape: tuple[int, ...]) -> str:
        """A name for a new value."""
        self.count += 1
        name = f"%v{self.count}"
        self.shapes[name] = shape
        return name

    def filled(self, shape: tuple[int, ...], value: float) -> str:
        """A tensor of one value, not among those that later ops may use."""
        self.count += 1
        kind = tensor(shape)
        self.lines += [
            f"%c{self.count} = arith.constant {value} : f32",
            f"%e{self.count} = tensor.empty() : {kind}",
            f"%f{self.count} = linalg.fill ins(%c{self.count} : f32) outs(%e{self.count} : {kind}) -> {kind}",
        ]
        return f"%f{self.count}"

    def generic(
        self, ins: list[str], out: tuple[int, ...], maps: list[str], iterators: list[str], body: str, init: str
    ) -> str:
        """A structured op; the arguments of its body are %a0, %a1, ... and %out, and it yields %r."""
        name = self.fresh(out)
        listed = ", ".join(f"affine_map<{entry}>" for entry in maps)
        kinds = ", ".join(f'"{kind}"' for kind in iterators)
        inputs = f"ins({', '.join(ins)} : {', '.join(tensor(self.shapes[value]) for value in ins)})" if ins else ""
        heads = ", ".join([*(f"%a{i}: f32" for i in range(len(ins))), "%out: f32"])
        self.lines.append(
            f"{name} = linalg.generic {{indexing_maps = [{listed}], iterator_types = [{kinds}]}} {inputs} "
            f"outs({init} : {tensor(out)}) {{\n^bb0({heads}):\n{body}\nlinalg.yield %r : f32\n}} -> {tensor(out)}"
        )
        return name

    def text(self, results: list[str]) -> str:
        """The module."""
        heads = ", ".join(f"%x{i}: {tensor(shape)}" for i, shape in enumerate(self.arguments))
        kinds = ", ".join(tensor(self.shapes[name]) for name in results)
        body = "\n".join(self.lines)
        return f"func.func @main({heads}) -> ({kinds}) {{\n{body}\nreturn {', '.join(results)} : {kinds}\n}}"


def tensor(shape: tuple[int, ...]) -> str:
    """The type of an f32 tensor."""
    return f"tensor<{''.join(f'{n}x' for n in shape)}f32>"


def dims(rank: int) -> str:
    """d0, d1, ..."""
    return ", ".join(f"d{i}" for i in range(rank))


def identity(rank: int) -> str:
    """The identity map."""
    return f"({dims(rank)}) -> ({dims(rank)})"


BODIES = [
    "%r = math.tanh %a0 : f32",
    "%r = arith.negf %a0 : f32",
    "%z = arith.constant 0.0 : f32\n%r = arith.maximumf %a0, %z : f32",
    "%z = arith.constant 1.5 : f32\n%r = arith.addf %a0, %z : f32",
]


def elementwise(draw: st.DrawFn, program: Program, value: str) -> str:
    """A function of one value, or of two of one shape."""
    shape = program.shapes[value]
    rank = len(shape)
    others = [name for name, other in program.shapes.items() if other == shape]
    if draw(st.booleans()):
        name = program.fresh(shape)
        op = draw(st.sampled_from(["addf", "subf", "mulf", "maximumf"]))
        program.lines.append(f"{name} = arith.{op} {value}, {draw(st.sampled_from(others))} : {tensor(shape)}")
        return name
    init = program.filled(shape, 0.0)
    body = draw(st.sampled_from(BODIES))
    return program.generic([value], shape, [identity(rank)] * 2, ["parallel"] * rank, body, init)


def masked(draw: st.DrawFn, program: Program, value: str) -> str:
    """A value that depends on the global index."""
    shape = program.shapes[value]
    rank = len(shape)
    dim = draw(st.integers(0, rank - 1))
    body = f"""%i = linalg.index {dim} : index
      %n = arith.index_cast %i : index to i64
      %g = arith.sitofp %n : i64 to f32
      %r = arith.subf %a0, %g : f32"""
    init = program.filled(shape, 0.0)
    return program.generic([value], shape, [identity(rank)] * 2, ["parallel"] * rank, body, init)


def reduced(draw: st.DrawFn, program: Program, value: str) -> str:
    """A reduction along one dimension, with an init that is no identity."""
    shape = program.shapes[value]
    rank = len(shape)
    dim = draw(st.integers(0, rank - 1))
    out = tuple(n for i, n in enumerate(shape) if i != dim)
    kept = ", ".join(f"d{i}" for i in range(rank) if i != dim)
    iterators = ["reduction" if i == dim else "parallel" for i in range(rank)]
    op = draw(st.sampled_from(["addf", "maximumf", "minimumf"]))
    init = program.filled(out, draw(st.sampled_from([0.0, 2.5, -1.0])))
    maps = [identity(rank), f"({dims(rank)}) -> ({kept})"]
    return program.generic([value], out, maps, iterators, f"%r = arith.{op} %a0, %out : f32", init)


def transposed(draw: st.DrawFn, program: Program, value: str) -> str:
    """The dimensions in another order."""
    shape = program.shapes[value]
    order = draw(st.permutations(range(len(shape))))
    out = tuple(shape[i] for i in order)
    maps = [identity(len(shape)), f"({dims(len(shape))}) -> ({', '.join(f'd{i}' for i in order)})"]
    init = program.filled(out, 0.0)
    return program.generic([value], out, maps, ["parallel"] * len(shape), "%r = arith.negf %a0 : f32", init)


def contracted(draw: st.DrawFn, program: Program, value: str) -> str:
    """A matmul with a new argument, added to an init."""
    shape = program.shapes[value]
    if len(shape) != 2:
        return elementwise(draw, program, value)
    columns = draw(SIZES)
    other = program.argument((shape[1], columns))
    out = (shape[0], columns)
    init = program.filled(out, draw(st.sampled_from([0.0, 0.75])))
    name = program.fresh(out)
    program.lines.append(
        f"{name} = linalg.matmul ins({value}, {other} : {tensor(shape)}, {tensor(program.shapes[other])}) "
        f"outs({init} : {tensor(out)}) -> {tensor(out)}"
    )
    return name


def broadcast(draw: st.DrawFn, program: Program, value: str) -> str:
    """A new leading dimension."""
    shape = program.shapes[value]
    if len(shape) > 2:
        return elementwise(draw, program, value)
    out = (draw(SIZES), *shape)
    rank = len(out)
    inner = ", ".join(f"d{i}" for i in range(1, rank))
    init = program.filled(out, 0.0)
    maps = [f"({dims(rank)}) -> ({inner})", identity(rank)]
    return program.generic([value], out, maps, ["parallel"] * rank, "%r = math.tanh %a0 : f32", init)


def reshaped(draw: st.DrawFn, program: Program, value: str) -> str:
    """Two dimensions as one, or one as two."""
    shape = program.shapes[value]
    rank = len(shape)
    dim = draw(st.integers(0, rank - 1))
    if rank > 1 and dim + 1 < rank:
        out = (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :])
        groups = [[i] if i < dim else [i, i + 1] if i == dim else [i + 1] for i in range(rank - 1)]
        name = program.fresh(out)
        program.lines.append(f"{name} = tensor.collapse_shape {value} {groups} : {tensor(shape)} into {tensor(out)}")
        return name
    major = draw(st.sampled_from([n for n in range(1, shape[dim] + 1) if shape[dim] % n == 0]))
    out = (*shape[:dim], major, shape[dim] // major, *shape[dim + 1 :])
    groups = [[i] if i < dim else [i, i + 1] if i == dim else [i + 1] for i in range(rank)]
    name = program.fresh(out)
    program.lines.append(
        f"{name} = tensor.expand_shape {value} {groups} output_shape {list(out)} : {tensor(shape)} into {tensor(out)}"
    )
    return name


def sliced(draw: st.DrawFn, program: Program, value: str) -> str:
    """A window of every dimension, with strides."""
    shape = program.shapes[value]
    offsets = [draw(st.integers(0, n - 1)) for n in shape]
    strides = [draw(st.sampled_from([1, 1, 2])) for _ in shape]
    sizes = [
        draw(st.integers(1, (n - offset + stride - 1) // stride))
        for n, offset, stride in zip(shape, offsets, strides, strict=True)
    ]
    name = program.fresh(tuple(sizes))
    program.lines.append(
        f"{name} = tensor.extract_slice {value}{offsets} {sizes} {strides} : {tensor(shape)} to {tensor(tuple(sizes))}"
    )
    return name


def padded(draw: st.DrawFn, program: Program, value: str) -> str:
    """A constant around a value."""
    shape = program.shapes[value]
    low = [draw(st.integers(0, 2)) for _ in shape]
    high = [draw(st.integers(0, 2)) for _ in shape]
    out = tuple(n + a + b for n, a, b in zip(shape, low, high, strict=True))
    program.count += 1
    program.lines.append(f"%p{program.count} = arith.constant {draw(st.sampled_from([0.0, -3.5]))} : f32")
    heads = ", ".join(f"%i{i}: index" for i in range(len(shape)))
    constant = f"%p{program.count}"
    name = program.fresh(out)
    program.lines.append(
        f"{name} = tensor.pad {value} low{low} high{high} {{\n^bb0({heads}):\ntensor.yield {constant} : f32\n}} : "
        f"{tensor(shape)} to {tensor(out)}"
    )
    return name


def joined(draw: st.DrawFn, program: Program, value: str) -> str:
    """A value and a new argument, along one dimension."""
    shape = program.shapes[value]
    dim = draw(st.integers(0, len(shape) - 1))
    extra = tuple(draw(SIZES) if i == dim else n for i, n in enumerate(shape))
    other = program.argument(extra)
    out = tuple(n + extra[i] if i == dim else n for i, n in enumerate(shape))
    first, second = draw(st.permutations([value, other]))
    name = program.fresh(out)
    program.lines.append(
        f"{name} = tensor.concat dim({dim}) {first}, {second} : ({tensor(program.shapes[first])}, "
        f"{tensor(program.shapes[second])}) -> {tensor(out)}"
    )
    return name


def inserted(draw: st.DrawFn, program: Program, value: str) -> str:
    """A value within a new argument."""
    shape = program.shapes[value]
    low = [draw(st.integers(0, 2)) for _ in shape]
    out = tuple(n + offset + draw(st.integers(0, 2)) for n, offset in zip(shape, low, strict=True))
    dest = program.argument(out)
    ones = [1] * len(shape)
    name = program.fresh(out)
    program.lines.append(
        f"{name} = tensor.insert_slice {value} into {dest}{low} {list(shape)} {ones} : "
        f"{tensor(shape)} into {tensor(out)}"
    )
    return name


def gathered(draw: st.DrawFn, program: Program, value: str) -> str:
    """Rows of a value at computed positions, as an embedding reads its table."""
    shape = program.shapes[value]
    out = (draw(SIZES), *shape[1:])
    rank = len(out)
    rest = [f"%d{i} = linalg.index {i} : index" for i in range(1, rank)]
    places = ", ".join(["%p", *(f"%d{i}" for i in range(1, rank))])
    body = "\n".join(
        [
            "%i = linalg.index 0 : index",
            "%five = arith.constant 5 : index",
            f"%rows = arith.constant {shape[0]} : index",
            "%t = arith.muli %i, %five : index",
            "%p = arith.remui %t, %rows : index",
            '%ok = arith.cmpi ult, %i, %end : index\ncf.assert %ok, "within the result"',
            *rest,
            f"%r = tensor.extract {value}[{places}] : {tensor(shape)}",
        ]
    ).replace("%ok =", f"%end = arith.constant {out[0]} : index\n%ok =")
    init = program.filled(out, 0.0)
    return program.generic([], out, [identity(rank)], ["parallel"] * rank, body, init)


STEPS = [
    elementwise,
    masked,
    reduced,
    transposed,
    contracted,
    broadcast,
    reshaped,
    sliced,
    padded,
    joined,
    inserted,
    gathered,
]


def splits(draw: st.DrawFn, mesh: dict[str, int], rank: int) -> Sharding:
    """Any split over any of the axes, or none."""
    if draw(st.integers(0, 4)) == 0:
        return None
    layout: list[list[str]] = [[] for _ in range(rank)]
    for axis in draw(st.permutations(list(mesh))):
        place = draw(st.integers(0, rank))
        if place < rank:
            layout[place].append(axis)
    return layout


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, list[tuple[int, ...]], dict[str, int], list[Sharding], list[Sharding] | None]:
    """A program, the shapes of its arguments, a mesh, and shardings."""
    program = Program()
    shape = tuple(draw(st.lists(SIZES, min_size=1, max_size=3)))
    value = program.argument(shape)
    for _ in range(draw(st.integers(1, 5))):
        values = [name for name, kind in program.shapes.items() if kind and np.prod(kind) <= 600]
        value = draw(st.sampled_from(STEPS))(draw, program, draw(st.sampled_from(values)))
    results = [value]
    mesh = draw(MESHES)
    arguments = [splits(draw, mesh, len(kind)) for kind in program.arguments]
    pinned = [splits(draw, mesh, len(program.shapes[name])) for name in results] if draw(st.booleans()) else None
    return program.text(results), program.arguments, mesh, arguments, pinned


@settings(
    max_examples=int(EXAMPLES or 60),
    derandomize=EXAMPLES is None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(cases(), st.sampled_from(list(Padding)))
def test_split_programs_give_what_whole_ones_give(
    case: tuple[str, list[tuple[int, ...]], dict[str, int], list[Sharding], list[Sharding] | None], padding: Padding
) -> None:
    """Invariant 1 of the architecture: only reductions may associate differently."""
    text, shapes, mesh, arguments, results = case
    inputs = [numbers(shape, seed=i) for i, shape in enumerate(shapes)]
    note(f"mesh {mesh}, arguments {arguments}, results {results}\n{text}")
    wanted = run_unsharded(text, inputs)
    for executor in Executor:
        run = run_sharded(text, inputs, mesh, arguments, results, executor=executor, padding=padding)
        for whole, result in zip(wanted, run.results, strict=True):
            np.testing.assert_allclose(result, whole, rtol=1e-4, atol=1e-4, err_msg=f"{executor}: {run.program}")
