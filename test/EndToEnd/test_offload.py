# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs run within a given device memory: the same bits, and the peak that was planned."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from hyperparallel.cli.models import example_inputs
from hyperparallel.compile import compile_model
from hyperparallel.compiled import OFFLOAD_FILE, CompiledProgram
from hyperparallel.errors import CompilationError, RuntimeFailure
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.torch import import_model
from hyperparallel.plan import Plan
from hyperparallel.runtime import Tier

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL: dict[str, dict[str, int]] = {
    "gpt2": {"layers": 4, "width": 96, "heads": 4, "vocab": 101, "positions": 32, "batch": 2, "seq": 12},
    "llama": {"layers": 4, "width": 96, "ff": 200, "heads": 4, "kv_heads": 2, "vocab": 101, "batch": 2, "seq": 12},
}
MESHES = ["dp=1,tp=1", "dp=2,tp=2"]


@dataclasses.dataclass(frozen=True)
class Case:
    """An imported model, and what it gives with all the memory that it wants."""

    imported: ImportedModel
    inputs: dict[str, Any]
    mesh: str
    free: RunResult
    peak: int


def execute(case_model: ImportedModel, inputs: dict[str, Any], program: CompiledProgram, **options: Any) -> RunResult:
    return run_compiled(program, lambda name: inputs[name] if name in inputs else case_model.weight(name), **options)


@pytest.fixture(scope="module", params=[(name, mesh) for name in sorted(SMALL) for mesh in MESHES], ids=str)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    name, mesh = request.param
    loaded = load_model_file(EXAMPLES / f"{name}.py", SMALL[name])
    imported = import_model(loaded.module, loaded.args, loaded.kwargs, name=name)
    inputs = dict(example_inputs(loaded))
    program = compile_model(imported, "megatron", mesh, tmp_path_factory.mktemp("free") / "program")
    free = execute(imported, inputs, program)
    return Case(imported, inputs, mesh, free, free.statistics.peak_bytes[Tier.DEVICE])


@pytest.mark.parametrize("part", [0.9, 0.6, 0.4])
def test_a_limited_memory_changes_no_bit(case: Case, part: float, tmp_path: Path) -> None:
    limit = int(case.peak * part)
    program = compile_model(case.imported, "megatron", case.mesh, tmp_path / "program", device_memory=limit)
    result = execute(case.imported, case.inputs, CompiledProgram.load(program.directory), repeat=2)
    for name, value in case.free.results.items():
        assert np.unique(value).size > 1
        assert value.tobytes() == result.results[name].tobytes(), name
    assert program.peak_bytes is not None
    assert program.peak_bytes <= limit
    report = json.loads((program.directory / OFFLOAD_FILE).read_text())
    assert report["peak_bytes"] == program.peak_bytes
    assert report["unplanned_peak_bytes"] == case.peak
    moved = {move["tensor"] for move in report["plan"]["moves"]}
    placed = {argument.name for argument in program.arguments if argument.tier is not None}
    assert placed <= moved
    assert placed
    for device in result.statistics.devices:
        # What was planned is what is measured, on every device.
        assert device.peak_bytes[Tier.DEVICE] == program.peak_bytes
        assert device.prefetches > 0
    assert result.statistics.leaked_bytes == 0


def test_a_program_that_fits_is_left_alone(case: Case, tmp_path: Path) -> None:
    program = compile_model(case.imported, "megatron", case.mesh, tmp_path / "program", device_memory=case.peak)
    result = execute(case.imported, case.inputs, program)
    assert program.peak_bytes == case.peak
    assert all(device.prefetches == device.stores == 0 for device in result.statistics.devices)
    assert json.loads((program.directory / OFFLOAD_FILE).read_text())["plan"]["moves"] == []


def test_the_runtime_holds_the_limit(case: Case, tmp_path: Path) -> None:
    """A program that was not planned for a limit fails at it, and says what it wanted."""
    program = compile_model(case.imported, "megatron", case.mesh, tmp_path / "program")
    with pytest.raises(RuntimeFailure, match="'device' is full"):
        execute(case.imported, case.inputs, program, device_memory=case.peak - 64)


def test_too_small_a_memory_is_refused(case: Case, tmp_path: Path) -> None:
    """Which op, how much, how much there is, the command that shows it again; nothing is written (case 24)."""
    with pytest.raises(CompilationError, match="does not fit into 4096 bytes of device memory") as caught:
        compile_model(case.imported, "megatron", case.mesh, tmp_path / "program", device_memory=4096)
    text = str(caught.value)
    assert "expected tier local to have at least" in text
    assert "is the smallest capacity that can work" in text
    assert "hp-opt " in text
    assert not (tmp_path / "program").exists()


@pytest.mark.parametrize("mesh", MESHES)
def test_a_table_larger_than_the_memory(mesh: str, tmp_path: Path) -> None:
    """A tied embedding that never fits: rows of it are fetched for the lookup, parts of it for the logits."""
    loaded = load_model_file(EXAMPLES / "gpt2.py", {**SMALL["gpt2"], "width": 48, "vocab": 20001, "seq": 5})
    imported = import_model(loaded.module, loaded.args, loaded.kwargs, name="gpt2")
    inputs = dict(example_inputs(loaded))
    free = execute(imported, inputs, compile_model(imported, "megatron", mesh, tmp_path / "free"))
    limit = free.statistics.peak_bytes[Tier.DEVICE] // 2
    program = compile_model(imported, "megatron", mesh, tmp_path / "program", device_memory=limit)
    table = next(argument for argument in program.arguments if argument.name == "transformer.wte.weight")
    placed = {
        argument.name: 4 * int(np.prod(argument.layout.local_shape(argument.shape, program.mesh)))
        for argument in program.arguments
        if argument.tier is not None
    }
    local = placed[table.name]
    assert local > limit
    assert table.tier == "pool"
    result = execute(imported, inputs, program)
    for name, value in free.results.items():
        assert value.tobytes() == result.results[name].tobytes(), name
    for device in result.statistics.devices:
        assert device.peak_bytes[Tier.DEVICE] == program.peak_bytes
        # The logits take the whole table; the lookup takes a few rows.
        assert sum(placed.values()) < device.prefetched_bytes < sum(placed.values()) + local // 10


def test_a_block_larger_than_the_memory(case: Case, tmp_path: Path) -> None:
    """Weights come and go inside a block where all of it does not fit: parts of its function, compiled once for all."""
    loaded = load_model_file(EXAMPLES / f"{case.imported.name}.py", {**SMALL[case.imported.name], "width": 192})
    imported = import_model(loaded.module, loaded.args, loaded.kwargs, name=case.imported.name)
    inputs = dict(example_inputs(loaded))
    free = execute(imported, inputs, compile_model(imported, "megatron", case.mesh, tmp_path / "free"))
    sizes = [4 * int(np.prod(argument.shape)) for argument in imported.arguments if ".0." in argument.name]
    devices = 4 if case.mesh == "dp=2,tp=2" else 1
    limit = int(0.7 * sum(sizes)) // (2 if devices == 4 else 1)
    program = compile_model(imported, "megatron", case.mesh, tmp_path / "program", device_memory=limit)
    result = execute(imported, inputs, program)
    for name, value in free.results.items():
        assert value.tobytes() == result.results[name].tobytes(), name
    assert program.peak_bytes is not None
    assert result.statistics.peak_bytes[Tier.DEVICE] == program.peak_bytes <= limit
    remarks = json.loads((program.directory / OFFLOAD_FILE).read_text())["remarks"]
    assert any("parts, so that not all" in remark for remark in remarks)


def test_a_plan_places_parameters(case: Case, tmp_path: Path) -> None:
    """What a plan places lives in the tier, what it keeps stays, whatever the memory."""
    norms = {"gpt2": "**.ln_1.*", "llama": "**.input_layernorm.*"}[case.imported.name]
    plan = Plan(preset="megatron", offload={"place": {"**.mlp.**.weight": "pool"}, "keep": [norms]})
    program = compile_model(case.imported, plan, case.mesh, tmp_path / "program")
    result = execute(case.imported, case.inputs, CompiledProgram.load(program.directory))
    for name, value in case.free.results.items():
        assert value.tobytes() == result.results[name].tobytes(), name
    for argument in program.arguments:
        assert argument.tier == ("pool" if ".mlp." in argument.name and argument.name.endswith("weight") else None)
    assert program.peak_bytes is not None
    assert result.statistics.peak_bytes[Tier.DEVICE] == program.peak_bytes < case.peak
    with pytest.raises(CompilationError, match="placed in a tier that copies reach from local"):
        compile_model(
            case.imported,
            Plan(preset="megatron", offload={"place": {"**.mlp.**.weight": "attic"}}),
            case.mesh,
            tmp_path / "nowhere",
        )
