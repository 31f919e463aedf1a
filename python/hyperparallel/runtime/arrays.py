# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy arrays as local tensors of a device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperparallel.runtime.vocabulary import DataType

_ALIGNMENT = 64
_NUMPY_DTYPES: dict[DataType, np.dtype[Any]] = {
    DataType.I1: np.dtype(np.bool_),
    DataType.I8: np.dtype(np.int8),
    DataType.I16: np.dtype(np.int16),
    DataType.I32: np.dtype(np.int32),
    DataType.I64: np.dtype(np.int64),
    DataType.F16: np.dtype(np.float16),
    DataType.BF16: np.dtype(np.uint16),
    DataType.F32: np.dtype(np.float32),
    DataType.F64: np.dtype(np.float64),
}


def numpy_dtype(dtype: DataType | str) -> np.dtype[Any]:
    """The NumPy type that holds elements of ``dtype``.

    bf16, which NumPy lacks, is held as the ``uint16`` of its bits. Arrays of ``ml_dtypes.bfloat16`` are as good: only
    the bytes cross the boundary.

    >>> numpy_dtype("bf16")
    dtype('uint16')
    """
    return _NUMPY_DTYPES[DataType(dtype)]


def empty(shape: Sequence[int], dtype: DataType | str | np.dtype[Any]) -> NDArray[Any]:
    """An uninitialised C-contiguous array that begins at a multiple of 64 bytes, as device memory does."""
    element = numpy_dtype(dtype) if isinstance(dtype, str) else dtype
    raw = np.empty(math.prod(shape) * element.itemsize + _ALIGNMENT, dtype=np.uint8)
    return np.ndarray(tuple(shape), element, buffer=raw, offset=-raw.ctypes.data % _ALIGNMENT)


def float32_to_bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The bits of ``values`` rounded to bf16, to nearest even; NaN stays NaN."""
    floats = np.ascontiguousarray(values, dtype=np.float32)
    bits = np.ndarray(values.shape, np.uint32, buffer=floats)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16
    quiet = (bits >> 16) | 0x40
    return np.where((bits & 0x7FFFFFFF) > 0x7F800000, quiet, rounded).astype(np.uint16)


def bfloat16_to_float32(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """The values whose bf16 bits are ``bits``; exact."""
    wide = np.ascontiguousarray(bits).astype(np.uint32) << 16
    return np.ndarray(bits.shape, np.float32, buffer=wide)
