# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models for GPUs: compiled, assembled, and run on fake GPUs that interpret their PTX (test/Runtime/fakes).

What is compared with is the same program on the CPU, which other tests compare with PyTorch. Models are tiny: a thread of a
kernel takes its time here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from device_models import FAKES, both, case, reports, without_waits

from hyperparallel import ptxas
from hyperparallel.compile import compile_model
from hyperparallel.compiled import OFFLOAD_FILE
from hyperparallel.errors import MissingDependencyError, RuntimeFailure
from hyperparallel.frontend.worker_process import worker_session
from hyperparallel.plan import Plan


@pytest.fixture(autouse=True)
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake libraries of NVIDIA's."""
    for variable, name in {"HP_LIBCUDA": "cuda", "HP_LIBCUBLASLT": "cublaslt", "HP_LIBNCCL": "nccl"}.items():
        path = FAKES / f"libhp_fake_{name}.so"
        if not path.exists():
            pytest.skip(f"{path.name} is not built; run ninja -C build")
        monkeypatch.setenv(variable, str(path))
    try:
        ptxas.find_ptxas()
    except MissingDependencyError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module", autouse=True)
def one_worker() -> Iterator[None]:
    with worker_session():
        yield


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "vit", "mixtral"])
def test_forward(name: str, tmp_path: Path) -> None:
    """Nothing is left to the host, and every kernel is assembled, without spills."""
    program, _ = both("cuda", case(name), "megatron", "tp=1", tmp_path)
    (report,) = reports(program)
    assert report["coverage"]["host_fallbacks"] == 0
    assert report["coverage"]["library_calls"] >= 6
    assert len(report["kernels"]) == report["coverage"]["kernels"] >= 10
    assert sum(kernel["spill_stores"] for kernel in report["kernels"]) == 0


@pytest.mark.parametrize("name", ["gpt2_train", "llama_train"])
def test_training(name: str, tmp_path: Path) -> None:
    """Two steps. The backward of embeddings adds rows at computed places on the device; state is updated in place."""
    program, run = both("cuda", case(name), "megatron", "tp=1", tmp_path, steps=2)
    assert len(run.losses) == 2
    assert [report["coverage"]["host_fallbacks"] for report in reports(program)] == [0]


def test_sharded_training(tmp_path: Path) -> None:
    program, run = both("cuda", case("llama_train", kv_heads=2), "megatron", "dp=2,tp=2", tmp_path)
    assert sum(run.statistics.collectives.values()) > 0
    assert reports(program)[0]["coverage"]["host_fallbacks"] == 0


def test_pipeline_of_two_stages(tmp_path: Path) -> None:
    """Messages go from GPU to GPU by the mailbox."""
    program, run = both("cuda", case("gpt2_train", layers=2, microbatches=2), "megatron", "pp=2,tp=1", tmp_path)
    assert len(program.programs) == 2
    assert [report["coverage"]["host_fallbacks"] for report in reports(program)] == [0, 0]
    assert run.statistics.collectives["recv"] > 0


def test_half_of_the_memory_and_a_planted_missing_wait(tmp_path: Path) -> None:
    """Copies on streams of their own, from pinned memory; a copy that nobody waits for is found as a race."""
    one = case("llama")
    whole = compile_model(one.imported, Plan(preset="megatron"), "tp=1", tmp_path / "whole", device_memory=1 << 40)
    limit = json.loads((whole.directory / OFFLOAD_FILE).read_text())["unplanned_peak_bytes"] // 2
    program, run = both("cuda", one, "megatron", "tp=1", tmp_path, device_memory=limit)
    (device,) = run.statistics.devices
    assert device.prefetches > 0
    assert device.peak_bytes["device"] == program.peak_bytes <= limit
    with pytest.raises(RuntimeFailure, match=r"race: .*no event orders the two"):
        one.run(without_waits(program))
