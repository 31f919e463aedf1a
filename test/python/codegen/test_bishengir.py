# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ascend's compiler: found or named with the remedy, refused fragments shown, whole programs over the fake NPU."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ascend_fakes import use_fake_npu

from hyperparallel.bishengir import assemble_fragments, find_tool, read_soc
from hyperparallel.errors import CompilationError, MissingDependencyError

EXAMPLES = Path(__file__).parents[3] / "examples"
ATTRIBUTES = "attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>}"


def test_a_missing_compiler_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HP_BISHENGIR", str(tmp_path))
    with pytest.raises(MissingDependencyError, match=r"pip install ascendnpu-ir==1\.2\.0, or set HP_BISHENGIR"):
        find_tool("bishengir-compile")


def test_a_chip_is_asked_for_by_name() -> None:
    assert read_soc("Ascend910B1") == "Ascend910B1"
    with pytest.raises(CompilationError, match="expected an Ascend chip, such as Ascend910B1, but got 'sm_90'"):
        read_soc("sm_90")


def test_a_program_without_fragments_needs_none(tmp_path: Path) -> None:
    if importlib.util.find_spec("ascendnpuir") is None and "HP_BISHENGIR" not in os.environ:
        pytest.skip("no ascendnpu-ir")
    (tmp_path / "kernels.mlir").write_text("module {\n}\n")
    assert assemble_fragments(tmp_path / "kernels.mlir", "Ascend910B1") == []
    assert (tmp_path / "kernels.launch").read_text() == ""


def test_the_fragment_that_is_refused_is_shown(tmp_path: Path) -> None:
    if importlib.util.find_spec("ascendnpuir") is None and "HP_BISHENGIR" not in os.environ:
        pytest.skip("no ascendnpu-ir")
    (tmp_path / "kernels.mlir").write_text(
        "module {\n"
        f"func.func @good(%a: tensor<8xf32>) -> (tensor<8xf32>) {ATTRIBUTES} {{\n"
        "  %0 = tensor.empty() : tensor<8xf32>\n"
        "  %1 = linalg.elemwise_unary {fun = #linalg.unary_fn<exp>} ins(%a : tensor<8xf32>)"
        " outs(%0 : tensor<8xf32>) -> tensor<8xf32>\n"
        "  return %1 : tensor<8xf32>\n}\n"
        f"func.func @bad(%a: tensor<8xf32>) -> (tensor<8xf32>) {ATTRIBUTES} {{\n"
        "  %0 = tensor.empty() : tensor<8xf32>\n"
        "  %1 = linalg.no_such_op ins(%a : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>\n"
        "  return %1 : tensor<8xf32>\n}\n"
        "}\n"
    )
    with pytest.raises(CompilationError, match="refused the fragment bad for Ascend910B1") as refused:
        assemble_fragments(tmp_path / "kernels.mlir", "Ascend910B1")
    assert any("linalg.no_such_op" in line for line in refused.value.diagnostics)


def hp(*words: str) -> str:
    """What a command prints, which succeeds."""
    command = [sys.executable, "-m", "hyperparallel.cli.main", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_perceptron_runs_over_the_fake_npu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_npu(monkeypatch)
    program = tmp_path / "mlp"
    options = ["--preset", "megatron", "--mesh", "dp=1,tp=1", "--target", "ascend"]
    hp("compile", str(EXAMPLES / "mlp.py"), *options, "-o", str(program))
    coverage = json.loads((program / "kernels.json").read_text())["coverage"]
    assert (coverage["host_fallbacks"], coverage["kernels"]) == (0, 5)
    told = json.loads(hp("run", str(program), "--check", "--tolerance", "1e-3", "--json"))
    assert told["max_rel_error"] < 1e-4
