//===- Schedule.h - when chosen gaps are freed and fetched ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PLANNER_SCHEDULE_H
#define HYPERPARALLEL_LIB_PLANNER_SCHEDULE_H

#include "lib/Planner/Lifetimes.h"

namespace mlir::hyperparallel::planner {

/// When the slots of a step are expected: what an Execution says of them.
struct Clock {
  explicit Clock(const Problem &problem);
  explicit Clock(const Execution &execution);

  double seconds = 0;
  std::vector<double> reached, taken, start, end;
};

/// Which of the copies out that could begin goes first: the one that could
/// first, the one that is wanted back first or last, or the smallest.
enum class OutOrder : uint8_t { First, SoonestNext, LatestNext, Smallest };
constexpr uint32_t kOutOrders = 4;

/// A set of gaps to spill; what schedule() makes of it.
struct Choice {
  /// By gap.
  std::vector<bool> isChosen;
  std::vector<uint8_t> tier;
  OutOrder outOrder = OutOrder::First;
  /// A spill that nothing needs but a later one of the same storage, which
  /// finds its copy below, is kept as an early copy out, when the link is free.
  bool copiesEarly = false;
};

/// Gives every chosen gap its two slots, so that at every slot what is resident
/// fits the capacity; gaps are added where that needs them. False if it cannot
/// be done. The capacity is at least what each slot needs.
bool schedule(const Problem &problem, const Lifetimes &lifetimes,
              const Choice &choice, const Clock &clock, int64_t capacity,
              std::vector<Spill> &spills);

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_SCHEDULE_H
