//===- Partitions.h - local programs by kind of op --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_EXTERNALMODELS_PARTITIONS_H
#define HYPERPARALLEL_LIB_EXTERNALMODELS_PARTITIONS_H

#include "dialects/Interfaces/ShardableOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::hyperparallel {

LogicalResult partitionLinalg(linalg::LinalgOp op, PartitionContext &context);
/// expand_shape and collapse_shape.
LogicalResult partitionReshape(Operation *op, PartitionContext &context);
LogicalResult partitionExtractSlice(tensor::ExtractSliceOp op,
                                    PartitionContext &context);
LogicalResult partitionInsertSlice(tensor::InsertSliceOp op,
                                   PartitionContext &context);
LogicalResult partitionPad(tensor::PadOp op, PartitionContext &context);
LogicalResult partitionConcat(tensor::ConcatOp op, PartitionContext &context);
LogicalResult partitionGenerate(tensor::GenerateOp op,
                                PartitionContext &context);
LogicalResult partitionConstant(arith::ConstantOp op,
                                PartitionContext &context);
/// Same op on local types: empty, cast, splat, elementwise.
LogicalResult partitionSameDims(Operation *op, PartitionContext &context);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_EXTERNALMODELS_PARTITIONS_H
