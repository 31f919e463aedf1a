# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models for GPUs: compiled, assembled, and run on fake GPUs that interpret their PTX (test/Runtime/fakes)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu_models import Case, assert_alike, case, in_half, reports, without_calls

from hyperparallel.compile import compile_model
from hyperparallel.compiled import CompiledProgram
from hyperparallel.errors import RuntimeFailure
from hyperparallel.execute import RunResult
from hyperparallel.plan import Plan

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("fake_gpu", "one_worker")


def both(one: Case, mesh: str, folder: Path, steps: int = 1, **options: Any) -> tuple[CompiledProgram, RunResult]:
    """The program for GPUs, and its run, which equals that of the CPU: results, losses, and what a step updates."""
    on_cpu = one.run(compile_model(one.imported, Plan(preset="megatron"), mesh, folder / "cpu"), repeat=steps)
    program = one.compile(Plan(preset="megatron"), mesh, folder / "gpu", **options)
    run = one.run(program, repeat=steps)
    assert_alike(run, on_cpu)
    return program, run


def assert_all_on_gpus(program: CompiledProgram) -> None:
    """Nothing is left to the host, and every kernel is assembled, without spills."""
    for report in reports(program):
        assert report["coverage"]["host_fallbacks"] == 0
        assert len({kernel["name"] for kernel in report["kernels"]}) == report["coverage"]["kernels"]
        assert sum(kernel["spill_stores"] + kernel["spill_loads"] for kernel in report["kernels"]) == 0


@pytest.mark.parametrize(("name", "layers"), [("gpt2", 2), ("llama", 1)])
def test_missing_wait_for_a_copy(name: str, layers: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """In half of the memory copies are on streams of their own; one that nobody waits for is found as a race."""
    one = case(name, layers=layers)
    program = in_half(both, one, tmp_path, 1)
    capfd.readouterr()
    with pytest.raises(RuntimeFailure):
        one.run(without_calls(program, "hp_rt_copy_wait", "hp_rt_range_end"))
    # By a kernel, or by a product, whose library has no words for it.
    assert re.search(r"race: .*, which a copy from host to device .*no event orders the two", capfd.readouterr().err)


def epilogues(program: CompiledProgram) -> dict[str, int]:
    """What the calls of products do at their end, or why nothing, by how often."""
    (report,) = reports(program)
    return report["epilogues"]


def test_products_with_epilogues(tmp_path: Path) -> None:
    """GPT-2's tanh-GELU is cuBLASLt's; BERT's exact one and Llama's SiLU stay in kernels."""
    program, _ = both(case("gpt2"), "tp=1", tmp_path / "gpt2")
    assert epilogues(program) == {
        "bias and gelu_tanh": 1,
        "bias": 3,
        "none: nothing follows that an epilogue does": 3,
    }
    program, _ = both(case("bert"), "tp=1", tmp_path / "bert")
    assert epilogues(program)["bias, no more: the library has no epilogue for gelu"] == 1
    assert not any("gelu_tanh" in told for told in epilogues(program))
    program, _ = both(case("llama"), "tp=1", tmp_path / "llama")
    assert "none: the library has no epilogue for silu" in epilogues(program)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_wide_accesses(name: str, tmp_path: Path) -> None:
    """Where sizes are multiples of 16 bytes, every kernel of a block reads or writes so many at once."""
    one = case(name, layers=2, width=64, heads=4, seq=16, vocab=64)
    (report,) = reports(one.compile(Plan(preset="megatron"), "tp=1", tmp_path / "gpu"))
    blocks = [kernel for kernel in report["kernels"] if not kernel["name"].startswith("main_")]
    assert len(blocks) >= 7
    for kernel in blocks:
        assert "16" in {*kernel["loads"], *kernel["stores"]}, kernel
    assert max(kernel["registers"] for kernel in report["kernels"]) <= 64
    # Norms and softmax pass over memory in vectors alone.
    rows = [kernel for kernel in blocks if kernel["shared_bytes"]]
    assert rows
    assert any({*kernel["loads"], *kernel["stores"]} == {"16"} for kernel in rows)


def test_tf32_is_a_choice(tmp_path: Path) -> None:
    """With it the operands of products in f32 have 10 bits; without, all of them."""
    one = case("gpt2")
    program = one.compile(Plan(preset="megatron"), "tp=1", tmp_path / "gpu")
    (exact,), (rounded,) = (one.run(program, tf32=tf32).results.values() for tf32 in (False, True))
    error = np.abs(exact - rounded).max() / np.abs(exact).max()
    assert 1e-5 < error < 1e-2


def test_pipeline_of_two_stages(tmp_path: Path) -> None:
    """Messages go from GPU to GPU by the mailbox."""
    program, run = both(case("gpt2_train", layers=2, microbatches=2), "pp=2,tp=1", tmp_path)
    assert len(program.programs) == 2
    assert_all_on_gpus(program)
    assert run.statistics.collectives["recv"] > 0
