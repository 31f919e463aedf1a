# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fakes of vendors' libraries, and a C compiler."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import fake_libraries

ROOT = Path(__file__).parents[2]

CompileC = Callable[..., None]


@pytest.fixture(scope="session")
def compile_c() -> CompileC:
    """Compiles C11, warnings being errors."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    warnings = ["-pedantic", "-Wall", "-Wextra", "-Wstrict-prototypes", "-Werror"]

    def run(*arguments: str | Path) -> None:
        subprocess.run([compiler, "-std=c11", *warnings, f"-I{ROOT}", *arguments], check=True)

    return run


@pytest.fixture(scope="session")
def fake_npu() -> dict[str, str]:
    """The variables that name the fakes of CANN."""
    twin = f"'{sys.executable}' -m hyperparallel.testing.hfusion"
    return {**fake_libraries("ascend"), "HP_FAKE_ASCEND_TWIN": twin, "PYTHONPATH": str(ROOT / "python")}


@pytest.fixture(scope="session")
def fake_gpu() -> dict[str, str]:
    """The variables that name the fakes of NVIDIA's libraries."""
    return fake_libraries("cuda")
