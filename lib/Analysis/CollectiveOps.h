//===- CollectiveOps.h - reading collectives of the program -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What the cost model and the simulator need to know of a collective op,
// whichever op it is and in either form (global or local).
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_COLLECTIVEOPS_H
#define HYPERPARALLEL_LIB_ANALYSIS_COLLECTIVEOPS_H

#include "lib/Analysis/CommunicationCost.h"

namespace mlir::hyperparallel {

struct CollectiveDescription {
  /// A halo exchange is a permutation: each device sends to its neighbours.
  CollectiveKind kind;
  hypershard::MeshOp mesh;
  hypershard::AxisList axes;
  /// Of the operand and the result of one device.
  double localBytes = 0;
  double resultBytes = 0;
  /// The most that one device receives.
  double bytesReceived = 0;
};

/// The collective that `op` performs or starts; nullopt if it is none, or if
/// its mesh is not there.
std::optional<CollectiveDescription> describeCollective(Operation *op);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_COLLECTIVEOPS_H
