//===- HyperShardFolds.cpp - folds and canonicalizations ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/HyperShard/HyperShard.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

/// A reshard to the sharding that the operand has.
OpFoldResult ReshardOp::fold(FoldAdaptor) {
  return hypershard::getSharding(getInput()) == getSharding() ? getInput()
                                                              : Value();
}

/// Going through an intermediate sharding that nobody else reads costs more and
/// gives the same.
static LogicalResult mergeReshards(ReshardOp op, PatternRewriter &rewriter) {
  auto inner = op.getInput().getDefiningOp<ReshardOp>();
  if (!inner || !inner->hasOneUse())
    return failure();
  rewriter.modifyOpInPlace(
      op, [&] { op.getInputMutable().assign(inner.getInput()); });
  return success();
}

void ReshardOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *) {
  patterns.add(mergeReshards);
}
