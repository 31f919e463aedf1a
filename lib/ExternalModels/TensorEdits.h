//===- TensorEdits.h - cut, pad and mask local tensors ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The few rewrites of local tensors that partitioning is made of. All shapes
// are static; an edit that changes nothing gives its operand back.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_EXTERNALMODELS_TENSOREDITS_H
#define HYPERPARALLEL_LIB_EXTERNALMODELS_TENSOREDITS_H

#include "dialects/Interfaces/ShardingRule.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::hyperparallel {

/// Elements offset, offset + stride, ... (`size` of them) of a dimension.
Value sliceDim(OpBuilder &b, Location loc, Value tensor, int64_t dim,
               int64_t offset, int64_t size, int64_t stride = 1);

/// `low` and `high` zeros before and after a dimension.
Value padDim(OpBuilder &b, Location loc, Value tensor, int64_t dim, int64_t low,
             int64_t high);

/// The first `size` elements of a dimension, zeros where it has fewer.
Value resizeDim(OpBuilder &b, Location loc, Value tensor, int64_t dim,
                int64_t size);

/// The window [lo, lo + size) of a dimension; zeros outside the tensor.
Value windowDim(OpBuilder &b, Location loc, Value tensor, int64_t dim,
                int64_t lo, int64_t size);

/// Makes one element of an elementwise op from its position in the local tensor
/// and the elements of the operands there.
using ElementBuilder = function_ref<Value(
    OpBuilder &, Location, ValueRange position, ValueRange elements)>;

/// An elementwise linalg.generic over tensors of the result's shape; a
/// dimension of size 1 of an operand is read again and again.
Value mapElements(OpBuilder &b, Location loc, RankedTensorType resultType,
                  ValueRange operands, ElementBuilder element);

/// A scalar constant of an integer, index, float or complex type.
Value zeroScalar(OpBuilder &b, Location loc, Type type);

/// What leaves the other operand of a reduction as it is; null if the type has
/// no such value.
TypedAttr neutralElement(Reduction kind, Type type);

/// The values that an op and its regions take from outside, mapped by `local`.
IRMapping mapValuesFromOutside(Operation *op, function_ref<Value(Value)> local);

/// `index < bound` as i1.
Value isBelow(OpBuilder &b, Location loc, Value index, int64_t bound);
/// lo <= index < hi as i1, for an index that is not negative.
Value isInRange(OpBuilder &b, Location loc, Value index, int64_t lo,
                int64_t hi);
/// a && b, where either may be null.
Value andConditions(OpBuilder &b, Location loc, Value lhs, Value rhs);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_EXTERNALMODELS_TENSOREDITS_H
