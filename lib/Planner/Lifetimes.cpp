//===- Lifetimes.cpp - when storages live and when nobody needs them ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// 1. Uses are sorted by storage and operation (counting sorts).
// 2. Neighbouring uses with an operation between them make a gap; a persistent
//    storage has one before its first and one after its last use, which are one
//    gap over the step's end if it may start below.
// 3. Bytes by slot are sums of differences at the ends of lifetimes.
//
// Cost: O(operations + storages + uses).
//===----------------------------------------------------------------------===//
#include "lib/Planner/Lifetimes.h"

#include <algorithm>
#include <cmath>

using namespace mlir::hyperparallel::planner;

static std::string name(const char *what, size_t number) {
  return std::string(what) + " " + std::to_string(number);
}

static bool isAmount(double value) {
  return value >= 0 && std::isfinite(value);
}

static std::string findLinkFault(const Problem &problem, const Link &link,
                                 const std::string &where) {
  if (!isAmount(link.latency) || !(link.bandwidth > 0))
    return "expected " + where +
           " to have a positive bandwidth and no negative latency";
  if (link.segment < -1 || link.segment >= int32_t(problem.segments.size()))
    return "expected " + where + " to be on one of " +
           std::to_string(problem.segments.size()) + " segments but got " +
           std::to_string(link.segment);
  return "";
}

static std::string findStorageFault(const Problem &problem, size_t i) {
  const Storage &storage = problem.storages[i];
  if (storage.bytes < 0)
    return "expected " + name("storage", i) + " to have no negative size";
  if (storage.clean && !problem.tiers.empty() &&
      storage.homeTier >= problem.tiers.size())
    return "expected " + name("storage", i) + " to have its copy in one of " +
           std::to_string(problem.tiers.size()) + " tiers";
  if (storage.mayStartBelow && !storage.persistent)
    return "expected " + name("storage", i) +
           " to be persistent, as it may start below";
  for (uint32_t from : storage.recomputeFrom)
    if (from >= problem.storages.size() || from == i)
      return "expected " + name("storage", i) +
             " to be computed again from other storages of the problem";
  return "";
}

std::string mlir::hyperparallel::planner::findFault(const Problem &problem) {
  if (problem.capacity < 0)
    return "expected a capacity of at least 0 bytes";
  if (problem.alignment < 1)
    return "expected an alignment of at least 1";
  if (problem.minimumBytes < 0 || !isAmount(problem.memoryBandwidth))
    return "expected no negative block or bandwidth";
  for (double segment : problem.segments)
    if (!(segment > 0))
      return "expected segments to have a positive bandwidth";
  for (size_t i = 0; i < problem.tiers.size(); ++i) {
    const Tier &tier = problem.tiers[i];
    if (tier.capacity < 0)
      return "expected " + name("tier", i) + " to have no negative capacity";
    std::string where = "the link to " + name("tier", i);
    std::string fault = findLinkFault(problem, tier.out, where);
    if (fault.empty())
      fault = findLinkFault(problem, tier.in,
                            "the link from tier " + std::to_string(i));
    if (!fault.empty())
      return fault;
  }
  for (size_t i = 0; i < problem.operations.size(); ++i) {
    const Operation &op = problem.operations[i];
    if (!isAmount(op.seconds) || op.workspace < 0 || op.memoryBytes < 0)
      return "expected " + name("operation", i) +
             " to take no negative time or bytes";
  }
  for (size_t i = 0; i < problem.storages.size(); ++i)
    if (std::string fault = findStorageFault(problem, i); !fault.empty())
      return fault;
  for (const Use &use : problem.uses)
    if (use.operation >= problem.operations.size() ||
        use.storage >= problem.storages.size())
      return "expected a use to name an operation and a storage of the problem";
  return "";
}

/// The uses by storage and then by operation, each pair once.
static std::vector<Use> sortUses(const Problem &problem,
                                 const std::vector<Use> &moreUses) {
  std::vector<Use> uses = problem.uses;
  uses.insert(uses.end(), moreUses.begin(), moreUses.end());
  auto sortBy = [&](auto key, size_t count) {
    std::vector<size_t> place(count + 1, 0);
    for (const Use &use : uses)
      ++place[key(use) + 1];
    for (size_t i = 0; i < count; ++i)
      place[i + 1] += place[i];
    std::vector<Use> sorted(uses.size());
    for (const Use &use : uses)
      sorted[place[key(use)]++] = use;
    uses = std::move(sorted);
  };
  sortBy([](const Use &use) { return use.operation; },
         problem.operations.size());
  sortBy([](const Use &use) { return use.storage; }, problem.storages.size());
  size_t kept = 0;
  for (const Use &use : uses) {
    if (kept && uses[kept - 1].storage == use.storage &&
        uses[kept - 1].operation == use.operation) {
      uses[kept - 1].writes |= use.writes;
      continue;
    }
    uses[kept++] = use;
  }
  uses.resize(kept);
  return uses;
}

Lifetimes::Lifetimes(const Problem &problem, const std::vector<Use> &moreUses) {
  int32_t n = int32_t(problem.operations.size());
  slots = n + 1;
  std::vector<int64_t> liveChange(slots + 1, 0), needChange(slots + 1, 0);
  auto count = [](std::vector<int64_t> &change, int32_t from, int32_t to,
                  int64_t bytes) {
    change[from] += bytes;
    change[to] -= bytes;
  };
  std::vector<Use> uses = sortUses(problem, moreUses);
  isWritten.assign(problem.storages.size(), false);
  for (const Use &use : uses)
    if (use.writes)
      isWritten[use.storage] = true;
  size_t next = 0;
  firstGap.reserve(problem.storages.size() + 1);
  for (uint32_t s = 0; s < problem.storages.size(); ++s) {
    firstGap.push_back(uint32_t(gaps.size()));
    const Storage &storage = problem.storages[s];
    size_t begin = next;
    while (next < uses.size() && uses[next].storage == s)
      ++next;
    bool isUsed = next > begin;
    if (storage.bytes == 0 || (!isUsed && !storage.persistent))
      continue;
    int64_t bytes = problem.alignedBytes(s);
    if (!isUsed && storage.mayStartBelow && !storage.pinned)
      continue;
    int32_t first = storage.persistent ? 0 : int32_t(uses[begin].operation);
    int32_t last = storage.persistent ? n : int32_t(uses[next - 1].operation);
    count(liveChange, first, last + 1, bytes);
    if (storage.pinned) {
      count(needChange, first, last + 1, bytes);
      continue;
    }
    bool isDirty = false;
    auto addGap = [&](int32_t after, int32_t before) {
      if (before - after < 2)
        return;
      gaps.push_back({s, after, before, bytes, isDirty});
      isDirty = false;
    };
    bool wrapsAround = storage.persistent && storage.mayStartBelow;
    if (storage.persistent && !wrapsAround) {
      addGap(-1, isUsed ? int32_t(uses[begin].operation) : n);
      count(needChange, n, n + 1, bytes);
    }
    for (size_t u = begin; u < next; ++u) {
      int32_t op = int32_t(uses[u].operation);
      count(needChange, op, op + 1, bytes);
      isDirty |= uses[u].writes;
      if (u + 1 < next)
        addGap(op, int32_t(uses[u + 1].operation));
      else if (storage.persistent)
        addGap(op, wrapsAround ? slots + int32_t(uses[begin].operation) : n);
    }
  }
  firstGap.push_back(uint32_t(gaps.size()));
  auto sum = [&](const std::vector<int64_t> &change) {
    std::vector<int64_t> result(slots);
    int64_t total = 0;
    for (int32_t slot = 0; slot < slots; ++slot) {
      total += change[slot];
      result[slot] =
          total + (slot < n ? problem.operations[slot].workspace : 0);
    }
    return result;
  };
  live = sum(liveChange);
  needed = sum(needChange);
}

std::vector<bool>
Lifetimes::findChosen(const std::vector<Spill> &spills) const {
  std::vector<bool> isChosen(gaps.size(), false);
  for (const Spill &spill : spills)
    for (uint32_t g = firstGap[spill.storage]; g < firstGap[spill.storage + 1];
         ++g)
      if (gaps[g].after == spill.after)
        isChosen[g] = true;
  return isChosen;
}

std::vector<bool>
Lifetimes::findClean(const Problem &problem,
                     const std::vector<bool> &isChosen) const {
  std::vector<bool> isClean(gaps.size(), false);
  for (size_t s = 0; s + 1 < firstGap.size(); ++s) {
    uint32_t begin = firstGap[s], end = firstGap[s + 1];
    if (begin == end)
      continue;
    // A storage that is off at the start of the step was left below. One that
    // the step before has written, and kept, has no valid copy.
    const Storage &storage = problem.storages[s];
    bool hasCopy = (storage.clean && !(storage.persistent && isWritten[s])) ||
                   (wraps(gaps[end - 1]) && isChosen[end - 1]);
    for (uint32_t g = begin; g < end; ++g) {
      hasCopy &= !gaps[g].isWrittenBefore;
      isClean[g] = hasCopy;
      hasCopy |= isChosen[g];
    }
  }
  return isClean;
}
