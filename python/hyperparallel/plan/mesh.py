# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A mesh of devices: named axes and their sizes."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence

from hyperparallel.errors import PlanError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_MOST_DEVICES = 2**24


@dataclasses.dataclass(frozen=True, slots=True)
class Mesh:
    """Devices arranged along named axes; ids are row-major, the last axis fastest.

    Attributes:
        axes: Name and size of every axis, major to minor.
        device_ids: The physical device at each logical position; empty for 0, 1, 2, ...

    >>> Mesh.parse("dp=2,tp=4").num_devices
    8
    """

    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        names: set[str] = set()
        for name, size in self.axes:
            if not _NAME.fullmatch(name):
                raise PlanError(f"mesh: expected the name of an axis, such as dp, but got {name!r}")
            if name in names:
                raise PlanError(f"mesh: axis {name} is named twice")
            # YAML gives anything; type() because True is an int.
            if type(size) is not int or size < 1:
                raise PlanError(f"mesh: expected a size of at least 1 for axis {name} but got {size!r}")
            names.add(name)
        if not self.axes:
            raise PlanError("mesh: expected at least one axis, such as dp=2,tp=2")
        if self.num_devices > _MOST_DEVICES:
            raise PlanError(
                f"mesh {self}: {self.num_devices} devices are more than the {_MOST_DEVICES} that a mesh can have"
            )
        if self.device_ids and sorted(self.device_ids) != list(range(self.num_devices)):
            raise PlanError(
                f"mesh {self}: device ids must be 0 to {self.num_devices - 1} in some order but are "
                f"{list(self.device_ids)}"
            )

    @staticmethod
    def parse(text: str) -> Mesh:
        """Read ``dp=2,tp=2``.

        Raises:
            PlanError: If the text is not a list of axes with sizes.
        """
        axes: list[tuple[str, int]] = []
        for part in text.split(","):
            name, equals, size = (piece.strip() for piece in part.partition("="))
            if not equals or not size.isdigit() or not size.isascii():
                raise PlanError(f"mesh: expected axes with sizes, such as dp=2,tp=2, but got {text!r}")
            axes.append((name, int(size)))
        return Mesh(tuple(axes))

    @staticmethod
    def of(value: Mesh | str | Mapping[str, int] | Sequence[tuple[str, int]]) -> Mesh:
        """A mesh of any of its spellings: text, ``{"dp": 2}``, or pairs."""
        if isinstance(value, Mesh):
            return value
        if isinstance(value, str):
            return Mesh.parse(value)
        if isinstance(value, Mapping):
            return Mesh(tuple((str(name), size) for name, size in value.items()))
        return Mesh(tuple((str(name), size) for name, size in value))

    @property
    def names(self) -> tuple[str, ...]:
        """The axis names, major to minor."""
        return tuple(name for name, _ in self.axes)

    @property
    def num_devices(self) -> int:
        """The product of the sizes."""
        return math.prod(size for _, size in self.axes)

    def size(self, axis: str) -> int:
        """The number of devices along an axis that exists."""
        return dict(self.axes)[axis]

    def check_devices(self, devices: int) -> None:
        """Refuse a mesh that does not use exactly so many devices."""
        if self.num_devices != devices:
            product = " x ".join(str(size) for _, size in self.axes)
            raise PlanError(
                f"mesh {self} is {product} = {self.num_devices} devices but {devices} were asked for; "
                "change the mesh or the number of devices",
                constraint=f"{self.num_devices} = {devices}",
            )

    def __str__(self) -> str:
        return ",".join(f"{name}={size}" for name, size in self.axes)
