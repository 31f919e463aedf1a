//===- Reduction.td - how partial values become one --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_REDUCTION
#define HYPERPARALLEL_REDUCTION

include "mlir/IR/EnumAttr.td"

def HP_Reduction : I32Enum<"Reduction",
    "how the partial values of several devices become the whole value", [
      I32EnumCase<"Sum", 0, "sum">,
      I32EnumCase<"Max", 1, "max">,
      I32EnumCase<"Min", 2, "min">,
      I32EnumCase<"Prod", 3, "prod">,
      I32EnumCase<"And", 4, "and">,
      I32EnumCase<"Or", 5, "or">,
      I32EnumCase<"Avg", 6, "avg">,
    ]> {
  let cppNamespace = "::mlir::hyperparallel";
}

#endif // HYPERPARALLEL_REDUCTION
