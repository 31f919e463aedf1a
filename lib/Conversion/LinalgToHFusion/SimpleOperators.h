//===- SimpleOperators.h - Groups that one operator does --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_SIMPLEOPERATORS_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_SIMPLEOPERATORS_H

#include "lib/Conversion/LinalgToHFusion/LibraryCalls.h"
#include "lib/Conversion/LinalgToKernels/KernelGrouping.h"

namespace mlir::hyperparallel {

/// An operator that does what a group of structured ops does.
struct SimpleOperator {
  StringRef name;
  SmallVector<LibraryView> views;
  SmallVector<int64_t> numbers; ///< behind the views' words
  std::optional<int64_t> bits;  ///< of a number, which comes before the views
};

/// One function of elements (of equal shapes, rows or columns that are
/// repeated, or a number), a change of their type, a fill, or one reduction
/// from its neutral element.
std::optional<SimpleOperator> matchSimpleOperator(const KernelGroup &group);

/// The fill of what a reduction adds to, if nobody uses that, or has a view of
/// it, in between; null if there is none.
linalg::FillOp findFill(linalg::LinalgOp op, Value init);

/// A contiguous operand, with a dimension for each loop, in their order: of
/// size 1 where the loop does not move it. None if it is none.
std::optional<LibraryView> viewByLoops(linalg::LinalgOp op, OpOperand &operand);

void callSimpleOperator(OpBuilder &builder, Location loc,
                        const SimpleOperator &simple, LibraryCalls &library);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_SIMPLEOPERATORS_H
