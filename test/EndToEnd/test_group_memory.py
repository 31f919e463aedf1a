# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A limit of device memory reaches the scheduler: an order that fits is taken before anything is moved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from hyperparallel.cli.models import example_inputs
from hyperparallel.compile import compile_model
from hyperparallel.compiled import CompiledProgram
from hyperparallel.errors import CompilationError
from hyperparallel.execute import run_compiled
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.model_file import LoadedModel, load_model_file
from hyperparallel.frontend.training import import_training
from hyperparallel.frontend.training_reference import train
from hyperparallel.frontend.worker_process import worker_session
from hyperparallel.plan import Plan
from hyperparallel.runtime import Tier

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SIZES = {"layers": 2, "width": 16, "heads": 2, "vocab": 48, "positions": 32, "batch": 16, "seq": 24, "microbatches": 4}
Case = tuple[LoadedModel, ImportedModel]
ROOM = 1 << 30


@pytest.fixture(scope="module")
def case() -> Iterator[Case]:
    """A GPT-2 whose activations are larger than its weights."""
    with worker_session():
        loaded = load_model_file(EXAMPLES / "gpt2_train.py", SIZES)
        assert loaded.training is not None
        yield loaded, import_training(loaded.module, loaded.args, loaded.kwargs, training=loaded.training)


def compiled(case: Case, directory: Path, plan: Plan, memory: int | None, target: str) -> tuple[CompiledProgram, Any]:
    """The program, and what the scheduler said."""
    program = compile_model(case[1], plan, None, directory, device_memory=memory, target=target)
    return program, json.loads((directory / "schedule.json").read_text(encoding="utf-8"))


def test_an_order_that_fits_is_found(case: Case, tmp_path: Path) -> None:
    plan = Plan(mesh="pp=2", schedule="auto")
    free, order = compiled(case, tmp_path / "free", plan, ROOM, "none")
    first, second = (one.peak_bytes or 0 for one in free.programs)
    live = order["peak_live"]
    assert live[0] > 1
    # Room for one microbatch less than it would take.
    limit = max(first - order["groups"][0]["saved_bytes"] // live[0] // 2, second)
    assert limit < first
    less, order = compiled(case, tmp_path / "less", plan, limit, "cpu")
    assert order["peak_live"][0] < live[0]

    loaded, model = case
    inputs = example_inputs(loaded)
    run = run_compiled(less, lambda name: inputs[name] if name in inputs else np.array(model.weight(name)))
    assert all(device.prefetched_bytes == 0 for device in run.statistics.devices), "nothing had to be moved"
    peaks = [device.peak_bytes[Tier.DEVICE] for device in run.statistics.devices]
    assert peaks == [one.peak_bytes for one in less.programs]
    assert max(peaks) <= limit
    assert loaded.training is not None
    wanted = train(loaded.module, loaded.args, loaded.kwargs, loaded.training, 1)
    np.testing.assert_allclose(run.losses, wanted.losses, rtol=1e-5)

    # The same for one group alone, in the plan; the other may use what it wants.
    plan = Plan(groups={"a": {"mesh": "tp=1", "memory": limit}, "b": "tp=1"}, schedule="auto")
    alone, again = compiled(case, tmp_path / "alone", plan, None, "none")
    assert [one.device_memory for one in alone.programs] == [limit, None]
    assert alone.programs[0].peak_bytes == peaks[0]
    assert again["peak_live"] == order["peak_live"]
    assert "saved_limit" not in again["groups"][1]


def test_what_no_order_fits_is_refused_in_one_message(case: Case, tmp_path: Path) -> None:
    with pytest.raises(CompilationError, match=r"\(stage0\) does not fit into 4096 bytes of device memory") as refused:
        compiled(case, tmp_path / "p", Plan(mesh="pp=2", schedule="auto"), 4096, "none")
    assert "is the smallest capacity that can work" in str(refused.value)
    assert not (tmp_path / "p").exists()
