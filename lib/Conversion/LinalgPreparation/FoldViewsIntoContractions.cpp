//===- FoldViewsIntoContractions.cpp - Matmuls that read in place ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime's matmul takes strides, so a transpose, a broadcast or a split of
// dimensions next to a contraction needs no copy:
//
//   1. matmul-like named ops become linalg.generic;
//   2. an operand that is a permuted or broadcast copy is replaced by the
//      copy's source, its indexing map composed with the copy's;
//   3. an operand that is a collapse_shape of such a copy (heads and batch,
//      say) makes the contraction iterate over the separate dimensions;
//   4. a permuted copy of a contraction's only use moves into its result map
//      (also across an expand_shape).
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_FOLDVIEWSINTOCONTRACTIONS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::GenericOp;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

/// A generic that only copies its one input, each result element from one
/// place: a transpose, a broadcast, or both.
static bool isPermutedCopy(GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op->getNumResults() != 1 ||
      op.getNumReductionLoops() != 0 || !op.hasPureTensorSemantics())
    return false;
  Block *body = op.getBlock();
  auto yielded = dyn_cast<BlockArgument>(body->getTerminator()->getOperand(0));
  if (!yielded || yielded.getOwner() != body || yielded.getArgNumber() != 0)
    return false;
  AffineMap input = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  AffineMap output = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  return output.isPermutation() && input.isProjectedPermutation() &&
         isa<RankedTensorType>(op.getDpsInputOperand(0)->get().getType());
}

/// True if `value` costs a copy that reading in place would save.
static bool isCopied(Value value) {
  if (auto generic = value.getDefiningOp<GenericOp>())
    return isPermutedCopy(generic);
  return false;
}

/// True if with `maps` every reduction loop still runs over both inputs.
static bool isMatmulLike(GenericOp op, ArrayRef<AffineMap> maps) {
  for (auto [loop, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
    if (linalg::isReductionIterator(iterator) &&
        !(maps[0].isFunctionOfDim(loop) && maps[1].isFunctionOfDim(loop)))
      return false;
  return true;
}

namespace {
/// Step 2.
struct ReadThroughCopy : OpRewritePattern<GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!isRuntimeContraction(op) || !op.hasPureTensorSemantics())
      return failure();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto copy = operand->get().getDefiningOp<GenericOp>();
      if (!copy || !isPermutedCopy(copy))
        continue;
      // copy: loops -> result index, invertible; loops -> source index.
      AffineMap toLoops = inversePermutation(
          copy.getMatchingIndexingMap(copy.getDpsInitOperand(0)));
      AffineMap toSource =
          copy.getMatchingIndexingMap(copy.getDpsInputOperand(0))
              .compose(toLoops);
      SmallVector<AffineMap> maps = op.getIndexingMapsArray();
      unsigned number = operand->getOperandNumber();
      maps[number] = toSource.compose(maps[number]);
      if (!isMatmulLike(op, maps))
        continue;
      rewriter.modifyOpInPlace(op, [&] {
        op->setOperand(number, copy.getDpsInputOperand(0)->get());
        op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
      });
      return success();
    }
    return failure();
  }
};

/// Step 4: contraction, one use, permuted copy.
struct WriteThroughTranspose : OpRewritePattern<GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GenericOp copy,
                                PatternRewriter &rewriter) const override {
    if (!isPermutedCopy(copy))
      return failure();
    AffineMap input = copy.getMatchingIndexingMap(copy.getDpsInputOperand(0));
    auto op = copy.getDpsInputOperand(0)->get().getDefiningOp<GenericOp>();
    if (!input.isPermutation() || !op || !isRuntimeContraction(op) ||
        !op->hasOneUse())
      return failure();
    auto fill = op.getDpsInitOperand(0)->get().getDefiningOp<linalg::FillOp>();
    if (!fill)
      return failure();
    AffineMap output = copy.getMatchingIndexingMap(copy.getDpsInitOperand(0));
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    maps.back() =
        output.compose(inversePermutation(input)).compose(maps.back());
    auto type = cast<RankedTensorType>(copy->getResult(0).getType());
    Location loc = op.getLoc();
    rewriter.setInsertionPoint(op);
    // A permutation of a shape whose sizes are all known needs no operands.
    if (!type.hasStaticShape())
      return failure();
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                          type.getElementType());
    Value init = linalg::FillOp::create(rewriter, loc, fill.getInputs(), empty)
                     .getResult(0);
    auto fresh =
        GenericOp::create(rewriter, loc, TypeRange(type), op.getDpsInputs(),
                          ValueRange(init), maps, op.getIteratorTypesArray());
    rewriter.cloneRegionBefore(op.getRegion(), fresh.getRegion(),
                               fresh.getRegion().begin());
    rewriter.replaceOp(copy, fresh->getResults());
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

/// Step 3, and the expand_shape of step 4.
static bool shouldExpandContraction(OpOperand *fused) {
  if (auto collapse = fused->get().getDefiningOp<tensor::CollapseShapeOp>())
    return isRuntimeContraction(fused->getOwner()) &&
           isCopied(collapse.getSrc());
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(fused->getOwner())) {
    Operation *producer = fused->get().getDefiningOp();
    return producer && isRuntimeContraction(producer) &&
           producer->hasOneUse() &&
           llvm::any_of(expand->getUsers(), [](Operation *user) {
             auto generic = dyn_cast<GenericOp>(user);
             return generic && isPermutedCopy(generic);
           });
  }
  return false;
}

/// Step 1. Ops with other structure keep their names.
static LogicalResult generalizeAround(Operation *root) {
  SmallVector<LinalgOp> named;
  root->walk([&](LinalgOp op) {
    if (!isa<GenericOp, linalg::FillOp>(op) && op.hasPureTensorSemantics() &&
        !linalg::isaConvolutionOpInterface(op) &&
        !isa<linalg::ConvolutionOpInterface>(op.getOperation()))
      named.push_back(op);
  });
  IRRewriter rewriter(root->getContext());
  for (LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::generalizeNamedOp(rewriter, op)))
      return op->emitError("expected an op that can be written as "
                           "linalg.generic but got ")
             << op->getName();
  }
  return success();
}

namespace {
struct FoldViewsIntoContractionsPass
    : impl::FoldViewsIntoContractionsBase<FoldViewsIntoContractionsPass> {
  void runOnOperation() override {
    if (failed(generalizeAround(getOperation())))
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    patterns.add<ReadThroughCopy, WriteThroughTranspose>(&getContext());
    linalg::populateFoldReshapeOpsByExpansionPatterns(patterns,
                                                      shouldExpandContraction);
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns,
                                                         &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns)))) {
      getOperation()->emitError("folding of views did not converge");
      signalPassFailure();
    }
  }
};
} // namespace

} // namespace mlir::hyperparallel
