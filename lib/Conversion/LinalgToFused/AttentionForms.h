//===- AttentionForms.h - Which ops are an attention ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTOFUSED_ATTENTIONFORMS_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTOFUSED_ATTENTIONFORMS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::hyperparallel {

/// Which dimension of a tensor rows lie along, in any shape that it has: how
/// long it is, and how many elements lie between two neighbours.
struct RowLoop {
  int64_t size = 1, inner = 1;
};

/// The ops from the scores to the result, as far as they were found.
struct Attention {
  linalg::GenericOp scores; ///< Q x K^T
  linalg::GenericOp scaled; ///< what is done to the scores; null if nothing
  linalg::GenericOp most, exponential, sum, quotient;
  linalg::GenericOp values; ///< P x V
  RowLoop along;            ///< n
  double scale = 1;
  Value added; ///< in the body of `scaled`: what is added; null if nothing
  std::string refusal;
};

/// From a product's operand back to the scores; nothing if it is no softmax of
/// a product.
std::optional<Attention> findSoftmax(OpOperand &probabilities);
/// Whether these are probabilities that a function of a vendor's operator
/// (OutlineOperators) makes of the scores: others read them, or it had been
/// left.
bool isOutlinedSoftmax(OpOperand &probabilities);
/// Reads `scaled` as score * scale + added.
bool matchScaled(Attention &found);

/// The tensor behind an argument of the op's body; null for anything else.
OpOperand *getOperandOf(linalg::GenericOp op, Value value);
/// Whether `value` is computed from `from` inside of a body.
bool dependsOn(Value value, Value from);
/// Whether only `wanted` read a value, in any shape.
bool isReadBy(Value value, ArrayRef<Operation *> wanted);
/// Of an init, whether it is filled with a number.
bool isFilled(Value init, double wanted);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTOFUSED_ATTENTIONFORMS_H
