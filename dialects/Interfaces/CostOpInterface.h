//===- CostOpInterface.h - what an op costs ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_INTERFACES_COSTOPINTERFACE_H
#define HYPERPARALLEL_DIALECTS_INTERFACES_COSTOPINTERFACE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::hyperparallel {

/// Doubles, for a training step of a large model overflows nothing then.
struct OpCost {
  double flops = 0;
  double bytesRead = 0;
  double bytesWritten = 0;

  OpCost &operator+=(const OpCost &other) {
    flops += other.flops;
    bytesRead += other.bytesRead;
    bytesWritten += other.bytesWritten;
    return *this;
  }
};

/// Bytes of a value of static shape; an i1 element takes a byte, and index and
/// anything that is not a tensor or number takes 0.
int64_t byteSize(Type type);

} // namespace mlir::hyperparallel

#include "dialects/Interfaces/CostOpInterface.h.inc"

#endif // HYPERPARALLEL_DIALECTS_INTERFACES_COSTOPINTERFACE_H
