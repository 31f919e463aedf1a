//===- FuseElementwise.cpp - Fewer, larger elementwise ops ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Drives upstream's fusion on tensors with our view of what pays:
//
//   - a producer with one use goes into its consumer, unless it computes
//     something expensive that the consumer would repeat (a broadcast);
//   - a producer with several uses is repeated only if it computes nothing
//     (constants, broadcasts, casts): kernels later share its rows in cache;
//   - nothing goes into a contraction, which the runtime's matmul will do;
//   - what takes more memory than it makes (a term that is added to a sum) is
//     not put off beyond a call: all terms would be kept until the last is
//     there;
//   - reshapes move out of elementwise chains, so that these meet.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::GenericOp;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

/// True if evaluating the body again costs more than loading its result.
static bool isExpensive(LinalgOp op) {
  return op.getBlock()
      ->walk([](Operation *nested) {
        return isa<math::MathDialect>(nested->getDialect()) ||
                       isa<tensor::ExtractOp, arith::DivFOp, arith::DivSIOp,
                           arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(
                           nested)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// True if the body only hands on, converts or makes constants.
static bool isTrivial(LinalgOp op) {
  int64_t arithmetic = 0;
  for (Operation &nested : op.getBlock()->without_terminator())
    if (!nested.hasTrait<OpTrait::ConstantLike>() &&
        !isa<linalg::IndexOp, arith::IndexCastOp, arith::ExtFOp, arith::ExtSIOp,
             arith::ExtUIOp>(nested))
      ++arithmetic;
  return arithmetic == 0;
}

/// Ops that are looked at between a producer and its consumer, at most.
static constexpr int kNear = 64;

/// Whether a call lies between the two, or they are far from each other.
static bool isAcrossCall(Operation *producer, Operation *consumer) {
  Operation *op = producer;
  for (int distance = 0; distance < kNear; ++distance) {
    op = op->getNextNode();
    if (!op || op == consumer)
      return false;
    if (isa<func::CallOp>(op))
      return true;
  }
  return true;
}

/// Whether more ends with the op than it makes.
static bool freesMemory(LinalgOp op) {
  auto elements = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.hasStaticShape() ? type.getNumElements() : 0;
  };
  int64_t ended = 0;
  for (OpOperand *input : op.getDpsInputOperands())
    if (input->get().hasOneUse())
      ended += elements(input->get());
  return ended > elements(op->getResult(0));
}

static bool shouldFuse(OpOperand *fused) {
  auto producer = fused->get().getDefiningOp<LinalgOp>();
  auto consumer = dyn_cast<LinalgOp>(fused->getOwner());
  if (!producer || !consumer || isRuntimeContraction(consumer) ||
      isRuntimeContraction(producer))
    return false;
  // A multi-result op, such as an argmax, keeps its inputs as they are.
  if (consumer->getNumResults() > 1 && !isTrivial(producer))
    return false;
  if (!producer->hasOneUse())
    return isTrivial(producer);
  if (producer->getBlock() == consumer->getBlock() && freesMemory(producer) &&
      isAcrossCall(producer, consumer))
    return false;
  bool repeats = consumer.getNumLoops() > producer.getNumLoops();
  return !(repeats && isExpensive(producer));
}

/// A reshape moves through an elementwise op, and stops at the others.
static bool shouldMoveReshape(OpOperand *fused) {
  auto isElementwise = [](Operation *op) {
    auto generic = dyn_cast_or_null<GenericOp>(op);
    return generic && generic.getNumReductionLoops() == 0;
  };
  Operation *producer = fused->get().getDefiningOp();
  Operation *consumer = fused->getOwner();
  if (isa_and_nonnull<tensor::CollapseShapeOp>(producer))
    return isElementwise(consumer) && producer->hasOneUse();
  if (isa<tensor::ExpandShapeOp>(consumer))
    return isElementwise(producer) && producer->hasOneUse();
  return false;
}

namespace {
struct FuseElementwisePass : impl::FuseElementwiseBase<FuseElementwisePass> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
    linalg::populateFoldReshapeOpsByExpansionPatterns(patterns,
                                                      shouldMoveReshape);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    GenericOp::getCanonicalizationPatterns(patterns, context);
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, context);
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, context);
    tensor::ExtractSliceOp::getCanonicalizationPatterns(patterns, context);
    context->getLoadedDialect<linalg::LinalgDialect>()
        ->getCanonicalizationPatterns(patterns);
    tensor::populateFoldTensorEmptyPatterns(patterns);
    if (failed(applyPatternsGreedily(
            getOperation(), std::move(patterns),
            GreedyRewriteConfig().setUseTopDownTraversal(true)))) {
      getOperation()->emitError("elementwise fusion did not converge");
      signalPassFailure();
    }
  }
};
} // namespace

} // namespace mlir::hyperparallel
