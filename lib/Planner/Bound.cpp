//===- Bound.cpp - what no plan can beat ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// At slot i, e = live(i) - capacity bytes must be elsewhere. They are of
// storages in a gap there:
//
//   - what has no valid copy below must have been copied out since the step
//     began, all of it is away while operation i runs, and everything must come
//     back before the step ends:
//     T >= max(C before i, out / B_out) + c_i + max(C after i, e / B_in);
//   - what may be off at both ends of the step, or be computed again, need do
//     neither in this step: its bytes are taken off e first.
//
// B is the sum over the tiers, each at most its segment. What the nearest tiers
// cannot hold at a moment went to the others and comes back from them, at their
// rates alone. Cost: O(n * tiers + gaps).
// Limits: latencies, the order of copies and the sizes of storages are left
// out; on very small programs the bound is loose.
//===----------------------------------------------------------------------===//
#include "lib/Planner/Bound.h"

#include <algorithm>

using namespace mlir::hyperparallel::planner;

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

double mlir::hyperparallel::planner::lowerBound(const Problem &problem,
                                                const Lifetimes &lifetimes) {
  double compute = 0;
  for (const Operation &op : problem.operations)
    compute += op.seconds;
  if (problem.tiers.empty())
    return compute;
  double outRate = totalRate(problem, &Tier::out);
  double inRate = totalRate(problem, &Tier::in);
  // What is beyond the nearest tiers, and what it takes at least per byte.
  struct Beyond {
    double capacity, outSeconds, inSeconds;
  };
  std::vector<Beyond> beyond;
  double capacity = 0;
  for (size_t t = 0; t + 1 < problem.tiers.size(); ++t) {
    capacity += double(problem.tiers[t].capacity);
    beyond.push_back({capacity, 1 / totalRate(problem, &Tier::out, t + 1),
                      1 / totalRate(problem, &Tier::in, t + 1)});
  }
  // By slot: aligned bytes in gaps that cost no copy out, or none at all.
  std::vector<int64_t> clean(lifetimes.slots + 1, 0), spare = clean;
  // Copies move bytes as they are, memory is counted aligned.
  double least = 1;
  for (const Gap &gap : lifetimes.gaps) {
    const Storage &storage = problem.storages[gap.storage];
    least = std::min(least, double(storage.bytes) / double(gap.bytes));
    bool isSpare = lifetimes.wraps(gap) || storage.recomputeSeconds >= 0;
    if (!isSpare && !storage.clean && !storage.mayStartBelow)
      continue;
    forSlots(gap.after + 1, gap.before, lifetimes.slots,
             [&](int32_t from, int32_t to) {
               std::vector<int64_t> &bytes = isSpare ? spare : clean;
               bytes[from] += gap.bytes;
               bytes[to] -= gap.bytes;
             });
  }
  double best = compute, before = 0;
  int64_t cleanNow = 0, spareNow = 0;
  for (int32_t slot = 0; slot < lifetimes.slots; ++slot) {
    cleanNow += clean[slot];
    spareNow += spare[slot];
    double elsewhere = std::max<double>(
        0, double(lifetimes.live[slot] - problem.capacity - spareNow));
    double out = std::max(0.0, elsewhere - double(cleanNow));
    double during =
        slot + 1 < lifetimes.slots ? problem.operations[slot].seconds : 0;
    double outSeconds = out * least / outRate;
    double inSeconds = elsewhere * least / inRate;
    for (const Beyond &part : beyond) {
      double bytes = (out - part.capacity) * least;
      outSeconds = std::max(outSeconds, bytes * part.outSeconds);
      inSeconds = std::max(inSeconds, bytes * part.inSeconds);
    }
    best = std::max(best, std::max(before, outSeconds) + during +
                              std::max(compute - before - during, inSeconds));
    before += during;
  }
  return best;
}
