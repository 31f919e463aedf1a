//===- HyperShardCost.cpp - what collectives cost -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Bytes of one device: what it receives with the algorithm that moves least
// (CommunicationCost::bytesReceived), what it reads of its own part and writes
// of the result. The global form is costed on the local parts that its sharding
// gives, so that it costs what its local form will. Seconds are the cost
// model's affair, for they depend on the machine.
//===----------------------------------------------------------------------===//
#include "dialects/HyperShard/HyperShard.h"
#include "dialects/HyperShard/MeshAxes.h"
#include "dialects/Interfaces/CostOpInterface.h"
#include "lib/Analysis/CollectiveOps.h"
#include "lib/ExternalModels/AttachModels.h"
#include "lib/ExternalModels/Costs.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

namespace {
template <typename OpTy>
struct CollectiveOpCost
    : CostOpInterface::ExternalModel<CollectiveOpCost<OpTy>, OpTy> {
  OpCost getCost(Operation *op) const {
    OpCost cost;
    std::optional<CollectiveDescription> collective = describeCollective(op);
    if (!collective)
      return cost;
    // A slice reads what it keeps.
    bool isSlice = collective->kind == CollectiveKind::SliceLocal;
    cost.bytesRead = isSlice ? collective->resultBytes : collective->localBytes;
    cost.bytesWritten = collective->resultBytes;
    cost.bytesReceived = collective->bytesReceived;
    return cost;
  }
};

/// What is consumed before the program runs, or costs no time in it.
template <typename OpTy>
struct FreeCost : CostOpInterface::ExternalModel<FreeCost<OpTy>, OpTy> {
  OpCost getCost(Operation *) const { return {}; }
};
} // namespace

void mlir::hyperparallel::registerHyperShardCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, HyperShardDialect *) {
    attachModels<CollectiveOpCost, AllGatherOp, AllReduceOp, AllToAllOp,
                 HaloExchangeOp, PermuteOp, ReduceScatterOp, SliceLocalOp>(
        context);
    attachModels<FreeCost, AxisIndexOp, BarrierOp, ConstraintOp, MeshOp,
                 ReshardOp>(context);
  });
}

void mlir::hyperparallel::registerCostModels(DialectRegistry &registry) {
  registerLinalgCosts(registry);
  registerTensorCosts(registry);
  registerArithCosts(registry);
  registerHyperShardCosts(registry);
  registerIndexingCosts(registry);
  registerOffloadableModels(registry);
}
