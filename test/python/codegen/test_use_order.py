# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is generated follows from the program as it is written, not from how it came into memory.

Lists of uses have an order that no text shows: it tells in which order ops were made or read. A program that is planned
(from its text) and then compiled (from itself) must allocate the same in both.
"""

from __future__ import annotations

from typing import Any

from mlir import ir
from mlir.passmanager import PassManager

from hyperparallel.pipeline import make_context

PROGRAM = """
func.func @main(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %one = tensor.empty() : tensor<64xf32>
  %two = tensor.empty() : tensor<64xf32>
  %p = linalg.exp ins(%x : tensor<64xf32>) outs(%one : tensor<64xf32>) -> tensor<64xf32>
  %s = tensor.extract_slice %p[0] [32] [1] : tensor<64xf32> to tensor<32xf32>
  %t = tensor.concat dim(0) %s, %s : (tensor<32xf32>, tensor<32xf32>) -> tensor<64xf32>
  %q = linalg.add ins(%p, %t : tensor<64xf32>, tensor<64xf32>) outs(%two : tensor<64xf32>) -> tensor<64xf32>
  return %p, %q : tensor<64xf32>, tensor<64xf32>
}
"""


def run(module: ir.Module, steps: str) -> str:
    with module.context:
        PassManager.parse(f"builtin.module({steps})", module.context).run(module.operation)
    return str(module)


def test_the_order_of_uses_changes_nothing() -> None:
    context = make_context()
    merged = ir.Module.parse(PROGRAM, context)
    entry: Any = next(iter(merged.body.operations))
    empties = [op for op in entry.regions[0].blocks[0].operations if op.operation.name == "tensor.empty"]
    empties[0].result.replace_all_uses_with(empties[1].result)
    empties[0].operation.erase()
    read = ir.Module.parse(str(merged), context)

    def users(module: ir.Module) -> list[str]:
        first: Any = next(iter(module.body.operations))
        empty = next(op for op in first.regions[0].blocks[0].operations if op.operation.name == "tensor.empty")
        return [use.owner.name for use in empty.result.uses]

    assert users(merged) == users(read)[::-1], "the two are to differ in the order of uses"
    assert run(merged, "hp-prepare-bufferization") == run(read, "hp-prepare-bufferization")
