//===- FreeResults.h - results that cost nothing to have -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_FREERESULTS_H
#define HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_FREERESULTS_H

#include "lib/Transforms/HyperMPMD/StagePlan.h"

namespace mlir::hyperparallel::hypermpmd {

/// Gives what called functions make of constants and inputs alone, and others
/// than their own group read, functions of its own, whose calls have no place:
/// they are made wherever they are read. Returns how many results that are.
int64_t freeResults(func::FuncOp main, const StagePlan &plan);

} // namespace mlir::hyperparallel::hypermpmd

#endif // HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_FREERESULTS_H
