//===- CostReport.h - the cost of every task, for people --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_COSTREPORT_H
#define HYPERPARALLEL_LIB_ANALYSIS_COSTREPORT_H

#include "lib/Analysis/CostModel.h"

namespace mlir::hyperparallel {

/// One line per function and per task that takes time, in program order.
void printCosts(ModuleOp module, CostModel &model, raw_ostream &os);

/// The same as JSON: {"machine", "functions": [{"name", totals...,
/// "tasks": [{"op", "path", "callee", ...}]}]}.
void printCostsAsJson(ModuleOp module, CostModel &model, raw_ostream &os);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_COSTREPORT_H
