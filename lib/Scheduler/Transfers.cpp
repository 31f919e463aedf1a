//===- Transfers.cpp - sends and receives between the tasks of groups -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A transfer is one moment of the whole schedule: when what is sent has been
// made. The sender sends there, the receiver receives there:
//
//   all     F0  (F0→)  F1  F0'  (F1→)  B0'  (B0'→)  ...
//   first   F0  send   F1       send        receive
//   second      receive    F0'  receive B0' send
//
// Each group's steps are what concerns it, in this one order. So the first step
// of the order that has not happened can always happen, even if a send waits
// for its receive (rendezvous): no group waits forever. Where sends do not
// wait, data is under way while both groups work, and is received at the last
// point before the receiver would begin something that starts later.
//
// Cost: O((tasks + edges) log tasks).
//===----------------------------------------------------------------------===//
#include "lib/Scheduler/Schedule.h"

#include <queue>

namespace mlir::hyperparallel::scheduler {

std::vector<std::vector<Step>> placeTransfers(const Problem &problem,
                                              const Schedule &schedule) {
  std::vector<std::vector<uint32_t>> leaving(problem.tasks.size());
  for (uint32_t edge = 0; edge < problem.edges.size(); ++edge) {
    const Edge &it = problem.edges[edge];
    if (problem.tasks[it.from].group != problem.tasks[it.to].group)
      leaving[it.from].push_back(edge);
  }
  std::vector<std::vector<Step>> steps(problem.groups.size());
  // What has started, by when it ends.
  using Ending = std::pair<double, uint32_t>; // time, place in the order
  std::priority_queue<Ending, std::vector<Ending>, std::greater<Ending>> ending;
  auto sendWhatEnded = [&](auto hasEnded) {
    while (!ending.empty() && hasEnded(ending.top().first)) {
      for (uint32_t edge : leaving[schedule.global[ending.top().second]]) {
        const Edge &it = problem.edges[edge];
        steps[problem.tasks[it.from].group].push_back({Step::What::Send, edge});
        steps[problem.tasks[it.to].group].push_back(
            {Step::What::Receive, edge});
      }
      ending.pop();
    }
  };
  for (uint32_t place = 0; place < schedule.global.size(); ++place) {
    uint32_t task = schedule.global[place];
    double start = schedule.start[task];
    sendWhatEnded([&](double end) { return end <= start; });
    steps[problem.tasks[task].group].push_back({Step::What::Run, task});
    if (!leaving[task].empty())
      ending.push({schedule.end[task], place});
  }
  sendWhatEnded([](double) { return true; });
  return steps;
}

} // namespace mlir::hyperparallel::scheduler
