# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts as people write them, before they meet a mesh and a tensor.

Three families: PyTorch's placements (one for each mesh axis), MindSpore's ``Layout`` (one entry for each dimension, the
mesh along), and axis lists (one entry for each dimension, or only those that are split). Each resolves against a
mesh and a shape to a ``TensorLayout``; what does not fit is a ``PlanError`` that says where the layout was written.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Protocol

from hyperparallel.errors import PlanError
from hyperparallel.plan.layouts import AxisRef, DimLayout, TensorLayout
from hyperparallel.plan.mesh import Mesh


class LayoutSpec(Protocol):
    """A layout that is still to meet a mesh and a tensor."""

    def resolve(self, mesh: Mesh, shape: tuple[int, ...], where: str) -> TensorLayout:
        """The layout of a tensor of that shape; ``PlanError`` (blaming ``where``) if it does not fit."""
        ...

    def implied_mesh(self) -> Mesh | None:
        """The mesh that the spelling itself carries, if any."""
        ...


def _dimension(dim: int, rank: int, spelled: str, where: str) -> int:
    """A dimension counted from the front, or a complaint."""
    if not -rank <= dim < rank:
        least = dim + 1 if dim >= 0 else -dim
        raise PlanError(
            f"{where}: {spelled} needs a tensor of rank {least} or more, but its rank is {rank}",
            constraint=f"rank >= {least}",
        )
    return dim % rank


@dataclasses.dataclass(frozen=True, slots=True)
class Shard:
    """PyTorch's ``Shard(dim)``; ``Shard(0) @ "dp"`` names the mesh axis instead of counting positions."""

    dim: int
    axes: tuple[str, ...] = ()

    def __matmul__(self, axis: str | tuple[str, ...]) -> Shard:
        return Shard(self.dim, (axis,) if isinstance(axis, str) else tuple(axis))

    def __str__(self) -> str:
        return f"Shard({self.dim})" + _at(self.axes)


@dataclasses.dataclass(frozen=True, slots=True)
class Replicate:
    """PyTorch's ``Replicate()``; with ``@ "tp"`` for one named axis."""

    axes: tuple[str, ...] = ()

    def __matmul__(self, axis: str | tuple[str, ...]) -> Replicate:
        return Replicate((axis,) if isinstance(axis, str) else tuple(axis))

    def __str__(self) -> str:
        return "Replicate()" + _at(self.axes)


Placement = Shard | Replicate


def _at(axes: tuple[str, ...]) -> str:
    if not axes:
        return ""
    return f"@{axes[0]}" if len(axes) == 1 else f"@({','.join(axes)})"


@dataclasses.dataclass(frozen=True, slots=True)
class Placements:
    """PyTorch's spelling: what each mesh axis does to the tensor, by position or by ``@axis``.

    Several axes that split one dimension do so in the order of the mesh, the first outermost.
    """

    items: tuple[Placement, ...]

    def implied_mesh(self) -> Mesh | None:
        """Placements carry no mesh."""
        return None

    def resolve(self, mesh: Mesh, shape: tuple[int, ...], where: str) -> TensorLayout:
        """One closed dimension layout for each dimension."""
        split: dict[int, list[AxisRef]] = {}
        seen: set[str] = set()
        placed: list[tuple[str, Placement]] = []
        for axes, placement in zip(self._axes(mesh, where), self.items, strict=True):
            for axis in axes:
                if axis not in mesh.names:
                    raise PlanError(f"{where}: unknown axis {axis}; the mesh {mesh} has {', '.join(mesh.names)}")
                if axis in seen:
                    raise PlanError(f"{where}: axis {axis} is used twice in {self}")
                seen.add(axis)
                placed.append((axis, placement))
        placed.sort(key=lambda pair: mesh.names.index(pair[0]))
        for axis, placement in placed:
            if isinstance(placement, Shard):
                dim = _dimension(placement.dim, len(shape), str(placement), where)
                split.setdefault(dim, []).append(AxisRef(axis))
        return TensorLayout(tuple(DimLayout(tuple(split.get(dim, []))) for dim in range(len(shape))))

    def _axes(self, mesh: Mesh, where: str) -> list[tuple[str, ...]]:
        if all(item.axes for item in self.items):
            return [item.axes for item in self.items]
        if any(item.axes for item in self.items):
            raise PlanError(
                f"{where}: {self} names the axis of some placements and counts positions for others; "
                "name all: Shard(0)@axis"
            )
        if self.items == (Replicate(),):
            return [mesh.names]
        if len(self.items) != len(mesh.axes):
            raise PlanError(
                f"{where}: {self} has {len(self.items)} placement(s) but the mesh {mesh} has {len(mesh.axes)} axes; "
                "write one for each axis, or name the axis: Shard(0)@axis"
            )
        return [(name,) for name in mesh.names]

    def __str__(self) -> str:
        text = ", ".join(str(item) for item in self.items)
        return text if len(self.items) == 1 else f"[{text}]"


@dataclasses.dataclass(frozen=True, slots=True)
class Dims:
    """Axis lists: entries for dimensions, all of them or only those that are split.

    Attributes:
        entries: Dimension (negative: from the end) and its layout.
        rank: The rank that the spelling is for, or None for "whatever it is".
        replicated: Axes that propagation must not use.
        default: The layout of dimensions that have no entry.
        mesh: The mesh that the spelling carries (MindSpore's ``Layout``).
        text: As it was written.
    """

    entries: tuple[tuple[int, DimLayout], ...]
    rank: int | None = None
    replicated: tuple[AxisRef, ...] = ()
    default: DimLayout = dataclasses.field(default_factory=DimLayout)
    mesh: Mesh | None = None
    text: str = ""

    def implied_mesh(self) -> Mesh | None:
        """The mesh of a ``Layout``; None for axis lists."""
        return self.mesh

    def resolve(self, mesh: Mesh, shape: tuple[int, ...], where: str) -> TensorLayout:
        """The layout on this mesh, checked."""
        if self.mesh is not None and self.mesh != mesh:
            raise PlanError(
                f"{where}: {self} is for the mesh {self.mesh} but the plan's mesh is {mesh}; "
                "write the layout for that mesh, or as axis names alone"
            )
        rank = len(shape)
        if self.rank is not None and self.rank != rank:
            raise PlanError(
                f"{where}: {self} has {self.rank} entries but the tensor has {rank} dimensions; write "
                "one entry for each",
                constraint=f"rank = {self.rank}",
            )
        dims = [self.default] * rank
        written: set[int] = set()
        for position, layout in self.entries:
            dim = _dimension(position, rank, f"dimension {position}", where)
            if dim in written:
                raise PlanError(f"{where}: {self} says twice how dimension {dim} is split")
            written.add(dim)
            dims[dim] = layout
        layout = TensorLayout(tuple(dims), self.replicated)
        layout.check(mesh, where)
        return layout

    def __str__(self) -> str:
        return self.text or "{" + ", ".join(f"{dim}: {layout}" for dim, layout in self.entries) + "}"


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """MindSpore's ``Layout(device_matrix, alias_name)``; called with an entry for each dimension, a tensor's layout.

    A tuple entry splits by several axes, the left outermost; ``"None"`` does not split.

    >>> str(Layout((2, 2), ("dp", "tp"))("dp", "None"))
    'Layout((2, 2), ("dp", "tp"))("dp", "None")'
    """

    device_matrix: tuple[int, ...]
    alias_name: tuple[str, ...]
    rank_list: tuple[int, ...] = ()

    def mesh(self) -> Mesh:
        """The mesh of the device matrix; ``PlanError`` where MindSpore would refuse it, and for virtual axes."""
        if len(self.device_matrix) != len(self.alias_name):
            raise PlanError(
                f"{self}: expected one alias for each of the {len(self.device_matrix)} mesh axes but got "
                f"{len(self.alias_name)}"
            )
        for name in self.alias_name:
            if name == "interleaved_parallel":
                raise PlanError(
                    f"{self}: interleaved_parallel, a split inside one device, is not supported; leave it out"
                )
            if name == "None":
                raise PlanError(f'{self}: "None" is reserved and cannot name an axis')
        ids = self.rank_list
        if ids and len(ids) != math.prod(self.device_matrix):
            raise PlanError(f"{self}: expected {math.prod(self.device_matrix)} ranks in rank_list but got {len(ids)}")
        if ids == tuple(range(len(ids))):
            ids = ()
        return Mesh(tuple(zip(self.alias_name, self.device_matrix, strict=True)), ids)

    def __call__(self, *entries: str | tuple[str, ...] | None) -> Dims:
        """The layout of a tensor with one dimension for each entry."""
        mesh = self.mesh()
        shown: list[str] = []
        dims: list[tuple[int, DimLayout]] = []
        for position, entry in enumerate(entries):
            names = () if entry is None or entry == "None" else (entry,) if isinstance(entry, str) else tuple(entry)
            shown.append(_quoted(names))
            dims.append((position, DimLayout(tuple(AxisRef(name) for name in names))))
        return Dims(tuple(dims), rank=len(dims), mesh=mesh, text=f"{self}({', '.join(shown)})")

    def __str__(self) -> str:
        sizes = ", ".join(str(size) for size in self.device_matrix)
        names = ", ".join(f'"{name}"' for name in self.alias_name)
        comma = "," if len(self.device_matrix) == 1 else ""
        ranks = f", {list(self.rank_list)}" if self.rank_list else ""
        return f"Layout(({sizes}{comma}), ({names}{comma}){ranks})"


def _quoted(names: tuple[str, ...]) -> str:
    if not names:
        return '"None"'
    quoted = [f'"{name}"' for name in names]
    return quoted[0] if len(quoted) == 1 else f"({', '.join(quoted)})"


@dataclasses.dataclass(frozen=True, slots=True)
class SplitLargest:
    """What FSDP does to a parameter: one dimension is split over all the axes.

    The first dimension that splits evenly is taken; if none does, the first with an element for each device; else the
    first. Dimensions keep the axes that ``base`` gives them; the new ones are minor.

    How something is stored has no say in how it is computed with: its priority is behind that of the batch, so that a
    gradient is computed by the batch and then scattered, instead of moving activations to where it is stored.
    """

    axes: tuple[str, ...]
    base: LayoutSpec = dataclasses.field(default_factory=lambda: Placements((Replicate(),)))

    def implied_mesh(self) -> Mesh | None:
        """Carries no mesh."""
        return None

    def resolve(self, mesh: Mesh, shape: tuple[int, ...], where: str) -> TensorLayout:
        """The base layout with one dimension split further."""
        base = self.base.resolve(mesh, shape, where)
        if not shape:
            return base
        taken = {axis.name for axis in base.axes()}
        extra = tuple(AxisRef(name) for name in self.axes if name not in taken)
        devices = math.prod(mesh.size(axis.name) for axis in extra if axis.name in mesh.names)
        local = base.local_shape(shape, mesh)
        long_enough = [index for index, size in enumerate(local) if size >= devices]
        parts = [math.prod(axis.devices(mesh) for axis in dim.axes) for dim in base.dims]
        even = [index for index in long_enough if shape[index] % (devices * parts[index]) == 0]
        dim = next(iter(even + long_enough), 0)
        dims = list(base.dims)
        dims[dim] = dataclasses.replace(dims[dim], axes=dims[dim].axes + extra, priority=1)
        layout = TensorLayout(tuple(dims), base.replicated)
        layout.check(mesh, where)
        return layout

    def __str__(self) -> str:
        inner = "" if str(self.base) == "Replicate()" else f"{self.base} and "
        return f"{inner}one dimension over {', '.join(self.axes)}"
