//===- Check.h - whether a plan is safe -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PLANNER_CHECK_H
#define HYPERPARALLEL_LIB_PLANNER_CHECK_H

#include "lib/Planner/Lifetimes.h"

namespace mlir::hyperparallel::planner {

/// Uses that the spills add: what computing storages again reads.
std::vector<Use> usesToRecompute(const Problem &problem,
                                 const std::vector<Spill> &spills);

/// By tier, the bytes there at each slot. A copy lies there from the slot where
/// it is issued until it has been fetched for the last time; what the problem
/// says to lie there already is not counted.
std::vector<std::vector<int64_t>> tierBytes(const Problem &problem,
                                            const std::vector<Spill> &spills);

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_CHECK_H
