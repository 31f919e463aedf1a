# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every update that torch.optim's SGD, Adam and AdamW do, split over devices and over stages: PyTorch's parameters and state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from hyperparallel.cli.models import example_inputs, to_array
from hyperparallel.compare import compare
from hyperparallel.compile import compile_model
from hyperparallel.execute import run_compiled
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.training import import_training
from hyperparallel.frontend.training_reference import train
from hyperparallel.frontend.worker_process import worker_session
from hyperparallel.plan import Plan

FILE = Path(__file__).resolve().parents[2] / "examples" / "mlp_train.py"
STEPS = 5
SIZES: dict[str, Any] = {"layers": 1, "features": 6, "width": 8, "hidden": 12, "classes": 5, "batch": 6}
FSDP = Plan(mesh="dp=3", preset="fsdp")
TENSORS = Plan(mesh="tp=2", preset="megatron")
STAGES = Plan(mesh="pp=2,dp=2", preset="data_parallel", schedule="1f1b")


def two_rates(parameters: list[Any]) -> Any:
    """The first half of the parameters learns more slowly, and forgets."""
    half = len(parameters) // 2
    slow: dict[str, Any] = {"params": parameters[:half], "lr": 0.01, "weight_decay": 0.1}
    return torch.optim.Adam([slow, {"params": parameters[half:]}], lr=0.05, eps=1e-5)


CASES: dict[str, tuple[Callable[[list[Any]], Any], Plan, dict[str, Any]]] = {
    "SGD": (lambda p: torch.optim.SGD(p, lr=0.2), FSDP, {}),
    "SGD, clipped, over stages": (lambda p: torch.optim.SGD(p, lr=0.2), STAGES, {"clip_norm": 0.3, "microbatches": 3}),
    "SGD with momentum and decay": (
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.8, weight_decay=0.02),
        TENSORS,
        {"microbatches": 2},
    ),
    "SGD with Nesterov's momentum": (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True), STAGES, {}),
    "SGD with dampening": (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3), FSDP, {"clip_norm": 0.3}),
    "Adam": (lambda p: torch.optim.Adam(p, lr=0.02, eps=1e-5), TENSORS, {"clip_norm": 0.3}),
    "Adam with decay": (
        lambda p: torch.optim.Adam(p, lr=0.02, eps=1e-5, weight_decay=0.1),
        STAGES,
        {"microbatches": 3},
    ),
    "Adam, two groups of parameters": (two_rates, FSDP, {"microbatches": 2, "checkpoint": True}),
    "AdamW": (lambda p: torch.optim.AdamW(p, lr=0.02, eps=1e-5, weight_decay=0.3), FSDP, {"microbatches": 3}),
    "AdamW, other averages": (
        lambda p: torch.optim.AdamW(p, lr=0.02, betas=(0.5, 0.8), eps=1e-5),
        STAGES,
        {"microbatches": 2, "checkpoint": True, "clip_norm": 0.3},
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _one_worker() -> Iterator[None]:
    with worker_session():
        yield


@pytest.mark.parametrize(("make", "plan", "options"), CASES.values(), ids=CASES)
def test_update(make: Callable[[list[Any]], Any], plan: Plan, options: dict[str, Any], tmp_path: Path) -> None:
    loaded = load_model_file(FILE, SIZES)
    assert loaded.training is not None
    optimizer = make(list(loaded.module.parameters()))
    training = dataclasses.replace(loaded.training, optimizer=optimizer, **options)
    model = import_training(loaded.module, loaded.args, training=training)
    given = example_inputs(loaded)
    program = compile_model(model, plan, None, tmp_path / "program")
    run = run_compiled(
        program, lambda name: given[name] if name in given else np.array(model.weight(name)), repeat=STEPS
    )
    wanted = train(loaded.module, loaded.args, {}, training, STEPS)
    want = {name: to_array(value) for name, value in {**wanted.parameters, **wanted.optimizer}.items()}
    # PyTorch's SGD counts no steps; ours does where dampening begins with the second.
    assert want.keys() == {result.name for result in model.results} - {"loss"} - ({"optimizer.step"} - want.keys())
    comparison = compare({**run.results, "losses": np.array(run.losses)}, {**want, "losses": np.array(wanted.losses)})
    assert comparison.ok, comparison
    assert run.losses[-1] < run.losses[0]
