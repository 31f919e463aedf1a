//===- Planner.cpp - the search for a plan --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Planner/Bound.h"
#include "lib/Planner/Check.h"
#include "lib/Planner/Cover.h"
#include "lib/Planner/Search.h"

#include <algorithm>
#include <cmath>

using namespace mlir::hyperparallel::planner;

namespace {
class Planner {
public:
  Planner(const Problem &problem) : problem(problem), lifetimes(problem) {}
  Plan run();

private:
  void attempt(const Choice &choice, int64_t capacity,
               const std::string &method);
  bool isGood() const { return hasPlan && best.execution.seconds <= goal; }
  const Problem &problem;
  Lifetimes lifetimes;
  Draft best;
  double goal = 0;
  std::string method;
  bool hasPlan = false;
};
} // namespace

void Planner::attempt(const Choice &choice, int64_t capacity,
                      const std::string &name) {
  double last = 0;
  Clock clock(problem);
  for (int round = 0; round < 6; ++round) {
    Draft draft;
    if (!schedule(problem, lifetimes, choice, clock, capacity, draft.spills))
      return;
    draft.execution = execute(problem, draft.spills);
    clock = Clock(draft.execution);
    double seconds = draft.execution.seconds;
    if (!hasPlan || seconds < best.execution.seconds) {
      hasPlan = true;
      best = std::move(draft);
      method = name;
    }
    if (isGood() || (round && std::abs(seconds - last) < 1e-9 * last))
      break;
    last = seconds;
  }
}

Plan Planner::run() {
  Plan plan = describePlan(problem, {});
  if (plan.maxLiveBytes <= problem.capacity) {
    plan.method = "nothing moves";
    return plan;
  }
  if (plan.tightestBytes > problem.capacity || problem.tiers.empty()) {
    plan.status = PlanStatus::DeviceTooSmall;
    return plan;
  }
  goal = plan.boundSeconds * (1 + 1e-9);
  Choice choice;
  for (CoverOrder order :
       {CoverOrder::Longest, CoverOrder::LongestTimesBytes,
        CoverOrder::Outermost, CoverOrder::Largest, CoverOrder::Latest})
    for (CoverWindow window :
         {CoverWindow::Whole, CoverWindow::BetweenCopies}) {
      if (isGood())
        break;
      choice = cover(problem, lifetimes, Clock(problem), problem.capacity,
                     order, window);
      attempt(choice, problem.capacity, nameOf(order));
    }
  improve(problem, lifetimes, choice.tier, 1'000'000, goal, best);
  plan = describePlan(problem, std::move(best.spills));
  plan.method = method;
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
