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
  /// Operations of all kinds.
  double flops = 0;
  /// Those of `flops` that a matrix unit does: products summed up.
  double contractionFlops = 0;
  /// To and from the memory of the device.
  double bytesRead = 0;
  double bytesWritten = 0;
  /// From other devices, the most that one device receives.
  double bytesReceived = 0;
  /// Of an op whose time is known: what it takes, whatever the rest says. Sums
  /// leave it out.
  std::optional<double> seconds = std::nullopt;

  OpCost &operator+=(const OpCost &other) {
    flops += other.flops;
    contractionFlops += other.contractionFlops;
    bytesRead += other.bytesRead;
    bytesWritten += other.bytesWritten;
    bytesReceived += other.bytesReceived;
    return *this;
  }
  OpCost operator*(double times) const {
    return {flops * times, contractionFlops * times, bytesRead * times,
            bytesWritten * times, bytesReceived * times};
  }
  /// A view, a constant: nothing is done when the program runs.
  bool isFree() const {
    return flops == 0 && bytesRead == 0 && bytesWritten == 0 &&
           bytesReceived == 0 && !seconds;
  }
};

/// Bytes of a value of static shape; an i1 element takes a byte, an index
/// eight, and anything that is not a tensor or number, or not of static shape,
/// none.
int64_t byteSize(Type type);

} // namespace mlir::hyperparallel

#include "dialects/Interfaces/CostOpInterface.h.inc"

#endif // HYPERPARALLEL_DIALECTS_INTERFACES_COSTOPINTERFACE_H
