# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models for NPUs: compiled, scheduled by Ascend's compiler, and run on a fake NPU (test/Runtime/fakes).

The fake runs the HFusion text that ships with a program, and holds every access against all others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gpu_models import LAYERS_IN_HALF, Case, assert_alike, case, in_half, reports

pytest.importorskip("torch")
pytest.importorskip("transformers")

from hyperparallel.compile import compile_model
from hyperparallel.compiled import CompiledProgram
from hyperparallel.execute import RunResult
from hyperparallel.plan import Plan

NPUS = {"target": "ascend", "architectures": "Ascend910B1"}

pytestmark = pytest.mark.usefixtures("fake_npu", "one_worker")


def both(one: Case, mesh: str, folder: Path, steps: int = 1, **options: Any) -> tuple[CompiledProgram, RunResult]:
    """The program for NPUs, and its run, which equals that of the CPU: results, losses, and what a step updates."""
    on_cpu = one.run(compile_model(one.imported, Plan(preset="megatron"), mesh, folder / "cpu"), repeat=steps)
    program = one.compile(Plan(preset="megatron"), mesh, folder / "npu", **NPUS, **options)
    run = one.run(program, repeat=steps)
    assert_alike(run, on_cpu)
    return program, run


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "vit", pytest.param("mixtral", marks=pytest.mark.slow)])
def test_half_of_the_memory(name: str, tmp_path: Path) -> None:
    """What operators and cut fragments have between them is in the plan's peak, which is what is measured."""
    program = in_half(both, case(name, layers=LAYERS_IN_HALF[name]), tmp_path, 1, **NPUS)
    assert [report["coverage"]["host_fallbacks"] for report in reports(program)] == [0]


# What takes its time is the planner.
@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2_train", "llama_train"])
def test_half_of_the_memory_in_training(name: str, tmp_path: Path) -> None:
    program = in_half(both, case(name, layers=LAYERS_IN_HALF[name]), tmp_path, 2, **NPUS)
    assert [report["coverage"]["host_fallbacks"] for report in reports(program)] == [0]
