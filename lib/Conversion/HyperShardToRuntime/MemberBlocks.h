//===- MemberBlocks.h - Blocks of members, one after the other --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_HYPERSHARDTORUNTIME_MEMBERBLOCKS_H
#define HYPERPARALLEL_LIB_CONVERSION_HYPERSHARDTORUNTIME_MEMBERBLOCKS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::hyperparallel {

/// Moves one dimension of a tensor to another place.
Value moveDim(OpBuilder &builder, Location loc, Value tensor, int64_t from,
              int64_t to);

/// Divides a dimension that has a part for each of `members`: the members come
/// first.
Value takeMembers(OpBuilder &builder, Location loc, Value tensor, int64_t dim,
                  int64_t members);

/// Puts blocks of members, which come first, into a dimension of a tensor of
/// `type`.
Value placeMembers(OpBuilder &builder, Location loc, Value blocks, int64_t dim,
                   RankedTensorType type);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_HYPERSHARDTORUNTIME_MEMBERBLOCKS_H
