//===- CollectiveCost.cpp - seconds of a collective -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// With p members, n bytes put in by each, latency a and inverse bandwidth b,
// and s = ceil(log2 p):
//
//             ring                 tree                     halving (p = 2^s)
//  gather     (p-1)(a + nb)        s(a + pnb) + sa+(p-1)nb  sa + (p-1)nb
//  scatter    (p-1)(a + nb/p)      s(a + nb) + sa+(p-1)nb/p sa + (p-1)nb/p
//  reduce     2(p-1)(a + nb/p)     2s(a + nb)               2sa + 2(p-1)nb/p
//  all-to-all (p-1)(a + nb/p)      s(a + nb/2)              -
//
// direct is halving with one step (two for a reduce) and any p; an all-to-all
// takes a + (p-1)nb/p. A permute is one message, a + nb, by any of them.
//
// memory: members read each other's part and write their result, so b is that
// of one memory and what counts is all that one member reads and writes: gather
// a + 2pnb, scatter a + (n + n/p)b, reduce the lesser of a + (p+1)nb and
// 2a + (3n + n/p)b, all-to-all and permute a + 2nb.
//
// Over levels of sizes p1 (innermost), p2, ..., hierarchical:
//  - scatter: level by level outwards, on n, n/p1, n/(p1 p2), ...
//  - gather: level by level inwards, on n, n pk, n pk p(k-1), ...
//  - reduce: scatter outwards, reduce at the outermost, gather inwards
//  - all-to-all: level by level, each on all n
// Flat: all members as one level with the latency, bandwidth and algorithms of
// the outermost.
//
// Limits: all groups of a mesh exchange at the same time, each device on its
// own port; what else is on the wire is the simulator's affair. Source: Thakur,
// Rabenseifner and Gropp, "Optimization of Collective Communication Operations
// in MPICH", 2005, for the forms in a and b.
//===----------------------------------------------------------------------===//
#include "lib/Analysis/CollectiveCost.h"

#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::supernode;

static constexpr double kNever = std::numeric_limits<double>::infinity();

double hyperparallel::algorithmSeconds(Algorithm algorithm, CollectiveKind kind,
                                       int64_t members, double localBytes,
                                       double latency, double bandwidth) {
  if (members <= 1 || kind == CollectiveKind::SliceLocal)
    return 0;
  const double p = members, a = latency, n = localBytes / bandwidth;
  if (algorithm == Algorithm::Memory)
    switch (kind) {
    case CollectiveKind::AllGather:
      return a + 2 * p * n;
    case CollectiveKind::ReduceScatter:
      return a + n + n / p;
    case CollectiveKind::AllReduce:
      return std::min(a + (p + 1) * n, 2 * a + 3 * n + n / p);
    default:
      return a + 2 * n;
    }
  if (kind == CollectiveKind::Permute)
    return a + n;
  const double s = llvm::Log2_64_Ceil(members);
  // Latency rounds of the algorithms that send nothing twice.
  double rounds = s;
  switch (algorithm) {
  case Algorithm::Ring:
    rounds = p - 1;
    break;
  case Algorithm::Tree:
    switch (kind) {
    case CollectiveKind::AllGather:
      return s * (a + p * n) + s * a + (p - 1) * n;
    case CollectiveKind::ReduceScatter:
      return s * (a + n) + s * a + (p - 1) * n / p;
    case CollectiveKind::AllReduce:
      return 2 * s * (a + n);
    default:
      return s * (a + n / 2);
    }
  case Algorithm::Halving:
    if (!llvm::isPowerOf2_64(members) || kind == CollectiveKind::AllToAll)
      return kNever;
    break;
  case Algorithm::Direct:
  case Algorithm::Memory:
    rounds = 1;
    break;
  }
  switch (kind) {
  case CollectiveKind::AllGather:
    return rounds * a + (p - 1) * n;
  case CollectiveKind::AllReduce:
    return 2 * rounds * a + 2 * (p - 1) * n / p;
  default:
    return rounds * a + (p - 1) * n / p;
  }
}

namespace {
struct Choice {
  double seconds;
  Algorithm algorithm;
};
} // namespace

/// The fastest algorithm that the level allows; of equals the first it names.
static Choice bestOfLevel(CollectiveKind kind, int64_t members, double bytes,
                          LevelAttr level) {
  static constexpr Algorithm kDefault[] = {Algorithm::Ring, Algorithm::Tree};
  ArrayRef<Algorithm> allowed = level.getAlgorithms();
  if (allowed.empty())
    allowed = kDefault;
  Choice best = {kNever, Algorithm::Ring};
  for (Algorithm algorithm : allowed) {
    double seconds = algorithmSeconds(algorithm, kind, members, bytes,
                                      level.getLatency(), level.getBandwidth());
    if (seconds < best.seconds)
      best = {seconds, algorithm};
  }
  // Only halving is allowed, and it cannot: a ring always can.
  if (best.seconds == kNever)
    best.seconds = algorithmSeconds(Algorithm::Ring, kind, members, bytes,
                                    level.getLatency(), level.getBandwidth());
  return best;
}

static CollectiveCost hierarchical(CollectiveKind kind, double localBytes,
                                   ArrayRef<GroupLevel> levels) {
  CollectiveCost cost;
  cost.isHierarchical = true;
  auto add = [&](CollectiveKind part, const GroupLevel &at, double bytes) {
    Choice choice = bestOfLevel(part, at.size, bytes, at.level);
    cost.seconds += choice.seconds;
    return choice.algorithm;
  };
  double bytes = localBytes;
  switch (kind) {
  case CollectiveKind::ReduceScatter:
    for (const GroupLevel &at : levels) {
      cost.algorithms.push_back(add(kind, at, bytes));
      bytes /= at.size;
    }
    break;
  case CollectiveKind::AllGather:
    for (const GroupLevel &at : llvm::reverse(levels)) {
      cost.algorithms.insert(cost.algorithms.begin(), add(kind, at, bytes));
      bytes *= at.size;
    }
    break;
  case CollectiveKind::AllReduce:
    for (const GroupLevel &at : levels.drop_back()) {
      cost.algorithms.push_back(add(CollectiveKind::ReduceScatter, at, bytes));
      bytes /= at.size;
      add(CollectiveKind::AllGather, at, bytes);
    }
    cost.algorithms.push_back(add(kind, levels.back(), bytes));
    break;
  default:
    for (const GroupLevel &at : levels)
      cost.algorithms.push_back(add(kind, at, bytes));
    break;
  }
  return cost;
}

CollectiveCost hyperparallel::bestCollective(CollectiveKind kind,
                                             double localBytes,
                                             ArrayRef<GroupLevel> levels) {
  if (levels.empty() || kind == CollectiveKind::SliceLocal)
    return {};
  int64_t members = 1;
  for (const GroupLevel &at : levels)
    members *= at.size;
  Choice choice = bestOfLevel(kind, members, localBytes, levels.back().level);
  CollectiveCost flat;
  flat.seconds = choice.seconds;
  flat.algorithms.push_back(choice.algorithm);
  if (levels.size() == 1 || kind == CollectiveKind::Permute)
    return flat;
  CollectiveCost tiered = hierarchical(kind, localBytes, levels);
  return tiered.seconds < flat.seconds ? tiered : flat;
}

std::string hyperparallel::toString(const CollectiveCost &cost) {
  if (cost.algorithms.empty())
    return "none";
  std::string text = cost.isHierarchical ? "hierarchical (" : "";
  for (auto [index, algorithm] : llvm::enumerate(cost.algorithms))
    text += (index ? ", " : "") + stringifyAlgorithm(algorithm).str();
  return cost.isHierarchical ? text + ")" : text;
}
