//===- WholeBuffers.h - What a vendor's operators do ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps of hp-call-library that are long enough for a file of their own.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_WHOLEBUFFERS_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_WHOLEBUFFERS_H

#include "lib/Conversion/LinalgToHFusion/LibraryCalls.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::hyperparallel {

/// Makes the op anew with one more input; returns its element in the body.
BlockArgument addInput(linalg::GenericOp &op, Value buffer, AffineMap map);

/// Reads at computed places, in the bodies of structured ops: the operator
/// `embedding`. Reports what no operator reads.
LogicalResult splitGathers(func::FuncOp function, LibraryCalls &library);

/// Attention (`fused.attention`): the operator of that name.
LogicalResult callAttention(func::FuncOp function, LibraryCalls &library);

/// Greatest elements and their places: the operator `max_dim`.
void callArgmax(func::FuncOp function, LibraryCalls &library);

/// Loops that add rows at computed places: the operator `index_add`.
void callScatters(func::FuncOp function, LibraryCalls &library);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_WHOLEBUFFERS_H
