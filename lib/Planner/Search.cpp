//===- Search.cpp - small changes that make a plan better -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Two kinds of change, drawn at random from a generator with a fixed seed:
//
//   - of the set: a gap more, one less, or one for another, and another order
//   of
//     copies out; the slots of all gaps are found anew against the clock of the
//     plan that is changed;
//   - of the slots: a spill is freed, fetched or copied out some slots earlier
//   or
//     later, if everything still fits.
//
// A change is kept if the step takes no longer by it, or little longer with a
// chance that falls as the work is used up; the best plan of all is returned.
//
// Cost: what the caller allows. It serves small steps, where one wrong gap
// weighs much; on long ones it has little to do and few tries.
//===----------------------------------------------------------------------===//
#include "lib/Planner/Search.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace mlir::hyperparallel::planner;

namespace {

class Search {
public:
  Search(const Problem &problem, const Lifetimes &lifetimes,
         const std::vector<uint8_t> &tiers, int64_t capacity, Draft &best)
      : problem(problem), lifetimes(lifetimes), tiers(tiers),
        capacity(capacity), best(best), current(best) {
    take();
  }

  void run(int64_t work, double goal);

private:
  uint32_t draw(size_t below) { return uint32_t(random() % below); }
  void take();
  uint32_t gapOf(const Spill &spill) const;
  bool changeSet(Draft &draft);
  bool changeSlots(Draft &draft);
  bool fits(const Spill &spill, int32_t from, int32_t to) const;

  const Problem &problem;
  const Lifetimes &lifetimes;
  const std::vector<uint8_t> &tiers;
  int64_t capacity;
  Draft &best;
  Draft current;
  std::vector<bool> isChosen;
  std::vector<int64_t> resident;
  std::minstd_rand random{1};
};

} // namespace

uint32_t Search::gapOf(const Spill &spill) const {
  uint32_t low = lifetimes.firstGap[spill.storage];
  while (lifetimes.gaps[low].after != spill.after)
    ++low;
  return low;
}

/// What is known of the current draft.
void Search::take() {
  isChosen.assign(lifetimes.gaps.size(), false);
  resident = lifetimes.live;
  for (const Spill &spill : current.spills) {
    isChosen[gapOf(spill)] = true;
    forSlots(spill.freed, spill.fetched, lifetimes.slots,
             [&](int32_t from, int32_t to) {
               for (int32_t slot = from; slot < to; ++slot)
                 resident[slot] -= problem.alignedBytes(spill.storage);
             });
  }
}

bool Search::changeSet(Draft &draft) {
  Choice choice{isChosen, tiers, current.outOrder, current.copiesEarly};
  if (draw(4) == 0)
    choice.outOrder = OutOrder(draw(kOutOrders));
  if (draw(4) == 0)
    choice.copiesEarly = draw(2) == 0;
  uint32_t kind = draw(3);
  if (kind != 1) {
    uint32_t gap = draw(lifetimes.gaps.size());
    if (choice.isChosen[gap] && kind == 0)
      return false;
    choice.isChosen[gap] = true;
  }
  if (kind != 0) {
    if (current.spills.empty())
      return false;
    choice.isChosen[gapOf(current.spills[draw(current.spills.size())])] = false;
  }
  Clock clock(current.execution);
  if (draw(4) == 0)
    clock = Clock(problem);
  draft.outOrder = choice.outOrder;
  draft.copiesEarly = choice.copiesEarly;
  return schedule(problem, lifetimes, choice, clock, capacity, draft.spills);
}

bool Search::fits(const Spill &spill, int32_t from, int32_t to) const {
  bool result = true;
  int64_t bytes = problem.alignedBytes(spill.storage);
  forSlots(from, to, lifetimes.slots, [&](int32_t from, int32_t to) {
    for (int32_t slot = from; slot < to; ++slot)
      result &= resident[slot] + bytes <= capacity;
  });
  return result;
}

bool Search::changeSlots(Draft &draft) {
  if (current.spills.empty())
    return false;
  draft.spills = current.spills;
  draft.outOrder = current.outOrder;
  draft.copiesEarly = current.copiesEarly;
  for (uint32_t changes = 1 + draw(2); changes > 0; --changes) {
    Spill &spill = draft.spills[draw(draft.spills.size())];
    int32_t by = 1 + int32_t(draw(3));
    switch (draw(6)) {
    case 0:
      spill.freed = std::max(spill.after + 1, spill.freed - by);
      spill.delay =
          std::max(0, std::min(spill.delay, spill.freed - spill.after - 1));
      break;
    case 1:
      by = std::min(by, spill.fetched - spill.freed);
      if (!fits(spill, spill.freed, spill.freed + by))
        return false;
      spill.freed += by;
      break;
    case 2:
      by = std::min(by, spill.fetched - spill.freed);
      if (!fits(spill, spill.fetched - by, spill.fetched))
        return false;
      spill.fetched -= by;
      break;
    case 3:
      spill.fetched = std::min(spill.before, spill.fetched + by);
      break;
    case 4:
      spill.delay =
          std::max(0, std::min(spill.delay + by,
                               std::min(spill.freed, lifetimes.slots - 1) -
                                   spill.after - 1));
      break;
    default:
      spill.delay = std::max(spill.delay - by, 0);
    }
  }
  // Two changes may take the same room twice.
  std::vector<int64_t> bytes = lifetimes.live;
  for (const Spill &spill : draft.spills)
    forSlots(spill.freed, spill.fetched, lifetimes.slots,
             [&](int32_t from, int32_t to) {
               for (int32_t slot = from; slot < to; ++slot)
                 bytes[slot] -= problem.alignedBytes(spill.storage);
             });
  return *std::max_element(bytes.begin(), bytes.end()) <= capacity;
}

void Search::run(int64_t work, double goal) {
  int64_t cost = lifetimes.slots + int64_t(lifetimes.gaps.size());
  int64_t tries = work / cost;
  for (int64_t i = 0; i < tries && best.execution.seconds > goal; ++i) {
    Draft draft;
    if (!(draw(2) ? changeSet(draft) : changeSlots(draft)))
      continue;
    draft.execution = execute(problem, draft.spills);
    double slower = draft.execution.seconds / current.execution.seconds - 1;
    double heat = 0.02 * (1 - double(i) / double(tries));
    if (slower > 0 && std::exp(-slower / heat) * 1024 < double(draw(1024)))
      continue;
    current = std::move(draft);
    if (current.execution.seconds < best.execution.seconds)
      best = current;
    take();
    if (i % 512 == 511) {
      current = best;
      take();
    }
  }
}

void mlir::hyperparallel::planner::improve(const Problem &problem,
                                           const Lifetimes &lifetimes,
                                           const std::vector<uint8_t> &tiers,
                                           int64_t capacity, int64_t work,
                                           double goal, Draft &best) {
  if (!lifetimes.gaps.empty())
    Search(problem, lifetimes, tiers, capacity, best).run(work, goal);
}
