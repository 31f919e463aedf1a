# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Global arrays and the parts of them that devices hold.

A dimension of n elements split k ways is cut into blocks of ceil(n/k); what lies past the end is padding. A device's
block along a dimension is its coordinates along the dimension's axes, read as one number, the first most significant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperparallel.plan.layouts import AxisRef, TensorLayout
from hyperparallel.plan.mesh import Mesh

Array = NDArray[Any]


def block_of(device: int, axes: Sequence[AxisRef], mesh: Mesh) -> int:
    """The number of the block that a device holds of a dimension split over ``axes``.

    Args:
        device: Linear id, row-major over the mesh.
        axes: Major to minor.
        mesh: The mesh.
    """
    strides: dict[str, int] = {}
    stride = 1
    for name, size in reversed(mesh.axes):
        strides[name] = stride
        stride *= size
    block = 0
    for axis in axes:
        whole = mesh.size(axis.name)
        coordinate = device // strides[axis.name] % whole
        if axis.size:
            coordinate = coordinate // (whole // (axis.pre * axis.size)) % axis.size
        block = block * axis.devices(mesh) + coordinate
    return block


def bounds_of(device: int, shape: Sequence[int], layout: TensorLayout, mesh: Mesh) -> list[tuple[int, int]]:
    """Beginning and local size of each dimension's block."""
    bounds: list[tuple[int, int]] = []
    for size, dim in zip(shape, layout.dims, strict=True):
        parts = math.prod(axis.devices(mesh) for axis in dim.axes)
        local = math.ceil(size / parts)
        bounds.append((block_of(device, dim.axes, mesh) * local, local))
    return bounds


def split_array(array: Array, layout: TensorLayout, mesh: Mesh) -> list[Array]:
    """Cut a global array into the C-contiguous local arrays of all devices.

    Devices that hold the same block share one array, so only read them. Padding is zero.

    Returns:
        One array for each device, in the order of their linear ids.
    """
    made: dict[tuple[tuple[int, int], ...], Array] = {}
    locals_: list[Array] = []
    for device in range(mesh.num_devices):
        bounds = bounds_of(device, array.shape, layout, mesh)
        key = tuple(bounds)
        if key not in made:
            # The ellipsis keeps a scalar an array.
            part = array[(*(slice(begin, begin + local) for begin, local in bounds), ...)]
            wanted = tuple(local for _, local in bounds)
            if part.shape != wanted:
                padded = np.zeros(wanted, array.dtype)
                padded[tuple(slice(0, size) for size in part.shape)] = part
                part = padded
            made[key] = np.require(part, requirements=["C", "A"])
        locals_.append(made[key])
    return locals_


def join_array(parts: Sequence[Array], shape: Sequence[int], layout: TensorLayout, mesh: Mesh) -> Array:
    """Put the local arrays of all devices together; of copies, the first device's is taken, padding is dropped.

    Args:
        parts: One array for each device, in the order of their linear ids.
        shape: The global shape.
        layout: How it is split.
        mesh: The mesh.
    """
    whole = np.empty(tuple(shape), parts[0].dtype)
    seen: set[tuple[tuple[int, int], ...]] = set()
    for device in range(mesh.num_devices):
        bounds = bounds_of(device, shape, layout, mesh)
        key = tuple(bounds)
        if key in seen:
            continue
        seen.add(key)
        place = whole[(*(slice(begin, begin + local) for begin, local in bounds), ...)]
        place[...] = parts[device][tuple(slice(0, size) for size in place.shape)]
    return whole


def disagreement(parts: Sequence[Array], shape: Sequence[int], layout: TensorLayout, mesh: Mesh) -> str | None:
    """Says which two devices hold different copies of one block, if any do; NaN equals NaN."""
    first: dict[tuple[tuple[int, int], ...], int] = {}
    for device in range(mesh.num_devices):
        bounds = bounds_of(device, shape, layout, mesh)
        key = tuple(bounds)
        other = first.setdefault(key, device)
        valid = tuple(
            slice(0, max(0, min(local, size - begin))) for (begin, local), size in zip(bounds, shape, strict=True)
        )
        if other != device and parts[other][valid].tobytes() != parts[device][valid].tobytes():
            return f"devices {other} and {device} hold different copies"
    return None
