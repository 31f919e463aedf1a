//===- ReshardPath.h - from one layout to another, at least cost *- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Which collectives carry a tensor from one layout to another. What is minimal
// is the seconds when the module describes its machine, and otherwise the bytes
// that a device receives (then the seconds under default parameters, which in
// effect is the number of collectives). Axes that neither layout uses stay out.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_RESHARDPATH_H
#define HYPERPARALLEL_LIB_ANALYSIS_RESHARDPATH_H

#include "lib/Analysis/CommunicationCost.h"
#include "lib/Analysis/TensorLayout.h"

#include <map>
#include <memory>
#include <string>

namespace mlir::hyperparallel {

/// One collective, in terms of the global tensor.
struct ReshardStep {
  CollectiveKind kind;
  /// AllGather, ReduceScatter, SliceLocal: the dimension. AllToAll: the one
  /// that is split. -1 for the others.
  int64_t dim = -1;
  /// AllToAll: the dimension that is put together. -1 for the others.
  int64_t concatDim = -1;
  /// The group, major to minor. Empty for an AllReduce that only renames copies
  /// as terms of a partial max, min, and, or, avg.
  hypershard::AxisList axes;
  /// Permute: the group in its new order.
  hypershard::AxisList toAxes;
  /// The layout of the result.
  TensorLayout after;
  /// Received per device, the most of any device.
  int64_t bytes = 0;
  double seconds = 0;
};

struct ReshardPlan {
  SmallVector<ReshardStep, 2> steps;
  /// Received per device, the most of any device, in all steps.
  int64_t bytes = 0;
  double seconds = 0;
  /// Why there is no plan; empty when there is one. Then seconds is infinite.
  std::string refusal;
  /// The plan that gathers, then slices: what was refused in favour of this
  /// one. Nothing where that cannot be done.
  std::optional<int64_t> gatherBytes;
  double gatherSeconds = 0;
  /// The space of layouts was too large to search; this is the gathering plan.
  bool isFallback = false;

  bool isPossible() const { return refusal.empty(); }
};

/// Plans reshards on one mesh and remembers them. Not thread-safe.
class ReshardPlanner {
public:
  ReshardPlanner(hypershard::MeshAxes mesh, CommunicationCost cost)
      : mesh(mesh), cost(std::move(cost)) {}
  ReshardPlanner(ReshardPlanner &&) = default;

  /// Both layouts have the rank of the type. The reference stays valid.
  const ReshardPlan &plan(RankedTensorType globalType, const TensorLayout &from,
                          const TensorLayout &to);

  const hypershard::MeshAxes &getMesh() const { return mesh; }
  const CommunicationCost &getCost() const { return cost; }

private:
  using Key = std::vector<int64_t>;

  hypershard::MeshAxes mesh;
  CommunicationCost cost;
  std::map<Key, std::unique_ptr<ReshardPlan>> plans;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_RESHARDPATH_H
