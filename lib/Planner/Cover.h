//===- Cover.h - which gaps to spill ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PLANNER_COVER_H
#define HYPERPARALLEL_LIB_PLANNER_COVER_H

#include "lib/Planner/Schedule.h"

namespace mlir::hyperparallel::planner {

/// Which gaps are tried first.
enum class CoverOrder {
  Longest,
  LongestTimesBytes,
  Outermost,
  Largest,
  Latest
};

/// Whether a gap relieves all the slots in it, or only those that its copies
/// leave when each has the link to itself.
enum class CoverWindow { Whole, BetweenCopies };

/// Chooses gaps until what is resident fits the capacity at every slot, as far
/// as gaps can do that.
Choice cover(const Problem &problem, const Lifetimes &lifetimes,
             const Clock &clock, int64_t capacity, CoverOrder order,
             CoverWindow window);

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_COVER_H
