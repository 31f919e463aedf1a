# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recorded training steps at less memory than they need, through the passes and the simulator: within 2 % of the bound,
never above the capacity, and as long as the planner says."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

from mlir import ir
from recorded import recorded_step

from hyperparallel import offload
from hyperparallel.dialects import supernode
from hyperparallel.simulator import read_trace, simulate_program
from hyperparallel.testing.offload_steps import TooSmallError, machine_of, plan_step

BANDWIDTH = 15.754e9


@pytest.mark.parametrize(
    ("name", "bound"),
    [("bert-base-256", 7.285), ("vit-1280", 4.360), ("inceptionv3-1536", 59.694), ("resnet152-1280", 112.589)],
)
def test_within_two_percent_of_the_bound(name: str, bound: float) -> None:
    path = recorded_step(name)
    trace = read_trace(path)
    link = offload.Link(BANDWIDTH)

    def problem(capacity: int, link: offload.Link = link) -> offload.Problem:
        return offload.Problem.of_trace(trace, capacity, offload.Tier("host", 2**50, link, link))

    # The published bound at 40 GiB; ours may be higher, as it counts what is away while an op runs.
    assert bound - 5e-4 <= offload.plan(problem(40 * 2**30)).bound_seconds <= bound * 1.005
    live = offload.plan(problem(2**60)).max_live_bytes
    free = plan_step(trace, problem(live))
    assert (free.figures["moves"], free.moved_bytes, free.peak_bytes) == ([], 0, live)
    assert free.timeline.seconds == pytest.approx(trace.compute_seconds, rel=1e-12)
    last = free.timeline.seconds
    for percent in (90, 70, 50, 40):
        capacity = live * percent // 100
        step = plan_step(trace, problem(capacity))
        assert step.peak_bytes <= step.figures["peak_bytes"] <= capacity
        assert step.timeline.seconds == pytest.approx(step.figures["step_s"], rel=1e-9)
        assert step.moved_bytes == step.figures["bytes_in"] + step.figures["bytes_out"]
        assert step.timeline.seconds <= 1.02 * step.figures["lower_bound_s"]
        assert step.timeline.seconds >= last * (1 - 1e-9)
        last = step.timeline.seconds
    faster = plan_step(trace, problem(live * 40 // 100, offload.Link(2 * BANDWIDTH)))
    assert faster.timeline.seconds <= last
    with pytest.raises(TooSmallError) as info:
        plan_step(trace, problem(trace.largest_operation_bytes - 1))
    assert info.value.needed is not None
    assert info.value.needed >= trace.largest_operation_bytes


def requests(module: ir.Module) -> int:
    """Submissions to the links: copies the same way with nothing but other copies and their waits between them are one."""
    count = 0
    submitted = set[str]()
    for op in module.body.operations[0].regions[0].blocks[0].operations:
        kind = op.operation.name
        if kind in ("offload.store", "offload.prefetch"):
            count += kind not in submitted
            submitted.add(kind)
        elif kind not in ("offload.wait", "offload.detach"):
            submitted.clear()
    return count


@pytest.mark.parametrize("name", ["bert-base-256", "vit-1280"])
def test_small_tensors_share_the_latency_of_a_request(name: str) -> None:
    """A 256th of the batch over links that take 45 us for each request, as long as for 709 kB; most tensors are smaller.

    Beside it is the plan of one who knows of no latency, carried out on the same links.
    """
    path = recorded_step(name)
    whole = read_trace(path)
    trace = dataclasses.replace(
        whole,
        tensors=tuple(max(size // 2**14, 1) * 64 for size in whole.tensors),
        operations=tuple(dataclasses.replace(op, seconds=op.seconds / 256) for op in whole.operations),
    )
    assert sum(size < 45e-6 * BANDWIDTH for size in trace.tensors) > len(trace.tensors) / 2

    def problem(latency: float, capacity: int = 2**60) -> offload.Problem:
        link = offload.Link(BANDWIDTH, latency)
        return offload.Problem.of_trace(trace, capacity, offload.Tier("host", 2**50, link, link))

    capacity = offload.plan(problem(0)).max_live_bytes * 40 // 100
    step, unaware = plan_step(trace, problem(45e-6, capacity)), plan_step(trace, problem(0, capacity))
    supernode.set_machine(unaware.module, machine_of(problem(45e-6, capacity)))
    assert requests(step.module) < requests(unaware.module)
    assert step.timeline.seconds < simulate_program(unaware.module).seconds
    assert step.peak_bytes <= capacity
    # The simulator counts requests as the planner does.
    assert step.timeline.seconds == pytest.approx(step.figures["step_s"], rel=1e-9)
