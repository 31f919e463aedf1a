# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Importing the package costs next to nothing, and the error tree says what it must."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hyperparallel
from hyperparallel import (
    CompilationError,
    HyperParallelError,
    ImportModelError,
    MissingDependencyError,
    PlanError,
    RuntimeFailure,
)
from hyperparallel.enums import Role

SOURCE = str(Path(hyperparallel.__file__).parents[1])


@pytest.mark.parametrize(
    "module", ["hyperparallel", "hyperparallel.frontend.artifact", "hyperparallel.frontend.model_file"]
)
def test_import_loads_nothing_heavy(module: str) -> None:
    heavy = ["torch", "torch_mlir", "mlir", "numpy", "transformers"]
    script = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert result.stdout.strip() == "[]"


def test_errors_are_one_tree() -> None:
    for error in (ImportModelError, PlanError, CompilationError, RuntimeFailure):
        assert issubclass(error, HyperParallelError)
        assert str(error("what went wrong")) == "what went wrong"


def test_errors_carry_what_callers_need() -> None:
    error = CompilationError(
        "no", diagnostics=["a.mlir:1: error: b\nnote: c"], pass_name="hypershard-partition", command="hp-opt x"
    )
    assert str(error) == (
        "no\n  a.mlir:1: error: b\n  note: c\nin pass: hypershard-partition\nreproduce with: hp-opt x"
    )
    missing = MissingDependencyError("torch", needed_for="importing", install="pip install torch")
    assert str(missing) == "importing needs torch, which is not installed; install it with: pip install torch"
    assert PlanError("no", constraint="dp divides 4").constraint == "dp divides 4"
    assert RuntimeFailure("no", status="HP_TIMEOUT").status == "HP_TIMEOUT"


def test_enumerations_print_as_their_values() -> None:
    assert f"{Role.PARAMETER} {Role('input')}" == "parameter input"
    assert [str(role) for role in Role] == ["input", "parameter", "buffer", "optimizer", "cache"]
