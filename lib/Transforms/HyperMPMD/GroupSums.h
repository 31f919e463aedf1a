//===- GroupSums.h - sums over several groups -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_GROUPSUMS_H
#define HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_GROUPSUMS_H

#include "lib/Transforms/HyperMPMD/StagePlan.h"

namespace mlir::hyperparallel::hypermpmd {

/// Adds up what one group makes before what several make, so that a sum over
/// microbatches and uses of a weight crosses groups once. Additions at the end
/// of a called function are done by its callers first. Returns how many sums
/// were regrouped.
int64_t groupSums(func::FuncOp main, const StagePlan &plan);

} // namespace mlir::hyperparallel::hypermpmd

#endif // HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_GROUPSUMS_H
