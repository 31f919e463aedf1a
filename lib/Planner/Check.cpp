//===- Check.cpp - whether a plan is safe ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Looks at a plan as somebody who does not know how it was made: every spill
// lies between two neighbouring uses, every copy in has something valid to
// copy, and at every slot each tier holds no more than it can. Integers only.
//
// Cost: O(n + spills log spills).
//===----------------------------------------------------------------------===//
#include "lib/Planner/Check.h"

#include <algorithm>
#include <map>

using namespace mlir::hyperparallel::planner;

/// The spills by storage, then by when they begin.
static std::vector<uint32_t> byStorage(const std::vector<Spill> &spills) {
  std::vector<uint32_t> order(spills.size());
  for (uint32_t i = 0; i < spills.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::make_pair(spills[a].storage, spills[a].after) <
           std::make_pair(spills[b].storage, spills[b].after);
  });
  return order;
}

/// What it takes to compute storages again is used where that happens.
std::vector<Use> mlir::hyperparallel::planner::usesToRecompute(
    const Problem &problem, const std::vector<Spill> &spills) {
  std::vector<Use> uses;
  uint32_t slots = uint32_t(problem.operations.size()) + 1;
  for (const Spill &spill : spills)
    if (spill.recomputed)
      for (uint32_t from : problem.storages[spill.storage].recomputeFrom)
        uses.push_back({uint32_t(spill.before) % slots, from, true, false});
  return uses;
}

std::vector<int64_t>
mlir::hyperparallel::planner::residentBytes(const Problem &problem,
                                            const std::vector<Spill> &spills) {
  Lifetimes lifetimes(problem, usesToRecompute(problem, spills));
  std::vector<int64_t> change(lifetimes.slots + 1, 0);
  for (const Spill &spill : spills)
    forSlots(spill.freed, spill.fetched, lifetimes.slots,
             [&](int32_t from, int32_t to) {
               change[from] -= problem.alignedBytes(spill.storage);
               change[to] += problem.alignedBytes(spill.storage);
             });
  std::vector<int64_t> result = lifetimes.live;
  int64_t total = 0;
  for (int32_t slot = 0; slot < lifetimes.slots; ++slot)
    result[slot] += total += change[slot];
  return result;
}

std::vector<std::vector<int64_t>>
mlir::hyperparallel::planner::tierBytes(const Problem &problem,
                                        const std::vector<Spill> &spills) {
  int32_t slots = int32_t(problem.operations.size()) + 1;
  std::vector<std::vector<int64_t>> result(problem.tiers.size(),
                                           std::vector<int64_t>(slots + 1, 0));
  std::vector<uint32_t> order = byStorage(spills);
  for (size_t i = 0; i < order.size();) {
    const Spill &first = spills[order[i]];
    const Storage &storage = problem.storages[first.storage];
    int64_t bytes = problem.alignedBytes(first.storage);
    size_t end = i;
    bool staysBelow = false;
    for (; end < order.size() && spills[order[end]].storage == first.storage;
         ++end)
      staysBelow |= spills[order[end]].before >= slots;
    for (size_t next = i + 1; i < end; i = next++) {
      const Spill &spill = spills[order[i]];
      int32_t last = spill.before;
      for (; next < end && spills[order[next]].isClean; ++next)
        last = spills[order[next]].before;
      if (storage.clean || spill.recomputed)
        continue;
      std::vector<int64_t> &change = result[spill.tier];
      change[staysBelow ? 0 : spill.after + 1] += bytes;
      change[staysBelow ? slots : std::min(last + 1, slots)] -= bytes;
      if (staysBelow)
        next = end;
    }
    i = end;
  }
  for (std::vector<int64_t> &tier : result) {
    for (int32_t slot = 1; slot < slots; ++slot)
      tier[slot] += tier[slot - 1];
    tier.resize(slots);
  }
  return result;
}

static std::string describe(const Spill &spill) {
  return "the spill of storage " + std::to_string(spill.storage) +
         " after operation " + std::to_string(spill.after);
}

static std::string findSpillFault(const Problem &problem,
                                  const Lifetimes &lifetimes,
                                  const std::vector<Spill> &spills,
                                  std::vector<bool> &isChosen) {
  std::map<std::pair<uint32_t, int32_t>, uint32_t> gapOf;
  for (uint32_t g = 0; g < lifetimes.gaps.size(); ++g)
    gapOf[{lifetimes.gaps[g].storage, lifetimes.gaps[g].after}] = g;
  for (const Spill &spill : spills) {
    if (spill.storage >= problem.storages.size())
      return "expected spills to name storages of the problem";
    auto found = gapOf.find({spill.storage, spill.after});
    if (found == gapOf.end() ||
        lifetimes.gaps[found->second].before != spill.before)
      return "expected " + describe(spill) +
             " to lie between neighbouring uses";
    if (isChosen[found->second])
      return "expected " + describe(spill) + " to be there once";
    isChosen[found->second] = true;
    if (!(spill.after < spill.freed && spill.freed <= spill.fetched &&
          spill.fetched <= spill.before))
      return "expected " + describe(spill) +
             " to be freed after its use and fetched before the next";
    if (spill.delay < 0 || spill.issued() > spill.freed ||
        (spill.delay > 0 && spill.issued() >= lifetimes.slots))
      return "expected " + describe(spill) +
             " to be copied out after its use and before it is freed";
    if (spill.tier >= problem.tiers.size() && !spill.recomputed)
      return "expected " + describe(spill) + " to go to a tier of the problem";
    if (spill.recomputed &&
        problem.storages[spill.storage].recomputeSeconds < 0)
      return "expected " + describe(spill) + " to be of what can be computed";
  }
  return "";
}

std::string
mlir::hyperparallel::planner::findFault(const Problem &problem,
                                        const std::vector<Spill> &spills) {
  Lifetimes lifetimes(problem, usesToRecompute(problem, spills));
  std::vector<bool> isChosen(lifetimes.gaps.size(), false);
  std::string fault = findSpillFault(problem, lifetimes, spills, isChosen);
  if (!fault.empty())
    return fault;
  // What was computed again left no copy below.
  std::vector<uint32_t> order = byStorage(spills);
  std::vector<std::pair<uint32_t, uint32_t>> gaps;
  for (uint32_t g = 0; g < isChosen.size(); ++g)
    if (isChosen[g])
      gaps.push_back({g, order[gaps.size()]});
  for (auto [g, s] : gaps)
    if (spills[s].recomputed)
      isChosen[g] = false;
  std::vector<bool> isClean = lifetimes.findClean(problem, isChosen);
  for (auto [g, s] : gaps)
    if (spills[s].isClean && !isClean[g])
      return "expected " + describe(spills[s]) +
             " to be copied out: no valid copy lies below";
  std::vector<int64_t> resident = residentBytes(problem, spills);
  for (size_t slot = 0; slot < resident.size(); ++slot)
    if (resident[slot] > problem.capacity)
      return "expected at most " + std::to_string(problem.capacity) +
             " bytes at slot " + std::to_string(slot) + " but got " +
             std::to_string(resident[slot]);
  std::vector<std::vector<int64_t>> tiers = tierBytes(problem, spills);
  for (size_t t = 0; t < tiers.size(); ++t) {
    int64_t most = *std::max_element(tiers[t].begin(), tiers[t].end());
    if (most > problem.tiers[t].capacity)
      return "expected at most " + std::to_string(problem.tiers[t].capacity) +
             " bytes in tier " + std::to_string(t) + " but got " +
             std::to_string(most);
  }
  return "";
}
