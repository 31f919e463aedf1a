# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps, split over virtual devices, equal PyTorch's training on one device: losses and parameters."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bf16_training import assert_near_exact, sgd_in_bf16

from hyperparallel.compare import Comparison, compare
from hyperparallel.compile import compile_model
from hyperparallel.enums import Role
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.model_file import LoadedModel, load_model_file
from hyperparallel.frontend.worker_process import worker_session
from hyperparallel.plan import Plan

torch = pytest.importorskip("torch")

EXAMPLES = Path(__file__).parents[2] / "examples"
STEPS = 5


@pytest.fixture(scope="module", autouse=True)
def _one_worker() -> Iterator[None]:
    with worker_session():
        yield


@functools.cache
def imported(file: str, overrides: tuple[tuple[str, Any], ...]) -> tuple[LoadedModel, ImportedModel]:
    """A model file, and its training step."""
    from hyperparallel.frontend.training import import_training

    loaded = load_model_file(EXAMPLES / file, dict(overrides))
    assert loaded.training is not None
    return loaded, import_training(loaded.module, loaded.args, loaded.kwargs, training=loaded.training)


@functools.cache
def reference(file: str, overrides: tuple[tuple[str, Any], ...]) -> Any:
    """PyTorch's training."""
    from hyperparallel.frontend.training_reference import train

    loaded, _ = imported(file, overrides)
    assert loaded.training is not None
    return train(loaded.module, loaded.args, loaded.kwargs, loaded.training, STEPS)


def trained(
    out: Path, file: str, plan: Any, mesh: str | None, **overrides: Any
) -> tuple[RunResult, Comparison, Mapping[str, Any]]:
    """Train on virtual devices: the run, how far it is from PyTorch, and PyTorch's optimizer state."""
    from hyperparallel.cli.models import example_inputs, to_array

    key = tuple(sorted(overrides.items()))
    loaded, model = imported(file, key)
    wanted = reference(file, key)
    program = compile_model(model, plan, mesh, out)
    inputs = example_inputs(loaded)
    run = run_compiled(
        program, lambda name: inputs[name] if name in inputs else np.array(model.weight(name)), repeat=STEPS
    )
    parameters = {argument.name for argument in model.arguments if argument.role is Role.PARAMETER}
    want = {name: to_array(tensor) for name, tensor in wanted.parameters.items() if name in parameters}
    comparison = compare({**run.results, "losses": np.array(run.losses)}, {**want, "losses": np.array(wanted.losses)})
    assert len(run.losses) == STEPS
    assert run.losses[-1] < run.losses[0], "it learns"
    return run, comparison, {name: to_array(tensor) for name, tensor in wanted.optimizer.items()}


@pytest.mark.parametrize(("preset", "mesh"), [("fsdp", "dp=4"), ("megatron", "dp=2,tp=2")])
def test_gpt2_by_adamw(tmp_path: Path, preset: str, mesh: str) -> None:
    """Five steps; state of the optimizer as well."""
    run, comparison, state = trained(tmp_path / "program", "gpt2_train.py", Plan(preset=preset), mesh)
    assert comparison.ok, comparison
    for name, value in state.items():
        np.testing.assert_allclose(run.results[name], value, rtol=1e-3, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "overrides",
    [
        {"microbatches": 4},
        {"checkpoint": True},
        {"clip_norm": 0.5},
        {"weight_decay": 0.0, "microbatches": 2, "checkpoint": True, "clip_norm": 1.0},
    ],
    ids=lambda overrides: " ".join(overrides),
)
def test_gpt2_in_other_ways(tmp_path: Path, overrides: Mapping[str, Any]) -> None:
    _, comparison, _ = trained(
        tmp_path / "program", "gpt2_train.py", Plan(preset="megatron"), "dp=2,tp=2", layers=2, **overrides
    )
    assert comparison.ok, comparison


def test_state_is_updated_in_place(tmp_path: Path) -> None:
    """A step allocates nothing that is as large as parameters and state together: activations and gradients alone."""
    loaded, model = imported("mlp_train.py", (("hidden", 2048), ("layers", 2)))
    program = compile_model(model, Plan(preset="data_parallel"), "dp=1", tmp_path / "program")
    from hyperparallel.cli.models import example_inputs

    inputs = example_inputs(loaded)
    run = run_compiled(program, lambda name: inputs[name] if name in inputs else np.array(model.weight(name)))
    sizes = {argument.name: argument.bytes for argument in model.arguments}
    kept = sum(sizes.values())
    parameters = sum(argument.bytes for argument in model.arguments if argument.role is Role.PARAMETER)
    (device,) = run.statistics.devices
    peak = sum(device.peak_bytes.values())
    # Beside what is kept: gradients of every parameter, and a little for the activations of a batch of 8.
    assert kept < peak < kept + 1.3 * parameters


@pytest.mark.parametrize(
    ("file", "plan", "mesh"),
    [
        ("llama_train.py", "data_parallel", "dp=4"),
        ("llama_train.py", "megatron", "tp=4"),
        ("bert_train.py", "data_parallel", "dp=2"),
        ("bert_train.py", "megatron", "tp=2"),
        ("vit_train.py", "data_parallel", "dp=2"),
        ("vit_train.py", "megatron", "tp=2"),
    ],
)
def test_other_models(tmp_path: Path, file: str, plan: str, mesh: str) -> None:
    """Data and tensor parallelism."""
    _, comparison, _ = trained(tmp_path / "program", file, Plan(preset=plan), mesh)
    assert comparison.ok, comparison


@pytest.mark.parametrize(
    ("plan", "mesh", "microbatches"),
    [
        (Plan(preset="data_parallel"), "dp=2", 2),
        (Plan(mesh="pp=2", schedule="1f1b"), None, 4),
    ],
    ids=["two devices", "two stages"],
)
def test_running_statistics(tmp_path: Path, plan: Plan, mesh: str | None, microbatches: int) -> None:
    """Batch norms in training: each microbatch moves the statistics on."""
    sizes = {"channels": 4, "image": 12, "microbatches": microbatches}
    run, comparison, _ = trained(tmp_path / "program", "convnet_train.py", plan, mesh, **sizes)
    assert comparison.ok, comparison
    wanted = reference("convnet_train.py", tuple(sorted(sizes.items()))).buffers
    assert int(wanted["blocks.1.norm2.num_batches_tracked"]) == STEPS * microbatches
    for name, value in wanted.items():
        np.testing.assert_allclose(run.results[name], value.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)


def test_experts_of_each_token_gathered(tmp_path: Path) -> None:
    """The experts as transformers batches them: the gradient of gathered weights adds to experts' rows."""
    plan = EXAMPLES / "mixtral_train.yaml"
    _, comparison, _ = trained(tmp_path / "program", "mixtral_train.py", plan, "dp=2,ep=2", experts="batched_mm", seq=8)
    assert comparison.ok, comparison


@pytest.mark.parametrize(
    ("plan", "mesh", "more"),
    [
        (Plan(preset="megatron"), "dp=2,tp=2", {}),
        (Plan(mesh="pp=2", schedule="1f1b"), None, {"microbatches": 2, "checkpoint": True}),
    ],
    ids=["batch and tensors split", "two stages, recomputed"],
)
def test_bf16_with_master_weights(plan: Plan, mesh: str | None, more: Mapping[str, Any], tmp_path: Path) -> None:
    """Forward and backward in bf16, parameters updated in f32."""
    from hyperparallel.cli.models import example_inputs
    from hyperparallel.frontend.training import import_training

    loaded = load_model_file(EXAMPLES / "gpt2_train.py", {"dtype": "bf16", **more})
    training = sgd_in_bf16(loaded)
    model = import_training(loaded.module, loaded.args, loaded.kwargs, training=training)
    inputs = example_inputs(loaded)
    program = compile_model(model, plan, mesh, tmp_path / "program")
    run = run_compiled(
        program, lambda name: inputs[name] if name in inputs else np.array(model.weight(name)), repeat=STEPS
    )
    assert_near_exact(run, model, loaded, training, STEPS)
