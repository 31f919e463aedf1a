# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of drawn steps: safe to the byte, never faster than what can be, hardly slower than the best there is."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

from hyperparallel import offload
from hyperparallel.offload import Link, Operation, Problem, Storage, Tier
from hyperparallel.testing import offload_baselines as baselines
from hyperparallel.testing import offload_oracles as oracles


@st.composite
def steps(draw: st.DrawFn) -> Problem:
    """Any ops on any storages, on a device between what is needed and what is live."""
    count = draw(st.integers(2, 14))
    storages = draw(
        st.lists(
            st.builds(
                Storage,
                bytes=st.integers(0, 30),
                persistent=st.booleans(),
                clean=st.booleans(),
            ),
            min_size=1,
            max_size=10,
        )
    )
    some = st.lists(st.integers(0, len(storages) - 1), max_size=3, unique=True).map(tuple)
    ops = draw(
        st.lists(
            st.builds(Operation, seconds=st.integers(0, 9).map(float), reads=some, writes=some),
            min_size=count,
            max_size=count,
        )
    )
    link = st.builds(Link, bandwidth=st.sampled_from([0.5, 1.0, 3.0]), latency=st.sampled_from([0.0, 0.25]))
    host = Tier("host", 1 << 40, draw(link), draw(link))
    problem = Problem(tuple(ops), tuple(storages), 0, (host,))
    least, live = oracles.needed_bytes(problem), max(oracles.live_bytes(problem))
    return dataclasses.replace(problem, capacity=draw(st.integers(least, max(least, live))))


def resident(problem: Problem, plan: offload.Plan) -> list[int]:
    """Bytes at each op, from the spills and nothing else."""
    bytes_at = oracles.live_bytes(problem)
    for spill in plan.spills:
        for slot in range(spill.freed, spill.fetched):
            bytes_at[slot] -= problem.storages[spill.storage].bytes
    return bytes_at


@given(steps())
@settings(max_examples=150, deadline=None)
def test_plans_are_safe_and_no_faster_than_the_bounds(problem: Problem) -> None:
    plan = offload.plan(problem)
    assert max(resident(problem, plan)) == plan.peak_bytes <= problem.capacity
    gaps = {(gap.storage, gap.after, gap.before) for gap in oracles.gaps_of(problem)}
    for spill in plan.spills:
        assert (spill.storage, spill.after, spill.before) in gaps
        assert spill.after < spill.freed <= spill.fetched <= spill.before
        assert (
            spill.clean or spill.out[1] <= plan.starts[spill.freed] + 1e-9 if spill.freed < len(plan.starts) else True
        )
    assert plan.seconds >= plan.bound_seconds - 1e-9 >= plan.compute_seconds - 2e-9
    assert plan.seconds >= oracles.fluid_bound(problem) - 1e-6
    if max(oracles.live_bytes(problem)) <= problem.capacity:
        assert plan.spills == ()


@given(steps())
@settings(max_examples=60, deadline=None)
def test_plans_are_never_worse_than_doing_nothing_or_waiting_for_every_copy(problem: Problem) -> None:
    plan = offload.plan(problem)
    if max(oracles.live_bytes(problem)) <= problem.capacity:
        assert plan.seconds == offload.execute(problem, []).seconds
    waiting = baselines.synchronous(problem)
    assert waiting.seconds == pytest.approx(waiting.compute_seconds + waiting.waits_out + waiting.waits_in)
    assert plan.seconds <= waiting.seconds * (1 + 1e-12)


@given(steps())
@settings(max_examples=60, deadline=None)
def test_a_carried_out_plan_is_no_slower_on_faster_links(problem: Problem) -> None:
    plan = offload.plan(problem)
    host = problem.tiers[0]
    faster = Tier(
        "host", host.capacity, Link(host.out.bandwidth * 2, host.out.latency), Link(host.back.bandwidth * 2, 0.0)
    )
    assert offload.execute(dataclasses.replace(problem, tiers=(faster,)), plan.spills).seconds <= plan.seconds + 1e-9


def test_against_the_best_plans() -> None:
    """Of the steps of benchmarks/offload_random.py, those of the first seventy that have at most 14 ops."""
    pytest.importorskip("ortools", reason="ortools is not installed")
    ratios: list[float] = []
    for seed, problem in oracles.random_steps(70):
        if len(problem.operations) > 14:
            continue
        plan = offload.plan(problem)
        best, is_proven = oracles.best_seconds(problem, at_most=plan.seconds, seconds=120)
        assert is_proven, seed
        fluid, closed = oracles.fluid_bound(problem), oracles.closed_form_bound(problem)
        assert plan.seconds >= best >= fluid - 1e-6
        assert fluid >= closed - 1e-6
        assert closed >= plan.compute_seconds - 1e-9
        ratios.append(plan.seconds / best)
    assert len(ratios) > 30
    assert max(ratios) <= 1.05
    assert sum(ratios) / len(ratios) <= 1.01


@pytest.mark.parametrize("seed", [0, 3, 5, 6, 13, 31])
def test_the_best_plan_is_found_without_a_known_one(seed: int) -> None:
    """What is proven does not hang on the planner: without its plan the same best is found."""
    pytest.importorskip("ortools", reason="ortools is not installed")
    problem = oracles.random_step(seed)
    known, known_is_proven = oracles.best_seconds(problem, at_most=offload.plan(problem).seconds, seconds=60)
    best, is_proven = oracles.best_seconds(problem, seconds=60)
    assert known_is_proven
    assert is_proven
    assert best == known


@pytest.mark.parametrize("seed", range(6))
def test_more_memory_is_never_slower(seed: int) -> None:
    problem = oracles.random_step(seed)
    live, least = max(oracles.live_bytes(problem)), oracles.needed_bytes(problem)
    last = float("inf")
    for part in range(8, 21):
        if live * part // 20 < least:
            continue
        plan = offload.plan(dataclasses.replace(problem, capacity=live * part // 20))
        assert plan.seconds <= last
        last = plan.seconds
    assert last == problem_seconds(problem)


def problem_seconds(problem: Problem) -> float:
    return sum(op.seconds for op in problem.operations)
