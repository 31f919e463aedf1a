//===- SupernodeEnums.td - the closed choices --------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_SUPERNODE_ENUMS
#define HYPERPARALLEL_SUPERNODE_ENUMS

include "mlir/IR/EnumAttr.td"

def Supernode_Algorithm : I32Enum<"Algorithm",
    "how the members of a group exchange data within a network level", [
      // p - 1 steps to the neighbour: needs nothing of the fabric.
      I32EnumCase<"Ring", 0, "ring">,
      // ceil(log2 p) steps of the whole buffer: best for small ones.
      I32EnumCase<"Tree", 1, "tree">,
      // log2 p steps of halves, p a power of two.
      I32EnumCase<"Halving", 2, "halving">,
      // One step to all peers at once: needs a fabric that does not block.
      I32EnumCase<"Direct", 3, "direct">,
      // Members read and write one memory: what counts is its bandwidth.
      I32EnumCase<"Memory", 4, "memory">,
    ]> {
  let cppNamespace = "::mlir::hyperparallel::supernode";
}

#endif // HYPERPARALLEL_SUPERNODE_ENUMS
