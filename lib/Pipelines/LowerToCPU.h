//===- LowerToCPU.h - Phase 7 for the CPU -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PIPELINES_LOWERTOCPU_H
#define HYPERPARALLEL_LIB_PIPELINES_LOWERTOCPU_H

#include "mlir/Pass/PassManager.h"

namespace mlir::hyperparallel {

/// From local functions on tensors to the LLVM dialect and calls of the
/// runtime.
void buildLowerToCPUPipeline(OpPassManager &manager);
/// Registers it as `hp-lower-to-cpu`.
void registerLowerToCPUPipeline();

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_PIPELINES_LOWERTOCPU_H
