//===- Tiers.cpp - which tier what leaves the device goes to --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// For each tier from the nearest on: a storage lies there from its first copy
// out to its last copy in. Where that is more than the tier holds, storages
// move to the next tier, the ones that are away longest first: they have the
// most time for the way. All spills of a storage move together, as one copy may
// serve several. What has its home in a tier stays there.
//
// Cost: O((slots + spills) log) for each tier.
//===----------------------------------------------------------------------===//
#include "lib/Planner/Tiers.h"
#include "lib/Planner/Check.h"
#include "lib/Planner/SegmentTree.h"

#include <algorithm>
#include <cmath>

using namespace mlir::hyperparallel::planner;

namespace {
/// A storage and the slots at which it lies in a tier.
struct Stay {
  uint32_t storage;
  int32_t from, to;
};
} // namespace

int32_t
mlir::hyperparallel::planner::findFullTier(const Problem &problem,
                                           const std::vector<Spill> &spills) {
  std::vector<std::vector<int64_t>> bytes = tierBytes(problem, spills);
  for (size_t t = 0; t < bytes.size(); ++t)
    if (*std::max_element(bytes[t].begin(), bytes[t].end()) >
        problem.tiers[t].capacity)
      return int32_t(t);
  return -1;
}

static std::vector<Stay> mix(const std::vector<Stay> &stays) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < stays.size(); ++i)
    order.push_back({std::fmod(double(i) * 0.6180339887498949, 1.0), i});
  std::sort(order.begin(), order.end());
  std::vector<Stay> result;
  for (auto [place, i] : order)
    result.push_back(stays[i]);
  return result;
}

/// Those first that follow each other on the link without a wait: copies out
/// from the step's beginning on, or copies in back from its last part, in which
/// they would have nothing to hide behind if they are late.
static std::vector<Stay> keepBusy(const Problem &problem, const Link &link,
                                  bool isIn, double lastPart,
                                  const std::vector<Stay> &stays) {
  std::vector<double> times{0};
  for (const Operation &op : problem.operations)
    times.push_back(times.back() + op.seconds);
  auto begin = [&](const Stay &stay) {
    return isIn ? times.back() - times[stay.to - 1] : times[stay.from];
  };
  std::vector<Stay> sorted = stays;
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [&](const Stay &a, const Stay &b) { return begin(a) < begin(b); });
  double free = times.back() * lastPart;
  std::vector<Stay> result, rest;
  for (const Stay &stay : sorted) {
    bool isFirst = free <= begin(stay);
    (isFirst ? result : rest).push_back(stay);
    if (isFirst)
      free = begin(stay) +
             problem.seconds(link, problem.storages[stay.storage].bytes);
  }
  rest = mix(rest);
  result.insert(result.end(), rest.begin(), rest.end());
  return result;
}

static std::vector<Stay> staysIn(uint32_t tier, const Problem &problem,
                                 const Lifetimes &lifetimes,
                                 const std::vector<Spill> &spills) {
  std::vector<Stay> stays;
  std::vector<int32_t> of(problem.storages.size(), -1);
  for (const Spill &spill : spills) {
    if (spill.tier != tier || problem.storages[spill.storage].clean)
      continue;
    int32_t from = spill.after + 1, to = spill.before + 1;
    // What goes over the end of the step is there all the time.
    if (to > lifetimes.slots) {
      from = 0;
      to = lifetimes.slots;
    }
    if (of[spill.storage] < 0) {
      of[spill.storage] = int32_t(stays.size());
      stays.push_back({spill.storage, from, to});
      continue;
    }
    Stay &stay = stays[of[spill.storage]];
    stay.from = std::min(stay.from, from);
    stay.to = std::max(stay.to, to);
  }
  std::sort(stays.begin(), stays.end(), [](const Stay &a, const Stay &b) {
    int32_t lengthA = a.to - a.from, lengthB = b.to - b.from;
    return lengthA != lengthB ? lengthA > lengthB : a.storage < b.storage;
  });
  return stays;
}

bool mlir::hyperparallel::planner::moveOutward(
    const Problem &problem, const Lifetimes &lifetimes, Outward outward,
    std::vector<Spill> &spills, std::vector<uint8_t> &tiers, Plan &plan) {
  for (uint32_t t = 0; t < problem.tiers.size(); ++t) {
    int64_t capacity = problem.tiers[t].capacity;
    std::vector<Stay> stays = staysIn(t, problem, lifetimes, spills);
    std::vector<int64_t> change(lifetimes.slots + 1, 0);
    for (const Stay &stay : stays) {
      change[stay.from] += problem.alignedBytes(stay.storage);
      change[stay.to] -= problem.alignedBytes(stay.storage);
    }
    change.pop_back();
    for (size_t slot = 1; slot < change.size(); ++slot)
      change[slot] += change[slot - 1];
    if (outward.order == OutwardOrder::Mixed)
      stays = mix(stays);
    bool isIn = outward.order == OutwardOrder::KeepInBusy;
    if ((isIn || outward.order == OutwardOrder::KeepOutBusy) &&
        t + 1 < problem.tiers.size()) {
      const Tier &next = problem.tiers[t + 1];
      stays = keepBusy(problem, isIn ? next.in : next.out, isIn,
                       outward.lastPart, stays);
    }
    SegmentTree tree(change);
    if (t + 1 == problem.tiers.size()) {
      if (findFullTier(problem, spills) < 0)
        return true;
      plan.tierNeededBytes = tree.max();
      plan.tierCapacityBytes = capacity;
      for (uint32_t nearer = 0; nearer < t; ++nearer) {
        plan.tierNeededBytes += problem.tiers[nearer].capacity;
        plan.tierCapacityBytes += problem.tiers[nearer].capacity;
      }
      return false;
    }
    std::vector<bool> moves(problem.storages.size(), false);
    for (const Stay &stay : stays) {
      if (tree.max() <= capacity)
        break;
      if (tree.max(stay.from, stay.to) <= capacity)
        continue;
      tree.add(stay.from, stay.to, -problem.alignedBytes(stay.storage));
      moves[stay.storage] = true;
    }
    for (Spill &spill : spills)
      if (spill.tier == t && moves[spill.storage])
        spill.tier = t + 1;
    for (size_t g = 0; g < tiers.size(); ++g)
      if (tiers[g] == t && moves[lifetimes.gaps[g].storage])
        tiers[g] = uint8_t(t + 1);
  }
  return true;
}
