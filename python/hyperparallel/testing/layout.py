# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the elements of a global array are: cutting it for devices, and putting it together again.

Written from the meaning of shardings alone, independently of the compiler: a dimension of size n over k devices is cut
in blocks of ceil(n / k); device i holds block i, and what lies past the end is padding, which nobody may rely on. It
is filled so that a program that does rely on it is found out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from hyperparallel.enums import StrEnum
from hyperparallel.errors import RuntimeFailure

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True, slots=True)
class Part:
    """An axis of a mesh, or a part of one: ``size`` devices whose ids are ``stride`` apart."""

    stride: int
    size: int

    def coordinate(self, device: int) -> int:
        """The number of a device along the part."""
        return device // self.stride % self.size


def linear_index(device: int, parts: Sequence[Part]) -> int:
    """The coordinates along the parts as one number, the first most significant."""
    index = 0
    for part in parts:
        index = index * part.size + part.coordinate(device)
    return index


def group_size(parts: Sequence[Part]) -> int:
    """The number of devices that differ in these parts only."""
    size = 1
    for part in parts:
        size *= part.size
    return size


def group_members(device: int, parts: Sequence[Part]) -> list[int]:
    """The devices of this device's group, in group order."""
    base = device - sum(part.coordinate(device) * part.stride for part in parts)
    members = [base]
    for part in parts:
        members = [member + i * part.stride for member in members for i in range(part.size)]
    return members


@dataclass(frozen=True, slots=True)
class Mesh:
    """Devices along named axes, numbered row-major, the last axis fastest."""

    axes: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, axes: Mapping[str, int]) -> Mesh:
        """The mesh of these axes, major to minor."""
        return cls(tuple(axes.items()))

    @property
    def num_devices(self) -> int:
        """Product of the axis sizes."""
        return group_size([Part(1, size) for _, size in self.axes])

    def part(self, name: str, pre_size: int = 0, size: int = 0) -> Part:
        """An axis (no sizes), or the part of it of that size that comes after ``pre_size``."""
        names = [axis for axis, _ in self.axes]
        if name not in names:
            raise RuntimeFailure(f"the mesh has no axis {name!r}; it has {', '.join(names) or 'none'}")
        position = names.index(name)
        inner = group_size([Part(1, extent) for _, extent in self.axes[position + 1 :]])
        extent = self.axes[position][1]
        if size == 0:
            return Part(inner, extent)
        return Part(extent // (pre_size * size) * inner, size)


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts that split each dimension, and what the value is still to be reduced over."""

    dims: tuple[tuple[Part, ...], ...]
    partial_kind: str = ""
    partial: tuple[Part, ...] = ()

    def local_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of one device's part."""
        return tuple(-(-n // group_size(parts)) for n, parts in zip(shape, self.dims, strict=True))


class Padding(StrEnum):
    """What stands past the end of a tensor."""

    LARGE = "large"
    """NaN, or the largest integer, which is a position out of bounds everywhere."""
    ZERO = "zero"
    """Zeros, which must not be divided by."""


def padding_of(dtype: np.dtype[Any], padding: Padding = Padding.LARGE) -> Any:
    """The element that stands past the end of a tensor."""
    if padding == Padding.ZERO:
        return dtype.type(0)
    if dtype == np.bool_:
        return True
    if dtype.kind in "iu":
        return np.iinfo(dtype).max
    return np.nan


def block(array: Array, layout: Layout, device: int, padding: Padding = Padding.LARGE) -> Array:
    """The part of a global array that a device holds, ignoring partial sums."""
    local = array
    for dim, parts in enumerate(layout.dims):
        n = array.shape[dim]
        size = -(-n // group_size(parts))
        start = linear_index(device, parts) * size
        taken = local.take(range(min(start, n), min(start + size, n)), axis=dim)
        missing = [(0, size - taken.shape[axis]) if axis == dim else (0, 0) for axis in range(array.ndim)]
        local = np.pad(taken, missing, constant_values=padding_of(array.dtype, padding)) if missing[dim][1] else taken
    return np.array(local)


def scatter(array: Array, layout: Layout, num_devices: int, padding: Padding = Padding.LARGE) -> list[Array]:
    """Every device's part of a global array.

    A partial layout gets different terms on every device of the group, of both signs, whose reduction is the array.
    """
    if not layout.partial:
        return [block(array, layout, device, padding) for device in range(num_devices)]
    terms = _terms(array, layout.partial_kind, group_size(layout.partial))
    return [
        block(terms[linear_index(device, layout.partial)], layout, device, padding) for device in range(num_devices)
    ]


def gather(blocks: Sequence[Array], layout: Layout, shape: Sequence[int]) -> Array:
    """The global array that the devices hold together.

    Raises:
        RuntimeFailure: Devices that should hold copies of a part hold different values.
    """
    count = group_size(layout.partial)
    terms: list[Array] = []
    for term in range(count):
        whole = np.zeros(shape, blocks[0].dtype)
        owner = np.full(shape, -1)
        for device, local in enumerate(blocks):
            if linear_index(device, layout.partial) == term:
                _place(whole, owner, local, layout, device)
        terms.append(whole)
    return reduce_terms(terms, layout.partial_kind) if layout.partial else terms[0]


def _place(whole: Array, owner: Array, local: Array, layout: Layout, device: int) -> None:
    """Writes a device's part, and compares it with copies that are there already."""
    target: list[slice] = []
    source: list[slice] = []
    for n, parts in zip(whole.shape, layout.dims, strict=True):
        size = -(-n // group_size(parts))
        start = min(linear_index(device, parts) * size, n)
        length = min(start + size, n) - start
        target.append(slice(start, start + length))
        source.append(slice(0, length))
    where, values = tuple(target), local[tuple(source)]
    seen = owner[where] >= 0
    same = np.isclose(whole[where], values, rtol=1e-5, atol=1e-6, equal_nan=True)
    if bool(np.any(seen & ~same)):
        first = int(owner[where][seen & ~same].flat[0])
        raise RuntimeFailure(f"devices {first} and {device} should hold copies of a part but hold different values")
    whole[where] = values
    owner[where] = device


# ----------------------------------------------------------------------------------------------------------------------
# Partial values
# ----------------------------------------------------------------------------------------------------------------------


def reduce_terms(terms: Sequence[Array], kind: str) -> Array:
    """Combines the values of a group elementwise, in group order."""
    combine: Callable[[Array, Array], Array] = {
        "sum": np.add,
        "avg": np.add,
        "max": np.maximum,
        "min": np.minimum,
        "prod": np.multiply,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
    }[kind]
    if terms[0].dtype == np.bool_:
        combine = {"sum": np.logical_xor, "prod": np.logical_and, "max": np.logical_and, "min": np.logical_or}.get(
            kind, combine
        )
    total = terms[0].copy()
    with np.errstate(all="ignore"):
        for term in terms[1:]:
            total = combine(total, term).astype(total.dtype)
        return (total / total.dtype.type(len(terms))).astype(total.dtype) if kind == "avg" else total


def _terms(array: Array, kind: str, count: int) -> list[Array]:
    """Terms of a reduction whose outcome is the array: unequal, and of both signs."""
    index = np.arange(array.size).reshape(array.shape)
    exact = index % count
    if kind in ("sum", "avg"):
        scale = array.dtype.type(count if kind == "avg" else 1)
        terms = [((index * (i + 2)) % 7 - 3 + (i % 2) * 2).astype(array.dtype) for i in range(count - 1)]
        rest = array * scale
        for term in terms:
            rest = (rest - term).astype(array.dtype)
        return [*terms, rest]
    if kind in ("max", "min"):
        sign = -1 if kind == "max" else 1
        return [np.where(exact == i, array, array + sign * (i + 1)).astype(array.dtype) for i in range(count)]
    if kind == "prod":
        factors = [np.where(index % 2 == i % 2, -2, 0.5) for i in range(count - 1)]
        rest = array.astype(np.float64)
        for factor in factors:
            rest = rest / factor
        return [*[factor.astype(array.dtype) for factor in factors], rest.astype(array.dtype)]
    noise = (index * 5 + 3).astype(array.dtype) if array.dtype != np.bool_ else index % 3 == 0
    if kind == "and":
        return [np.where(exact == i, array, array | noise) for i in range(count)]
    return [np.where(exact == i, array, array & noise) for i in range(count)]
