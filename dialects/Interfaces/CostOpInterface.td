//===- CostOpInterface.td - what an op costs ---------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_COST_OP_INTERFACE
#define HYPERPARALLEL_COST_OP_INTERFACE

include "mlir/IR/OpBase.td"

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::mlir::hyperparallel";
  let description = [{
    Asked by the cost model: floating-point operations, and bytes read and
    written, of the op as it stands (global shapes before partition, local
    shapes after). Views cost nothing.
  }];
  let methods = [
    InterfaceMethod<
      "Flops and bytes of the op as it stands.",
      "::mlir::hyperparallel::OpCost", "getCost">,
  ];
}

#endif // HYPERPARALLEL_COST_OP_INTERFACE
