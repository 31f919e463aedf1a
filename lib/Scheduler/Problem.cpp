//===- Problem.cpp - checks of scheduling problems ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Scheduler/Problem.h"

#include <cmath>
#include <cstdio>

namespace mlir::hyperparallel::scheduler {

namespace {
/// A task by what it is.
struct ParsedName {
  Kind kind = Kind::Other;
  int64_t stage = 0, microbatch = 0;
};
} // namespace

static const char *nameOf(Kind kind) {
  switch (kind) {
  case Kind::Forward:
    return "forward";
  case Kind::Backward:
    return "backward";
  case Kind::BackwardInput:
    return "backward by input";
  case Kind::BackwardWeight:
    return "backward by weight";
  case Kind::Update:
    return "update";
  case Kind::Other:
    return "task";
  }
  return "task";
}

std::string describe(const Problem &problem, uint32_t task) {
  const Task &it = problem.tasks[task];
  std::string name = nameOf(it.kind);
  if (isInPipeline(it.kind))
    return name + " of microbatch " + std::to_string(it.microbatch) +
           " on stage " + std::to_string(it.stage);
  return it.kind == Kind::Other ? name + " " + std::to_string(task)
                                : name + " (task " + std::to_string(task) + ")";
}

/// Forward, backward (of either kind), backward by weight.
static uint64_t column(Kind kind) {
  return kind == Kind::Forward ? 0 : kind == Kind::BackwardWeight ? 2 : 1;
}

uint64_t TaskTable::index(Kind kind, uint64_t stage,
                          uint64_t microbatch) const {
  return (stage * numMicrobatches + microbatch) * 3 + column(kind);
}

TaskTable::TaskTable(const Problem &problem)
    : numStages(problem.numStages), numMicrobatches(problem.numMicrobatches),
      tasks(numStages * numMicrobatches * 3, -1) {
  for (uint32_t task = 0; task < problem.tasks.size(); ++task)
    if (const Task &it = problem.tasks[task]; isInPipeline(it.kind))
      tasks[index(it.kind, it.stage, it.microbatch)] = task;
}

int64_t TaskTable::find(Kind kind, int64_t stage, int64_t microbatch) const {
  if (stage < 0 || microbatch < 0 || stage >= static_cast<int64_t>(numStages) ||
      microbatch >= static_cast<int64_t>(numMicrobatches))
    return -1;
  return tasks[index(kind, stage, microbatch)];
}

/// A task as in "F0.3", from `at` on, which goes behind it.
static bool readTask(const std::string &text, size_t &at, ParsedName &name) {
  unsigned stage = 0, microbatch = 0;
  char kind = 0;
  int length = 0;
  if (std::sscanf(text.c_str() + at, " %c%u.%u %n", &kind, &stage, &microbatch,
                  &length) < 3)
    return false;
  at += length;
  name.stage = stage;
  name.microbatch = microbatch;
  name.kind = kind == 'F'   ? Kind::Forward
              : kind == 'B' ? Kind::Backward
                            : Kind::BackwardWeight;
  return kind == 'F' || kind == 'B' || kind == 'W';
}

std::string addWish(Problem &problem, const std::string &rule) {
  ParsedName before, after;
  size_t at = 0;
  bool isRead = readTask(rule, at, before) && at < rule.size() &&
                rule[at++] == '<' && readTask(rule, at, after) &&
                at == rule.size();
  if (!isRead)
    return "expected two tasks, such as F0.3 < B1.0 (forward of microbatch 3 "
           "on "
           "stage 0 before backward of microbatch 0 on stage 1, or W for the "
           "gradients of weights), but got '" +
           rule + "'";
  TaskTable table(problem);
  int64_t first = table.find(before.kind, before.stage, before.microbatch);
  int64_t second = table.find(after.kind, after.stage, after.microbatch);
  if (first < 0 || second < 0)
    return "the rule '" + rule +
           "' names a task that is not there: expected stages below " +
           std::to_string(problem.numStages) + ", microbatches below " +
           std::to_string(problem.numMicrobatches) +
           ", and W only where backward is split";
  problem.wishes.push_back({static_cast<uint32_t>(first),
                            static_cast<uint32_t>(second),
                            "your rule " + rule});
  return "";
}

static std::string findTaskFault(const Problem &problem, uint32_t task) {
  const Task &it = problem.tasks[task];
  std::string name = describe(problem, task);
  if (it.group >= problem.groups.size())
    return "expected " + name + " to be of one of " +
           std::to_string(problem.groups.size()) + " groups but got group " +
           std::to_string(it.group);
  if (!std::isfinite(it.seconds) || it.seconds < 0)
    return "expected " + name + " to take a time of zero or more seconds";
  if (it.startBytes < 0)
    return "expected " + name + " to take zero or more bytes when it starts";
  if (!isInPipeline(it.kind))
    return "";
  if (it.stage >= problem.numStages || it.microbatch >= problem.numMicrobatches)
    return "expected " + std::to_string(problem.numStages) + " stages and " +
           std::to_string(problem.numMicrobatches) + " microbatches but got " +
           name;
  return "";
}

std::string findFault(const Problem &problem) {
  if (problem.limits.size() != problem.groups.size())
    return "expected a memory limit for each group";
  // What the table of tasks takes must be in proportion to the tasks.
  if (uint64_t(problem.numStages) * problem.numMicrobatches >
      4 * (problem.tasks.size() + 1))
    return "expected tasks for the " + std::to_string(problem.numStages) +
           " stages and " + std::to_string(problem.numMicrobatches) +
           " microbatches but got " + std::to_string(problem.tasks.size());
  for (uint32_t task = 0; task < problem.tasks.size(); ++task)
    if (std::string fault = findTaskFault(problem, task); !fault.empty())
      return fault;
  TaskTable table(problem);
  for (uint32_t task = 0; task < problem.tasks.size(); ++task)
    if (const Task &it = problem.tasks[task]; isInPipeline(it.kind))
      if (table.find(it.kind, it.stage, it.microbatch) != task)
        return "expected one " + describe(problem, task) + " but got two";
  for (const Edge &edge : problem.edges) {
    if (edge.from >= problem.tasks.size() || edge.to >= problem.tasks.size())
      return "expected edges between the " +
             std::to_string(problem.tasks.size()) + " tasks but got " +
             std::to_string(edge.from) + " to " + std::to_string(edge.to);
    if (!std::isfinite(edge.seconds) || edge.seconds < 0)
      return "expected what " + describe(problem, edge.to) + " needs of " +
             describe(problem, edge.from) +
             " to take a time of zero or more seconds";
  }
  return "";
}

} // namespace mlir::hyperparallel::scheduler
