# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models for GPUs: compiled, assembled where there is a ptxas, and run on fake GPUs that interpret their PTX."""

from __future__ import annotations

import dataclasses
import json
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

ROOT = Path(__file__).resolve().parents[2]
FAKES = ROOT / "build" / "test" / "Runtime" / "fakes"
SMALL: dict[str, dict[str, int]] = {
    "gpt2": {"layers": 2, "width": 64, "heads": 4, "vocab": 101, "positions": 32, "batch": 2, "seq": 12},
    "llama": {"layers": 2, "width": 64, "ff": 120, "heads": 4, "kv_heads": 2, "vocab": 101, "batch": 2, "seq": 12},
}


@dataclasses.dataclass(frozen=True)
class Case:
    """An imported model, and its inputs."""

    imported: ImportedModel
    inputs: dict[str, Any]

    def run(self, program: CompiledProgram, **options: Any) -> RunResult:
        """Run one of its programs."""
        return run_compiled(
            program,
            lambda name: self.inputs.get(name, None) if name in self.inputs else self.imported.weight(name),
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


@pytest.fixture(scope="module", params=sorted(SMALL))
def case(request: pytest.FixtureRequest) -> Case:
    loaded = load_model_file(ROOT / "examples" / f"{request.param}.py", SMALL[request.param])
    imported = import_model(loaded.module, loaded.args, loaded.kwargs, name=request.param)
    return Case(imported, dict(example_inputs(loaded)))


def assert_alike(left: RunResult, right: RunResult) -> None:
    for name, value in left.results.items():
        np.testing.assert_allclose(value, right.results[name], rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("mesh", ["dp=1,tp=1", "dp=2,tp=2"])
def test_runs_as_on_the_cpu(case: Case, mesh: str, tmp_path: Path) -> None:
    """Also: nothing is left to the host, and every kernel is assembled."""
    on_cpu = compile_model(case.imported, "megatron", mesh, tmp_path / "cpu")
    on_gpu = compile_model(case.imported, "megatron", mesh, tmp_path / "gpu", target="cuda", architectures="sm_80")
    assert_alike(case.run(on_gpu), case.run(on_cpu))
    report = json.loads((on_gpu.directory / COVERAGE_FILE).read_text())
    assert report["coverage"]["host_fallbacks"] == 0
    assert report["coverage"]["library_calls"] >= 6
    assert len(report["kernels"]) == report["coverage"]["kernels"] >= 10
    assert sum(kernel["spill_stores"] for kernel in report["kernels"]) == 0


def without_waits(program: CompiledProgram, directory: Path) -> CompiledProgram:
    """The program, in which the wait for a copy is a call that does nothing: a name of the same length."""
    path = directory / PROGRAM_FILE
    code = path.read_bytes()
    assert b"hp_rt_copy_wait\0" in code
    path.write_bytes(code.replace(b"hp_rt_copy_wait\0", b"hp_rt_range_end\0"))
    manifest = json.loads((directory / MANIFEST_FILE).read_text())
    manifest["files"][PROGRAM_FILE] = file_hash(path)
    (directory / MANIFEST_FILE).write_text(json.dumps(manifest))
    return CompiledProgram.load(program.directory)


def test_offloaded_and_a_planted_missing_wait(case: Case, tmp_path: Path) -> None:
    """Three quarters of the memory: copies on streams of their own; one that nobody waits for is found as a race."""
    on_cpu = compile_model(case.imported, "megatron", "dp=1,tp=1", tmp_path / "cpu", device_memory=1 << 40)
    limit = json.loads((on_cpu.directory / OFFLOAD_FILE).read_text())["unplanned_peak_bytes"] * 3 // 4
    program = compile_model(
        case.imported,
        "megatron",
        "dp=1,tp=1",
        tmp_path / "gpu",
        target="cuda",
        architectures="sm_80",
        device_memory=limit,
    )
    run = case.run(program)
    assert_alike(run, case.run(on_cpu))
    assert sum(device.prefetches for device in run.statistics.devices) > 0
    with pytest.raises(RuntimeFailure, match=r"race: .*no event orders the two"):
        case.run(without_waits(program, program.directory))
