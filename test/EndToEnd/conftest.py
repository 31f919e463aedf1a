# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of whole programs share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import fake_libraries

from hyperparallel import ptxas
from hyperparallel.errors import MissingDependencyError
from hyperparallel.frontend.worker_process import worker_session

sys.path.append(str(Path(__file__).parent))  # for gpu_models
sys.path.append(str(Path(__file__).parents[1] / "python" / "codegen"))
from ascend_fakes import use_fake_npu


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake libraries of NVIDIA's in the place of the real ones."""
    for variable, path in fake_libraries("cuda").items():
        monkeypatch.setenv(variable, path)
    try:
        ptxas.find_ptxas()
    except MissingDependencyError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def fake_npu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake libraries of CANN's in the place of the real ones."""
    use_fake_npu(monkeypatch)


@pytest.fixture(params=["cuda", "ascend"])
def device(request: pytest.FixtureRequest) -> dict[str, str]:
    """What a program is compiled for, with fake libraries to run it on."""
    request.getfixturevalue("fake_gpu" if request.param == "cuda" else "fake_npu")
    return {"target": request.param, "architectures": {"cuda": "sm_80", "ascend": "Ascend910B1"}[request.param]}


@pytest.fixture(scope="module")
def one_worker() -> Iterator[None]:
    """A single process imports all models of a module."""
    with worker_session():
        yield
