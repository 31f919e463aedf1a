//===- Cover.cpp - which gaps to spill ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// 1. Gaps are sorted. A gap is chosen if some slot in its window holds more
//    than the capacity; small gaps are tried after all others.
// 2. Chosen gaps that turn out not to be needed are given up, the last first.
//
// Cost: O(gaps log gaps).
//===----------------------------------------------------------------------===//
#include "lib/Planner/Cover.h"
#include "lib/Planner/SegmentTree.h"

#include <algorithm>

using namespace mlir::hyperparallel::planner;

namespace {
struct Window {
  uint32_t gap;
  int32_t from, to;
  double key;
};
} // namespace

const char *mlir::hyperparallel::planner::nameOf(CoverOrder order) {
  switch (order) {
  case CoverOrder::Longest:
    return "longest gaps first";
  case CoverOrder::LongestTimesBytes:
    return "longest gaps times bytes first";
  case CoverOrder::Outermost:
    return "earliest gaps first";
  case CoverOrder::Largest:
    return "largest storages first";
  case CoverOrder::Latest:
    return "latest uses first";
  }
  return "";
}

static double at(const Clock &clock, const std::vector<double> &times,
                 int32_t slot) {
  int32_t slots = int32_t(times.size());
  return slot < slots ? times[slot] : clock.seconds + times[slot - slots];
}

/// The slots that the gap relieves; empty if its copies take all of it.
static void findWindow(const Problem &problem, const Clock &clock,
                       const Gap &gap, bool isClean, CoverWindow kind,
                       Window &window) {
  window.from = gap.after + 1;
  window.to = gap.before;
  if (kind == CoverWindow::Whole)
    return;
  auto firstAt = [&](const std::vector<double> &times, double moment) {
    int32_t low = window.from, high = window.to;
    while (low < high) {
      int32_t middle = low + (high - low) / 2;
      if (at(clock, times, middle) >= moment)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  };
  int64_t bytes = problem.storages[gap.storage].bytes;
  const Tier &tier = problem.tiers.front();
  double begin = gap.after < 0 ? 0 : clock.end[gap.after];
  double out = isClean ? begin : begin + problem.seconds(tier.out, bytes);
  double in =
      at(clock, clock.start, gap.before) - problem.seconds(tier.in, bytes);
  int32_t from = firstAt(clock.reached, out);
  int32_t to = firstAt(clock.taken, in);
  window.from = from;
  window.to = to;
}

static double key(const Gap &gap, const Clock &clock, CoverOrder order) {
  double begin = gap.after < 0 ? 0 : clock.end[gap.after];
  double length = at(clock, clock.start, gap.before) - begin;
  switch (order) {
  case CoverOrder::Longest:
    return length;
  case CoverOrder::LongestTimesBytes:
    return length * double(gap.bytes);
  case CoverOrder::Outermost:
    return -begin;
  case CoverOrder::Largest:
    return double(gap.bytes);
  case CoverOrder::Latest:
    return begin + length;
  }
  return 0;
}

Choice mlir::hyperparallel::planner::cover(const Problem &problem,
                                           const Lifetimes &lifetimes,
                                           const Clock &clock, int64_t capacity,
                                           CoverOrder order, CoverWindow kind) {
  Choice choice;
  choice.isChosen.assign(lifetimes.gaps.size(), false);
  choice.tier.assign(lifetimes.gaps.size(), 0);
  std::vector<Window> windows;
  for (uint32_t g = 0; g < lifetimes.gaps.size(); ++g) {
    const Gap &gap = lifetimes.gaps[g];
    const Storage &storage = problem.storages[gap.storage];
    if (storage.clean)
      choice.tier[g] = uint8_t(storage.homeTier);
    Window window{g, 0, 0, key(gap, clock, order)};
    findWindow(problem, clock, gap, storage.clean, kind, window);
    if (window.from < window.to)
      windows.push_back(window);
  }
  std::sort(
      windows.begin(), windows.end(), [&](const Window &a, const Window &b) {
        bool isSmallA = lifetimes.gaps[a.gap].bytes < problem.minimumBytes;
        bool isSmallB = lifetimes.gaps[b.gap].bytes < problem.minimumBytes;
        if (isSmallA != isSmallB)
          return isSmallB;
        return a.key != b.key ? a.key > b.key : a.gap < b.gap;
      });
  SegmentTree tree(lifetimes.live);
  auto most = [&](const Window &window) {
    int64_t result = SegmentTree::kNone;
    forSlots(window.from, window.to, lifetimes.slots,
             [&](int32_t from, int32_t to) {
               result = std::max(result, tree.max(from, to));
             });
    return result;
  };
  auto occupy = [&](const Window &window, int64_t bytes) {
    forSlots(window.from, window.to, lifetimes.slots,
             [&](int32_t from, int32_t to) { tree.add(from, to, bytes); });
  };
  std::vector<const Window *> chosen;
  for (const Window &window : windows) {
    if (tree.max() <= capacity)
      break;
    if (most(window) <= capacity)
      continue;
    occupy(window, -lifetimes.gaps[window.gap].bytes);
    chosen.push_back(&window);
    choice.isChosen[window.gap] = true;
  }
  for (auto it = chosen.rbegin(); it != chosen.rend(); ++it) {
    int64_t bytes = lifetimes.gaps[(*it)->gap].bytes;
    if (most(**it) > capacity - bytes)
      continue;
    occupy(**it, bytes);
    choice.isChosen[(*it)->gap] = false;
  }
  return choice;
}
