//===- Explain.h - why a plan is as it is -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PLANNER_EXPLAIN_H
#define HYPERPARALLEL_LIB_PLANNER_EXPLAIN_H

#include "lib/Planner/Plan.h"

namespace mlir::hyperparallel::planner {

/// A time between two uses of a storage.
struct GapReport {
  uint32_t storage = 0;
  int32_t after = 0, before = 0;
  /// How long it is in the step as planned.
  double gapSeconds = 0;
  /// What its copies take, what of that goes on behind operations, and what the
  /// step waits for them (more than they take where others are before them in
  /// the queue).
  double copySeconds = 0, hiddenSeconds = 0, exposedSeconds = 0;
  /// Bytes per second of a link at which copies of the storage, out and in,
  /// alone fit the time; 0 if there is no time.
  double breakEvenBandwidth = 0;
};

/// What becomes of a storage.
enum class Fate : uint8_t { Kept, Moved, Recomputed };

/// The same for a storage: of its longest time away, or without a use if it
/// stays; its copies, hidden and exposed time are those of all its spills.
struct StorageReport {
  Fate fate = Fate::Kept;
  /// Where it goes if it moves.
  uint32_t tier = 0;
  GapReport gap;
};

/// By spill of the plan.
std::vector<GapReport> explainSpills(const Problem &problem, const Plan &plan);

/// For every storage that could leave, in the order of their numbers.
std::vector<StorageReport> explainStorages(const Problem &problem,
                                           const Plan &plan);

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_EXPLAIN_H
