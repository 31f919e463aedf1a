# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled programs: times, overlap and residency that can be counted by hand.

The machine does 1e9 contraction operations a second, moves 1e9 bytes a second to and from memory, and 1e8 between
devices; no launch and no latency. A product of 100 x 100 matrices takes 2 ms, 80 KB take 0.16 ms to memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

from mlir import ir

from hyperparallel import dialects
from hyperparallel.simulator import SimulationError, StreamKind, Timeline, simulate_program

MACHINE = """#supernode.machine<"round",
    groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 1.0e9, efficiency = 0.5, rates = [f32 = 2.0e9]>],
    levels = [<"node" = 2, latency = 0, bandwidth = 1.0e8, algorithms = [direct]>],
    tiers = [<"hbm" in "device", capacity = 1.0e9, bandwidth = 1.0e9>]>"""
T = "tensor<100x100xf32>"
HEAD = f"""module attributes {{supernode.machine = {MACHINE}}} {{
hypershard.mesh @m = <["tp"=2]>
"""
MATMUL = f"linalg.matmul ins(%{{}}, %{{}} : {T}, {T}) outs(%{{}} : {T}) -> {T}"


@pytest.fixture(autouse=True)
def context() -> Iterator[ir.Context]:
    with ir.Context() as context:
        dialects.register(context)
        yield context


def run(body: str) -> Timeline:
    return simulate_program(ir.Module.parse(HEAD + body + "}"))


def busy(timeline: Timeline, kind: StreamKind) -> float:
    return sum(stream.busy for stream in timeline.streams(kind))


def matmul(a: str, b: str, out: str) -> str:
    return MATMUL.format(a, b, out)


def test_a_collective_that_blocks_is_exposed() -> None:
    result = run(f"""
      func.func @main(%a: {T}, %b: {T}) -> {T} {{
        %e = tensor.empty() : {T}
        %0 = {matmul("a", "b", "e")}
        %1 = hypershard.all_reduce %0 over @m {{"tp"}} <sum> : {T} -> {T}
        %f = tensor.empty() : {T}
        %2 = {matmul("a", "b", "f")}
        %3 = arith.addf %1, %2 : {T}
        return %3 : {T}
      }}""")
    # Two products, an all-reduce of 40 KB (each half sent twice: 0.4 ms), and a sum of 120 KB (0.12 ms).
    assert [task.op for task in result.tasks] == [
        "linalg.matmul",
        "hypershard.all_reduce",
        "linalg.matmul",
        "arith.addf",
    ]
    assert result.seconds == pytest.approx(2e-3 + 0.4e-3 + 2e-3 + 0.12e-3)
    assert busy(result, StreamKind.COMPUTE) == pytest.approx(4.12e-3)
    assert result.exposed.communication == pytest.approx(0.4e-3)
    assert result.flops == 2 * 2e6 + 1e4
    # At the peak of 2e9 the contractions would take half of their 4 ms.
    assert result.mfu == pytest.approx(2e-3 / 4.52e-3)
    (use,) = result.collectives
    assert (use.op, use.count, use.bytes_received) == ("hypershard.all_reduce", 1, 40000.0)


def test_a_collective_that_is_started_early_is_hidden() -> None:
    result = run(f"""
      func.func @main(%a: {T}, %b: {T}) -> {T} {{
        %e = tensor.empty() : {T}
        %0 = {matmul("a", "b", "e")}
        %w = hypershard.all_reduce_start %0 over @m {{"tp"}} <sum> : {T} -> !hypershard.future<{T}>
        %f = tensor.empty() : {T}
        %2 = {matmul("a", "b", "f")}
        %1 = hypershard.done %w : !hypershard.future<{T}> -> {T}
        %3 = arith.addf %1, %2 : {T}
        return %3 : {T}
      }}""")
    assert result.seconds == pytest.approx(4.12e-3)
    assert busy(result, StreamKind.COMMUNICATION) == pytest.approx(0.4e-3)
    assert result.exposed.communication == pytest.approx(0.0, abs=1e-12)


def test_calls_are_expanded_with_their_paths() -> None:
    result = run(f"""
      func.func private @layer(%x: {T}, %w: {T}) -> {T} {{
        %e = tensor.empty() : {T}
        %0 = {matmul("x", "w", "e")}
        return %0 : {T}
      }}
      func.func @main(%x: {T}, %w: {T}) -> {T} {{
        %0 = call @layer(%x, %w) {{hp.path = "layers.0"}} : ({T}, {T}) -> {T}
        %1 = call @layer(%0, %w) {{hp.path = "layers.1"}} : ({T}, {T}) -> {T}
        %2 = call @layer(%1, %w) {{hp.path = "layers.2"}} : ({T}, {T}) -> {T}
        return %2 : {T}
      }}""")
    assert [task.path for task in result.tasks] == ["layers.0", "layers.1", "layers.2"]
    assert result.seconds == pytest.approx(6e-3)
    # Arguments stay; what a layer makes lives until the next has read it, so that two are there at once.
    (hbm,) = result.tiers
    assert hbm.peak == 4 * 40000
    assert [bytes for _, bytes in hbm.timeline] == [120000, 160000, 160000, 120000]
    assert hbm.capacity == 1e9


def test_a_result_takes_the_place_of_its_destination() -> None:
    result = run(f"""
      func.func @main(%x: {T}, %w: {T}) -> {T} {{
        %zero = arith.constant 0.0 : f32
        %e = tensor.empty() : {T}
        %f = linalg.fill ins(%zero : f32) outs(%e : {T}) -> {T}
        %0 = {matmul("x", "w", "f")}
        return %0 : {T}
      }}""")
    assert [task.op for task in result.tasks] == ["linalg.matmul"]  # which begins with zeros by itself
    assert result.tiers[0].peak == 3 * 40000


def test_an_empty_tensor_takes_no_memory_until_it_is_written() -> None:
    result = run(f"""
      func.func @main(%x: {T}, %w: {T}) -> {T} {{
        %e = tensor.empty() : {T}
        %0 = {matmul("x", "w", "e")}
        %1 = {matmul("x", "x", "e")}
        %2 = arith.addf %0, %1 : {T}
        return %2 : {T}
      }}""")
    # Two arguments, then both products beside each other, and the sum beside them; only the sum is left.
    assert [bytes for _, bytes in result.tiers[0].timeline] == [120000, 160000, 200000, 120000]


def test_no_such_function() -> None:
    with pytest.raises(SimulationError, match="expected a function @main with one block to simulate"):
        run("")
