# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Our own prototypes of vendors' libraries are theirs, where their headers are at hand."""

from __future__ import annotations

import os
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


def test_ascend() -> None:
    """Headers of ACL and HCCL are in the torch-npu wheel, which is unpacked, not installed: it would claim torch."""
    compiler, named = shutil.which("c++"), os.environ.get("HP_TORCH_NPU_INCLUDE", "")
    folder = Path(named)
    if compiler is None or not named or not (folder / "acl" / "acl_rt.h").exists():
        pytest.skip("no C++ compiler, or HP_TORCH_NPU_INCLUDE does not name torch_npu/include of a torch-npu wheel")
    source = ROOT / "test" / "Runtime" / "vendor" / "ascend_prototypes.cpp"
    folders = [f"-I{ROOT}", f"-I{folder}", f"-I{folder / 'third_party' / 'hccl' / 'inc'}"]
    subprocess.run([compiler, "-std=c++17", "-fsyntax-only", *folders, source], check=True)
