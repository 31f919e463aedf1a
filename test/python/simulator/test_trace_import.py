# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recorded steps as programs: what is written, and that liveness is the trace's."""

from __future__ import annotations

import pytest

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

from hypothesis import given, settings
from hypothesis import strategies as st
from mlir import ir
from recorded import RECORDED_STEPS, recorded_step

from hyperparallel.simulator import Trace, import_trace, read_trace, simulate_program
from hyperparallel.simulator.traces import Operation


def trace(tensors: list[tuple[int, bool]], operations: list[tuple[float, list[int], list[int]]]) -> Trace:
    ops = tuple(Operation("op", seconds, tuple(reads), tuple(writes)) for seconds, reads, writes in operations)
    return Trace("t", tuple(size for size, _ in tensors), tuple(keep for _, keep in tensors), ops)


def test_every_role_of_a_tensor() -> None:
    # 0: a weight that is read and updated; 1: written, read, written again; 2: read before it is written.
    module = import_trace(trace([(8, True), (4, False), (2, False)], [(1.0, [0, 2], [1]), (2.0, [1, 2], [1, 0])]))
    assert (
        str(module)
        == """\
module @t {
  func.func @main(%arg0: tensor<8xi8> {hp.name = "t0", hp.role = "parameter"}) -> (tensor<8xi8> {hp.name = "t0", hp.updates = "t0"}) {
    %0 = tensor.empty() : tensor<4xi8>
    %1 = tensor.empty() : tensor<2xi8>
    %2:2 = supernode.task "op" ins(%arg0 : tensor<8xi8>) outs(%0, %1 : tensor<4xi8>, tensor<2xi8>) {seconds = 1.000000e+00 : f64}
    %3:2 = supernode.task "op" ins(%2#1 : tensor<2xi8>) outs(%2#0, %arg0 : tensor<4xi8>, tensor<8xi8>) {seconds = 2.000000e+00 : f64}
    return %3#1 : tensor<8xi8>
  }
}
"""
    )


def test_what_persists_may_be_made_and_read_by_tasks_at_the_ends() -> None:
    module = import_trace(trace([(8, True), (4, False)], [(1.0, [0], [1])]), resident=True)
    assert (
        str(module)
        == """\
module @t {
  func.func @main() {
    %0 = tensor.empty() : tensor<8xi8>
    %1 = supernode.task "begin" outs(%0 : tensor<8xi8>) {seconds = 0.000000e+00 : f64}
    %2 = tensor.empty() : tensor<4xi8>
    %3 = supernode.task "op" ins(%1 : tensor<8xi8>) outs(%2 : tensor<4xi8>) {seconds = 1.000000e+00 : f64}
    supernode.task "end" ins(%1 : tensor<8xi8>) {seconds = 0.000000e+00 : f64}
    return
  }
}
"""
    )
    assert simulate_program(module).tiers[0].peak == 12


def test_labels_and_seconds_survive_text() -> None:
    odd = Operation('a "quoted" \\ label\n', 0.1 + 0.2, (), (0,))
    module = import_trace(Trace('my "trace"', (3,), (False,), (odd,)))
    again = ir.Module.parse(str(module), module.context)
    task = again.body.operations[0].regions[0].blocks[0].operations[1]
    assert ir.StringAttr(task.attributes["label"]).value == odd.name
    assert ir.FloatAttr(task.attributes["seconds"]).value == odd.seconds


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Any trace: any reads and writes, tensors that nobody uses, sizes and times of 0."""
    count = draw(st.integers(1, 6))
    tensors = [(draw(st.integers(0, 9)), draw(st.booleans())) for _ in range(count)]
    some = st.lists(st.integers(0, count - 1), max_size=4)
    return trace(tensors, draw(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), some, some), max_size=12)))


@settings(max_examples=150, deadline=None)
@given(traces())
def test_liveness_is_that_of_the_trace(recorded: Trace) -> None:
    expected = recorded.simulate()
    result = simulate_program(import_trace(recorded))
    assert result.seconds == expected.seconds
    (memory,) = result.tiers
    assert memory.peak == expected.peak["device"]
    assert [level for level in memory.timeline if level[0] < expected.seconds] == [
        level for level in expected.residency["device"] if level[0] < expected.seconds
    ]
    assert memory.timeline[-1] == expected.residency["device"][-1]


@pytest.mark.parametrize(
    ("name", "seconds", "live", "largest"),
    RECORDED_STEPS,
)
def test_recorded_steps(name: str, seconds: float, live: float, largest: float) -> None:
    path = recorded_step(name)
    recorded = read_trace(path)
    module = import_trace(recorded)
    result = simulate_program(module)
    assert round(result.seconds, 3) == seconds
    assert round(result.tiers[0].peak / 2**30, 2) == live
    main = module.body.operations[0]
    tasks = [op for op in main.regions[0].blocks[0].operations if op.operation.name == "supernode.task"]
    # Each tensor of an op is one operand of its task.
    most = max(sum(ir.RankedTensorType(value.type).shape[0] for value in task.operands) for task in tasks)
    assert round(most / 2**30, 2) == largest
