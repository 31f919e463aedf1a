//===- Bound.h - what no plan can beat --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PLANNER_BOUND_H
#define HYPERPARALLEL_LIB_PLANNER_BOUND_H

#include "lib/Planner/Lifetimes.h"

namespace mlir::hyperparallel::planner {

/// Seconds that every plan's step takes at least.
double lowerBound(const Problem &problem, const Lifetimes &lifetimes);

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_BOUND_H
