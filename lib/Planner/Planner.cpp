//===- Planner.cpp - the search for a plan --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//   1. If everything fits, nothing moves. If an operation alone does not fit,
//      there is no plan.
//   2. Gaps are chosen in several orders (Cover.cpp), given their slots,
//      carried out, and given slots again with the stalls in the clock, until
//      that does not help (at most six times). Small changes are tried on the
//      best plan (Search.cpp).
//   3. The same for smaller capacities of a fixed row (parts of the most that
//      is live), as long as their bounds allow a better plan: so more memory
//      finds what less memory found.
//   4. With a tier that is too small, storages go to the next one outward, the
//      longest away first (Tiers.cpp), and 2 begins anew with their links.
//   5. If waiting remains, storages that can be computed again in less time
//      than their copies take are dropped instead (Recompute.cpp), as many as
//      help; then more of what is still copied, as long as that helps (at most
//      four times).
//   6. A plan that copies what the first order chooses and waits for every copy
//      is compared: the result is never slower.
//
// The search stops when it has met the lower bound, or has looked at so many
// slots and gaps.
//
// Cost: O((slots + gaps) log) for each of a bounded number of tries.
//===----------------------------------------------------------------------===//
#include "lib/Planner/Bound.h"
#include "lib/Planner/Check.h"
#include "lib/Planner/Cover.h"
#include "lib/Planner/Recompute.h"
#include "lib/Planner/Search.h"
#include "lib/Planner/Tiers.h"

#include <algorithm>
#include <cmath>

using namespace mlir::hyperparallel::planner;

/// Slots and gaps that may be looked at: by plans from scratch, and by small
/// changes. Each is less than a second.
static constexpr int64_t kWork = 1'500'000, kSmallWork = 750'000;
static constexpr int kRounds = 6, kTierRounds = 4, kParts = 20,
                     kAgainRounds = 4;

namespace {

class Planner {
public:
  Planner(const Problem &problem)
      : problem(problem), lifetimes(problem), tiers(lifetimes.gaps.size(), 0) {
    for (uint32_t g = 0; g < tiers.size(); ++g)
      if (problem.storages[lifetimes.gaps[g].storage].clean)
        tiers[g] = problem.storages[lifetimes.gaps[g].storage].homeTier;
  }
  /// False if the tiers are too small; the plan says by how much.
  bool run(Draft &draft, std::string &how, Plan &plan);

private:
  Draft solve(int64_t capacity);
  void attempt(Draft &best, const Choice &choice, int64_t capacity,
               const char *name);
  Draft waitForEverything();
  Draft solveForTiers();
  double boundAt(int64_t capacity) const {
    Problem smaller = withCapacity(capacity);
    return lowerBound(smaller, lifetimes);
  }
  Problem withCapacity(int64_t capacity) const {
    Problem other;
    other.operations = problem.operations;
    other.storages = problem.storages;
    other.tiers = problem.tiers;
    other.segments = problem.segments;
    other.capacity = capacity;
    return other;
  }

  const Problem &problem;
  Lifetimes lifetimes;
  std::vector<uint8_t> tiers;
  std::string method;
  double goal = 0;
  int64_t work = 0;
};

} // namespace

static bool isBetter(const Draft &draft, const Draft &best) {
  return best.execution.start.empty() ||
         draft.execution.seconds < best.execution.seconds;
}

void Planner::attempt(Draft &best, const Choice &choice, int64_t capacity,
                      const char *name) {
  double last = 0;
  Clock clock(problem);
  for (int round = 0; round < kRounds; ++round) {
    work += lifetimes.slots + int64_t(lifetimes.gaps.size());
    Draft draft;
    draft.outOrder = choice.outOrder;
    if (!schedule(problem, lifetimes, choice, clock, capacity, draft.spills))
      return;
    draft.execution = execute(problem, draft.spills);
    clock = Clock(draft.execution);
    double seconds = draft.execution.seconds;
    if (isBetter(draft, best)) {
      best = std::move(draft);
      method = name;
    }
    if (seconds <= goal || (round && std::abs(seconds - last) < 1e-9 * last))
      break;
    last = seconds;
  }
}

/// The best plan for a capacity; depends on nothing that was done before.
Draft Planner::solve(int64_t capacity) {
  Draft best;
  int64_t until = work + kWork;
  for (CoverOrder order :
       {CoverOrder::Longest, CoverOrder::LongestTimesBytes,
        CoverOrder::Outermost, CoverOrder::Largest, CoverOrder::Latest})
    for (CoverWindow window :
         {CoverWindow::Whole, CoverWindow::BetweenCopies}) {
      bool hasPlan = !best.execution.start.empty();
      if (hasPlan && (best.execution.seconds <= goal || work > until))
        break;
      Choice choice =
          cover(problem, lifetimes, Clock(problem), capacity, order, window);
      choice.tier = tiers;
      attempt(best, choice, capacity, nameOf(order));
    }
  // The same gaps, with copies out in other orders.
  if (!best.execution.start.empty() && best.execution.seconds > goal &&
      work <= until) {
    Choice choice;
    choice.isChosen = lifetimes.findChosen(best.spills);
    choice.tier = tiers;
    std::string name = method;
    for (uint32_t order = 1; order < kOutOrders; ++order) {
      choice.outOrder = OutOrder(order);
      attempt(best, choice, capacity, name.c_str());
    }
  }
  if (!best.execution.start.empty())
    improve(problem, lifetimes, tiers, capacity, kSmallWork, goal, best);
  return best;
}

/// Copies out are waited for at once, copies in issued when they are needed.
Draft Planner::waitForEverything() {
  Choice choice = cover(problem, lifetimes, Clock(problem), problem.capacity,
                        CoverOrder::Longest, CoverWindow::Whole);
  std::vector<bool> isClean = lifetimes.findClean(problem, choice.isChosen);
  Draft draft;
  for (uint32_t g = 0; g < lifetimes.gaps.size(); ++g) {
    const Gap &gap = lifetimes.gaps[g];
    if (choice.isChosen[g])
      draft.spills.push_back({gap.storage, gap.after, gap.before, gap.after + 1,
                              gap.before, tiers[g], isClean[g], false});
  }
  draft.execution = execute(problem, draft.spills);
  return draft;
}

Draft Planner::solveForTiers() {
  int64_t begin = work;
  Draft best = solve(problem.capacity);
  Draft waiting = waitForEverything();
  if (isBetter(waiting, best)) {
    best = std::move(waiting);
    method = "waiting for every copy";
  }
  int64_t most =
      *std::max_element(lifetimes.live.begin(), lifetimes.live.end());
  int64_t least =
      *std::max_element(lifetimes.needed.begin(), lifetimes.needed.end());
  for (int part = kParts - 1; part > 0; --part) {
    int64_t capacity = int64_t(double(most) * part / kParts);
    if (capacity >= problem.capacity)
      continue;
    if (capacity < least || best.execution.seconds <= goal ||
        boundAt(capacity) >= best.execution.seconds || work - begin > kWork)
      break;
    Draft draft = solve(capacity);
    if (isBetter(draft, best))
      best = std::move(draft);
  }
  return best;
}

bool Planner::run(Draft &draft, std::string &how, Plan &plan) {
  goal = plan.boundSeconds * (1 + 1e-9);
  Draft kept;
  const std::vector<uint8_t> nearest = tiers;
  for (Outward order :
       {Outward{OutwardOrder::Longest}, Outward{OutwardOrder::Mixed},
        Outward{OutwardOrder::KeepOutBusy},
        Outward{OutwardOrder::KeepInBusy, 1.0 / 16},
        Outward{OutwardOrder::KeepInBusy, 1.0 / 22}}) {
    if (!kept.execution.start.empty() && kept.execution.seconds <= goal)
      break;
    tiers = nearest;
    for (int round = 0; round < kTierRounds; ++round) {
      draft = solveForTiers();
      if (findFullTier(problem, draft.spills) < 0) {
        if (isBetter(draft, kept))
          kept = std::move(draft);
        break;
      }
      // With other tiers these spills are a plan already, if any are.
      if (!moveOutward(problem, lifetimes, order, draft.spills, tiers, plan))
        break;
      draft.execution = execute(problem, draft.spills);
      if (isBetter(draft, kept))
        kept = std::move(draft);
    }
    if (tiers == nearest)
      break;
  }
  if (kept.execution.start.empty())
    return false;
  draft = std::move(kept);
  how = method;
  return true;
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
    if (spill.copiesIn())
      plan.bytesIn += bytes;
    if (spill.copiesOut())
      plan.bytesOut += bytes;
  }
  plan.spills = std::move(spills);
  return plan;
}

/// Drops early copies out that no later spill makes use of.
static void dropIdleCopies(const Problem &problem, std::vector<Spill> &spills) {
  Lifetimes lifetimes(problem, usesToRecompute(problem, spills));
  std::vector<const Spill *> spillOf(lifetimes.gaps.size(), nullptr);
  for (const Spill &spill : spills)
    for (uint32_t g = lifetimes.firstGap[spill.storage];
         g < lifetimes.firstGap[spill.storage + 1]; ++g)
      if (lifetimes.gaps[g].after == spill.after)
        spillOf[g] = &spill;
  std::vector<bool> isIdle(spills.size(), false);
  for (uint32_t s = 0; s + 1 < lifetimes.firstGap.size(); ++s) {
    bool isWanted = false;
    for (uint32_t g = lifetimes.firstGap[s + 1]; g-- > lifetimes.firstGap[s];) {
      const Spill *spill = spillOf[g];
      if (spill && !spill->recomputed) {
        if (!spill->copiesIn() && (spill->isClean || !isWanted))
          isIdle[spill - spills.data()] = true;
        else
          isWanted = spill->isClean;
      }
      isWanted &= !lifetimes.gaps[g].isWrittenBefore;
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < spills.size(); ++i)
    if (!isIdle[i])
      spills[kept++] = spills[i];
  spills.resize(kept);
}

/// Computes more again than the plan does, if that helps: all that could be,
/// half as many, half of these, and so on.
static bool computeAgain(const Problem &problem, double boundSeconds,
                         bool &found, Draft &draft) {
  bool helps = false;
  std::vector<Spill> spills = draft.spills;
  for (Recomputation again(problem, spills); !again.empty(); again.halve()) {
    if (found && draft.execution.seconds <= boundSeconds * (1 + 1e-9))
      break;
    Problem other = again.problem();
    Plan described = describePlan(other, {});
    Draft less;
    std::string method;
    if (described.tightestBytes > other.capacity)
      continue;
    if (described.maxLiveBytes > other.capacity &&
        !Planner(other).run(less, method, described))
      continue;
    less.spills = again.spills(less.spills);
    less.execution = execute(problem, less.spills);
    if (found && !isBetter(less, draft))
      continue;
    draft = std::move(less);
    found = helps = true;
  }
  return helps;
}

Plan mlir::hyperparallel::planner::makePlan(const Problem &problem) {
  Plan plan = describePlan(problem, {});
  if (plan.maxLiveBytes <= problem.capacity) {
    plan.method = "nothing moves";
    return plan;
  }
  if (plan.tightestBytes > problem.capacity || problem.tiers.empty()) {
    plan.status = PlanStatus::DeviceTooSmall;
    return plan;
  }
  Draft draft;
  std::string method;
  bool found = Planner(problem).run(draft, method, plan);
  for (int round = 0; round < kAgainRounds; ++round)
    if (!computeAgain(problem, plan.boundSeconds, found, draft))
      break;
  if (!found) {
    plan.status = PlanStatus::TiersTooSmall;
    return plan;
  }
  dropIdleCopies(problem, draft.spills);
  plan = describePlan(problem, std::move(draft.spills));
  plan.method = method;
  return plan;
}
