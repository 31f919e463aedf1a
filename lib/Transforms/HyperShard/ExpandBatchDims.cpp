//===- ExpandBatchDims.cpp - undo flattened batches of contractions -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What: contractions whose batch dimension was made by collapsing several get
//   the several back.
// In: any program. Out: the same values.
// Why: front ends write attention as batch_matmul over batch * heads. A split
//   of the heads is the minor part of that dimension, which no sharding can
//   say, so that tensor parallelism would be gathered away before every
//   attention.
// How: batch_matmul with a collapsed operand becomes a linalg.generic;
//   upstream's patterns then move the collapse from its operands to an
//   expansion of its loops, and fold what reshapes meet.
// Cost: linear in ops.
// Limits: only contractions with a batch dimension, where the operand or the
//   result is reshaped right there.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperShard/Passes.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_EXPANDBATCHDIMSPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel::hypershard;

/// Does the operand collapse leading dimensions, of which one is the batch?
static bool collapsesBatch(Value operand) {
  auto collapse = operand.getDefiningOp<tensor::CollapseShapeOp>();
  return collapse && collapse.getReassociationIndices().front().size() > 1;
}

static bool isBatchContraction(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || !linalg::isaContractionOpInterface(generic))
    return false;
  FailureOr<linalg::ContractionDimensions> dims =
      linalg::inferContractionDims(generic);
  return succeeded(dims) && !dims->batch.empty();
}

/// A fold is wanted where a batch contraction takes or makes the tensor.
static bool touchesBatchContraction(OpOperand *operand) {
  return isBatchContraction(operand->getOwner()) ||
         isBatchContraction(operand->get().getDefiningOp());
}

namespace {
struct ExpandBatchDimsPass final
    : mlir::hyperparallel::hypershard::impl::ExpandBatchDimsPassBase<
          ExpandBatchDimsPass> {
  void runOnOperation() override {
    SmallVector<linalg::BatchMatmulOp> flattened;
    getOperation().walk([&](linalg::BatchMatmulOp op) {
      if (llvm::any_of(op.getInputs(), collapsesBatch))
        flattened.push_back(op);
    });
    if (flattened.empty())
      return;
    IRRewriter rewriter(&getContext());
    for (linalg::BatchMatmulOp op : flattened) {
      rewriter.setInsertionPoint(op);
      if (succeeded(linalg::generalizeNamedOp(rewriter, op)))
        ++numExpanded;
    }
    RewritePatternSet patterns(&getContext());
    linalg::populateFoldReshapeOpsByExpansionPatterns(patterns,
                                                      touchesBatchContraction);
    tensor::populateFoldTensorEmptyPatterns(patterns);
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns,
                                                         &getContext());
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, &getContext());
    linalg::FillOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
