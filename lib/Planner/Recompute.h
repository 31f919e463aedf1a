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
  /// Those that take less time to compute than to copy, if they can be.
  Recomputation(const Problem &problem, const std::vector<Spill> &spills);

  bool empty() const { return chosen.empty(); }
  /// Keeps the better half; of one, nothing.
  void halve() { chosen.resize(chosen.size() / 2); }
  /// The problem in which each of the set is two storages, of which the second
  /// takes the time to compute it.
  Problem problem() const;
  /// A plan for that problem as one for the problem there was.
  std::vector<Spill> spills(const std::vector<Spill> &others) const;

private:
  const Problem &original;
  /// The best first.
  std::vector<Spill> chosen;
};

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_RECOMPUTE_H
