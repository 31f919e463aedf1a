# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of whole programs share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperparallel import ptxas
from hyperparallel.errors import MissingDependencyError
from hyperparallel.frontend.worker_process import worker_session

sys.path.append(str(Path(__file__).parent))  # for gpu_models
from gpu_models import FAKE_LIBRARIES, fake_library


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake libraries of NVIDIA's in the place of the real ones."""
    for variable, name in FAKE_LIBRARIES.items():
        if not fake_library(name).exists():
            pytest.skip(f"{fake_library(name).name} is not built; run ninja -C build")
        monkeypatch.setenv(variable, str(fake_library(name)))
    try:
        ptxas.find_ptxas()
    except MissingDependencyError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def one_worker() -> Iterator[None]:
    """A single process imports all models of a module."""
    with worker_session():
        yield
