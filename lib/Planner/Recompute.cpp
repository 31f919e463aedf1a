//===- Recompute.cpp - computing storages again ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A storage that is computed again is two: one up to the use before the gap,
// and one that the operation after the gap makes, in its time and that of
// computing it, from what it is computed from, which that operation then reads.
// Sources may be computed again themselves, for an earlier operation.
//
// Those come first whose sources are used as late anyway, so that nothing lives
// longer for it, and of these those that save most time on the links.
//
// Limits: one gap of a storage; only what is not persistent; nothing whose
// sources are computed again for the same operation, or are made later.
// Cost: O(uses + spills log spills + sources).
//===----------------------------------------------------------------------===//
#include "lib/Planner/Recompute.h"

#include <algorithm>
#include <map>

using namespace mlir::hyperparallel::planner;

/// Whether the operation reads a storage while that is dropped.
static bool isInGap(int32_t operation, const Spill &spill) {
  return spill.after < operation && operation <= spill.before;
}

/// Chooses the spill, if what is chosen already allows that. `again` has the
/// chosen spill of each storage, `readAgain` the operations before which it is
/// read to compute another.
bool Recomputation::add(const Spill &spill,
                        std::vector<std::vector<int32_t>> &readAgain,
                        std::vector<const Spill *> &again) const {
  const std::vector<uint32_t> &sources =
      original.storages[spill.storage].recomputeFrom;
  auto isDropped = [&](uint32_t from) {
    return again[from] && isInGap(spill.before, *again[from]);
  };
  auto isMissed = [&](int32_t operation) { return isInGap(operation, spill); };
  const std::vector<int32_t> &reads = readAgain[spill.storage];
  if (again[spill.storage] ||
      std::any_of(sources.begin(), sources.end(), isDropped) ||
      std::any_of(reads.begin(), reads.end(), isMissed))
    return false;
  again[spill.storage] = &spill;
  for (uint32_t from : sources)
    readAgain[from].push_back(spill.before);
  return true;
}

Recomputation::Recomputation(const Problem &problem,
                             const std::vector<Spill> &spills)
    : original(problem) {
  std::vector<uint32_t> firstUse(problem.storages.size(), ~0u),
      lastUse(problem.storages.size(), 0);
  for (const Use &use : problem.uses) {
    firstUse[use.storage] = std::min(firstUse[use.storage], use.operation);
    lastUse[use.storage] = std::max(lastUse[use.storage], use.operation);
  }
  struct Candidate {
    Spill spill;
    bool livesLonger;
    double saved;
  };
  std::vector<Candidate> found;
  for (const Spill &spill : spills) {
    const Storage &storage = problem.storages[spill.storage];
    if (spill.recomputed)
      chosen.push_back(spill);
    if (spill.recomputed || storage.recomputeSeconds < 0 ||
        storage.persistent || storage.clean ||
        spill.before >= int32_t(problem.operations.size()))
      continue;
    const Tier &tier = problem.tiers[spill.tier];
    double copies = problem.seconds(tier.in, storage.bytes);
    if (!spill.isClean)
      copies += problem.seconds(tier.out, storage.bytes);
    bool isLater = false, livesLonger = false;
    for (uint32_t from : storage.recomputeFrom)
      if (!problem.storages[from].persistent) {
        isLater |= firstUse[from] >= uint32_t(spill.before);
        livesLonger |= lastUse[from] < uint32_t(spill.before);
      }
    if (!isLater && storage.recomputeSeconds < copies)
      found.push_back({spill, livesLonger, copies - storage.recomputeSeconds});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate &a, const Candidate &b) {
                     return a.livesLonger != b.livesLonger ? b.livesLonger
                                                           : a.saved > b.saved;
                   });
  numKept = chosen.size();
  std::vector<std::vector<int32_t>> readAgain(problem.storages.size());
  std::vector<const Spill *> again(problem.storages.size(), nullptr);
  // Where they are stays, while more are found.
  chosen.reserve(spills.size());
  for (const Spill &spill : chosen)
    add(spill, readAgain, again);
  for (const Candidate &candidate : found)
    if (add(candidate.spill, readAgain, again))
      chosen.push_back(candidate.spill);
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
