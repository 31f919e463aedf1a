//===- StagePlan.h - which group runs which blocks --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_STAGEPLAN_H
#define HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_STAGEPLAN_H

#include "dialects/HyperMPMD/HyperMPMD.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::hyperparallel::hypermpmd {

/// A plan, fitted to a program.
struct StagePlan {
  TopologyAttr topology;
  /// The group of each stage.
  SmallVector<StringAttr> groups;
  /// The stage of each path (`hp.path`) that the plan speaks of.
  llvm::StringMap<int64_t> stageOfPath;

  /// Reads the plan (JSON, or @ and a file's name). Where it names no blocks,
  /// the calls of `main` are cut into stages by cost. Fails with an error.
  static FailureOr<StagePlan> read(StringRef text, func::FuncOp main);
};

} // namespace mlir::hyperparallel::hypermpmd

#endif // HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_STAGEPLAN_H
