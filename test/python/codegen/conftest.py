# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles small programs of one device and runs them on arrays."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

# First: test_cuda.py takes the tests of this folder by their names, some of which other folders have, too.
sys.path.insert(0, str(Path(__file__).parent))
from codegen_cases import Array, Execute, compile_text, run_program


@pytest.fixture
def execute(tmp_path: Path) -> Execute:
    """Compile, run on one device, check that inputs are untouched and nothing leaks."""

    def run(text: str, *inputs: Array) -> list[Array]:
        path = compile_text(text, tmp_path / "program.so")
        given = [array.copy() for array in inputs]
        results, statistics = run_program(path, inputs)
        for before, after in zip(given, inputs, strict=True):
            np.testing.assert_array_equal(before, after, "an argument was written to")
        assert sum(statistics.devices[0].leaked_bytes.values()) == 0
        return results[0]

    return run
