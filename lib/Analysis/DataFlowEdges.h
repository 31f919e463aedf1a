//===- DataFlowEdges.h - values that must be split alike --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Where control flow joins, several sources feed one target: the init and the
// yield of a loop feed its block argument and result; both branches feed the
// result of an `if`; all callers feed a function's argument. The targets of an
// edge have one sharding, and each source is resharded to it where it differs.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_DATAFLOWEDGES_H
#define HYPERPARALLEL_LIB_ANALYSIS_DATAFLOWEDGES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::hyperparallel {

struct DataFlowEdge {
  /// Operands that feed the edge, in program order.
  SmallVector<OpOperand *, 3> sources;
  /// Block arguments and results that take the value.
  SmallVector<Value, 2> targets;
  /// Set if the edge is result `functionResult` of this function (no target in
  /// the function itself but the argument that it updates; the results of its
  /// calls are the targets).
  Operation *function = nullptr;
  unsigned functionResult = 0;
};

/// Every edge of ranked tensors in the module, in a fixed order. Calls of
/// functions of the module and ops of RegionBranchOpInterface are understood.
SmallVector<DataFlowEdge> collectDataFlowEdges(ModuleOp module);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_DATAFLOWEDGES_H
