# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""State that a step updates, in a tier between steps: planned, simulated and run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mlir")

from mlir import ir
from mlir.passmanager import PassManager
from recorded import recorded_step

from hyperparallel.compile import compile_model
from hyperparallel.compiled import CompiledProgram
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.memory import tier_of
from hyperparallel.pipeline import make_context
from hyperparallel.runtime import Tier
from hyperparallel.simulator import import_trace, read_trace, simulate_program

GIB = 2**30


def offload(module: ir.Module, capacity: int, report: Path) -> dict[str, Any]:
    """Plan and write the transfers; the plan's figures."""
    steps = (
        f"offload-plan-transfers{{capacity={capacity} report={report}}},offload-insert-transfers,offload-verify-tiers"
    )
    handler: Any = module.context.attach_diagnostic_handler(lambda _: True)
    with module.context:
        PassManager.parse(f"builtin.module({steps})", module.context).run(module.operation)
    handler.detach()
    return json.loads(report.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "gibibytes"), [("bert-base-256", 24), ("vit-1280", 12)])
def test_a_recorded_training_step(name: str, gibibytes: int, tmp_path: Path) -> None:
    """Updated weights wrap around the step; the simulator takes the planned program and agrees with the planner."""
    path = recorded_step(name)
    context = make_context()
    module = import_trace(read_trace(path), context)
    with context:
        module.operation.attributes["supernode.machine"] = ir.Attribute.parse(
            '#supernode.machine<preset = "h200-node">'
        )
    plan = offload(module, gibibytes * GIB, tmp_path / "plan.json")
    entry = module.body.operations[0]
    kind = ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value)
    updated = [tier_of(result) for result in kind.results]
    assert updated.count("pool") > 0
    assert sum(tier_of(argument) == "pool" for argument in kind.inputs) >= updated.count("pool")
    assert plan["bytes_out"] > 0
    step = simulate_program(module)
    assert step.seconds == pytest.approx(plan["step_s"], rel=1e-3)
    device = next(tier for tier in step.tiers if tier.name == "hbm")
    assert device.peak <= gibibytes * GIB


EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STEPS = 3


@pytest.mark.parametrize("mesh", ["dp=1,tp=1", "dp=2,tp=2"])
def test_training_within_a_limit_changes_no_bit(mesh: str, tmp_path: Path) -> None:
    """Losses and parameters after three steps, at 70 and 35 % of the memory; what is updated is stored where it was."""
    pytest.importorskip("torch")
    from hyperparallel.cli.models import example_inputs
    from hyperparallel.frontend.model_file import load_model_file
    from hyperparallel.frontend.training import import_training

    loaded = load_model_file(EXAMPLES / "mlp_train.py", {"layers": 2, "width": 32, "hidden": 128, "batch": 8})
    assert loaded.training is not None
    imported = import_training(loaded.module, loaded.args, loaded.kwargs, training=loaded.training, name="mlp")
    inputs = dict(example_inputs(loaded))

    def train(program: CompiledProgram) -> RunResult:
        return run_compiled(
            program, lambda name: inputs[name] if name in inputs else imported.weight(name), repeat=STEPS
        )

    free = train(compile_model(imported, "megatron", mesh, tmp_path / "free"))
    assert len(set(free.losses)) == STEPS
    peak = free.statistics.peak_bytes[Tier.DEVICE]
    for part in (0.4,):
        program = compile_model(imported, "megatron", mesh, tmp_path / str(part), device_memory=int(part * peak))
        result = train(CompiledProgram.load(program.directory))
        assert result.losses == free.losses
        for name, value in free.results.items():
            assert value.tobytes() == result.results[name].tobytes(), name
        placed = {argument.name for argument in program.arguments if argument.tier is not None}
        below = sum(
            4 * int(np.prod(argument.layout.local_shape(argument.shape, program.mesh)))
            for argument in program.arguments
            if argument.tier is not None
        )
        assert placed & {entry.updates for entry in program.results}
        for device in result.statistics.devices:
            assert device.peak_bytes[Tier.DEVICE] == program.peak_bytes
            assert device.stores > 0
        # No second copy of what lives below; activations may lie beside it.
        assert result.statistics.peak_bytes[Tier.HOST] < 2 * below
        assert result.statistics.leaked_bytes == 0
