//===- MovementOpInterface.td - what an op moves -----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_MOVEMENT_OP_INTERFACE
#define HYPERPARALLEL_MOVEMENT_OP_INTERFACE

include "mlir/IR/OpBase.td"

def MovementOpInterface : OpInterface<"MovementOpInterface"> {
  let cppNamespace = "::mlir::hyperparallel";
  let description = [{
    Implemented by ops that move a tensor and do nothing else: between two tiers
    of memory (a copy), or between the programs of two device groups (a send and
    the receive that meets it). They run beside the kernels; who uses the result
    waits for it. The simulator turns them into transfers on links and segments
    of the machine, and into what is resident in each tier.
  }];
  let methods = [
    InterfaceMethod<
      "What is moved, from where to where.",
      "::mlir::hyperparallel::Movement", "getMovement">,
  ];
}

#endif // HYPERPARALLEL_MOVEMENT_OP_INTERFACE
