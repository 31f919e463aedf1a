# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in the memory of devices that cannot reach the host's: copied there before a run, and back after it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from hyperparallel.runtime import library as abi
from hyperparallel.runtime.vocabulary import Tier

_COMPUTE_STREAM = 0  # hp_stream_role


class Staging:
    """Buffers on devices that stand for arrays of the host; an array that is met twice on a device is one buffer.

    Args:
        library: The runtime's library.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._streams: dict[int, tuple[ctypes.c_void_p, ctypes.c_void_p]] = {}
        self._buffers: dict[tuple[int, int, int], tuple[ctypes.c_void_p, NDArray[Any]]] = {}

    def place(self, device: int, handle: ctypes.c_void_p, array: NDArray[Any], tier: Tier, *, upload: bool) -> int:
        """The address of the array's buffer on a device; it is made, and filled, when it is first asked for.

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
        if key not in self._buffers:
            library, buffer = self._library, ctypes.c_void_p()
            number = list(Tier).index(tier)
            abi.check(library, library.hp_alloc(handle, number, array.nbytes, None, ctypes.byref(buffer)))
            self._buffers[key] = (buffer, array)
            if upload and array.nbytes:
                self._copy(device, handle, buffer.value or 0, array.ctypes.data, array.nbytes)
        return self._buffers[key][0].value or 0

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
                buffer, _ = self._buffers[(device, array.ctypes.data, array.nbytes)]
                self._copy(device, handle, array.ctypes.data, buffer.value or 0, array.nbytes)

    def close(self, handles: dict[int, ctypes.c_void_p]) -> None:
        """Free all buffers, after everything that uses them.

        Args:
            handles: The ``hp_device*`` by ordinal.
        """
        for _, stream in self._streams.values():
            self._library.hp_stream_destroy(stream)
        for (device, _, _), (buffer, _) in self._buffers.items():
            self._library.hp_free(handles[device], buffer, None)
        self._streams.clear()
        self._buffers.clear()


__all__ = ["Staging"]
