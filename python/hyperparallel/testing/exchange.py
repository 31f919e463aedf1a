# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives between the threads of virtual devices, from the meaning of the ops alone.

Every device puts its buffer on the table, all wait for each other, and each takes what its group gives it. Devices that
do not arrive together are an error, not a hang.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hyperparallel.errors import RuntimeFailure
from hyperparallel.testing.layout import Array, Part, group_members, group_size, linear_index, reduce_terms

PATIENCE_S = 60.0
"""How long a device waits for the others."""


@dataclass(slots=True)
class Traffic:
    """What was moved: collectives by kind, and the bytes that the busiest device received from others."""

    collectives: Counter[str] = field(default_factory=Counter)
    received: Counter[int] = field(default_factory=Counter)

    @property
    def bytes_moved(self) -> int:
        """Bytes received by the device that received most."""
        return max(self.received.values(), default=0)


class Exchange:
    """The table of one run."""

    def __init__(self, num_devices: int) -> None:
        self.num_devices = num_devices
        self.traffic = Traffic()
        self._barrier = threading.Barrier(num_devices, timeout=PATIENCE_S)
        self._table: list[tuple[str, Array] | None] = [None] * num_devices
        self._lock = threading.Lock()

    def abort(self) -> None:
        """Releases every device that waits."""
        self._barrier.abort()

    def _meet(self, device: int, what: str, value: Array) -> list[Array]:
        """Everyone's buffers, once all are there."""
        try:
            self._table[device] = (what, value)
            self._barrier.wait()
            buffers: list[Array] = []
            for other, entry in enumerate(self._table):
                if entry is None or entry[0] != what:
                    found = "nothing" if entry is None else entry[0]
                    raise RuntimeFailure(f"device {device} is at {what} but device {other} is at {found}")
                buffers.append(entry[1])
            self._barrier.wait()
        except threading.BrokenBarrierError:
            raise RuntimeFailure(f"device {device} waited in vain at {what}") from None
        return buffers

    def _count(self, device: int, kind: str, members: int, received: int) -> None:
        with self._lock:
            if device == 0 and members > 1:
                self.traffic.collectives[kind] += 1
            self.traffic.received[device] += received

    def all_gather(self, device: int, value: Array, axes: Sequence[Part], dim: int) -> Array:
        """The parts of the group along a dimension, in group order."""
        buffers = self._meet(device, f"all_gather along {dim}", value)
        members = group_members(device, axes)
        self._count(device, "all_gather", len(members), (len(members) - 1) * value.nbytes)
        return np.concatenate([buffers[member] for member in members], axis=dim)

    def all_reduce(self, device: int, value: Array, axes: Sequence[Part], kind: str) -> Array:
        """The values of the group, combined elementwise."""
        buffers = self._meet(device, f"all_reduce <{kind}>", value)
        members = group_members(device, axes)
        moved = 2 * (len(members) - 1) * value.nbytes // len(members)
        self._count(device, "all_reduce", len(members), moved)
        return reduce_terms([buffers[member] for member in members], kind)

    def reduce_scatter(self, device: int, value: Array, axes: Sequence[Part], kind: str, dim: int) -> Array:
        """The own block of a dimension of the combination."""
        buffers = self._meet(device, f"reduce_scatter <{kind}> along {dim}", value)
        members = group_members(device, axes)
        own = linear_index(device, axes)
        blocks = [np.split(buffers[member], len(members), axis=dim)[own] for member in members]
        self._count(device, "reduce_scatter", len(members), (len(members) - 1) * value.nbytes // len(members))
        return reduce_terms(blocks, kind)

    def all_to_all(self, device: int, value: Array, axes: Sequence[Part], split: int, concat: int) -> Array:
        """The own block of ``split`` of every member, put together along ``concat``."""
        buffers = self._meet(device, f"all_to_all {split} to {concat}", value)
        members = group_members(device, axes)
        own = linear_index(device, axes)
        blocks = [np.split(buffers[member], len(members), axis=split)[own] for member in members]
        self._count(device, "all_to_all", len(members), (len(members) - 1) * value.nbytes // len(members))
        return np.concatenate(blocks, axis=concat)

    def permute(self, device: int, value: Array, axes: Sequence[Part], to_axes: Sequence[Part]) -> Array:
        """The buffer of the device that has this device's number under the other order."""
        buffers = self._meet(device, "permute", value)
        sender = group_members(device, axes)[linear_index(device, to_axes)]
        self._count(device, "permute", group_size(axes), value.nbytes if sender != device else 0)
        return buffers[sender].copy()

    def halo_exchange(
        self, device: int, value: Array, axes: Sequence[Part], dim: int, global_size: int, window: tuple[int, int, int]
    ) -> Array:
        """The window [i*stride + lo, i*stride + lo + size) of a split dimension; zeros outside of the tensor."""
        buffers = self._meet(device, f"halo_exchange along {dim}", value)
        stride, low, size = window
        members = group_members(device, axes)
        own = linear_index(device, axes)
        block = value.shape[dim]
        shape = [size if axis == dim else extent for axis, extent in enumerate(value.shape)]
        result = np.zeros(shape, value.dtype)
        received = 0
        target = np.moveaxis(result, dim, 0)
        for place in range(size):
            source = own * stride + low + place
            if 0 <= source < global_size:
                row = np.moveaxis(buffers[members[source // block]], dim, 0)[source % block]
                target[place] = row
                received += row.nbytes if source // block != own else 0
        self._count(device, "halo_exchange", len(members), received)
        return result
