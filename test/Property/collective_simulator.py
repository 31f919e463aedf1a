# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives on a mesh, executed with numpy: written from the op descriptions, not from the planner.

All devices' buffers are one array whose first dimension is the device. Padding holds NaN, so that whoever reads it as a
value is found out.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Axis:
    """A part of a mesh axis: `"name":(pre)size`; the whole axis has pre 1 and its full size."""

    name: str
    pre: int
    size: int


Axes = tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which axes split each dimension, major to minor, and over which the value is a partial sum."""

    dims: tuple[Axes, ...]
    partial: Axes = ()


@dataclass(frozen=True, slots=True)
class Collective:
    """One op of the dialect; in global form it has the layout of its result."""

    name: str
    axes: Axes
    to_axes: Axes
    dims: tuple[int, ...]
    kind: str
    window: dict[str, int]
    layout: Layout | None


def block(size: int, shards: int) -> int:
    """The local size of a dimension."""
    return -(-size // shards)


def count(axes: Axes) -> int:
    """Devices along the axes."""
    return math.prod(axis.size for axis in axes)


@dataclass
class Mesh:
    """Named axes; devices are numbered row-major."""

    axes: dict[str, int]
    _groups: dict[Axes, NDArray[np.int64]] = field(default_factory=dict)

    @property
    def devices(self) -> int:
        """How many there are."""
        return math.prod(self.axes.values())

    def coordinates(self, axis: Axis) -> NDArray[np.int64]:
        """Each device's coordinate along the axis."""
        names = list(self.axes)
        full = self.axes[axis.name]
        after = math.prod(self.axes[name] for name in names[names.index(axis.name) + 1 :])
        return np.arange(self.devices) // after % full // (full // (axis.pre * axis.size)) % axis.size

    def index(self, axes: Axes) -> NDArray[np.int64]:
        """Each device's coordinates along the axes as one number, the first axis most significant."""
        number = np.zeros(self.devices, dtype=np.int64)
        for axis in axes:
            number = number * axis.size + self.coordinates(axis)
        return number

    def groups(self, axes: Axes) -> NDArray[np.int64]:
        """[device, rank]: the members of each device's group, in the order of the axes."""
        if axes not in self._groups:
            names = list(self.axes)
            own = np.arange(self.devices)
            base = own.copy()
            strides: list[int] = []
            for axis in axes:
                full = self.axes[axis.name]
                after = math.prod(self.axes[name] for name in names[names.index(axis.name) + 1 :])
                strides.append(full // (axis.pre * axis.size) * after)
                base -= self.coordinates(axis) * strides[-1]
            ranks = itertools.product(*(range(axis.size) for axis in axes))
            offsets = [sum(c * s for c, s in zip(rank, strides, strict=True)) for rank in ranks]
            self._groups[axes] = base[:, None] + np.array(offsets, dtype=np.int64)[None, :]
        return self._groups[axes]


def local_shape(shape: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    """The shape of one device's buffer."""
    return tuple(block(n, count(axes)) for n, axes in zip(shape, layout.dims, strict=True))


def scatter(mesh: Mesh, value: Array, layout: Layout) -> Array:
    """Every device's block of a whole value, NaN where it holds none; no partial sums are made."""
    local = local_shape(value.shape, layout)
    padded = [(0, block(n, count(axes)) * count(axes) - n) for n, axes in zip(value.shape, layout.dims, strict=True)]
    filled = np.pad(value, padded, constant_values=np.nan)
    out = np.empty((mesh.devices, *local))
    starts = [mesh.index(axes) * size for axes, size in zip(layout.dims, local, strict=True)]
    for device in range(mesh.devices):
        out[device] = filled[tuple(slice(s[device], s[device] + n) for s, n in zip(starts, local, strict=True))]
    return out


def make_partial(mesh: Mesh, blocks: Array, layout: Layout, rng: np.random.Generator) -> Array:
    """Terms, one per device along the partial axes, that add up to the blocks; integers, so that sums are exact."""
    rank = mesh.index(layout.partial)
    # Devices that hold copies hold the same term.
    place = mesh.index(tuple(axis for dim in layout.dims for axis in dim))
    table = rng.integers(-50, 50, (mesh.devices, mesh.devices, *blocks.shape[1:])).astype(np.float64)
    terms = table[place, rank] + 0 * blocks
    others = terms[mesh.groups(layout.partial)[:, 1:]].sum(axis=1)
    terms[rank == 0] = (blocks - others)[rank == 0]
    return terms


def _pad(x: Array, dim: int, size: int, filling: float) -> Array:
    widths = [(0, 0)] * x.ndim
    widths[dim + 1] = (0, size - x.shape[dim + 1])
    return np.pad(x, widths, constant_values=filling)


def _own_block(x: Array, dim: int, size: int, ranks: NDArray[np.int64]) -> Array:
    moved = np.moveaxis(x, dim + 1, 1)
    picked = moved[np.arange(len(x))[:, None], ranks[:, None] * size + np.arange(size)[None, :]]
    return np.moveaxis(picked, 1, dim + 1)


def _concat(parts: Array, dim: int, size: int) -> Array:
    """[device, rank, ...] put together along a dimension, and trimmed."""
    moved = np.moveaxis(parts, 1, dim + 1)
    shape = list(moved.shape)
    shape[dim + 1 : dim + 3] = [shape[dim + 1] * shape[dim + 2]]
    whole = moved.reshape(shape)
    assert whole.shape[dim + 1] >= size
    return np.take(whole, np.arange(size), axis=dim + 1)


def _window(mesh: Mesh, op: Collective, x: Array) -> Array:
    """halo_exchange: the dimension's elements from whoever holds them, zero outside."""
    (dim,) = op.dims
    lo, global_size, stride, size = (op.window[key] for key in ("window", "of", "step", "size"))
    whole = np.moveaxis(_concat(x[mesh.groups(op.axes)], dim, global_size), dim + 1, 1)
    index = mesh.index(op.axes)[:, None] * stride + lo + np.arange(size)[None, :]
    inside = (index >= 0) & (index < global_size)
    if global_size == 0:
        return np.moveaxis(np.zeros((len(x), size, *whole.shape[2:])), 1, dim + 1)
    picked = whole[np.arange(len(x))[:, None], index.clip(0, global_size - 1)]
    picked[~inside] = 0
    return np.moveaxis(picked, 1, dim + 1)


REDUCTIONS = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod, "avg": np.mean}


def execute(
    mesh: Mesh, op: Collective, x: Array, after: tuple[int, ...], width: int, filling: float
) -> tuple[Array, int]:
    """What every device has after the op, and the bytes that a device receives.

    Args:
        mesh: The devices.
        op: What they do.
        x: Their buffers.
        after: The shape of a buffer afterwards.
        width: Bytes of an element.
        filling: What a dimension is padded with where blocks are not full.
    """
    groups, size = mesh.groups(op.axes), count(op.axes)
    held = math.prod(x.shape[1:]) * width
    match op.name:
        case "all_gather":
            (dim,) = op.dims
            return _concat(x[groups], dim, after[dim]), (size - 1) * held
        case "all_reduce":
            return REDUCTIONS[op.kind](x[groups], axis=1), 2 * (size - 1) * block(held, size)
        case "slice_local":
            (dim,) = op.dims
            return _own_block(_pad(x, dim, size * after[dim], filling), dim, after[dim], mesh.index(op.axes)), 0
        case "reduce_scatter":
            (dim,) = op.dims
            whole = REDUCTIONS[op.kind](_pad(x, dim, size * after[dim], filling)[groups], axis=1)
            return _own_block(whole, dim, after[dim], mesh.index(op.axes)), (size - 1) * math.prod(after) * width
        case "all_to_all":
            split, concat = op.dims
            padded = _pad(x, split, size * after[split], filling)
            own = mesh.index(op.axes)
            parts = np.stack(
                [_own_block(padded[groups[:, rank]], split, after[split], own) for rank in range(size)], axis=1
            )
            return _concat(parts, concat, after[concat]), (size - 1) * math.prod(parts.shape[2:]) * width
        case "permute":
            source, target = mesh.index(op.axes), mesh.index(op.to_axes)
            sender = [next(d for d in group if source[d] == target[device]) for device, group in enumerate(groups)]
            return x[np.array(sender)], held
        case "halo_exchange":
            return _window(mesh, op, x), 0
        case _:
            raise AssertionError(f"no such collective: {op.name}")


_AXIS = re.compile(r'"(\w+)"(?::\((\d+)\)(\d+))?')
_SHARDING = re.compile(r"#hypershard\.sharding<@\w+, \[(.*?)\](?:, partial=<(\w+) \{(.*?)\}>)?>")
_OP = re.compile(
    r"(%\S+) = hypershard\.(\w+) (%\S+) over @\w+ \{(.*?)\}(?: to \{(.*?)\})?(.*?)"
    r"(?: \{hypershard\.sharding = (#.*?>)\})? : "
)


def parse_axes(mesh: Mesh, text: str) -> Axes:
    """Reads `"a", "b":(1)2`."""
    return tuple(Axis(name, int(pre or 1), int(size or mesh.axes[name])) for name, pre, size in _AXIS.findall(text))


def parse_layout(mesh: Mesh, text: str) -> Layout:
    """Reads `#hypershard.sharding<...>`."""
    found = _SHARDING.search(text)
    assert found, text
    dims = tuple(parse_axes(mesh, dim) for dim in re.findall(r"\{(.*?)\}", found[1]))
    return Layout(dims, parse_axes(mesh, found[3] or ""))


def parse_collective(mesh: Mesh, line: str) -> tuple[str, str, Collective] | None:
    """Result name, operand name and op of one printed line; None if it holds no collective."""
    found = _OP.search(line)
    if not found:
        return None
    result, name, operand, axes, to_axes, rest, sharding = found.groups()
    op = Collective(
        name,
        parse_axes(mesh, axes),
        parse_axes(mesh, to_axes or ""),
        tuple(int(number) for number in re.findall(r"(?:dim|split|concat) (\d+)", rest)),
        "".join(re.findall(r"<(\w+)>", rest)),
        {key: int(number) for key, number in re.findall(r"(of|window|step|size) (-?\d+)", rest)},
        parse_layout(mesh, sharding) if sharding else None,
    )
    return result, operand, op


def print_axes(mesh: Mesh, axes: Axes) -> str:
    """Writes axes as the dialect wants them: consecutive parts of one axis as one."""
    merged: list[Axis] = []
    for axis in axes:
        last = merged[-1] if merged else None
        if last and last.name == axis.name and last.pre * last.size == axis.pre:
            merged[-1] = Axis(axis.name, last.pre, last.size * axis.size)
        else:
            merged.append(axis)
    return ", ".join(f'"{a.name}"' if a.size == mesh.axes[a.name] else f'"{a.name}":({a.pre}){a.size}' for a in merged)


def print_layout(mesh: Mesh, layout: Layout, kind: str = "sum") -> str:
    """Writes what follows `#hypershard.sharding`."""
    dims = ", ".join("{" + print_axes(mesh, axes) + "}" for axes in layout.dims)
    partial = f", partial=<{kind} {{{print_axes(mesh, layout.partial)}}}>" if layout.partial else ""
    return f"<@m, [{dims}]{partial}>"
