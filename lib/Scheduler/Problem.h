//===- Problem.h - what device groups have to do in a step ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Plain data: the fragments of a program over device groups as tasks, and which
// needs what another makes. Knows no MLIR. A scheduler turns a Problem into the
// order in which each group does its tasks (Schedule.h).
//
// A pipeline's tasks are known by (stage, microbatch, kind), which is what
// named schedules speak of; all other tasks (updates, glue, the roles of a
// program of several models) are placed by what they need alone.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_SCHEDULER_PROBLEM_H
#define HYPERPARALLEL_LIB_SCHEDULER_PROBLEM_H

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::hyperparallel::scheduler {

enum class Kind : uint32_t {
  Forward,
  /// Gradients of inputs and weights in one task...
  Backward,
  /// ...or in two: what the stage before waits for, and what can wait.
  BackwardInput,
  BackwardWeight,
  Update,
  Other,
};

struct Task {
  uint32_t group = 0;
  Kind kind = Kind::Other;
  /// Of forward and backward tasks: at most one has the same three numbers,
  /// Backward and BackwardInput being one kind here.
  uint32_t stage = 0;
  uint32_t microbatch = 0;
  double seconds = 0;
  /// Bytes taken when it starts and held when it ends (less than zero: given
  /// back then). A forward takes what its backward gives back.
  int64_t startBytes = 0;
  int64_t endBytes = 0;
};

/// `to` needs what `from` makes. If their groups differ it is sent, which takes
/// `seconds` and keeps neither group from working.
struct Edge {
  uint32_t from = 0, to = 0;
  double seconds = 0;
};

/// Somebody wants `before` to begin before `after`; `rule` is how they said it.
struct Wish {
  uint32_t before = 0, after = 0;
  std::string rule;
};

struct Problem {
  std::vector<Task> tasks;
  std::vector<Edge> edges;
  /// Rules beside those of the schedule.
  std::vector<Wish> wishes;
  /// By group: what to call it, and the bytes that its tasks may hold at a
  /// time (less than zero: any number).
  std::vector<std::string> groups;
  std::vector<int64_t> limits;
  uint32_t numStages = 0;
  uint32_t numMicrobatches = 0;
};

inline bool isInPipeline(Kind kind) { return kind < Kind::Update; }

/// Empty if the problem makes sense, else what is wrong with it.
std::string findFault(const Problem &problem);

/// "forward of microbatch 3 on stage 1", "update (task 17)".
std::string describe(const Problem &problem, uint32_t task);

/// Adds a wish as a person writes it: "F0.3 < B1.0", the forward of microbatch
/// 3 on stage 0 before the backward of microbatch 0 on stage 1 (W: the
/// gradients of weights). Empty, or what is wrong with it.
std::string addWish(Problem &problem, const std::string &rule);

/// Finds tasks by what they are.
class TaskTable {
public:
  /// The problem must have no fault.
  explicit TaskTable(const Problem &problem);
  /// The number of the task, or -1. Backward finds BackwardInput, too.
  int64_t find(Kind kind, int64_t stage, int64_t microbatch) const;

private:
  uint64_t index(Kind kind, uint64_t stage, uint64_t microbatch) const;
  uint64_t numStages, numMicrobatches;
  std::vector<int64_t> tasks;
};

} // namespace mlir::hyperparallel::scheduler

#endif // HYPERPARALLEL_LIB_SCHEDULER_PROBLEM_H
