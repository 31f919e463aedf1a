# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Our own prototypes of vendors' libraries are theirs, where their headers are at hand.

Headers are looked for in the folders of ``$HP_VENDOR_INCLUDE``, in what `make test` has fetched into ``.venv/headers``
(``test/Runtime/vendor/fetch_headers.py``), in /usr/local/cuda, and in the wheels nvidia-cublas, nvidia-nccl-cu13,
nvidia-cuda-runtime and nvidia-cuda-crt of this Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FETCHED = Path(sys.prefix) / "headers"


def include_folders() -> list[Path]:
    named = [Path(folder) for folder in os.environ.get("HP_VENDOR_INCLUDE", "").split(":") if folder]
    wheels = sorted(Path(sysconfig.get_path("purelib"), "nvidia").glob("*/include"))
    fetched = sorted(FETCHED.glob("nvidia-*/nvidia/*/include"))
    return [*named, Path("/usr/local/cuda/include"), *wheels, *fetched]


@pytest.mark.parametrize(
    ("source", "headers"),
    [
        ("cuda_prototypes.cpp", ["cuda.h"]),
        ("library_prototypes.cpp", ["cublasLt.h", "nccl.h", "cuda_runtime_api.h"]),
    ],
)
def test_prototypes(source: str, headers: list[str]) -> None:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folders = include_folders()
    missing = [header for header in headers if not any((folder / header).exists() for folder in folders)]
    if missing:
        pytest.skip(f"no {', '.join(missing)}; name their folders in HP_VENDOR_INCLUDE")
    flags = [f"-I{folder}" for folder in folders if folder.is_dir()]
    path = ROOT / "test" / "Runtime" / "vendor" / source
    subprocess.run([compiler, "-std=c++17", "-fsyntax-only", f"-I{ROOT}", *flags, path], check=True)


def test_ascend() -> None:
    """Headers of ACL and HCCL are in the torch-npu wheel, which is unpacked, not installed: it would claim torch."""
    compiler, named = shutil.which("c++"), os.environ.get("HP_TORCH_NPU_INCLUDE", "")
    folder = Path(named) if named else FETCHED / "torch-npu" / "torch_npu" / "include"
    if compiler is None or not (folder / "acl" / "acl_rt.h").exists():
        pytest.skip(
            f"no C++ compiler, or no headers in {folder}: `make test` fetches them where there is a network; "
            "HP_TORCH_NPU_INCLUDE names torch_npu/include of a torch-npu wheel"
        )
    source = ROOT / "test" / "Runtime" / "vendor" / "ascend_prototypes.cpp"
    folders = [f"-I{ROOT}", f"-I{folder}", f"-I{folder / 'third_party' / 'hccl' / 'inc'}"]
    subprocess.run([compiler, "-std=c++17", "-fsyntax-only", *folders, source], check=True)
