//===- Plan.h - what leaves the device, and when ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A plan is a list of spills. A spill of a storage has four slots; slot i is
// just before operation i, slot n the end of the step:
//
//    use a          freed          fetched         use b
//   ──[op]───copy out──▶│   not on the device  │──copy in──▶[op]──
//            from a+1   o                      i            b
//
// The copy out is issued when operation `after` has ended, or some slots later,
// to let others go first; slot `freed` waits for it and frees the source; slot
// `fetched` takes the memory and issues the copy in; operation `before` waits
// for that. The storage is off the device for the operations in [freed,
// fetched), and so whether everything fits depends on integers only. A transfer
// that is late costs time, never safety.
//
// freed = fetched: the storage never leaves. It is only copied out, early, so
// that a later spill of it finds a valid copy below; nothing is copied in.
//
// after = -1 is the start of the step. A storage that is off at both ends (see
// Storage::mayStartBelow) has a spill that goes on into the next step: slots
// above n are those of the next one, slot n + 1 + i being slot i.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PLANNER_PLAN_H
#define HYPERPARALLEL_LIB_PLANNER_PLAN_H

#include "lib/Planner/Problem.h"

namespace mlir::hyperparallel::planner {

struct Spill {
  uint32_t storage = 0;
  /// The uses around it: after < freed <= fetched <= before.
  int32_t after = 0, before = 0;
  int32_t freed = 0, fetched = 0;
  uint32_t tier = 0;
  /// A valid copy lies below already: nothing is copied out.
  bool isClean = false;
  /// Dropped at `after` and computed again before `before`; nothing is copied.
  bool recomputed = false;
  /// Slots by which the copy out is issued later than it could be.
  int32_t delay = 0;

  /// The slot at which it is issued.
  int32_t issued() const { return after + 1 + delay; }
  bool copiesOut() const { return !isClean && !recomputed; }
  bool copiesIn() const { return freed < fetched && !recomputed; }
};

/// When everything happens if a plan is carried out.
struct Execution {
  double seconds = 0;
  /// By slot, 0 to n: when the operation before has ended, when the memory of
  /// the slot has been taken, when its operation starts, and when it ends.
  std::vector<double> reached, taken, start, end;
  /// By spill: the copy out and the copy in (the same moment twice if nothing
  /// is copied).
  std::vector<double> outStart, outEnd, inStart, inEnd;
  /// Seconds in which the step waits for copies out and for copies in.
  double waitsOut = 0, waitsIn = 0;
  /// Seconds that copies cost operations by using the device's memory.
  double slowedDown = 0;
};

enum class PlanStatus {
  /// There is a plan.
  Planned,
  /// The device's memory is too small for one operation, whatever moves.
  DeviceTooSmall,
  /// The tiers below are too small for what must leave the device.
  TiersTooSmall,
};

struct Plan {
  PlanStatus status = PlanStatus::Planned;
  std::vector<Spill> spills;
  Execution execution;
  /// No step can be faster.
  double boundSeconds = 0;
  double computeSeconds = 0;
  /// What was done: the name of the way that gave this plan, for remarks.
  std::string method;

  int64_t peakBytes = 0;
  std::vector<int64_t> tierPeakBytes;
  /// Bytes copied out and in.
  int64_t bytesOut = 0, bytesIn = 0;

  /// The slot that needs most bytes whatever moves, and those bytes: the
  /// smallest capacity that could work.
  int32_t tightestSlot = 0;
  int64_t tightestBytes = 0;
  /// The most bytes resident if nothing moves, and where.
  int64_t maxLiveBytes = 0;
  int32_t maxLiveSlot = 0;
  /// For TiersTooSmall: the bytes that must lie below at the same time, as far
  /// as found, and the bytes that there are.
  int64_t tierNeededBytes = 0, tierCapacityBytes = 0;
};

/// Plans the step. The problem must have no fault (findFault).
Plan makePlan(const Problem &problem);

/// All that is known of spills that are a plan for the problem.
Plan describePlan(const Problem &problem, std::vector<Spill> spills);

/// What carrying out the spills takes.
Execution execute(const Problem &problem, const std::vector<Spill> &spills);

/// Empty if the spills are a plan for the problem that is safe in every tier;
/// else what is wrong. Computed anew from integers, in O(n + spills).
std::string findFault(const Problem &problem, const std::vector<Spill> &spills);

/// The bytes on the device at each slot, 0 to n.
std::vector<int64_t> residentBytes(const Problem &problem,
                                   const std::vector<Spill> &spills);

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_PLAN_H
