//===- ArenaSearch.cpp - exact search for offsets -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// If there are offsets, there are some in which every buffer rests on another
// or on the ground. They are found by placing buffers in the order of their
// offsets (MiniMalloc, ASPLOS 2023, has the idea of canonical solutions), each
// at the least offset that those below it leave:
//
//   1. Time is cut into sections between the ends of lifetimes. Buffers that no
//      section connects are solved by themselves.
//   2. A buffer is a candidate if no other could be placed wholly below its
//      offset, and if its offset is not below that of the last one placed.
//   3. After a placement every section is checked: the buffers that are still
//      to come there, each no lower than its least offset, must fit below the
//      capacity. Sorted by least offset, those from any one on need its offset
//      and the sum of their sizes.
//   4. A buffer with nothing above it needs no other candidate tried.
//   5. Lower offsets are tried first; between equal ones a static order says.
//      Restarts with more and more nodes take several orders, and every other
//      one puts buffers first whose sections failed often so far.
//
// Cost: O(buffers * sections in a lifetime) for each node; exponentially many
// nodes in the worst case, of which the caller says how many.
//===----------------------------------------------------------------------===//
#include "lib/Planner/Arena.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

using namespace mlir::hyperparallel::planner;

namespace {

enum class Outcome { Found, None, OutOfNodes };

class Search {
public:
  Search(const std::vector<Buffer> &buffers, int64_t alignment,
         int64_t capacity);
  Outcome run(int order, int64_t nodes);
  std::vector<int64_t> takeOffsets(size_t count) const;

private:
  struct Item {
    uint32_t buffer;
    int32_t from, to;
    int64_t size;
  };
  Outcome solve(const std::vector<uint32_t> &open, int64_t level,
                uint32_t last);
  Outcome solveParts(const std::vector<uint32_t> &open, int64_t level,
                     uint32_t last);
  bool checkSections(int32_t from, int32_t to, int64_t level);
  bool checkSection(int32_t section, int64_t level);
  void undo(size_t count);

  int64_t capacity;
  std::vector<Item> items;
  /// By item: its least offset, and its place in the static order.
  std::vector<int64_t> offset;
  std::vector<uint32_t> rank;
  std::vector<bool> isPlaced;
  /// By item: those that overlap it. By section: those that live there.
  std::vector<std::vector<uint32_t>> neighbours, members;
  /// By section.
  std::vector<int64_t> floor, rest, failures;
  std::vector<std::pair<int64_t, int64_t>> sorted;
  /// What has been placed, with what that changed, in order.
  struct Step {
    uint32_t item;
    std::vector<std::pair<uint32_t, int64_t>> raised;
    std::vector<int64_t> floor;
  };
  std::vector<Step> steps;
  int64_t nodesLeft = 0;
};

} // namespace

Search::Search(const std::vector<Buffer> &buffers, int64_t alignment,
               int64_t capacity)
    : capacity(capacity / alignment) {
  std::vector<int64_t> times;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    const Buffer &buffer = buffers[i];
    if (buffer.size == 0 || buffer.lower >= buffer.upper)
      continue;
    items.push_back({i, 0, 0, (buffer.size + alignment - 1) / alignment});
    times.push_back(buffer.lower);
    times.push_back(buffer.upper);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  auto sectionAt = [&](int64_t time) {
    return int32_t(std::lower_bound(times.begin(), times.end(), time) -
                   times.begin());
  };
  members.resize(times.size());
  failures.assign(times.size(), 0);
  neighbours.resize(items.size());
  for (uint32_t i = 0; i < items.size(); ++i) {
    items[i].from = sectionAt(buffers[items[i].buffer].lower);
    items[i].to = sectionAt(buffers[items[i].buffer].upper);
    for (int32_t s = items[i].from; s < items[i].to; ++s)
      members[s].push_back(i);
    for (uint32_t j = 0; j < i; ++j)
      if (items[j].from < items[i].to && items[i].from < items[j].to) {
        neighbours[i].push_back(j);
        neighbours[j].push_back(i);
      }
  }
}

/// Whether what is to come at the section can fit.
bool Search::checkSection(int32_t section, int64_t level) {
  sorted.clear();
  for (uint32_t item : members[section])
    if (!isPlaced[item])
      sorted.emplace_back(std::max(offset[item], level), items[item].size);
  if (sorted.empty())
    return true;
  std::sort(sorted.begin(), sorted.end());
  // As if they were stacked in this order, each no lower than it can be.
  int64_t top = 0;
  for (auto [least, size] : sorted)
    top = std::max(top, least) + size;
  return top <= capacity;
}

bool Search::checkSections(int32_t from, int32_t to, int64_t level) {
  for (int32_t section = from; section < to; ++section) {
    if (rest[section] == 0)
      continue;
    if (std::max(floor[section], level) + rest[section] > capacity ||
        !checkSection(section, level)) {
      failures[section] += 1;
      return false;
    }
  }
  return true;
}

/// The parts that no section connects, one after the other.
Outcome Search::solveParts(const std::vector<uint32_t> &open, int64_t level,
                           uint32_t last) {
  std::vector<uint32_t> byStart = open;
  std::sort(byStart.begin(), byStart.end(), [&](uint32_t a, uint32_t b) {
    return std::make_pair(items[a].from, a) < std::make_pair(items[b].from, b);
  });
  int32_t end = -1;
  std::vector<std::vector<uint32_t>> parts;
  for (uint32_t item : byStart) {
    if (items[item].from >= end)
      parts.emplace_back();
    end = std::max(end, items[item].to);
    parts.back().push_back(item);
  }
  // The smallest first: it is the first to fail.
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const auto &a, const auto &b) { return a.size() < b.size(); });
  size_t mark = steps.size();
  for (const std::vector<uint32_t> &part : parts)
    if (Outcome outcome = solve(part, level, last); outcome != Outcome::Found) {
      // The parts before it were placed in vain.
      undo(mark);
      return outcome;
    }
  return Outcome::Found;
}

/// Takes back what was placed after the first `count`.
void Search::undo(size_t count) {
  while (steps.size() > count) {
    const Step &step = steps.back();
    const Item &placed = items[step.item];
    for (auto [other, old] : step.raised)
      offset[other] = old;
    isPlaced[step.item] = false;
    for (int32_t s = placed.from; s < placed.to; ++s) {
      floor[s] = step.floor[s - placed.from];
      rest[s] += placed.size;
    }
    steps.pop_back();
  }
}

Outcome Search::solve(const std::vector<uint32_t> &open, int64_t level,
                      uint32_t last) {
  if (open.empty())
    return Outcome::Found;
  int64_t leastTop = std::numeric_limits<int64_t>::max();
  for (uint32_t item : open)
    leastTop =
        std::min(leastTop, std::max(offset[item], level) + items[item].size);
  std::vector<uint32_t> candidates;
  for (uint32_t item : open)
    if (offset[item] < leastTop &&
        (offset[item] > level ||
         (offset[item] == level && (last == ~0u || rank[item] > rank[last]))))
      candidates.push_back(item);
  std::sort(candidates.begin(), candidates.end(), [&](uint32_t a, uint32_t b) {
    return offset[a] != offset[b] ? offset[a] < offset[b] : rank[a] < rank[b];
  });
  for (uint32_t item : candidates) {
    const Item &placed = items[item];
    int64_t top = offset[item] + placed.size;
    if (top > capacity)
      continue;
    if (--nodesLeft < 0)
      return Outcome::OutOfNodes;
    // Place it. What is checked are the sections where something changes: all
    // of this part, if the level rises.
    int32_t from = placed.from, to = placed.to;
    if (offset[item] > level)
      for (uint32_t other : open) {
        from = std::min(from, items[other].from);
        to = std::max(to, items[other].to);
      }
    size_t mark = steps.size();
    steps.push_back({item,
                     {},
                     std::vector<int64_t>(floor.begin() + placed.from,
                                          floor.begin() + placed.to)});
    for (int32_t s = placed.from; s < placed.to; ++s) {
      floor[s] = top;
      rest[s] -= placed.size;
    }
    isPlaced[item] = true;
    bool isHatless = true, fits = true;
    for (uint32_t other : neighbours[item]) {
      if (isPlaced[other])
        continue;
      isHatless = false;
      if (offset[other] >= top)
        continue;
      steps.back().raised.emplace_back(other, offset[other]);
      from = std::min(from, items[other].from);
      to = std::max(to, items[other].to);
      offset[other] = top;
      fits &= top + items[other].size <= capacity;
    }
    Outcome outcome = Outcome::None;
    if (fits && checkSections(from, to, offset[item])) {
      std::vector<uint32_t> left;
      left.reserve(open.size());
      for (uint32_t other : open)
        if (other != item)
          left.push_back(other);
      outcome = solveParts(left, offset[item], item);
    }
    if (outcome == Outcome::Found)
      return outcome;
    undo(mark);
    if (outcome == Outcome::OutOfNodes)
      return outcome;
    if (isHatless && fits)
      return Outcome::None;
  }
  return Outcome::None;
}

Outcome Search::run(int kind, int64_t nodes) {
  size_t sections = members.size();
  offset.assign(items.size(), 0);
  isPlaced.assign(items.size(), false);
  steps.clear();
  floor.assign(sections, 0);
  rest.assign(sections, 0);
  for (const Item &item : items)
    for (int32_t s = item.from; s < item.to; ++s)
      rest[s] += item.size;
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  // The most failures, and the most bytes, at any moment of an item's life.
  std::vector<std::array<int64_t, 3>> keys;
  for (const Item &item : items) {
    auto most = [&](const std::vector<int64_t> &values) {
      return *std::max_element(values.begin() + item.from,
                               values.begin() + item.to);
    };
    int64_t busy = most(rest), width = item.to - item.from;
    int64_t area = width * item.size;
    switch (kind) {
    case 0:
      keys.push_back({busy, width, area});
      break;
    case 1:
      keys.push_back({busy, area, width});
      break;
    case 2:
      keys.push_back({width, area, busy});
      break;
    case 3:
      keys.push_back({item.size, width, busy});
      break;
    default:
      keys.push_back({most(failures), busy, width});
    }
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return keys[a] != keys[b] ? keys[a] > keys[b] : a < b;
  });
  rank.assign(items.size(), 0);
  for (uint32_t i = 0; i < order.size(); ++i)
    rank[order[i]] = i;
  nodesLeft = nodes;
  if (!checkSections(0, int32_t(sections), 0))
    return Outcome::None;
  return solveParts(order, 0, ~0u);
}

std::vector<int64_t> Search::takeOffsets(size_t count) const {
  std::vector<int64_t> result(count, 0);
  for (uint32_t i = 0; i < items.size(); ++i)
    result[items[i].buffer] = offset[i];
  return result;
}

bool mlir::hyperparallel::planner::searchOffsets(
    const std::vector<Buffer> &buffers, int64_t alignment, int64_t capacity,
    int64_t nodes, std::vector<int64_t> &offsets, bool &isComplete) {
  // What failed in one row tells nothing of the other.
  Search inOrder(buffers, alignment, capacity), byFailures = inOrder;
  isComplete = false;
  // Two rows of restarts take turns: fixed orders, and what failed most.
  int64_t fixed = 20'000, learnt = 20'000;
  for (int restart = 0; nodes > 0; ++restart) {
    bool isFixed = restart % 2 == 0;
    int turn = restart / 2;
    int64_t now = std::min(isFixed ? fixed : learnt, nodes);
    nodes -= now;
    Search &search = isFixed ? inOrder : byFailures;
    Outcome outcome = search.run(isFixed ? turn % 4 : 4, now);
    if (outcome == Outcome::Found) {
      offsets = search.takeOffsets(buffers.size());
      for (int64_t &offset : offsets)
        offset *= alignment;
      return true;
    }
    if (outcome == Outcome::None) {
      isComplete = true;
      return false;
    }
    if (isFixed && turn % 4 == 3)
      fixed *= 2;
    if (!isFixed && turn % 2 == 1)
      learnt *= 2;
  }
  return false;
}
