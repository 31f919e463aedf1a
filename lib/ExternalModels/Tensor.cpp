//===- Tensor.cpp - how tensor and arith ops answer our interfaces --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/ExternalModels/ExternalModels.h"
#include "lib/ExternalModels/Models.h"
#include "lib/ExternalModels/Partitions.h"
#include "lib/ExternalModels/Rules.h"

#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::hyperparallel;

namespace {
/// An op whose rule and partition are functions of it alone.
template <typename OpTy, ShardingRule (*rule)(OpTy),
          LogicalResult (*part)(OpTy, PartitionContext &)>
struct Model
    : ShardableOpInterface::ExternalModel<Model<OpTy, rule, part>, OpTy> {
  ShardingRule getShardingRule(Operation *op) const {
    return rule(cast<OpTy>(op));
  }
  LogicalResult partition(Operation *op, PartitionContext &context) const {
    return part(cast<OpTy>(op), context);
  }
};

/// Operands and results of the same dimensions.
template <typename OpTy>
struct SameDimsModel
    : ShardableOpInterface::ExternalModel<SameDimsModel<OpTy>, OpTy> {
  ShardingRule getShardingRule(Operation *op) const { return sameDimsRule(op); }
  LogicalResult partition(Operation *op, PartitionContext &context) const {
    return partitionSameDims(op, context);
  }
};
} // namespace

template <typename OpTy>
static ShardingRule ruleOfReshape(OpTy op) {
  return reshapeRule(op, op.getSrcType().getShape(),
                     op.getResultType().getShape());
}

template <typename OpTy>
static LogicalResult partitionOfReshape(OpTy op, PartitionContext &context) {
  return partitionReshape(op, context);
}

static ShardingRule ruleOfConstant(arith::ConstantOp op) {
  return sameDimsRule(op);
}

void mlir::hyperparallel::registerTensorModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    using namespace tensor;
    ExpandShapeOp::attachInterface<
        Model<ExpandShapeOp, ruleOfReshape, partitionOfReshape>>(*context);
    CollapseShapeOp::attachInterface<
        Model<CollapseShapeOp, ruleOfReshape, partitionOfReshape>>(*context);
    ExtractSliceOp::attachInterface<
        Model<ExtractSliceOp, extractSliceRule, partitionExtractSlice>>(
        *context);
    InsertSliceOp::attachInterface<
        Model<InsertSliceOp, insertSliceRule, partitionInsertSlice>>(*context);
    PadOp::attachInterface<Model<PadOp, padRule, partitionPad>>(*context);
    ConcatOp::attachInterface<Model<ConcatOp, concatRule, partitionConcat>>(
        *context);
    GenerateOp::attachInterface<
        Model<GenerateOp, generateRule, partitionGenerate>>(*context);
    EmptyOp::attachInterface<SameDimsModel<EmptyOp>>(*context);
    CastOp::attachInterface<SameDimsModel<CastOp>>(*context);
    SplatOp::attachInterface<SameDimsModel<SplatOp>>(*context);
  });
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    arith::ConstantOp::attachInterface<
        Model<arith::ConstantOp, ruleOfConstant, partitionConstant>>(*context);
  });
}
