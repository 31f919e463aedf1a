//===- TensorCost.cpp - what tensor ops cost ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Views and declarations cost nothing. Movers read what they take and write
// what they make; an insert writes only what is inserted, for the rest stays
// where it is once tensors are buffers.
//===----------------------------------------------------------------------===//
#include "dialects/Interfaces/CostOpInterface.h"
#include "lib/ExternalModels/AttachModels.h"
#include "lib/ExternalModels/Costs.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::hyperparallel;

static OpCost moved(double read, double written) {
  OpCost cost;
  cost.bytesRead = read;
  cost.bytesWritten = written;
  return cost;
}

static OpCost costOf(tensor::InsertSliceOp op) {
  double bytes = byteSize(op.getSourceType());
  return moved(bytes, bytes);
}
static OpCost costOf(tensor::ParallelInsertSliceOp op) {
  double bytes = byteSize(op.getSourceType());
  return moved(bytes, bytes);
}
static OpCost costOf(tensor::PadOp op) {
  return moved(byteSize(op.getSourceType()), byteSize(op.getResultType()));
}
static OpCost costOf(tensor::ConcatOp op) {
  double bytes = byteSize(op.getResultType());
  return moved(bytes, bytes);
}
static OpCost costOf(tensor::SplatOp op) {
  return moved(0, byteSize(op.getType()));
}
static OpCost costOf(tensor::FromElementsOp op) {
  return moved(0, byteSize(op.getType()));
}
static OpCost costOf(tensor::ExtractOp op) {
  return moved(byteSize(op.getType()), 0);
}
static OpCost costOf(tensor::InsertOp op) {
  return moved(0, byteSize(op.getScalar().getType()));
}
static OpCost costOf(tensor::GatherOp op) {
  double bytes = byteSize(op.getResultType());
  return moved(bytes + byteSize(op.getIndicesType()), bytes);
}
static OpCost costOf(tensor::ScatterOp op) {
  double bytes = byteSize(op.getSourceType());
  return moved(bytes + byteSize(op.getIndicesType()), bytes);
}
/// The body runs once per element.
static OpCost costOf(tensor::GenerateOp op) {
  OpCost body;
  op.getBody().walk([&](CostOpInterface nested) { body += nested.getCost(); });
  auto type = cast<RankedTensorType>(op.getType());
  OpCost cost = body * (type.hasStaticShape() ? type.getNumElements() : 0);
  cost.bytesWritten += byteSize(type);
  return cost;
}

namespace {
template <typename OpTy>
struct MoverCost : CostOpInterface::ExternalModel<MoverCost<OpTy>, OpTy> {
  OpCost getCost(Operation *op) const { return costOf(cast<OpTy>(op)); }
};

template <typename OpTy>
struct ViewCost : CostOpInterface::ExternalModel<ViewCost<OpTy>, OpTy> {
  OpCost getCost(Operation *) const { return {}; }
};
} // namespace

void mlir::hyperparallel::registerTensorCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    using namespace tensor;
    attachModels<ViewCost, BitcastOp, CastOp, CollapseShapeOp, DimOp, EmptyOp,
                 ExpandShapeOp, ExtractSliceOp, RankOp, ReshapeOp>(context);
    attachModels<MoverCost, ConcatOp, ExtractOp, FromElementsOp, GatherOp,
                 GenerateOp, InsertOp, InsertSliceOp, PadOp,
                 ParallelInsertSliceOp, ScatterOp, SplatOp>(context);
  });
}
