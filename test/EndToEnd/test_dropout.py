# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training with dropout is PyTorch's with the same masks, however it is split, recomputed or interrupted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

sys.path.insert(0, str(Path(__file__).resolve().parent))
from test_training import imported, trained

from hyperparallel.cli.models import example_inputs
from hyperparallel.compile import compile_model
from hyperparallel.compiled import CompiledProgram
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.frontend.worker_process import worker_session
from hyperparallel.plan import Plan
from hyperparallel.state import open_state, save_step, state_of

TINY = {"width": 16, "heads": 2, "vocab": 48, "positions": 16, "batch": 4, "seq": 6, "dropout": 0.1}


@pytest.fixture(scope="module", autouse=True)
def _one_worker() -> Iterator[None]:
    with worker_session():
        yield


@pytest.mark.parametrize(
    ("plan", "more"),
    [
        (Plan(mesh="dp=2,tp=2", preset="megatron"), {}),
        (Plan(mesh="dp=3", preset="fsdp"), {"microbatches": 2, "checkpoint": True, "seed": 5}),
        (Plan(mesh="pp=2,dp=2", preset="data_parallel", schedule="1f1b"), {"microbatches": 2}),
        (Plan(mesh="pp=2", schedule="zero_bubble_h1"), {"microbatches": 2}),
    ],
    ids=["batch and tensors split", "recomputed, rows that do not divide", "stages", "backward in two parts"],
)
def test_masks_are_those_of_pytorch(plan: Plan, more: dict[str, Any], tmp_path: Path) -> None:
    run, comparison, _ = trained(tmp_path / "program", "gpt2_train.py", plan, None, **TINY, **more)
    assert comparison.ok, comparison
    # A block drops in three places, once in a microbatch, and the counter is state.
    drawn = run.results["transformer.h.1.mlp.dropout.dropout_counter"] % (1 << 44)
    assert drawn == 5 * TINY["batch"] * TINY["seq"] * TINY["width"]


def test_a_training_that_goes_on_goes_on_with_its_masks(tmp_path: Path) -> None:
    loaded, model = imported("gpt2_train.py", tuple(sorted(TINY.items())))
    inputs = example_inputs(loaded)
    program = compile_model(model, Plan(preset="data_parallel"), "dp=2", tmp_path / "program")

    def go_on(program: CompiledProgram, steps: int, state: Path | None = None, **options: Any) -> RunResult:
        saved = None if state is None else open_state(state)

        def value(name: str) -> Any:
            if name in inputs:
                return inputs[name]
            return np.array(model.weight(name)) if saved is None else saved.read(name)

        return run_compiled(program, value, repeat=steps, **options)

    whole = go_on(program, 4)
    kept = tmp_path / "state"
    go_on(program, 2, after_step=lambda turn, launches: save_step(kept, turn, state_of((program,), launches)))
    rest = go_on(program, 2, kept)
    assert rest.losses == whole.losses[2:]
    for name, array in whole.results.items():
        np.testing.assert_array_equal(rest.results[name], array, err_msg=name)
