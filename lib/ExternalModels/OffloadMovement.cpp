//===- OffloadMovement.cpp - what prefetches and stores move --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Copies of the Offload dialect as the simulator sees them: beside the kernels,
// from the tier that one type names to that of the other. None of the dialect's
// ops is a kernel, so their cost is nothing.
//===----------------------------------------------------------------------===//
#include "dialects/Interfaces/CostOpInterface.h"
#include "dialects/Interfaces/MovementOpInterface.h"
#include "dialects/Offload/Offload.h"
#include "lib/ExternalModels/Costs.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::offload;

/// Empty for the memory of the device.
static StringRef tierName(Type type) {
  TierAttr tier = getTier(type);
  return tier ? tier.getName().getValue() : StringRef();
}

namespace {
template <typename OpTy>
struct CopyMovement
    : MovementOpInterface::ExternalModel<CopyMovement<OpTy>, OpTy> {
  Movement getMovement(Operation *op) const {
    Type source = op->getOperand(0).getType();
    auto future = cast<FutureType>(op->getResult(0).getType());
    Movement movement;
    movement.kind = Movement::Kind::Copy;
    movement.bytes = byteSize(source);
    movement.from = tierName(source);
    movement.to = tierName(future.getValueType());
    return movement;
  }
};

template <typename OpTy>
struct FreeCost : CostOpInterface::ExternalModel<FreeCost<OpTy>, OpTy> {
  OpCost getCost(Operation *) const { return {}; }
};
} // namespace

void mlir::hyperparallel::registerOffloadMovements(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, OffloadDialect *) {
    PrefetchOp::attachInterface<CopyMovement<PrefetchOp>, FreeCost<PrefetchOp>>(
        *context);
    StoreOp::attachInterface<CopyMovement<StoreOp>, FreeCost<StoreOp>>(
        *context);
    WaitOp::attachInterface<FreeCost<WaitOp>>(*context);
    DetachOp::attachInterface<FreeCost<DetachOp>>(*context);
  });
}
