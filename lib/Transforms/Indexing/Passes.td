//===- Passes.td - passes about computed places ------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_TRANSFORMS_INDEXING_PASSES
#define HYPERPARALLEL_TRANSFORMS_INDEXING_PASSES

include "mlir/Pass/PassBase.td"

def AssertReadsPass : Pass<"indexing-assert-reads", "ModuleOp"> {
  let summary = "Assert that what is read at a place that data says is there";
  let description = [{
    A `tensor.extract` in the body of a structured op reads whatever lies at its
    indices. Where one of them comes from data, and no assertion of the body
    bounds it, it is asserted to be at least 0 and less than the dimension's
    extent: a wrong index ends the run with a message, as in PyTorch, and reads
    nothing that is not the tensor's. Indices that are made of loops and constants
    alone, in this op or in those before it, are as the program was written, and
    not asserted; a constant that is no place of its dimension is refused.
  }];
  let statistics = [
    Statistic<"numAsserted", "num-asserted", "Indices that are asserted now">,
    Statistic<"numKnown", "num-known", "Indices that were asserted already">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // HYPERPARALLEL_TRANSFORMS_INDEXING_PASSES
