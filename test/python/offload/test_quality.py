# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a good plan looks like (cases 19 to 21 and 23): reloads in their order, no stall where bandwidth allows, copies
that cost ops their bandwidth, no cliff."""

from __future__ import annotations

import pytest

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

import itertools
import json
from pathlib import Path
from typing import Any

from mlir.passmanager import PassManager

from hyperparallel import offload
from hyperparallel.offload import Link, Operation, Problem, Storage, Tier
from hyperparallel.pipeline import make_context, parse_program
from hyperparallel.simulator import simulate_program


def layers(count: int, capacity: int, bandwidth: float) -> Problem:
    """Each layer saves 100 bytes in its second going forward, and wants them back in its second going backward."""
    forward = tuple(Operation(1.0, writes=(i,)) for i in range(count))
    backward = tuple(Operation(1.0, reads=(i,)) for i in reversed(range(count)))
    host = Tier("host", 10**6, Link(bandwidth), Link(bandwidth))
    return Problem(forward + backward, (Storage(100),) * count, capacity, (host,))


def test_case_19_reloads_follow_what_frees_their_memory() -> None:
    """Of A, B, C, D the first two leave; B comes when D's memory is free, A when C's is, and not both early."""
    plan = offload.plan(layers(4, 200, 100.0))
    fetched = {spill.storage: spill.fetched for spill in plan.spills}
    assert set(fetched) == {0, 1}
    # Backward: D is op 4, C op 5, B op 6, A op 7.
    assert (fetched[1], fetched[0]) == (5, 6)
    assert plan.peak_bytes == 200


@pytest.mark.parametrize("resident", [4, 5, 6])
def test_case_20_no_stall_where_bandwidth_allows(resident: int) -> None:
    plan = offload.plan(layers(8, resident * 100 + 100, 100.0))
    assert len(plan.spills) >= 8 - resident - 1
    assert plan.seconds == plan.compute_seconds


WIDE = "tensor<262144xf32>"
MEMORY_BOUND = f"""module attributes {{supernode.machine = #supernode.machine<"box",
    groups = [<"npu" = 1, memory = "hbm", launch = 1.0e-9, vector = 1.0e15, rates = [f32 = 1.0e15]>],
    tiers = [<"hbm" in "device", capacity = 1.0e9, bandwidth = 1.0e9>, <"dram" in "device", capacity = 1.0e9, bandwidth = 1.0e12>],
    links = [<"dram" -> "hbm", latency = 0.0, bandwidth = 5.0e8>, <"hbm" -> "dram", latency = 0.0, bandwidth = 5.0e8>]>}} {{
  func.func private @one(%x: {WIDE}) -> {WIDE} {{
    %e = tensor.empty() : {WIDE}
    %r = linalg.exp ins(%x : {WIDE}) outs(%e : {WIDE}) -> {WIDE}
    return %r : {WIDE}
  }}
  func.func private @two(%x: {WIDE}, %y: {WIDE}) -> {WIDE} {{
    %e = tensor.empty() : {WIDE}
    %r = linalg.add ins(%x, %y : {WIDE}, {WIDE}) outs(%e : {WIDE}) -> {WIDE}
    return %r : {WIDE}
  }}
  func.func @main(%x: {WIDE} {{hp.name = "x", hp.role = "input"}}) -> {WIDE} {{
    %saved = call @one(%x) : ({WIDE}) -> {WIDE}
    %a = call @one(%x) : ({WIDE}) -> {WIDE}
    %b = call @one(%a) : ({WIDE}) -> {WIDE}
    %c = call @one(%b) : ({WIDE}) -> {WIDE}
    %d = call @one(%c) : ({WIDE}) -> {WIDE}
    %r = call @two(%saved, %d) : ({WIDE}, {WIDE}) -> {WIDE}
    return %r : {WIDE}
  }}
}}"""


def test_case_21_copies_cost_ops_their_bandwidth(tmp_path: Path) -> None:
    """Ops that take all of the memory's 1 GB/s go on at half their speed beside a copy at 0.5 GB/s; the simulator agrees."""
    size, report = 262144 * 4, tmp_path / "plan.json"
    module = parse_program(MEMORY_BOUND, "case", make_context())
    handler: Any = module.context.attach_diagnostic_handler(lambda _: True)
    steps = (
        f"offload-plan-transfers{{capacity={4 * size} recompute=false report={report}}},"
        "offload-insert-transfers,offload-verify-tiers"
    )
    with module.context:
        PassManager.parse(f"builtin.module({steps})", module.context).run(module.operation)
    handler.detach()
    figures = json.loads(report.read_text(encoding="utf-8"))
    assert (figures["bytes_out"], figures["bytes_in"]) == (size, size)
    # It leaves while an op runs, and is waited for on its way back, when its memory is free.
    assert figures["slowed_down_s"] == pytest.approx(0.5 * size / 0.5e9, rel=1e-4)
    assert figures["wait_out_s"] + figures["wait_in_s"] == pytest.approx(size / 0.5e9, rel=1e-4)
    assert figures["step_s"] == pytest.approx(figures["compute_s"] + 1.5 * size / 0.5e9, rel=1e-4)
    assert simulate_program(module).seconds == pytest.approx(figures["step_s"], rel=1e-9)


def test_case_23_no_cliff() -> None:
    """A little less memory costs in proportion; less memory and less bandwidth never help."""
    count, live = 50, 5000
    slow = 25.0
    assert offload.plan(layers(count, live, slow)).seconds == 2 * count
    # 98 %: one storage has to leave, and there is time for it.
    assert offload.plan(layers(count, live * 98 // 100, slow)).seconds == pytest.approx(2 * count)
    by_capacity = [offload.plan(layers(count, live * part // 100, slow)) for part in range(100, 10, -6)]
    seconds = [plan.seconds for plan in by_capacity]
    assert all(a <= b + 1e-9 for a, b in itertools.pairwise(seconds))
    for before, after in itertools.pairwise(by_capacity):
        # What leaves for six percent less (three storages), out and back.
        assert after.seconds - before.seconds <= 2 * 300 / slow + 1e-9
        assert after.peak_bytes <= before.peak_bytes
    by_bandwidth = [offload.plan(layers(count, 1500, bandwidth)).seconds for bandwidth in (10.0, 20.0, 40.0, 80.0)]
    assert all(a >= b for a, b in itertools.pairwise(by_bandwidth))
