//===- Lifetimes.h - when storages live and when nobody needs them -*- C++ -*-//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Slots are 0 to n for n operations; slot n is the end of the step, at which
// persistent storages are resident. A gap is the time between two uses of a
// storage in which it could be elsewhere: see Plan.h for its numbers.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PLANNER_LIFETIMES_H
#define HYPERPARALLEL_LIB_PLANNER_LIFETIMES_H

#include "lib/Planner/Plan.h"

namespace mlir::hyperparallel::planner {

struct Gap {
  uint32_t storage = 0;
  int32_t after = 0, before = 0;
  /// Aligned.
  int64_t bytes = 0;
  /// The storage is written after the gap before this one (or after the start
  /// of the step, if this is its first), and before this one.
  bool isWrittenBefore = false;
};

struct Lifetimes {
  Lifetimes(const Problem &problem, const std::vector<Use> &moreUses = {});

  int32_t slots = 0;
  /// Those of a storage follow each other, in order.
  std::vector<Gap> gaps;
  /// gaps[firstGap[s]] up to gaps[firstGap[s + 1]] are those of storage s.
  std::vector<uint32_t> firstGap;
  /// By storage: something writes it.
  std::vector<bool> isWritten;
  /// Bytes resident at each slot if nothing moves, and if everything moves
  /// that can.
  std::vector<int64_t> live, needed;

  bool wraps(const Gap &gap) const { return gap.before >= slots; }

  /// For each gap whether one of the spills is of it.
  std::vector<bool> findChosen(const std::vector<Spill> &spills) const;

  /// For each gap whether a valid copy lies below when it begins, if the gaps
  /// with `isChosen` are spilled.
  std::vector<bool> findClean(const Problem &problem,
                              const std::vector<bool> &isChosen) const;
};

/// Calls `visit(from, to)` for the slots of a step that [from, to) covers,
/// where slots from `slots` on are those of the next step.
template <typename Visit>
void forSlots(int32_t from, int32_t to, int32_t slots, Visit visit) {
  if (from < slots)
    visit(from, to < slots ? to : slots);
  if (to > slots)
    visit(from > slots ? from - slots : 0, to - slots);
}

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_LIFETIMES_H
