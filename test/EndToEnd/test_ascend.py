# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models for NPUs: compiled, scheduled by Ascend's compiler, and run on a fake NPU (test/Runtime/fakes).

The fake runs the HFusion text that ships with a program, and holds every access against all others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from device_models import ROOT, both, case, reports

sys.path.append(str(ROOT / "test" / "python" / "codegen"))
from ascend_fakes import use_fake_npu

from hyperparallel.frontend.worker_process import worker_session


@pytest.fixture(autouse=True)
def fake_npu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake libraries of CANN's."""
    use_fake_npu(monkeypatch)


@pytest.fixture(scope="module", autouse=True)
def one_worker() -> Iterator[None]:
    with worker_session():
        yield


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "vit", "mixtral"])
def test_forward(name: str, tmp_path: Path) -> None:
    """Nothing is left to the host, and every fragment is scheduled for the chip's cores."""
    program, _ = both("ascend", case(name), "megatron", "tp=1", tmp_path)
    (report,) = reports(program)
    assert report["coverage"]["host_fallbacks"] == 0
    assert report["coverage"]["library_calls"] >= 6
    assert len(report["kernels"]) == report["coverage"]["kernels"] >= 10
    assert {kernel["core"] for kernel in report["kernels"]} == {"AIV"}


@pytest.mark.parametrize("name", ["gpt2_train", "llama_train"])
def test_training(name: str, tmp_path: Path) -> None:
    """Two steps. The backward of embeddings is one operator; state is updated in place."""
    program, run = both("ascend", case(name), "megatron", "tp=1", tmp_path, steps=2)
    assert len(run.losses) == 2
    assert [report["coverage"]["host_fallbacks"] for report in reports(program)] == [0]
