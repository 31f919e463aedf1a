//===- Schedule.h - the order in which groups do their tasks ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_SCHEDULER_SCHEDULE_H
#define HYPERPARALLEL_LIB_SCHEDULER_SCHEDULE_H

#include "lib/Scheduler/Problem.h"

#include <optional>
#include <string_view>

namespace mlir::hyperparallel::scheduler {

enum class Name : uint32_t {
  GPipe,
  OneFOneB,
  Interleaved1F1B,
  ZeroBubbleH1,
  /// The fastest that fits: the named ones and list schedules are compared.
  Auto,
};

/// "gpipe", "1f1b", "interleaved_1f1b", "zero_bubble_h1", "auto".
std::string_view nameOf(Name name);
std::optional<Name> findName(std::string_view text);

struct Schedule {
  /// Why there is none; empty if there is one.
  std::string fault;
  /// How it was found: the name of a schedule, or of a list schedule.
  std::string method;
  /// By group, task numbers in order.
  std::vector<std::vector<uint32_t>> order;
  /// All tasks in the order in which they start; a topological order.
  std::vector<uint32_t> global;
  /// By task, if every group starts each task as soon as it can.
  std::vector<double> start, end;
  double seconds = 0;
  /// Of Auto: what else was tried, and what it takes or why it cannot be.
  std::vector<std::string> declined;
};

/// The order that `name` asks for. The problem must have no fault. Where the
/// rules leave a choice, what can start first does, backward before forward.
Schedule makeSchedule(const Problem &problem, Name name);

/// Checks an order that somebody gives, and tells when everything happens.
Schedule checkOrder(const Problem &problem,
                    std::vector<std::vector<uint32_t>> order);

struct GroupReport {
  double busySeconds = 0;
  /// The part of the schedule in which the group does nothing.
  double bubble = 0;
  int64_t peakBytes = 0;
};

struct Report {
  std::vector<GroupReport> groups;
  /// Over all groups that have tasks.
  double bubble = 0;
  /// By stage: the most microbatches between the start of their forward and
  /// the end of their (last) backward.
  std::vector<uint32_t> peakLive;
};

/// What a schedule without a fault costs.
Report evaluate(const Problem &problem, const Schedule &schedule);

/// What a group does: a task, or one side of an edge between groups.
struct Step {
  enum class What : uint32_t { Run, Send, Receive } what = What::Run;
  /// The number of the task, or of the edge.
  uint32_t index = 0;
};

/// Each group's tasks with its sends and receives between them, in an order in
/// which no group waits forever even if a send waits for its receive.
std::vector<std::vector<Step>> placeTransfers(const Problem &problem,
                                              const Schedule &schedule);

} // namespace mlir::hyperparallel::scheduler

#endif // HYPERPARALLEL_LIB_SCHEDULER_SCHEDULE_H
