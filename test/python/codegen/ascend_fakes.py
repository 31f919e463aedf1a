# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fake NPU: which variables name its libraries, and what it needs."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from fakes import fake_libraries


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
