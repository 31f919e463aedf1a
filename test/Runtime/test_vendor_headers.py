# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Our own prototypes of vendors' libraries are theirs, where their headers are at hand."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_cuda_driver() -> None:
    compiler, folder = shutil.which("c++"), Path("/usr/local/cuda/include")
    if compiler is None or not (folder / "cuda.h").exists():
        pytest.skip("no C++ compiler or no cuda.h")
    source = ROOT / "test" / "Runtime" / "vendor" / "cuda_prototypes.cpp"
    subprocess.run([compiler, "-std=c++17", "-fsyntax-only", f"-I{ROOT}", f"-I{folder}", source], check=True)
