//===- Schedule.cpp - finding, checking and judging schedules -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A named schedule is its rules, sorted in simulated time. `auto` makes list
// schedules under the groups' limits, and takes the fastest of them and of the
// named schedules that apply and fit; of equally fast ones, that which holds
// fewest bytes. What it did not take, and why, is kept.
//===----------------------------------------------------------------------===//
#include "lib/Scheduler/Constraints.h"

#include <algorithm>
#include <cstdio>

namespace mlir::hyperparallel::scheduler {

std::string findOverLimit(const Problem &problem, const Report &report) {
  for (size_t group = 0; group < problem.groups.size(); ++group)
    if (int64_t limit = problem.limits[group];
        limit >= 0 && report.groups[group].peakBytes > limit)
      return "expected group '" + problem.groups[group] + "' to hold " +
             std::to_string(report.groups[group].peakBytes) +
             " bytes but its limit is " + std::to_string(limit) +
             "; give it more, use fewer microbatches at a time, or let auto "
             "find an order";
  return "";
}

static Schedule makeNamed(const Problem &problem, Name name) {
  Schedule schedule;
  std::string fault;
  std::vector<Constraint> constraints = constraintsOf(problem, name, fault);
  if (fault.empty()) {
    schedule = listSchedule(problem, constraints, Preference::BackwardFirst,
                            /*keepLimits=*/false);
    fault = schedule.fault;
  }
  if (fault.empty())
    fault = findOverLimit(problem, evaluate(problem, schedule));
  schedule.fault = fault;
  schedule.method = nameOf(name);
  return schedule;
}

static int64_t heldBytes(const Problem &problem, const Schedule &schedule) {
  int64_t bytes = 0;
  for (const GroupReport &group : evaluate(problem, schedule).groups)
    bytes += group.peakBytes;
  return bytes;
}

static Schedule makeAuto(const Problem &problem) {
  std::vector<Schedule> tried;
  std::vector<Constraint> inOrder = microbatchesInOrder(problem);
  for (auto [preference, method] :
       {std::pair{Preference::BackwardFirst, "backward first"},
        std::pair{Preference::LongestPath, "longest path first"}}) {
    tried.push_back(
        listSchedule(problem, inOrder, preference, /*keepLimits=*/true));
    tried.back().method = method;
  }
  // Without a list schedule there is none at all: a cycle, or no room.
  if (!tried.front().fault.empty())
    return tried.front();
  for (Name name :
       {Name::ZeroBubbleH1, Name::OneFOneB, Name::Interleaved1F1B, Name::GPipe})
    tried.push_back(makeNamed(problem, name));

  constexpr double equal = 1e-9;
  size_t best = 0;
  for (size_t i = 1; i < tried.size(); ++i) {
    if (!tried[i].fault.empty())
      continue;
    double difference = tried[i].seconds - tried[best].seconds;
    double margin = equal * tried[best].seconds;
    if (difference < -margin ||
        (difference <= margin &&
         heldBytes(problem, tried[i]) < heldBytes(problem, tried[best])))
      best = i;
  }
  std::vector<std::string> declined;
  for (size_t i = 0; i < tried.size(); ++i) {
    if (i == best)
      continue;
    char seconds[32];
    std::snprintf(seconds, sizeof(seconds), "%.6g", tried[i].seconds);
    declined.push_back(tried[i].method + ": " +
                       (tried[i].fault.empty()
                            ? std::string(seconds) + " s, " +
                                  std::to_string(heldBytes(problem, tried[i])) +
                                  " bytes"
                            : tried[i].fault));
  }
  Schedule result = std::move(tried[best]);
  result.declined = std::move(declined);
  return result;
}

Schedule makeSchedule(const Problem &problem, Name name) {
  return name == Name::Auto ? makeAuto(problem) : makeNamed(problem, name);
}

/// Every task once, and in its group.
static std::string
findMissing(const Problem &problem,
            const std::vector<std::vector<uint32_t>> &order) {
  if (order.size() != problem.groups.size())
    return "expected an order for each of " +
           std::to_string(problem.groups.size()) + " groups but got " +
           std::to_string(order.size());
  std::vector<char> isThere(problem.tasks.size());
  for (uint32_t group = 0; group < order.size(); ++group)
    for (uint32_t task : order[group]) {
      if (task >= problem.tasks.size())
        return "expected the order of group '" + problem.groups[group] +
               "' to name tasks below " + std::to_string(problem.tasks.size()) +
               " but got " + std::to_string(task);
      if (problem.tasks[task].group != group)
        return "expected " + describe(problem, task) +
               " in the order of group '" +
               problem.groups[problem.tasks[task].group] +
               "' but it is in that of '" + problem.groups[group] + "'";
      if (isThere[task]++)
        return "expected " + describe(problem, task) +
               " once in the order of group '" + problem.groups[group] +
               "' but it is there twice";
    }
  for (uint32_t task = 0; task < problem.tasks.size(); ++task)
    if (!isThere[task])
      return "expected " + describe(problem, task) +
             " in the order of group '" +
             problem.groups[problem.tasks[task].group] + "' but it is missing";
  return "";
}

Schedule checkOrder(const Problem &problem,
                    std::vector<std::vector<uint32_t>> order) {
  Schedule schedule;
  schedule.fault = findMissing(problem, order);
  if (schedule.fault.empty()) {
    std::vector<Constraint> constraints;
    for (const std::vector<uint32_t> &tasks : order)
      for (size_t i = 1; i < tasks.size(); ++i)
        constraints.push_back({tasks[i - 1], tasks[i], "the given order"});
    schedule = listSchedule(problem, constraints, Preference::BackwardFirst,
                            /*keepLimits=*/false);
  }
  if (schedule.fault.empty())
    schedule.fault = findOverLimit(problem, evaluate(problem, schedule));
  schedule.method = "given";
  return schedule;
}

Report evaluate(const Problem &problem, const Schedule &schedule) {
  Report report;
  report.groups.resize(problem.groups.size());
  report.peakLive.resize(problem.numStages);
  TaskTable table(problem);
  std::vector<uint32_t> live(problem.numStages);
  double busy = 0, available = 0;
  for (size_t group = 0; group < schedule.order.size(); ++group) {
    GroupReport &it = report.groups[group];
    int64_t bytes = 0;
    for (uint32_t number : schedule.order[group]) {
      const Task &task = problem.tasks[number];
      it.busySeconds += task.seconds;
      it.peakBytes = std::max(it.peakBytes, bytes + task.startBytes);
      bytes += task.startBytes + task.endBytes;
      it.peakBytes = std::max(it.peakBytes, bytes);
      if (task.kind == Kind::Forward)
        report.peakLive[task.stage] =
            std::max(report.peakLive[task.stage], ++live[task.stage]);
      else if (isInPipeline(task.kind) && live[task.stage] &&
               (task.kind == Kind::BackwardWeight ||
                table.find(Kind::BackwardWeight, task.stage, task.microbatch) <
                    0))
        --live[task.stage];
    }
    if (schedule.seconds > 0)
      it.bubble = 1 - it.busySeconds / schedule.seconds;
    if (schedule.order[group].empty())
      continue;
    busy += it.busySeconds;
    available += schedule.seconds;
  }
  report.bubble = available > 0 ? 1 - busy / available : 0;
  return report;
}

} // namespace mlir::hyperparallel::scheduler
