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


def test_simulate_a_trace(hp: Callable[..., Any], trace_file: Path, tmp_path: Path) -> None:
    program = tmp_path / "trace.mlir"
    hp("import-trace", trace_file, "-o", program)
    outcome = hp("simulate", program, "--json", "-o", tmp_path / "timeline.json")
    assert (outcome.status, outcome.err) == (0, "")
    timeline = json.loads(outcome.out)
    assert (timeline["name"], timeline["seconds"], timeline["tiers"][0]["peak"]) == ("small", 0.875, 117)
    assert (timeline["flops"], timeline["mfu"]) == (None, None)
    assert [task["op"] for task in timeline["tasks"]] == ["matmul", "relu", "update"]
    assert json.loads((tmp_path / "timeline.json").read_text()) == timeline
    words = hp("simulate", program).out
    assert "small on 1 device of cpu-supernode" in words
    assert "step 875.000 ms, 100.0 % in kernels" in words


def test_simulate_a_compiled_program(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    words = ("--preset", "data_parallel", "--mesh", "dp=2", "-o", program, "--machine", "a3-node", "--target", "none")
    compiled = hp("compile", model_dir, *words, "--json")
    assert compiled.status == 0
    described = json.loads(compiled.out)
    assert (described["target"], described["machine"]) == ("none", "a3-node")
    assert not (program / "program.so").exists()
    timeline = json.loads(hp("simulate", program, "--json").out)
    assert (timeline["name"], timeline["machine"], timeline["mesh"]) == ("small", "a3-node", {"dp": 2})
    assert [(use["name"], use["shape"], use["local_bytes"]) for use in timeline["tensors"]] == [
        ("x", [6, 10], 120),
        ("layers.0.w", [10, 10], 400),
        ("layers.1.w", [10, 10], 400),
    ]
    large, other = (
        json.loads(hp("simulate", program, "--machine", machine, "--json").out)
        for machine in ("cloudmatrix384@1024", "cpu-supernode")
    )
    assert (large["machine"], other["machine"]) == ("cloudmatrix384@1024", "cpu-supernode")
    assert other["seconds"] != timeline["seconds"]

    refused = hp("run", program)
    assert refused.status == 1
    assert "has no code to run: it was compiled with the target none" in refused.err


def test_noise_is_repeatable(hp: Callable[..., Any], trace_file: Path, tmp_path: Path) -> None:
    program = tmp_path / "trace.mlir"
    hp("import-trace", trace_file, "-o", program)
    outcomes = [hp("simulate", program, "--json", "--noise", 0.1, "--seed", seed).out for seed in (1, 1, 2)]
    assert outcomes[0] == outcomes[1] != outcomes[2]
    assert abs(json.loads(outcomes[0])["seconds"] / 0.875 - 1) <= 0.1


def test_simulate_refuses(hp: Callable[..., Any], model_dir: Path, trace_file: Path, tmp_path: Path) -> None:
    program = tmp_path / "trace.mlir"
    hp("import-trace", trace_file, "-o", program)
    for words, message in (
        ((tmp_path / "none.mlir",), f"{tmp_path}/none.mlir: cannot read the file: No such file or directory"),
        ((trace_file,), f"{trace_file}: expected a program but it cannot be read"),
        ((model_dir,), f"{model_dir} is no compiled program: manifest.json is missing; compile the program again"),
        ((program, "--machine", "z3-node"), "z3-node: expected the name of a preset"),
        ((program, "--noise", "1"), "expected noise in [0, 1)"),
        ((program, "-o", tmp_path / "none" / "t.json"), f"cannot write {tmp_path}/none/t.json"),
    ):
        outcome = hp("simulate", *words)
        assert (outcome.status, outcome.out) == (1, "")
        assert message in outcome.err
        assert "Traceback" not in outcome.err
