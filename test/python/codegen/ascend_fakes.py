# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fake NPU: which variables name its libraries, and what it needs."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

FAKES = Path(__file__).resolve().parents[3] / "build" / "test" / "Runtime" / "fakes"
LIBRARIES = {"HP_LIBASCENDCL": "ascendcl", "HP_LIBOPAPI": "opapi", "HP_LIBHCCL": "hccl"}


def use_fake_npu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names the fakes for the test, or skips it."""
    if importlib.util.find_spec("ascendnpuir") is None and "HP_BISHENGIR" not in os.environ:
        pytest.skip("no ascendnpu-ir: fragments can be neither scheduled nor run")
    for variable, name in LIBRARIES.items():
        path = FAKES / f"libhp_fake_{name}.so"
        if not path.exists():
            pytest.skip(f"{path.name} is not built; run ninja -C build")
        monkeypatch.setenv(variable, str(path))
    monkeypatch.setenv("HP_FAKE_ASCEND_TWIN", f"'{sys.executable}' -m hyperparallel.testing.hfusion")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[3] / "python"))
