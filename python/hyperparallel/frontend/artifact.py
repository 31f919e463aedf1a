# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The product of an import, in memory and as a directory. No torch, no MLIR.

A saved model is a directory of three files:

- ``model.mlir``          the program; weights are arguments of ``@main``, never constants in it
- ``model.safetensors``   parameters and buffers by name; absent when the model was imported without storage
- ``model.json``          arguments, results and blocks; written last, so that its presence means that the rest is whole

Every file is written beside its place and moved there, so that a reader sees an old file or a new one, never half of
one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hyperparallel.enums import Role
from hyperparallel.errors import ImportModelError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

MLIR_FILE = "model.mlir"
WEIGHTS_FILE = "model.safetensors"
MANIFEST_FILE = "model.json"
_FORMAT = "hyperparallel-model"
_VERSION = 2

# element type -> (safetensors name, NumPy type of the same width, bytes)
_ELEMENTS = {
    "f64": ("F64", "float64", 8),
    "f32": ("F32", "float32", 4),
    "f16": ("F16", "float16", 2),
    "bf16": ("BF16", "uint16", 2),
    "i64": ("I64", "int64", 8),
    "i32": ("I32", "int32", 4),
    "i16": ("I16", "int16", 2),
    "i8": ("I8", "int8", 1),
    "ui8": ("U8", "uint8", 1),
    "i1": ("BOOL", "bool", 1),
}


@dataclasses.dataclass(frozen=True, slots=True)
class ArgumentInfo:
    """One argument of ``@main``.

    Attributes:
        name: Fully qualified name of a parameter or buffer, or name of an input.
        role: What it is.
        shape: Its sizes.
        dtype: Its element type as MLIR spells it, and ``ui8`` for unsigned bytes.
        aliases: Further names under which the module knows it (tied weights).
    """

    name: str
    role: Role
    shape: tuple[int, ...]
    dtype: str
    aliases: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of its elements; a truth value takes one byte."""
        return math.prod(self.shape) * _ELEMENTS[self.dtype][2]


@dataclasses.dataclass(frozen=True, slots=True)
class ResultInfo:
    """One result of ``@main``.

    Attributes:
        name: Its name in the model's output; of a next value, the argument's.
        shape: Its sizes.
        dtype: Its element type.
        updates: The argument whose next value it is, and in whose place it is written.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    updates: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class BlockInfo:
    """One call of a block.

    Attributes:
        path: The module's path.
        function: What it calls.
        phase: The part of a training step; empty for a model that is not trained.
    """

    path: str
    function: str
    phase: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedModel:
    """A program, and what its arguments and results are.

    Attributes:
        name: What the model is called.
        mlir: The program: linalg on tensors, entry ``@main``.
        arguments: The arguments of ``@main`` in order: inputs, parameters, buffers, optimizer state.
        results: The results of ``@main`` in order.
        blocks: The block calls of ``@main`` in order.
        unused: Parameters and buffers of the module that the program does not need; they are no arguments.
        has_weights: Whether values of parameters and buffers are at hand.
        microbatches: Parts in which a training step takes its batch; 0 for a model that is not trained.
    """

    name: str
    mlir: str
    arguments: tuple[ArgumentInfo, ...]
    results: tuple[ResultInfo, ...]
    blocks: tuple[BlockInfo, ...] = ()
    unused: tuple[str, ...] = ()
    has_weights: bool = False
    microbatches: int = 0
    _read_weight: Callable[[str], Array] | None = dataclasses.field(default=None, repr=False, compare=False)

    def weight(self, name: str) -> Array:
        """Return the value of a parameter or buffer.

        Args:
            name: Its name or one of its aliases.

        Returns:
            An array that shares memory with the module or the file; ``bf16`` comes as its bits in ``uint16``.

        Raises:
            ImportModelError: There are no weights, or none of that name.
        """
        if self._read_weight is None:
            raise ImportModelError(f"model {self.name} was imported without weights")
        for argument in self.arguments:
            if argument.role is not Role.INPUT and name in (argument.name, *argument.aliases):
                return self._read_weight(argument.name)
        raise ImportModelError(f"model {self.name} has no parameter or buffer {name}")

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the model to a directory, which is made if need be.

        Returns:
            The directory.

        Raises:
            ImportModelError: The directory cannot be written.
        """
        path = Path(directory)
        identity = hashlib.sha256(self.mlir.encode()).hexdigest()[:16]
        manifest = {
            "format": _FORMAT,
            "version": _VERSION,
            "id": identity,
            "name": self.name,
            "has_weights": self.has_weights,
            "arguments": [dataclasses.asdict(entry) for entry in self.arguments],
            "results": [dataclasses.asdict(entry) for entry in self.results],
            "blocks": [dataclasses.asdict(entry) for entry in self.blocks],
            "unused": self.unused,
            "microbatches": self.microbatches,
        }
        try:
            path.mkdir(parents=True, exist_ok=True)
            # Without the manifest a directory is no model: what lies between here and its return is never half old,
            # half new.
            (path / MANIFEST_FILE).unlink(missing_ok=True)
            _write_atomically(path / MLIR_FILE, lambda file: file.write(self.mlir.encode()))
            if self.has_weights:
                _write_atomically(path / WEIGHTS_FILE, lambda file: self._write_weights(file, identity))
            else:
                (path / WEIGHTS_FILE).unlink(missing_ok=True)
            text = json.dumps(manifest, indent=1) + "\n"
            _write_atomically(path / MANIFEST_FILE, lambda file: file.write(text.encode()))
        except OSError as error:
            raise ImportModelError(f"cannot write the model to {path}: {error.strerror or error}") from error
        return path

    def _write_weights(self, file: IO[bytes], identity: str) -> None:
        import numpy as np

        header: dict[str, Any] = {"__metadata__": {"format": _FORMAT, "id": identity}}
        offset = 0
        weights = [entry for entry in self.arguments if entry.role is not Role.INPUT]
        for entry in weights:
            header[entry.name] = {
                "dtype": _ELEMENTS[entry.dtype][0],
                "shape": list(entry.shape),
                "data_offsets": [offset, offset + entry.bytes],
            }
            offset += entry.bytes
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        file.write(len(text).to_bytes(8, "little") + text)
        for entry in weights:
            file.write(np.ascontiguousarray(self.weight(entry.name)).reshape(-1).view(np.uint8).data)

    @staticmethod
    def load(directory: str | os.PathLike[str]) -> ImportedModel:
        """Read a model that ``save`` wrote.

        Weights are mapped into memory, not read.

        Raises:
            ImportModelError: A file is missing, truncated, or not of this model.
        """
        path = Path(directory)
        if not path.is_dir():
            raise ImportModelError(f"no imported model at {path}: it is {'a file' if path.exists() else 'not there'}")
        manifest = _read_manifest(path / MANIFEST_FILE)
        mlir = _read_mlir(path / MLIR_FILE)
        try:
            arguments = tuple(
                ArgumentInfo(e["name"], Role(e["role"]), tuple(e["shape"]), e["dtype"], tuple(e["aliases"]))
                for e in manifest["arguments"]
            )
            results = tuple(
                ResultInfo(e["name"], tuple(e["shape"]), e["dtype"], e["updates"]) for e in manifest["results"]
            )
            blocks = tuple(BlockInfo(e["path"], e["function"], e["phase"]) for e in manifest["blocks"])
            name, unused, has_weights = manifest["name"], tuple(manifest["unused"]), bool(manifest["has_weights"])
            identity, microbatches = manifest["id"], int(manifest["microbatches"])
        except (KeyError, TypeError, ValueError) as error:
            raise ImportModelError(f"{path / MANIFEST_FILE} is damaged ({error!r}); import the model again") from error
        reader = None
        if has_weights:
            weights = [entry for entry in arguments if entry.role is not Role.INPUT]
            reader = _open_weights(path / WEIGHTS_FILE, weights, identity)
        return ImportedModel(name, mlir, arguments, results, blocks, unused, has_weights, microbatches, reader)


def _write_atomically(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _read_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ImportModelError(
            f"{path.parent} is no imported model: {path.name} is missing; import the model again"
        ) from None
    except UnicodeDecodeError:
        raise ImportModelError(f"{path} is not text; import the model again") from None
    except OSError as error:
        raise ImportModelError(f"cannot read {path}: {error.strerror or error}") from error


def _read_manifest(path: Path) -> dict[str, Any]:
    text = _read_file(path)
    try:
        manifest = json.loads(text)
    except json.JSONDecodeError as error:
        raise ImportModelError(f"{path} is not JSON ({error}); import the model again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise ImportModelError(f"{path} does not describe an imported model; import the model again")
    if manifest.get("version") != _VERSION:
        raise ImportModelError(
            f"{path} has version {manifest.get('version')}, expected {_VERSION}; import the model again"
        )
    return manifest


def _read_mlir(path: Path) -> str:
    text = _read_file(path)
    if "func.func @main(" not in text or not text.rstrip().endswith("}"):
        raise ImportModelError(
            f"{path} is {'cut off, or not an imported program' if text.strip() else 'empty'}; import the model again"
        )
    return text


def _open_weights(path: Path, expected: list[ArgumentInfo], identity: str) -> Callable[[str], Array]:
    """Check a safetensors file against the arguments, and return what reads one tensor of it."""
    again = "import the model again"
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            text = file.read(min(length, size))
    except FileNotFoundError:
        raise ImportModelError(f"{path.parent} has no {path.name}; {again}") from None
    except OSError as error:
        raise ImportModelError(f"cannot read {path}: {error.strerror or error}") from error
    if size < 8 or length > size - 8:
        raise ImportModelError(f"{path} is {'empty' if size == 0 else 'cut off, or no safetensors file'}; {again}")
    try:
        header: Mapping[str, Any] = json.loads(text)
        if header["__metadata__"]["id"] != identity:
            raise ImportModelError(f"{path} belongs to another import than {MANIFEST_FILE} beside it; {again}")
        entries = {entry.name: header[entry.name] for entry in expected}
        offsets = {name: (entry["data_offsets"][0], entry["data_offsets"][1]) for name, entry in entries.items()}
        for entry in expected:
            found = entries[entry.name]
            if found["dtype"] != _ELEMENTS[entry.dtype][0] or tuple(found["shape"]) != entry.shape:
                raise ImportModelError(
                    f"{path}: expected {entry.name} to be {entry.dtype} of shape {list(entry.shape)} "
                    f"but got {found['dtype']} of shape {found['shape']}; {again}"
                )
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ImportModelError(f"{path} is no weights file of this model ({error!r}); {again}") from error
    start = 8 + length
    end = start + max((stop for _, stop in offsets.values()), default=0)
    if size < end:
        raise ImportModelError(f"{path} is cut off: expected {end} bytes but got {size}; {again}")
    kinds = {entry.name: entry for entry in expected}

    def read(name: str) -> Array:
        import numpy as np

        entry = kinds[name]
        kind = np.dtype(_ELEMENTS[entry.dtype][1])
        if entry.bytes == 0:
            return np.empty(entry.shape, kind)
        return np.memmap(path, kind, "r", start + offsets[name][0], entry.shape or (1,)).reshape(entry.shape)

    return read
