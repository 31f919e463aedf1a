//===- Bound.cpp - what no plan can beat ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// At slot i, e = live(i) - capacity bytes must be elsewhere, in gaps there.
//
//   - S_i, when op i starts at the earliest: after op i - 1; and what is
//     elsewhere and has no valid copy below was copied out, each storage after
//     the op that made it (or the step's beginning). Of those gaps the first to
//     begin give their bytes first: if all that begin before op k hold too
//     little, the rest is copied after op k, S_k + c_k at the earliest.
//   - L_i, what follows the end of op i at least: op i + 1 and L_(i+1); and the
//     copies in, by the same argument from the end of the step backwards.
//   - T >= S_i + c_i + L_i for every i.
//   - What may be off at both ends of the step, or be computed again, need not
//     be copied in this step: its bytes are taken off e first.
//
// B is the sum over the tiers, each at most its segment. What the nearest tiers
// cannot hold at a moment went to the others and comes back from them, at their
// rates alone. Cost: O(n * tiers + gaps log gaps).
// Limits: latencies, the order of copies and the sizes of storages are left
// out; on very small programs the bound is loose. Where a step has more than
// kManyGaps gaps, all bytes may be copied from the step's beginning on.
//===----------------------------------------------------------------------===//
#include "lib/Planner/Bound.h"

#include <algorithm>

using namespace mlir::hyperparallel::planner;

static constexpr size_t kManyGaps = 20'000;

namespace {

/// Bytes that go over a link, none before its moment: when they are through at
/// the earliest, if those that may go first do. Items are numbered by moment.
class Arrivals {
public:
  explicit Arrivals(size_t count) {
    while (leaves < count)
      leaves *= 2;
    nodes.assign(2 * leaves, {0, kNever});
  }
  /// `moment` in the time that a byte takes.
  void set(size_t item, int64_t bytes, double moment) {
    size_t node = leaves + item;
    nodes[node] = {bytes, moment};
    for (node /= 2; node > 0; node /= 2) {
      const Node &left = nodes[2 * node], &right = nodes[2 * node + 1];
      nodes[node] = {left.bytes + right.bytes,
                     std::max(left.latest, right.latest - double(left.bytes))};
    }
  }
  void remove(size_t item) { set(item, 0, kNever); }
  /// When so many bytes are through, times the rate.
  double through(int64_t needed) const {
    // In a node: items up to there whose predecessors hold less than needed.
    double best = kNever;
    int64_t before = 0;
    size_t node = 1;
    while (node < leaves) {
      const Node &left = nodes[2 * node];
      if (before + left.bytes < needed) {
        best = std::max(best, left.latest - double(before));
        before += left.bytes;
        node = 2 * node + 1;
      } else {
        node = 2 * node;
      }
    }
    if (before < needed)
      best = std::max(best, nodes[node].latest - double(before));
    return best + double(needed);
  }

private:
  static constexpr double kNever = -1e300;
  struct Node {
    int64_t bytes;
    /// The largest of an item's moment less the bytes before it in the node.
    double latest;
  };

  size_t leaves = 1;
  std::vector<Node> nodes;
};

/// Gaps that hold bytes while they last, sorted by a moment that is known when
/// they are added.
class GapQueue {
public:
  /// `order` by gap.
  GapQueue(const Lifetimes &lifetimes, const std::vector<uint32_t> &gaps,
           const std::vector<int32_t> &order)
      : begins(lifetimes.slots + 1), ends(lifetimes.slots + 1),
        place(lifetimes.gaps.size()), arrivals(gaps.size()) {
    std::vector<uint32_t> sorted = gaps;
    std::sort(sorted.begin(), sorted.end(), [&](uint32_t a, uint32_t b) {
      return std::make_pair(order[a], a) < std::make_pair(order[b], b);
    });
    for (uint32_t i = 0; i < sorted.size(); ++i)
      place[sorted[i]] = i;
    for (uint32_t g : gaps) {
      begins[lifetimes.gaps[g].after + 1].push_back(g);
      ends[lifetimes.gaps[g].before].push_back(g);
    }
  }

  /// Gaps by their first slot, and by the slot after their last.
  std::vector<std::vector<uint32_t>> begins, ends;

  void add(uint32_t gap, int64_t bytes, double moment) {
    arrivals.set(place[gap], bytes, moment);
  }
  void remove(uint32_t gap) { arrivals.remove(place[gap]); }
  double through(int64_t needed) const { return arrivals.through(needed); }

private:
  std::vector<uint32_t> place;
  Arrivals arrivals;
};

/// What must be elsewhere at each slot, and what of it was copied out.
struct Pressure {
  std::vector<int64_t> elsewhere, out;
};

/// What is beyond the nearest tiers, and what it takes at least per byte.
struct Beyond {
  double capacity, outSeconds, inSeconds;
};

class Bound {
public:
  Bound(const Problem &problem, const Lifetimes &lifetimes);
  double find();

private:
  double secondsOf(int32_t slot) const {
    return slot + 1 < lifetimes.slots ? problem.operations[slot].seconds : 0;
  }
  bool isSpare(const Gap &gap) const {
    return lifetimes.wraps(gap) ||
           problem.storages[gap.storage].recomputeSeconds >= 0;
  }
  bool isCopiedOut(const Gap &gap) const {
    const Storage &storage = problem.storages[gap.storage];
    return !isSpare(gap) && !storage.clean && !storage.mayStartBelow;
  }
  void findPressure();
  void findStarts();
  void findRests();

  const Problem &problem;
  const Lifetimes &lifetimes;
  bool isShort;
  double outRate = 0, inRate = 0, least = 1;
  std::vector<Beyond> beyond;
  Pressure pressure;
  /// When each slot's op starts at the earliest, and from then to the end of
  /// the step.
  std::vector<double> start, rest;
};

} // namespace

/// Of the tiers from number `first` on.
static double totalRate(const Problem &problem, Link Tier::*side,
                        size_t first = 0) {
  double total = 0;
  std::vector<double> used(problem.segments.size(), 0);
  for (size_t t = first; t < problem.tiers.size(); ++t) {
    const Link &link = problem.tiers[t].*side;
    if (link.segment < 0)
      total += link.bandwidth;
    else
      used[link.segment] += link.bandwidth;
  }
  for (size_t i = 0; i < used.size(); ++i)
    total += std::min(used[i], problem.segments[i]);
  return total;
}

Bound::Bound(const Problem &problem, const Lifetimes &lifetimes)
    : problem(problem), lifetimes(lifetimes),
      isShort(lifetimes.gaps.size() <= kManyGaps) {
  // Copies move bytes as they are, memory is counted aligned.
  for (const Gap &gap : lifetimes.gaps)
    least = std::min(least, double(problem.storages[gap.storage].bytes) /
                                double(gap.bytes));
  outRate = totalRate(problem, &Tier::out) / least;
  inRate = totalRate(problem, &Tier::in) / least;
  double capacity = 0;
  for (size_t t = 0; t + 1 < problem.tiers.size(); ++t) {
    capacity += double(problem.tiers[t].capacity);
    beyond.push_back({capacity, least / totalRate(problem, &Tier::out, t + 1),
                      least / totalRate(problem, &Tier::in, t + 1)});
  }
}

void Bound::findPressure() {
  // By slot: bytes in gaps that cost no copy out, or none at all.
  std::vector<int64_t> clean(lifetimes.slots + 1, 0), spare = clean;
  for (const Gap &gap : lifetimes.gaps) {
    if (isCopiedOut(gap))
      continue;
    forSlots(gap.after + 1, gap.before, lifetimes.slots,
             [&](int32_t from, int32_t to) {
               std::vector<int64_t> &bytes = isSpare(gap) ? spare : clean;
               bytes[from] += gap.bytes;
               bytes[to] -= gap.bytes;
             });
  }
  int64_t cleanNow = 0, spareNow = 0;
  for (int32_t slot = 0; slot < lifetimes.slots; ++slot) {
    cleanNow += clean[slot];
    spareNow += spare[slot];
    int64_t elsewhere = std::max<int64_t>(0, lifetimes.live[slot] -
                                                 problem.capacity - spareNow);
    pressure.elsewhere.push_back(elsewhere);
    pressure.out.push_back(std::max<int64_t>(0, elsewhere - cleanNow));
  }
}

void Bound::findStarts() {
  // By gap: the op that made what is copied out, maybe in an earlier gap.
  std::vector<int32_t> maker(lifetimes.gaps.size());
  std::vector<uint32_t> gaps;
  for (uint32_t g = 0; isShort && g < lifetimes.gaps.size(); ++g) {
    const Gap &gap = lifetimes.gaps[g];
    bool isFirst = g == lifetimes.firstGap[gap.storage];
    maker[g] = isFirst || gap.isWrittenBefore ? gap.after : maker[g - 1];
    if (isCopiedOut(gap))
      gaps.push_back(g);
  }
  GapQueue queue(lifetimes, gaps, maker);
  double now = 0;
  for (int32_t slot = 0; slot < lifetimes.slots; ++slot) {
    for (uint32_t g : queue.ends[slot])
      queue.remove(g);
    for (uint32_t g : queue.begins[slot]) {
      double made = maker[g] < 0 ? 0 : start[maker[g]] + secondsOf(maker[g]);
      queue.add(g, lifetimes.gaps[g].bytes, made * outRate);
    }
    if (int64_t out = pressure.out[slot]; out > 0) {
      now = std::max(now, double(out) / outRate);
      if (isShort)
        now = std::max(now, queue.through(out) / outRate);
      for (const Beyond &part : beyond)
        now = std::max(now, (double(out) - part.capacity) * part.outSeconds);
    }
    start.push_back(now);
    now += secondsOf(slot);
  }
}

void Bound::findRests() {
  // By gap: the op that needs what is copied in, counted from the end.
  std::vector<int32_t> user(lifetimes.gaps.size());
  std::vector<uint32_t> gaps;
  for (uint32_t g = 0; isShort && g < lifetimes.gaps.size(); ++g) {
    user[g] = -lifetimes.gaps[g].before;
    if (!isSpare(lifetimes.gaps[g]))
      gaps.push_back(g);
  }
  GapQueue queue(lifetimes, gaps, user);
  rest.assign(lifetimes.slots + 1, 0);
  for (int32_t slot = lifetimes.slots - 1; slot >= 0; --slot) {
    for (uint32_t g : queue.begins[slot + 1])
      queue.remove(g);
    for (uint32_t g : queue.ends[slot + 1])
      queue.add(g, lifetimes.gaps[g].bytes,
                rest[lifetimes.gaps[g].before] * inRate);
    double after = rest[slot + 1];
    if (int64_t in = pressure.elsewhere[slot]; in > 0) {
      after = std::max(after, double(in) / inRate);
      if (isShort)
        after = std::max(after, queue.through(in) / inRate);
      for (const Beyond &part : beyond)
        after = std::max(after, (double(pressure.out[slot]) - part.capacity) *
                                    part.inSeconds);
    }
    rest[slot] = after + secondsOf(slot);
  }
}

double Bound::find() {
  findPressure();
  findStarts();
  findRests();
  double best = 0;
  for (int32_t slot = 0; slot < lifetimes.slots; ++slot)
    best = std::max(best, start[slot] + rest[slot]);
  return best;
}

double mlir::hyperparallel::planner::lowerBound(const Problem &problem,
                                                const Lifetimes &lifetimes) {
  if (!problem.tiers.empty())
    return Bound(problem, lifetimes).find();
  double compute = 0;
  for (const Operation &op : problem.operations)
    compute += op.seconds;
  return compute;
}
