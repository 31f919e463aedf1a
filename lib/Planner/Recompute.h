//===- Recompute.h - computing storages again -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PLANNER_RECOMPUTE_H
#define HYPERPARALLEL_LIB_PLANNER_RECOMPUTE_H

#include "lib/Planner/Plan.h"

namespace mlir::hyperparallel::planner {

/// A set of spills that are to be computed again instead of copied.
class Recomputation {
public:
  /// What the plan computes again already, and what of its copies takes less
  /// time to compute, if it can be.
  Recomputation(const Problem &problem, const std::vector<Spill> &spills);

  /// Whether it is what the plan computes again already.
  bool empty() const { return chosen.size() == numKept; }
  /// Keeps the better half of what is new; of one, nothing.
  void halve() { chosen.resize(numKept + (chosen.size() - numKept) / 2); }
  /// The problem in which each of the set is two storages, of which the second
  /// takes the time to compute it.
  Problem problem() const;
  /// A plan for that problem as one for the problem there was.
  std::vector<Spill> spills(const std::vector<Spill> &others) const;

private:
  bool add(const Spill &spill, std::vector<std::vector<int32_t>> &readAgain,
           std::vector<const Spill *> &again) const;

  const Problem &original;
  /// Those of the plan, then what is new, the best first.
  std::vector<Spill> chosen;
  size_t numKept = 0;
};

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_RECOMPUTE_H
