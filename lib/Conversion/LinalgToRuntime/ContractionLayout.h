//===- ContractionLayout.h - Contractions as strided matmuls ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which linalg ops the runtime's matmul computes, and how the loops of one map
// to its m, n, k and batch dimensions.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTORUNTIME_CONTRACTIONLAYOUT_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTORUNTIME_CONTRACTIONLAYOUT_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::hyperparallel {

/// What follows a contraction in the same call (FoldEpilogues.cpp): the number
/// of an activation; a third input is a bias of the n loop, which is one loop
/// then.
inline constexpr llvm::StringLiteral kEpilogueAttrName = "hp.epilogue";

/// True for contractions of static shape on floats that `hp_rt_matmul`
/// computes: C[batch, m, n] += sum over k of A[batch, m, k] B[batch, k, n],
/// each of batch, m, n, k being any number of loops in any order; with an
/// epilogue, or without.
bool isRuntimeContraction(Operation *op);

/// A (0), B (1) or C (2) of a contraction.
OpOperand &getContractionOperand(linalg::LinalgOp op, unsigned number);
/// The bias that an epilogue adds, or null.
Value getContractionBias(linalg::LinalgOp op);

/// Arguments of `hp_rt_matmul`, in elements. Operand 0 of the op is `a`, unless
/// `swapped` (then the runtime computes the transpose, with b as its first).
struct MatmulLayout {
  bool swapped = false;
  bool transA = false, transB = false;
  int64_t m = 1, n = 1, k = 1;
  int64_t ldA = 1, ldB = 1, ldC = 1;
  SmallVector<int64_t, 4> batch, strideA, strideB, strideC;
};

/// What keeps a contraction from being one call: the operand (A, B, C) whose
/// strides do not fit, by number.
struct LayoutMismatch {
  unsigned operand;
};

/// The layout of a contraction on buffers, or the operand to copy first.
struct MatmulLayoutOrMismatch {
  std::optional<MatmulLayout> layout;
  LayoutMismatch mismatch{0};
};
MatmulLayoutOrMismatch getMatmulLayout(linalg::LinalgOp op);

/// Loops of a contraction by role.
struct ContractionLoops {
  SmallVector<unsigned> batch, m, n, k;
};
ContractionLoops classifyLoops(linalg::LinalgOp op);

/// The loops in the order in which an operand's memory has them, outermost
/// first.
void sortByStride(linalg::LinalgOp op, unsigned operand,
                  SmallVectorImpl<unsigned> &loops);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTORUNTIME_CONTRACTIONLAYOUT_H
