//===- Tiers.h - which tier what leaves the device goes to ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PLANNER_TIERS_H
#define HYPERPARALLEL_LIB_PLANNER_TIERS_H

#include "lib/Planner/Lifetimes.h"

namespace mlir::hyperparallel::planner {

/// The first tier that holds more than it can, or -1.
int32_t findFullTier(const Problem &problem, const std::vector<Spill> &spills);

/// Which storages move first: those that are away longest; some of all kinds,
/// so that the slower link has something to do all the time; or whatever is
/// there when the slower link, out or in, would have nothing to do.
enum class OutwardOrder { Longest, Mixed, KeepOutBusy, KeepInBusy };
struct Outward {
  OutwardOrder order;
  /// Of the step, from its end (of KeepInBusy): the slower link is not kept
  /// busy for what is needed there, where a late copy has nothing to hide
  /// behind.
  double lastPart = 0;
};

/// Moves storages to tiers farther out until each holds what it can; `tiers`
/// says the same by gap. False if the last one cannot hold the rest: the plan
/// is told what it would have to hold.
bool moveOutward(const Problem &problem, const Lifetimes &lifetimes,
                 Outward outward, std::vector<Spill> &spills,
                 std::vector<uint8_t> &tiers, Plan &plan);

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_TIERS_H
