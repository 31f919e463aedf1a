//===- ShardableOpInterface.cpp - how an op may be split ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Interfaces/ShardableOpInterface.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::hyperparallel;

#include "dialects/Interfaces/ShardableOpInterface.cpp.inc"

Value PartitionContext::offset(unsigned factor) {
  Value index = shardIndex(factor);
  OpBuilder &b = builder();
  Value size =
      arith::ConstantIndexOp::create(b, index.getLoc(), localSize(factor));
  return arith::MulIOp::create(b, index.getLoc(), index, size);
}
