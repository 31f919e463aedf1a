# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled program as a directory: the shared object, and what its arguments and results are. No torch, no MLIR.

- ``manifest.json``       mesh, arguments, results, files and their hashes
- ``program.so``          what every device runs (not with the target ``none``); with a target that has kernels the host's part
- ``kernels.ptx``         kernels of the device, and ``kernels.sm_NN.cubin`` for each architecture (target ``cuda``)
- ``kernels.mlir``        fragments in HFusion, ``kernels.hivm.mlir`` as Ascend's compiler scheduled them,
  ``kernels.launch`` their blocks, and ``kernels.NAME.o`` of each where CANN was at hand (target ``ascend``)
- ``kernels.json``        what each kernel takes, and how much is calls of libraries, kernels, or left to the host
- ``program.mlirbc``      the program of one device, from which it is generated and which is simulated
- ``plan.json``           the plan, resolved
- ``offload.json``        what moves between memory tiers, and why, where the device's memory is limited
- ``model.safetensors``   parameters and buffers, where the model had them
- ``inputs.npz``          example inputs, where the model file gave them
- ``ir/``                 the IR after each phase, where it was asked for

Where groups of devices run different programs, each group's is a directory of this kind under its name; the whole has no
program.so, and its program.mlirbc holds the programs of all groups.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from hyperparallel.enums import Role, StrEnum
from hyperparallel.errors import CompilationError, PlanError, RuntimeFailure
from hyperparallel.plan.layouts import TensorLayout
from hyperparallel.plan.mesh import Mesh
from hyperparallel.plan.spelling import read_sharding_text

MANIFEST_FILE = "manifest.json"
PROGRAM_FILE = "program.so"
LOCAL_PROGRAM_FILE = "program.mlirbc"
KERNELS_FILE = "kernels.ptx"
FRAGMENTS_FILE = "kernels.mlir"
COVERAGE_FILE = "kernels.json"
PLAN_FILE = "plan.json"
SCHEDULE_FILE = "schedule.json"
OFFLOAD_FILE = "offload.json"
WEIGHTS_FILE = "model.safetensors"
INPUTS_FILE = "inputs.npz"
_FORMAT = "hyperparallel-program"
_VERSION = 1


class Target(StrEnum):
    """What code is generated for."""

    CPU = "cpu"
    CUDA = "cuda"
    ASCEND = "ascend"
    NONE = "none"


@dataclasses.dataclass(frozen=True, slots=True)
class CompiledTensor:
    """An argument or a result of the compiled entry.

    Attributes:
        name: Its ``hp.name``.
        role: What an argument is; None for a result.
        shape: The global shape.
        dtype: MLIR's element type, and ``ui8`` for unsigned bytes.
        layout: How it is split over the mesh.
        tier: The memory tier in which an argument lives between steps; None for the device's own memory.
        updates: The argument whose next value a result is; it is written in the argument's place.
    """

    name: str
    role: Role | None
    shape: tuple[int, ...]
    dtype: str
    layout: TensorLayout
    tier: str | None = None
    updates: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A compiled program on disk.

    Attributes:
        directory: Where it is.
        name: The model's name.
        mesh: The mesh that it was compiled for.
        arguments: Arguments of the entry, in order.
        results: Results of the entry, in order.
        entry: The symbol that each device calls.
        source: Where the model came from: ``model_file``, ``overrides``; empty if that is not known.
        seconds: Time that each phase of the compilation took.
        target: What code was generated for.
        machine: The machine by which the compiler decided; None if it had none.
        device_memory: Bytes that the program may use on each device; None if that is not limited.
        peak_bytes: Bytes that it uses at most, if it was planned for a limited memory.
        workspace: Bytes of its memory that the largest call of a vendor's library has beside its operands; None for
            targets whose libraries want none.
        programs: The programs of device groups, in the order of their devices; empty if all devices run one.
        group: The device group that runs it; None if all devices do.
        first_device: The first device of the group.
    """

    directory: Path
    name: str
    mesh: Mesh
    arguments: tuple[CompiledTensor, ...]
    results: tuple[CompiledTensor, ...]
    entry: str = "hp_entry_main"
    source: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    target: Target = Target.CPU
    machine: str | None = None
    device_memory: int | None = None
    peak_bytes: int | None = None
    workspace: int | None = None
    programs: tuple[CompiledProgram, ...] = ()
    group: str | None = None
    first_device: int = 0

    @property
    def program_file(self) -> Path:
        """The shared object.

        Raises:
            RuntimeFailure: If no code was generated.
        """
        if self.target is Target.NONE:
            raise RuntimeFailure(
                f"{self.directory} has no code to run: it was compiled with the target none; compile it again without"
            )
        return self.directory / PROGRAM_FILE

    @property
    def local_program_file(self) -> Path:
        """The program of one device.

        Raises:
            RuntimeFailure: If an older version compiled it, which did not keep it.
        """
        path = self.directory / LOCAL_PROGRAM_FILE
        if not path.exists():
            raise RuntimeFailure(f"{self.directory} has no {LOCAL_PROGRAM_FILE}; compile the program again")
        return path

    def write_manifest(self, directory: Path) -> None:
        """Write the manifest, with the hashes of the files beside it."""
        files = {
            path.name: file_hash(path)
            for path in sorted(directory.iterdir())
            if path.is_file() and path.name not in (MANIFEST_FILE, WEIGHTS_FILE)
        }
        manifest: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "name": self.name,
            "entry": self.entry,
            "mesh": {"axes": [list(axis) for axis in self.mesh.axes], "device_ids": list(self.mesh.device_ids)},
            "arguments": [_tensor_json(tensor) for tensor in self.arguments],
            "results": [_tensor_json(tensor) for tensor in self.results],
            "files": files,
            "source": dict(self.source),
            "seconds": dict(self.seconds),
            "target": str(self.target),
            "machine": self.machine,
            "device_memory": self.device_memory,
            "peak_bytes": self.peak_bytes,
            "workspace": self.workspace,
        }
        if self.programs:
            manifest["programs"] = [program.group for program in self.programs]
        if self.group is not None:
            manifest |= {"group": self.group, "first_device": self.first_device}
        (directory / MANIFEST_FILE).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def load(directory: str | os.PathLike[str]) -> CompiledProgram:
        """Read a compiled program and check its files against their hashes.

        Raises:
            RuntimeFailure: If a file is missing, cut off, changed, or no part of a compiled program.
        """
        path = Path(directory)
        if not path.is_dir():
            raise RuntimeFailure(f"no compiled program at {path}: it is {'a file' if path.exists() else 'not there'}")
        manifest = _read_manifest(path / MANIFEST_FILE)
        try:
            mesh = Mesh(
                tuple((str(name), int(size)) for name, size in manifest["mesh"]["axes"]),
                tuple(manifest["mesh"]["device_ids"]),
            )
            program = CompiledProgram(
                path,
                str(manifest["name"]),
                mesh,
                tuple(_tensor_of(entry, mesh) for entry in manifest["arguments"]),
                tuple(_tensor_of(entry, mesh) for entry in manifest["results"]),
                str(manifest["entry"]),
                manifest["source"],
                manifest["seconds"],
                Target(manifest.get("target", Target.CPU)),
                manifest.get("machine"),
                manifest.get("device_memory"),
                manifest.get("peak_bytes"),
                manifest.get("workspace"),
                tuple(CompiledProgram.load(path / str(group)) for group in manifest.get("programs", ())),
                manifest.get("group"),
                int(manifest.get("first_device", 0)),
            )
            files = dict(manifest["files"])
        except (KeyError, TypeError, ValueError, AttributeError, PlanError) as error:
            raise RuntimeFailure(f"{path / MANIFEST_FILE} is damaged ({error!r}); compile the program again") from None
        needed = {
            Target.CPU: [PROGRAM_FILE],
            Target.CUDA: [PROGRAM_FILE, KERNELS_FILE],
            Target.ASCEND: [PROGRAM_FILE, FRAGMENTS_FILE],
            Target.NONE: [],
        }
        for name in [] if program.programs else needed[program.target]:
            if name not in files:
                raise RuntimeFailure(
                    f"{path / MANIFEST_FILE} is damaged (it lists no {name}); compile the program again"
                )
        for name, digest in files.items():
            _check_file(path / str(name), str(digest))
        return program


def is_compiled(directory: Path) -> bool:
    """Whether a directory claims to be a compiled program."""
    return (directory / MANIFEST_FILE).exists()


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write_arrays(file: IO[bytes], arrays: Mapping[str, Any]) -> None:
    """Write arrays by name as NumPy's ``.npz``, under any name (``savez`` keeps some for itself)."""
    import zipfile

    import numpy as np

    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


@contextmanager
def new_directory(target: Path, replaces: str = MANIFEST_FILE) -> Generator[Path]:
    """A directory that takes the place of ``target`` when the block ends well, and vanishes if not.

    Args:
        target: Absent, empty, or an older product, which has a file of the name ``replaces``.
        replaces: See ``target``.

    Raises:
        CompilationError: If something else is there, or the place cannot be written.
    """
    if target.exists() and not target.is_dir():
        raise CompilationError(f"cannot write to {target}: it is a file; give another directory")
    if target.is_dir() and any(target.iterdir()) and not (target / replaces).exists():
        raise CompilationError(f"cannot write to {target}: it holds other files; give a new directory, or empty it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise CompilationError(f"cannot write to {target}: {error.strerror or error}") from None
    try:
        made.chmod(0o777 & ~_umask())
        yield made
        _swap(made, target)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _swap(made: Path, target: Path) -> None:
    """Move a finished directory into place; the old one goes last."""
    old: Path | None = None
    try:
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
            target.rename(old / "old")
        made.rename(target)
    except OSError as error:
        raise CompilationError(f"cannot write to {target}: {error.strerror or error}") from None
    finally:
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)


def _tensor_json(tensor: CompiledTensor) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "sharding": str(tensor.layout),
    }
    if tensor.role is not None:
        entry["role"] = str(tensor.role)
    if tensor.tier is not None:
        entry["tier"] = tensor.tier
    if tensor.updates is not None:
        entry["updates"] = tensor.updates
    return entry


def _tensor_of(entry: Mapping[str, Any], mesh: Mesh) -> CompiledTensor:
    layout = read_sharding_text(str(entry["sharding"]), str(entry["name"]))
    layout.check(mesh, str(entry["name"]))
    shape = tuple(int(size) for size in entry["shape"])
    if len(shape) != len(layout.dims):
        raise ValueError(f"{entry['name']} has {len(shape)} dimensions and a sharding of {len(layout.dims)}")
    role = Role(entry["role"]) if "role" in entry else None
    return CompiledTensor(
        str(entry["name"]), role, shape, str(entry["dtype"]), layout, entry.get("tier"), entry.get("updates")
    )


def _read_manifest(path: Path) -> Mapping[str, Any]:
    again = "compile the program again"
    try:
        manifest: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RuntimeFailure(f"{path.parent} is no compiled program: {path.name} is missing; {again}") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RuntimeFailure(f"{path} is not JSON ({error}); {again}") from None
    except OSError as error:
        raise RuntimeFailure(f"cannot read {path}: {error.strerror or error}") from None
    if not isinstance(manifest, dict) or cast("dict[str, Any]", manifest).get("format") != _FORMAT:
        raise RuntimeFailure(f"{path} does not describe a compiled program; {again}")
    found = cast("dict[str, Any]", manifest)
    if found.get("version") != _VERSION:
        raise RuntimeFailure(f"{path} has version {found.get('version')}, expected {_VERSION}; {again}")
    return found


def _check_file(path: Path, digest: str) -> None:
    again = "compile the program again"
    try:
        found = file_hash(path)
    except FileNotFoundError:
        raise RuntimeFailure(f"{path.parent} is no whole compiled program: {path.name} is missing; {again}") from None
    except OSError as error:
        raise RuntimeFailure(f"cannot read {path}: {error.strerror or error}") from None
    if found != digest:
        raise RuntimeFailure(f"{path} is cut off or was changed: its hash is not the one in {MANIFEST_FILE}; {again}")
