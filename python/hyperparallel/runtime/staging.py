# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in the memory of devices that cannot reach the host's: copied there before a run, and back after it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from hyperparallel.runtime import library as abi
from hyperparallel.runtime.vocabulary import Tier

_COMPUTE_STREAM = 0  # hp_stream_role


_Key = tuple[int, int, int]
"""A device's ordinal, and an array's address and bytes."""


@dataclass(frozen=True, slots=True)
class _Buffer:
    """Memory of a device, by its handle, that stands for an array: who keeps the array keeps its address its own."""

    device: ctypes.c_void_p
    pointer: ctypes.c_void_p
    tier: Tier
    array: NDArray[Any]


class Staging:
    """Buffers on devices that stand for arrays of the host; an array that is met twice on a device is one buffer.

    Buffers outlive a run, so that the next one with the same arrays has the same.

    Args:
        library: The runtime's library.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._streams: dict[int, tuple[ctypes.c_void_p, ctypes.c_void_p]] = {}
        self._buffers: dict[_Key, _Buffer] = {}
        self._filled: set[_Key] = set()

    def place(self, device: int, handle: ctypes.c_void_p, array: NDArray[Any], tier: Tier, *, upload: bool) -> int:
        """The address of the array's buffer on a device; it is filled when a run first asks for it.

        Args:
            device: The device's ordinal.
            handle: Its ``hp_device*``.
            array: A C-contiguous array.
            tier: Where the buffer is.
            upload: Whether the device reads the array.

        Raises:
            RuntimeFailure: The tier has no room, or the copy failed.
        """
        key = (device, array.ctypes.data, array.nbytes)
        known = self._buffers.get(key)
        if known is not None and known.tier is not tier:
            self._free(key)
            known = None
        if known is None:
            library, pointer = self._library, ctypes.c_void_p()
            number = list(Tier).index(tier)
            abi.check(library, library.hp_alloc(handle, number, array.nbytes, None, ctypes.byref(pointer)))
            known = self._buffers[key] = _Buffer(handle, pointer, tier, array)
        if upload and key not in self._filled and array.nbytes:
            self._copy(device, handle, known.pointer.value or 0, array.ctypes.data, array.nbytes)
            self._filled.add(key)
        return known.pointer.value or 0

    def keep(self, keys: Set[_Key]) -> None:
        """Begin a run: free what it does not use, and fill what it does.

        Args:
            keys: Device, address and bytes of its arrays.
        """
        for key in [one for one in self._buffers if one not in keys]:
            self._free(key)
        self._filled.clear()

    def _free(self, key: _Key) -> None:
        buffer = self._buffers.pop(key)
        self._library.hp_free(buffer.device, buffer.pointer, None)

    def _copy(self, device: int, handle: ctypes.c_void_p, target: int, source: int, size: int) -> None:
        library = self._library
        if device not in self._streams:
            stream = ctypes.c_void_p()
            abi.check(library, library.hp_stream_create(handle, _COMPUTE_STREAM, ctypes.byref(stream)))
            self._streams[device] = (handle, stream)
        abi.check(library, library.hp_copy(target, source, size, self._streams[device][1]))

    def finish_copies(self) -> None:
        """Wait for all copies.

        Raises:
            RuntimeFailure: One failed.
        """
        for _, stream in self._streams.values():
            abi.check(self._library, self._library.hp_stream_sync(stream))

    def fetch(self, device: int, handle: ctypes.c_void_p, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy buffers of a device back to the arrays that they stand for.

        Raises:
            RuntimeFailure: A copy failed.
        """
        for array in arrays:
            if array.nbytes:
                buffer = self._buffers[(device, array.ctypes.data, array.nbytes)]
                self._copy(device, handle, array.ctypes.data, buffer.pointer.value or 0, array.nbytes)

    def close(self) -> None:
        """Free all buffers, after everything that uses them."""
        for _, stream in self._streams.values():
            self._library.hp_stream_destroy(stream)
        self._streams.clear()
        for key in list(self._buffers):
            self._free(key)


__all__ = ["Staging"]
