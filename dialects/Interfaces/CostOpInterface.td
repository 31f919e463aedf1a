//===- CostOpInterface.td - what an op costs ---------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_COST_OP_INTERFACE
#define HYPERPARALLEL_COST_OP_INTERFACE

include "mlir/IR/OpBase.td"

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::mlir::hyperparallel";
  let description = [{
    Asked by the cost model: operations, bytes read and written, and bytes
    received from other devices, of the op as it stands (global shapes before
    partition, local shapes after); or its seconds, where they are known. Views
    cost nothing. An op on scalars answers for one execution, which is how the
    ops in the body of a structured op are counted. Calls, loops and branches do
    not implement it: the cost model sees through them with upstream's
    interfaces, and visits each function once.
  }];
  let methods = [
    InterfaceMethod<
      "Flops and bytes of the op as it stands.",
      "::mlir::hyperparallel::OpCost", "getCost">,
  ];
}

#endif // HYPERPARALLEL_COST_OP_INTERFACE
