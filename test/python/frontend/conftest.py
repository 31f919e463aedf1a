# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One import worker for all tests of this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))  # for import_cases and upstream_run

from hyperparallel.frontend.worker_process import worker_session


@pytest.fixture(scope="session", autouse=True)
def _one_worker() -> Iterator[None]:
    with worker_session():
        yield
