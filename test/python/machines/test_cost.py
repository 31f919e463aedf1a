# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost report as people get it in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

from hyperparallel import cost, errors, machines

PROGRAM = """
func.func private @layer(%x: tensor<64x32xf32>, %w: tensor<32x32xf32>) -> tensor<64x32xf32> {
  %e = tensor.empty() : tensor<64x32xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<64x32xf32>, tensor<32x32xf32>) outs(%e : tensor<64x32xf32>)
       -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}
func.func @main(%x: tensor<64x32xf32>, %w: tensor<32x32xf32>) -> tensor<64x32xf32> {
  %0 = call @layer(%x, %w) {hp.path = "layers.0"} : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  %1 = call @layer(%0, %w) {hp.path = "layers.1"} : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  return %1 : tensor<64x32xf32>
}
"""


def test_calls_are_sums() -> None:
    report = cost.cost_of_text(PROGRAM, machine="cpu-supernode")
    layer, main = report.function("layer"), report.function("main")
    assert layer.total.flops == 2 * 64 * 32 * 32
    assert layer.total.contraction_flops == layer.total.flops
    assert [(task.callee, task.path) for task in main.tasks] == [("layer", "layers.0"), ("layer", "layers.1")]
    assert main.total.flops == 2 * layer.total.flops
    assert main.total.seconds == pytest.approx(2 * layer.total.seconds)
    # The operations after 20,480 bytes are packed (the accumulator is read, too), meanwhile all bytes through the cache, and
    # a launch; not worth a cut over cores.
    machine = machines.load("cpu-supernode")
    group = machine.groups[0]
    compute, memory = 131072 / group.rates["f32"] + 20480 / group.packing, 28672 / machine.tier("cache").bandwidth
    assert layer.total.seconds == pytest.approx(max(compute, memory) + group.launch)


def test_machine_is_chosen_and_the_module_left_alone() -> None:
    text = f'module attributes {{supernode.machine = #supernode.machine<preset = "a3-node">}} {{ {PROGRAM} }}'
    assert cost.cost_of_text(text).machine == "a3-node"
    assert cost.cost_of_text(text, machine="h200-node").machine == "h200-node"
    assert cost.cost_of_text(PROGRAM).machine == "cpu-supernode"
    assert cost.cost_of_text(PROGRAM, machine=machines.load("atlas950")).machine == "atlas950"

    from mlir import ir

    with ir.Context():
        module = ir.Module.parse(text)
        before = str(module)
        cost.cost_of(module, machine="h200-node")
        assert str(module) == before


def test_table_lists_functions_and_tasks() -> None:
    lines = cost.table(cost.cost_of_text(PROGRAM, machine="h200-node")).splitlines()
    assert lines[0] == "machine h200-node"
    assert lines[1].split() == ["task", "flops", "read", "written", "received", "time", "bound"]
    assert lines[2].split()[:3] == ["@layer", "131.07", "kFLOP"]
    assert lines[-1].split()[:3] == ["func.call", "@layer", "layers.1"]


def test_errors(tmp_path: Path) -> None:
    path = tmp_path / "broken.mlir"
    path.write_text("func.func @main(")
    with pytest.raises(errors.CompilationError, match="expected a program but it cannot be read"):
        cost.cost_of_file(path)
    with pytest.raises(errors.CompilationError, match="cannot read the file: No such file"):
        cost.cost_of_file(tmp_path / "none.mlir")
    with pytest.raises(machines.MachineError):
        cost.cost_of_text(PROGRAM, machine="a4-node")
