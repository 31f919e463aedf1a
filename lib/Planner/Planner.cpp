//===- Planner.cpp - the search for a plan --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Planner/Bound.h"
#include "lib/Planner/Check.h"
#include "lib/Planner/Cover.h"

#include <algorithm>
#include <cmath>

using namespace mlir::hyperparallel::planner;

namespace {
class Planner {
public:
  Planner(const Problem &problem) : problem(problem), lifetimes(problem) {}
  Plan run();

private:
  void attempt(const Choice &choice, Clock clock, int64_t capacity,
               const std::string &method);
  bool offer(std::vector<Spill> spills, Execution execution,
             const std::string &method);
  const Problem &problem;
  Lifetimes lifetimes;
  Plan best;
  bool hasPlan = false;
};
} // namespace

bool Planner::offer(std::vector<Spill> spills, Execution execution,
                    const std::string &method) {
  if (hasPlan && execution.seconds >= best.execution.seconds)
    return false;
  hasPlan = true;
  best.spills = std::move(spills);
  best.execution = std::move(execution);
  best.method = method;
  return true;
}

void Planner::attempt(const Choice &choice, Clock clock, int64_t capacity,
                      const std::string &method) {
  double last = 0;
  for (int round = 0; round < 6; ++round) {
    std::vector<Spill> spills;
    if (!schedule(problem, lifetimes, choice, clock, capacity, spills))
      return;
    Execution execution = execute(problem, spills);
    clock = Clock(execution);
    double seconds = execution.seconds;
    offer(std::move(spills), std::move(execution),
          method + " round " + std::to_string(round));
    if (round && std::abs(seconds - last) < 1e-9 * last)
      break;
    last = seconds;
  }
}

Plan Planner::run() {
  for (const Operation &op : problem.operations)
    best.computeSeconds += op.seconds;
  auto live = std::max_element(lifetimes.live.begin(), lifetimes.live.end());
  auto tight =
      std::max_element(lifetimes.needed.begin(), lifetimes.needed.end());
  best.maxLiveBytes = *live;
  best.maxLiveSlot = int32_t(live - lifetimes.live.begin());
  best.tightestBytes = *tight;
  best.tightestSlot = int32_t(tight - lifetimes.needed.begin());
  best.boundSeconds = lowerBound(problem, lifetimes);
  if (best.maxLiveBytes <= problem.capacity) {
    offer({}, execute(problem, {}), "nothing moves");
  } else if (best.tightestBytes > problem.capacity || problem.tiers.empty()) {
    best.status = PlanStatus::DeviceTooSmall;
    return best;
  } else {
    Clock clock(problem);
    const char *names[] = {"longest", "longest x bytes", "outermost", "largest",
                           "latest"};
    for (int order = 0; order < 5; ++order)
      for (int window = 0; window < 2; ++window) {
        Choice choice = cover(problem, lifetimes, clock, problem.capacity,
                              CoverOrder(order), CoverWindow(window));
        attempt(choice, clock, problem.capacity,
                std::string(names[order]) + (window ? " between" : " whole"));
      }
  }
  Plan plan = describePlan(problem, std::move(best.spills));
  plan.method = best.method;
  return plan;
}

Plan mlir::hyperparallel::planner::describePlan(const Problem &problem,
                                                std::vector<Spill> spills) {
  Lifetimes lifetimes(problem);
  Plan plan;
  for (const Operation &op : problem.operations)
    plan.computeSeconds += op.seconds;
  auto live = std::max_element(lifetimes.live.begin(), lifetimes.live.end());
  auto tight =
      std::max_element(lifetimes.needed.begin(), lifetimes.needed.end());
  plan.maxLiveBytes = *live;
  plan.maxLiveSlot = int32_t(live - lifetimes.live.begin());
  plan.tightestBytes = *tight;
  plan.tightestSlot = int32_t(tight - lifetimes.needed.begin());
  plan.boundSeconds = lowerBound(problem, lifetimes);
  plan.execution = execute(problem, spills);
  // Sums of the same seconds in another order.
  if (std::abs(plan.execution.seconds - plan.boundSeconds) <
      1e-12 * plan.boundSeconds)
    plan.boundSeconds = plan.execution.seconds;
  std::vector<int64_t> resident = residentBytes(problem, spills);
  plan.peakBytes = *std::max_element(resident.begin(), resident.end());
  for (const std::vector<int64_t> &tier : tierBytes(problem, spills))
    plan.tierPeakBytes.push_back(*std::max_element(tier.begin(), tier.end()));
  for (const Spill &spill : spills) {
    int64_t bytes = problem.storages[spill.storage].bytes;
    if (!spill.recomputed)
      plan.bytesIn += bytes;
    if (!spill.recomputed && !spill.isClean)
      plan.bytesOut += bytes;
  }
  plan.spills = std::move(spills);
  return plan;
}

Plan mlir::hyperparallel::planner::makePlan(const Problem &problem) {
  return Planner(problem).run();
}
