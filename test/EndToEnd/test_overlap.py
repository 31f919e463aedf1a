# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training whose collectives and messages run on streams, small ones put together, gives the bits of the one that does
everything in order.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hyperparallel.cli.report import read_timeline
from hyperparallel.compile import compile_model
from hyperparallel.compiled import CompiledProgram
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.model_file import LoadedModel, load_model_file
from hyperparallel.frontend.worker_process import worker_session
from hyperparallel.plan import Plan
from hyperparallel.runtime.vocabulary import Collective
from hyperparallel.simulator import simulate_file

pytest.importorskip("torch")

EXAMPLES = Path(__file__).parents[2] / "examples"

CASES: dict[str, tuple[Plan, str | None, dict[str, Any]]] = {
    "data parallel": (Plan(preset="data_parallel"), "dp=4", {}),
    "tensor parallel": (Plan(preset="megatron"), "tp=4", {}),
    "fully sharded": (Plan(preset="fsdp"), "dp=4", {}),
    "data and tensor parallel": (Plan(preset="megatron"), "dp=2,tp=2", {}),
    "pipeline of tensor parallel stages": (
        Plan(mesh="pp=2,tp=2", preset="megatron", schedule="1f1b"),
        None,
        {"microbatches": 2},
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _one_worker() -> Iterator[None]:
    with worker_session():
        yield


@functools.cache
def imported(overrides: tuple[tuple[str, Any], ...]) -> tuple[LoadedModel, ImportedModel]:
    from hyperparallel.frontend.training import import_training

    loaded = load_model_file(EXAMPLES / "gpt2_train.py", {"width": 32, "vocab": 64, **dict(overrides)})
    assert loaded.training is not None
    return loaded, import_training(loaded.module, loaded.args, loaded.kwargs, training=loaded.training)


def run(program: CompiledProgram, overrides: tuple[tuple[str, Any], ...], trace: Path | None = None) -> RunResult:
    from hyperparallel.cli.models import example_inputs

    loaded, model = imported(overrides)
    inputs = example_inputs(loaded)
    return run_compiled(
        program, lambda name: inputs[name] if name in inputs else np.array(model.weight(name)), repeat=2, trace=trace
    )


def on_streams(trace: Path) -> int:
    """Collectives and messages that streams beside the devices' own did."""
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M" and "tid" in event}
    return sum(
        event["ph"] == "X" and event["cat"] in ("collective", "message") and "stream" in names[event["tid"]]
        for event in events
    )


@pytest.mark.parametrize("case", CASES)
def test_streams_change_no_bit(case: str, tmp_path: Path) -> None:
    plan, mesh, extra = CASES[case]
    overrides = tuple(sorted(extra.items()))
    _, model = imported(overrides)
    beside = compile_model(model, plan, mesh, tmp_path / "beside")
    in_order = compile_model(model, plan, mesh, tmp_path / "in_order", overlap=False)
    got = run(beside, overrides, tmp_path / "beside.json")
    want = run(in_order, overrides, tmp_path / "in_order.json")
    assert got.losses == want.losses
    for name, value in want.results.items():
        np.testing.assert_array_equal(got.results[name], value, err_msg=name)
    # The same is moved; what is sent as soon as it is there goes alone, where in order it may go with others.
    assert got.statistics.moved_bytes == want.statistics.moved_bytes
    calls, calls_in_order = got.statistics.collectives, want.statistics.collectives
    kinds = {*calls} - {Collective.SEND, Collective.RECV}
    assert kinds == {*calls_in_order} - {Collective.SEND, Collective.RECV}
    assert all(calls[kind] <= calls_in_order[kind] for kind in kinds)
    if case == "fully sharded":
        # The parameters of a layer are gathered, and their gradients reduced, in few messages.
        assert calls[Collective.ALL_GATHER] < 0.6 * calls_in_order[Collective.ALL_GATHER]
        assert calls[Collective.REDUCE_SCATTER] < 0.6 * calls_in_order[Collective.REDUCE_SCATTER]
        # Activations stay where their rows of the batch are.
        assert kinds == {Collective.ALL_GATHER, Collective.REDUCE_SCATTER}
    assert calls.get(Collective.SEND, 0) >= calls_in_order.get(Collective.SEND, 0)
    assert on_streams(tmp_path / "in_order.json") == 0
    assert on_streams(tmp_path / "beside.json") > 0
    # The part that ran beside kernels is told of runs as of simulations, over groups as on one mesh.
    for name, program, ran in (("beside", beside, got), ("in_order", in_order, want)):
        masked = read_timeline(tmp_path / f"{name}.json", program, ran.statistics).masked_communication
        assert masked is not None
        assert 0 <= masked <= 1
    assert got.statistics.leaked_bytes == 0
    # What is predicted: communication goes behind kernels, and the step gets no longer.
    hidden, exposed = simulate_file(beside.directory), simulate_file(in_order.directory)
    if mesh is not None:  # messages wait beside kernels even so
        assert exposed.masked_communication == pytest.approx(0.0, abs=1e-9)
    assert hidden.masked_communication is not None
    assert hidden.masked_communication > 0
    assert hidden.seconds <= exposed.seconds * (1 + 1e-9)
