//===- Constraints.h - what must happen before what -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Between the parts of this library: the rules of schedules as edges between
// tasks, and the list scheduler that they all end in.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_SCHEDULER_CONSTRAINTS_H
#define HYPERPARALLEL_LIB_SCHEDULER_CONSTRAINTS_H

#include "lib/Scheduler/Schedule.h"

namespace mlir::hyperparallel::scheduler {

/// `before` comes before `after` because of `why` (a sentence for people).
struct Constraint {
  uint32_t before, after;
  const char *why;
};

/// The rules of a named schedule on this problem. A reason why the schedule
/// cannot be applied goes to `fault`.
std::vector<Constraint> constraintsOf(const Problem &problem, Name name,
                                      std::string &fault);

/// The rule that is common to all: a stage takes microbatches in order.
std::vector<Constraint> microbatchesInOrder(const Problem &problem);

/// What a group does first of what it could start.
enum class Preference {
  /// Backward, then forward; gradients of weights where there is neither.
  BackwardFirst,
  /// What is farthest from the end of the step.
  LongestPath,
};

/// Does every task in simulated time, in an order that the constraints and the
/// limits allow. Without `keepLimits` memory is not looked at.
Schedule listSchedule(const Problem &problem,
                      const std::vector<Constraint> &constraints,
                      Preference preference, bool keepLimits);

/// Empty if each group's peak is within its limit, else which is not.
std::string findOverLimit(const Problem &problem, const Report &report);

} // namespace mlir::hyperparallel::scheduler

#endif // HYPERPARALLEL_LIB_SCHEDULER_CONSTRAINTS_H
