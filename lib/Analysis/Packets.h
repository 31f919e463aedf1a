//===- Packets.h - messages of several values -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_PACKETS_H
#define HYPERPARALLEL_LIB_ANALYSIS_PACKETS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace mlir::hyperparallel {

/// On sends and receives that travel together (hypermpmd-merge-transfers): the
/// number of their packet, and the place in it.
constexpr llvm::StringLiteral kPacketAttrName = "hp.packet";

struct PacketPlace {
  int64_t packet, place;
};

inline std::optional<PacketPlace> getPacketPlace(Operation *op) {
  auto words = op->getAttrOfType<DenseI64ArrayAttr>(kPacketAttrName);
  if (!words || words.size() != 2)
    return std::nullopt;
  return PacketPlace{words[0], words[1]};
}

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_PACKETS_H
