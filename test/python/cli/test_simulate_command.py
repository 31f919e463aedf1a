# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp simulate`` and ``hp import-trace``."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

TRACE = {
    "name": "small",
    "tensors": [[100, 1], [10, 0], [7, 0]],
    "ops": [["matmul", 0.5, [0], [1]], ["relu", 0.25, [1], [2]], ["update", 0.125, [2], [0]]],
}


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps(TRACE).encode()))
    return path


def test_import_trace(hp: Callable[..., Any], trace_file: Path, tmp_path: Path) -> None:
    program = tmp_path / "trace.mlir"
    outcome = hp("import-trace", trace_file, "-o", program)
    assert (outcome.status, outcome.out, outcome.err) == (0, f"{program}\n", "")
    assert program.read_text().count("supernode.task") == 3
    described = json.loads(hp("import-trace", trace_file, "-o", program, "--json").out)
    assert described["operations"] == 3
    assert described["compute_seconds"] == 0.875
    assert described["largest_operation_bytes"] == 110


def test_import_trace_refuses(hp: Callable[..., Any], trace_file: Path, tmp_path: Path) -> None:
    outcome = hp("import-trace", tmp_path / "none.json", "-o", tmp_path / "a.mlir")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == f"hp: error: {tmp_path}/none.json: cannot read the file: No such file or directory\n"
    outcome = hp("import-trace", trace_file, "-o", tmp_path / "none" / "a.mlir")
    assert (outcome.status, outcome.err) == (
        1,
        f"hp: error: cannot write {tmp_path}/none/a.mlir: No such file or directory\n",
    )
