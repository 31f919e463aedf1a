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

CASES: dict[str, tuple[Plan, dict[str, Any]]] = {
    "two stages, each over two devices, 1f1b": (
        Plan(mesh="pp=2,tp=2", preset="megatron", schedule="1f1b"),
        {"microbatches": 4},
    ),
    "four stages, gpipe": (Plan(mesh="pp=4", schedule="gpipe"), {"microbatches": 4, "layers": 4}),
    "four stages, zero bubble": (Plan(mesh="pp=4", schedule="zero_bubble_h1"), {"microbatches": 4, "layers": 4}),
    "two groups in turns, interleaved": (
        Plan(mesh="pp=2", stages=4, schedule="interleaved_1f1b"),
        {"microbatches": 4, "layers": 4},
    ),
    "four stages, fewer microbatches, the fastest": (
        Plan(mesh="pp=4", schedule="auto"),
        {"microbatches": 2, "layers": 4},
    ),
    "three devices and one": (
        Plan(groups={"a": "dp=3", "b": "dp=1"}, preset="data_parallel", schedule="1f1b"),
        {"microbatches": 2},
    ),
    "two stages, batch split, clipped": (
        Plan(mesh="pp=2,dp=2", preset="fsdp", schedule="1f1b"),
        {"microbatches": 2, "clip_norm": 0.5},
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _one_worker() -> Iterator[None]:
    with worker_session():
        yield


@pytest.mark.parametrize(("plan", "overrides"), CASES.values(), ids=CASES)
def test_gpt2(plan: Plan, overrides: dict[str, Any], tmp_path: Path) -> None:
    _, comparison, _ = trained(tmp_path / "program", "gpt2_train.py", plan, None, **overrides)
    assert comparison.ok, comparison
