//===- OperatorForms.h - Operators by their arithmetic ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_OPERATORFORMS_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_OPERATORFORMS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::hyperparallel {

/// Structured ops on tensors that together are one operator along the last
/// dimension of a tensor.
struct OperatorForm {
  /// softmax (x), layer_norm (x, weight, bias) or rms_norm (x, weight).
  StringRef name;
  SmallVector<Value> inputs;
  /// What the operator gives: the whole result, then numbers of each row: of
  /// layer_norm the mean and the reciprocal of the deviation, of rms_norm the
  /// latter. Null where the program has none.
  SmallVector<Value> results;
  double epsilon = 0;
  /// The ops that compute the results from the inputs, in their order.
  SmallVector<Operation *> ops;
};

/// The operator whose last op is `root`, if it is one, and nobody else uses
/// what an operator does not give.
std::optional<OperatorForm> matchOperator(linalg::GenericOp root);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_OPERATORFORMS_H
