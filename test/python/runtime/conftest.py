# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by the runtime's tests: test programs, compiled once, and runtimes by device count."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hyperparallel.runtime import Runtime

sys.path.append(str(Path(__file__).parent))  # for runtime_cases

ROOT = Path(__file__).resolve().parents[3]


def compile_program(source: Path, target: Path) -> None:
    """Compiles a C11 program against the ABI header, strictly."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    command = [compiler, "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared", f"-I{ROOT}"]
    subprocess.run([*command, str(source), "-o", str(target)], check=True)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shared object made from programs.c."""
    target = tmp_path_factory.mktemp("programs") / "programs.so"
    compile_program(Path(__file__).with_name("programs.c"), target)
    return target


@pytest.fixture(scope="session")
def runtimes() -> Iterator[Callable[[int], Runtime]]:
    """Runtimes by number of devices, kept for the session."""
    made: dict[int, Runtime] = {}

    def get(devices: int) -> Runtime:
        if devices not in made:
            made[devices] = Runtime(devices)
        return made[devices]

    yield get
    for runtime in made.values():
        runtime.close()
