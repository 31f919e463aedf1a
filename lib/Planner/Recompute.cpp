//===- Recompute.cpp - computing storages again ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A storage that is computed again is two: one up to the use before the gap,
// and one that the operation after the gap makes, in its time and that of
// computing it, from what it is computed from, which that operation then reads.
//
// Limits: one gap of a storage; only what is not persistent; nothing whose
// sources are computed again themselves, or are made later.
// Cost: O(uses + spills log spills).
//===----------------------------------------------------------------------===//
#include "lib/Planner/Recompute.h"

#include <algorithm>
#include <map>

using namespace mlir::hyperparallel::planner;

Recomputation::Recomputation(const Problem &problem,
                             const std::vector<Spill> &spills)
    : original(problem) {
  std::vector<uint32_t> firstUse(problem.storages.size(), ~0u);
  for (const Use &use : problem.uses)
    firstUse[use.storage] = std::min(firstUse[use.storage], use.operation);
  std::vector<std::pair<double, Spill>> found;
  for (const Spill &spill : spills) {
    const Storage &storage = problem.storages[spill.storage];
    if (storage.recomputeSeconds < 0 || storage.persistent || storage.clean ||
        spill.before >= int32_t(problem.operations.size()))
      continue;
    const Tier &tier = problem.tiers[spill.tier];
    double copies = problem.seconds(tier.in, storage.bytes);
    if (!spill.isClean)
      copies += problem.seconds(tier.out, storage.bytes);
    bool isLater =
        std::any_of(storage.recomputeFrom.begin(), storage.recomputeFrom.end(),
                    [&](uint32_t from) {
                      return !problem.storages[from].persistent &&
                             firstUse[from] >= uint32_t(spill.before);
                    });
    if (!isLater && storage.recomputeSeconds < copies)
      found.push_back({storage.recomputeSeconds / copies, spill});
  }
  std::stable_sort(
      found.begin(), found.end(),
      [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<bool> isChosen(problem.storages.size(), false),
      isSource = isChosen;
  for (const auto &[ratio, spill] : found) {
    const Storage &storage = problem.storages[spill.storage];
    bool depends = isChosen[spill.storage] || isSource[spill.storage];
    for (uint32_t from : storage.recomputeFrom)
      depends |= isChosen[from];
    if (depends)
      continue;
    isChosen[spill.storage] = true;
    for (uint32_t from : storage.recomputeFrom)
      isSource[from] = true;
    chosen.push_back(spill);
  }
}

Problem Recomputation::problem() const {
  Problem result = original;
  std::map<uint32_t, std::pair<uint32_t, int32_t>> second;
  for (const Spill &spill : chosen) {
    const Storage &storage = original.storages[spill.storage];
    second[spill.storage] = {uint32_t(result.storages.size()), spill.before};
    result.storages.push_back(storage);
    result.storages.back().recomputeSeconds = -1;
    result.operations[spill.before].seconds += storage.recomputeSeconds;
    for (uint32_t from : storage.recomputeFrom)
      result.uses.push_back({uint32_t(spill.before), from, true, false});
  }
  for (Use &use : result.uses) {
    auto found = second.find(use.storage);
    if (found == second.end() || int32_t(use.operation) < found->second.second)
      continue;
    use.storage = found->second.first;
    use.writes |= int32_t(use.operation) == found->second.second;
  }
  return result;
}

std::vector<Spill>
Recomputation::spills(const std::vector<Spill> &others) const {
  std::vector<Spill> result;
  for (Spill spill : others) {
    if (spill.storage >= original.storages.size())
      spill.storage = chosen[spill.storage - original.storages.size()].storage;
    result.push_back(spill);
  }
  for (Spill spill : chosen) {
    spill.freed = spill.after + 1;
    spill.delay = 0;
    spill.fetched = spill.before;
    spill.isClean = false;
    spill.recomputed = true;
    result.push_back(spill);
  }
  return result;
}
