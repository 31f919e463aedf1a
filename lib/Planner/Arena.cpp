//===- Arena.cpp - where buffers lie in one piece of memory ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//   1. Buffers are placed one after the other, in several orders, each into the
//      smallest hole that the buffers placed before leave it, or the lowest.
//   2. If none reaches the largest sum of live sizes, the buffers that live
//      when it is nearly reached are placed alone, many times: the first that
//      sticks out moves forward in the order. The others follow around the best
//      of it.
//   3. If that is not enough and the caller asks for it, an exact search looks
//      for the goal (ArenaSearch.cpp).
//
// Who overlaps a buffer is asked of a tree over time: O(log n) for each answer.
// Cost of an order: O(pairs that overlap * log), within the work allowed.
//===----------------------------------------------------------------------===//
#include "lib/Planner/Arena.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

using namespace mlir::hyperparallel::planner;

/// The exact search goes as deep as there are buffers.
static constexpr size_t kMostExact = 4096;

namespace {

/// A buffer with its size rounded up, and its life in numbers of moments.
struct Item {
  int32_t from, to;
  int64_t size;
};

/// Buffers that have been placed, by when they live.
class Placed {
public:
  Placed(int32_t moments, size_t count) : seen(count, 0) {
    while (leaves < moments)
      leaves *= 2;
    nodes.resize(2 * size_t(leaves));
    filled.assign(2 * size_t(leaves), false);
  }
  void insert(uint32_t number, int32_t from, int32_t to) {
    insert(1, 0, leaves, number, from, to);
  }
  /// Calls `visit` once for each that lives in [from, to).
  template <typename Visit>
  void visit(int32_t from, int32_t to, Visit visit) {
    ++stamp;
    this->visit(1, 0, leaves, from, to, visit);
  }

private:
  void insert(size_t node, int32_t begin, int32_t end, uint32_t number,
              int32_t from, int32_t to) {
    filled[node] = true;
    if (from <= begin && end <= to) {
      nodes[node].push_back(number);
      return;
    }
    int32_t middle = (begin + end) / 2;
    if (from < middle)
      insert(2 * node, begin, middle, number, from, to);
    if (to > middle)
      insert(2 * node + 1, middle, end, number, from, to);
  }
  template <typename Visit>
  void visit(size_t node, int32_t begin, int32_t end, int32_t from, int32_t to,
             Visit &visit) {
    if (begin >= to || end <= from || !filled[node])
      return;
    for (uint32_t number : nodes[node])
      if (seen[number] != stamp) {
        seen[number] = stamp;
        visit(number);
      }
    if (end - begin == 1)
      return;
    int32_t middle = (begin + end) / 2;
    this->visit(2 * node, begin, middle, from, to, visit);
    this->visit(2 * node + 1, middle, end, from, to, visit);
  }

  int32_t leaves = 1;
  std::vector<std::vector<uint32_t>> nodes;
  std::vector<bool> filled;
  std::vector<uint32_t> seen;
  uint32_t stamp = 0;
};

enum class Fit { Lowest, Smallest };

class Allocator {
public:
  Allocator(const std::vector<Buffer> &buffers, const ArenaOptions &options);
  Arena run();

private:
  int64_t place(const std::vector<uint32_t> &order, Fit fit, int64_t limit,
                size_t *out = nullptr);
  void offer(const std::vector<uint32_t> &order, Fit fit, const char *method);
  bool reorder(std::vector<uint32_t> &order, int64_t limit, int64_t until);
  void improve();
  bool isDone() const { return arena.height <= goal; }

  const std::vector<Buffer> &buffers;
  const ArenaOptions &options;
  std::vector<Item> items;
  int32_t moments = 0;
  int64_t goal = 0, work = 0;
  Arena arena;
  std::vector<int64_t> offsets;
  std::vector<uint32_t> bestOrder;
  Fit bestFit = Fit::Lowest;
  bool hasOffsets = false;
};

} // namespace

Allocator::Allocator(const std::vector<Buffer> &buffers,
                     const ArenaOptions &options)
    : buffers(buffers), options(options) {
  std::vector<int64_t> times;
  for (const Buffer &buffer : buffers) {
    times.push_back(buffer.lower);
    times.push_back(buffer.upper);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  moments = int32_t(times.size());
  auto number = [&](int64_t time) {
    return int32_t(std::lower_bound(times.begin(), times.end(), time) -
                   times.begin());
  };
  int64_t a = options.alignment;
  for (const Buffer &buffer : buffers)
    items.push_back({number(buffer.lower), number(buffer.upper),
                     (buffer.size + a - 1) / a * a});
  offsets.assign(items.size(), 0);
}

/// The height that the order comes to. Stops at the first buffer that comes out
/// above `limit`, and says which it is.
int64_t Allocator::place(const std::vector<uint32_t> &order, Fit fit,
                         int64_t limit, size_t *out) {
  Placed placed(moments, items.size());
  std::vector<std::pair<int64_t, int64_t>> taken;
  int64_t height = 0;
  for (size_t number = 0; number < order.size(); ++number) {
    uint32_t i = order[number];
    const Item &item = items[i];
    offsets[i] = 0;
    if (item.size == 0 || item.from >= item.to)
      continue;
    taken.clear();
    placed.visit(item.from, item.to, [&](uint32_t other) {
      taken.emplace_back(offsets[other], offsets[other] + items[other].size);
    });
    work += int64_t(taken.size()) + 16;
    std::sort(taken.begin(), taken.end());
    int64_t top = 0, best = -1, hole = 0;
    for (auto [begin, end] : taken) {
      if (begin - top >= item.size && (best < 0 || begin - top < hole)) {
        best = top;
        hole = begin - top;
        if (fit == Fit::Lowest)
          break;
      }
      top = std::max(top, end);
    }
    offsets[i] = best < 0 ? top : best;
    height = std::max(height, offsets[i] + item.size);
    if (height > limit) {
      if (out)
        *out = number;
      return height;
    }
    placed.insert(i, item.from, item.to);
  }
  return height;
}

void Allocator::offer(const std::vector<uint32_t> &order, Fit fit,
                      const char *method) {
  int64_t limit = hasOffsets ? arena.height - 1 : INT64_MAX;
  int64_t height = place(order, fit, limit);
  if (height > limit)
    return;
  hasOffsets = true;
  arena.height = height;
  arena.offsets = offsets;
  arena.method = method;
  bestOrder = order;
  bestFit = fit;
}

/// Changes an order until it comes out at most at `limit`: the first buffer
/// that sticks out moves forward. False if that takes more work than allowed.
bool Allocator::reorder(std::vector<uint32_t> &order, int64_t limit,
                        int64_t until) {
  std::minstd_rand random(1);
  for (int pass = 0; work < until; ++pass) {
    size_t out = 0;
    if (place(order, Fit::Lowest, limit, &out) <= limit)
      return true;
    auto at = order.begin() + out;
    auto to = order.begin() + (pass % 4 == 0 ? 0 : random() % (out + 1));
    std::rotate(to, at, at + 1);
  }
  return false;
}

/// Orders the buffers that live while nearly the most is live by themselves,
/// beginning with when they do; then more and more of the others join.
void Allocator::improve() {
  std::vector<int64_t> live(moments + 1, 0);
  for (const Item &item : items) {
    live[item.from] += item.size;
    live[item.to] -= item.size;
  }
  for (int32_t i = 1; i <= moments; ++i)
    live[i] += live[i - 1];
  std::vector<uint32_t> order, rest = bestOrder;
  for (int32_t percent : {98, 95, 90, 80, 60, 0}) {
    // Moments up to each that are that busy.
    std::vector<int32_t> busy(moments + 1, 0);
    for (int32_t i = 0; i < moments; ++i)
      busy[i + 1] = busy[i] + (live[i] >= arena.maxLive / 100 * percent);
    std::vector<uint32_t> joining, others;
    for (uint32_t i : rest)
      (busy[items[i].to] > busy[items[i].from] ? joining : others).push_back(i);
    order.insert(order.end(), joining.begin(), joining.end());
    if (percent >= 95)
      std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        return items[a].from < items[b].from;
      });
    rest = std::move(others);
    std::vector<Buffer> alone;
    for (uint32_t i : order)
      alone.push_back(buffers[i]);
    Allocator inner(alone, options);
    std::vector<uint32_t> inside(order.size());
    std::iota(inside.begin(), inside.end(), 0);
    bool found =
        inner.reorder(inside, goal + goal / 200, options.improvementWork / 4);
    work += inner.work;
    std::vector<uint32_t> outside;
    for (uint32_t i : inside)
      outside.push_back(order[i]);
    order = std::move(outside);
    std::vector<uint32_t> all = order;
    all.insert(all.end(), rest.begin(), rest.end());
    offer(all, Fit::Lowest, "improved at the peak");
    if (isDone() || !found)
      return;
  }
}

Arena Allocator::run() {
  arena.maxLive = maxLive(buffers, options.alignment);
  goal = std::max(options.goal, arena.maxLive);
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  using Key = std::tuple<double, int64_t, int64_t>;
  auto tryOrder = [&](auto key, const char *method) {
    for (Fit fit : {Fit::Lowest, Fit::Smallest}) {
      if (hasOffsets && (isDone() || work > options.improvementWork))
        return;
      std::vector<Key> keys;
      for (const Item &item : items)
        keys.push_back(key(item));
      std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        return keys[a] != keys[b] ? keys[a] > keys[b] : a < b;
      });
      offer(order, fit, method);
    }
  };
  tryOrder(
      [](const Item &item) {
        return Key(double(item.size), item.to - item.from, -item.from);
      },
      "by size");
  tryOrder(
      [](const Item &item) {
        return Key(item.to - item.from, item.size, -item.from);
      },
      "by length");
  tryOrder(
      [](const Item &item) {
        return Key(double(item.size) * (item.to - item.from), item.size,
                   -item.from);
      },
      "by area");
  tryOrder(
      [](const Item &item) {
        return Key(-item.from, item.size, item.to - item.from);
      },
      "by start");
  improve();
  if (options.exact && !isDone() && items.size() <= kMostExact) {
    std::vector<int64_t> found;
    bool isComplete = false;
    if (searchOffsets(buffers, options.alignment, goal, options.searchNodes,
                      found, isComplete)) {
      arena.offsets = std::move(found);
      arena.height = 0;
      for (size_t i = 0; i < items.size(); ++i)
        arena.height = std::max(arena.height, arena.offsets[i] + items[i].size);
      arena.method = "exact search";
    }
  }
  arena.isOptimal = arena.height <= arena.maxLive;
  return std::move(arena);
}

Arena mlir::hyperparallel::planner::assignOffsets(
    const std::vector<Buffer> &buffers, const ArenaOptions &options) {
  return Allocator(buffers, options).run();
}

/// The ends of lifetimes in order; at one moment those that end come first.
static std::vector<std::tuple<int64_t, bool, uint32_t>>
eventsOf(const std::vector<Buffer> &buffers) {
  std::vector<std::tuple<int64_t, bool, uint32_t>> events;
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].size > 0 && buffers[i].lower < buffers[i].upper) {
      events.emplace_back(buffers[i].lower, true, i);
      events.emplace_back(buffers[i].upper, false, i);
    }
  std::sort(events.begin(), events.end());
  return events;
}

int64_t
mlir::hyperparallel::planner::maxLive(const std::vector<Buffer> &buffers,
                                      int64_t alignment) {
  int64_t live = 0, most = 0;
  for (auto [time, begins, i] : eventsOf(buffers)) {
    int64_t size = (buffers[i].size + alignment - 1) / alignment * alignment;
    live += begins ? size : -size;
    most = std::max(most, live);
  }
  return most;
}

std::string
mlir::hyperparallel::planner::findOverlap(const std::vector<Buffer> &buffers,
                                          const std::vector<int64_t> &offsets,
                                          int64_t alignment) {
  // What is live, by offset: a newcomer can only hit its neighbours there.
  std::map<int64_t, uint32_t> live;
  auto describe = [&](uint32_t a, uint32_t b) {
    return "expected buffers " + std::to_string(std::min(a, b)) + " and " +
           std::to_string(std::max(a, b)) +
           ", which live at the same time, to share no byte";
  };
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (offsets[i] < 0 || offsets[i] % alignment != 0)
      return "expected buffer " + std::to_string(i) + " at a multiple of " +
             std::to_string(alignment) + " but got " +
             std::to_string(offsets[i]);
  for (auto [time, begins, i] : eventsOf(buffers)) {
    if (!begins) {
      live.erase(offsets[i]);
      continue;
    }
    auto after = live.lower_bound(offsets[i]);
    if (after != live.end() && after->first < offsets[i] + buffers[i].size)
      return describe(i, after->second);
    if (after != live.begin()) {
      auto before = std::prev(after);
      if (before->first + buffers[before->second].size > offsets[i])
        return describe(i, before->second);
    }
    live.emplace(offsets[i], i);
  }
  return "";
}
