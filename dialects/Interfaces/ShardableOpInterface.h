//===- ShardableOpInterface.h - how an op may be split ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_INTERFACES_SHARDABLEOPINTERFACE_H
#define HYPERPARALLEL_DIALECTS_INTERFACES_SHARDABLEOPINTERFACE_H

#include "dialects/Interfaces/ShardingRule.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::hyperparallel {

/// What an op's partition() may ask while its local program is built. A factor
/// of size n that is split k ways gives device i the iterations
/// [i*c, min(n, (i+1)*c)) with c = ceil(n/k); local tensors have c in that
/// dimension, and what lies past the end is padding with unspecified content.
class PartitionContext {
public:
  virtual ~PartitionContext() = default;

  virtual OpBuilder &builder() = 0;
  virtual const ShardingRule &rule() const = 0;

  /// The local value of a global operand; a non-tensor maps to itself or to its
  /// copy in the local program.
  virtual Value local(Value global) = 0;
  /// The local type of a result of the op.
  virtual RankedTensorType localType(Value globalResult) = 0;
  /// Declares `local` to be the local value of the op's result.
  virtual void setResult(Value globalResult, Value local) = 0;

  /// Over how many devices a factor is split (1: not at all).
  virtual int64_t shardCount(unsigned factor) const = 0;
  /// This device's position along the factor, an index in [0, shardCount).
  virtual Value shardIndex(unsigned factor) = 0;
  /// ceil(size / shardCount).
  int64_t localSize(unsigned factor) const {
    int64_t count = shardCount(factor);
    return (rule().factors[factor].size + count - 1) / count;
  }
  /// True if some device holds padding in this factor.
  bool isUneven(unsigned factor) const {
    return localSize(factor) * shardCount(factor) !=
           rule().factors[factor].size;
  }
  /// First iteration of this device: shardIndex * localSize.
  Value offset(unsigned factor);

  /// Gives each device the window [i*stride + lo, i*stride + lo + size) of
  /// dimension `dim` of a local tensor that is split along `factor` in blocks
  /// of ceil(globalSize / shardCount); outside the tensor the window holds
  /// zeros.
  virtual Value exchangeWindow(Value local, int64_t dim, unsigned factor,
                               int64_t globalSize, int64_t stride, int64_t lo,
                               int64_t size) = 0;
};

} // namespace mlir::hyperparallel

#include "dialects/Interfaces/ShardableOpInterface.h.inc"

#endif // HYPERPARALLEL_DIALECTS_INTERFACES_SHARDABLEOPINTERFACE_H
