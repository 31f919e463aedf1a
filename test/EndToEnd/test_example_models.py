# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example models, made small, give PyTorch's numbers under every preset on every mesh, even or uneven."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from hyperparallel.cli.models import Model, example_inputs, reference_results
from hyperparallel.compare import compare
from hyperparallel.compile import compile_model
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.torch import import_model
from hyperparallel.plan import Plan

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL: dict[str, dict[str, int]] = {
    "gpt2": {"layers": 2, "width": 48, "heads": 4, "vocab": 101, "positions": 32, "batch": 4, "seq": 12},
    "llama": {"layers": 2, "width": 64, "ff": 100, "heads": 4, "kv_heads": 2, "vocab": 101, "batch": 4, "seq": 12},
    "bert": {"layers": 2, "batch": 4},
    "vit": {"layers": 2, "width": 48, "ff": 96, "heads": 4, "image": 32, "patch": 8, "batch": 4},
    "mlp": {"layers": 2},
    "convnet": {"layers": 1},
}
MESHES = ["tp=4", "dp=2,tp=2", "dp=2,tp=3", "dp=1,tp=1"]


@dataclasses.dataclass(frozen=True)
class Case:
    """An imported model and what PyTorch computes."""

    model: Model
    want: dict[str, Any]


@pytest.fixture(scope="module", params=sorted(SMALL))
def case(request: pytest.FixtureRequest) -> Case:
    """Each model, imported once."""
    name: str = request.param
    loaded = load_model_file(EXAMPLES / f"{name}.py", SMALL[name])
    imported = import_model(loaded.module, loaded.args, loaded.kwargs, name=name)
    model = Model(imported, example_inputs(loaded), {}, loaded)
    return Case(model, reference_results(model))


def run(case: Case, plan: Any, mesh: str | None, directory: Path) -> RunResult:
    """Compile and run; the numbers must be PyTorch's."""
    imported, inputs = case.model.imported, case.model.inputs
    program = compile_model(imported, plan, mesh, directory / "program")
    result = run_compiled(program, lambda name: inputs[name] if name in inputs else imported.weight(name))
    comparison = compare(result.results, case.want)
    assert comparison.ok, comparison
    assert result.statistics.leaked_bytes == 0
    for value in case.want.values():
        assert np.unique(value).size > 1
    return result


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("preset", ["megatron", "fsdp"])
def test_presets(case: Case, preset: str, mesh: str, tmp_path: Path) -> None:
    result = run(case, preset, mesh, tmp_path)
    kinds = {str(kind) for kind in result.statistics.collectives}
    if mesh == "dp=1,tp=1":
        assert kinds == set()
    elif preset == "fsdp":
        # Nothing moves but weights, and they are gathered.
        assert kinds == {"all_gather"}


def test_the_plan_beside_the_example(case: Case, tmp_path: Path) -> None:
    plan = EXAMPLES / f"{case.model.imported.name}.yaml"
    assert Plan.load(plan).rules or Plan.load(plan).preset
    run(case, plan, None, tmp_path)
