//===- MemberBlocks.cpp - Blocks of members, one after the other ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   [a, G*n, b]  <->  [a, G, n, b]  <->  [G, a, n, b]
//
// The transposes are ordinary ops of the program: they fuse, or are read
// through by products, and what they need is in the program's memory.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/HyperShardToRuntime/MemberBlocks.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace mlir::hyperparallel {

Value moveDim(OpBuilder &builder, Location loc, Value tensor, int64_t from,
              int64_t to) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  SmallVector<int64_t> shape;
  for (int64_t dim : order)
    shape.push_back(type.getDimSize(dim));
  Value init =
      tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  return linalg::TransposeOp::create(builder, loc, tensor, init, order)
      ->getResult(0);
}

/// Dimensions of a tensor where `dim` was divided in two, or the two are one.
static SmallVector<ReassociationIndices> divideDim(int64_t rank, int64_t dim) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t at = i <= dim ? i : i + 1;
    groups.push_back(i == dim ? ReassociationIndices{at, at + 1}
                              : ReassociationIndices{at});
  }
  return groups;
}

Value takeMembers(OpBuilder &builder, Location loc, Value tensor, int64_t dim,
                  int64_t members) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= members;
  shape.insert(shape.begin() + dim, members);
  Value expanded = tensor::ExpandShapeOp::create(
      builder, loc, RankedTensorType::get(shape, type.getElementType()), tensor,
      divideDim(type.getRank(), dim));
  return moveDim(builder, loc, expanded, dim, 0);
}

Value placeMembers(OpBuilder &builder, Location loc, Value blocks, int64_t dim,
                   RankedTensorType type) {
  return tensor::CollapseShapeOp::create(builder, loc, type,
                                         moveDim(builder, loc, blocks, 0, dim),
                                         divideDim(type.getRank(), dim));
}

} // namespace mlir::hyperparallel
