# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of tensors: safetensors, and NumPy's ``.npz``.

Tensors of safetensors files are mapped, not read. bf16, which NumPy lacks, is held as its bits in ``uint16``.
``lib/Runtime/Launcher/TensorFiles.h`` reads and writes the same.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hyperparallel.errors import RuntimeFailure

Array = NDArray[Any]

TYPES: Mapping[str, tuple[str, np.dtype[Any]]] = {
    "f64": ("F64", np.dtype(np.float64)),
    "f32": ("F32", np.dtype(np.float32)),
    "f16": ("F16", np.dtype(np.float16)),
    "bf16": ("BF16", np.dtype(np.uint16)),
    "i64": ("I64", np.dtype(np.int64)),
    "i32": ("I32", np.dtype(np.int32)),
    "i16": ("I16", np.dtype(np.int16)),
    "i8": ("I8", np.dtype(np.int8)),
    "ui8": ("U8", np.dtype(np.uint8)),
    "i1": ("BOOL", np.dtype(np.bool_)),
}
"""MLIR's element types: what safetensors calls them, and how NumPy holds them."""


@dataclass(frozen=True, slots=True)
class TensorFile:
    """A file of tensors.

    Attributes:
        path: Where it is.
        tensors: Its tensors by name.
        metadata: What a safetensors file says beside them.
    """

    path: Path
    tensors: Mapping[str, Array]
    metadata: Mapping[str, str]


def open_tensors(path: Path) -> TensorFile:
    """Open a safetensors or ``.npz`` file.

    Raises:
        RuntimeFailure: It is not there, or neither of both, or cut off.
    """
    try:
        with path.open("rb") as file:
            is_archive = file.read(2) == b"PK"
        return TensorFile(path, _read_npz(path), {}) if is_archive else _open_safetensors(path)
    except FileNotFoundError:
        raise RuntimeFailure(f"there is no file {path}") from None
    except (OSError, ValueError, KeyError, TypeError, EOFError, StopIteration, zipfile.BadZipFile) as error:
        raise RuntimeFailure(f"{path} is damaged, or neither safetensors nor .npz ({error})") from None


def _read_npz(path: Path) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _open_safetensors(path: Path) -> TensorFile:
    header, begin = _read_header(path)
    metadata = cast("Mapping[str, str]", header.pop("__metadata__", {}))
    return TensorFile(path, {name: _map(path, entry, begin) for name, entry in header.items()}, metadata)


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    """What a safetensors file says of its tensors, and where their data begin."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > path.stat().st_size:
            raise ValueError("it is cut off")
        return cast("dict[str, Any]", json.loads(file.read(length))), 8 + length


def _map(path: Path, entry: Mapping[str, Any], start: int) -> Array:
    begin, end = entry["data_offsets"]
    dtype = next(numpy for safetensors, numpy in TYPES.values() if safetensors == entry["dtype"])
    shape = tuple(entry["shape"])
    if path.stat().st_size < start + end or (end - begin) != dtype.itemsize * int(np.prod(shape)):
        raise ValueError("it is cut off")
    if begin == end:
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", start + begin, shape or (1,)).reshape(shape)


def read_tensor(path: Path, name: str) -> Array:
    """One tensor of a safetensors file.

    Raises:
        RuntimeFailure: The file does not have it, or is damaged.
    """
    try:
        header, begin = _read_header(path)
        return _map(path, header[name], begin)
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise RuntimeFailure(f"{path} is damaged ({error})") from None


def write_safetensors(
    path: Path, tensors: Mapping[str, tuple[str, Array]], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays as safetensors; they are on the disk when it returns.

    Args:
        path: The file.
        tensors: By name, MLIR's element type and the values.
        metadata: Texts to keep beside them.
    """
    header: dict[str, Any] = {} if not metadata else {"__metadata__": dict(metadata)}
    offset = 0
    for name, (dtype, array) in tensors.items():
        header[name] = {
            "dtype": TYPES[dtype][0],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    arrays = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for _, array in tensors.values())
    write_file(path, len(text).to_bytes(8, "little"), text, *(array.data for array in arrays))


def write_file(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file, and have it on the disk."""
    with path.open("wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


__all__ = ["TYPES", "TensorFile", "open_tensors", "read_tensor", "write_file", "write_safetensors"]
