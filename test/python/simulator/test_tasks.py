# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The engine against closed forms, conservation, monotony and determinism."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

from hyperparallel.simulator import Simulation, SimulationError, Task, simulate


def test_one_task() -> None:
    result = simulate([Task("compute", 0.25, takes={"hbm": 5.0}, gives={"hbm": 2.0})], tiers={"hbm": 10.0})
    assert result.seconds == 0.25
    assert result.spans == ((0.0, 0.25),)
    assert result.busy == {"compute": 0.25}
    assert result.peak == {"hbm": 15.0}
    assert result.residency == {"hbm": ((0.0, 15.0), (0.25, 13.0))}


def test_nothing_to_do() -> None:
    assert simulate([], segments={"wire": 1.0}) == Simulation(0.0, (), {}, {"wire": 0.0}, {}, {})


def test_latency_then_bytes() -> None:
    alone = simulate([Task("in", 1.5e-6, 1e6, 98e9, ("ub",))], segments={"ub": 196e9})
    assert alone.seconds == pytest.approx(1.5e-6 + 1e6 / 98e9, rel=1e-12)
    narrow = simulate([Task("in", 1.5e-6, 1e6, 98e9, ("ub",))], segments={"ub": 10e9})
    assert narrow.seconds == pytest.approx(1.5e-6 + 1e6 / 10e9, rel=1e-12)


def test_two_transfers_on_one_link_share_it() -> None:
    # Both at 5 until the short one is through at 20, then the other at 10.
    both = [Task(name, bytes=size, rate=10.0, segments=("wire",)) for name, size in (("a", 150.0), ("b", 100.0))]
    assert simulate(both, segments={"wire": 10.0}).spans == ((0.0, 25.0), (0.0, 20.0))
    # On one stream they are served one after the other.
    queued = [replace(task, stream="a") for task in both]
    assert simulate(queued, segments={"wire": 10.0}).spans == ((0.0, 15.0), (15.0, 25.0))


def test_a_slow_flow_leaves_the_rest_to_others() -> None:
    flows = [Task("a", bytes=20.0, rate=2.0, segments=("wire",)), Task("b", bytes=80.0, rate=100.0, segments=("wire",))]
    assert simulate(flows, segments={"wire": 10.0}).spans == ((0.0, 10.0), (0.0, 10.0))


@pytest.mark.parametrize("dies", [1, 2, 3, 16])
def test_dies_contend_for_the_memory_of_their_node(dies: int) -> None:
    seconds = 1.5e-6 + 1e9 / min(98e9, 368e9 / dies)
    copy = Task("", 1.5e-6, 1e9, 98e9, ("host",))
    each = simulate([replace(copy, stream=f"die{i}") for i in range(dies)], segments={"host": 368e9})
    assert each.seconds == pytest.approx(seconds, rel=1e-12)
    # The same, when one stands for all.
    once = simulate([replace(copy, stream="die", members=float(dies))], segments={"host": 368e9})
    assert once.seconds == pytest.approx(seconds, rel=1e-12)
    assert once.moved["host"] == pytest.approx(each.moved["host"])


def test_ring_all_reduce_step_by_step() -> None:
    # p ranks, 2 (p - 1) steps: each sends its part to its neighbour once it has received one.
    ranks, size, latency, rate = 5, 4000.0, 1e-3, 1e6
    tasks: list[Task] = []
    for step in range(2 * (ranks - 1)):
        for rank in range(ranks):
            before = ((step - 1) * ranks + (rank - 1) % ranks,) if step else ()
            tasks.append(Task(f"r{rank}", latency, size / ranks, rate, (f"wire{rank}",), before))
    result = simulate(tasks, segments={f"wire{rank}": rate for rank in range(ranks)})
    assert result.seconds == pytest.approx(2 * (ranks - 1) * (latency + size / ranks / rate), rel=1e-12)


@pytest.mark.parametrize(("stages", "microbatches"), [(1, 1), (4, 8), (16, 64)])
def test_pipeline_fills_and_drains(stages: int, microbatches: int) -> None:
    forward, backward = 1.0, 2.0
    tasks: list[Task] = []
    for _ in range(microbatches):
        for stage in range(stages):
            before = (len(tasks) - 1,) if stage else ()
            tasks.append(Task(f"s{stage}", forward, after=before))
    for batch in range(microbatches):
        for stage in reversed(range(stages)):
            after = (len(tasks) - 1,) if stage < stages - 1 else ((microbatches - 1 - batch) * stages + stage,)
            tasks.append(Task(f"s{stage}", backward, after=after))
    result = simulate(tasks)
    assert result.seconds == (microbatches + stages - 1) * (forward + backward)
    assert set(result.busy.values()) == {microbatches * (forward + backward)}


def test_deadlock_is_found_and_named() -> None:
    circle = [Task("a", 1.0, after=(1,)), Task("b", 1.0, after=(0,))]
    with pytest.raises(SimulationError, match="deadlock: task 0 on stream 0 waits for task 1 on stream 1; task 1 on"):
        simulate(circle)
    # Streams in an order that cannot be.
    crossed = [Task("a", 1.0, after=(3,)), Task("a", 1.0), Task("b", 1.0, after=(1,)), Task("b", 1.0)]
    with pytest.raises(SimulationError, match="deadlock"):
        simulate(crossed)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (Task("a", -1.0), "expected task 0 to take no negative time or bytes"),
        (Task("a", bytes=float("nan"), rate=1.0), "expected task 0 to take no negative time or bytes"),
        (Task("a", bytes=1.0), "expected task 0 to move its bytes at a positive rate"),
        (Task("a", members=0.0), "expected task 0 to stand for at least 1 device"),
        (Task("a", after=(7,)), "expected task 0 to be after one of 1 tasks but got 7"),
        (Task("a", segments=("bus",)), "expected task 0 to use one of the segments wire but got bus"),
        (Task("a", takes={"pool": 1.0}), "expected task 0 to use one of the tiers hbm but got pool"),
    ],
)
def test_wrong_tasks(task: Task, message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        simulate([task], segments={"wire": 1.0}, tiers={"hbm": 0.0})


def test_wrong_machines_and_noise() -> None:
    with pytest.raises(SimulationError, match="expected segment 0 to have a positive bandwidth"):
        simulate([Task("a", 1.0)], segments={"wire": 0.0})
    with pytest.raises(SimulationError, match=r"expected noise in \[0, 1\)"):
        simulate([Task("a", 1.0)], noise=1.0)


def test_noise_is_bounded_and_repeatable() -> None:
    tasks = [Task("a", 1.0 + i) for i in range(100)]
    exact = simulate(tasks)
    noisy = simulate(tasks, noise=0.1, seed=1)
    assert noisy == simulate(tasks, noise=0.1, seed=1)
    assert noisy != simulate(tasks, noise=0.1, seed=2)
    for (start, end), (exact_start, exact_end) in zip(noisy.spans, exact.spans, strict=True):
        assert 0.9 <= (end - start) / (exact_end - exact_start) <= 1.1


WIRES = {"x": 10.0, "y": 4.0, "z": 25.0}


@st.composite
def programs(draw: st.DrawFn) -> list[Task]:
    """Any program that can end: tasks depend on earlier ones only."""
    tasks: list[Task] = []
    for number in range(draw(st.integers(1, 20))):
        tasks.append(
            Task(
                draw(st.sampled_from("abc")),
                draw(st.sampled_from([0.0, 0.5, 1.25])),
                draw(st.sampled_from([0.0, 3.0, 17.0])),
                draw(st.sampled_from([1.0, 6.0, 30.0])),
                tuple(draw(st.sets(st.sampled_from(sorted(WIRES)), max_size=2))),
                tuple(draw(st.sets(st.integers(0, number - 1), max_size=3))) if number else (),
                members=draw(st.sampled_from([1.0, 2.0, 5.0])),
            )
        )
    return tasks


@settings(max_examples=200, deadline=None)
@given(programs())
def test_conservation_and_order(tasks: list[Task]) -> None:
    result = simulate(tasks, segments=WIRES)
    assert result == simulate(tasks, segments=WIRES)
    assert all(busy <= result.seconds + 1e-9 for busy in result.busy.values())
    for wire, capacity in WIRES.items():
        carried = sum(task.bytes * task.members for task in tasks if wire in task.segments)
        assert result.moved[wire] == pytest.approx(carried)
        assert carried <= capacity * result.seconds * (1 + 1e-9)
    ends: dict[str, float] = {}
    for task, (start, end) in zip(tasks, result.spans, strict=True):
        assert start >= ends.get(task.stream, 0.0)
        assert all(start >= result.spans[before][1] for before in task.after)
        least = task.seconds + (task.bytes / task.rate if task.bytes else 0.0)
        assert end - start >= least * (1 - 1e-9) - 1e-12
        ends[task.stream] = end


@settings(max_examples=100, deadline=None)
@given(programs(), st.sampled_from([1.5, 3.0]))
def test_a_slower_chain_takes_longer(tasks: list[Task], factor: float) -> None:
    # One stream: nothing overlaps, so that every latency and every bandwidth counts.
    chain = [replace(task, stream="a", members=1.0) for task in tasks]
    usual = simulate(chain, segments=WIRES).seconds
    late = simulate([replace(task, seconds=task.seconds * factor) for task in chain], segments=WIRES).seconds
    wide = simulate(chain, segments={wire: capacity * factor for wire, capacity in WIRES.items()}).seconds
    assert wide <= usual * (1 + 1e-9)
    assert usual <= late * (1 + 1e-9)
