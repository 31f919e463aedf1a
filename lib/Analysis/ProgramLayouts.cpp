//===- ProgramLayouts.cpp - the sharding of every value -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Analysis/ProgramLayouts.h"

#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

ProgramLayouts::ProgramLayouts(ModuleOp module, MeshAxes mesh)
    : meshAxes(mesh), dataFlow(collectDataFlowEdges(module)) {
  for (auto [index, edge] : llvm::enumerate(dataFlow))
    for (Value target : edge.targets)
      if (isa<BlockArgument>(target))
        edgeOfBlockArgument[target] = index;
}

ShardingAttr ProgramLayouts::shardingOf(const DataFlowEdge &edge) const {
  if (edge.function)
    if (auto sharding =
            cast<FunctionOpInterface>(edge.function)
                .getResultAttrOfType<ShardingAttr>(
                    edge.functionResult, HyperShardDialect::kShardingAttrName))
      return sharding;
  for (Value target : edge.targets)
    if (ShardingAttr sharding = hypershard::getSharding(target))
      return sharding;
  // A chain of loops whose arguments have no result ends at a value that does.
  return edge.sources.empty() ? ShardingAttr()
                              : shardingOf(edge.sources.front()->get());
}

ShardingAttr ProgramLayouts::shardingOf(Value value) const {
  if (ShardingAttr sharding = hypershard::getSharding(value))
    return sharding;
  auto it = edgeOfBlockArgument.find(value);
  return it == edgeOfBlockArgument.end() ? ShardingAttr()
                                         : shardingOf(dataFlow[it->second]);
}

TensorLayout ProgramLayouts::layoutOf(Value value) const {
  if (ShardingAttr sharding = shardingOf(value))
    return TensorLayout::fromAttr(sharding, meshAxes);
  return TensorLayout::replicated(
      cast<RankedTensorType>(value.getType()).getRank());
}

FailureOr<MeshOp> mlir::hyperparallel::getOnlyMesh(ModuleOp module) {
  MeshOp only;
  for (auto mesh : module.getOps<MeshOp>()) {
    if (only) {
      InFlightDiagnostic error =
          mesh.emitError("expected one mesh in the module but got a second, @")
          << mesh.getSymName();
      error.attachNote(only.getLoc()) << "the first is @" << only.getSymName();
      return error;
    }
    only = mesh;
  }
  if (only)
    return only;
  module.emitError("expected a mesh in the module but got none").attachNote()
      << "declare one: hypershard.mesh @mesh = <[\"dp\"=2, \"tp\"=2]>";
  return failure();
}

void mlir::hyperparallel::walkTensorOps(Operation *root,
                                        function_ref<void(Operation *)> visit) {
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == root)
      return WalkResult::advance();
    visit(op);
    bool hasTensorRegions =
        isa<RegionBranchOpInterface, FunctionOpInterface, ModuleOp>(op);
    return op->getNumRegions() == 0 || hasTensorRegions ? WalkResult::advance()
                                                        : WalkResult::skip();
  });
}
