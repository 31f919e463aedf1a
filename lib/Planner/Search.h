//===- Search.h - small changes that make a plan better ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PLANNER_SEARCH_H
#define HYPERPARALLEL_LIB_PLANNER_SEARCH_H

#include "lib/Planner/Schedule.h"

namespace mlir::hyperparallel::planner {

/// A plan under way: spills, and what carrying them out takes.
struct Draft {
  std::vector<Spill> spills;
  Execution execution;
  OutOrder outOrder = OutOrder::First;
  bool copiesEarly = false;
};

/// Tries small changes, as many as `work` slots and gaps may be looked at,
/// until the step takes no more than `goal`. Deterministic.
void improve(const Problem &problem, const Lifetimes &lifetimes,
             const std::vector<uint8_t> &tiers, int64_t capacity, int64_t work,
             double goal, Draft &best);

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_SEARCH_H
