//===- PropagationGraph.h - values, and what relates them -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A program as propagation sees it: *values* (tensors, and the results of
// functions) whose dimensions hold axes, and *nodes* (ops and data-flow edges)
// whose factors relate dimensions of values. Names are numbers: a visit of a
// node touches no IR.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_PROPAGATIONGRAPH_H
#define HYPERPARALLEL_LIB_ANALYSIS_PROPAGATIONGRAPH_H

#include "lib/Analysis/FactorSharding.h"
#include "lib/Analysis/ProgramLayouts.h"

namespace mlir::hyperparallel {

/// What is known of one dimension of a value. It only grows, on the minor side.
struct DimState {
  hypershard::AxisList axes;
  bool isOpen = true;
  int64_t priority = 0;
};

struct ValueState {
  SmallVector<DimState, 4> dims;
  /// Axes that no dimension may take: replicated on purpose, or partial.
  hypershard::AxisList blocked;
  hypershard::PartialAttr partial;
  RankedTensorType type;
  /// Size of the whole tensor: what is at stake in a conflict.
  int64_t bytes = 0;
};

struct NodeTensor {
  unsigned value;
  SmallVector<SmallVector<unsigned, 2>, 4> dims;
  /// May its axes travel to the other tensors; may it take theirs?
  bool isSource = true;
  bool isTarget = true;
};

struct PropagationNode {
  /// The op, or for an edge the op that owns its first source.
  Operation *op;
  SmallVector<Factor, 4> factors;
  SmallVector<NodeTensor, 3> tensors;
  /// Values are mapped one to one: propagates before all else.
  bool isElementwise = false;
  bool wasInConflict = false;
};

class PropagationGraph {
public:
  /// Reads the annotations. Emits an error and fails for tensors of dynamic
  /// shape.
  static FailureOr<PropagationGraph> build(ModuleOp module,
                                           hypershard::MeshOp mesh);

  /// Puts the closed sharding of every value on the program.
  void writeShardings();

  hypershard::MeshAxes mesh;
  std::vector<ValueState> values;
  std::vector<PropagationNode> nodes;
  /// Per value, the nodes that it is part of.
  std::vector<SmallVector<unsigned, 4>> users;

private:
  explicit PropagationGraph(hypershard::MeshOp mesh)
      : mesh(mesh.getMesh()),
        meshName(FlatSymbolRefAttr::get(mesh.getContext(), mesh.getSymName())) {
  }

  FailureOr<unsigned> valueOf(Value value);
  unsigned addValue(RankedTensorType type, hypershard::ShardingAttr sharding);
  void addNode(PropagationNode node);
  LogicalResult addFunctionResults(ModuleOp module);
  LogicalResult addOps(ModuleOp module);
  LogicalResult addEdges(ModuleOp module);
  hypershard::ShardingAttr shardingOf(unsigned value) const;
  void writeEdgesWithoutHome();

  FlatSymbolRefAttr meshName;
  DenseMap<Value, unsigned> ids;
  /// In order of discovery, with the number of the value.
  SmallVector<std::pair<Value, unsigned>> tensors;
  /// (function, result) pairs are values too.
  DenseMap<std::pair<Operation *, unsigned>, unsigned> resultIds;
  SmallVector<DataFlowEdge> edges;
  ModuleOp module;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_PROPAGATIONGRAPH_H
