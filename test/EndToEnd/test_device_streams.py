# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives and messages on streams of GPUs and NPUs: the same numbers, beside kernels, and no wait too few.

The fake drivers hold every access against all that it is not ordered after (``test/Runtime/fakes``): a program that runs
there has all the waits that it needs, and one whose waits do nothing is found out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from gpu_models import Case, assert_alike, case, without_calls

from hyperparallel.compile import compile_model
from hyperparallel.errors import RuntimeFailure
from hyperparallel.plan import Plan

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("one_worker")


Check = Callable[[Case, Plan, str | None, tuple[str, str]], None]


@pytest.fixture
def check(device: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """The numbers and the messages of the CPU's program, something of a kind on its stream, and no wait too few."""

    def run(one: Case, plan: Plan, mesh: str | None, wanted: tuple[str, str]) -> None:
        on_cpu = one.run(compile_model(one.imported, plan, mesh, tmp_path / "cpu"), repeat=2)
        program = one.compile(plan, mesh, tmp_path / "device", **device)
        run = one.run(program, repeat=2, trace=tmp_path / "trace.json")
        assert_alike(run, on_cpu)
        assert wanted in beside(tmp_path / "trace.json")
        assert run.statistics.collectives == on_cpu.statistics.collectives
        # A device whose neighbour failed does not wait for it for long.
        monkeypatch.setenv("HP_FAKE_NCCL_SECONDS", "5")
        with pytest.raises(RuntimeFailure, match=r"race: .*no event orders the two"):
            one.run(without_calls(program, "hp_rt_stream_wait", "hp_rt_range_begin"))

    return run


def beside(trace: Path) -> set[tuple[str, str]]:
    """The kinds of collectives and messages, each with the stream that it was on, where that is not the compute stream."""
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M" and "tid" in event}
    return {
        (event["name"].split()[0], lanes[event["tid"]].split(" ", 2)[2])
        for event in events
        if event["ph"] == "X" and event["cat"] in ("collective", "message") and "stream" in lanes[event["tid"]]
    }


def test_collectives_beside_kernels(check: Check) -> None:
    """The gradients of one layer are reduced over dp while those of the next are computed."""
    check(case("llama_train", kv_heads=2), Plan(preset="megatron"), "dp=2,tp=2", ("all_reduce", "comm stream"))


def test_messages_beside_kernels(check: Check) -> None:
    """What travels together does so on devices, too."""
    one = case("gpt2_train", layers=2, microbatches=2)
    check(one, Plan(mesh="pp=2,tp=1", preset="megatron", schedule="1f1b"), None, ("recv", "recv stream"))
