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


def run(body: str, *, synchronous: bool = False) -> Timeline:
    head = HEAD.replace("attributes {", "attributes {hp.synchronous, ") if synchronous else HEAD
    return simulate_program(ir.Module.parse(head + body + "}"))


def busy(timeline: Timeline, kind: StreamKind) -> float:
    return sum(stream.busy for stream in timeline.streams(kind))


def matmul(a: str, b: str, out: str) -> str:
    return MATMUL.format(a, b, out)


BESIDE = f"""
      func.func @main(%a: {T}, %b: {T}) -> {T} {{
        %e = tensor.empty() : {T}
        %0 = {matmul("a", "b", "e")}
        %1 = hypershard.all_reduce %0 over @m {{"tp"}} <sum> : {T} -> {T}
        %f = tensor.empty() : {T}
        %2 = {matmul("a", "b", "f")}
        %3 = arith.addf %1, %2 : {T}
        return %3 : {T}
      }}"""


def test_a_collective_is_under_way_until_its_result_is_read() -> None:
    result = run(BESIDE)
    assert result.seconds == pytest.approx(2e-3 + 2e-3 + 0.12e-3)
    assert busy(result, StreamKind.COMMUNICATION) == pytest.approx(0.4e-3)
    assert result.exposed.communication == pytest.approx(0.0, abs=1e-12)
    assert result.masked_communication == pytest.approx(1.0)


def test_a_part_of_a_collective_is_masked() -> None:
    # Two all-reduces of 0.4 ms on one stream, beside a sum of 0.12 ms that they take some of the memory from.
    result = run(f"""
      func.func @main(%a: {T}, %b: {T}) -> ({T}, {T}, {T}) {{
        %0 = hypershard.all_reduce %a over @m {{"tp"}} <sum> : {T} -> {T}
        %1 = hypershard.all_reduce %b over @m {{"tp"}} <sum> : {T} -> {T}
        %2 = arith.addf %a, %b : {T}
        return %0, %1, %2 : {T}, {T}, {T}
      }}""")
    assert result.seconds == pytest.approx(0.8e-3)
    kernels = busy(result, StreamKind.COMPUTE)
    assert 0.12e-3 < kernels < 0.2e-3
    assert result.exposed.communication == pytest.approx(0.8e-3 - kernels)
    assert result.masked_communication == pytest.approx(kernels / 0.8e-3)


def test_a_function_leaves_nothing_under_way() -> None:
    result = run(f"""
      func.func private @block(%a: {T}, %b: {T}) -> ({T}, {T}) {{
        %1 = hypershard.all_reduce %a over @m {{"tp"}} <sum> : {T} -> {T}
        %3 = arith.addf %a, %b : {T}
        return %1, %3 : {T}, {T}
      }}
      func.func @main(%a: {T}, %b: {T}) -> ({T}, {T}) {{
        %0:2 = call @block(%a, %b) : ({T}, {T}) -> ({T}, {T})
        %1 = arith.addf %a, %b : {T}
        return %0#0, %1 : {T}, {T}
      }}""")
    assert result.seconds == pytest.approx(0.4e-3 + 0.12e-3)


def test_iterations_of_a_loop_are_seen_with_what_they_move_and_hold() -> None:
    # Each iteration: a product (2 ms), whose all-reduce (0.4 ms) the sum (0.12 ms) waits for.
    result = run(f"""
      func.func @main(%a: {T}, %zero: {T}) -> {T} {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c3 = arith.constant 3 : index
        %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %zero) -> ({T}) {{
          %e = tensor.empty() : {T}
          %0 = {matmul("a", "a", "e")}
          %1 = hypershard.all_reduce %0 over @m {{"tp"}} <sum> : {T} -> {T}
          %2 = arith.addf %1, %sum : {T}
          scf.yield %2 : {T}
        }} {{hp.microbatches = 3 : i64}}
        return %r : {T}
      }}""")
    assert [task.op for task in result.tasks] == ["linalg.matmul", "hypershard.all_reduce", "arith.addf"] * 3
    assert result.seconds == pytest.approx(3 * 2.52e-3)
    (use,) = result.collectives
    assert (use.count, use.bytes_received) == (3, 120000.0)
    # Two arguments; the product and its sum over devices, or that and the new sum.
    assert result.tiers[0].peak == pytest.approx(5 * 40000, abs=40000)
    assert result.tiers[0].peak < 3 * 3 * 40000


def test_a_collective_of_a_synchronous_program_is_exposed() -> None:
    result = run(BESIDE, synchronous=True)
    assert result.masked_communication == pytest.approx(0.0)
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


def test_a_collective_is_hidden_until_its_result_is_read() -> None:
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
