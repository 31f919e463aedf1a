# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiled programs compute on the CPU, their fragments and CANN's operators compute on an NPU: on the fake one.

The fake runs the HFusion text that ships with a program, through Ascend's own tool (test/Runtime/fakes/FakeAscendCL.cpp),
and holds every access against all others.
"""

from __future__ import annotations

from pathlib import Path

import codegen_cases
import pytest
import test_contractions
import test_execution
from ascend_fakes import use_fake_npu

from hyperparallel.bishengir import assemble_fragments

TAKEN = (
    test_contractions.test_layouts,
    test_contractions.test_adds_to_its_init,
    test_execution.test_reductions_along_either_dimension,
    test_execution.test_gather,
    test_execution.test_assertion_ends_the_run,
)

for _test in TAKEN:
    globals()[_test.__name__] = _test


@pytest.fixture(autouse=True)
def on_the_fake_npu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile for NPUs, and run on fake ones."""
    use_fake_npu(monkeypatch)
    monkeypatch.setattr(codegen_cases, "TARGET", "ascend")


def test_fragments_are_scheduled_for_the_chip(tmp_path: Path) -> None:
    program = codegen_cases.compile_text(
        """
        func.func @main(%x: tensor<6x40xf32>) -> tensor<6x40xf32> {
          %e = tensor.empty() : tensor<6x40xf32>
          %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
              iterator_types = ["parallel", "parallel"]} ins(%x : tensor<6x40xf32>) outs(%e : tensor<6x40xf32>) {
          ^bb0(%a: f32, %b: f32):
            %1 = math.exp %a : f32
            %2 = math.tanh %1 : f32
            linalg.yield %2 : f32
          } -> tensor<6x40xf32>
          return %0 : tensor<6x40xf32>
        }""",
        tmp_path / "program.so",
    )
    (fragment,) = assemble_fragments(program.with_name("kernels.mlir"), "Ascend910B1")
    assert (fragment.core, fragment.blocks >= 1) == ("AIV", True)
    assert "hivm.hir" in program.with_name("kernels.hivm.mlir").read_text()
