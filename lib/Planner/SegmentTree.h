//===- SegmentTree.h - bytes by slot ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Integers by slot with addition to a range, largest of a range, and the first
// or last slot of a range that is above or at most a bound; each O(log n).
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PLANNER_SEGMENTTREE_H
#define HYPERPARALLEL_LIB_PLANNER_SEGMENTTREE_H

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace mlir::hyperparallel::planner {

class SegmentTree {
public:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

  explicit SegmentTree(const std::vector<int64_t> &values)
      : count(values.size()) {
    while (leaves < count)
      leaves *= 2;
    nodes.assign(2 * leaves, {kNone / 4, -(kNone / 4), 0});
    for (int64_t i = 0; i < count; ++i)
      nodes[leaves + i] = {values[i], values[i], 0};
    for (int64_t node = leaves - 1; node > 0; --node)
      pull(node);
  }

  int64_t size() const { return count; }

  /// Adds to the slots [from, to).
  void add(int64_t from, int64_t to, int64_t value) {
    if (from < to)
      add(1, 0, leaves, from, to, value);
  }
  /// The largest in [from, to), kNone if that is empty.
  int64_t max(int64_t from, int64_t to) const {
    return from < to ? max(1, 0, leaves, from, to) : kNone;
  }
  int64_t max() const { return nodes[1].largest; }
  /// The first slot of [from, to) that holds more than the bound, or `to`.
  int64_t firstAbove(int64_t from, int64_t to, int64_t bound) const {
    return from < to ? first<true>(1, 0, leaves, from, to, bound) : to;
  }
  /// The first slot of [from, to) that holds at most the bound, or `to`.
  int64_t firstAtMost(int64_t from, int64_t to, int64_t bound) const {
    return from < to ? first<false>(1, 0, leaves, from, to, bound) : to;
  }
  /// The last slot of [from, to) that holds more than the bound, or from - 1.
  int64_t lastAbove(int64_t from, int64_t to, int64_t bound) const {
    return from < to ? last(1, 0, leaves, from, to, bound) : from - 1;
  }

private:
  struct Node {
    int64_t largest, smallest;
    /// Added to all below, and in the two above already.
    int64_t added;
  };

  void pull(int64_t node) {
    const Node &left = nodes[2 * node], &right = nodes[2 * node + 1];
    nodes[node].largest =
        std::max(left.largest, right.largest) + nodes[node].added;
    nodes[node].smallest =
        std::min(left.smallest, right.smallest) + nodes[node].added;
  }

  void add(int64_t node, int64_t begin, int64_t end, int64_t from, int64_t to,
           int64_t value) {
    if (from <= begin && end <= to) {
      nodes[node].largest += value;
      nodes[node].smallest += value;
      nodes[node].added += value;
      return;
    }
    int64_t middle = (begin + end) / 2;
    if (from < middle)
      add(2 * node, begin, middle, from, to, value);
    if (to > middle)
      add(2 * node + 1, middle, end, from, to, value);
    pull(node);
  }

  int64_t max(int64_t node, int64_t begin, int64_t end, int64_t from,
              int64_t to) const {
    if (from <= begin && end <= to)
      return nodes[node].largest;
    int64_t middle = (begin + end) / 2, result = kNone;
    if (from < middle)
      result = max(2 * node, begin, middle, from, to);
    if (to > middle)
      result = std::max(result, max(2 * node + 1, middle, end, from, to));
    return result + nodes[node].added;
  }

  template <bool above>
  int64_t first(int64_t node, int64_t begin, int64_t end, int64_t from,
                int64_t to, int64_t bound) const {
    if (begin >= to || end <= from ||
        (above ? nodes[node].largest <= bound : nodes[node].smallest > bound))
      return to;
    if (end - begin == 1)
      return begin;
    int64_t middle = (begin + end) / 2;
    bound -= nodes[node].added;
    int64_t found = first<above>(2 * node, begin, middle, from, to, bound);
    return found < to
               ? found
               : first<above>(2 * node + 1, middle, end, from, to, bound);
  }

  int64_t last(int64_t node, int64_t begin, int64_t end, int64_t from,
               int64_t to, int64_t bound) const {
    if (begin >= to || end <= from || nodes[node].largest <= bound)
      return from - 1;
    if (end - begin == 1)
      return begin;
    int64_t middle = (begin + end) / 2;
    bound -= nodes[node].added;
    int64_t found = last(2 * node + 1, middle, end, from, to, bound);
    return found >= from ? found
                         : last(2 * node, begin, middle, from, to, bound);
  }

  int64_t count, leaves = 1;
  std::vector<Node> nodes;
};

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_SEGMENTTREE_H
