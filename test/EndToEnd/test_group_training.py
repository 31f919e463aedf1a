# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training step over groups of devices is PyTorch's: losses and parameters after five steps, whatever the schedule."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

sys.path.insert(0, str(Path(__file__).resolve().parent))
from test_training import trained

from hyperparallel.frontend.worker_process import worker_session
from hyperparallel.plan import Plan

TINY = {"layers": 4, "width": 16, "heads": 2, "vocab": 48, "positions": 16, "batch": 6, "seq": 6}
"""A GPT-2 of four layers: what is tested is the schedule."""

CASES: dict[str, tuple[str, Plan, dict[str, Any]]] = {
    "four stages, 1f1b, microbatches that do not divide": (
        "gpt2_train.py",
        Plan(mesh="pp=4", schedule="1f1b"),
        {**TINY, "microbatches": 6},
    ),
    "four stages, zero bubble, fewer microbatches": (
        "gpt2_train.py",
        Plan(mesh="pp=4", schedule="zero_bubble_h1"),
        {**TINY, "microbatches": 3},
    ),
    "four stages, fewer microbatches, the fastest": (
        "gpt2_train.py",
        Plan(mesh="pp=4", schedule="auto"),
        {**TINY, "microbatches": 3},
    ),
    "two groups in turns, interleaved, microbatches that do not divide": (
        "gpt2_train.py",
        Plan(mesh="pp=2", stages=4, schedule="interleaved_1f1b"),
        {**TINY, "microbatches": 3},
    ),
    "two stages, batch split, clipped": (
        "gpt2_train.py",
        Plan(mesh="pp=2,dp=2", preset="fsdp", schedule="1f1b"),
        {"microbatches": 2, "clip_norm": 0.5},
    ),
    "two stages, recomputed": (
        "gpt2_train.py",
        Plan(mesh="pp=2", schedule="1f1b"),
        {**TINY, "microbatches": 3, "checkpoint": True, "clip_norm": 0.5},
    ),
    "llama, two stages, batch split": (
        "llama_train.py",
        Plan(mesh="pp=2,dp=2", preset="data_parallel", schedule="1f1b"),
        {"microbatches": 2},
    ),
    "bert, two stages, batch split": (
        "bert_train.py",
        Plan(mesh="pp=2,dp=2", preset="data_parallel", schedule="1f1b"),
        {"microbatches": 2},
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _one_worker() -> Iterator[None]:
    with worker_session():
        yield


@pytest.mark.parametrize(("file", "plan", "overrides"), CASES.values(), ids=CASES)
def test_numbers_are_those_of_pytorch(file: str, plan: Plan, overrides: dict[str, Any], tmp_path: Path) -> None:
    _, comparison, _ = trained(tmp_path / "program", file, plan, None, **overrides)
    assert comparison.ok, comparison
