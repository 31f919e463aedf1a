//===- ProgramLayouts.h - the sharding of every value -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Arguments of functions and results of ops carry their shardings. Arguments of
// blocks (loop-carried values) have no place for one: theirs is that of their
// data-flow edge, which is the sharding of another target of the edge (the
// loop's result), or else that of its first source.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_PROGRAMLAYOUTS_H
#define HYPERPARALLEL_LIB_ANALYSIS_PROGRAMLAYOUTS_H

#include "lib/Analysis/DataFlowEdges.h"
#include "lib/Analysis/TensorLayout.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::hyperparallel {

class ProgramLayouts {
public:
  ProgramLayouts(ModuleOp module, hypershard::MeshAxes mesh);

  /// The sharding of a value, or null if it has none.
  hypershard::ShardingAttr shardingOf(Value value) const;
  /// The layout of a ranked tensor; whole if it has no sharding.
  TensorLayout layoutOf(Value value) const;
  /// The sharding that the sources of an edge must have; null if none is known.
  hypershard::ShardingAttr shardingOf(const DataFlowEdge &edge) const;

  ArrayRef<DataFlowEdge> edges() const { return dataFlow; }
  const hypershard::MeshAxes &mesh() const { return meshAxes; }

private:
  hypershard::MeshAxes meshAxes;
  SmallVector<DataFlowEdge> dataFlow;
  DenseMap<Value, unsigned> edgeOfBlockArgument;
};

/// The one mesh of the module; emits an error and fails if there is none, or
/// more than one.
FailureOr<hypershard::MeshOp> getOnlyMesh(ModuleOp module);

/// Calls `visit` for every op that computes on whole tensors: not for those in
/// the bodies of structured ops, which compute on elements, nor in manual
/// regions.
void walkTensorOps(Operation *root, function_ref<void(Operation *)> visit);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_PROGRAMLAYOUTS_H
