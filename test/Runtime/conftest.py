# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fakes of vendors' libraries, and a C compiler."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAKES = ROOT / "build" / "test" / "Runtime" / "fakes"

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
    names = {
        "HP_LIBASCENDCL": "libhp_fake_ascendcl.so",
        "HP_LIBOPAPI": "libhp_fake_opapi.so",
        "HP_LIBHCCL": "libhp_fake_hccl.so",
    }
    for name in names.values():
        if not (FAKES / name).exists():
            pytest.skip(f"{name} is not built; run ninja -C build")
    return {variable: str(FAKES / name) for variable, name in names.items()}


@pytest.fixture(scope="session")
def fake_gpu() -> dict[str, str]:
    """The variables that name the fakes."""
    names = {
        "HP_LIBCUDA": "libhp_fake_cuda.so",
        "HP_LIBCUBLASLT": "libhp_fake_cublaslt.so",
        "HP_LIBNCCL": "libhp_fake_nccl.so",
    }
    for name in names.values():
        if not (FAKES / name).exists():
            pytest.skip(f"{name} is not built; run ninja -C build")
    return {variable: str(FAKES / name) for variable, name in names.items()}
