# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the Offload dialect moves is simulated as copies beside the kernels, with the memory that it takes."""

from __future__ import annotations

import pytest

pytest.importorskip("mlir")

from mlir import ir

from hyperparallel import dialects
from hyperparallel.simulator import simulate_program

MACHINE = """#supernode.machine<"box",
  groups = [<"npu" = 1, memory = "hbm", launch = 0.0, vector = 1.0e9, rates = [f32 = 1.0e9]>],
  tiers = [<"hbm" in "device", capacity = 1.0e6, bandwidth = 1.0e12>, <"dram" in "device", capacity = 1.0e6, bandwidth = 1.0e12>],
  links = [<"dram" -> "hbm", latency = 1.0e-3, bandwidth = 1.0e6>, <"hbm" -> "dram", latency = 2.0e-3, bandwidth = 5.0e5>]>"""
DRAM = "tensor<4000xi8, #offload.tier<dram>>"


def simulated(body: str):
    context = ir.Context()
    dialects.register(context)
    with context:
        return simulate_program(ir.Module.parse(f"module attributes {{supernode.machine = {MACHINE}}} {{ {body} }}"))


@pytest.mark.parametrize(("seconds", "wait"), [(1e-3, 4e-3), (5e-3, 0.0), (9e-3, 0.0)])
def test_a_prefetch_is_hidden_by_the_kernel_beside_it(seconds: float, wait: float) -> None:
    """4,000 bytes take 1 ms + 4 ms."""
    step = simulated(f"""
      func.func @main(%w: {DRAM}, %x: tensor<8xi8>) -> tensor<8xi8> {{
        %e = tensor.empty() : tensor<8xi8>
        %f = offload.prefetch %w : {DRAM} -> <tensor<4000xi8>>
        %a = supernode.task "a" ins(%x : tensor<8xi8>) outs(%e : tensor<8xi8>) {{seconds = {seconds:e}}}
        %d = offload.wait %f : <tensor<4000xi8>>
        %e2 = tensor.empty() : tensor<8xi8>
        %b = supernode.task "b" ins(%a, %d : tensor<8xi8>, tensor<4000xi8>) outs(%e2 : tensor<8xi8>) {{seconds = 2.0e-3}}
        offload.detach %d : tensor<4000xi8>
        return %b : tensor<8xi8>
      }}""")
    assert step.first_step_seconds == pytest.approx(max(seconds, 5e-3) + 2e-3, rel=1e-9)
    assert step.exposed.transfer == pytest.approx(wait, abs=1e-9)
    peaks = {tier.name: tier.peak for tier in step.tiers}
    assert peaks["dram"] == 4000
    assert 4000 < peaks["hbm"] <= 4000 + 4 * 8


def test_a_store_holds_its_source_until_it_has_ended() -> None:
    """4,000 bytes leave in 2 ms + 8 ms, and come back after that."""
    step = simulated(f"""
      func.func @main(%x: tensor<8xi8>) -> tensor<8xi8> {{
        %e = tensor.empty() : tensor<4000xi8>
        %a = supernode.task "a" ins(%x : tensor<8xi8>) outs(%e : tensor<4000xi8>) {{seconds = 1.0e-3}}
        %s = offload.store %a : tensor<4000xi8> -> <{DRAM}>
        %h = offload.wait %s : <{DRAM}>
        offload.detach %a : tensor<4000xi8>
        %f = offload.prefetch %h : {DRAM} -> <tensor<4000xi8>>
        %d = offload.wait %f : <tensor<4000xi8>>
        %e2 = tensor.empty() : tensor<8xi8>
        %b = supernode.task "b" ins(%d : tensor<4000xi8>) outs(%e2 : tensor<8xi8>) {{seconds = 1.0e-3}}
        return %b : tensor<8xi8>
      }}""")
    assert step.first_step_seconds == pytest.approx(1e-3 + 10e-3 + 5e-3 + 1e-3, rel=1e-9)
    streams = {stream.name: stream.busy for stream in step.groups[0].streams}
    assert streams["hbm -> dram"] == pytest.approx(10e-3)
    assert streams["dram -> hbm"] == pytest.approx(5e-3)
