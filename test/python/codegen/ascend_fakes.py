# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fake NPU: which variables name its libraries, what it needs, and what its compiler's verifier takes."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import fake_libraries

from hyperparallel.bishengir import HIVM_FILE, find_tool


def use_fake_npu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names the fakes for the test, or skips it."""
    if importlib.util.find_spec("ascendnpuir") is None and "HP_BISHENGIR" not in os.environ:
        pytest.skip("no ascendnpu-ir: fragments can be neither scheduled nor run")
    for variable, path in fake_libraries("ascend").items():
        monkeypatch.setenv(variable, path)
    # A device that makes the twin of a fragment lets the others wait, on a busy machine for long.
    monkeypatch.setenv("HP_FAKE_NCCL_SECONDS", "120")
    monkeypatch.setenv("HP_FAKE_ASCEND_TWIN", f"'{sys.executable}' -m hyperparallel.testing.hfusion")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[3] / "python"))


def assert_verified(program: Path, names: list[str]) -> None:
    """Each fragment is in HFusion and, scheduled, in HIVM; Ascend's verifier takes both.

    Args:
        program: The folder of a program.
        names: Of its fragments.
    """
    fragments, scheduled = program / "kernels.mlir", program / HIVM_FILE
    assert sorted(re.findall(r"^func.func @(\w+)", fragments.read_text(encoding="utf-8"), re.M)) == sorted(names)
    hivm = scheduled.read_text(encoding="utf-8")
    for name in names:
        assert re.search(rf"func\.func @{name}\(.*hivm\.func_core_type", hivm), name
    for path in (fragments, scheduled):
        subprocess.run([find_tool("bishengir-opt"), "--split-input-file", path, "-o", os.devnull], check=True)
