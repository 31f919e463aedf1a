# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random chains of collectives, optimised: the same values on every device, and no more bytes."""

from __future__ import annotations

import math
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from hyperparallel import hp_opt

sys.path.insert(0, str(Path(__file__).resolve().parent))
from collective_simulator import (
    Array,
    Axes,
    Axis,
    Mesh,
    block,
    count,
    execute,
    parse_collective,
    print_axes,
)

MESH = Mesh({"a": 2, "b": 3, "c": 4})
PARTS = (Axis("a", 1, 2), Axis("b", 1, 3), Axis("c", 1, 2), Axis("c", 2, 2), Axis("c", 1, 4))
LARGEST = 2000
KINDS = ("sum", "max", "min")


def choose_axes(rng: random.Random) -> Axes:
    """One or two axes that do not overlap; sometimes none."""
    axes = tuple(rng.sample(PARTS, rng.choice([0, 1, 1, 1, 2, 2])))
    if len({(axis.name, axis.pre) for axis in axes}) < len(axes) or Axis("c", 1, 4) in axes:
        axes = axes[:1]
    return axes


def make_op(rng: random.Random, shape: list[int]) -> tuple[str, list[int]]:
    """The text of a collective on a tensor of this shape (with %s for the operand), and its result's shape."""
    axes, dim, kind = choose_axes(rng), rng.randrange(2), rng.choice(KINDS)
    size, over = count(axes), f"over @m {{{print_axes(MESH, axes)}}}"
    after = list(shape)
    match rng.choice(["all_gather", "all_reduce", "reduce_scatter", "slice_local", "all_to_all", "permute", "halo"]):
        case "all_gather" if math.prod(shape) * size <= LARGEST:
            after[dim] *= size
            return f"hypershard.all_gather %s {over} dim {dim}", after
        case "reduce_scatter" if shape[dim] % size == 0:
            after[dim] //= size
            return f"hypershard.reduce_scatter %s {over} <{kind}> dim {dim}", after
        case "slice_local":
            after[dim] = block(shape[dim], size)
            return f"hypershard.slice_local %s {over} dim {dim}", after
        case "all_to_all" if shape[dim] % size == 0:
            after[dim] //= size
            after[1 - dim] *= size
            return f"hypershard.all_to_all %s {over} split {dim} concat {1 - dim}", after
        case "permute":
            turned = print_axes(MESH, tuple(rng.sample(axes, len(axes))))
            return f"hypershard.permute %s {over} to {{{turned}}}", after
        case "halo":
            # The global size may leave the last block in part empty.
            least = (shape[dim] - 1) * size + 1
            whole = rng.randint(max(least, 0), shape[dim] * size)
            stride = rng.choice([shape[dim], shape[dim] + 1])
            after[dim] = rng.choice([stride, stride + 1])
            low = rng.choice([0, 0, -1, 1])
            return (
                f"hypershard.halo_exchange %s {over} dim {dim} of {whole} window {low} step {stride} size {after[dim]}",
                after,
            )
        case _:
            return f"hypershard.all_reduce %s {over} <{kind}>", after


def tensor(shape: list[int]) -> str:
    """The type's text."""
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def make_function(rng: random.Random, name: str) -> str:
    """A tree of collectives that returns its leaves: most values are read once, some twice."""
    values: list[tuple[str, list[int]]] = [("%x", [rng.choice([2, 3, 4, 6]), rng.choice([4, 5, 8])])]
    start, lines, unread = tensor(values[0][1]), [], {"%x"}
    last = None
    for number in range(rng.randint(2, 6)):
        operand, shape = values[-1] if rng.random() < 0.8 else rng.choice(values)
        text, after = make_op(rng, shape)
        if last and rng.random() < 0.1:
            operand, shape, text, after = last  # an equal one
        last = (operand, shape, text, after)
        lines.append(f"  %v{number} = {text % operand} : {tensor(shape)} -> {tensor(after)}")
        unread.discard(operand)
        unread.add(f"%v{number}")
        values.append((f"%v{number}", after))
    results = [(value, tensor(shape)) for value, shape in values if value in unread]
    types = ", ".join(kind for _, kind in results)
    lines.append(f"  return {', '.join(value for value, _ in results)} : {types}")
    return f"func.func @{name}(%x: {start}) -> ({types}) {{\n" + "\n".join(lines) + "\n}\n"


def shape_of(text: str) -> tuple[int, ...]:
    """Reads the last tensor type of a line."""
    return tuple(int(n) for n in re.findall(r"tensor<((?:\d+x)+)f32>", text)[-1].split("x")[:-1])


def run(text: str) -> tuple[list[Array], int]:
    """Executes a function: its results on all devices, and the bytes that a device received."""
    start = re.search(r"%\w+: (tensor<.*?>)", text)
    assert start
    shape = shape_of(start[1])
    numbers = np.arange(MESH.devices * math.prod(shape), dtype=np.float64) * 37 % 1009
    values = {"%x": np.where(numbers % 2 == 0, numbers, -numbers).reshape(MESH.devices, *shape)}
    values["%arg0"] = values["%x"]
    received = 0
    for line in text.splitlines():
        if parsed := parse_collective(MESH, line):
            result, operand, op = parsed
            values[result], got = execute(MESH, op, values[operand], shape_of(line), 4, 0.0)
            received += got
        elif found := re.search(r"(%\S+) = tensor\.pad (%\S+) low\[0, 0\] high\[(\d+), (\d+)\]", line):
            widths = [(0, 0), (0, int(found[3])), (0, int(found[4]))]
            values[found[1]] = np.pad(values[found[2]], widths)
        elif found := re.search(r"return (.*) : ", line):
            return [values[name] for name in found[1].split(", ")], received
    raise AssertionError(text)


def test_random_chains() -> None:
    rng = random.Random(11)
    axes = ", ".join(f'"{name}"={size}' for name, size in MESH.axes.items())
    functions = [make_function(rng, f"f{i}") for i in range(1500)]
    ran = subprocess.run(
        [hp_opt.path(), "-", "--hypershard-optimize-collectives"],
        input=f"hypershard.mesh @m = <[{axes}]>\n" + "".join(functions),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[:2000]
    optimized = ran.stdout.split("func.func ")[1:]
    fewer = 0
    for before, after in zip(functions, optimized, strict=True):
        expected, bytes_before = run(before)
        actual, bytes_after = run(after)
        where = f"{before}\nbecame\n{after}"
        for one, other in zip(expected, actual, strict=True):
            assert one.shape == other.shape, where
            assert np.allclose(one, other, rtol=1e-12, atol=0), where
        assert bytes_after <= bytes_before, where
        fewer += after.count("hypershard.") < before.count("hypershard.")
    # The generator makes chains that the rules apply to.
    assert fewer > len(functions) / 5
