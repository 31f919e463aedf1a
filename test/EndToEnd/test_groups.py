# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over groups of devices give PyTorch's numbers, whatever the groups' sizes and layouts."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from mlir import ir

from hyperparallel.cli.models import Model, example_inputs, reference_results
from hyperparallel.compare import compare
from hyperparallel.compile import compile_model
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.torch import import_model
from hyperparallel.pipeline import make_context
from hyperparallel.plan import Plan
from hyperparallel.runtime import Collective
from hyperparallel.simulator import simulate_file

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = {"layers": 4, "width": 48, "heads": 4, "vocab": 101, "positions": 32, "batch": 4, "seq": 12}


@dataclasses.dataclass(frozen=True)
class Case:
    """An imported model and what PyTorch computes."""

    model: Model
    want: dict[str, Any]


@pytest.fixture(scope="module")
def case() -> Case:
    """A GPT-2 of four blocks."""
    loaded = load_model_file(EXAMPLES / "gpt2.py", SMALL)
    imported = import_model(loaded.module, loaded.args, loaded.kwargs, name="gpt2")
    model = Model(imported, example_inputs(loaded), {}, loaded)
    return Case(model, reference_results(model))


def run(case: Case, plan: Plan, directory: Path) -> RunResult:
    """Compile and run; the numbers must be PyTorch's."""
    imported, inputs = case.model.imported, case.model.inputs
    program = compile_model(imported, plan, None, directory / "program")
    result = run_compiled(program, lambda name: inputs[name] if name in inputs else imported.weight(name))
    comparison = compare(result.results, case.want)
    assert comparison.ok, comparison
    return result


PLANS = {
    "two stages": Plan(mesh="pp=2"),
    "two stages, each over two devices": Plan(mesh="pp=2,tp=2", preset="megatron"),
    "four stages": Plan(mesh="pp=4"),
    "one device and three": Plan(
        groups={"a": "tp=1", "b": "tp=3"},
        stages={"a": "transformer.h.[01]", "b": ["transformer.h.2", "transformer.h.3"]},
        preset="megatron",
    ),
    "two groups in turns": Plan(mesh="pp=2", stages=4),
    "two stages, each with its batch split": Plan(mesh="pp=2,dp=2", preset="fsdp"),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_numbers_are_those_of_pytorch(case: Case, plan: Plan, tmp_path: Path) -> None:
    result = run(case, plan, tmp_path)
    devices = result.statistics.devices
    sent = sum(device.collectives[Collective.SEND] for device in devices)
    assert sent == sum(device.collectives[Collective.RECV] for device in devices) > 0


@pytest.mark.parametrize("stages", [4, 8], ids=["each a stage", "in turns"])
def test_stages_in_the_middle_split_the_batch_too(case: Case, stages: int, tmp_path: Path) -> None:
    """They have no input that a rule could be about: what comes in is laid out as it was sent."""
    plan = Plan(mesh="pp=4,dp=2", preset="data_parallel", stages=stages)
    if stages == 8:
        plan = Plan(mesh="pp=2,dp=2", preset="data_parallel", stages=4)
    program = compile_model(case.model.imported, plan, None, tmp_path / "program", target="none")
    batch, half = SMALL["batch"], SMALL["batch"] // 2
    for one in program.programs:
        text = str(ir.Module.parse(one.local_program_file.read_bytes(), make_context()))
        received = [line for line in text.splitlines() if "hypermpmd.recv" in line]
        assert all(f": tensor<{half}x" in line for line in received), received
        assert f"tensor<{half}x{SMALL['seq']}x{SMALL['width']}xf32>" in text
        assert f"tensor<{batch}x{SMALL['seq']}x{SMALL['width']}xf32>" not in text


def test_a_split_program_is_simulated(case: Case, tmp_path: Path) -> None:
    """Each group by itself, and the wait for what comes from the other is its bubble."""
    compile_model(case.model.imported, Plan(mesh="pp=2,tp=2", preset="megatron"), None, tmp_path / "p", target="none")
    timeline = simulate_file(tmp_path / "p")
    assert [(group.name, group.devices) for group in timeline.groups] == [("stage0", 2), ("stage1", 2)]
    # One microbatch: while one stage works, the other waits, for a message or for nothing.
    waits = [(group.exposed.bubble or 0) + (group.exposed.communication or 0) for group in timeline.groups]
    assert all(0.2 * timeline.seconds < wait < timeline.seconds for wait in waits), timeline.groups
