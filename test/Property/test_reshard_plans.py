# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every pair of layouts of small meshes: the planned collectives give every device exactly its block, and move as few
bytes as any sequence of collectives can.

What is least is computed here by its own means: all arrangements of the mesh's (prime) parts, one edge per collective
that the dialect has, all shortest paths by Floyd and Warshall.
"""

from __future__ import annotations

import itertools
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hyperparallel import hp_opt

sys.path.insert(0, str(Path(__file__).resolve().parent))
from collective_simulator import (
    Axes,
    Axis,
    Layout,
    Mesh,
    block,
    count,
    execute,
    local_shape,
    make_partial,
    parse_collective,
    print_layout,
    scatter,
)

BYTES = 4

# The parts of which layouts are made; an axis of 4 is two parts of 2.
MESHES: dict[str, tuple[Mesh, Axes]] = {
    "2x2": (Mesh({"a": 2, "b": 2}), (Axis("a", 1, 2), Axis("b", 1, 2))),
    "2x3": (Mesh({"a": 2, "b": 3}), (Axis("a", 1, 2), Axis("b", 1, 3))),
    "2x4": (Mesh({"dp": 2, "tp": 4}), (Axis("dp", 1, 2), Axis("tp", 1, 2), Axis("tp", 2, 2))),
    "2x2x2": (Mesh({"a": 2, "b": 2, "c": 2}), (Axis("a", 1, 2), Axis("b", 1, 2), Axis("c", 1, 2))),
}


@cache
def arrangements(atoms: Axes, rank: int) -> tuple[Layout, ...]:
    """Every layout that can be made of the atoms."""
    found: list[Layout] = []
    for places in itertools.product(range(rank + 2), repeat=len(atoms)):
        per_dim = [[a for a, place in zip(atoms, places, strict=True) if place == dim] for dim in range(rank)]
        partial = tuple(a for a, place in zip(atoms, places, strict=True) if place == rank)
        for orders in itertools.product(*(itertools.permutations(part) for part in per_dim)):
            found.append(Layout(tuple(orders), partial))
    return tuple(found)


def used(layout: Layout) -> frozenset[Axis]:
    """The atoms that split a dimension or are partial."""
    return frozenset(a for dim in layout.dims for a in dim) | frozenset(layout.partial)


def sequences(atoms: Axes) -> Iterator[Axes]:
    """Every ordered choice of at least one atom."""
    for length in range(1, len(atoms) + 1):
        yield from itertools.permutations(atoms, length)


def nests(size: int, coarse: int, parts: int) -> bool:
    """Do fine blocks tile the coarse ones? One block can be padded and trimmed."""
    return coarse == 1 or parts * block(size, coarse * parts) == block(size, coarse)


def replaced(layout: Layout, changes: dict[int, Axes], partial: Axes) -> Layout:
    """The layout with other axes in some dimensions and in the partial sum."""
    return Layout(tuple(changes.get(i, axes) for i, axes in enumerate(layout.dims)), partial)


def departures(layout: Layout, shape: tuple[int, ...]) -> Iterator[tuple[Layout, float]]:
    """What gathers and all-to-alls reach, and the bytes that a device receives."""
    local = local_shape(shape, layout)
    held = math.prod(local) * BYTES
    for dim, axes in enumerate(layout.dims):
        for cut in range(len(axes)):
            head, tail = axes[:cut], axes[cut:]
            parts = count(tail)
            if not nests(shape[dim], count(head), parts):
                continue
            yield replaced(layout, {dim: head}, layout.partial), (parts - 1) * held
            for other, other_axes in enumerate(layout.dims):
                if other != dim and nests(shape[other], count(other_axes), parts):
                    after = replaced(layout, {dim: head, other: other_axes + tail}, layout.partial)
                    sent = held // max(local[other], 1) * local_shape(shape, after)[other]
                    yield after, (parts - 1) * sent


def arrivals(layout: Layout, shape: tuple[int, ...], unused: Axes) -> Iterator[tuple[Layout, float]]:
    """What slices, scatters and all-reduces reach, and the bytes that a device receives."""
    held = math.prod(local_shape(shape, layout)) * BYTES

    def without(gone: Axes) -> Axes:
        return tuple(a for a in layout.partial if a not in gone)

    for dim, axes in enumerate(layout.dims):
        for added in sequences(unused):
            if nests(shape[dim], count(axes), count(added)):
                yield replaced(layout, {dim: axes + added}, layout.partial), 0
        for added in sequences(layout.partial):
            if nests(shape[dim], count(axes), count(added)):
                after = replaced(layout, {dim: axes + added}, without(added))
                yield after, (count(added) - 1) * math.prod(local_shape(shape, after)) * BYTES
    for length in range(1, len(layout.partial) + 1):
        for gone in itertools.combinations(layout.partial, length):
            yield replaced(layout, {}, without(gone)), 2 * (count(gone) - 1) * block(held, count(gone))


def shortest(shape: tuple[int, ...], atoms: Axes) -> np.ndarray:
    """Bytes between all pairs of arrangements, by the axes that the pair uses: others stay out."""
    layouts = arrangements(atoms, len(shape))
    number = {layout: i for i, layout in enumerate(layouts)}
    direct = np.full((len(layouts), len(layouts)), np.inf)
    np.fill_diagonal(direct, 0)
    classes: dict[tuple[int, ...], list[int]] = {}
    for i, layout in enumerate(layouts):
        classes.setdefault((*(count(dim) for dim in layout.dims), count(layout.partial)), []).append(i)
        unused = tuple(a for a in atoms if a not in used(layout))
        for after, received in itertools.chain(departures(layout, shape), arrivals(layout, shape, unused)):
            direct[i, number[after]] = min(direct[i, number[after]], received)
    for members in classes.values():  # a permute goes to any layout of the same shards
        held = math.prod(local_shape(shape, layouts[members[0]])) * BYTES
        for i, j in itertools.permutations(members, 2):
            direct[i, j] = min(direct[i, j], held)

    best = np.full_like(direct, np.inf)
    uses = np.array([sum(1 << atoms.index(a) for a in used(layout)) for layout in layouts])
    for active in range(1 << len(atoms)):
        inside = np.flatnonzero((uses & ~active) == 0)
        paths = direct[np.ix_(inside, inside)]
        for middle in range(len(inside)):
            np.minimum(paths, paths[:, middle, None] + paths[None, middle, :], out=paths)
        exact = (uses[inside][:, None] | uses[inside][None, :]) == active
        rows, columns = np.nonzero(exact)
        best[inside[rows], inside[columns]] = paths[rows, columns]
    return best


def lower(mesh: Mesh, shape: tuple[int, ...], layouts: tuple[Layout, ...], targets: list[list[int]]) -> list[str]:
    """The lowered functions: function i reshards its argument, of layout i, to each of its targets."""
    tensor = f"tensor<{''.join(f'{n}x' for n in shape)}f32>"
    axes = ", ".join(f'"{name}"={size}' for name, size in mesh.axes.items())
    lines = [f"hypershard.mesh @m = <[{axes}]>"]
    for i, wanted in enumerate(targets):
        results = ", ".join([tensor] * len(wanted))
        sharding = f"hypershard.sharding = #hypershard.sharding{print_layout(mesh, layouts[i])}"
        lines.append(f"func.func @f{i}(%x: {tensor} {{{sharding}}}) -> ({results}) {{")
        names = [f"%r{k}" for k in range(len(wanted))]
        for name, target in zip(names, wanted, strict=True):
            lines.append(f"  {name} = hypershard.reshard %x {print_layout(mesh, layouts[target])} : {tensor}")
        lines.append(f"  return {', '.join(names)} : {results}")
        lines.append("}")
    ran = subprocess.run(
        [hp_opt.path(), "-", "--hypershard-lower-reshards", "--mlir-print-local-scope"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[:2000]
    assert "hypershard.reshard" not in ran.stdout
    return ran.stdout.split("func.func ")[1:]


def check_pairs(mesh: Mesh, atoms: Axes, shape: tuple[int, ...], keep: float = 1.0) -> int:
    """Checks values and bytes of all pairs of layouts (a share of them when `keep` < 1); returns how many."""
    rng = np.random.default_rng(7)
    layouts = arrangements(atoms, len(shape))
    best = shortest(shape, atoms)
    chosen = np.isfinite(best) & (rng.random(best.shape) < keep)
    targets = [np.flatnonzero(row).tolist() for row in chosen]
    # Every element is different, and both signs occur.
    value = (np.arange(math.prod(shape), dtype=np.float64) * 7 + 3).reshape(shape)
    value[np.arange(math.prod(shape)).reshape(shape) % 2 == 1] *= -1
    expected = [scatter(mesh, value, Layout(layout.dims)) for layout in layouts]
    checked = 0
    for i, text in enumerate(lower(mesh, shape, layouts, targets)):
        start = expected[i]
        if layouts[i].partial:
            start = make_partial(mesh, start, layouts[i], rng)
        # Of every value in the function: the buffers, and what it took to get there.
        values = {"%arg0": (start, 0, layouts[i])}
        returned: list[str] = []
        for line in text.splitlines():
            if parsed := parse_collective(mesh, line):
                name, operand, op = parsed
                buffers, spent, _ = values[operand]
                assert op.layout
                local = local_shape(shape, op.layout)
                after, received = execute(mesh, op, buffers, local, BYTES, np.nan)
                assert after.shape[1:] == local, line
                values[name] = (after, spent + received, op.layout)
            elif found := re.search(r"return (.*) : ", line):
                returned = found[1].split(", ")
        assert len(returned) == len(targets[i])
        for name, target in zip(returned, targets[i], strict=True):
            buffers, spent, layout = values[name]
            goal = layouts[target]
            where = f"{mesh.axes} {shape}: {print_layout(mesh, layouts[i])} -> {print_layout(mesh, goal)}\n{text}"
            if goal.partial:
                buffers = buffers[mesh.groups(goal.partial)].sum(axis=1)
            real = ~np.isnan(expected[target])
            assert np.array_equal(buffers[real], expected[target][real]), where
            assert print_layout(mesh, layout) == print_layout(mesh, goal), where
            assert spent == best[i, target], f"{spent} bytes where {best[i, target]} are enough: {where}"
            checked += 1
    return checked


LINES = [(8,), (12,), (5,), (1,), (0,), (7,)]
PLANES = [(8, 12), (6, 3), (7, 5), (1, 4)]
MORE_PLANES = [(4, 6), (5, 8), (2, 0)]
CUBES = [("2x2", (4, 8, 4)), ("2x2", (3, 5, 2)), ("2x3", (6, 12, 6)), ("2x3", (4, 5, 1))]
LARGE_CUBES = [("2x4", (8, 8, 8)), ("2x2x2", (6, 5, 4)), ("2x4", (6, 1, 9))]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *itertools.product(MESHES, LINES),
        *itertools.product(["2x2", "2x3"], PLANES + MORE_PLANES),
        *itertools.product(["2x4"], PLANES),
        *itertools.product(["2x2x2"], MORE_PLANES),
        *CUBES,
    ],
)
def test_every_pair_of_layouts(name: str, shape: tuple[int, ...]) -> None:
    mesh, atoms = MESHES[name]
    assert check_pairs(mesh, atoms, shape) >= len(arrangements(atoms, len(shape)))


@pytest.mark.parametrize(("name", "shape"), LARGE_CUBES)
def test_a_fifth_of_the_pairs(name: str, shape: tuple[int, ...]) -> None:
    """31 thousand pairs each: a fifth of them keeps the test short."""
    mesh, atoms = MESHES[name]
    assert check_pairs(mesh, atoms, shape, keep=0.2) > 2000
