//===- Search.cpp - small changes that make a plan better -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Two kinds of change, drawn at random from a generator with a fixed seed:
//
//   - of the set: a gap more, one less, or one for another, and another order
//     of copies out; the slots of all gaps are found anew against the clock of
//     the plan that is changed;
//   - of the slots: a spill is freed, fetched or copied out some slots earlier
//     or later, if everything still fits;
//   - of some gaps, on small steps: a few spills are given up, and others, or
//     the same at other slots, are drawn until everything fits again; or a
//     storage is copied out in an earlier gap than the one it leaves in.
//
// A change is kept if the step takes no longer by it, or little longer with a
// chance that falls, and rises again a few times, as the work is used up; the
// best plan of all is returned.
//
// Cost: what the caller allows. It serves small steps, where one wrong gap
// weighs much; on long ones it has little to do and few tries.
//===----------------------------------------------------------------------===//
#include "lib/Planner/Search.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace mlir::hyperparallel::planner;

/// Slots and gaps of steps on which gaps are changed one by one.
static constexpr int64_t kSmall = 512;
/// The most changes that are tried on a small step, for each slot and gap; and
/// how often plans that are slower may be kept again.
static constexpr int64_t kTries = 300, kRounds = 3;

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
  bool changeGaps(Draft &draft);
  bool relieve(Draft &draft);
  bool copyEarly(Draft &draft);
  void settle(Draft &draft);
  void orderOut(Draft &draft) const;
  bool fits(const Spill &spill, int32_t from, int32_t to) const;

  const Problem &problem;
  const Lifetimes &lifetimes;
  const std::vector<uint8_t> &tiers;
  int64_t capacity;
  Draft &best;
  Draft current;
  std::vector<bool> isChosen;
  std::vector<int64_t> resident;
  /// The same of a draft under way.
  std::vector<bool> isTaken;
  std::vector<int64_t> changed;
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

/// Spills some gap that has the fullest slot in it, at slots that are drawn;
/// false if there is none. `resident` is that of the draft.
bool Search::relieve(Draft &draft) {
  int32_t slot = int32_t(std::max_element(changed.begin(), changed.end()) -
                         changed.begin());
  std::vector<uint32_t> found;
  for (uint32_t g = 0; g < lifetimes.gaps.size(); ++g) {
    const Gap &gap = lifetimes.gaps[g];
    if (!isTaken[g] && !lifetimes.wraps(gap) && gap.after < slot &&
        slot < gap.before)
      found.push_back(g);
  }
  if (found.empty())
    return false;
  uint32_t g = found[draw(found.size())];
  const Gap &gap = lifetimes.gaps[g];
  isTaken[g] = true;
  // All slots around it that are too full, or those up to the last in the gap.
  int32_t first = slot, last = slot;
  if (draw(2) == 0) {
    while (first > gap.after + 1 && changed[first - 1] > capacity)
      --first;
    while (last + 1 < gap.before && changed[last + 1] > capacity)
      ++last;
  } else {
    for (int32_t i = gap.after + 1; i < gap.before; ++i)
      if (changed[i] > capacity) {
        first = std::min(first, i);
        last = std::max(last, i);
      }
  }
  Spill spill;
  spill.storage = gap.storage;
  spill.after = gap.after;
  spill.before = gap.before;
  spill.freed =
      draw(3) ? first
              : gap.after + 1 + int32_t(draw(uint32_t(first - gap.after)));
  spill.fetched = draw(3)
                      ? last + 1
                      : last + 1 + int32_t(draw(uint32_t(gap.before - last)));
  spill.tier = tiers[g];
  if (draw(4) == 0)
    spill.delay = int32_t(draw(uint32_t(spill.freed - spill.after)));
  for (int32_t i = spill.freed; i < spill.fetched; ++i)
    changed[i] -= gap.bytes;
  draft.spills.push_back(spill);
  return true;
}

/// Adds a spill that is only copied out, for a later one of its storage.
bool Search::copyEarly(Draft &draft) {
  uint32_t g = draw(lifetimes.gaps.size());
  const Gap &gap = lifetimes.gaps[g];
  if (isTaken[g] || g + 1 == lifetimes.firstGap[gap.storage + 1] ||
      lifetimes.gaps[g + 1].isWrittenBefore || lifetimes.wraps(gap))
    return false;
  isTaken[g] = true;
  Spill spill;
  spill.storage = gap.storage;
  spill.after = gap.after;
  spill.before = gap.before;
  spill.freed = spill.fetched = gap.before;
  spill.tier = tiers[g];
  if (draw(2))
    spill.delay = int32_t(draw(uint32_t(gap.before - gap.after)));
  draft.spills.push_back(spill);
  return true;
}

/// What follows from the set: what is clean, and what is in no order.
void Search::settle(Draft &draft) {
  std::vector<bool> isClean = lifetimes.findClean(problem, isTaken);
  for (Spill &spill : draft.spills) {
    spill.isClean = isClean[gapOf(spill)];
    if (spill.isClean)
      spill.delay = 0;
  }
  std::sort(draft.spills.begin(), draft.spills.end(),
            [](const Spill &a, const Spill &b) {
              return std::make_pair(a.after, a.storage) <
                     std::make_pair(b.after, b.storage);
            });
}

/// Delays copies out so that whenever a link is free, the copy that is waited
/// for first goes first.
void Search::orderOut(Draft &draft) const {
  std::vector<uint32_t> order;
  for (uint32_t s = 0; s < draft.spills.size(); ++s)
    if (draft.spills[s].copiesOut())
      order.push_back(s);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::make_pair(draft.spills[a].after, a) <
           std::make_pair(draft.spills[b].after, b);
  });
  const std::vector<double> &reached = current.execution.reached;
  std::vector<uint32_t> waiting;
  auto isLater = [&](uint32_t a, uint32_t b) {
    return std::make_pair(draft.spills[a].freed, a) >
           std::make_pair(draft.spills[b].freed, b);
  };
  double free = 0;
  size_t next = 0;
  int32_t slot = 0;
  while (next < order.size() || !waiting.empty()) {
    if (waiting.empty())
      free = std::max(free, reached[draft.spills[order[next]].after + 1]);
    while (slot + 1 < lifetimes.slots && reached[slot + 1] <= free)
      ++slot;
    for (; next < order.size() && draft.spills[order[next]].after < slot;
         ++next) {
      waiting.push_back(order[next]);
      std::push_heap(waiting.begin(), waiting.end(), isLater);
    }
    std::pop_heap(waiting.begin(), waiting.end(), isLater);
    Spill &spill = draft.spills[waiting.back()];
    waiting.pop_back();
    spill.delay =
        std::max(0, std::min({slot, spill.freed, lifetimes.slots - 1}) -
                        spill.after - 1);
    const Tier &tier = problem.tiers[spill.tier];
    free += problem.seconds(tier.out, problem.storages[spill.storage].bytes);
  }
}

bool Search::changeGaps(Draft &draft) {
  draft.outOrder = current.outOrder;
  draft.copiesEarly = current.copiesEarly;
  draft.spills = current.spills;
  isTaken = isChosen;
  changed = resident;
  // Any, or some of those that are away at the same time.
  int32_t slot = draw(2) ? int32_t(draw(uint32_t(lifetimes.slots))) : -1;
  uint32_t most = draw(5);
  for (size_t i = 0, s = 0; i < current.spills.size() && most > 0; ++i) {
    const Spill &spill = draft.spills[s];
    bool isThere =
        slot < 0 ? draw(current.spills.size()) < most
                 : spill.freed <= slot && slot < spill.fetched && draw(2) == 0;
    if (!isThere || spill.before >= lifetimes.slots) {
      ++s;
      continue;
    }
    --most;
    isTaken[gapOf(spill)] = false;
    int64_t bytes = problem.alignedBytes(spill.storage);
    for (int32_t at = spill.freed; at < spill.fetched; ++at)
      changed[at] += bytes;
    draft.spills[s] = draft.spills.back();
    draft.spills.pop_back();
  }
  if (draw(8) == 0)
    copyEarly(draft);
  while (*std::max_element(changed.begin(), changed.end()) > capacity)
    if (!relieve(draft))
      return false;
  settle(draft);
  return true;
}

void Search::run(int64_t work, double goal) {
  int64_t cost = lifetimes.slots + int64_t(lifetimes.gaps.size());
  bool isSmall = cost <= kSmall;
  // Most tries on a small step change few gaps, and take less.
  int64_t tries = work / cost;
  if (isSmall)
    tries = 6 * std::min(tries, kTries * cost);
  int64_t round = tries / kRounds + 1;
  for (int64_t i = 0; i < tries && best.execution.seconds > goal; ++i) {
    Draft draft;
    // Finding all slots anew takes longest.
    uint32_t kind = isSmall ? draw(16) : draw(2) * 8;
    bool isPlan = kind == 0  ? changeSet(draft)
                  : kind < 8 ? changeGaps(draft)
                             : changeSlots(draft);
    if (!isPlan)
      continue;
    if (isSmall && draw(2))
      orderOut(draft);
    draft.execution = execute(problem, draft.spills);
    double slower = draft.execution.seconds / current.execution.seconds - 1;
    double heat = 0.01 * (1 - double(i % round) / double(round));
    if (slower > 0 && std::exp(-slower / heat) * 1024 < double(draw(1024)))
      continue;
    current = std::move(draft);
    if (current.execution.seconds < best.execution.seconds)
      best = current;
    take();
    if (i % 2048 == 2047) {
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
