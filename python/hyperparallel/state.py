# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of a training on disk: parameters, buffers and optimizer state, in shards.

A state is a directory with a safetensors file for each device, which has the blocks that the device is the first to hold,
and ``index.json``, which says for each tensor which blocks are where, without padding and without overlap. So whatever
layout it was written from, it can be read into any other. ``lib/Runtime/Launcher/State.h`` has the format, which hp-run
reads and writes, too.

Writing is atomic: everything goes to a hidden directory, which is renamed when it is on the disk; a state that is there
changes places with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperparallel.compiled import CompiledProgram, CompiledTensor
from hyperparallel.enums import Role
from hyperparallel.errors import RuntimeFailure
from hyperparallel.local_parts import bounds_of
from hyperparallel.plan.mesh import Mesh
from hyperparallel.runtime import Launch
from hyperparallel.tensor_files import TYPES, read_tensor, write_file, write_safetensors

Array = NDArray[Any]

INDEX_FILE = "index.json"
_FORMAT = "hyperparallel-state"
_VERSION = 1
_KEPT_STEPS = 2
#: Of Linux's <fcntl.h> and <stdio.h>.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@dataclass(frozen=True, slots=True)
class HeldTensor:
    """A tensor, with what each device holds of it.

    Attributes:
        tensor: What it is.
        mesh: The mesh that it is split over.
        devices: The devices' ordinals, by position in the mesh.
        parts: The local arrays, likewise.
    """

    tensor: CompiledTensor
    mesh: Mesh
    devices: Sequence[int]
    parts: Sequence[Array]


@dataclass(frozen=True, slots=True)
class _Piece:
    begin: tuple[int, ...]
    size: tuple[int, ...]
    file: str


@dataclass(frozen=True, slots=True)
class _Entry:
    dtype: str
    shape: tuple[int, ...]
    pieces: tuple[_Piece, ...]


@dataclass(frozen=True, slots=True)
class State:
    """A state that was written; made by :func:`open_state`.

    Attributes:
        directory: Where it is.
        step: The steps that were done before.
    """

    directory: Path
    step: int
    _tensors: Mapping[str, _Entry]

    @property
    def names(self) -> tuple[str, ...]:
        """What is in it."""
        return tuple(self._tensors)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def read(self, name: str) -> Array:
        """The global tensor of a name; bf16 as its bits in ``uint16``.

        Raises:
            RuntimeFailure: The files do not hold what the index says.
        """
        entry = self._tensors[name]
        whole = np.empty(entry.shape, TYPES[entry.dtype][1])
        covered = 0
        for piece in entry.pieces:
            part = read_tensor(self.directory / piece.file, name)
            if part.shape != piece.size or part.dtype != whole.dtype:
                raise RuntimeFailure(f"{self.directory}: {piece.file} does not hold what {INDEX_FILE} says of {name}")
            where = tuple(slice(begin, begin + size) for begin, size in zip(piece.begin, piece.size, strict=True))
            whole[(*where, ...)] = part
            covered += part.size
        if covered != whole.size:
            raise RuntimeFailure(f"{self.directory}: {name} is not whole; the state is damaged")
        return whole


def state_of(programs: Sequence[CompiledProgram], launches: Sequence[Launch]) -> list[HeldTensor]:
    """What a training goes on from: every argument but the inputs, as the devices hold it.

    Args:
        programs: The program of all devices, or those of groups of devices.
        launches: The launches of each, one after the other, by position in its mesh.
    """
    held: list[HeldTensor] = []
    first = 0
    for program in programs:
        own = launches[first : first + program.mesh.num_devices]
        first += program.mesh.num_devices
        devices = [launch.device for launch in own]
        held += [
            HeldTensor(argument, program.mesh, devices, [launch.arguments[index] for launch in own])
            for index, argument in enumerate(program.arguments)
            if argument.role is not Role.INPUT
        ]
    return held


def save_step(directory: Path, step: int, tensors: Sequence[HeldTensor]) -> Path:
    """Write ``directory/step-00000005``, and drop all but the last two of them.

    Raises:
        RuntimeFailure: The place cannot be written.
    """
    target = directory / f"step-{step:08}"
    write_state(target, step, tensors)
    own = [path for number, path in _steps(directory) if number <= step]
    for old in own[:-_KEPT_STEPS]:
        _remove(old)
    return target


def check_can_save(directory: Path, first_step: int) -> None:
    """Refuse, before a training begins, to save it where that cannot be, or where there are later steps than its own.

    These are of another training: ``--resume`` would go on from them.

    Args:
        directory: Where the training is saved.
        first_step: The steps that were done before.

    Raises:
        RuntimeFailure: The place is no directory, or cannot be written to, or holds later steps.
    """
    there = next(one for one in (directory, *directory.absolute().parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        fault = "cannot be written to" if there.is_dir() else "is no directory"
        raise RuntimeFailure(f"cannot save the state to {directory}: {there} {fault}; name another directory")
    for step, path in reversed(_steps(directory)):
        if step > first_step and (path / INDEX_FILE).exists():
            raise RuntimeFailure(
                f"{directory} has the state of step {step} of another training, and this one begins with step "
                f"{first_step}; go on from it with --resume, or save to another directory"
            )


def write_state(directory: Path, step: int, tensors: Sequence[HeldTensor]) -> None:
    """Write a state; one that is there is replaced when the new one is whole.

    Args:
        directory: The directory to make.
        step: The steps that were done.
        tensors: What it holds. Where a name comes twice, the first is taken.

    Raises:
        RuntimeFailure: The place cannot be written.
    """
    hidden = directory.parent / f".{directory.name}.new"
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        _remove(hidden)
        hidden.mkdir()
        index: dict[str, Any] = {}
        files: dict[str, dict[str, tuple[str, Array]]] = {}
        for held in tensors:
            if held.tensor.name not in index:
                index[held.tensor.name] = _place(held, files)
        for name, parts in files.items():
            write_safetensors(hidden / name, parts)
        text = json.dumps({"format": _FORMAT, "version": _VERSION, "step": step, "tensors": index}, indent=1)
        write_file(hidden / INDEX_FILE, text.encode())
        _sync(hidden)
        _put_in_place(hidden, directory)
        _sync(directory.parent)
    except OSError as error:
        _remove(hidden)
        raise RuntimeFailure(f"cannot save the state to {directory}: {error.strerror or error}") from None


def open_state(directory: Path) -> State:
    """The state in a directory, or the last of the steps that were saved there.

    Raises:
        RuntimeFailure: There is none, or it is damaged.
    """
    found = directory
    if not (directory / INDEX_FILE).exists():
        whole = [path for _, path in _steps(directory) if (path / INDEX_FILE).exists()]
        if not whole:
            raise RuntimeFailure(
                f"no state at {directory}: it has no {INDEX_FILE}, and no step-* that has one; name a directory of --save"
            )
        found = whole[-1]
    try:
        index = json.loads((found / INDEX_FILE).read_text(encoding="utf-8"))
        if index["format"] != _FORMAT or index["version"] != _VERSION:
            raise RuntimeFailure(f"{found / INDEX_FILE} describes no state of this version")
        tensors = {
            str(name): _Entry(
                str(entry["dtype"]),
                tuple(entry["shape"]),
                tuple(_Piece(tuple(b["begin"]), tuple(b["size"]), str(b["file"])) for b in entry["blocks"]),
            )
            for name, entry in index["tensors"].items()
        }
        return State(found, int(index["step"]), tensors)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RuntimeFailure(f"{found / INDEX_FILE} is damaged ({error!r})") from None


def _place(held: HeldTensor, files: dict[str, dict[str, tuple[str, Array]]]) -> dict[str, Any]:
    """Hands each block to the file of its first holder; returns the tensor's entry of the index."""
    tensor = held.tensor
    blocks: list[dict[str, Any]] = []
    seen: set[tuple[tuple[int, int], ...]] = set()
    for position, device in enumerate(held.devices):
        bounds = bounds_of(position, tensor.shape, tensor.layout, held.mesh)
        if tuple(bounds) in seen:
            continue
        seen.add(tuple(bounds))
        size = [max(0, min(local, n - begin)) for (begin, local), n in zip(bounds, tensor.shape, strict=True)]
        part = held.parts[position][(*(slice(0, extent) for extent in size), ...)]
        if part.size:
            file = f"device-{device:05}.safetensors"
            files.setdefault(file, {})[tensor.name] = (tensor.dtype, part)
            blocks.append({"file": file, "begin": [begin for begin, _ in bounds], "size": size})
    return {"dtype": tensor.dtype, "shape": list(tensor.shape), "blocks": blocks}


def _steps(directory: Path) -> list[tuple[int, Path]]:
    """The steps that were saved in a directory, in order."""
    return sorted((int(path.name[5:]), path) for path in directory.glob("step-*") if path.name[5:].isdigit())


def _remove(directory: Path) -> None:
    """Remove a state; first what makes it one."""
    with contextlib.suppress(OSError):
        (directory / INDEX_FILE).unlink()
    shutil.rmtree(directory, ignore_errors=True)


def _put_in_place(made: Path, directory: Path) -> None:
    """Give a finished directory its name; a state that has it goes.

    At no moment is there none: the two change places (``renameat2`` of Linux), where the file system can do that.
    """
    if directory.exists():
        libc = ctypes.CDLL(None, use_errno=True)
        status = libc.renameat2(_AT_FDCWD, os.fsencode(made), _AT_FDCWD, os.fsencode(directory), _RENAME_EXCHANGE)
        if status == 0:
            _remove(made)
            return
        if ctypes.get_errno() not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        _remove(directory)
    made.rename(directory)


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


__all__ = [
    "HeldTensor",
    "State",
    "check_can_save",
    "open_state",
    "save_step",
    "state_of",
    "write_state",
]
