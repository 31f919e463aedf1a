# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How one tensor is laid out over a mesh: what the dialect's sharding attribute says, as plain data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from hyperparallel.errors import PlanError
from hyperparallel.plan.mesh import Mesh


@dataclasses.dataclass(frozen=True, slots=True)
class AxisRef:
    """A mesh axis, or the part of one that is seen as (pre, size, rest)."""

    name: str
    pre: int = 0
    size: int = 0

    def devices(self, mesh: Mesh) -> int:
        """The number of devices along it."""
        return self.size or mesh.size(self.name)

    def overlaps(self, other: AxisRef) -> bool:
        """Whether the two share coordinates."""
        if self.name != other.name:
            return False
        if not self.size or not other.size:
            return True
        return self.pre < other.pre * other.size and other.pre < self.pre * self.size

    def __str__(self) -> str:
        return f'"{self.name}":({self.pre}){self.size}' if self.size else f'"{self.name}"'


@dataclasses.dataclass(frozen=True, slots=True)
class DimLayout:
    """The axes that split one dimension, major to minor.

    Attributes:
        axes: Left is outermost.
        is_open: Propagation may add axes on the minor side.
        priority: Lower acts first in propagation.
    """

    axes: tuple[AxisRef, ...] = ()
    is_open: bool = False
    priority: int = 0

    def __str__(self) -> str:
        parts = [str(axis) for axis in self.axes] + (["?"] if self.is_open else [])
        return "{" + ", ".join(parts) + "}" + (f"p{self.priority}" if self.priority else "")


@dataclasses.dataclass(frozen=True, slots=True)
class TensorLayout:
    """The layout of one tensor: one entry for each dimension.

    Attributes:
        dims: How each dimension is split.
        replicated: Axes that propagation must not use for this tensor.
    """

    dims: tuple[DimLayout, ...]
    replicated: tuple[AxisRef, ...] = ()

    def axes(self) -> Iterator[AxisRef]:
        """Every axis that is named, those of the dimensions first."""
        for dim in self.dims:
            yield from dim.axes
        yield from self.replicated

    def check(self, mesh: Mesh, where: str) -> None:
        """Refuse unknown axes, axes used twice, and sub-axes that do not divide theirs.

        Args:
            mesh: The mesh that the axes belong to.
            where: What to blame, in words, such as ``gpt2.yaml:7: rule x for y``.
        """
        seen: list[AxisRef] = []
        for axis in self.axes():
            if axis.name not in mesh.names:
                raise PlanError(
                    f"{where}: unknown axis {axis.name}; the mesh {mesh} has {', '.join(mesh.names)}",
                )
            if axis.size and mesh.size(axis.name) % (axis.pre * axis.size):
                raise PlanError(
                    f"{where}: sub-axis {axis} does not divide axis {axis.name} of {mesh.size(axis.name)} devices"
                )
            if any(axis.overlaps(other) for other in seen):
                raise PlanError(f"{where}: axis {axis.name} is used twice; an axis can split a tensor once")
            seen.append(axis)
        order = [mesh.names.index(axis.name) for axis in self.replicated]
        if order != sorted(order):
            raise PlanError(f"{where}: replicated axes are named in mesh order: {', '.join(mesh.names)}")

    def local_shape(self, shape: tuple[int, ...], mesh: Mesh) -> tuple[int, ...]:
        """What one device holds; a dimension of n elements split k ways is ceil(n/k) there."""
        return tuple(
            math.ceil(size / math.prod(axis.devices(mesh) for axis in dim.axes))
            for size, dim in zip(shape, self.dims, strict=True)
        )

    def __str__(self) -> str:
        text = "[" + ", ".join(str(dim) for dim in self.dims) + "]"
        if self.replicated:
            text += ", replicated={" + ", ".join(str(axis) for axis in self.replicated) + "}"
        return text
