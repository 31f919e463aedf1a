# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled programs of earlier runs, kept under a key of all that they are made from."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperparallel.cli.console import Talk
from hyperparallel.errors import RuntimeFailure

if TYPE_CHECKING:
    from hyperparallel.cli.models import Model
    from hyperparallel.compiled import CompiledProgram
    from hyperparallel.plan import GroupedPlan, ResolvedPlan

_KEPT_PROGRAMS = 64


@contextlib.contextmanager
def compiled_program(
    arguments: argparse.Namespace, talk: Talk, model: Model, resolved: ResolvedPlan | GroupedPlan
) -> Any:
    """The compiled program, kept under a key of all that it is made from; and whether it was there already."""
    from hyperparallel.cache import cache_directory
    from hyperparallel.cli.passing import passing_program
    from hyperparallel.compile import compile_model

    if arguments.no_cache:
        with passing_program(model, resolved, talk, device_memory=arguments.device_memory) as program:
            talk.seconds.update(program.seconds)
            yield program, False
        return
    directory = cache_directory() / "programs"
    target = directory / _program_key(model, resolved, arguments.device_memory)
    kept = _kept_program(target)
    if kept is not None:
        yield kept, True
        return
    program = compile_model(
        model.imported, resolved, out_dir=target, progress=talk.begin, device_memory=arguments.device_memory
    )
    talk.end()
    talk.seconds.update(program.seconds)
    _prune(directory, target)
    yield program, False


def _kept_program(target: Path) -> CompiledProgram | None:
    """The program of an earlier run, if it is whole."""
    from hyperparallel.compiled import CompiledProgram

    try:
        program = CompiledProgram.load(target)
    except RuntimeFailure:
        shutil.rmtree(target, ignore_errors=True)
        return None
    with contextlib.suppress(OSError):
        os.utime(target)
    return program


def _program_key(model: Model, resolved: ResolvedPlan | GroupedPlan, device_memory: int | None) -> str:
    import hyperparallel

    digest = hashlib.sha256()
    package = Path(hyperparallel.__file__).resolve().parent
    for library in sorted([*package.glob("*.so"), *package.glob("*.py"), *package.glob("mpmd/*.py")]):
        stamp = library.stat()
        digest.update(f"{library.name} {stamp.st_size} {stamp.st_mtime_ns}\n".encode())
    digest.update(_processor().encode())
    digest.update(resolved.to_json_text().encode())
    placements = sorted(resolved.placements.items())
    digest.update(f"{model.imported.name} {device_memory} {placements}\n".encode())
    digest.update(model.imported.mlir.encode())
    return digest.hexdigest()[:32]


def _processor() -> str:
    """What code is generated for; a cache may be shared by machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return os.uname().machine
    return "\n".join(
        next((line for line in lines if line.startswith(key)), "") for key in ("model name", "flags", "Features")
    )


def _prune(directory: Path, keep: Path) -> None:
    """Drop the programs that were not used for longest."""
    entries = sorted((path for path in directory.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
    for path in entries[: max(0, len(entries) - _KEPT_PROGRAMS)]:
        if path != keep:
            shutil.rmtree(path, ignore_errors=True)
