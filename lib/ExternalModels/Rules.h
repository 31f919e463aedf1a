//===- Rules.h - sharding rules by kind of op -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_EXTERNALMODELS_RULES_H
#define HYPERPARALLEL_LIB_EXTERNALMODELS_RULES_H

#include "dialects/Interfaces/ShardingRule.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::hyperparallel {

/// Factor i is loop i of the op; then one factor per dimension of a captured
/// tensor that is indexed by data.
ShardingRule linalgRule(linalg::LinalgOp op);

/// A body operation that combines into the value of the accumulator, as an
/// associative and commutative reduction; nullopt for anything else.
std::optional<Reduction> combinerOf(linalg::LinalgOp op, unsigned init);

/// How the body of a linalg op reads a captured tensor.
struct CapturedRead {
  tensor::ExtractOp extract;
  /// Per dimension of the tensor, the loop whose index is used as it is, or -1
  /// if the position is computed.
  SmallVector<int64_t, 4> loops;
  /// Per dimension, the factor of the rule (-1: none, a size-1 dimension).
  SmallVector<int64_t, 4> factors;
  /// The op yields what is read, and zeros from other shards add nothing to it.
  bool isMaskable = false;
};

/// The reads of captured tensors in the body, with the factors that linalgRule
/// gives them, in program order.
SmallVector<CapturedRead, 1> capturedReads(linalg::LinalgOp op);

/// Adds what `inner`, in the body of `op`, takes from outside of it: tensors
/// that must be whole.
void addWholeTensors(ShardingRule &rule, Operation *op, Operation *inner);

ShardingRule reshapeRule(Operation *op, ArrayRef<int64_t> from,
                         ArrayRef<int64_t> to);
ShardingRule extractSliceRule(tensor::ExtractSliceOp op);
ShardingRule insertSliceRule(tensor::InsertSliceOp op);
ShardingRule padRule(tensor::PadOp op);
ShardingRule concatRule(tensor::ConcatOp op);
/// Operands and result have the same dimensions (cast, constants, empty).
ShardingRule sameDimsRule(Operation *op);
/// tensor.generate: indices only, so that every dimension may be split.
ShardingRule generateRule(tensor::GenerateOp op);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_EXTERNALMODELS_RULES_H
