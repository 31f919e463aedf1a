# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models for GPUs: compiled, assembled, and run on fake GPUs that interpret their PTX (test/Runtime/fakes).

What is compared with is the same program on the CPU, which other tests compare with PyTorch. Models are tiny: a thread of a
kernel takes its time here.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from hyperparallel import ptxas
from hyperparallel.cli.models import example_inputs
from hyperparallel.compile import compile_model
from hyperparallel.compiled import COVERAGE_FILE, MANIFEST_FILE, OFFLOAD_FILE, PROGRAM_FILE, CompiledProgram, file_hash
from hyperparallel.errors import MissingDependencyError, RuntimeFailure
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.torch import import_model
from hyperparallel.frontend.training import import_training
from hyperparallel.frontend.worker_process import worker_session
from hyperparallel.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
FAKES = ROOT / "build" / "test" / "Runtime" / "fakes"
TEXT = {"layers": 1, "width": 16, "heads": 2, "vocab": 37, "batch": 2, "seq": 6}
SMALL: dict[str, dict[str, int]] = {
    "gpt2": {**TEXT, "positions": 8},
    "llama": {**TEXT, "ff": 24, "kv_heads": 1, "layers": 2},
    "bert": {**TEXT, "ff": 24},
    "vit": {"layers": 1, "width": 16, "heads": 2, "ff": 24, "image": 16, "patch": 8, "batch": 2},
    "mixtral": {**TEXT, "ff": 24, "kv_heads": 1},
    "gpt2_train": {**TEXT, "positions": 8},
    "llama_train": {**TEXT, "ff": 24, "kv_heads": 1},
}
TOLERANCE = 1e-3
"""Of the greatest value: what the fakes sum in another order than the CPU."""


@dataclasses.dataclass(frozen=True)
class Case:
    """An imported model, and its inputs."""

    imported: ImportedModel
    inputs: Mapping[str, Any]

    def run(self, program: CompiledProgram, **options: Any) -> RunResult:
        """Run one of its programs."""
        return run_compiled(
            program,
            lambda name: self.inputs[name] if name in self.inputs else np.array(self.imported.weight(name)),
            **options,
        )


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


@functools.cache
def case(name: str, **more: int) -> Case:
    """An example at a tiny size, or its training step."""
    loaded = load_model_file(ROOT / "examples" / f"{name}.py", {**SMALL[name], **more})
    if loaded.training is None:
        imported = import_model(loaded.module, loaded.args, loaded.kwargs, name=name)
    else:
        imported = import_training(loaded.module, loaded.args, loaded.kwargs, training=loaded.training, name=name)
    return Case(imported, dict(example_inputs(loaded)))


def both(one: Case, plan: str, mesh: str, folder: Path, steps: int = 1, **options: Any) -> tuple[CompiledProgram, Any]:
    """The program for GPUs, and its run, which equals that of the CPU: results, losses, and what a step updates."""
    on_cpu = one.run(compile_model(one.imported, Plan(preset=plan), mesh, folder / "cpu"), repeat=steps)
    program = compile_model(
        one.imported, Plan(preset=plan), mesh, folder / "gpu", target="cuda", architectures="sm_80", **options
    )
    run = one.run(program, repeat=steps)
    assert_alike(run, on_cpu)
    return program, run


def assert_alike(left: RunResult, right: RunResult) -> None:
    assert left.results.keys() == right.results.keys()
    for name, value in left.results.items():
        wanted = right.results[name].astype(np.float64)
        np.testing.assert_allclose(value, wanted, rtol=TOLERANCE, atol=TOLERANCE * np.abs(wanted).max(), err_msg=name)
    np.testing.assert_allclose(left.losses, right.losses, rtol=TOLERANCE)


def reports(program: CompiledProgram) -> list[dict[str, Any]]:
    """What each device group's program is made of."""
    return [json.loads((one.directory / COVERAGE_FILE).read_text()) for one in program.programs or (program,)]


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "vit", "mixtral"])
def test_forward(name: str, tmp_path: Path) -> None:
    """Nothing is left to the host, and every kernel is assembled, without spills."""
    program, _ = both(case(name), "megatron", "tp=1", tmp_path)
    (report,) = reports(program)
    assert report["coverage"]["host_fallbacks"] == 0
    assert report["coverage"]["library_calls"] >= 6
    assert len(report["kernels"]) == report["coverage"]["kernels"] >= 10
    assert sum(kernel["spill_stores"] for kernel in report["kernels"]) == 0


@pytest.mark.parametrize("name", ["gpt2_train", "llama_train"])
def test_training(name: str, tmp_path: Path) -> None:
    """Two steps. The backward of embeddings adds rows at computed places on the device; state is updated in place."""
    program, run = both(case(name), "megatron", "tp=1", tmp_path, steps=2)
    assert len(run.losses) == 2
    assert [report["coverage"]["host_fallbacks"] for report in reports(program)] == [0]


def test_sharded_training(tmp_path: Path) -> None:
    program, run = both(case("llama_train", kv_heads=2), "megatron", "dp=2,tp=2", tmp_path)
    assert sum(run.statistics.collectives.values()) > 0
    assert reports(program)[0]["coverage"]["host_fallbacks"] == 0


def test_pipeline_of_two_stages(tmp_path: Path) -> None:
    """Messages go from GPU to GPU by the mailbox."""
    program, run = both(case("gpt2_train", layers=2, microbatches=2), "megatron", "pp=2,tp=1", tmp_path)
    assert len(program.programs) == 2
    assert [report["coverage"]["host_fallbacks"] for report in reports(program)] == [0, 0]
    assert run.statistics.collectives["recv"] > 0


def without_waits(program: CompiledProgram) -> CompiledProgram:
    """The program, in which the wait for a copy is a call that does nothing: a name of the same length."""
    path = program.directory / PROGRAM_FILE
    code = path.read_bytes()
    assert b"hp_rt_copy_wait\0" in code
    path.write_bytes(code.replace(b"hp_rt_copy_wait\0", b"hp_rt_range_end\0"))
    manifest = json.loads((program.directory / MANIFEST_FILE).read_text())
    manifest["files"][PROGRAM_FILE] = file_hash(path)
    (program.directory / MANIFEST_FILE).write_text(json.dumps(manifest))
    return CompiledProgram.load(program.directory)


def test_half_of_the_memory_and_a_planted_missing_wait(tmp_path: Path) -> None:
    """Copies on streams of their own, from pinned memory; a copy that nobody waits for is found as a race."""
    one = case("llama")
    whole = compile_model(one.imported, Plan(preset="megatron"), "tp=1", tmp_path / "whole", device_memory=1 << 40)
    limit = json.loads((whole.directory / OFFLOAD_FILE).read_text())["unplanned_peak_bytes"] // 2
    program, run = both(one, "megatron", "tp=1", tmp_path, device_memory=limit)
    (device,) = run.statistics.devices
    assert device.prefetches > 0
    assert device.peak_bytes["device"] == program.peak_bytes <= limit
    with pytest.raises(RuntimeFailure, match=r"race: .*no event orders the two"):
        one.run(without_waits(program))
