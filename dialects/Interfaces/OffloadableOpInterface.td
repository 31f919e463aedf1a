//===- OffloadableOpInterface.td - what may be elsewhere ---*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_OFFLOADABLE_OP_INTERFACE
#define HYPERPARALLEL_OFFLOADABLE_OP_INTERFACE

include "mlir/IR/OpBase.td"

def OffloadableOpInterface : OpInterface<"OffloadableOpInterface"> {
  let cppNamespace = "::mlir::hyperparallel";
  let description = [{
    Asked by the offload planner: whether a result may leave the device between
    two uses, and whether the op may be executed again instead of keeping or
    moving its result. An op that does not implement it has results that may
    leave, and is executed once.
  }];
  let methods = [
    InterfaceMethod<
      "Whether the result may be in a memory tier while nobody uses it.",
      "bool", "mayLeaveDevice", (ins "unsigned":$result), "", "return true;">,
    InterfaceMethod<
      "Whether executing the op again on the same operands gives the same bits "
      "and does nothing else.",
      "bool", "mayBeRecomputed">,
  ];
}

#endif // HYPERPARALLEL_OFFLOADABLE_OP_INTERFACE
