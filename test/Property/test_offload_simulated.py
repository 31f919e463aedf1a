# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the planner expects of its plans is what the simulator sees when the program with its transfers is executed."""

from __future__ import annotations

import contextlib
import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

from hyperparallel.offload import Link, OffloadError, Problem, Tier
from hyperparallel.simulator import Trace
from hyperparallel.simulator.traces import Operation
from hyperparallel.testing import offload_baselines as baselines
from hyperparallel.testing import offload_oracles as oracles
from hyperparallel.testing.offload_steps import plan_step


@st.composite
def steps(draw: st.DrawFn) -> tuple[Trace, Problem]:
    """A trace, some of whose ops take no time, and a machine with one or two tiers between what is needed and what is live."""
    tensors = draw(st.lists(st.tuples(st.integers(1, 30), st.booleans()), min_size=2, max_size=8))
    some = st.lists(st.integers(0, len(tensors) - 1), min_size=1, max_size=3, unique=True).map(tuple)
    ops = draw(
        st.lists(
            st.builds(Operation, st.just("op"), st.integers(0, 9).map(lambda n: n / 100), some, some),
            min_size=3,
            max_size=12,
        )
    )
    trace = Trace("t", tuple(64 * size for size, _ in tensors), tuple(keep for _, keep in tensors), tuple(ops))
    names = draw(st.sampled_from([(None, None), ("wire", "wire"), ("out", "in")]))
    rates, latencies = st.sampled_from([6400.0, 12800.0, 64000.0]), st.sampled_from([0.0, 0.01])
    segments = {name: 9600.0 for name in names if name}

    buffers = st.sampled_from([0, 64, 64 * 3])

    def tier(name: str, capacity: int) -> Tier:
        return Tier(
            name,
            capacity,
            Link(draw(rates), draw(latencies), names[0], draw(buffers)),
            Link(draw(rates), draw(latencies), names[1], draw(buffers)),
        )

    tiers = (tier("host", draw(st.sampled_from([64 * 20, 1 << 40]))), tier("pool", 1 << 40))
    problem = dataclasses.replace(Problem.of_trace(trace, 0, *tiers), segments=segments)
    least, live = oracles.needed_bytes(problem), max(oracles.live_bytes(problem))
    return trace, dataclasses.replace(problem, capacity=draw(st.integers(least, max(least, live))))


@given(steps())
@settings(max_examples=15, deadline=None)
def test_the_simulator_sees_what_was_planned(step: tuple[Trace, Problem]) -> None:
    trace, problem = step
    planned = plan_step(trace, problem)
    assert planned.peak_bytes <= planned.figures["peak_bytes"] <= problem.capacity
    assert planned.moved_bytes == planned.figures["bytes_in"] + planned.figures["bytes_out"]
    assert planned.timeline.seconds == pytest.approx(planned.figures["step_s"], rel=1e-9)
    assert planned.timeline.seconds >= planned.figures["lower_bound_s"] * (1 - 1e-9)
    # Copies that are all waited for are never faster, wherever there is room for them.
    with contextlib.suppress(OffloadError):
        assert planned.timeline.seconds <= baselines.synchronous(problem).seconds * (1 + 1e-9)
    room = {tier.name: tier.capacity for tier in problem.tiers}
    assert all(use.peak <= room[use.name] for use in planned.timeline.tiers if use.name in room)
