# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""State that a step updates, in a tier between steps: planned, simulated and run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlir")

from mlir import ir
from mlir.passmanager import PassManager

from hyperparallel.memory import tier_of
from hyperparallel.pipeline import make_context
from hyperparallel.simulator import import_trace, read_trace, simulate_program

DATA = Path(os.environ.get("HP_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "traces"
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
    path = DATA / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
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
