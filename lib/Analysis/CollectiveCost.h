//===- CollectiveCost.h - seconds of a collective ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Closed forms in latency and bandwidth. A group of devices is described by how
// many members it has at each level of the network, from the inside out; at
// each level the fastest of the algorithms that the machine allows is taken,
// and over several levels the better of one flat exchange and a hierarchical
// one.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_COLLECTIVECOST_H
#define HYPERPARALLEL_LIB_ANALYSIS_COLLECTIVECOST_H

#include "dialects/Supernode/Supernode.h"
#include "lib/Analysis/CommunicationCost.h"

namespace mlir::hyperparallel {

/// The members of a group that a level of the network joins.
struct GroupLevel {
  supernode::LevelAttr level;
  int64_t size;

  bool operator==(const GroupLevel &other) const {
    return level == other.level && size == other.size;
  }
};
/// From the inside out; levels that join nothing new are left out.
using GroupLevels = SmallVector<GroupLevel, 3>;

struct CollectiveCost {
  double seconds = 0;
  /// What is done at each level, from the inside out; one entry for a flat
  /// exchange. Empty if nothing is sent.
  SmallVector<supernode::Algorithm, 3> algorithms;
  bool isHierarchical = false;
};

/// Seconds of one algorithm among `members` devices of one level. `localBytes`
/// is what each device puts in. An algorithm that cannot do it takes for ever.
double algorithmSeconds(supernode::Algorithm algorithm, CollectiveKind kind,
                        int64_t members, double localBytes, double latency,
                        double bandwidth);

/// The best way to do the collective over these levels.
CollectiveCost bestCollective(CollectiveKind kind, double localBytes,
                              ArrayRef<GroupLevel> levels);

/// "ring", "flat direct", "hierarchical (direct, ring)".
std::string toString(const CollectiveCost &cost);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_COLLECTIVECOST_H
