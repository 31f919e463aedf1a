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


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake libraries of NVIDIA's in the place of the real ones."""
    for variable, path in fake_libraries("cuda").items():
        monkeypatch.setenv(variable, path)
    try:
        ptxas.find_ptxas()
    except MissingDependencyError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def one_worker() -> Iterator[None]:
    """A single process imports all models of a module."""
    with worker_session():
        yield
