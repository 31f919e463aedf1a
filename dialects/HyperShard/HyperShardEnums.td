//===- HyperShardEnums.td - the closed choices -------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_HYPERSHARD_ENUMS
#define HYPERPARALLEL_HYPERSHARD_ENUMS

include "dialects/HyperShard/HyperShardDialect.td"
include "mlir/IR/EnumAttr.td"

def HyperShard_Direction : I32Enum<"Direction",
    "which way shardings may travel", [
      I32EnumCase<"None", 0, "none">,
      I32EnumCase<"Forward", 1, "forward">,
      I32EnumCase<"Backward", 2, "backward">,
    ]> {
  let cppNamespace = "::mlir::hyperparallel::hypershard";
}

def HyperShard_DirectionAttr
    : EnumAttr<HyperShard_Dialect, HyperShard_Direction, "direction">;

#endif // HYPERPARALLEL_HYPERSHARD_ENUMS
