//===- LinalgCost.cpp - what structured ops cost --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Derived from the op, without a table of ops:
//  - operations: those of the body, once per iteration of the loops (so a
//    product of M x K and K x N matrices has 2 M N K);
//  - bytes read: every operand whose element the body uses, once, and what the
//    body reads itself (tensor.extract), once per iteration;
//  - bytes written: the results.
// A contraction or convolution that multiplies counts as work of a matrix unit.
//
// Limits: an operand is taken to be read once, whatever the cache; loops of
// dynamic extent count as none.
//===----------------------------------------------------------------------===//
#include "dialects/Interfaces/CostOpInterface.h"
#include "lib/ExternalModels/AttachModels.h"
#include "lib/ExternalModels/Costs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::hyperparallel;

static double iterations(linalg::LinalgOp op) {
  double count = 1;
  for (int64_t extent : op.getStaticLoopRanges())
    count *= ShapedType::isDynamic(extent) ? 0 : extent;
  return count;
}

static bool isMatrixWork(linalg::LinalgOp op) {
  if (linalg::isaContractionOpInterface(op))
    return true;
  if (!isa<linalg::ConvolutionOpInterface>(op.getOperation()))
    return false;
  return llvm::any_of(op.getBlock()->without_terminator(), [](Operation &body) {
    return isa<arith::MulFOp, arith::MulIOp>(body);
  });
}

static OpCost costOfLinalg(linalg::LinalgOp op) {
  OpCost body;
  op.getBlock()->walk(
      [&](CostOpInterface nested) { body += nested.getCost(); });
  OpCost cost = body * iterations(op);
  if (isMatrixWork(op))
    cost.contractionFlops = cost.flops;
  for (OpOperand &operand : op->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()) &&
        !op.getMatchingBlockArgument(&operand).use_empty())
      cost.bytesRead += byteSize(operand.get().getType());
  for (Type type : op->getResultTypes())
    cost.bytesWritten += byteSize(type);
  return cost;
}

namespace {
template <typename OpTy>
struct LinalgCost : CostOpInterface::ExternalModel<LinalgCost<OpTy>, OpTy> {
  OpCost getCost(Operation *op) const {
    return costOfLinalg(cast<linalg::LinalgOp>(op));
  }
};
} // namespace

void mlir::hyperparallel::registerLinalgCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    attachModels<LinalgCost,
#define GET_OP_LIST
#include "mlir/Dialect/Linalg/IR/LinalgStructuredOps.cpp.inc"
                 >(context);
  });
}
