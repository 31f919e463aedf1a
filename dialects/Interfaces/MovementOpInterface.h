//===- MovementOpInterface.h - what an op moves -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_INTERFACES_MOVEMENTOPINTERFACE_H
#define HYPERPARALLEL_DIALECTS_INTERFACES_MOVEMENTOPINTERFACE_H

#include "mlir/IR/OpDefinition.h"

namespace mlir::hyperparallel {

struct Movement {
  enum class Kind { Copy, Send, Receive };

  Kind kind;
  double bytes = 0;
  /// Of a copy: the tiers, by the names that the machine gives them; empty for
  /// the device's own memory.
  StringRef from, to;
  /// Of a send or receive: the program at the other end, and which of the
  /// messages between the two it is.
  StringRef peer;
  int64_t tag = 0;
};

} // namespace mlir::hyperparallel

#include "dialects/Interfaces/MovementOpInterface.h.inc"

#endif // HYPERPARALLEL_DIALECTS_INTERFACES_MOVEMENTOPINTERFACE_H
